// Block columns between memory and the panel.
#pragma once
#include "team.cuh"

// Every row at its place, and none where there is no matrix.
__device__ inline void place_rows(Panel<ROWS>& panel, int order, int tid, bool live) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        panel.place(r, tid) = live && i < order ? i : -1;
    }
}

// All rows of `width` columns from `column` on; row i comes from row `origin[i]` of the source.
template <class M>
__device__ void load_panel(Panel<ROWS>& panel, M from, const Position* origin, int column, int width, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        const bool there = panel.place(r, tid) >= 0;
        const int row = there ? (DELAYED ? origin[i] : i) : 0;
        UNROLL for (int c = 0; c < NB; ++c)
            panel.at(r, c, tid) = there && c < width ? *from.at(row, column + c) : zero<Scalar>();
    }
}

// Rows whose place is `top` or later, to their places. Returns whether an element is not finite.
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
