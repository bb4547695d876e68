// What factors and matrices tell in one number: determinants and norms. A warp a matrix; sums in a fixed order.
#include "operand.cuh"
#include "warp.cuh"

__device__ inline void store_parts(Real* to, Real x) { to[0] = x; }
__device__ inline void store_parts(Real* to, Complex<Real> x) {
    to[0] = x.re;
    to[1] = x.im;
}

__device__ inline float modulus(float x) { return fabsf(x); }
__device__ inline double modulus(double x) { return fabs(x); }
__device__ inline float modulus(Complex<float> x) { return hypotf(x.re, x.im); }
__device__ inline double modulus(Complex<double> x) { return hypot(x.re, x.im); }
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline double logarithm(double x) { return log(x); }
template <class R>
__device__ inline R of_modulus_one(R x, R modulus) {
    return x / modulus;
}
template <class R>
__device__ inline Complex<R> of_modulus_one(Complex<R> x, R modulus) {
    return {x.re / modulus, x.im / modulus};
}

// det A = sign * exp(log_abs), from the diagonal of U and the exchanges: the parts of the sign, then the logarithm. Phases are brought back to modulus one after each product.
extern "C" __global__ void determinant(Operand lu, const u32* pivots, const u32* status, Real* result, u64 batch, int order) {
    const int lane = threadIdx.x % WARP;
    const u64 warps = u64(gridDim.x) * (blockDim.x / WARP);
    for (u64 b = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; b < batch; b += warps) {
        const u32 word = status[b];
        Scalar sign = one<Scalar>();
        Real log_abs = 0;
        const MatrixAt<false> factors(lu, b);
        for (int k = lane; word == 0 && k < order; k += WARP) {
            const Scalar u = *factors.at(k, k);
            const Real size = modulus(u);
            const Scalar phase = of_modulus_one(u, size);
            sign = times(sign, pivots[b * order + k] == u32(k) ? phase : negative(phase));
            sign = of_modulus_one(sign, modulus(sign));
            log_abs += logarithm(size);
        }
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            sign = times(sign, Warp::exchange(sign, distance));
            sign = of_modulus_one(sign, modulus(sign));
        }
        log_abs = Warp::sum(log_abs);
        if (word == NOT_FINITE) {
            sign = not_a_number<Scalar>();
            log_abs = Range<Real>::nan();
        } else if (word != 0) {
            sign = zero<Scalar>();
            log_abs = -Range<Real>::infinity();
        }
        if (lane == 0) {
            constexpr int PARTS = Number<Scalar>::COMPLEX ? 2 : 1;
            store_parts(result + b * (PARTS + 1), sign);
            result[b * (PARTS + 1) + PARTS] = log_abs;
        }
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
