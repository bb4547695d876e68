// LU with partial pivoting of a matrix on chip, after Crout: a panel takes its update from all columns on its left at once and is
// factored; its rows of U are then finished, and nothing else is touched. Sums are taken in the order of the left-looking kernels.
#pragma once
#include "getf2.cuh"
#include "resident.cuh"

// The panel whose first row is row `first`, minus L[rows, 0 .. first] U[0 .. first, panel].
__device__ inline void update_panel(Panel<ROWS>& panel, Resident a, int first, int width, int order, int tid) {
    Rows rows(a, first, order, tid);
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int c = 0; c < NB; ++c) rows.element[r][c] = panel.element[r][c];
    rows.subtract_above<false>(a, 0, first, width, 0);
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int c = 0; c < NB; ++c) panel.element[r][c] = rows.element[r][c];
}

// Notes which rows come to the panel's places, and where the rows that were there go.
__device__ inline void list_exchange(const Panel<ROWS>& panel, Moves& moves, int first, int width, int tid) {
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int i = first + tid + r * THREADS, to = panel.position[r];
        if (to >= 0 && to < first + width) moves.from[to - first] = i;
        if (to >= 0 && i < first + width) moves.to[i - first] = to;
    }
}

// The exchange of rows in the columns beside the panel: one column a thread.
__device__ inline void exchange_columns(Resident a, const Moves& moves, int first, int order, int tid) {
    if ((tid & ~(LANES - 1)) >= order - NB) return;
    int from[NB], to[NB];
    UNROLL for (int j = 0; j < NB; ++j) {
        from[j] = moves.from[j];
        to[j] = moves.to[j];
    }
    for (int t = tid; t < order - NB; t += THREADS) {
        Scalar* column = a.at(0, t < first ? t : t + NB);
        Pack* top = reinterpret_cast<Pack*>(column + first);
        Pack come[PACKS], gone[PACKS];
        UNROLL for (int j = 0; j < NB; ++j) come[j / Pack::LENGTH].value[j % Pack::LENGTH] = column[from[j]];
        UNROLL for (int p = 0; p < PACKS; ++p) gone[p] = top[p];
        UNROLL for (int j = 0; j < NB; ++j)
            if (to[j] >= first + NB) column[to[j]] = gone[j / Pack::LENGTH].value[j % Pack::LENGTH];
        UNROLL for (int p = 0; p < PACKS; ++p) top[p] = come[p];
    }
}

// The exchange in the columns on the left of a last panel of `width` columns: all its rows stay among themselves.
__device__ inline void exchange_last(Resident a, const Moves& moves, int first, int width, int tid) {
    for (int c = tid; c < first; c += THREADS) {
        Scalar come[NB];
        UNROLL for (int j = 0; j < NB; ++j)
            if (j < width) come[j] = *a.at(moves.from[j], c);
        UNROLL for (int j = 0; j < NB; ++j)
            if (j < width) *a.at(first + j, c) = come[j];
    }
}

// The same exchange in the list of origins, by one warp.
__device__ inline void trace_exchange(Position* origin, const Moves& moves, int first, int width, int tid) {
    if (tid >= LANES) return;
    constexpr int PARTS = (NB + LANES - 1) / LANES;
    Position come[PARTS], gone[PARTS];
    UNROLL for (int s = 0; s < PARTS; ++s) {
        const int j = tid + s * LANES;
        if (j < width) {
            come[s] = origin[moves.from[j]];
            gone[s] = origin[first + j];
        }
    }
    Lanes::sync();
    UNROLL for (int s = 0; s < PARTS; ++s) {
        const int j = tid + s * LANES;
        if (j < width) {
            if (moves.to[j] >= first + width) origin[moves.to[j]] = gone[s];
            origin[first + j] = come[s];
        }
    }
}

// The panel's rows of U behind it, which are then final: one column a thread. Returns whether an element is not finite.
__device__ inline bool finish_rows(Resident a, int first, int order, int tid) {
    bool bad = false;
    for (int c = first + NB + tid; c < order; c += THREADS) {
        Pack* top = a.pack(first, c);
        Pack y[PACKS];
        UNROLL for (int p = 0; p < PACKS; ++p) y[p] = top[p];
        const auto subtract = [&](const Scalar* l_k, Scalar u, int begin) {
            UNROLL for (int p = begin / Pack::LENGTH; p < PACKS; ++p) {
                const Pack l = *reinterpret_cast<const Pack*>(l_k + p * Pack::LENGTH);
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s)
                    if (p * Pack::LENGTH + s >= begin) y[p].value[s] = subtract_product(y[p].value[s], l.value[s], u);
            }
        };
        const Scalar* l = a.at(first, 0);
        const Pack* u = a.pack(0, c);
        for (int q = 0; q < first; q += NB, u += PACKS) {
            Pack above[PACKS];
            UNROLL for (int p = 0; p < PACKS; ++p) above[p] = u[p];
            UNROLL for (int k = 0; k < NB; ++k, l += a.stride) subtract(l, above[k / Pack::LENGTH].value[k % Pack::LENGTH], 0);
        }
        UNROLL for (int k = 0; k < NB - 1; ++k, l += a.stride)
            subtract(l, y[k / Pack::LENGTH].value[k % Pack::LENGTH], k + 1);
        UNROLL for (int p = 0; p < PACKS; ++p) {
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s) bad |= !is_finite(y[p].value[s]);
            top[p] = y[p];
        }
    }
    return bad;
}

// Leaves L and U on chip, rows where they belong. Returns LAPACK's info; `bad`: whether an element is not finite. Where
// there is no matrix (`live` does not hold), that of the identity.
__device__ inline u32 crout(Input in, const Chip& chip, Election& election, u32* pivots, bool traced, int order, bool& bad, int tid, bool live) {
    const Resident a = chip.matrix;
    Panel<ROWS> panel(nullptr, nullptr, order, tid);
    if (tid == 0) election.begin();
    if (live) fetch_columns(a, in, NB, order, tid);  // while the first panel is factored
    for (int i = tid; i < order; i += THREADS) {
        chip.origin[i] = i;
        for (int j = NB; !live && j < order; ++j) *a.at(i, j) = i == j ? one<Scalar>() : zero<Scalar>();
    }
    for (int first = 0; first < order; first += NB) {
        const int width = min(NB, order - first);
        // Warps below the last row have nothing to do.
        const bool works = first + (tid & ~(LANES - 1)) < order;
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const int i = first + tid + r * THREADS;
            panel.position[r] = i < order ? i : -1;
            const Scalar* own = a.at(i, first);
            UNROLL for (int c = 0; c < NB; ++c, own += a.stride) {
                const bool there = i < order && c < width;
                panel.element[r][c] = !there ? zero<Scalar>()
                                      : first > 0 ? *own
                                      : live ? *in.at(i, c)
                                      : i == c ? one<Scalar>() : zero<Scalar>();
            }
        }
        if (works && first > 0) update_panel(panel, a, first, width, order, tid);
        getf2(panel, election, first, width, works, tid);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            Scalar* to = a.at(panel.position[r], first);
            UNROLL for (int c = 0; c < NB; ++c, to += a.stride)
                if (panel.position[r] >= 0 && c < width) {
                    bad |= !is_finite(panel.element[r][c]);
                    *to = panel.element[r][c];
                }
        }
        list_exchange(panel, election.moves, first, width, tid);
        if (first == 0) wait_copies<0>();
        team_sync();
        for (int j = tid; live && j < width; j += THREADS) pivots[first + j] = election.moves.pivot[j];
        if (traced) trace_exchange(chip.origin, election.moves, first, width, tid);
        if (width == NB) {
            exchange_columns(a, election.moves, first, order, tid);
            team_sync();
            bad |= finish_rows(a, first, order, tid);
        } else {
            exchange_last(a, election.moves, first, width, tid);
        }
        team_sync();
    }
    bad = team_any(bad);
    return election.info();
}
