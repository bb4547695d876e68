// LU of block columns: load, update, factor, store, interchange.
//
// Left-looking (Liu et al. 2023, algorithm 9): a panel is loaded with the interchanges of earlier panels applied, takes its
// update from every factored block column on its left, is factored, and stored; then the columns on the left are
// interchanged. Right-looking (algorithm 8), to compare with: a factored panel updates all block columns on its right.
#pragma once
#include "columns.cuh"
#include "getf2.cuh"
#include "laswp.cuh"
#if BATCHLA_TENSOR
#include "fragments.cuh"
#else
#include "update.cuh"
#endif

// Rows are at their places; where nothing is delayed, the matrix is copied, to be worked on in the copy.
__device__ inline void begin_factor(Input a, Output lu, Team& team, Position* origin, int order, int tid, bool live) {
    // A team that looks on takes pivot rows that nobody posts.
    constexpr int WIDTH = PACKS * Pack::LENGTH;
    for (int e = tid; !live && e < NB * WIDTH; e += THREADS) team.chosen(e / WIDTH, tid)[e % WIDTH] = zero<Scalar>();
    for (int i = tid; i < order; i += THREADS) {
        origin[i] = i;
        for (int j = 0; !DELAYED && live && j < order; ++j) *lu.at(i, j) = *a.at(i, j);
    }
    team_sync();
}

// Block columns between `begin` and `end`, a range that is all of them unless LU goes by steps: then `info` is what earlier ones came to,
// and what lies beside the range is left to others. Returns LAPACK's info; `bad`: whether an element is not finite.
__device__ inline u32 factor(Input a, Output lu, Team& team, Panel<ROWS>& panel, const Shared& shared, u32* pivots, int order,
                             int begin, int end, u32 info, bool& bad, bool wants_rows, int tid, bool live) {
    if (tid == 0) team.begin();
    Position* origin = shared.origin;
#if BATCHLA_TENSOR
    Fragments::clear(shared.ring, tid);
#endif
    const bool one_panel = begin + NB >= end;
    for (int first = begin; first < end; first += NB) {
        const int width = min(NB, end - first);
        place_rows(panel, order, tid, live);
#if BATCHLA_TENSOR
        Fragments part(lu, shared.ring, first, order, tid);
        part.load(a, origin, first, width);
        const UpperRows<Output> rows(lu, first, width, tid, live);
        for (int q = 0; q < first; q += NB) bad |= part.update(team, rows, shared, q);
        part.give(panel);
#else
        Stream<Output, ROWS, STAGES> stream(lu, panel, shared.ring, 0, RIGHT_LOOKING ? 0 : first, tid);
        if (DELAYED) {
            load_panel(panel, a, origin, first, width, tid);
        } else {
            load_panel(panel, lu, origin, first, width, tid);
        }
        const UpperRows<Output> rows(lu, first, width, tid, live);
        for (int q = 0; !RIGHT_LOOKING && q < first; q += NB) bad |= update_from_left(panel, team, stream, rows, shared, q, tid);
#endif
        const bool works = ROWS == 0 || (tid | (LANES - 1)) + (ROWS - 1) * THREADS >= first;
        getf2(panel, team, first, width, works, tid);
        bad |= store_panel(panel, lu, first, first, width, tid);
        if (KEEPS_DIAGONAL) {
            UNROLL for (int r = 0; r < panel.rows(); ++r) {
                const Position place = panel.place(r, tid);
                if (place >= first && place < first + width)
                    UNROLL for (int c = 0; c < NB; ++c) shared.diagonal[first + c][place - first] = panel.at(r, c, tid);
            }
        }
        // Nothing lies beside a panel that is the only one.
        const bool done = one_panel && !wants_rows;
        if (done) {
            team_sync();
        } else {
            list_moves(panel, team.moves, first, tid);
        }
        for (int j = tid; live && j < width; j += THREADS) pivots[first + j] = team.moves.pivot[j];
        if (done) break;

        const bool traced = DELAYED || wants_rows;
        // The moves of `origin`, read before they are written.
        int moved[(2 * NB + THREADS - 1) / THREADS];
        UNROLL for (int s = 0; s * THREADS < 2 * NB; ++s)
            if (traced && tid + s * THREADS < team.moves.count) moved[s] = origin[team.moves.from[tid + s * THREADS]];
        interchange(team.moves, lu, first, width, begin, first, tid, live);
        if (!DELAYED) interchange(team.moves, lu, first, width, first + width, end, tid, live);
        team_sync();
        UNROLL for (int s = 0; s * THREADS < 2 * NB; ++s)
            if (traced && tid + s * THREADS < team.moves.count) origin[team.moves.to[tid + s * THREADS]] = moved[s];
        team_sync();

        for (int column = first + NB; RIGHT_LOOKING && column < end; column += NB) {
            const int columns = min(NB, end - column);
            place_rows(panel, order, tid, live);
            Stream<Output, ROWS, STAGES> left(lu, panel, shared.ring, first, first + NB, tid);
            load_panel(panel, lu, origin, column, columns, tid);
            bad |= update_from_left(panel, team, left, UpperRows<Output>(lu, column, columns, tid, live), shared, first, tid);
            bad |= store_panel(panel, lu, first + NB, column, columns, tid);
            team_sync();
        }
    }
    team_sync();
    bad = team_any(bad);
    return info != 0 ? info : team.info();
}
