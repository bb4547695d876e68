// A = P L U by strips of columns: of each strip the factors, by one block; the columns behind it are the trailing matrix (getrf_trailing.cu), whose own first strip is next.
#include "factor.cuh"

constexpr int STRIP = BATCHLA_WINDOW;  // its columns
static_assert(DELAYED && !BATCHLA_TENSOR, "left-looking within a strip, which takes its rows from where they are");

// The first strip of the trailing matrix from row and column `base` on, which `a` and `lu` are; they may be one. `pivots` and `status` are of all of the matrix, of order `order`.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_strip(Operand a, Operand lu, u32* pivots, u32* status, u64 batch, int order, int base) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team team;
    const int tid = threadIdx.x, n = order - base, end = min(n, STRIP);
    const Shared shared(memory, n, 0, end);
    Panel<ROWS> panel(shared.panel, shared.place, n, tid);
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Output out(lu, b);
        const u32 before = base == 0 ? 0 : status[b];
        bool bad = before == NOT_FINITE;
        u32* const exchanges = pivots + b * order + base;
        begin_factor(Input(a, b), out, team, shared.origin, n, tid, true);
        const u32 info = factor(Input(a, b), out, team, panel, shared, exchanges, n, 0, end, 0, bad, false, tid, true);
        for (int j = tid; base > 0 && j < end; j += THREADS) exchanges[j] += base;
        if (tid == 0) status[b] = bad ? NOT_FINITE : before != 0 ? before : info != 0 ? info + base : 0;
        team_sync();
    }
}
