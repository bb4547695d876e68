// op(A) X = B from A = P L U: an exchange of rows and two triangular sweeps. Of a matrix a crew has some right-hand sides, which stay on chip, and each group of its warps some of
// these. A band of their rows takes what solved rows have for it, in registers, then is solved, right-looking. The triangles come from memory, the band's part of a panel at a
// time, while the one before is worked with.
#include "tile.cuh"

constexpr int CREW_WARPS = CREW / LANES;
constexpr int SHARE = BATCHLA_COLUMNS;        // right-hand sides of a group: a power of two
constexpr int GROUPS = WINDOW / SHARE;
constexpr int SPLIT = CREW_WARPS / GROUPS;    // warps of a group, each with rows of its own
constexpr bool WHOLE = BATCHLA_BAND == 0;     // one band has all rows
constexpr int BAND = WHOLE ? 1 << 24 : BATCHLA_BAND;
constexpr int HEIGHT = BAND / SPLIT;  // rows of a band that are a warp's
static_assert(GROUPS * SHARE == WINDOW && GROUPS * SPLIT == CREW_WARPS && HEIGHT * SPLIT == BAND && BAND % NB == 0, "equal shares");
static_assert(WARP % NB == 0 && LANES == WARP && SHARE >= 8 && SHARE <= WARP, "whole tiles, a lane a right-hand side");

// Doubles take long: where nothing is divided by there is a text without quotients, and where a number is two of them, all lanes of a warp work at a block on the diagonal.
constexpr bool PRECISE = sizeof(Real) == 8;
constexpr int DEEP = PRECISE && PARTS == 2 && PACKS % (WARP / SHARE) == 0 ? WARP / SHARE : 1;  // lanes of a right-hand side

typedef MatrixAt<false> Matrix;

// Shared memory: right-hand sides, a band of two panels, the reciprocals of U's diagonal. Whole panels: beyond the matrix all is zero.
struct SystemsChip {
    Resident sides, panels;
    Scalar* reciprocal;

    __device__ SystemsChip(unsigned char* memory, int order)
        : sides{reinterpret_cast<Scalar*>(memory), Resident::stride_of(order)}, panels{sides.at(0, WINDOW), Resident::stride_of(WHOLE ? order : BAND)}, reciprocal(panels.at(0, 2 * NB)) {}
    // One of the two, by the rows and columns of the matrix: row `top` and column `first` are the first there.
    __device__ Resident panel(int which, int top, int first) const { return {panels.at(-top, which % 2 * NB - first), panels.stride}; }
};

// Where both sweeps are: at the panel of columns from k on, and the band of rows from `band` on.
struct Step {
    int band, k, order;
    bool forward, done;

    __device__ int end() const { return WHOLE ? order : min(band + BAND, order); }
    __device__ bool near() const { return k >= band && k < end(); }
    // Of the panel's rows, those that take part.
    __device__ int top() const { return forward && near() ? k : band; }
    __device__ int bottom() const { return !forward && near() ? k + NB : end(); }
    __device__ void advance() {
        k += forward ? NB : -NB;
        if (forward && k == order) {
            forward = false;
            k -= NB;
        } else if (forward && k == end()) {
            band += BAND;
            k = 0;
        } else if (!forward && k < band) {
            done = band == 0;
            band -= BAND;
            k = order - NB;
        }
    }
};

// Begins to copy rows `top` .. `end` of the panel at `first`, neighbours in memory by neighbouring threads.
__device__ inline void fetch_panel(Resident to, const Matrix& a, int first, int top, int end, int n, int tid) {
    const int last = min(first + NB, n), below = min(end, n), warp = tid / WARP, lane = tid % WARP;
    if (a.row == 1 && (below - top) % Pack::LENGTH == 0 && (u64(a.at(top, first)) | a.col * sizeof(Scalar)) % sizeof(Pack) == 0) {
        if (WHOLE && !PRECISE) {
            for (int j = first + warp; j < last; j += CREW_WARPS)
                for (int i = top + lane * Pack::LENGTH; i < below; i += WARP * Pack::LENGTH) copy_async(to.pack(i, j), reinterpret_cast<const Pack*>(a.at(i, j)));
        } else {
            // Fewer instructions, more registers.
            constexpr int STRIDE = WARP * Pack::LENGTH, ROUNDS = WHOLE ? 4 : (BAND + STRIDE - 1) / STRIDE;
            const int own = top + lane * Pack::LENGTH, rows = below - own;
            const Scalar* from = a.at(own, first + warp);
            Scalar* target = to.at(own, first + warp);
#pragma unroll 2
            for (int j = first + warp; j < last; j += CREW_WARPS, from += CREW_WARPS * a.col, target += CREW_WARPS * to.stride)
#pragma unroll ROUNDS
                for (int i = 0; i < (WHOLE ? rows : BAND); i += STRIDE)
                    if (WHOLE || i < rows) copy_async(reinterpret_cast<Pack*>(target + i), reinterpret_cast<const Pack*>(from + i));
        }
    } else if (a.row < a.col) {
        for (int j = first + warp; j < last; j += CREW_WARPS)
            for (int i = top + lane; i < below; i += WARP) copy_async(to.at(i, j), a.at(i, j));
    } else {
        for (int j = first + lane % NB; j < last; j += WARP)
            for (int i = top + warp * (WARP / NB) + lane / NB; i < below; i += CREW / NB) copy_async(to.at(i, j), a.at(i, j));
    }
    commit_copies();
    for (int j = first + tid; j < first + NB && (end > n || first + NB > n); j += CREW)
        for (int i = j < n ? max(top, n) : top; i < end; ++i) *to.at(i, j) = zero<Scalar>();
}

// x = T^-1 x for the block T at `first` on the diagonal and its rows of one right-hand side; `divides`: T's diagonal is not ones. Its `DEEP` lanes have packs of rows in turn.
template <bool Lower>
__device__ inline void solve_corner(Resident a, int first, Scalar* x, const Scalar* reciprocal, int lane, bool divides) {
    constexpr int LONG = Pack::LENGTH, OWN = PACKS / DEEP;
    const int part = DEEP == 1 ? 0 : lane % DEEP;
    x += first + part * LONG;
    Scalar y[OWN][LONG], solved[OWN][LONG];
    UNROLL for (int q = 0; q < OWN; ++q)
        UNROLL for (int r = 0; r < LONG; ++r) y[q][r] = x[q * DEEP * LONG + r];
    UNROLL for (int s = 0; s < NB; ++s) {
        const int k = Lower ? s : NB - 1 - s, pack = k / LONG / DEEP, owner = k / LONG % DEEP, place = k % LONG;
        const Scalar quotient = Divisor<Scalar>{*a.at(first + k, first + k), reciprocal[first + k]}.by_reciprocal(y[pack][place]);
        Scalar told = divides ? quotient : y[pack][place];
        if (DEEP > 1) told = Group<DEEP>::broadcast(told, owner);
        if (part == owner) solved[pack][place] = told;
        // Rows that are solved go on with the others where lanes would differ.
        UNROLL for (int q = 0; q < OWN; ++q) {
            if (Lower ? q < pack : q > pack) continue;
            const Pack t = *a.pack(first + (q * DEEP + part) * LONG, first + k);
            UNROLL for (int r = 0; r < LONG; ++r)
                if (DEEP > 1 || q != pack || (Lower ? r > place : r < place)) y[q][r] = subtract_product(y[q][r], t.value[r], told);
        }
    }
    UNROLL for (int q = 0; q < OWN; ++q)
        UNROLL for (int r = 0; r < LONG; ++r) x[q * DEEP * LONG + r] = solved[q][r];
}

// The same where a pivot may not be divided by through its reciprocal; short, for it is seldom wanted.
template <bool Lower>
__device__ inline void solve_corner_with_care(Resident a, int first, int last, Scalar* x) {
#pragma unroll 1
    for (int s = 0; s < last - first; ++s) {
        const int k = Lower ? first + s : last - 1 - s;
        const Scalar solved = divisor(*a.at(k, k)).into(x[k]);
        x[k] = solved;
#pragma unroll 1
        for (int i = Lower ? k + 1 : first; i < (Lower ? last : k); ++i) x[i] = subtract_product(x[i], *a.at(i, k), solved);
    }
}

// Moves elements (i, c) of the `own` right-hand sides of a group, of which the calling warp is number `part`, neighbours in memory by neighbouring lanes.
template <class F>
__device__ inline void move_sides(const Matrix& m, int n, int own, int part, int lane, F move) {
    if (m.row < m.col) {
        for (int c = part; c < own; c += SPLIT)
#pragma unroll 4
            for (int i = lane; i < n; i += WARP) move(i, c);
    } else {
        for (int c = lane % SHARE; c < own; c += WARP)
#pragma unroll 4
            for (int i = (part * WARP + lane) / SHARE; i < n; i += SPLIT * WARP / SHARE) move(i, c);
    }
}

__device__ inline void group_sync() {
    if (SPLIT == 1) {
        Lanes::sync();
    } else {
        crew_sync();
    }
}

// Rows `top` .. `end` of a group's right-hand sides, less what the panel at `k` has for them.
template <bool Upwards>
__device__ inline void update_sides(Resident sides, Resident left, int top, int end, int k, int part, int lane) {
    const int each = ((end - top + SPLIT - 1) / SPLIT + 31) / 32 * 32, own = SPLIT == 1 ? top : top + part * each;
    update_columns<SHARE, Upwards>(sides, left, own, k, 0, SHARE, SPLIT == 1 ? end : min(own + each, end), lane);
}

// One sweep over a crew's right-hand sides.
template <bool Forward>
struct Sweep {
    const SystemsChip& chip;
    Resident sides;  // of the group
    int part, lane, n;
    bool divides, safe;

    // `next()`: waits for the panel that is due, begins with the one after it, and gives where the former lies.
    template <class F>
    __device__ void solve_band(int band, int end, int order, F next) {
        const int from = Forward ? 0 : order - NB;
        if (!WHOLE && (Forward ? band > 0 : end < order)) {
#if BATCHLA_TENSOR
            Tile<WHOLE ? 4 : HEIGHT / 8, SHARE / STEP> tile(sides, sides, band + part * HEIGHT, 0, SHARE, end, lane);
#else
            Tile<WHOLE ? 4 * WARP : HEIGHT, SHARE> tile(sides, sides, band + part * HEIGHT, 0, SHARE, end, lane);
#endif
            const auto there = [&](int i, int, bool = true) { return i < end; };
            tile.load(sides, there);
#pragma unroll 1
            for (int k = from; Forward ? k < band : k >= end; k += Forward ? NB : -NB) {
                tile.left = next();
                if (tile.i < end) tile.template subtract<Forward, false>(k, k + NB);
            }
            tile.store(there);
        }
#pragma unroll 1
        for (int k = Forward ? band : end - NB; Forward ? k < end : k >= band; k += Forward ? NB : -NB) {
            const Resident left = next();
            if (part == 0 && (SHARE * DEEP == WARP || lane < SHARE)) {
                Scalar* side = sides.at(0, lane / DEEP);
                const auto solve = [&](bool divides) { solve_corner<Forward>(left, k, side, chip.reciprocal, lane, divides); };
                if (PRECISE && !divides) {
                    solve(false);
                } else if (!divides || safe) {
                    solve(PRECISE || divides);
                } else if (lane % DEEP == 0) {
                    solve_corner_with_care<Forward>(left, k, min(k + NB, n), side);
                }
            }
            group_sync();
            update_sides<Forward>(sides, left, Forward ? k + NB : band, Forward ? end : k, k, part, lane);
        }
    }
};

// `form`: 0 A, 1 A^T, 2 A^H, for which right-hand sides and solutions are conjugated. `one_matrix`: it serves the whole batch (`lu` then steps by nothing). `status` holds
// each result's word so far; results that are not finite raise it. `b` and `x` may be one.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getrs_resident(Operand lu, const u32* rows, u32 one_matrix, Operand b, Operand x, u32* status, u64 batch, int n, int columns, int form) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int order = order_on_chip(n), tid = threadIdx.x, lane = tid % WARP;
    const int warp = PRECISE ? Warp::broadcast(tid / WARP, 0) : tid / WARP, group = warp % GROUPS, part = warp / GROUPS;
    const SystemsChip chip(memory, order);
    const u64 tiles = (columns + WINDOW - 1) / WINDOW;

    for (u64 item = blockIdx.x; item < batch * tiles; item += gridDim.x) {
        const u64 m = item / tiles;
        const int first_side = item % tiles * WINDOW + group * SHARE, own = min(SHARE, columns - first_side);
        const u32* origin = rows + (one_matrix ? 0 : m * n);
        const Matrix right(b, m), result(x, m);
        Matrix a(lu, m);
        if (form != 0) {
            const u64 row = a.row;
            a.row = a.col;
            a.col = row;
        }
        Step step = {0, 0, order, true, false};
        int which = 0;
        const auto fetch = [&] { fetch_panel(chip.panel(which, step.top(), step.k), a, step.k, step.top(), step.bottom(), n, tid); };
        const auto next = [&] {
            const Resident panel = chip.panel(which, step.top(), step.k);
            wait_copies<0>();
            crew_sync();
            step.advance();
            ++which;
            if (!step.done) fetch();
            return panel;
        };
        fetch();
        bool unsafe = false;
        for (int k = tid; k < order; k += CREW) {
            const Divisor<Scalar> by = divisor(k < n ? *a.at(k, k) : one<Scalar>());
            unsafe |= !by.safe();
            chip.reciprocal[k] = by.reciprocal;
        }
        const Resident sides = {chip.sides.at(0, group * SHARE), chip.sides.stride};
        move_sides(right, n, own, part, lane, [&](int i, int c) {
            const Scalar value = *right.at(form == 0 ? origin[i] : i, first_side + c);
            *sides.at(i, c) = form == 2 ? conjugate(value) : value;
        });
        for (int c = part == 0 ? lane : SHARE; c < SHARE; c += WARP)
            for (int i = c < own ? n : 0; i < order; ++i) *sides.at(i, c) = zero<Scalar>();
        const bool safe = !__syncthreads_or(unsafe);

        Sweep<true> forward = {chip, sides, part, lane, n, form != 0, safe};
#pragma unroll 1
        for (int band = 0; band < order; band += BAND) forward.solve_band(band, min(band + BAND, order), order, next);
        Sweep<false> backward = {chip, sides, part, lane, n, form == 0, safe};
#pragma unroll 1
        for (int band = (order - 1) / BAND * BAND; band >= 0; band -= BAND) backward.solve_band(band, min(band + BAND, order), order, next);
        group_sync();
        Real trace = 0;  // as long as all is finite
        move_sides(result, n, own, part, lane, [&](int i, int c) {
            const Scalar value = *sides.at(i, c);
            trace = traced(trace, value);
            *result.at(form == 0 ? i : origin[i], first_side + c) = form == 2 ? conjugate(value) : value;
        });
        // Blocks of one matrix may see failures at once.
        if (__syncthreads_or(!(trace == 0)) && tid == 0) atomicCAS(status + m, 0u, NOT_FINITE);
    }
}
