// Interchanges as a permutation, and matrices copied with their columns permuted.
#include "operand.cuh"
#include "warp.cuh"

// From `order` sequential exchanges a matrix: row i of the factored matrix is row rows[i] of A. Exchanges come from the caller: one
// that is none (LAPACK's rule: step k exchanges rows k and p, k <= p < order) makes its matrix not finite and is not followed.
extern "C" __global__ void permutation(const u32* pivots, const u32* given, u32* rows, u32* status, u64 batch, int order) {
    extern __shared__ __align__(16) unsigned char memory[];
    Position* row = reinterpret_cast<Position*>(memory);
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        for (int i = threadIdx.x; i < order; i += blockDim.x) row[i] = i;
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 word = given[b];
            for (int k = 0; k < order; ++k) {
                const u32 p = pivots[b * order + k];
                if (p < u32(k) || p >= u32(order)) {
                    word = NOT_FINITE;
                    continue;
                }
                const Position moved = row[k];
                row[k] = row[p];
                row[p] = moved;
            }
            status[b] = word;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < order; i += blockDim.x) rows[b * order + i] = row[i];
    }
}

// Column k of `from` becomes column columns[k] of `to`; by tiles through shared memory, so that both sides are walked in the order in
// which they lie.
extern "C" __global__ void lacpy(Operand from, Operand to, const u32* columns, u64 batch, int order) {
    __shared__ Scalar tile[WARP][WARP + 1];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const bool rows_first = to.row < to.col;
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const MatrixAt<true> source(from, b);
        const MatrixAt<false> result(to, b);
        for (int top = 0; top < order; top += WARP) {
            for (int left = 0; left < order; left += WARP) {
                __syncthreads();
                for (int c = warp; c < WARP; c += warps)
                    if (top + lane < order && left + c < order) tile[c][lane] = *source.at(top + lane, left + c);
                __syncthreads();
                for (int line = warp; line < WARP; line += warps) {
                    const int i = rows_first ? lane : line, c = rows_first ? line : lane;
                    if (top + i < order && left + c < order)
                        *result.at(top + i, columns[b * order + left + c]) = tile[c][i];
                }
            }
        }
    }
}
