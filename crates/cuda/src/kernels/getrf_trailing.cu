// The trailing matrix of a strip of factored columns: the columns on its right take its exchanges; U = L^-1 A in its rows; the rest less L U. A block has a tile of columns, a warp some of its
// rows at a time, in registers, while L streams by from memory.
#include "lookahead.cuh"
#include "origin.cuh"

constexpr int STRIP = WINDOW;          // its columns
constexpr int TILE = BATCHLA_COLUMNS;  // columns of a tile
constexpr int AHEAD = BATCHLA_AHEAD;   // steps, or columns, of L that are on their way
constexpr int DOWN = BATCHLA_DOWN;     // by matrix instructions, sixteens of rows that a warp has at a time
constexpr int BROAD = TENSOR ? 8 * STEP / DOWN : 32, ACROSS = TILE / BROAD;  // columns that a warp has, and how many warps have the same rows
constexpr int CREW_WARPS = CREW / WARP, SHARE = TILE / CREW_WARPS;  // columns of U that a warp solves for
static_assert(ACROSS * BROAD == TILE && CREW_WARPS % ACROSS == 0, "a part of the tile for each warp");
static_assert(SHARE * CREW_WARPS == TILE && SHARE <= WARP, "columns of U for each warp");
static_assert(STRIP % NB == 0 && NB == 8 && STRIP % (AHEAD * (TENSOR ? STEP : 1)) == 0 && STRIP <= ROWS * WARP, "whole steps");
static_assert(BATCHLA_UNIT_ROWS_IN == BATCHLA_UNIT_ROWS_OUT, "the source is often the result");

// Shared memory: rows of U in the tile; two block columns of the strip's triangle and, for fused products, later in their place these rows line by line; whence rows have come.
struct Trailing {
    static constexpr int LINES = TENSOR ? 0 : STRIP * TILE;
    Resident upper, panels;
    Position* origin;
    u32* pivots;

    __device__ explicit Trailing(unsigned char* memory) {
        const int stride = Resident::stride_of(STRIP);
        upper = {reinterpret_cast<Scalar*>(memory), stride};
        panels = {upper.at(0, TILE), stride};
        pivots = reinterpret_cast<u32*>(panels.origin + max(2 * NB * stride, LINES));
        origin = reinterpret_cast<Position*>(pivots + STRIP);
    }
    // The block column at column k, under the numbers that it has in the strip.
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

// Rows of the tile from `top` on and columns from `first` on, by matrix instructions. Neighbours in a column are neighbours in the instruction: few sectors of memory hold them, wherever columns begin.
struct Products {
    static constexpr int TALL = 16 * DOWN, GROUPS = 2 * DOWN, TILES = BROAD / STEP;
    Real sum[TILES][GROUPS][2];
    Resident upper;
    Output lu;
    int first, order, row, line, column;  // rows that there are; of this lane, the first row, and which line and column of the instruction's operands

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int n, int lane)
        : upper(chip.upper), lu(lu), first(first), order(n), row(top + lane / 4), line(lane / 4), column(lane % 4) {}
    // Which column the instruction's n-th is: lanes that read at once meet in few banks.
    static __device__ int column_of(int n) { return PARTS == 2 ? n / 2 : n % 2 * 4 + n / 2 % 2 * 2 + n / 4; }
    // `f(x, e, there)`: of the lane's numbers, their parts, where they are in `m`, and whether the matrix has them: columns before `width`.
    template <class M, class F>
    __device__ void each(const M& m, int width, F f) {
        UNROLL for (int g = 0; g < GROUPS; ++g) {
            auto* own = m.at(min(row + 8 * g, order - 1), first);
            UNROLL for (int n = 0; n < TILES; ++n)
                UNROLL for (int e = 0; e < 2; e += PARTS) {
                    const int c = n * STEP + column_of(2 * column + e);
                    f(sum[n][g] + e, own + c * m.step_right(), row + 8 * g < order && first + c < width);
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
    // Columns k .. k + STEP of L. `Whole`: no row is beyond the matrix.
    template <bool Whole>
    __device__ void load_left(Real (&x)[GROUPS][2], int k) const {
        UNROLL for (int half = 0; half < 2; ++half) {
            const Scalar* l = lu.at(0, k + column / PARTS + half * (STEP / 2));
            UNROLL for (int g = 0; g < GROUPS; ++g)
                x[g][half] = parts(l + (Whole ? row + 8 * g : min(row + 8 * g, order - 1)) * lu.row)[column % PARTS];
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
    __device__ void subtract_strip() {
        Real left[AHEAD][GROUPS][2];
        UNROLL for (int s = 0; s < AHEAD; ++s) load_left<Whole>(left[s], s * STEP);
#pragma unroll 1
        for (int k = 0; k < STRIP; k += AHEAD * STEP)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                Real right[TILES][2];
                load_right(right, k + s * STEP);
                UNROLL for (int n = 0; n < TILES; ++n)
                    UNROLL for (int g = 0; g < GROUPS; g += 2) multiply_add(sum[n][g], sum[n][g + 1], left[s][g], left[s][g + 1], right[n]);
                if (k + (s + AHEAD) * STEP < STRIP) load_left<Whole>(left[s], k + (s + AHEAD) * STEP);
            }
    }
};

#else

// The same by fused products: lanes that follow each other have rows that do, and some columns.
struct Products {
    static constexpr int DEEP = sizeof(Scalar) == 4 ? 16 : 8, TALL = 256 / sizeof(Scalar), COUNT = TALL / DEEP, WIDE = BROAD / (WARP / DEEP);
    static_assert(WIDE % Pack::LENGTH == 0, "whole packs of a line");
    Scalar sum[COUNT][WIDE];
    Output lu;
    int order, first, lane_row;  // rows that there are; the lane's first column, and its first row
    const Scalar* lines;

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int n, int lane)
        : lu(lu), order(n), first(first + lane / DEEP * WIDE), lane_row(top + lane % DEEP), lines(chip.lines() + this->first) {}
    // Row r of the lane. `Whole`: none is beyond the matrix.
    template <bool Whole>
    __device__ int row(int r) const { return Whole ? lane_row + r * DEEP : min(lane_row + r * DEEP, order - 1); }
    template <class M, class F>
    __device__ void each(const M& m, int width, F f) {
        UNROLL for (int r = 0; r < COUNT; ++r) {
            auto* x = m.at(row<false>(r), first);
            UNROLL for (int c = 0; c < WIDE; ++c, x += m.step_right()) f(sum[r][c], x, lane_row + r * DEEP < order && first + c < width);
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
    __device__ void subtract_strip() {
        Scalar own[AHEAD][COUNT];
        const Scalar* column = lu.at(0, 0);
        const auto fetch = [&](Scalar (&x)[COUNT]) {
            UNROLL for (int r = 0; r < COUNT; ++r) x[r] = column[row<Whole>(r) * lu.row];
            column += lu.col;
        };
        UNROLL for (int s = 0; s < AHEAD; ++s) fetch(own[s]);
#pragma unroll 1
        for (int k = 0; k < STRIP; k += AHEAD)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                Pack u[WIDE / Pack::LENGTH];
                UNROLL for (int p = 0; p < WIDE / Pack::LENGTH; ++p) u[p] = reinterpret_cast<const Pack*>(lines + (k + s) * TILE)[p];
                UNROLL for (int r = 0; r < COUNT; ++r)
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        sum[r][c] = subtract_product(sum[r][c], own[s][r], u[c / Pack::LENGTH].value[c % Pack::LENGTH]);
                if (k + s + AHEAD < STRIP) fetch(own[s]);
            }
    }
};

#endif

// Whence all rows have come by the strip's exchanges. Most have not moved; of those below the strip that have, the last of their exchanges tells where they come from.
__device__ inline void trace(const Trailing& chip, const u32* exchanges, int n, int base, int tid) {
    constexpr int EACH = (2 * STRIP + CREW - 1) / CREW;
    for (int i = tid; i < n; i += CREW) chip.origin[i] = i;
    crew_sync();
    for (int k = tid; k < STRIP; k += CREW) {
        const Position i = exchanges[k] - base;
        chip.pivots[k] = i;
        if (i >= STRIP) atomicMin(&chip.origin[i], -1 - k);
    }
    crew_sync();
    Position to[EACH], from[EACH];
    UNROLL for (int e = 0; e < EACH; ++e) {
        const int t = tid + e * CREW, k = t - STRIP;
        to[e] = k < 0 ? t : k < STRIP ? chip.pivots[k] : -1;
        if (k >= 0 && (to[e] < STRIP || chip.origin[to[e]] != -1 - k)) to[e] = -1;
        if (to[e] >= 0) from[e] = origin_of(to[e], chip.pivots, 0, STRIP);
    }
    crew_sync();
    UNROLL for (int e = 0; e < EACH; ++e)
        if (to[e] >= 0) chip.origin[to[e]] = from[e];
    crew_sync();
}

// U = L^-1 A. A warp has some columns for itself.
__device__ inline void solve_tile(const Trailing& chip, Output lu, int tid) {
    const int warp = crew_warp<TENSOR>(tid), lane = tid % WARP, first = warp * SHARE;
    const auto fetch = [&](int k) { fetch_columns(chip.panel(k), lu, k, k + NB, STRIP, Share<CREW>{tid, 0, 1}); };
    fetch(0);
#pragma unroll 1
    for (int k = 0; k < STRIP; k += NB) {
        wait_copies<0>();
        crew_sync();
        if (k + NB < STRIP) fetch(k + NB);
        const Resident left = chip.panel(k);
        if (lane < SHARE) {
            const Lower l = lower_of(left, k);
            Scalar *column = chip.upper.at(k, first + lane), y[NB];
            UNROLL for (int j = 0; j < NB; ++j) y[j] = column[j];
            solve_lower(y, l);
            UNROLL for (int j = 0; j < NB; ++j) column[j] = y[j];
        }
        Lanes::sync();
        if (k + NB < STRIP) update_columns<SHARE>(chip.upper, left, k + NB, k, first, first + SHARE, STRIP, lane);
    }
    crew_sync();
}

// The trailing matrix from row and column `base` on, which `a` and `lu` are; they may be one. `pivots` and `status` are of all of the matrix, of order `order`.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getrf_trailing(Operand a, Operand lu, const u32* pivots, u32* status, u64 batch, int order, int base) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n = order - base, tid = threadIdx.x, lane = tid % WARP, warp = crew_warp<true>(tid), across = warp % ACROSS * BROAD;
    const Trailing chip(memory);
    const u64 tiles = (n - STRIP + TILE - 1) / TILE;
    for (u64 item = blockIdx.x; item < batch * tiles; item += gridDim.x) {
        const u64 b = item / tiles;
        const int column = STRIP + int(item % tiles) * TILE, width = min(TILE, n - column);
        const Output out(lu, b);
        const Exchanged source = {{Input(a, b), column}, chip.origin};
        const Placed place = {out, column};
        trace(chip, pivots + b * order + base, n, base, tid);
        for (int e = tid; e < STRIP * TILE; e += CREW) {
            const int i = e % STRIP, c = e / STRIP;
            if (c < width) {
                copy_async(chip.upper.at(i, c), source.at(i, c));
            } else {
                *chip.upper.at(i, c) = zero<Scalar>();
            }
        }
        commit_copies();
        solve_tile(chip, out, tid);
        for (int e = tid; e < Trailing::LINES; e += CREW) chip.lines()[e] = *chip.upper.at(e / TILE, e % TILE);
        if (!TENSOR) crew_sync();
#pragma unroll 1
        for (int top = STRIP + warp / ACROSS * Products::TALL; top < n && across < width; top += CREW_WARPS / ACROSS * Products::TALL) {
            Products products(chip, out, top, across, n, lane);
            products.load(source, width);
            if (top + Products::TALL <= n) {
                products.subtract_strip<true>();
            } else {
                products.subtract_strip<false>();
            }
            products.store(place, width);
        }
        crew_sync();  // rows of A that have gone below are read before those of U are written where they stood
        bool bad = false;
        for (int e = tid; e < STRIP * width; e += CREW) {
            const int i = e % STRIP, c = e / STRIP;
            const Scalar u = *chip.upper.at(i, c);
            bad = bad || !is_finite(u);
            *place.at(i, c) = u;
        }
        if (crew_any(bad) && tid == 0) atomicExch(status + b, NOT_FINITE);
        crew_sync();
    }
}
