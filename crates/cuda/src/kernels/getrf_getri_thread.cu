// A^-1, a matrix a thread: LU, then X U = I and X L = U^-1; one launch a batch.
#include "thread.cuh"

// X U = I, then X L = U^-1 in its place.
__device__ inline void getri(Scalar (&x)[N][N], const Scalar (&lu)[N][N]) {
    for_each_element([&](int i, int j) { x[i][j] = i == j ? one<Scalar>() : zero<Scalar>(); });
    UNROLL for (int c = 0; c < N; ++c) {
        const Divisor<Scalar> by = divisor(lu[c][c]);
        if (by.safe()) {
            UNROLL for (int i = 0; i <= c; ++i) x[i][c] = by.by_reciprocal(x[i][c]);
        } else {
            UNROLL for (int i = 0; i <= c; ++i) x[i][c] = divide(x[i][c], by.value);
        }
        UNROLL for (int i = 0; i <= c; ++i)
            UNROLL for (int d = c + 1; d < N; ++d) x[i][d] = subtract_product(x[i][d], x[i][c], lu[c][d]);
    }
    UNROLL for (int d = N - 1; d >= 0; --d)
        UNROLL for (int i = 0; i < N; ++i) {
            Scalar products = zero<Scalar>();
            UNROLL for (int c = N - 1; c > d; --c) products = subtract_product(products, x[i][c], lu[c][d]);
            x[i][d] = sum(x[i][d], products);
        }
}

// `determinants` may be null.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_getri(Operand a, Operand x, Real* determinants, u32* status, u64 batch, int) {
    __shared__ Elements all[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    Elements& elements = all[warp];
    for (u64 first = u64(blockIdx.x) * THREADS + warp * WARP; first < batch; first += u64(gridDim.x) * THREADS) {
        const Share share = {first, batch - first < WARP ? int(batch - first) : WARP, lane};
        Scalar lu[N][N], inverse[N][N];
        u32 pivot[N], origin[N];
        load<BATCHLA_UNIT_ROWS_IN>(lu, a, elements, share);
        u32 word = getf2(lu, pivot, origin);
        if (!all_finite(lu)) word = NOT_FINITE;
        if (determinants != nullptr && share.live())
            tell_own_determinant<N>([&](int k) { return lu[k][k]; }, [&](int k) { return pivot[k] != u32(k); }, word,
                                    determinants + (first + lane) * (Number<Scalar>::COMPLEX ? 3 : 2));
        getri(inverse, lu);
        if (word == 0 && !all_finite(inverse)) word = NOT_FINITE;
        for_each_element([&](int i, int j) { inverse[i][j] = word == 0 ? inverse[i][j] : not_a_number<Scalar>(); });
        store<BATCHLA_UNIT_ROWS_OUT>(inverse, origin, x, elements, share);
        if (share.live()) status[first + lane] = word;
    }
}
