// The update from the left: one factored block column, streamed once, takes its part out of the panel.
#pragma once
#include "search.cuh"

// Solves with the unit lower triangle of block `q`: rows q .. q + NB of the panel become rows of U. One column a lane.
__device__ inline void solve_rows(Team& team, const Scalar (*diagonal)[LINE], int buffer, int lane) {
    if (lane < NB) {
        Scalar y[NB];
        UNROLL for (int k = 0; k < NB; ++k) y[k] = team.upper[buffer][k][lane];
        UNROLL for (int k = 0; k < NB - 1; ++k) {
            UNROLL for (int i = (k + 1) / Pack::LENGTH; i < PACKS; ++i) {
                const Pack l = *reinterpret_cast<const Pack*>(&diagonal[k][i * Pack::LENGTH]);
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s)
                    if (i * Pack::LENGTH + s > k && i * Pack::LENGTH + s < NB)
                        y[i * Pack::LENGTH + s] = subtract_product(y[i * Pack::LENGTH + s], l.value[s], y[k]);
            }
        }
        UNROLL for (int k = 1; k < NB; ++k) team.upper[buffer][k][lane] = y[k];
    }
}

// The streamed part: factored block columns, fetched while earlier ones are used. A thread fetches its own rows alone, so that no
// thread waits for another. Rows have their places before.
template <class M, int Rows, int Stages>
struct Stream {
    const Panel<Rows>& panel;
    const Scalar* from;  // of row tid, in the column that is fetched next
    Scalar* ring;
    u64 row, col;
    int tid, next, end;

    // Columns `begin` .. `end`, in this order.
    __device__ Stream(M lu, const Panel<Rows>& panel, Scalar* ring, int begin, int end, int tid)
        : panel(panel), from(lu.at(tid, begin)), ring(ring), row(lu.row), col(lu.col), tid(tid), next(begin), end(end) {
        wait_copies<0>();
        UNROLL for (int s = 0; s < Stages - 1; ++s) fetch();
    }
    // Row r of column k of a fetch that begins with `column`.
    __device__ Scalar* element(int column, int k, int r) const {
        return ring + ((column / AHEAD % Stages * AHEAD + k) * Rows + r) * THREADS + tid;
    }
    __device__ void fetch() {
        if (next < end)
            UNROLL for (int r = 0; r < Rows; ++r)
                if (panel.below(r, next / NB * NB, tid))
                    UNROLL for (int k = 0; k < AHEAD; ++k) copy_async(element(next, k, r), from + r * THREADS * row + k * col);
        commit_copies();
        next += AHEAD;
        from += AHEAD * col;
    }
    __device__ void enter(int) {}
    // Before column k of block column q is used.
    __device__ void before(int, int k) {
        if (k % AHEAD == 0) {
            fetch();
            wait_copies<Stages - 1>();
        }
    }
    __device__ Scalar at(int r, int q, int k) const {
        return panel.below(r, q, tid) ? *element(q + k / AHEAD * AHEAD, k % AHEAD, r) : zero<Scalar>();
    }
    __device__ void after(int, int) {}
};

// The same in registers: two fetches are under way, or one that is all of the block column.
template <class M, int Rows>
struct Stream<M, Rows, 0> {
    static constexpr int BUFFERS = AHEAD < NB ? 2 : 1;
    M lu;
    const Panel<Rows>& panel;
    int tid;
    Scalar left[BUFFERS][Rows][AHEAD];

    __device__ Stream(M lu, const Panel<Rows>& panel, Scalar*, int, int, int tid) : lu(lu), panel(panel), tid(tid) {}
    __device__ void fetch(Scalar (&left)[Rows][AHEAD], int q, int first) {
        UNROLL for (int r = 0; r < Rows; ++r) {
            const bool below = panel.below(r, q, tid);
            UNROLL for (int k = 0; k < AHEAD; ++k)
                left[r][k] = below && first + k < NB ? *lu.at(tid + r * THREADS, q + first + k) : zero<Scalar>();
        }
    }
    __device__ void enter(int q) {
        UNROLL for (int part = 0; part < BUFFERS; ++part) fetch(left[part], q, part * AHEAD);
    }
    __device__ void before(int, int) {}
    __device__ Scalar at(int r, int, int k) const { return left[k / AHEAD % BUFFERS][r][k % AHEAD]; }
    __device__ void after(int q, int k) {
        const int first = k + 1 + (BUFFERS - 1) * AHEAD;
        if ((k + 1) % AHEAD == 0 && first < NB) fetch(left[k / AHEAD % BUFFERS], q, first);
    }
};

// A panel in shared memory takes the streamed part as it comes.
template <class M>
struct Stream<M, 0, 0> {
    __device__ Stream(M, const Panel<0>&, Scalar*, int, int, int) {}
    __device__ void enter(int) {}
};

// The rows of U that a panel gives, one element a thread at a time, on their way to memory.
template <class M>
struct UpperRows {
    static constexpr int PARTS = (NB * NB + THREADS - 1) / THREADS;
    M lu;
    bool live;
    Scalar* top[PARTS];  // of the element's column; null where there is none

    __device__ UpperRows(M lu, int column, int width, int tid, bool live) : lu(lu), live(live) {
        UNROLL for (int s = 0; s < PARTS; ++s) {
            const int c = (tid + s * THREADS) / NB;
            top[s] = live && c < width && c < NB ? lu.at(0, column + c) : nullptr;
        }
    }
    // Rows q .. q + NB. Returns whether an element is not finite.
    __device__ bool store(const Scalar (*upper)[LINE], int q, int tid) const {
        bool bad = false;
        UNROLL for (int s = 0; s < PARTS; ++s) {
            if (top[s] != nullptr) {
                const int e = tid + s * THREADS;
                const Scalar u = upper[e % NB][e / NB];
                bad = bad || !is_finite(u);
                top[s][lu.row * (q + e % NB)] = u;
            }
        }
        return bad;
    }
};

// Makes the rows q .. q + NB of U, which `team.upper` has as the panel had them, and stores them: they are then final. `enter` is called meanwhile. Returns whether one
// of them is not finite.
template <class M, class F>
__device__ bool solve_upper(Team& team, const UpperRows<M>& rows, const Shared& shared, int q, int tid, F enter) {
    const int buffer = (q / NB) & 1, owner = q % THREADS / LANES;
    const Scalar (*diagonal)[LINE] = KEEPS_DIAGONAL ? shared.diagonal + q : team.diagonal;
    if (!KEEPS_DIAGONAL && rows.live && (ROWS_IN_ONE_WARP ? tid / LANES == owner : true)) {
        const int first = ROWS_IN_ONE_WARP ? tid % LANES : tid, step = ROWS_IN_ONE_WARP ? LANES : THREADS;
        UNROLL for (int e = first; e < NB * NB; e += step)
            if (e % NB > e / NB) team.diagonal[e / NB][e % NB] = *rows.lu.at(q + e % NB, q + e / NB);
    }
    enter();
    if (ROWS_IN_ONE_WARP) {
        if (tid / LANES == owner) {
            Lanes::sync();
            if (rows.live) solve_rows(team, diagonal, buffer, tid % LANES);
        }
    } else {
        team_sync();
        if (rows.live && tid < LANES) solve_rows(team, diagonal, buffer, tid);
    }
    team_sync();
    return rows.store(team.upper[buffer], q, tid);
}

// panel -= L[:, q .. q + NB] U[q .. q + NB, panel]. The panel's own copies of those rows of U are not used again. Returns whether one of them is not finite.
template <class P, class S, class M>
__device__ bool update_from_left(P& panel, Team& team, S& stream, const UpperRows<M>& rows, const Shared& shared, int q, int tid) {
    const int buffer = (q / NB) & 1;
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const Position place = panel.place(r, tid);
        if (place >= q && place < q + NB) {
            UNROLL for (int c = 0; c < NB; ++c) team.upper[buffer][place - q][c] = panel.at(r, c, tid);
        }
    }
    const bool bad = solve_upper(team, rows, shared, q, tid, [&] { stream.enter(q); });
    if constexpr (ROWS > 0) {
        // Whole warps above the block have nothing left to do, and teams that look on had nothing from the start.
        if (rows.live && (tid | (LANES - 1)) + (ROWS - 1) * THREADS >= q + NB) {
            UNROLL for (int k = 0; k < NB; ++k) {
                stream.before(q, k);
                Scalar left[ROWS > 0 ? ROWS : 1];
                UNROLL for (int r = 0; r < ROWS; ++r) left[r] = stream.at(r, q, k);
                UNROLL for (int c = 0; c < PACKS; ++c) {
                    Pack u = *reinterpret_cast<const Pack*>(&team.upper[buffer][k][c * Pack::LENGTH]);
                    UNROLL for (int s = 0; s < Pack::LENGTH; ++s) {
                        const int j = c * Pack::LENGTH + s;
                        UNROLL for (int r = 0; r < ROWS; ++r)
                            if (j < NB) panel.at(r, j, tid) = subtract_product(panel.at(r, j, tid), left[r], u.value[s]);
                    }
                }
                stream.after(q, k);
            }
        }
    } else {
        for (int r = 0; r < panel.rows(); ++r) {
            if (!panel.below(r, q, tid)) continue;
            Scalar left[NB];
            UNROLL for (int k = 0; k < NB; ++k) left[k] = *rows.lu.at(tid + r * THREADS, q + k);
            UNROLL for (int c = 0; c < NB; ++c) {
                Scalar x = panel.at(r, c, tid);
                UNROLL for (int k = 0; k < NB; ++k) x = subtract_product(x, left[k], team.upper[buffer][k][c]);
                panel.at(r, c, tid) = x;
            }
        }
    }
    return bad;
}
