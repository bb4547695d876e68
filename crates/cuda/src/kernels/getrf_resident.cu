// A = P L U with partial pivoting on chip, a matrix read once and written once where it has room there: one crew of threads a matrix, one launch
// a batch.
#include "lookahead.cuh"
#if BATCHLA_WINDOW > 0
#include "window.cuh"
#endif

// The arguments of `getrf.cu`.
extern "C" __global__ void __launch_bounds__(CREW* TEAMS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int given) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Staggered<Shared> all[TEAMS];
    const int n = known(given), order = order_on_chip(n);
    const int tid = crew_thread(), mine = TEAMS == 1 ? opaque(0) : threadIdx.x / CREW;
    Shared& shared = all[mine];
    if (HELPERS > 0) begin_meetings(&shared.meeting, CREW);

    // Teams of one block stay together: those beyond the batch have a matrix of their own.
    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        const Input in(a, b);
        const Chip chip(memory, order, mine, in.at(0, 0));
        const Output out(lu, b);
        u32* const exchanges = pivots + b * n;
        u32* const origins = rows == nullptr ? nullptr : rows + b * n;
        bool bad = false;
        if (IN_REGISTERS) {
            Panels<ROWS> panel(0, order, tid);
            factor_in_registers(panel, shared, in, n, order, tid, live);
            if (BATCHLA_UNIT_ROWS_OUT) {
                Real trace = 0;
                UNROLL for (int r = 0; r < ROWS; ++r)
                    if (live && panel.position[r] >= 0) {
                        Scalar* target = out.at(panel.position[r], 0);
                        UNROLL for (int c = 0; c < NB; ++c, target += out.col)
                            if (c < n) {
                                trace = traced(trace, panel.element[r][c]);
                                *target = panel.element[r][c];
                            }
                    }
                bad = !(trace == 0);
            } else {
                bad = gather_rows(panel, shared, n);
                for (int e = tid; live && e < n * n; e += LANES) *out.at(e / n, e % n) = shared.rows()[e / n][e % n];
            }
            UNROLL for (int r = 0; r < ROWS; ++r)
                if (live && origins != nullptr && panel.position[r] >= 0) origins[panel.position[r]] = tid + r * LANES;
            for (int j = tid; live && j < n; j += LANES) exchanges[j] = shared.pivot(j);
        } else {
#if BATCHLA_WINDOW > 0
            bad = getrf_by_windows(in, out, chip, shared, n, order, tid);
#else
            begin_columns(in, chip, shared, order, n, order, tid, live);
            factor_columns(chip, shared, 0, order, n, order, tid);
            const int kept = PADDED ? order : n;
            if (live) bad = store(chip, out, 0, kept, kept, tid);
#endif
            for (int i = tid; live && i < n; i += CREW) {
                exchanges[i] = chip.pivots[i];
                if (origins != nullptr) origins[i] = chip.origin[i];
            }
        }
        bad = crew_any(bad);
        if (live && tid == 0) status[b] = bad ? NOT_FINITE : shared.info();
        crew_sync();
    }
}
