// What columns behind some factored ones take: these exchanges; U = L^-1 A in their rows; the rest less L U. A block has a tile of columns.
#include "origin.cuh"
#include "trailing.cuh"

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
        if (to[e] >= 0) from[e] = origin_of(to[e], chip.pivots, 0, k < 0 ? t + 1 : k + 1);
    }
    crew_sync();
    UNROLL for (int e = 0; e < EACH; ++e)
        if (to[e] >= 0) chip.origin[to[e]] = from[e];
    crew_sync();
}

// `f(i, c)` for rows i before `depth` and columns c of the tile: neighbouring threads have neighbouring rows, and each the same in all of its columns.
template <class F>
__device__ inline void for_upper(int depth, int tid, F f) {
    constexpr int ROWS_ABREAST = MOST < CREW ? MOST : CREW, SETS = CREW / ROWS_ABREAST;
    if (tid >= ROWS_ABREAST * SETS) return;
    for (int i = tid % ROWS_ABREAST; i < depth; i += ROWS_ABREAST)
#pragma unroll 4
        for (int c = tid / ROWS_ABREAST; c < TILE; c += SETS) f(i, c);
}

// U = L^-1 A. A warp has some columns for itself.
__device__ inline void solve_tile(const Trailing& chip, Output lu, int depth, int tid) {
    const int warp = crew_warp<TENSOR>(tid), lane = tid % WARP, first = warp * SHARE;
    const auto fetch = [&](int k) {  // rows from k on
        const Resident to = chip.panel(k);
        Output from = lu;
        from.origin = lu.at(k, 0);
        fetch_columns({to.at(k, 0), to.stride}, from, k, k + NB, depth - k, Share<CREW>{tid, 0, 1});
    };
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

// Rows `top` .. `stop` of the tile, `Times` some rows at most, less L U, by a warp.
template <int Times>
__device__ inline void subtract(const Trailing& chip, const Exchanged& source, const Placed& place, int top, int stop, int first, int depth, int width, int lane) {
    Products<Times> products(chip, place.matrix, top, first, depth, stop, lane);
    products.load(source, width);
    if (top + Times * DEEP <= stop) {
        products.template subtract<true>();
    } else {
        products.template subtract<false>();
    }
    products.store(place, width);
}

// The matrix from row and column `base` on, which `a` and `lu` are; they may be one. Of it `given` columns are factored, and those behind them, before column `end` of all of the matrix, of order
// `order`, which `pivots` are of, take their part. Where an element of U is not finite, neither is what is below it, which is looked at when that is factored.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getrf_trailing(Operand a, Operand lu, const u32* pivots, u64 batch, int order, int base, int given, int end) {
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
        trace(chip, pivots + b * order + base, depth, n, base, opaque(tid));
        for_upper(depth, opaque(tid), [&](int i, int c) {
            if (c < width) {
                copy_async(chip.upper.at(i, c), source.at(i, c));
            } else {
                *chip.upper.at(i, c) = zero<Scalar>();
            }
        });
        commit_copies();
        solve_tile(chip, out, depth, opaque(tid));
        for (int e = tid; !TENSOR && e < depth * TILE; e += CREW) chip.lines()[e] = *chip.upper.at(e / TILE, e % TILE);
        if (!TENSOR) crew_sync();
        // Rows are shared out evenly, so that no warp waits long for another.
        constexpr int SHARERS = CREW_WARPS / ACROSS * DEEP;
        const int rows = max((n - depth + SHARERS - 1) / SHARERS, LESS) * DEEP, begin = depth + warp / ACROSS * rows, stop = across < width ? min(n, begin + rows) : 0;
#pragma unroll 1
        for (int top = begin; top < stop;) {
            const int left = (stop - top + DEEP - 1) / DEEP, parts = (left + TALL - 1) / TALL;
            if (TALL == LESS || left > parts * LESS) {
                subtract<TALL>(chip, source, place, top, stop, across, depth, width, opaque(lane));
                top += TALL * DEEP;
            } else {
                subtract<LESS>(chip, source, place, top, stop, across, depth, width, opaque(lane));
                top += LESS * DEEP;
            }
        }
        crew_sync();  // rows of A that have gone below are read before those of U are written where they stood
        for_upper(depth, opaque(tid), [&](int i, int c) {
            if (c < width) *place.at(i, c) = *chip.upper.at(i, c);
        });
        crew_sync();
    }
}
