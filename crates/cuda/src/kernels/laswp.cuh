// Interchange of rows in the columns beside the panel.
#pragma once
#include "columns.cuh"

// A row that goes elsewhere; in which order they are listed does not matter.
__device__ inline void list_move(Moves& moves, Position from, Position to) {
    const int at = atomicAdd(&moves.count, 1);
    moves.from[at] = from;
    moves.to[at] = to;
}

// Lists the rows that the panel's exchanges move, at most two a column.
template <class P>
__device__ void list_moves(P& panel, Moves& moves, int first, int tid) {
    if (tid == 0) moves.count = 0;
    team_sync();
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const int i = tid + r * THREADS;
        if (i >= first && panel.place(r, tid) >= 0 && panel.place(r, tid) != i) list_move(moves, i, panel.place(r, tid));
    }
    team_sync();
}

// Warp-grouped: a group of lanes takes a column and does all its moves at once; no lane strides across columns and no
// barrier is needed. Columns `begin` .. `end`.
template <class M>
__device__ void interchange_grouped(const Moves& moves, M lu, int begin, int end, int tid) {
    constexpr int PARTS = (2 * NB + LANES - 1) / LANES;
    constexpr int AT_ONCE = 4;  // columns in flight
    const int lane = tid % LANES, count = moves.count;
    int from[PARTS], to[PARTS];
    UNROLL for (int s = 0; s < PARTS; ++s) {
        const bool there = lane + s * LANES < count;
        from[s] = there ? moves.from[lane + s * LANES] : -1;
        to[s] = there ? moves.to[lane + s * LANES] : -1;
    }
    for (int c = begin + tid / LANES * AT_ONCE; c < end; c += WARPS * AT_ONCE) {
        Scalar x[AT_ONCE][PARTS];
        UNROLL for (int d = 0; d < AT_ONCE; ++d)
            UNROLL for (int s = 0; s < PARTS; ++s)
                if (from[s] >= 0 && c + d < end) x[d][s] = *lu.at(from[s], c + d);
        Lanes::sync();
        UNROLL for (int d = 0; d < AT_ONCE; ++d)
            UNROLL for (int s = 0; s < PARTS; ++s)
                if (from[s] >= 0 && c + d < end) *lu.at(to[s], c + d) = x[d][s];
    }
}

// One exchange after another, a thread a column: the paper's first version, to compare with.
template <class M>
__device__ void interchange_serial(const Moves& moves, M lu, int first, int width, int begin, int end, int tid) {
    for (int j = 0; j < width; ++j) {
        const int k = first + j, p = moves.pivot[j];
        for (int c = begin + tid; p != k && c < end; c += THREADS) {
            Scalar x = *lu.at(k, c);
            *lu.at(k, c) = *lu.at(p, c);
            *lu.at(p, c) = x;
        }
    }
}

__device__ inline void interchange(const Moves& moves, Output lu, int first, int width, int begin, int end, int tid, bool live) {
    if (INTERCHANGE == 1) {
        interchange_serial(moves, lu, first, width, begin, live ? end : begin, tid);
    } else {
        interchange_grouped(moves, lu, begin, end, tid);
    }
}
