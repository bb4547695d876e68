// A = P L U by strips of columns: of each strip the factors, by one block; what columns behind it take is in getrf_trailing.cu.
#include "factor.cuh"

constexpr int STRIP = BATCHLA_WINDOW;            // its columns
constexpr bool TOGETHER = BATCHLA_TOGETHER > 1;  // whether others' products are taken with its own
static_assert(DELAYED && !BATCHLA_TENSOR, "left-looking within a strip, which takes its rows from where they are");

// Rows of `before` columns on the left of the strip, whole panels, to where its exchanges have taken them.
__device__ inline void move_left(Panel<ROWS>& panel, Output lu, const Position* origin, int before, int n, int tid) {
    const auto moves = [&](int i) { return i < n && origin[i] != i; };
#pragma unroll 1
    for (int column = -before; column < 0; column += NB) {
        UNROLL for (int r = 0; r < panel.rows(); ++r)
            if (moves(tid + r * THREADS))
                UNROLL for (int c = 0; c < NB; ++c) panel.at(r, c, tid) = *lu.at(origin[tid + r * THREADS], column + c);
        team_sync();
        UNROLL for (int r = 0; r < panel.rows(); ++r)
            if (moves(tid + r * THREADS))
                UNROLL for (int c = 0; c < NB; ++c) *lu.at(tid + r * THREADS, column + c) = panel.at(r, c, tid);
    }
}

// The first strip of the trailing matrix from row and column `base` on, which `a` and `lu` are; they may be one. `before`: columns on its left of which products are taken with its own at once.
// `pivots` and `status` are of all of the matrix, of order `order`.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_strip(Operand a, Operand lu, u32* pivots, u64 batch, int order, int base, int before, u32* status) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team team;
    const int tid = threadIdx.x, n = order - base, end = min(n, STRIP);
    const Shared shared(memory, n, 0, end);
    Panel<ROWS> panel(shared.panel, shared.place, n, tid);
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Output out(lu, b);
        const u32 earlier = base == 0 ? 0 : status[b];
        bool bad = earlier == NOT_FINITE;
        u32* const exchanges = pivots + b * order + base;
        begin_factor(Input(a, b), out, team, shared.origin, n, tid, true);
        const u32 info = factor(Input(a, b), out, team, panel, shared, exchanges, n, 0, end, 0, bad, TOGETHER && before > 0, tid, true);
        if (TOGETHER) move_left(panel, out, shared.origin, before, n, tid);
        for (int j = tid; base > 0 && j < end; j += THREADS) exchanges[j] += base;
        if (tid == 0) status[b] = bad ? NOT_FINITE : earlier != 0 ? earlier : info != 0 ? info + base : 0;
        team_sync();
    }
}
