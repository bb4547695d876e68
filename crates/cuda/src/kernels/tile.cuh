// Products of blocks of a matrix on chip, a warp (or less) at a time: C -= A B. Each sum is a chain of fused products in the order of
// the columns of A, whichever form computes it, so the bits are the same.
#pragma once
#include "resident.cuh"

constexpr bool TENSOR = BATCHLA_TENSOR;

#if BATCHLA_TENSOR

// By matrix instructions.
static_assert(LANES == WARP && NB % STEP == 0, "whole warps and whole steps");

// x, or less x where `minus`: without the adder, which the compiler takes where lanes differ.
__device__ inline double signed_by(double x, bool minus) { return __longlong_as_double(__double_as_longlong(x) ^ (long long)(u64(minus) << 63)); }

// 8 `Groups` rows from row i on and `Tiles` * STEP columns from column j on, of which those from `end` on are not on chip.
template <int Groups, int Tiles, class Left = Resident>
struct Tile {
    Real sum[Tiles][Groups][2];
    Resident a;
    Left left;
    int i, j, end, order, row, column;  // of this lane, the row in each group and the first part in each tile

    // `left`: what the tile of `a` is less a product of, on the left.
    __device__ Tile(Resident a, Left left, int i, int j, int end, int order, int lane)
        : a(a), left(left), i(i), j(j), end(end), order(order), row(lane / 4), column(lane % 4) {}

    // `f(x, i, j)`: of the lane's numbers, their parts.
    template <class F>
    __device__ void for_each(F f) {
        UNROLL for (int n = 0; n < Tiles; ++n)
            UNROLL for (int m = 0; m < Groups; ++m)
                UNROLL for (int e = 0; e < 2; e += PARTS) f(sum[n][m] + e, i + 8 * m + row, j + n * STEP + column_of(2 * column + e));
    }
    // Which column of a step the instruction's n-th is, so that lanes that load or store at once meet in few banks.
    static __device__ int column_of(int n) { return SPREAD && PARTS == 1 ? n ^ n / 4 : n / PARTS; }
    template <class M>
    static __device__ Real* at(const M& a, int i, int j, int part) {
        return reinterpret_cast<Real*>(a.at(i, j)) + part;
    }
    // `below` rows further down.
    template <class M>
    static __device__ Real* at(const M& a, int i, int below, int j, int part) {
        return reinterpret_cast<Real*>(a.at(i, j) + below * a.step()) + part;
    }

    // Elements (i, j) of `from` for which `there(i, j)` holds; others are zero.
    template <class M, class F>
    __device__ void load(const M& from, F there) {
        for_each([&](Real* x, int i, int j) {
            const Scalar value = there(i, j) ? *from.at(i, j) : zero<Scalar>();
            UNROLL for (int part = 0; part < PARTS; ++part) x[part] = parts(&value)[part];
        });
    }
    // Elements (i, j) for which `wanted(i, j)` holds.
    template <class F>
    __device__ void store(F wanted) {
        for_each([&](const Real* x, int i, int j) {
            Scalar value;
            UNROLL for (int part = 0; part < PARTS; ++part) parts(&value)[part] = x[part];
            if (wanted(i, j)) *a.at(i, j) = value;
        });
    }
    __device__ void multiply(const Real (&left)[Groups][2], const Real (&right)[Tiles][2]) {
        static_assert(Groups % 2 == 0, "two groups an instruction");
        UNROLL for (int n = 0; n < Tiles; ++n)
            UNROLL for (int m = 0; m < Groups; m += 2) multiply_add(sum[n][m], sum[n][m + 1], left[m], left[m + 1], right[n]);
    }
    // Which of columns k .. k + STEP is this lane's, and (`s` = 1) the one half a step after it.
    template <bool Upwards>
    __device__ int own(int k, int s) const {
        return k + (Upwards ? column / PARTS : STEP / 2 - 1 - column / PARTS) + (Upwards ? s : 1 - s) * (STEP / 2);
    }
    // Half `s` of A's columns k .. k + STEP. `Masked`: elements on the left of the diagonal count as zero. `Ragged`: so do columns from `limit` on. `Whole`: no row
    // is beyond the matrix.
    template <bool Upwards, bool Masked, bool Ragged, bool Whole>
    __device__ void load_left(Real (&x)[Groups][2], int k, int s, int limit) const {
        const int l = own<Upwards>(k, s), rest = order - 1 - i - row;  // rows beyond the matrix take its last
        UNROLL for (int m = 0; m < Groups; ++m) {
            const int mine = i + row + 8 * m;
            const bool none = (Masked && l < mine) || (Ragged && l >= limit);
            x[m][s] = none ? Real(0) : *at(left, i + row, Whole ? 8 * m : min(8 * m, rest), l, column % PARTS);
        }
    }
    // Half `s` of rows k .. k + STEP of B, negated.
    template <bool Upwards, bool Ragged>
    __device__ void load_right(Real (&x)[Tiles][2], int k, int s, int limit) const {
        const int part = column % PARTS, to = row % PARTS, l = own<Upwards>(k, s), there = Ragged ? min(l, limit - 1) : l;
        UNROLL for (int n = 0; n < Tiles; ++n) {
            const Real b = *at(a, there, min(j + n * STEP + column_of(row), end - 1), part ^ to);
            x[n][s] = Ragged && l >= limit ? -Real(0) : PARTS == 1 ? -b : signed_by(b, part == 0 || to == 1);
        }
    }
    template <bool Upwards, bool Masked, bool Ragged, bool Whole>
    __device__ void subtract_step(int k, int limit = 0) {
        Real own_rows[Groups][2], right[Tiles][2];
        UNROLL for (int s = 0; s < 2; ++s) {
            load_left<Upwards, Masked, Ragged, Whole>(own_rows, k, s, limit);
            load_right<Upwards, Ragged>(right, k, s, limit);
        }
        multiply(own_rows, right);
    }
    // Less A's columns times B's rows k from `begin` on before `end`.
    template <bool Upwards, bool Masked, bool Whole = false>
    __device__ void subtract(int begin, int end) {
        if (Upwards) {
#pragma unroll 2
            for (int k = begin; k < end; k += STEP) subtract_step<true, Masked, false, Whole>(k);
        } else {
            int k = end;
            if (end % STEP != 0 && begin < end) {
                k -= end % STEP;
                subtract_step<false, Masked, true, Whole>(k, end);
            }
#pragma unroll 2
            for (; k > begin; k -= STEP) subtract_step<false, Masked, false, Whole>(k - STEP);
        }
    }
    // The same where A is not on chip: `Ahead` steps are on their way from memory, the first of them begun by `begin_stream`. Downwards the first may be ragged: B, which
    // is on chip, has zeros there, whose signs matter where they are parts of complex numbers.
    template <bool Upwards, bool Masked, int Ahead>
    __device__ void begin_stream(Real (&own_rows)[Ahead][Groups][2], int begin, int end) const {
        load_streamed<Upwards, Masked, !Upwards && RAGGED, false>(own_rows[0], 0, begin, end);
        UNROLL for (int s = 1; s < Ahead; ++s) load_streamed<Upwards, Masked, false, false>(own_rows[s], s, begin, end);
    }
    template <bool Upwards, bool Masked, bool Whole, int Ahead>
    __device__ void subtract_stream(Real (&own_rows)[Ahead][Groups][2], int begin, int end) {
        const int steps = (end - begin + STEP - 1) / STEP;
#pragma unroll 1
        for (int done = 0; done < steps; done += Ahead)
            UNROLL for (int s = 0; s < Ahead; ++s) {
                if (done + s >= steps) break;
                Real right[Tiles][2];
                const int k = k_of<Upwards>(done + s, begin, end);
                UNROLL for (int half = 0; half < 2; ++half)
                    if (!Upwards && RAGGED && PARTS == 2 && done + s == 0) {
                        load_right<Upwards, true>(right, k, half, end);
                    } else {
                        load_right<Upwards, false>(right, k, half, end);
                    }
                multiply(own_rows[s], right);
                load_streamed<Upwards, Masked, false, Whole>(own_rows[s], done + s + Ahead, begin, end);
            }
    }
    // A's columns of a step, if there is one.
    template <bool Upwards, bool Masked, bool Ragged, bool Whole>
    __device__ void load_streamed(Real (&x)[Groups][2], int step, int begin, int end) const {
        if (begin + step * STEP < end)
            UNROLL for (int half = 0; half < 2; ++half)
                load_left<Upwards, Masked, Ragged, Whole>(x, k_of<Upwards>(step, begin, end), half, end);
    }
    template <bool Upwards>
    static __device__ int k_of(int step, int begin, int end) {
        return begin + (Upwards ? step : (end - begin - 1) / STEP - step) * STEP;
    }
    static constexpr bool RAGGED = EXACT == 0 || EXACT % STEP != 0;
};

// Rows `top` .. order of columns `begin` .. `end`, less L[., k .. k + NB] U[k .. k + NB, .], for the L in `left`, its columns taken upwards or downwards. About `Wide`
// columns at a time.
template <int Wide, bool Upwards = true>
__device__ inline void update_columns(Resident a, Resident left, int top, int k, int begin, int end, int order, int lane) {
    constexpr int TILES = Wide / STEP < 4 ? Wide / STEP : 4;
    for (int j = begin; j < end; j += TILES * STEP)
        for (int i = top; i < order; i += 32) {
            Tile<4, TILES> tile(a, left, i, j, end, order, lane);
            tile.load(tile.a, [&](int row, int column) { return row < order && column < end; });
            tile.template subtract<Upwards, false>(k, k + NB);
            tile.store([&](int row, int column) { return row < order && column < end; });
        }
}

#else

// By fused products. Rows from row i on and columns from column j on, of which those from `order` and `end` on are not on chip: a lane has packs of rows of some columns, the
// lanes that follow it those below.
template <int Rows, int Columns>
struct Tile {
    static constexpr int WIDE = 4, DEEP = LANES * WIDE / Columns, COUNT = Rows / (DEEP * Pack::LENGTH);
    static_assert(COUNT * DEEP * Pack::LENGTH == Rows, "whole packs a lane");
    Pack sum[COUNT][WIDE];
    Resident a, left;
    int i, j, order, row, column;  // of this lane

    // `left`: what the tile of `a` is less a product of, on the left.
    __device__ Tile(Resident a, Resident left, int i, int j, int, int order, int lane)
        : a(a), left(left), i(i), j(j), order(order), row(i + lane % DEEP * Pack::LENGTH), column(j + lane / DEEP * WIDE) {}

    // Packs of rows of which the first is `there`.
    template <class F>
    __device__ void load(Resident from, F there) {
        UNROLL for (int r = 0; r < COUNT; ++r)
            UNROLL for (int c = 0; c < WIDE; ++c) sum[r][c] = there(row_of(r), column + c) ? *from.pack(row_of(r), column + c) : Pack{};
    }
    template <class F>
    __device__ void store(F wanted) {
        UNROLL for (int r = 0; r < COUNT; ++r)
            UNROLL for (int c = 0; c < WIDE; ++c)
                if (wanted(row_of(r), column + c)) *a.pack(row_of(r), column + c) = sum[r][c];
    }
    // Less columns of `left` times rows k of `a` from `begin` on before `end`: whole packs.
    template <bool Upwards, bool Masked>
    __device__ void subtract(int begin, int end) {
        static_assert(!Masked, "for whole rows");
        const int packs = (end - begin) / Pack::LENGTH;
#pragma unroll 2
        for (int q = 0; q < packs; ++q) {
            const int k = begin + (Upwards ? q : packs - 1 - q) * Pack::LENGTH;
            Pack u[WIDE];
            UNROLL for (int c = 0; c < WIDE; ++c) u[c] = *a.pack(k, column + c);
            UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                UNROLL for (int r = 0; r < COUNT; ++r) {
                    const Pack l = *left.pack(min(row_of(r), order - Pack::LENGTH), k + s);
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        UNROLL for (int e = 0; e < Pack::LENGTH; ++e) sum[r][c].value[e] = subtract_product(sum[r][c].value[e], l.value[e], u[c].value[s]);
                }
            }
        }
    }
    __device__ int row_of(int r) const { return row + r * DEEP * Pack::LENGTH; }
};

// About `Wide` columns at a time, of each lane a pack of rows of four.
template <int Wide, bool Upwards = true>
__device__ inline void update_columns(Resident a, Resident left, int top, int k, int begin, int end, int order, int lane) {
    constexpr int WIDE = 4, DEEP = LANES < 8 ? LANES : LANES * WIDE / Wide > LANES / 4 ? LANES * WIDE / Wide : 8;
    const int rows = lane % DEEP * Pack::LENGTH, columns = lane / DEEP * WIDE;
    for (int j = begin + columns; j < end; j += LANES / DEEP * WIDE)
        for (int i = top + rows; i < order; i += DEEP * Pack::LENGTH) {
            Pack sum[WIDE] = {};
            UNROLL for (int c = 0; c < WIDE; ++c)
                if (j + c < end) sum[c] = *a.pack(i, j + c);
            UNROLL for (int q = 0; q < PACKS; ++q) {
                const int p = Upwards ? q : PACKS - 1 - q;
                Pack u[WIDE];
                UNROLL for (int c = 0; c < WIDE; ++c) u[c] = *a.pack(k + p * Pack::LENGTH, min(j + c, end - 1));
                UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                    const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                    const Pack l = *left.pack(i, k + p * Pack::LENGTH + s);
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        UNROLL for (int r = 0; r < Pack::LENGTH; ++r) sum[c].value[r] = subtract_product(sum[c].value[r], l.value[r], u[c].value[s]);
                }
            }
            UNROLL for (int c = 0; c < WIDE; ++c)
                if (j + c < end) *a.pack(i, j + c) = sum[c];
        }
}

#endif
