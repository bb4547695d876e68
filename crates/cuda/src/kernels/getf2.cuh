// LAPACK's getf2: factors the panel with partial pivoting, column by column.
#pragma once
#include "search.cuh"

// `width` columns from column `first` of the matrix on. No row moves: places change. A warp without rows from `first` on need not work.
template <class P>
__device__ void getf2(P& panel, Election& election, int first, int width, bool works, int tid) {
    UNROLL for (int j = 0; j < NB; ++j) {
        if (j >= width) break;
        const int k = first + j;
#if BATCHLA_SEARCH_TREE
        const Choice choice = search_by_tree(panel, election, j, k, tid);
#else
        const Choice choice = search_by_warps(panel, election, j, k, works, tid);
#endif
        const Candidate& pivot = choice.candidate;
        const Position chosen = pivot.place;
        if (tid == 0) election.moves.pivot[j] = chosen;
        if (!works) continue;

        Scalar row[PACKS * Pack::LENGTH];
        UNROLL for (int c = j / Pack::LENGTH; c < PACKS; ++c)
            *reinterpret_cast<Pack*>(row + c * Pack::LENGTH) = *reinterpret_cast<const Pack*>(pivot.row + c * Pack::LENGTH);
        const Divisor<Scalar> by = {row[j], pivot.reciprocal};
        if (!ALL_KEPT) post_row(panel, election.chosen(j, tid), chosen, tid);
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
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int j = panel.place(r, tid) - first;
        if (j >= 0 && j < width) {
            const Scalar* row = election.chosen(j, tid);
            UNROLL for (int c = 0; c < NB; ++c) panel.at(r, c, tid) = row[c];
            if (is_zero(row[j])) atomicMin(&election.zero, u32(first + j));
        }
    }
}
