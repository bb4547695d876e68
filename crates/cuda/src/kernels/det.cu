// What factors and matrices tell in one number: determinants and norms. A warp a matrix; sums in a fixed order.
#include "det.cuh"

extern "C" __global__ void determinant(Operand lu, const u32* pivots, const u32* status, Real* result, u64 batch, int order) {
    const int lane = threadIdx.x % WARP;
    const u64 warps = u64(gridDim.x) * (blockDim.x / WARP);
    for (u64 b = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; b < batch; b += warps) {
        const MatrixAt<false> factors(lu, b);
        tell_determinant([&](int k) { return *factors.at(k, k); }, [&](int k) { return pivots[b * order + k] != u32(k); }, status[b],
                         result + b * (Number<Scalar>::COMPLEX ? 3 : 2), order, lane);
    }
}

// The 1-norm. With `status` the norm is the inverse's and completes the condition number: ||A|| ||A^-1||, infinite for a singular
// matrix, NaN for one that is not finite.
extern "C" __global__ void lange(Operand a, const u32* status, Real* result, u64 batch, int order) {
    const int lane = threadIdx.x % WARP;
    const u64 warps = u64(gridDim.x) * (blockDim.x / WARP);
    for (u64 b = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; b < batch; b += warps) {
        const MatrixAt<false> matrix(a, b);
        Real largest = 0;
        for (int j = 0; j < order; ++j) {
            Real sum = 0;
            for (int i = lane; i < order; i += WARP) sum += modulus(*matrix.at(i, j));
            sum = Warp::sum(sum);
            largest = sum > largest || !(sum == sum) ? sum : largest;
        }
        if (lane == 0) {
            if (status == nullptr) {
                result[b] = largest;
            } else {
                const u32 word = status[b];
                result[b] = word == 0 ? result[b] * largest : word == NOT_FINITE ? Range<Real>::nan() : Range<Real>::infinity();
            }
        }
    }
}
