// A = P L U with partial pivoting, one team of threads a matrix, one launch a batch.
//
// Left-looking (Liu et al. 2023, algorithm 9): a panel is loaded with the interchanges of earlier panels applied, takes its
// update from every factored block column on its left, is factored, and stored; then the columns on the left are
// interchanged. Right-looking (algorithm 8), to compare with: a factored panel updates all block columns on its right.
#include "getf2.cuh"
#include "laswp.cuh"
#include "update.cuh"

constexpr bool RIGHT_LOOKING = BATCHLA_RIGHT_LOOKING;
// Interchange: 1 serial, 2 warp-grouped, both at once on both sides; 3 warp-grouped, delayed on the right.
constexpr int INTERCHANGE = BATCHLA_INTERCHANGE;
constexpr bool DELAYED = INTERCHANGE == 3 && !RIGHT_LOOKING;

typedef MatrixAt<BATCHLA_UNIT_ROWS_IN> Input;
typedef MatrixAt<BATCHLA_UNIT_ROWS_OUT> Output;

// Rows `top` .. `order` of `width` columns from `column` on; row i comes from row `origin[i]` of the source.
template <class M>
__device__ void load_panel(Panel<ROWS>& panel, M from, const Position* origin, int order, int column, int width, int tid,
                           bool live) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        const bool there = live && i < order;
        panel.place(r, tid) = there ? i : -1;
        const int row = there ? (DELAYED ? origin[i] : i) : 0;
        UNROLL for (int c = 0; c < NB; ++c)
            panel.at(r, c, tid) = there && c < width ? *from.at(row, column + c) : zero<Scalar>();
    }
}

// Rows from `top` on, to their places. Returns whether an element is not finite.
__device__ inline bool store_panel(Panel<ROWS>& panel, Output to, int top, int column, int width, int tid) {
    bool bad = false;
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const Position place = panel.place(r, tid);
        if (place >= top) {
            UNROLL for (int c = 0; c < NB; ++c) {
                if (c < width) {
                    bad = bad || !is_finite(panel.at(r, c, tid));
                    *to.at(place, column + c) = panel.at(r, c, tid);
                }
            }
        }
    }
    return bad;
}

__device__ inline void interchange(Team& team, Output lu, int first, int width, int begin, int end, int tid, bool live) {
    if (INTERCHANGE == 1) {
        interchange_serial(team, lu, first, width, begin, live ? end : begin, tid);
    } else {
        interchange_grouped(team, lu, begin, end, tid);
    }
}

__device__ inline void factor(Input a, Output lu, Team& team, Panel<ROWS>& panel, Position* origin, u32* pivots,
                              u32* status, int order, int tid, bool live) {
    // A team that looks on takes pivot rows that nobody posts.
    for (int e = tid; TEAMS > 1 && !live && e < 2 * LINE; e += THREADS) team.candidate[e / LINE][0].row[e % LINE] = zero<Scalar>();
    if (DELAYED) {
        for (int i = tid; i < order; i += THREADS) origin[i] = i;
    } else {
        for (int i = tid; i < order; i += THREADS) {
            origin[i] = i;
            for (int j = 0; live && j < order; ++j) *lu.at(i, j) = *a.at(i, j);
        }
    }
    team_sync();

    u32 info = 0;
    bool bad = false;
    for (int first = 0; first < order; first += NB) {
        const int width = min(NB, order - first);
        if (DELAYED) {
            load_panel(panel, a, origin, order, first, width, tid, live);
        } else {
            load_panel(panel, lu, origin, order, first, width, tid, live);
        }
        if (!RIGHT_LOOKING) {
            for (int q = 0; q < first; q += NB)
                bad |= update_from_left(panel, team, lu, order, q, first, width, tid, live);
        }
        UNROLL for (int r = 0; r < panel.rows(); ++r)
            if (panel.place(r, tid) < first) panel.place(r, tid) = -1;
        info = getf2(panel, team, first, width, info, tid);
        bad |= store_panel(panel, lu, first, first, width, tid);
        list_moves(panel, team, order, first, tid);

        for (int j = tid; live && j < width; j += THREADS) pivots[first + j] = team.pivot[j];
        // The moves of `origin`, read before they are written.
        int moved[(2 * NB + THREADS - 1) / THREADS];
        UNROLL for (int s = 0; s * THREADS < 2 * NB; ++s)
            if (tid + s * THREADS < team.moves) moved[s] = origin[team.from[tid + s * THREADS]];
        interchange(team, lu, first, width, 0, first, tid, live);
        if (!DELAYED) interchange(team, lu, first, width, first + width, order, tid, live);
        team_sync();
        UNROLL for (int s = 0; s * THREADS < 2 * NB; ++s)
            if (tid + s * THREADS < team.moves) origin[team.to[tid + s * THREADS]] = moved[s];
        team_sync();

        for (int column = first + NB; RIGHT_LOOKING && column < order; column += NB) {
            const int columns = min(NB, order - column);
            load_panel(panel, lu, origin, order, column, columns, tid, live);
            bad |= update_from_left(panel, team, lu, order, first, column, columns, tid, live);
            bad |= store_panel(panel, lu, first + NB, column, columns, tid);
            team_sync();
        }
    }
    bad = team_any(bad);
    if (live && tid == 0) *status = bad ? 0xffffffffu : info;
}

// `pivots`: sequential exchanges, 0-based, `order` a matrix; `rows`: row i of the factored matrix is row rows[i] of A (may be
// null); `status`: outcome words.
extern "C" __global__ void __launch_bounds__(THREADS* TEAMS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int order) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Team teams[TEAMS];
    const int tid = TEAMS == 1 ? threadIdx.x : threadIdx.x % THREADS, mine = TEAMS == 1 ? 0 : threadIdx.x / THREADS;
    // Of the order's size: the panel where it is not in registers, then places and origins of rows.
    const int padded = (order + THREADS - 1) / THREADS * THREADS;
    const u64 panel_bytes = ROWS > 0 ? 0 : u64(order + 1) * NB * sizeof(Scalar);
    unsigned char* part = memory + mine * (panel_bytes + (ROWS > 0 ? 1 : 2) * padded * sizeof(Position));
    Position* origin = reinterpret_cast<Position*>(part + panel_bytes);
    Panel<ROWS> panel(reinterpret_cast<Scalar*>(part), origin + padded, order, tid);

    // Teams of one block stay together: those beyond the batch look on, without a row of their own.
    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        factor(Input(a, b), Output(lu, b), teams[mine], panel, origin, pivots + b * order, status + b, order, tid, live);
        if (live && rows != nullptr)
            for (int i = tid; i < order; i += THREADS) rows[b * order + i] = origin[i];
        team_sync();
    }
}
