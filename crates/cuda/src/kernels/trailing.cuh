// A tile of the columns behind some factored ones, on its way to A - L U: what is on chip, and the rows that a warp has in registers while L streams by from memory.
#pragma once
#include "lookahead.cuh"

constexpr int MOST = WINDOW;                    // of the factored columns
constexpr bool ALWAYS = BATCHLA_TOGETHER == 1;  // whether there are always as many
constexpr int TILE = BATCHLA_COLUMNS;           // columns of a tile
constexpr int AHEAD = BATCHLA_AHEAD;            // steps, or columns, of L that are on their way
// Rows that lanes side by side have one each of, or matrix instructions at a time; a warp has some times as many: as many times as registers hold, or once less.
constexpr int DEEP = TENSOR || sizeof(Scalar) == 4 ? 16 : 8, TALL = TENSOR ? BATCHLA_DOWN : 256 / int(sizeof(Scalar)) / DEEP, LESS = TALL > 1 ? TALL - 1 : 1;
constexpr int BROAD = TENSOR ? 8 * STEP / TALL : 32, ACROSS = TILE / BROAD;  // columns that a warp has, and how many warps have the same rows
constexpr int CREW_WARPS = CREW / WARP, SHARE = TILE / CREW_WARPS;           // columns of U that a warp solves for
static_assert(ACROSS * BROAD == TILE && CREW_WARPS % ACROSS == 0, "a part of the tile for each warp");
static_assert(SHARE * CREW_WARPS == TILE && SHARE <= WARP, "columns of U for each warp");
static_assert(NB == 8 && MOST % NB == 0 && MOST <= ROWS * WARP, "whole triangles");
static_assert(BATCHLA_UNIT_ROWS_IN == BATCHLA_UNIT_ROWS_OUT, "the source is often the result");

// Shared memory: rows of U in the tile; two block columns of the triangle of L and, for fused products, later in their place these rows line by line; whence rows have come.
struct Trailing {
    static constexpr int LINES = TENSOR ? 0 : MOST * TILE;
    Resident upper, panels;
    Position* origin;
    u32* pivots;

    __device__ explicit Trailing(unsigned char* memory) {
        const int stride = Resident::stride_of(MOST);
        upper = {reinterpret_cast<Scalar*>(memory), stride};
        panels = {upper.at(0, TILE), stride};
        pivots = reinterpret_cast<u32*>(panels.origin + max(2 * NB * stride, LINES));
        origin = reinterpret_cast<Position*>(pivots + MOST);
    }
    // The block column at column k, under the numbers that it has in the matrix.
    __device__ Resident panel(int k) const { return {panels.at(0, k / NB % 2 * NB - k), panels.stride}; }
    __device__ Scalar* lines() const { return panels.origin; }
};

// The tile, rows where they belong.
struct Placed {
    Output matrix;
    int column;

    __device__ Scalar* at(int i, int j) const { return matrix.at(i, column + j); }
    // From a column to the next.
    __device__ u64 step_right() const { return matrix.col; }
};
// The same, each row where it has come from.
struct Exchanged : Placed {
    const Position* origin;

    __device__ Scalar* at(int i, int j) const { return matrix.at(origin[i], column + j); }
};

#if BATCHLA_TENSOR

// `Times` some rows of the tile from `top` on and columns from `first` on, by matrix instructions. Neighbours in a column are neighbours in the instruction: few sectors of memory hold them, wherever columns begin.
template <int Times>
struct Products {
    static constexpr int GROUPS = 2 * Times, TILES = BROAD / STEP, TURN = AHEAD * STEP;
    // A warp waits for all loads that it has asked for, not for one of them. Of two sets, one is asked for when the other has come, and is on its way as long as that is multiplied with; real numbers,
    // of which registers hold no two, are asked for step by step.
    static constexpr int SETS = PARTS;
    Real sum[TILES][GROUPS][2];
    Resident upper;
    Output lu;
    int first, depth, stop, row, line, column;  // the first column, columns of L, before which row it ends; of this lane, the first row, and which line and column of the instruction's operands

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int depth, int stop, int lane)
        : upper(chip.upper), lu(lu), first(first), depth(depth), stop(stop), row(top + lane / 4), line(lane / 4), column(lane % 4) {}
    // Which column the instruction's n-th is: lanes that read at once meet in few banks.
    static __device__ int column_of(int n) { return PARTS == 2 ? n / 2 : n % 2 * 4 + n / 2 % 2 * 2 + n / 4; }
    // `f(x, e, there)`: of the lane's numbers, their parts, where they are in `m`, and whether they are there: columns before `width`.
    template <class M, class F>
    __device__ void each(const M& m, int width, F f) {
        UNROLL for (int g = 0; g < GROUPS; ++g) {
            auto* own = m.at(min(row + 8 * g, stop - 1), first);
            UNROLL for (int n = 0; n < TILES; ++n)
                UNROLL for (int e = 0; e < 2; e += PARTS) {
                    const int c = n * STEP + column_of(2 * column + e);
                    f(sum[n][g] + e, own + c * m.step_right(), row + 8 * g < stop && first + c < width);
                }
        }
    }
    template <class M>
    __device__ void load(const M& from, int width) {
        each(from, width, [](Real* x, const Scalar* e, bool there) {
            const Scalar value = there ? *e : zero<Scalar>();
            UNROLL for (int part = 0; part < PARTS; ++part) x[part] = parts(&value)[part];
        });
    }
    template <class M>
    __device__ void store(const M& to, int width) {
        each(to, width, [](const Real* x, Scalar* e, bool there) {
            Scalar value;
            UNROLL for (int part = 0; part < PARTS; ++part) parts(&value)[part] = x[part];
            if (there) *e = value;
        });
    }
    // Columns k .. k + STEP of L. `Whole`: all rows are there.
    template <bool Whole>
    __device__ void load_left(Real (&x)[GROUPS][2], int k) const {
        UNROLL for (int half = 0; half < 2; ++half) {
            const Scalar* l = lu.at(0, k + column / PARTS + half * (STEP / 2));
            UNROLL for (int g = 0; g < GROUPS; ++g)
                x[g][half] = parts(l + (Whole ? row + 8 * g : min(row + 8 * g, stop - 1)) * lu.row)[column % PARTS];
        }
    }
    // Rows k .. k + STEP of U, negated.
    __device__ void load_right(Real (&x)[TILES][2], int k) const {
        const int part = column % PARTS, to = line % PARTS;
        UNROLL for (int half = 0; half < 2; ++half)
            UNROLL for (int n = 0; n < TILES; ++n) {
                const Real u = parts(upper.at(k + column / PARTS + half * (STEP / 2), first + n * STEP + column_of(line)))[part ^ to];
                x[n][half] = PARTS == 1 ? -u : signed_by(u, part == 0 || to == 1);
            }
    }
    template <bool Whole>
    __device__ void subtract() {
        Real left[SETS][AHEAD][GROUPS][2];
        UNROLL for (int s = 0; s < AHEAD; ++s) load_left<Whole>(left[0][s], s * STEP);
#pragma unroll 1
        for (int first = 0; first < depth; first += SETS * TURN)
            UNROLL for (int set = 0; set < SETS; ++set) {
                const int k = first + set * TURN, next = k + TURN;
                if (SETS > 1 && k >= depth) break;
                UNROLL for (int s = 0; s < AHEAD; ++s) {
                    Real right[TILES][2];
                    load_right(right, k + s * STEP);
                    UNROLL for (int n = 0; n < TILES; ++n) {
                        auto& l = left[set][s];
                        UNROLL for (int g = 0; g < GROUPS; g += 2) multiply_add(sum[n][g], sum[n][g + 1], l[g], l[g + 1], right[n]);
                        if (SETS > 1 && s == 0 && n == 0 && next < depth)
                            UNROLL for (int t = 0; t < AHEAD; ++t) load_left<Whole>(left[(set + 1) % SETS][t], next + t * STEP);
                    }
                    if (SETS == 1 && next + s * STEP < depth) load_left<Whole>(left[set][s], next + s * STEP);
                }
            }
    }
};

#else

// The same by fused products: lanes that follow each other have rows that do, and some columns.
template <int Times>
struct Products {
    static constexpr int WIDE = BROAD / (WARP / DEEP);
    static_assert(WIDE % Pack::LENGTH == 0, "whole packs of a line");
    Scalar sum[Times][WIDE];
    Output lu;
    int depth, stop, first, lane_row;  // columns of L, before which row it ends; the lane's first column, and its first row
    const Scalar* lines;

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int depth, int stop, int lane)
        : lu(lu), depth(depth), stop(stop), first(first + lane / DEEP * WIDE), lane_row(top + lane % DEEP), lines(chip.lines() + this->first) {}
    // Row r of the lane. `Whole`: all are there.
    template <bool Whole>
    __device__ int row(int r) const { return Whole ? lane_row + r * DEEP : min(lane_row + r * DEEP, stop - 1); }
    template <class M, class F>
    __device__ void each(const M& m, int width, F f) {
        UNROLL for (int r = 0; r < Times; ++r) {
            auto* x = m.at(row<false>(r), first);
            UNROLL for (int c = 0; c < WIDE; ++c, x += m.step_right()) f(sum[r][c], x, lane_row + r * DEEP < stop && first + c < width);
        }
    }
    template <class M>
    __device__ void load(const M& from, int width) {
        each(from, width, [](Scalar& x, const Scalar* e, bool there) { x = there ? *e : zero<Scalar>(); });
    }
    template <class M>
    __device__ void store(const M& to, int width) {
        each(to, width, [](const Scalar& x, Scalar* e, bool there) {
            if (there) *e = x;
        });
    }
    template <bool Whole>
    __device__ void subtract() {
        Scalar own[AHEAD][Times];
        const Scalar* column = lu.at(0, 0);
        const auto fetch = [&](Scalar (&x)[Times]) {
            UNROLL for (int r = 0; r < Times; ++r) x[r] = column[row<Whole>(r) * lu.row];
            column += lu.col;
        };
        UNROLL for (int s = 0; s < AHEAD; ++s) fetch(own[s]);
#pragma unroll 1
        for (int k = 0; k < depth; k += AHEAD)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                Pack u[WIDE / Pack::LENGTH];
                UNROLL for (int p = 0; p < WIDE / Pack::LENGTH; ++p) u[p] = reinterpret_cast<const Pack*>(lines + (k + s) * TILE)[p];
                UNROLL for (int r = 0; r < Times; ++r)
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        sum[r][c] = subtract_product(sum[r][c], own[s][r], u[c / Pack::LENGTH].value[c % Pack::LENGTH]);
                if (k + s + AHEAD < depth) fetch(own[s]);
            }
    }
};

#endif
