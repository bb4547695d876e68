// A^-1 from A = P L U (Liu et al. 2023): X U = I gives U^-1, then X L = U^-1 gives the inverse but for the order of its columns.
//
// An element of U^-1 comes last to the sum of its products: where elements grow, each of these may be lost beside it.
//
// Delayed correction (algorithms 11 and 13): a block column takes its correction from all solved ones just before it is solved itself.
// Timely correction (10 and 12), to compare with: a solved one at once corrects all that remain. Each routine does block columns
// `begin` .. `end`: all of them in one launch (static resources), or one a launch with just the threads and shared memory that it needs
// (dynamic). `lines` of the triangle fit into shared memory at a time.
#include "triangle.cuh"

constexpr bool TIMELY = BATCHLA_TIMELY;

typedef MatrixAt<false> Factors;  // read once a block column, from wherever they lie
typedef MatrixAt<BATCHLA_UNIT_ROWS_OUT> Output;
typedef MatrixAt<true> Columns;

// Solves with U: X U = I, block columns from the left to the right. With delayed correction `u` and `x` may be one.
extern "C" __global__ void __launch_bounds__(BATCHLA_THREADS, BATCHLA_BLOCKS)
    trtri(Operand u, Operand x, const u32* status, u64 batch, int order, int begin, int end, int lines) {
    extern __shared__ __align__(16) unsigned char memory[];
    Scalar* line = reinterpret_cast<Scalar*>(memory);
    const int threads = blockDim.x;
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        if (status[b] != 0) continue;
        const Factors triangle(u, b);
        const Columns unknown(x, b);
        for (int first = begin * NB; first < end * NB && first < order; first += NB) {
            const int width = min(NB, order - first), last = first + width;
            // From the top down: what a group of rows overwrites, later groups do not read.
            for (int top = 0; top < last; top += ROWS * threads) {
                Rows rows;
                const int i = top + threadIdx.x;
                UNROLL for (int r = 0; r < ROWS; ++r)
                    UNROLL for (int c = 0; c < NB; ++c)
                        rows.element[r][c] = TIMELY && i + r * threads < first && c < width ? *unknown.at(i + r * threads, first + c)
                                             : i + r * threads == first + c ? one<Scalar>() : zero<Scalar>();
                for (int from = TIMELY ? first : top; from < last; from += lines) {
                    const int to = min(from + lines, last);
                    share_lines(line, triangle, from, to, first, width);
                    // Left of its diagonal a row is zero; a warp starts where its first row does.
                    subtract_solved<true>(rows, line, from, max(from, i & ~(WARP - 1)), min(to, first), [&](int r, int k) {
                        return k >= i + r * threads ? *unknown.at(i + r * threads, k) : zero<Scalar>();
                    });
                    UNROLL for (int c = 0; c < NB; ++c) {
                        const int k = first + c;
                        if (k < from || k >= to) continue;
                        const Scalar* u_k = line + (k - from) * LINE;
                        const Divisor<Scalar> by = divisor(u_k[c]);
                        UNROLL for (int r = 0; r < ROWS; ++r) {
                            if (i + r * threads <= k) rows.element[r][c] = by.into(rows.element[r][c]);
                            UNROLL for (int d = c + 1; d < NB; ++d)
                                rows.element[r][d] = subtract_product(rows.element[r][d], rows.element[r][c], u_k[d]);
                        }
                    }
                }
                UNROLL for (int r = 0; r < ROWS; ++r)
                    UNROLL for (int c = 0; c < NB; ++c)
                        if (c < width && i + r * threads <= first + c) *unknown.at(i + r * threads, first + c) = rows.element[r][c];

                for (int column = last; TIMELY && column < order; column += NB) {
                    const int columns = min(NB, order - column);
                    Rows rest;
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        UNROLL for (int c = 0; c < NB; ++c)
                            rest.element[r][c] = i + r * threads < first && c < columns ? *unknown.at(i + r * threads, column + c)
                                                                                        : zero<Scalar>();
                    share_lines(line, triangle, first, last, column, columns);
                    UNROLL for (int k = 0; k < NB; ++k) {
                        Scalar solved[ROWS];
                        UNROLL for (int r = 0; r < ROWS; ++r) solved[r] = rows.element[r][k];
                        if (k < width) rest.subtract(solved, line + k * LINE);
                    }
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        UNROLL for (int c = 0; c < NB; ++c)
                            if (c < columns && i + r * threads < last) *unknown.at(i + r * threads, column + c) = rest.element[r][c];
                }
            }
        }
    }
}

// Solves with L: X L = W (= U^-1), block columns from the right to the left. Column k of the result goes to column rows[k] of `x`, or
// stays in its place where `rows` is null; then, with delayed correction, `w`, `x` and `l` may be one. Fills the inverse of a
// failed matrix with NaN.
extern "C" __global__ void __launch_bounds__(BATCHLA_THREADS, BATCHLA_BLOCKS)
    getri(Operand l, Operand w, Operand x, const u32* rows, u32* status, u64 batch, int order, int begin, int end, int lines) {
    extern __shared__ __align__(16) unsigned char memory[];
    Position* place = reinterpret_cast<Position*>(memory);
    Scalar* line = reinterpret_cast<Scalar*>(memory + (u64(order) * sizeof(Position) + 15) / 16 * 16);
    const int threads = blockDim.x;
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Output result(x, b);
        u32 failed = status[b];
        bool bad = false;
        if (failed == 0) {
            const Factors triangle(l, b);
            const Columns known(w, b);
            for (int k = threadIdx.x; k < order; k += threads) place[k] = rows == nullptr ? k : rows[b * order + k];
            __syncthreads();
            for (int first = (end - 1) * NB; first >= begin * NB; first -= NB) {
                const int width = min(NB, order - first), next = first + width;
                for (int top = 0; top < order; top += ROWS * threads) {
                    Rows own, upper;
                    const int i = top + threadIdx.x;
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        UNROLL for (int c = 0; c < NB; ++c) {
                            const bool there = c < width && i + r * threads <= first + c;
                            upper.element[r][c] = there ? *known.at(i + r * threads, first + c) : zero<Scalar>();
                            const bool begun = TIMELY && next < order && i + r * threads < order;
                            own.element[r][c] = begun ? *result.at(i + r * threads, place[first + c]) : zero<Scalar>();
                        }
                    for (int to = TIMELY ? next : order; to > first; to -= lines) {
                        const int from = max(to - lines, first);
                        share_lines(line, triangle, from, to, first, width);
                        subtract_solved<false>(own, line, from, max(from, next), to, [&](int r, int k) {
                            return i + r * threads < order ? *result.at(i + r * threads, place[k]) : zero<Scalar>();
                        });
                        UNROLL for (int c = NB - 1; c >= 0; --c) {
                            const int k = first + c;
                            if (k < from || k >= to) continue;
                            UNROLL for (int r = 0; r < ROWS; ++r) own.element[r][c] = sum(upper.element[r][c], own.element[r][c]);
                            const Scalar* l_k = line + (k - from) * LINE;
                            UNROLL for (int r = 0; r < ROWS; ++r)
                                UNROLL for (int d = 0; d < c; ++d)
                                    own.element[r][d] = subtract_product(own.element[r][d], own.element[r][c], l_k[d]);
                        }
                    }
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        UNROLL for (int c = 0; c < NB; ++c)
                            if (c < width && i + r * threads < order) {
                                bad = bad || !is_finite(own.element[r][c]);
                                *result.at(i + r * threads, place[first + c]) = own.element[r][c];
                            }

                    for (int column = 0; TIMELY && column < first; column += NB) {
                        Rows rest;
                        UNROLL for (int r = 0; r < ROWS; ++r)
                            UNROLL for (int c = 0; c < NB; ++c) {
                                const bool begun = next < order && i + r * threads < order;
                                rest.element[r][c] = begun ? *result.at(i + r * threads, place[column + c]) : zero<Scalar>();
                            }
                        share_lines(line, triangle, first, next, column, NB);
                        UNROLL for (int k = NB - 1; k >= 0; --k) {
                            Scalar solved[ROWS];
                            UNROLL for (int r = 0; r < ROWS; ++r) solved[r] = own.element[r][k];
                            if (k < width) rest.subtract(solved, line + k * LINE);
                        }
                        UNROLL for (int r = 0; r < ROWS; ++r)
                            UNROLL for (int c = 0; c < NB; ++c)
                                if (i + r * threads < order) *result.at(i + r * threads, place[column + c]) = rest.element[r][c];
                    }
                }
            }
            if (__syncthreads_or(bad)) failed = NOT_FINITE;
            if (threadIdx.x == 0 && failed != 0) status[b] = failed;
        }
        if (failed != 0 && begin == 0) {
            for (int i = threadIdx.x; i < order; i += threads)
                for (int k = 0; k < order; ++k) *result.at(i, k) = not_a_number<Scalar>();
        }
    }
}
