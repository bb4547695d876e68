// LAPACK's getf2: factors the panel with partial pivoting, column by column.
#pragma once
#include "search.cuh"

// Rows that were chosen are again what they were then.
template <class P>
__device__ inline void take_back(P& panel, Election& election, int first, int width, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int j = panel.place(r, tid) - first;
        const bool chosen = u32(j) < u32(width);
        // What lies before column j has not changed, nor was it posted.
        const Scalar* row = election.chosen(chosen ? j : 0, tid);
        UNROLL for (int p = 0; p < PACKS; ++p)
            if (chosen && p >= j / Pack::LENGTH) {
                const Pack x = *reinterpret_cast<const Pack*>(row + p * Pack::LENGTH);
                UNROLL for (int c = p * Pack::LENGTH; c < min((p + 1) * Pack::LENGTH, NB); ++c) panel.at(r, c, tid) = x.value[c % Pack::LENGTH];
            }
    }
}

// `width` columns from column `first` of the matrix on. No row moves: places change. A warp without rows from `first` on need not work.
template <class P, class E>
__device__ void getf2(P& panel, E& election, int first, int width, bool works, int tid) {
    UNROLL for (int j = 0; j < NB; ++j) {
        if (j >= width) break;
        const int k = first + j;
#if BATCHLA_SEARCH_TREE
        const Choice choice = search_by_tree(panel, election, j, k, tid);
#else
        const Choice choice = search_by_warps(panel, election, j, k, works, tid);
#endif
        Candidate& pivot = choice.candidate;
        const Pair told = pivot.told();
        const Position chosen = carried(told.value[1]);
        if (tid == 0) election.moves.pivot[j] = chosen;
        if (!works) continue;

        Scalar row[PACKS * Pack::LENGTH];
        UNROLL for (int c = j / Pack::LENGTH; c < PACKS; ++c)
            *reinterpret_cast<Pack*>(row + c * Pack::LENGTH) = *reinterpret_cast<const Pack*>(pivot.row + c * Pack::LENGTH);
        const Divisor<Scalar> by = {row[j], told.value[0]};
        if (!ALL_KEPT) post_row(panel, election.chosen(j, tid), chosen, j, tid);
        UNROLL for (int r = 0; r < panel.rows(); ++r) {
            const Position place = panel.place(r, tid);
            panel.place(r, tid) = place == chosen ? k : place == k ? chosen : place;
        }
        // Rows that were chosen go on with the others, and take back at the end what they were.
        if (choice.safe()) {
            UNROLL for (int r = 0; r < panel.rows(); ++r) panel.at(r, j, tid) = by.by_reciprocal(panel.at(r, j, tid));
        } else if (!is_zero(by.value)) {
            // Below a zero pivot all is zero: nothing to divide.
            UNROLL for (int r = 0; r < panel.rows(); ++r)
                if (panel.place(r, tid) > k) panel.at(r, j, tid) = divide(panel.at(r, j, tid), by.value);
        }
        UNROLL for (int r = 0; r < panel.rows(); ++r)
            UNROLL for (int c = j + 1; c < NB; ++c)
                panel.at(r, c, tid) = subtract_product(panel.at(r, c, tid), panel.at(r, j, tid), row[c]);
    }
    take_back(panel, election, first, width, tid);
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int j = panel.place(r, tid) - first;
        if (u32(j) < u32(width) && is_zero(election.chosen(j, tid)[j])) atomicMin(&election.zero, u32(first + j));
    }
}

// `Width` columns, a whole panel, by one warp or less, without branches that differ, where all goes as it mostly does: no two elements tie for a pivot, as far as the upper halves of
// their keys or their quotients tell, and all pivots may be divided by through their reciprocals. Returns false where one does not: the panel is then spoilt. Of rows beyond the matrix, which
// are zero left of their diagonal, none has such a pivot too early. `Alone`: the panel is all of the matrix; `ByPlace`: at each column a row is asked for its place, whether it may be chosen.
template <int Width, bool Alone, bool ByPlace, int Rows>
__device__ bool getf2_plain(Panel<Rows>& panel, Election& election, int first, int tid) {
    UNROLL for (int r = 0; r < Rows; ++r) panel.place(r, tid) -= first;  // compared with constants
    // Rows so long, or of a panel that is alone so short, that to branch is faster than to store none of them; as measured.
    constexpr bool LONG = Rows > 1 && PACKS > 8, SHORT = Alone && Rows == 1 && PACKS <= 8 && NB <= 16;
    // Numbers of a pack, of a row, and of what is told of it: the reciprocal, and in the first number after that a place.
    constexpr int PACK = 16 / sizeof(Real), ROW = PACKS * PACK, TOLD = sizeof(Pair) <= 16 ? sizeof(Pair) / sizeof(Real) : 3;
    constexpr u32 LEAST = Range<Real>::LEAST_KEY - 1, MOST = Range<Real>::MOST_KEY - 1;
    // A real number that is as large as the pivot, or by its lower half larger, has a quotient of one or more.
    constexpr bool BY_QUOTIENTS = !ByPlace && !Number<Scalar>::COMPLEX;
    u32 ties = 0, quotient = 0, furthest = 0;  // the largest quotient; above LEAST, or around it
    u32 open[Rows];                            // all bits of rows that may be chosen, none of others
    UNROLL for (int r = 0; r < Rows; ++r) open[r] = panel.place(r, tid) >= 0 ? ~0u : 0;
    UNROLL for (int j = 0; j < Width; ++j) {
        u32 own = 0;
        int which = 0;  // of this thread's rows, and whether two are as good
        bool tie = false;
        Scalar best = panel.at(0, j, tid);
        UNROLL for (int r = 0; r < Rows; ++r) {
            // To compute the size once, for both, made other code of complex kernels, and up to 4 % slower ones.
            const u32 key = !ByPlace ? (upper_key(panel.at(r, j, tid)) - 1) & open[r] : panel.place(r, tid) >= j ? upper_key(panel.at(r, j, tid)) - 1 : 0;
            if (r > 0) {
                if (!BY_QUOTIENTS) tie = key > own ? false : tie | (key == own);
                best = key > own ? panel.at(r, j, tid) : best;
                which = key > own ? r : which;
            }
            own = max(own, key);
        }
        const u32 most = Lanes::largest(own);
        const Scalar inverse = reciprocal(best);  // before it is known whose is wanted: the division overlaps the search
        const u32 those = Lanes::ballot(own == most);
        const bool mine = own == most && (those & ((1u << tid) - 1)) == 0;
        if (!BY_QUOTIENTS) ties |= (those & (those - 1)) | u32(mine & tie);
        furthest = max(furthest, most - LEAST);
        Candidate& candidate = election.candidates(j)[0];
        if (SHORT) {
            if (mine) {
                post_row(panel, candidate.row, panel.place(0, tid), j, tid);
                candidate.tell(inverse, panel.place(0, tid));
            }
        } else {
            Position place = panel.place(0, tid);
            UNROLL for (int r = 0; r < Rows; ++r) {
                const bool chosen = mine & (which == r);
                if (!ByPlace) open[r] = chosen ? 0 : open[r];
                place = which == r ? panel.place(r, tid) : place;
                if (LONG && !chosen) continue;
                store_if<ROW>(chosen, j / Pack::LENGTH * PACK, parts(candidate.row), parts(&panel.at(r, 0, tid)));
            }
            const Pair tells = {{inverse, carrying<Scalar>(place)}};
            store_if<TOLD>(mine, 0, parts(candidate.told().value), parts(tells.value));
        }
        Lanes::sync();
        Scalar row[PACKS * Pack::LENGTH];
        UNROLL for (int p = j / Pack::LENGTH; p < PACKS; ++p)
            *reinterpret_cast<Pack*>(row + p * Pack::LENGTH) = *reinterpret_cast<const Pack*>(candidate.row + p * Pack::LENGTH);
        const Pair told = candidate.told();
        const Divisor<Scalar> by = {row[j], told.value[0]};
        const Position chosen = carried(told.value[1]);
        UNROLL for (int r = 0; r < Rows; ++r) {
            const Position place = panel.place(r, tid);
            panel.place(r, tid) = place == chosen ? j : place == j ? chosen : place;
            const Scalar l = by.by_reciprocal(panel.at(r, j, tid));
            panel.at(r, j, tid) = l;
            if (BY_QUOTIENTS) quotient = max(quotient, (upper_key(l) - 1) & open[r]);
            UNROLL for (int c = j + 1; c < Width; ++c) panel.at(r, c, tid) = subtract_product(panel.at(r, c, tid), l, row[c]);
        }
    }
    UNROLL for (int r = 0; r < Rows; ++r) panel.place(r, tid) += first;
    if (BY_QUOTIENTS) ties = quotient >= upper_key(Real(1)) - 1;
    if (Warp::any(ties != 0 || furthest >= MOST - LEAST)) return false;  // all teams of a warp go the same way
    take_back(panel, election, first, Width, tid);
    return true;
}
