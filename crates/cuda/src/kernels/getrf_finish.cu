// The end of an A = P L U by strips: once the trailing matrix is small, all of it on chip, by windows.
#include "window.cuh"

static_assert(TEAMS == 1 && !INVERTS && BATCHLA_UNIT_ROWS_IN == BATCHLA_UNIT_ROWS_OUT, "a matrix a block, in place");

// The trailing matrix from row and column `base` on, which `lu` is. `pivots` and `status` are of all of the matrix, of order `whole`.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getrf_finish(Operand lu, u32* pivots, u32* status, u64 batch, int whole, int base) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Staggered<Shared> shared;
    const int n = whole - base, order = order_on_chip(n), tid = crew_thread();
    if (HELPERS > 0) begin_meetings(&shared.meeting, CREW);
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Input in(lu, b);
        const Chip chip(memory, order, 0);
        const Output out(lu, b);
        u32* const exchanges = pivots + b * whole + base;
        bool bad = getrf_by_windows(in, out, chip, shared, n, order, tid);
        for (int i = tid; i < n; i += CREW) exchanges[i] = base + chip.pivots[i];
        bad = crew_any(bad);
        const u32 before = status[b], info = shared.info();
        if (tid == 0) status[b] = bad || before == NOT_FINITE ? NOT_FINITE : before != 0 ? before : info != 0 ? info + base : 0;
        crew_sync();
    }
}
