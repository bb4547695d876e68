// What columns behind some factored ones take: these exchanges; U = L^-1 A in their rows; the rest less L U. A block has a tile of columns, a warp some of its rows at a time, in registers,
// while L streams by from memory.
#include "lookahead.cuh"
#include "origin.cuh"

constexpr int MOST = WINDOW;           // of the factored columns
constexpr bool ALWAYS = BATCHLA_TOGETHER == 1;  // whether there are always as many
constexpr int TILE = BATCHLA_COLUMNS;  // columns of a tile
constexpr int AHEAD = BATCHLA_AHEAD;   // steps, or columns, of L that are on their way
constexpr int DOWN = BATCHLA_DOWN;     // by matrix instructions, sixteens of rows that a warp has at a time
constexpr int BROAD = TENSOR ? 8 * STEP / DOWN : 32, ACROSS = TILE / BROAD;  // columns that a warp has, and how many warps have the same rows
constexpr int CREW_WARPS = CREW / WARP, SHARE = TILE / CREW_WARPS;  // columns of U that a warp solves for
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

// Rows of the tile from `top` on and columns from `first` on, by matrix instructions. Neighbours in a column are neighbours in the instruction: few sectors of memory hold them, wherever columns begin.
struct Products {
    static constexpr int TALL = 16 * DOWN, GROUPS = 2 * DOWN, TILES = BROAD / STEP, TURN = AHEAD * STEP;
    // A warp waits for all loads that it has asked for, not for one of them. Of two sets, one is asked for when the other has come, and is on its way as long as that is multiplied with; real numbers,
    // of which registers hold no two, are asked for step by step.
    static constexpr int SETS = PARTS;
    Real sum[TILES][GROUPS][2];
    Resident upper;
    Output lu;
    int first, depth, order, row, line, column;  // the first column, columns of L, rows that there are; of this lane, the first row, and which line and column of the instruction's operands

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int depth, int n, int lane)
        : upper(chip.upper), lu(lu), first(first), depth(depth), order(n), row(top + lane / 4), line(lane / 4), column(lane % 4) {}
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
struct Products {
    static constexpr int DEEP = sizeof(Scalar) == 4 ? 16 : 8, TALL = 256 / sizeof(Scalar), COUNT = TALL / DEEP, WIDE = BROAD / (WARP / DEEP);
    static_assert(WIDE % Pack::LENGTH == 0, "whole packs of a line");
    Scalar sum[COUNT][WIDE];
    Output lu;
    int depth, order, first, lane_row;  // columns of L, rows that there are; the lane's first column, and its first row
    const Scalar* lines;

    __device__ Products(const Trailing& chip, Output lu, int top, int first, int depth, int n, int lane)
        : lu(lu), depth(depth), order(n), first(first + lane / DEEP * WIDE), lane_row(top + lane % DEEP), lines(chip.lines() + this->first) {}
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
    __device__ void subtract() {
        Scalar own[AHEAD][COUNT];
        const Scalar* column = lu.at(0, 0);
        const auto fetch = [&](Scalar (&x)[COUNT]) {
            UNROLL for (int r = 0; r < COUNT; ++r) x[r] = column[row<Whole>(r) * lu.row];
            column += lu.col;
        };
        UNROLL for (int s = 0; s < AHEAD; ++s) fetch(own[s]);
#pragma unroll 1
        for (int k = 0; k < depth; k += AHEAD)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                Pack u[WIDE / Pack::LENGTH];
                UNROLL for (int p = 0; p < WIDE / Pack::LENGTH; ++p) u[p] = reinterpret_cast<const Pack*>(lines + (k + s) * TILE)[p];
                UNROLL for (int r = 0; r < COUNT; ++r)
                    UNROLL for (int c = 0; c < WIDE; ++c)
                        sum[r][c] = subtract_product(sum[r][c], own[s][r], u[c / Pack::LENGTH].value[c % Pack::LENGTH]);
                if (k + s + AHEAD < depth) fetch(own[s]);
            }
    }
};

#endif

// Whence all rows have come by the exchanges of `depth` columns. Most have not moved; of those below them that have, the last of their exchanges tells where they come from.
__device__ inline void trace(const Trailing& chip, const u32* exchanges, int depth, int n, int base, int tid) {
    constexpr int EACH = (2 * MOST + CREW - 1) / CREW;
    for (int i = tid; i < n; i += CREW) chip.origin[i] = i;
    crew_sync();
    for (int k = tid; k < depth; k += CREW) {
        const Position i = exchanges[k] - base;
        chip.pivots[k] = i;
        if (i >= depth) atomicMin(&chip.origin[i], -1 - k);
    }
    crew_sync();
    Position to[EACH], from[EACH];
    UNROLL for (int e = 0; e < EACH; ++e) {
        const int t = tid + e * CREW, k = t - depth;
        to[e] = k < 0 ? t : k < depth ? chip.pivots[k] : -1;
        if (k >= 0 && (to[e] < depth || chip.origin[to[e]] != -1 - k)) to[e] = -1;
        if (to[e] >= 0) from[e] = origin_of(to[e], chip.pivots, 0, depth);
    }
    crew_sync();
    UNROLL for (int e = 0; e < EACH; ++e)
        if (to[e] >= 0) chip.origin[to[e]] = from[e];
    crew_sync();
}

// `f(i, c)` for rows i before `depth` and columns c of the tile: neighbouring threads have neighbouring rows, and each the same in all of its columns.
template <class F>
__device__ inline void for_upper(int depth, int tid, F f) {
    constexpr int DEEP = MOST < CREW ? MOST : CREW, SETS = CREW / DEEP;
    if (tid >= DEEP * SETS) return;
    for (int i = tid % DEEP; i < depth; i += DEEP)
#pragma unroll 4
        for (int c = tid / DEEP; c < TILE; c += SETS) f(i, c);
}

// U = L^-1 A. A warp has some columns for itself.
__device__ inline void solve_tile(const Trailing& chip, Output lu, int depth, int tid) {
    const int warp = crew_warp<TENSOR>(tid), lane = tid % WARP, first = warp * SHARE;
    const auto fetch = [&](int k) { fetch_columns(chip.panel(k), lu, k, k + NB, depth, Share<CREW>{tid, 0, 1}); };
    fetch(0);
#pragma unroll 1
    for (int k = 0; k < depth; k += NB) {
        wait_copies<0>();
        crew_sync();
        if (k + NB < depth) fetch(k + NB);
        const Resident left = chip.panel(k);
        if (lane < SHARE) {
            const Lower l = lower_of(left, k);
            Scalar *column = chip.upper.at(k, first + lane), y[NB];
            UNROLL for (int j = 0; j < NB; ++j) y[j] = column[j];
            solve_lower(y, l);
            UNROLL for (int j = 0; j < NB; ++j) column[j] = y[j];
        }
        Lanes::sync();
        if (k + NB < depth) update_columns<SHARE>(chip.upper, left, k + NB, k, first, first + SHARE, depth, lane);
    }
    crew_sync();
}

// The matrix from row and column `base` on, which `a` and `lu` are; they may be one. Of it `given` columns are factored, and those behind them, before column `end` of all of the matrix, of order
// `order`, which `pivots` and `status` are of, take their part.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getrf_trailing(Operand a, Operand lu, const u32* pivots, u32* status, u64 batch, int order, int base, int given, int end) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n = order - base, depth = ALWAYS ? MOST : given, tid = threadIdx.x, lane = tid % WARP, warp = crew_warp<true>(tid), across = warp % ACROSS * BROAD;
    const Trailing chip(memory);
    const u64 tiles = (end - base - depth + TILE - 1) / TILE;
    for (u64 item = blockIdx.x; item < batch * tiles; item += gridDim.x) {
        const u64 b = item / tiles;
        const int column = depth + int(item % tiles) * TILE, width = min(TILE, end - base - column);
        const Output out(lu, b);
        const Exchanged source = {{Input(a, b), column}, chip.origin};
        const Placed place = {out, column};
        trace(chip, pivots + b * order + base, depth, n, base, tid);
        for_upper(depth, tid, [&](int i, int c) {
            if (c < width) {
                copy_async(chip.upper.at(i, c), source.at(i, c));
            } else {
                *chip.upper.at(i, c) = zero<Scalar>();
            }
        });
        commit_copies();
        solve_tile(chip, out, depth, tid);
        for (int e = tid; !TENSOR && e < depth * TILE; e += CREW) chip.lines()[e] = *chip.upper.at(e / TILE, e % TILE);
        if (!TENSOR) crew_sync();
#pragma unroll 1
        for (int top = depth + warp / ACROSS * Products::TALL; top < n && across < width; top += CREW_WARPS / ACROSS * Products::TALL) {
            Products products(chip, out, top, across, depth, n, lane);
            products.load(source, width);
            if (top + Products::TALL <= n) {
                products.subtract<true>();
            } else {
                products.subtract<false>();
            }
            products.store(place, width);
        }
        crew_sync();  // rows of A that have gone below are read before those of U are written where they stood
        bool bad = false;
        for_upper(depth, tid, [&](int i, int c) {
            if (c >= width) return;
            const Scalar u = *chip.upper.at(i, c);
            bad = bad || !is_finite(u);
            *place.at(i, c) = u;
        });
        if (crew_any(bad) && tid == 0) atomicExch(status + b, NOT_FINITE);
        crew_sync();
    }
}
