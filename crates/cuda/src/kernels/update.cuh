// The update from the left: one factored block column, streamed once, takes its part out of the panel.
#pragma once
#include "search.cuh"

// Solves with the unit lower triangle of block `q`: rows q .. q + NB of the panel become rows of U. One column a lane.
__device__ inline void solve_rows(Team& team, int buffer, int lane) {
    if (lane < NB) {
        Scalar y[NB];
        UNROLL for (int k = 0; k < NB; ++k) y[k] = team.upper[buffer][k][lane];
        UNROLL for (int k = 0; k < NB - 1; ++k) {
            UNROLL for (int i = (k + 1) / Pack::LENGTH; i < PACKS; ++i) {
                Pack l = *reinterpret_cast<const Pack*>(&team.diagonal[k][i * Pack::LENGTH]);
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s)
                    if (i * Pack::LENGTH + s > k && i * Pack::LENGTH + s < NB)
                        y[i * Pack::LENGTH + s] = subtract_product(y[i * Pack::LENGTH + s], l.value[s], y[k]);
            }
        }
        UNROLL for (int k = 1; k < NB; ++k) team.upper[buffer][k][lane] = y[k];
    }
}

// Columns of the streamed part that are fetched at a time; two such fetches are under way, or one that is all of it.
constexpr int AHEAD = BATCHLA_AHEAD;
constexpr int BUFFERS = AHEAD < NB ? 2 : 1;

// The next columns of block `q`, from its column `first` on, of the rows below it.
template <class M>
__device__ void fetch_columns(Scalar (&left)[ROWS > 0 ? ROWS : 1][AHEAD], M lu, int rows, int q, int first, int tid) {
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int i = tid + r * THREADS;
        const bool below = i >= q + NB && i < rows;
        UNROLL for (int k = 0; k < AHEAD; ++k)
            left[r][k] = below && first + k < NB ? *lu.at(i, q + first + k) : zero<Scalar>();
    }
}

// panel -= L[:, q .. q + NB] U[q .. q + NB, panel]. Stores those rows of U (columns `column` .. `column + width`), which are then
// final; the panel's own copies of them are not used again. Returns whether one of them is not finite.
template <class P, class M>
__device__ bool update_from_left(P& panel, Team& team, M lu, int order, int q, int column, int width, int tid, bool live) {
    const int buffer = (q / NB) & 1;
    // A team that looks on reads nothing of a matrix that another team writes.
    const bool looks_on = TEAMS > 1 && !live;
    const int rows = looks_on ? 0 : order;
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        if (i >= q && i < q + NB) {
            UNROLL for (int c = 0; c < NB; ++c) team.upper[buffer][i - q][c] = panel.at(r, c, tid);
        }
    }
    const int owner = q % THREADS / LANES;
    if (ROWS_IN_ONE_WARP ? tid / LANES == owner : true) {
        const int first = ROWS_IN_ONE_WARP ? tid % LANES : tid, step = ROWS_IN_ONE_WARP ? LANES : THREADS;
        UNROLL for (int e = first; e < NB * NB; e += step)
            if (e % NB > e / NB) team.diagonal[e / NB][e % NB] = looks_on ? zero<Scalar>() : *lu.at(q + e % NB, q + e / NB);
    }
    // The streamed part: its first columns are fetched while the rows of U are made.
    Scalar left[BUFFERS][ROWS > 0 ? ROWS : 1][AHEAD];
    if constexpr (ROWS > 0) {
        UNROLL for (int part = 0; part < BUFFERS; ++part) fetch_columns(left[part], lu, rows, q, part * AHEAD, tid);
    }
    if (ROWS_IN_ONE_WARP) {
        if (tid / LANES == owner) {
            Lanes::sync();
            solve_rows(team, buffer, tid % LANES);
        }
    } else {
        team_sync();
        if (tid < LANES) solve_rows(team, buffer, tid);
    }
    team_sync();

    bool bad = false;
    for (int e = tid; e < NB * NB; e += THREADS) {
        if (live && e / NB < width) {
            Scalar u = team.upper[buffer][e % NB][e / NB];
            bad = bad || !is_finite(u);
            *lu.at(q + e % NB, column + e / NB) = u;
        }
    }
    if (ROWS > 0) {
        // Whole warps above the block have nothing left to do.
        if ((tid | (LANES - 1)) + (ROWS - 1) * THREADS >= q + NB) {
            UNROLL for (int k = 0; k < NB; ++k) {
                UNROLL for (int c = 0; c < PACKS; ++c) {
                    Pack u = *reinterpret_cast<const Pack*>(&team.upper[buffer][k][c * Pack::LENGTH]);
                    UNROLL for (int s = 0; s < Pack::LENGTH; ++s) {
                        const int j = c * Pack::LENGTH + s;
                        UNROLL for (int r = 0; r < panel.rows(); ++r)
                            if (j < NB)
                                panel.at(r, j, tid) =
                                    subtract_product(panel.at(r, j, tid), left[k / AHEAD % BUFFERS][r][k % AHEAD], u.value[s]);
                    }
                }
                if constexpr (ROWS > 0) {
                    const int next = k + 1 + (BUFFERS - 1) * AHEAD;
                    if ((k + 1) % AHEAD == 0 && next < NB) fetch_columns(left[k / AHEAD % BUFFERS], lu, rows, q, next, tid);
                }
            }
        }
    } else {
        for (int r = 0; r < panel.rows(); ++r) {
            const int i = tid + r * THREADS;
            if (i < q + NB || i >= order) continue;
            Scalar row[NB];
            UNROLL for (int k = 0; k < NB; ++k) row[k] = *lu.at(i, q + k);
            UNROLL for (int c = 0; c < NB; ++c) {
                Scalar x = panel.at(r, c, tid);
                UNROLL for (int k = 0; k < NB; ++k) x = subtract_product(x, row[k], team.upper[buffer][k][c]);
                panel.at(r, c, tid) = x;
            }
        }
    }
    return bad;
}
