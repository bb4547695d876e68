// A window of which each warp holds some columns in its registers while panels on the left stream by: they are read from the chip once and written there once, and
// their place serves those panels meanwhile. By matrix instructions.
#pragma once
#include "lookahead.cuh"

#if BATCHLA_TENSOR

// The columns of a warp. Rows count as the matrix has them.
struct Held : Tile<OWN_HEIGHT / 8, OWN_COLUMNS / STEP> {
    static constexpr int GROUPS = OWN_HEIGHT / 8, TILES = OWN_COLUMNS / STEP;
    // Whether no row of groups M and M + 1 is beyond the matrix.
    static __device__ constexpr bool whole(int M) { return ORDER > NB && 8 * M + 16 <= ORDER; }

    __device__ Held(Resident a, int first, int end, int order, int lane) : Tile(a, a, 0, first, end, order, lane) {}

    // `f(x, below, j)`: of the lane's numbers in groups M and M + 1, which an instruction takes together, their parts, how far they are below its first row, and their column; as long as they
    // are in rows `from` .. `to`, whole panels.
    template <int M, class F>
    __device__ void for_two(int from, int to, F f) {
        constexpr int EIGHT = NB % 8 == 0 ? 8 : 1;
        UNROLL for (int n = 0; n < TILES; ++n) {
            if (j + n * STEP >= end) continue;
            UNROLL for (int m = M; m < M + 2; ++m) {
                const int panel = row / EIGHT * EIGHT + below(m) / EIGHT * EIGHT;
                if (panel < from || panel >= to) continue;
                UNROLL for (int e = 0; e < 2; e += PARTS) f(sum[n][m] + e, below(m), j + n * STEP + column_of(2 * column + e));
            }
        }
    }
    template <int M>
    __device__ void store_two(Resident to, int from, int end) {
        for_two<M>(from, end, [&](const Real* x, int below, int j) { UNROLL for (int part = 0; part < PARTS; ++part) *at(to, row, below, j, part) = x[part]; });
    }
    // All, from the chip.
    template <int M = 0>
    __device__ void load() {
        if (M == 0) clear();
        for_two<M>(0, order, [&](Real* x, int below, int j) { UNROLL for (int part = 0; part < PARTS; ++part) x[part] = *at(a, row, below, j, part); });
        if constexpr (M + 2 < GROUPS) load<M + 2>();
    }
    // Rows from `from` on, back there.
    template <int M = 0>
    __device__ void store(int from) {
        if (8 * M + 16 > from) store_two<M>(a, from, order);
        if constexpr (M + 2 < GROUPS) store<M + 2>(from);
    }
    // The rows of the panel at k, to the front.
    template <int From = 0, int To = GROUPS>
    __device__ void bring(Resident front, int k) {
        if constexpr (To - From == 2) {
            store_two<From>(front, k, k + NB);
        } else {
            constexpr int MIDDLE = (From + To) / 4 * 2;
            if (k < 8 * MIDDLE) {
                bring<From, MIDDLE>(front, k);
            } else {
                bring<MIDDLE, To>(front, k);
            }
        }
    }
    // Rows below the panel at k, less L's times the rows of U in front. Others, which nobody reads any more, may change, too.
    __device__ void subtract(Resident l, Resident front, int k) {
        if (j >= end) return;  // the warp has no columns
        const Tile<2, TILES> upper(front, l, 0, j, end, order, 4 * line + column);
        UNROLL for (int s = 0; s < NB; s += STEP) {
            Real right[TILES][2];
            UNROLL for (int half = 0; half < 2; ++half) upper.template load_right<true>(right, k + s, half);
            subtract_step(l, right, k + NB, k + s);
        }
    }
    template <int M = 0>
    __device__ void subtract_step(Resident l, const Real (&right)[TILES][2], int from, int k) {
        if (8 * M + 16 > from && (whole(M) || 8 * M < order)) {
            Real own_rows[2][2];
            UNROLL for (int half = 0; half < 2; ++half)
                UNROLL for (int m = 0; m < 2; ++m) {
                    const int under = whole(M) ? below(M + m) : min(below(M + m), order - 1 - row);  // rows beyond the matrix take its last
                    own_rows[m][half] = *at(l, row, under, own<true>(k, half), column % PARTS);
                }
            UNROLL for (int n = 0; n < TILES; ++n) multiply_add(sum[n][M], sum[n][M + 1], own_rows[0], own_rows[1], right[n]);
        }
        if constexpr (M + 2 < GROUPS) subtract_step<M + 2>(l, right, from, k);
    }
};

// Panels that take turns in the window's place, and how many are on their way while one is used.
constexpr int TURNS = WINDOW / NB, FLYING = TURNS > 2 ? 2 : 1;

// Columns of L as they have been written, on their way there, each row to where it stands.
struct Left {
    const Chip& chip;
    Output out;
    int window, n, tid, to[OWN_ROWS];

    __device__ Left(const Chip& chip, Output out, int window, int n, int tid) : chip(chip), out(out), window(window), n(n), tid(tid) {}

    // The panel at k, its columns under the numbers that they have in the matrix.
    __device__ Resident panel(int k) const { return {chip.matrix.at(0, k / NB % TURNS * NB - k), chip.matrix.stride}; }
    // Begins to copy the panel at k, if it is before the window: rows from k on. Panels come one after the other.
    __device__ void fetch(int k) {
        if (k < window) {
            if (k % WINDOW == 0)
                UNROLL for (int r = 0; r < OWN_ROWS; ++r) to[r] = chip.place_of(chip.past_origin(row_or_last(r, tid, n), k / WINDOW), TURNS - 1);
            const Resident a = panel(k);
            UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
                if (tid + r * CREW < k || !is_there(r, tid, n)) continue;
                Scalar* const target = a.at(to[r], k);
                const Scalar* source = out.at(tid + r * CREW, k);
                UNROLL for (int c = 0; c < NB; ++c, source += out.col) copy_by_lines(target + c * a.stride, source);
            }
        }
        commit_copies();
    }
};

// Columns `window` .. `end`, which are on their way to the chip, take the part of all that is on their left. Their rows of U are written then and, beside the last window, rows of L
// on the left, where they stand now. Where an element of U is not finite, neither is what is below it, which is looked at as it is written.
__device__ inline void catch_up_held(const Chip& chip, Output out, int window, int end, int n, int order, int tid) {
    static_assert(LANES % NB == 0, "whole columns of a panel");
    const int warp = crew_warp<true>(tid), lane = tid % LANES, first = window + warp * OWN_COLUMNS, last = min(first + OWN_COLUMNS, end);
    wait_copies<0>();
    crew_sync();
    Held own(chip.columns_from(window), first, end, order, lane);
    own.load();
    crew_sync();
    for (int i = n; i < order; ++i)
        for (int c = tid; c < WINDOW; c += CREW) *chip.matrix.at(i, c) = zero<Scalar>();  // of every panel, which brings no such rows
    Left left(chip, out, window, n, tid);
    UNROLL for (int s = 0; s < FLYING; ++s) left.fetch(s * NB);
    Scalar* target = out.at(lane % NB, first + lane / NB);
#pragma unroll 1
    for (int k = 0; k < window; k += NB) {
        const Resident front = {chip.panels.at(-k, warp * OWN_COLUMNS - first), chip.panels.stride}, panel = left.panel(k);
        own.bring(front, k);
        wait_copies<FLYING - 1>();
        crew_sync();
        left.fetch(k + FLYING * NB);
        for (int c = first + lane; c < last; c += LANES) {
            const Lower l = lower_of(panel, k);
            Scalar *column = front.at(k, c), y[NB];
            UNROLL for (int j = 0; j < NB; ++j) y[j] = column[j];
            solve_lower(y, l);
            UNROLL for (int j = 0; j < NB; ++j) column[j] = y[j];
        }
        Lanes::sync();
        own.subtract(panel, front, k);
        UNROLL for (int e = 0; e < NB * OWN_COLUMNS; e += LANES) {
            const int c = first + (e + lane) / NB;
            if (c >= min(last, n)) continue;
            store_once(target + e / NB * out.col, *front.at(k + lane % NB, c));
        }
        target += NB * out.row;
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            const int i = tid + r * CREW;
            if (end < order || i < k / WINDOW * WINDOW + WINDOW || i >= n) continue;
            UNROLL for (int c = 0; c < NB; ++c) *out.at(i, k + c) = *panel.at(i, k + c);
        }
        Lanes::sync();
    }
    crew_sync();
    own.store(window);
    crew_sync();
}

// Writes columns `window` .. `end` of a matrix, rows from `window` on, where they belong. Returns whether an element is not finite.
__device__ inline bool store_held(const Chip& chip, Output out, int window, int end, int n, int thread) {
    const Resident a = chip.columns_from(window);
    const int tid = opaque(thread);  // no address is kept from window to window
    u32 most = 0;
    const auto put = [&](Scalar* to, Scalar x) {
        UNROLL for (int part = 0; part < PARTS; ++part) most = max(most, upper_key(parts(&x)[part]));
        *to = x;
    };
    UNROLL for (int r = 0; BATCHLA_UNIT_ROWS_OUT && r < OWN_ROWS; ++r) {
        const int i = tid + r * CREW;
        if (i < window || !is_there(r, tid, n)) continue;
        const int origin = chip.origin[i];
        Scalar* to = out.at(i, window);
#pragma unroll 1
        for (int first = window; first < end; first += NB) {
            const Scalar* from = a.at(chip.row_in(i, origin, first, window), first);
            Scalar x[NB];
            UNROLL for (int c = 0; c < NB; ++c) x[c] = from[c * a.stride];
            UNROLL for (int c = 0; c < NB; ++c, to += out.col)
                if (first + c < end) put(to, x[c]);
        }
    }
    for (int j = window + tid; !BATCHLA_UNIT_ROWS_OUT && j < end; j += CREW)
        for (int i = window; i < n; ++i) put(out.at(i, j), *a.at(chip.row_in(i, chip.origin[i], j - (j - window) % NB, window), j));
    return most >= upper_key(Range<Real>::infinity());
}

// Brings rows of L from the last window on, on its left, to their places: `block` is the block column on chip that has them.
__device__ inline void settle_held(const Chip& chip, Output out, int window, int block, int n, int tid) {
    constexpr int DEEP = (WINDOW + LANES - 1) / LANES;
    const int first = window + tid % LANES;
    int to[DEEP];
    UNROLL for (int r = 0; r < DEEP; ++r) to[r] = chip.place_of(chip.past_origin(min(first + r * LANES, n - 1), window / WINDOW - 1), block);
#pragma unroll 1
    for (int k = tid / LANES * NB; k < window; k += CREW / LANES * NB) {
        Scalar x[DEEP][NB];
        UNROLL for (int r = 0; r < DEEP; ++r)
            UNROLL for (int c = 0; c < NB; ++c)
                if (first + r * LANES < n) x[r][c] = *out.at(first + r * LANES, k + c);
        Lanes::sync();
        UNROLL for (int r = 0; r < DEEP; ++r)
            UNROLL for (int c = 0; c < NB; ++c)
                if (first + r * LANES < n) store_once(out.at(to[r], k + c), x[r][c]);
    }
}

#else

__device__ void catch_up_held(const Chip&, Output, int, int, int, int, int);
__device__ bool store_held(const Chip&, Output, int, int, int, int);
__device__ void settle_held(const Chip&, Output, int, int, int, int);

#endif
