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
    int i, j, end, order, line, column;  // of this lane, which line and column of the instruction's operands
    int row;                              // its first row, counted from i

    // `left`: what the tile of `a` is less a product of, on the left.
    __device__ Tile(Resident a, Left left, int i, int j, int end, int order, int lane)
        : a(a), left(left), i(i), j(j), end(end), order(order), line(lane / 4), column(lane % 4), row(row_of(line)) {}

    // Which of some rows and columns the instruction's n-th is, so that lanes that load or store at once meet in few banks: of doubles, of sixteen rows and eight columns,
    // of pairs of them, of eight and four. And how far below the first group's rows those of group m are.
    static __device__ int row_of(int n) {
        if (PARTS == 2) return n % 2 * 4 + n / 2 % 2 * 2 + n / 4;
        return ODD ? n % 4 * 4 + n / 4 : n % 2 + n / 2 % 2 * 8 + n / 4 * 2;
    }
    static __device__ int column_of(int n) { return PARTS == 2 ? n / 2 : n % 2 * 4 + n / 2 % 2 * 2 + n / 4; }
    static __device__ constexpr int below(int m) { return PARTS == 2 ? 8 * m : m / 2 * 16 + m % 2 * (ODD ? 2 : 4); }

    // `f(x, i, j, there)`: of the lane's numbers, their parts; `there`: the panels that (i, j) is in are before `order` and `end`, one question for eight rows and a step
    // of columns.
    template <class F>
    __device__ void for_each(F f) {
        constexpr int EIGHT = NB % 8 == 0 ? 8 : 1;
        UNROLL for (int n = 0; n < Tiles; ++n)
            UNROLL for (int m = 0; m < Groups; ++m) {
                const bool there = i + row / EIGHT * EIGHT + below(m) / EIGHT * EIGHT < order && j + n * STEP < end;
                UNROLL for (int e = 0; e < 2; e += PARTS) f(sum[n][m] + e, i + row + below(m), j + n * STEP + column_of(2 * column + e), there);
            }
    }
    template <class M>
    static __device__ Real* at(const M& a, int i, int j, int part) {
        return reinterpret_cast<Real*>(a.at(i, j)) + part;
    }
    // `below` rows further down.
    template <class M>
    static __device__ Real* at(const M& a, int i, int below, int j, int part) {
        return reinterpret_cast<Real*>(a.at(i, j) + below * a.step()) + part;
    }

    __device__ void clear() {
        for_each([](Real* x, int, int, bool) { UNROLL for (int part = 0; part < PARTS; ++part) x[part] = 0; });
    }
    // Elements (i, j) of `from` for which `wanted(i, j, there)` holds; others are zero.
    template <class M, class F>
    __device__ void load(const M& from, F wanted) {
        for_each([&](Real* x, int i, int j, bool there) {
            const Scalar value = wanted(i, j, there) ? *from.at(i, j) : zero<Scalar>();
            UNROLL for (int part = 0; part < PARTS; ++part) x[part] = parts(&value)[part];
        });
    }
    // Elements (i, j) for which `wanted(i, j, there)` holds.
    template <class F>
    __device__ void store(F wanted) {
        for_each([&](const Real* x, int i, int j, bool there) {
            Scalar value;
            UNROLL for (int part = 0; part < PARTS; ++part) parts(&value)[part] = x[part];
            if (wanted(i, j, there)) *a.at(i, j) = value;
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
    // Half `s` of A's columns k .. k + STEP. `Masked`: elements on the left of the diagonal count as zero. `Whole`: no row is beyond the matrix.
    template <bool Upwards, bool Masked, bool Whole>
    __device__ void load_left(Real (&x)[Groups][2], int k, int s) const {
        const int l = own<Upwards>(k, s), rest = order - 1 - i - row;  // rows beyond the matrix take its last
        UNROLL for (int m = 0; m < Groups; ++m) {
            const int mine = i + row + below(m);
            x[m][s] = Masked && l < mine ? Real(0) : *at(left, i + row, Whole ? below(m) : min(below(m), rest), l, column % PARTS);
        }
    }
    // Half `s` of rows k .. k + STEP of B, negated.
    template <bool Upwards>
    __device__ void load_right(Real (&x)[Tiles][2], int k, int s) const {
        const int part = column % PARTS, to = line % PARTS, l = own<Upwards>(k, s);
        UNROLL for (int n = 0; n < Tiles; ++n) {
            const Real b = *at(a, l, min(j + n * STEP + column_of(line), end - 1), part ^ to);
            x[n][s] = PARTS == 1 ? -b : signed_by(b, part == 0 || to == 1);
        }
    }
    template <bool Upwards, bool Masked, bool Whole>
    __device__ void subtract_step(int k) {
        Real own_rows[Groups][2], right[Tiles][2];
        UNROLL for (int s = 0; s < 2; ++s) {
            load_left<Upwards, Masked, Whole>(own_rows, k, s);
            load_right<Upwards>(right, k, s);
        }
        multiply(own_rows, right);
    }
    // Less A's columns times B's rows k from `begin` on before `end`.
    template <bool Upwards, bool Masked, bool Whole = false>
    __device__ void subtract(int begin, int end) {
        if (Upwards) {
#pragma unroll 2
            for (int k = begin; k < end; k += STEP) subtract_step<true, Masked, Whole>(k);
        } else {
#pragma unroll 2
            for (int k = end; k > begin; k -= STEP) subtract_step<false, Masked, Whole>(k - STEP);
        }
    }
    // The same where A is not on chip: `Ahead` steps are on their way from memory, the first of them begun by `begin_stream`.
    template <bool Upwards, bool Masked, bool Whole, int Ahead>
    __device__ void begin_stream(Real (&own_rows)[Ahead][Groups][2], int begin, int end) const {
        UNROLL for (int s = 0; s < Ahead; ++s) load_streamed<Upwards, Masked, Whole>(own_rows[s], s, begin, end);
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
                UNROLL for (int half = 0; half < 2; ++half) load_right<Upwards>(right, k, half);
                multiply(own_rows[s], right);
                load_streamed<Upwards, Masked, Whole>(own_rows[s], done + s + Ahead, begin, end);
            }
    }
    // A's columns of a step, if there is one.
    template <bool Upwards, bool Masked, bool Whole>
    __device__ void load_streamed(Real (&x)[Groups][2], int step, int begin, int end) const {
        if (begin + step * STEP < end)
            UNROLL for (int half = 0; half < 2; ++half) load_left<Upwards, Masked, Whole>(x, k_of<Upwards>(step, begin, end), half);
    }
    template <bool Upwards>
    static __device__ int k_of(int step, int begin, int end) {
        return begin + (Upwards ? step : (end - begin - 1) / STEP - step) * STEP;
    }
};

// Rows `top` .. order of columns `begin` .. `end`, less L[., k .. k + NB] U[k .. k + NB, .], for the L in `left`, its columns taken upwards or downwards. Whole panels;
// about `Wide` columns at a time. U stays in registers where it is small.
template <int Wide, bool Upwards = true>
__device__ inline void update_columns(Resident a, Resident left, int top, int k, int begin, int end, int order, int lane) {
    constexpr int GROUPS = WINDOW > 0 ? 4 : 2, TILES = Wide / STEP < 2 ? Wide / STEP : 2, STEPS = NB / STEP;
    constexpr bool KEEPS = STEPS <= 2;
    for (int j = begin; j < end; j += TILES * STEP) {
        Tile<GROUPS, TILES> tile(a, left, top, j, end, order, lane);
        Real right[KEEPS ? STEPS : 1][TILES][2];
        const auto step = [&](int s) { return k + (Upwards ? s : STEPS - 1 - s) * STEP; };
        UNROLL for (int s = 0; KEEPS && s < STEPS; ++s)
            UNROLL for (int half = 0; half < 2; ++half) tile.template load_right<Upwards>(right[s], step(s), half);
#pragma unroll(4 / GROUPS)
        for (; tile.i < order; tile.i += 8 * GROUPS) {
            tile.load(a, [](int, int, bool there) { return there; });
            if (!KEEPS) tile.template subtract<Upwards, false>(k, k + NB);
            UNROLL for (int s = 0; KEEPS && s < STEPS; ++s) {
                Real own_rows[GROUPS][2];
                UNROLL for (int half = 0; half < 2; ++half) tile.template load_left<Upwards, false, false>(own_rows, step(s), half);
                tile.multiply(own_rows, right[s]);
            }
            tile.store([](int, int, bool there) { return there; });
        }
    }
}

#else

// Half a warp loads sixteen bytes a lane at once if the lanes of each pair ask for the same, or lanes two apart (by the clock): pairs have the same rows, and lanes two apart the same columns. Complex
// inverses on chip were slower so.
constexpr bool PAIRED = !(INVERTS && Number<Scalar>::COMPLEX);
// Of `Deep` groups of rows, and of the groups of columns that lanes then have, which one a lane has.
template <int Deep>
__device__ inline int rows_of(int lane) {
    return PAIRED && Deep < LANES ? lane / 2 % Deep : lane % Deep;
}
template <int Deep>
__device__ inline int columns_of(int lane) {
    return PAIRED && Deep < LANES ? lane % 2 + lane / (2 * Deep) * 2 : lane / Deep;
}

// By fused products. Rows from row i on and columns from column j on, of which those from `order` and `end` on are not on chip: a lane has packs of rows of some columns.
template <int Rows, int Columns>
struct Tile {
    static constexpr int WIDE = 4, DEEP = LANES * WIDE / Columns, COUNT = Rows / (DEEP * Pack::LENGTH);
    static_assert(COUNT * DEEP * Pack::LENGTH == Rows, "whole packs a lane");
    Pack sum[COUNT][WIDE];
    Resident a, left;
    int i, j, order, row, column;  // of this lane

    // `left`: what the tile of `a` is less a product of, on the left.
    __device__ Tile(Resident a, Resident left, int i, int j, int, int order, int lane)
        : a(a), left(left), i(i), j(j), order(order), row(i + rows_of<DEEP>(lane) * Pack::LENGTH), column(j + columns_of<DEEP>(lane) * WIDE) {}

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

// About `Wide` columns at a time, of each lane a pack of rows of four. Whole panels.
template <int Wide, bool Upwards = true>
__device__ inline void update_columns(Resident a, Resident left, int top, int k, int begin, int end, int order, int lane) {
    constexpr int WIDE = 4, DEEP = LANES < 8 ? LANES : LANES * WIDE / Wide > LANES / 4 ? LANES * WIDE / Wide : 8;
    // Fours of columns are all there; rows of U stay in registers where that was measured to be faster.
    constexpr bool EVEN = NB % WIDE == 0 && Wide % WIDE == 0, KEEPS = NB <= 8 && (WINDOW > 0 || Number<Scalar>::COMPLEX);
    const int rows = rows_of<DEEP>(lane) * Pack::LENGTH, columns = columns_of<DEEP>(lane) * WIDE;
    for (int j = begin + columns; j < end; j += LANES / DEEP * WIDE) {
        Pack u[KEEPS ? PACKS : 1][WIDE];
        const auto load_upper = [&](Pack (&u)[WIDE], int p) {
            UNROLL for (int c = 0; c < WIDE; ++c) u[c] = *a.pack(k + p * Pack::LENGTH, EVEN ? j + c : min(j + c, end - 1));
        };
        UNROLL for (int p = 0; KEEPS && p < PACKS; ++p) load_upper(u[p], p);
        for (int i = top + rows; i < order; i += DEEP * Pack::LENGTH) {
            Pack sum[WIDE] = {};
            UNROLL for (int c = 0; c < WIDE; ++c)
                if (EVEN || j + c < end) sum[c] = *a.pack(i, j + c);
            UNROLL for (int q = 0; q < PACKS; ++q) {
                const int p = Upwards ? q : PACKS - 1 - q;
                if (!KEEPS) load_upper(u[0], p);
                UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                    const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                    const Pack l = *left.pack(i, k + p * Pack::LENGTH + s);
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        UNROLL for (int r = 0; r < Pack::LENGTH; ++r)
                            sum[c].value[r] = subtract_product(sum[c].value[r], l.value[r], u[KEEPS ? p : 0][c].value[s]);
                }
            }
            UNROLL for (int c = 0; c < WIDE; ++c)
                if (EVEN || j + c < end) *a.pack(i, j + c) = sum[c];
        }
    }
}

#endif
