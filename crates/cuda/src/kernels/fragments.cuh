// The update from the left by matrix instructions, of doubles, which hold a panel's rows otherwise than one a thread. Sums are the same chains of fused products, so the bits are
// those of `update_from_left`.
#pragma once
#include "update.cuh"

static_assert(LANES == WARP && NB % STEP == 0 && AHEAD == STEP && STAGES > 1, "whole warps, and fetches of whole steps");

// The rows of a warp: by r, those that are row r of its threads, and of these by m, groups of eight. A lane holds of one row of a group two of each eight numbers, and fetches of the
// streamed part what it multiplies itself, a step's columns at a time.
struct Fragments {
    static constexpr int GROUPS = WARP / 8, TILES = NB / STEP;
    Real sum[ROWS][TILES][GROUPS][2];
    Output lu;
    Real* ring;
    int tid, row, column;  // of the lane, the row in a group and the column, or part of one, in half a step
    int order, next, end;  // which columns are fetched next, and before which that ends

    // By every thread, before the first block column.
    static __device__ void clear(Scalar* ring, int tid) {
        for (int e = tid; e < STAGES * ROWS * 2 * GROUPS * THREADS; e += THREADS) parts(ring)[e] = 0;
    }
    // Begins to fetch the columns before `end`.
    __device__ Fragments(Output lu, Scalar* ring, int end, int order, int tid)
        : lu(lu), ring(parts(ring)), tid(tid), row(tid % WARP / 4), column(tid % 4), order(order), next(0), end(end) {
        wait_copies<0>();
        UNROLL for (int s = 0; s < STAGES - 1; ++s) fetch();
    }
    __device__ int top() const { return tid / WARP * WARP; }
    __device__ int row_of(int r, int m) const { return top() + r * THREADS + 8 * m + row; }
    // `f(x, c, part)`: of the numbers of a row, with their column in the panel.
    template <class F>
    __device__ void for_each(Real (&own)[TILES][GROUPS][2], int m, F f) {
        UNROLL for (int n = 0; n < TILES; ++n)
            UNROLL for (int e = 0; e < 2; ++e) f(own[n][m][e], n * STEP + (2 * column + e) / PARTS, (2 * column + e) % PARTS);
    }
    // `width` columns from `first` on; row i comes from row `origin[i]`.
    __device__ void load(Input from, const Position* origin, int first, int width) {
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int m = 0; m < GROUPS; ++m) {
                const bool there = row_of(r, m) < order;
                const int i = there ? origin[row_of(r, m)] : 0;
                for_each(sum[r], m, [&](Real& x, int c, int part) { x = there && c < width ? parts(from.at(i, first + c))[part] : Real(0); });
            }
    }
    // Where what this lane multiplies in half a step, of a fetch that begins with column `first`, lies in the ring.
    __device__ Real* streamed(int first, int r, int m, int half) const {
        return ring + ((first / STEP % STAGES * ROWS + r) * 2 * GROUPS + 2 * m + half) * THREADS + tid;
    }
    __device__ void fetch() {
        if (next < end)
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int m = 0; m < GROUPS; ++m) {
                    const int i = row_of(r, m);
                    if (i >= next / NB * NB + NB && i < order)
                        UNROLL for (int half = 0; half < 2; ++half)
                            copy_async(streamed(next, r, m, half), parts(lu.at(i, next + column / PARTS + half * (STEP / 2))) + column % PARTS);
                }
        commit_copies();
        next += STEP;
    }
    // panel -= L[:, q .. q + NB] U[q .. q + NB, panel]. Returns whether one of those rows of U, which it stores, is not finite.
    __device__ bool update(Team& team, const UpperRows<Output>& rows, const Shared& shared, int q) {
        Scalar (*const upper)[LINE] = team.upper[(q / NB) & 1];
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int m = 0; m < GROUPS; ++m) {
                const int k = row_of(r, m) - q;
                if (k >= 0 && k < NB) for_each(sum[r], m, [&](Real& x, int c, int part) { parts(&upper[k][c])[part] = x; });
            }
        const bool bad = solve_upper(team, rows, shared, q, tid, [] {});
        const auto done = [&](int r) { return top() + r * THREADS + WARP <= q + NB; };  // all rows are above
        if (done(ROWS - 1)) return bad;
        UNROLL for (int first = q; first < q + NB; first += STEP) {
            fetch();
            wait_copies<STAGES - 1>();
            Real right[TILES][2];
            UNROLL for (int n = 0; n < TILES; ++n)
                UNROLL for (int half = 0; half < 2; ++half) {
                    const int k = first - q + column / PARTS + half * (STEP / 2), part = column % PARTS, to = row % PARTS;
                    const Real u = parts(&upper[k][n * STEP + row / PARTS])[part ^ to];
                    right[n][half] = part == 1 && to == 0 ? u : -u;
                }
            UNROLL for (int r = 0; r < ROWS; ++r) {
                if (done(r)) continue;
                Real left[GROUPS][2];  // of rows that have none left, what was there: they are not used again
                UNROLL for (int m = 0; m < GROUPS; ++m)
                    UNROLL for (int half = 0; half < 2; ++half) left[m][half] = *streamed(first, r, m, half);
                UNROLL for (int n = 0; n < TILES; ++n)
                    UNROLL for (int m = 0; m < GROUPS; m += 2) multiply_add(sum[r][n][m], sum[r][n][m + 1], left[m], left[m + 1], right[n]);
            }
        }
        return bad;
    }
    // To a row a thread, through the ring.
    __device__ void give(Panel<ROWS>& panel) const {
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int n = 0; n < TILES; ++n) {
                Lanes::sync();  // all have read what was there
                UNROLL for (int m = 0; m < GROUPS; ++m)
                    UNROLL for (int e = 0; e < 2; ++e) ring[(2 * column + e) * THREADS + top() + 8 * m + row] = sum[r][n][m][e];
                Lanes::sync();
                UNROLL for (int p = 0; p < 8; ++p) parts(&panel.at(r, n * STEP + p / PARTS, tid))[p % PARTS] = ring[p * THREADS + tid];
            }
    }
};
