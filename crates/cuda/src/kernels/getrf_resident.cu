// A = P L U with partial pivoting, each matrix read once and written once: one team of threads a matrix, one launch a batch.
#include "crout.cuh"

// The arguments of `getrf.cu`.
extern "C" __global__ void __launch_bounds__(THREADS* TEAMS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int order) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Election elections[TEAMS];
    const int tid = TEAMS == 1 ? threadIdx.x : threadIdx.x % THREADS, mine = TEAMS == 1 ? opaque(0) : threadIdx.x / THREADS;
    const Chip chip(memory, order, mine);

    // Teams of one block stay together: those beyond the batch have a matrix of their own.
    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        bool bad = false;
        const u32 info = crout(Input(a, b), chip, elections[mine], pivots + b * order, rows != nullptr, order, bad, tid, live);
        if (live) {
            store(chip.matrix, Output(lu, b), order, tid);
            if (tid == 0) status[b] = bad ? NOT_FINITE : info;
            for (int i = tid; rows != nullptr && i < order; i += THREADS) rows[b * order + i] = chip.origin[i];
        }
        team_sync();
    }
}
