// Solves from the right with a triangle, by block columns: a row of the unknown is a thread's own, in registers; the triangle's
// block column is shared. Rows are independent, so nothing waits but for the shared block.
#pragma once
#include "block.cuh"
#include "warp.cuh"

constexpr int AHEAD = 8;  // elements of a row fetched before they are used

// `ROWS` rows of the unknown's block column, `step` apart from row `i` on.
struct Rows {
    Scalar element[ROWS][NB];

    // element -= x[r] * line, the same line of the triangle for all rows.
    __device__ void subtract(const Scalar (&x)[ROWS], const Scalar* line) {
        UNROLL for (int c = 0; c < PACKS; ++c) {
            const Pack t = *reinterpret_cast<const Pack*>(line + c * Pack::LENGTH);
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s) {
                const int column = c * Pack::LENGTH + s;
                if (column < NB)
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        element[r][column] = subtract_product(element[r][column], x[r], t.value[s]);
            }
        }
    }
};

// Lines `from` .. `to` of a triangle's block column, into shared memory. Columns beyond `width` are zero.
template <class M>
__device__ void share_lines(Scalar* shared, M triangle, int from, int to, int column, int width) {
    const int lines = to - from;
    __syncthreads();
    for (int c = 0; c < NB; ++c)
        for (int k = threadIdx.x; k < lines; k += blockDim.x)
            shared[k * LINE + c] = c < width ? *triangle.at(from + k, column + c) : zero<Scalar>();
    __syncthreads();
}

// One solved block column, line by line of the triangle from `from` on, subtracted from the rows. `solved(r, k)` gives element k of row r.
// Forward or backward: the order in which a sum is taken is part of the arithmetic.
template <bool Forward, class Solved>
__device__ void subtract_solved(Rows& rows, const Scalar* lines, int from, int begin, int end, Solved solved) {
    const int step = Forward ? 1 : -1;
    for (int done = 0; done < end - begin; done += AHEAD) {
        const int k = Forward ? begin + done : end - 1 - done;
        Scalar ahead[AHEAD][ROWS];
        UNROLL for (int s = 0; s < AHEAD; ++s)
            UNROLL for (int r = 0; r < ROWS; ++r)
                ahead[s][r] = done + s < end - begin ? solved(r, k + s * step) : zero<Scalar>();
        UNROLL for (int s = 0; s < AHEAD; ++s)
            if (done + s < end - begin) rows.subtract(ahead[s], lines + (k + s * step - from) * LINE);
    }
}
