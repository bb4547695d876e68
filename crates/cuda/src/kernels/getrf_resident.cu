// A = P L U with partial pivoting on chip, a matrix read once and written once where it has room there: one crew of threads a matrix, one launch
// a batch.
#include "window.cuh"

// Where one panel is all there is, it goes from registers to its place.
constexpr bool ONE_PANEL = ORDER > 0 && ORDER <= NB && BATCHLA_UNIT_ROWS_OUT;

// The arguments of `getrf.cu`.
extern "C" __global__ void __launch_bounds__(CREW* TEAMS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int n) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Staggered<Shared> all[TEAMS];
    const int order = known(n);
    const int tid = crew_thread(), mine = TEAMS == 1 ? opaque(0) : threadIdx.x / CREW;
    const Chip chip(memory, order, mine);
    Shared& shared = all[mine];

    // Teams of one block stay together: those beyond the batch have a matrix of their own.
    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        const Input in(a, b);
        const Output out(lu, b);
        u32 info;
        bool bad = false;
        if (ONE_PANEL) {
            Panels panel(order, tid);
            if (tid == 0) shared.begin();
            factor_panel(panel, in, chip.matrix, {&shared.upper[0][0], LINE}, shared, 0, 0, order, tid, live);
            Real trace = 0;
            UNROLL for (int r = 0; r < ROWS; ++r)
                if (live && panel.position[r] >= 0) {
                    if (rows != nullptr) rows[b * order + panel.position[r]] = tid + r * LANES;
                    UNROLL for (int c = 0; c < NB; ++c)
                        if (c < order) {
                            trace = traced(trace, panel.element[r][c]);
                            *out.at(panel.position[r], c) = panel.element[r][c];
                        }
                }
            Lanes::sync();
            for (int j = tid; live && j < order; j += LANES) pivots[b * order + j] = shared.pivot(j);
            info = shared.info();
            bad = !(trace == 0);
        } else {
            if (WINDOW > 0) {
                bad = getrf_by_windows(in, out, chip, shared, pivots + b * order, order, tid);
            } else {
                Panels panel(order, tid % LANES);
                begin_columns(in, chip, shared, order, order, tid, live);
                factor_columns(panel, in, chip, shared, pivots + b * order, 0, order, order, tid, live);
                if (live) bad = store(chip, out, 0, order, order, tid);
            }
            info = shared.info();
            for (int i = tid; live && rows != nullptr && i < order; i += CREW) rows[b * order + i] = chip.origin[i];
        }
        bad = crew_any(bad);
        if (live && tid == 0) status[b] = bad ? NOT_FINITE : info;
        crew_sync();
    }
}
