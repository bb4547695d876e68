// A = P L U with partial pivoting, one team of threads a matrix, one launch a batch.
#include "factor.cuh"

constexpr int TEAMS = BATCHLA_TEAMS;  // matrices a block; above one only where a team is a warp

// `pivots`: sequential exchanges, 0-based, `order` a matrix; `rows`: row i of the factored matrix is row rows[i] of A (may be
// null); `status`: outcome words.
extern "C" __global__ void __launch_bounds__(THREADS* TEAMS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int order) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team teams[TEAMS];
    const int tid = TEAMS == 1 ? threadIdx.x : threadIdx.x % THREADS, mine = TEAMS == 1 ? 0 : threadIdx.x / THREADS;
    const Shared shared(memory, order, mine);
    Panel<ROWS> panel(shared.panel, shared.place, order, tid);

    // Teams of one block stay together: those beyond the batch look on, without a row of their own.
    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        const Output out(lu, b);
        bool bad = false;
        begin_factor(Input(a, b), out, teams[mine], shared.origin, order, tid, live);
        const u32 info = factor(Input(a, b), out, teams[mine], panel, shared, pivots + b * order, order, 0, order, 0, bad,
                                rows != nullptr, tid, live);
        if (live && tid == 0) status[b] = bad ? NOT_FINITE : info;
        if (live && rows != nullptr)
            for (int i = tid; i < order; i += THREADS) rows[b * order + i] = shared.origin[i];
    }
}
