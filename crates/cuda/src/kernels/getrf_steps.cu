// A = P L U, right-looking, by many launches: a panel, the interchange of rows beside it (laswp.cu), the update of the columns on its right.
// What MAGMA's slides on batched LU compare; each step is the one that the others have.
#include "factor.cuh"

// Block columns between `begin` and `end`, rows from `begin` on. The first of them takes A, and starts the outcome words.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_panel(Operand a, Operand lu, u32* pivots, u32* status, u64 batch, int order, int begin, int end) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team team;
    const int tid = threadIdx.x;
    const Shared shared(memory, order, 0);
    Panel<ROWS> panel(shared.panel, shared.place, order, tid);
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Output out(lu, b);
        const u32 before = begin == 0 ? 0 : status[b];
        bool bad = before == NOT_FINITE;
        if (begin == 0) begin_factor(Input(a, b), out, team, shared.origin, order, tid, true);
        const u32 info =
            factor(Input(a, b), out, team, panel, shared, pivots + b * order, order, begin, end, before, bad, false, tid, true);
        if (tid == 0) status[b] = bad ? NOT_FINITE : info;
        team_sync();
    }
}

// Block columns between `from` and `to` take the part of the factored ones between `begin` and `end`, on their left.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_update(Operand lu, u32* status, u64 first, u64 batch, int order, int begin, int end, int from, int to) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team team;
    const int tid = threadIdx.x;
    const Shared shared(memory, order, 0);
    Panel<ROWS> panel(shared.panel, shared.place, order, tid);
    const u64 columns = (to - from + NB - 1) / NB;
    for (u64 item = blockIdx.x; item < batch * columns; item += gridDim.x) {
        const u64 b = first + item / columns;
        const int column = from + item % columns * NB, width = min(NB, to - column);
        const Output out(lu, b);
        place_rows(panel, order, tid, true);
        Stream<Output, ROWS, STAGES> stream(out, panel, shared.ring, begin, end, tid);
        load_panel(panel, out, shared.origin, column, width, tid);
        bool bad = false;
        const UpperRows<Output> rows(out, column, width, tid, true);
        for (int q = begin; q < end; q += NB) bad |= update_from_left(panel, team, stream, rows, shared, q, tid);
        bad |= store_panel(panel, out, end, column, width, tid);
        // Blocks of one matrix may see failures at once.
        if (team_any(bad) && tid == 0) atomicExch(status + b, NOT_FINITE);
        team_sync();
    }
}
