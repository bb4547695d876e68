// LU by windows: of a matrix that the chip has no room for, some columns at a time, from the left to the right. Those of a window are read, take
// what all on their left has for them, panel by panel, are factored on chip, and written. Rows of L on the left stay until the end where they stood when their
// window was done, or until the last window has had its part of them.
#pragma once
#include "held.cuh"

constexpr int CREW_WARPS = CREW / LANES;
// Columns that a warp brings up to date at a time: a power of two.
constexpr int SHARE = WINDOW <= 8 * CREW_WARPS ? 8 : WINDOW <= 16 * CREW_WARPS ? 16 : 32;

// The block column that stands last in places on chip when columns `window` .. `end` have been factored.
__device__ inline int last_block(int window, int end) { return (end - 1 - window) / NB; }

// Begins to copy columns `window` .. `end`, each row to where it stands.
__device__ inline void fetch_window(const Chip& chip, Input in, int window, int end, int n, int order, int thread) {
    const int tid = opaque(thread);  // no address is kept from window to window
    const Resident a = chip.columns_from(window);
    int to[OWN_ROWS];
    UNROLL for (int r = 0; r < OWN_ROWS; ++r) to[r] = chip.place_of(row_or_last(r, tid, n), WINDOW / NB - 1);
#pragma unroll 1
    for (int j = window; j < min(end, n); ++j)
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            if (is_there(r, tid, n)) copy<ONCE>(a.at(to[r], j), in.at(tid + r * CREW, j));
        }
    commit_copies();
    fill_beyond(a, window, end, n, order, Share<CREW>{tid, 0, 1});
}

// The panel at column k among those that take turns in `slots` places on chip, its columns under the numbers that they have in the matrix.
__device__ inline Resident slot(Resident first, int slots, int k) { return {first.at(0, k / NB % slots * NB - k), first.stride}; }

// Begins to copy columns k .. k + NB of L, as they have been written, to `to`: rows from `from` on, each to where it stands in block column `block` on chip.
__device__ inline void fetch_left(const Chip& chip, Resident to, Output out, int k, int from, int block, int n, int tid) {
    const auto wanted = [&](int r) { return tid + r * CREW >= from && is_there(r, tid, n); };
    UNROLL for (int top = 0; top < OWN_ROWS; top += ABREAST) {
        if (ABREAST == 1 && !wanted(top)) continue;
        Scalar* target[ABREAST];
        UNROLL for (int r = 0; r < ABREAST; ++r) target[r] = to.at(chip.place_of(chip.past_origin(row_or_last(top + r, tid, n), k / WINDOW), block), k);
        const Scalar* source = out.at(tid + top * CREW, k);
        UNROLL for (int c = 0; c < NB; ++c, source += out.col)
            UNROLL for (int r = 0; r < ABREAST; ++r)
                if (ABREAST == 1 || wanted(top + r)) copy_by_lines(target[r] + c * to.stride, source + r * CREW * out.row);
    }
    commit_copies();
}

// Columns `window` .. `end` take the part of all that is on their left.
__device__ inline void catch_up(const Chip& chip, Output out, int window, int end, int n, int order, int tid) {
    const Resident a = chip.columns_from(window);
    const int warp = crew_warp<TENSOR>(tid), lane = tid % LANES;
    const auto fetch = [&](int k) { fetch_left(chip, slot(chip.panels, 2, k), out, k, k, WINDOW / NB - 1, n, tid); };
    fetch(0);
    for (int k = 0; k < window; k += NB) {
        wait_copies<0>();
        crew_sync();
        if (k + NB < window) fetch(k + NB);
        const Resident left = slot(chip.panels, 2, k);
        for (int c = window + warp * SHARE; c < end; c += CREW_WARPS * SHARE) {
            if (lane < SHARE && c + lane < end) {
                const Lower l = lower_of(left, k);
                Scalar *column = a.at(k, c + lane), y[NB];
                UNROLL for (int j = 0; j < NB; ++j) y[j] = column[j];
                solve_lower(y, l);
                UNROLL for (int j = 0; j < NB; ++j) column[j] = y[j];
            }
            Lanes::sync();
            update_columns<SHARE>(a, left, k + NB, k, c, min(c + SHARE, end), order, lane);
        }
    }
    crew_sync();
}

// Brings rows of L on the left of the last window to their places, by way of the chip, of which the panels take turns in all: some are on their way there while one is written.
__device__ inline void settle_windows(const Chip& chip, Output out, int window, int n, int order, int tid) {
    // Beside panels on their way there are the one that is written and the one before it, which others may still read.
    constexpr int SLOTS = WINDOW / NB + 2, AHEAD = SLOTS < 5 ? SLOTS - 2 : 3;
    const int block = last_block(window, order);
    // The first row that later windows may have moved.
    const auto from = [](int k) { return k / WINDOW * WINDOW + WINDOW; };
#pragma unroll 1
    for (int next = 0; next < window + AHEAD * NB; next += NB) {
        if (next < window) {
            fetch_left(chip, slot(chip.matrix, SLOTS, next), out, next, from(next), block, n, tid);
        } else {
            commit_copies();
        }
        const int k = next - AHEAD * NB;
        if (k < 0) continue;
        wait_copies<AHEAD>();
        crew_sync();
        const Resident panel = slot(chip.matrix, SLOTS, k);
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            const int i = tid + r * CREW;
            if (i < from(k) || i >= n) continue;
            UNROLL for (int c = 0; c < NB; ++c) store_once(out.at(i, k + c), *panel.at(i, k + c));
        }
    }
}

// All of LU. Returns whether an element is not finite.
__device__ inline bool getrf_by_windows(Input in, Output out, const Chip& chip, Shared& shared, int n, int order, int tid) {
    for (int e = tid; !HOLDS && e < 2 * NB; e += CREW)
        for (int i = n; i < order; ++i) *chip.panels.at(i, e) = zero<Scalar>();
    const int kept = PADDED ? order : n;  // of the factors, that is written
    bool bad = false;
    int window = 0;
#pragma unroll 1
    for (; window < order; window += WINDOW) {
        const int end = min(window + WINDOW, order);
        if (window == 0) {
            begin_columns(in, chip, shared, end, n, order, tid, true);
        } else {
            for (int i = tid; i < order; i += CREW) chip.past_origin(i, window / WINDOW - 1) = chip.origin[i];
            crew_sync();
            fetch_window(chip, in, window, end, n, order, tid);
            if constexpr (HOLDS) {
                catch_up_held(chip, out, window, end, kept, order, tid);
            } else {
                catch_up(chip, out, window, end, kept, order, tid);
            }
        }
        factor_columns(chip, shared, window, end, n, order, tid);
        // What comes from the left asks in the last block column where rows stand: rows of U, too.
        for (int i = tid; i < end - NB; i += CREW) chip.place_of(chip.origin[i], last_block(window, end)) = i;
        if constexpr (HOLDS) {
            bad |= store_held(chip, out, window, min(end, kept), kept, tid);
        } else {
            bad |= store(chip, out, window, min(end, kept), kept, tid);
        }
    }
    crew_sync();
    if constexpr (HOLDS) {
        settle_held(chip, out, window - WINDOW, last_block(window - WINDOW, order), kept, tid);
    } else {
        settle_windows(chip, out, window - WINDOW, kept, order, tid);
    }
    return bad;
}
