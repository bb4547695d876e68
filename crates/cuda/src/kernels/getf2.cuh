// LAPACK's getf2: factors the panel with partial pivoting, column by column.
#pragma once
#include "search.cuh"

// `width` columns from column `first` of the matrix on. No row moves: places change. Returns LAPACK's info so far.
template <class P>
__device__ u32 getf2(P& panel, Team& team, int first, int width, u32 info, int tid) {
    UNROLL for (int j = 0; j < NB; ++j) {
        if (j >= width) break;
        const int k = first + j;
#if BATCHLA_SEARCH_TREE
        const Candidate& pivot = search_by_tree(panel, team, j, k, tid);
#else
        const Candidate& pivot = search_by_warps(panel, team, j, k, tid);
#endif
        Scalar row[PACKS * Pack::LENGTH];
        UNROLL for (int c = j / Pack::LENGTH; c < PACKS; ++c)
            *reinterpret_cast<Pack*>(row + c * Pack::LENGTH) = *reinterpret_cast<const Pack*>(pivot.row + c * Pack::LENGTH);
        const Position chosen = pivot.place;
        const Divisor<Scalar> by = {row[j], pivot.reciprocal};
        const bool zero_pivot = is_zero(by.value);
        if (zero_pivot && info == 0) info = k + 1;
        if (tid == 0) team.moves.pivot[j] = chosen;
        UNROLL for (int r = 0; r < panel.rows(); ++r) {
            Position place = panel.place(r, tid);
            place = place == chosen ? k : place == k ? chosen : place;
            panel.place(r, tid) = place;
            // Below a zero pivot all is zero: nothing to divide.
            const bool below = place > k;
            Scalar multiplier = panel.at(r, j, tid);
            if (!zero_pivot) multiplier = by.into(multiplier);
            if (below) panel.at(r, j, tid) = multiplier;
            UNROLL for (int c = j + 1; c < NB; ++c) subtract_product_if(below, panel.at(r, c, tid), multiplier, row[c]);
        }
    }
    return info;
}
