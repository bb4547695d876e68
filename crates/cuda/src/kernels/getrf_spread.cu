// A = P L U of few matrices, each by many blocks: right-looking, a launch a panel. One block of a matrix brings the next panel up to date and factors it; the others bring the columns behind it
// up to date meanwhile. Rows on the left of a panel move at the end, all at once.
#include "factor.cuh"
#include "origin.cuh"

static_assert(RIGHT_LOOKING && !DELAYED, "columns are brought up to date from the left, panel by panel, and lie as the last panel left them");

// Of rows from `top` on, each by the thread that has it: whence it has come by the exchanges of columns `begin` .. `end`.
__device__ inline void trace_rows(Panel<ROWS>& panel, Position* origin, const u32* pivots, int begin, int end, int top, int order, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        const bool there = i >= top && i < order;
        panel.place(r, tid) = there ? i : -1;
        if (there) origin[i] = origin_of(i, pivots, begin, end);
    }
}

// A block column of these rows, each from where it has come.
template <class M>
__device__ inline void load_traced(Panel<ROWS>& panel, M from, const Position* origin, int column, int width, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = panel.place(r, tid), row = i < 0 ? 0 : origin[i];
        UNROLL for (int c = 0; c < NB; ++c) panel.at(r, c, tid) = i >= 0 && c < width ? *from.at(row, column + c) : zero<Scalar>();
    }
}

// Block columns from `first` on take the part of the panel before them, those of A that of the first panel; then the first of them is factored. Before the first panel there is nothing to do for others.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_spread(Operand a, Operand lu, u32* pivots, u32* status, u64 batch, int order, int first) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team team;
    const int tid = threadIdx.x, before = max(first - NB, 0);
    const Shared shared(memory, order, 0);
    Panel<ROWS> panel(shared.panel, shared.place, order, tid);
    const u64 columns = first == 0 ? 1 : (order - first + NB - 1) / NB;
    for (u64 item = blockIdx.x; item < batch * columns; item += gridDim.x) {
        const u64 b = item / columns;
        const int column = first + int(item % columns) * NB, width = min(NB, order - column);
        const Output out(lu, b);
        u32* const exchanges = pivots + b * order;
        trace_rows(panel, shared.origin, exchanges, before, first, before, order, tid);
        if (before == 0) {
            load_traced(panel, Input(a, b), shared.origin, column, width, tid);
        } else {
            load_traced(panel, out, shared.origin, column, width, tid);
        }
        bool bad = false;
        if (first > 0) {
            Stream<Output, ROWS, STAGES> stream(out, panel, shared.ring, before, first, tid);
            const UpperRows<Output> rows(out, column, width, tid, true);
            bad = update_from_left(panel, team, stream, rows, shared, before, tid);
        }
        const bool next = column == first;
        if (next) {
            if (tid == 0) team.begin();
            const bool works = ROWS == 0 || (tid | (LANES - 1)) + (ROWS - 1) * THREADS >= first;
            getf2(panel, team, first, width, works, tid);
        }
        bad |= store_panel(panel, out, first, column, width, tid);
        team_sync();  // all is told of the exchanges and of the first zero pivot
        bad = team_any(bad);
        for (int j = tid; next && j < width; j += THREADS) exchanges[first + j] = team.moves.pivot[j];
        if (tid == 0) {
            // Blocks of one matrix may see failures at once: what is not finite counts, then the first zero pivot.
            const u32 info = next ? team.info() : 0;
            if (first == 0) {
                status[b] = bad ? NOT_FINITE : info;
            } else if (bad) {
                atomicExch(status + b, NOT_FINITE);
            } else if (info != 0) {
                atomicCAS(status + b, 0u, info);
            }
        }
    }
}

// Rows of L, in its first `columns`, to where the exchanges of all columns behind those take them that were factored together, `width` at a time: whole block columns. `rows`: row i of the factored matrix is row rows[i] of A (may be null).
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf_settle(Operand lu, const u32* pivots, u32* rows, u64 batch, int order, int columns, int width) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int tid = threadIdx.x;
    const Shared shared(memory, order, 0);
    Panel<ROWS> panel(shared.panel, shared.place, order, tid);
    const u64 parts = max((columns + width - 1) / width, 1);
    for (u64 item = blockIdx.x; item < batch * parts; item += gridDim.x) {
        const u64 b = item / parts;
        const int begin = int(item % parts) * width, end = min(begin + width, columns);
        const Output out(lu, b);
        const u32* const exchanges = pivots + b * order;
        trace_rows(panel, shared.origin, exchanges, end, order, end, order, tid);
        for (int column = begin; column < end; column += NB) {
            load_traced(panel, out, shared.origin, column, end - column, tid);
            team_sync();
            store_panel(panel, out, end, column, end - column, tid);
        }
        for (int i = tid; rows != nullptr && end == columns && i < order; i += THREADS) rows[b * order + i] = origin_of(i, exchanges, 0, order);
    }
}
