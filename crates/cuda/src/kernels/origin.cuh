// Exchanges of rows, traced back.
#pragma once
#include "block.cuh"

// Whence the row has come that stands at place i when the exchanges of columns `begin` .. `end`, whole panels but for the last, have been made.
__device__ inline Position origin_of(Position i, const u32* pivots, int begin, int end) {
#pragma unroll 1
    for (int first = begin + (end - 1 - begin) / NB * NB; first >= begin; first -= NB) {
        Position pivot[NB];  // all are asked for before the first is used
        UNROLL for (int j = 0; j < NB; ++j) pivot[j] = first + j < end ? pivots[first + j] : first + j;
        UNROLL for (int j = NB - 1; j >= 0; --j) i = i == first + j ? pivot[j] : i == pivot[j] ? first + j : i;
    }
    return i;
}
