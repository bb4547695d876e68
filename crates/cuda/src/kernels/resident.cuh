// What of a matrix is on chip: all, or some columns at a time. Read once, worked on in shared memory, written once.
#pragma once
#include "panel.cuh"
#include "streaming.cuh"

static_assert(NB % Pack::LENGTH == 0, "panels of whole packs");

constexpr bool INVERTS = BATCHLA_INVERTS;  // the kernel gives the inverse, otherwise the factors
// Columns of a matrix that are on chip at a time, whole panels; 0: all.
constexpr int WINDOW = BATCHLA_WINDOW;
constexpr int TEAMS = BATCHLA_TEAMS;  // matrices a block; above one only where a team is a warp or less
// Warps of a matrix beside the one, or less, that factors its panels; all are its crew.
constexpr int HELPERS = BATCHLA_HELPERS;
constexpr int CREW = THREADS + HELPERS * WARP;
constexpr int OWN_ROWS = (ROWS * THREADS + CREW - 1) / CREW;  // where the whole crew shares the rows
// Of those, how many a thread moves side by side, so that it waits for them once: where they are few, one after another is faster.
constexpr int ABREAST = OWN_ROWS > 2 ? OWN_ROWS : 1;
static_assert(WARPS == 1, "one warp factors panels");
static_assert(WINDOW % NB == 0 && (WINDOW == 0 || TEAMS == 1), "windows of whole panels, one matrix a block");
static_assert(HELPERS == 0 || (LANES == WARP && TEAMS == 1), "helpers of one warp");

__device__ inline void crew_sync() {
    if (HELPERS == 0) {
        Lanes::sync();
    } else {
        __syncthreads();
    }
}
__device__ inline bool crew_any(bool x) { return HELPERS == 0 ? Lanes::any(x) : __syncthreads_or(x); }

// The calling thread's number in its crew. Which warp factors panels depends on the block's slot, so that blocks of four warps do not keep one quarter
// of the multiprocessor busy with that and three at leisure.
__device__ inline int crew_thread() {
    if (HELPERS % 2 == 0) return TEAMS == 1 ? threadIdx.x : threadIdx.x % CREW;
    __shared__ u32 turn;
    if (threadIdx.x == 0) turn = warp_slot() / 4;
    __syncthreads();
    return (threadIdx.x + turn * WARP) % CREW;
}

// The number of its warp in its crew. `Uniform`: in a way that shows the compiler that it is one number for all of a warp, whose threads then never part; most kernels are faster so.
template <bool Uniform>
__device__ inline int crew_warp(int tid) {
    if (CREW == LANES) return 0;
    return Uniform && LANES == WARP ? Lanes::broadcast(tid / LANES, 0) : tid / LANES;
}

// Warps that a quarter of the multiprocessor is to have. Kernels whose registers leave room for one more are slower, as if quarters took in more than their share while others wait for work (times
// say so; no counter was read): where the compiler takes so few of its own accord, `hold_registers` is in the kernel, though it is never run. Measured for c32 alone.
constexpr int WARPS_A_QUARTER = (BATCHLA_BLOCKS * CREW * TEAMS / WARP + 3) / 4;
constexpr bool CROWDS = Number<Scalar>::COMPLEX && sizeof(Scalar) == 8 && WINDOW == 0 && HELPERS == 1 && WARPS_A_QUARTER == 3;
__device__ NOINLINE void hold_registers(volatile u32* memory) {
    constexpr int MOST = 512, HELD = MOST / (WARPS_A_QUARTER + 1);  // registers a thread, of one warp in a quarter; beside those held there are a few for addresses
    u32 held[HELD];
    UNROLL for (int i = 0; i < HELD; ++i) held[i] = memory[i];
    UNROLL for (int i = 0; i < HELD; ++i) memory[i + 1] = held[i];
}

// Zero as long as all that it was shown is finite.
template <class R>
__device__ inline R traced(R trace, R x) {
    return fused(x, R(0), trace);
}
template <class R>
__device__ inline R traced(R trace, Complex<R> x) {
    return traced(traced(trace, x.re), x.im);
}

// What is known of the order when compiled: all where there is one panel; how many panels where there are more; 0: nothing.
constexpr int ORDER = BATCHLA_ORDER;
constexpr int EXACT = BATCHLA_EXACT;  // the order itself, where a class of orders has a kernel for this one alone
// Factors in memory have the room of all of a class of orders, and are there what they are on chip: beyond the matrix they are the identity. Whole packs can be copied.
constexpr bool PADDED = BATCHLA_PADDED;
// One panel goes from memory to registers and back; then nothing is beyond the matrix but what fills a pack.
constexpr bool IN_REGISTERS = ORDER > 0 && ORDER <= NB && HELPERS == 0;
constexpr int WIDTH = IN_REGISTERS ? ORDER : NB;  // columns of a panel that take part
__device__ inline int known(int n) { return ORDER > 0 && ORDER <= NB ? ORDER : n; }
// Row r of a thread, where the whole crew shares the rows: whether it is one of the matrix, known of most when compiled; and itself, or the last one.
__device__ constexpr bool surely_there(int r) { return ORDER > NB && (r + 1) * CREW <= ORDER - NB + 1; }
__device__ inline bool is_there(int r, int tid, int n) { return surely_there(r) || tid + r * CREW < n; }
__device__ inline int row_or_last(int r, int tid, int n) { return surely_there(r) ? tid + r * CREW : min(tid + r * CREW, n - 1); }
// On chip a matrix of order n has whole panels: what is beyond it is the identity.
__device__ inline int order_on_chip(int n) { return ORDER > NB || IN_REGISTERS ? ORDER : ORDER > 0 ? NB : (n + NB - 1) / NB * NB; }

// Bytes by which something of so many bytes is to be longer, so that the same `own` bytes of neighbours lie in neighbouring banks.
constexpr u32 BANKS = 128;  // bytes that all banks of shared memory hold side by side
__device__ constexpr u32 stagger(u32 bytes, u32 own) { return LANES == WARP ? 0 : (2 * BANKS + own % BANKS - bytes % BANKS) % BANKS; }

// Whether columns of doubles begin on and off a pack in turn, in memory (an odd order, no gaps or even ones) and so on chip too: then whole packs can be copied.
constexpr bool ODD = BATCHLA_ODD && Pack::LENGTH == 2;
// Whether columns of complex doubles begin on and off a sector of L2 in turn: two copies that share one then ask for it once, as it stays in L1.
constexpr bool HALVES = BATCHLA_ODD && Pack::LENGTH == 1;
// Column-major. Columns are an odd number of packs apart, or of elements (`ODD`): few lanes meet in a bank, whether they take neighbours in a column or in a row.
struct Resident {
    Scalar* origin;
    int stride;

    static __device__ int stride_of(int order) {
        const int packs = (order + Pack::LENGTH - 1) / Pack::LENGTH | 1;
        // Pairs of doubles of two rows and two columns meet in no bank where three or five more than a multiple of eight are apart.
        const int more = WINDOW == 0 || sizeof(Scalar) < 16 ? 0 : packs % 8 == 7 ? 4 : packs % 8 == 1 ? 2 : 0;
        return ODD ? order | 1 : (packs + more) * Pack::LENGTH;
    }
    __device__ Scalar* at(int i, int j) const { return origin + i + j * stride; }
    // From a row to the next.
    static __device__ int step() { return 1; }
    // Rows i, i + 1 ... of a pack: where they lie, but for `ODD`.
    __device__ Pack* pack(int i, int j) const { return reinterpret_cast<Pack*>(at(i, j)); }
    __device__ Pack read(int i, int j) const {
        if (!ODD) return *pack(i, j);
        Pack x;
        UNROLL for (int s = 0; s < Pack::LENGTH; ++s) x.value[s] = *at(i + s, j);
        return x;
    }
    __device__ void write(int i, int j, const Pack& x) const {
        if (!ODD) *pack(i, j) = x;
        UNROLL for (int s = 0; ODD && s < Pack::LENGTH; ++s) *at(i + s, j) = x.value[s];
    }
};

// Columns of a window that a warp has where they are held in registers (`held.cuh`), whole steps of products, and the height of them.
constexpr int OWN_COLUMNS = (WINDOW + CREW / LANES * STEP - 1) / (CREW / LANES * STEP) * STEP, OWN_HEIGHT = ((ORDER > NB ? ORDER : ROWS * LANES) + 15) / 16 * 16;
// Two steps at most, as far as registers hold that: else too few blocks have room, or too much is kept in memory.
constexpr bool HOLDS = BATCHLA_TENSOR && WINDOW >= 2 * NB && OWN_COLUMNS <= 2 * STEP && OWN_HEIGHT * OWN_COLUMNS * int(sizeof(Scalar)) <= 160 * 4 * WARP;
// Beside the window's place are the rows of U that warps solve for, instead of two panels.
constexpr int FRONT_STRIDE = (PACKS | 1) * Pack::LENGTH, FRONTS = CREW / LANES * OWN_COLUMNS * FRONT_STRIDE;

// A row, or where it stands.
typedef unsigned char Place;
// The same where registers hold columns and are scarce: bytes take some to be read.
template <bool Scarce>
struct Row {
    typedef Place Type;
};
template <>
struct Row<true> {
    typedef Position Type;
};
typedef Row<HOLDS>::Type Origin;

// Shared memory of a crew whose size depends on the order: the matrix, what is beside a window, of each row its origin
// and, row by row, the place in which it stands in each block column; exchanges; origins as they were when each window had been done; for inversion
// (`INVERTS`), the reciprocals of the diagonal.
struct Chip {
    Resident matrix, panels;
    Scalar* reciprocal;
    Origin* origin;
    Place *pivots, *place, *past;
    int blocks, done;  // of block columns on chip, and of windows before the last

    // `first`: where the matrix begins in memory; only how far from a pack matters.
    __device__ Chip(unsigned char* memory, int order, int team, const Scalar* first = nullptr) {
        const u32 stride = Resident::stride_of(order), columns = WINDOW > 0 ? WINDOW : order, padded = (order + 15) / 16 * 16;
        blocks = (columns + NB - 1) / NB;
        done = WINDOW > 0 ? (order - 1) / WINDOW : 0;
        const u32 beside = WINDOW == 0 ? 0 : HOLDS ? FRONTS : 2 * NB * stride, elements = stride * columns + beside + (INVERTS ? padded : 0);
        const u32 bytes = elements * u32(sizeof(Scalar)) + padded * (u32(sizeof(Origin) + sizeof(Place)) + blocks + done);
        unsigned char* part = memory + team * (bytes + stagger(bytes, LANES * sizeof(Scalar) > 16 ? LANES * sizeof(Scalar) : 16));
        Scalar* const start = reinterpret_cast<Scalar*>(part);
        matrix = {start + (ODD ? u64(first) % sizeof(Pack) / sizeof(Scalar) : 0), int(stride)};
        panels = {start + columns * stride, HOLDS ? FRONT_STRIDE : int(stride)};
        reciprocal = panels.origin;
        origin = reinterpret_cast<Origin*>(part + elements * u32(sizeof(Scalar)));
        pivots = reinterpret_cast<Place*>(origin + padded);
        place = pivots + padded;
        past = place + padded * blocks;
    }
    // The matrix, of which column `window` is the first on chip.
    __device__ Resident columns_from(int window) const { return {matrix.origin - window * matrix.stride, matrix.stride}; }
    // Where the row that has come from row i stands in block column `block` of those on chip; of rows of U, which stand where they belong, it is not known.
    __device__ Place& place_of(int i, int block) const { return place[i * blocks + block]; }
    // Where row i of the result, which has come from row `from`, stands in the block column from column `first` on, `begin` being the first on chip.
    __device__ int row_in(int i, int from, int first, int begin) const { return i < first + NB ? i : place_of(from, (first - begin) / NB); }
    // Whence the row has come that stood at place i when window `w` had been done.
    __device__ Place& past_origin(int i, int w) const { return past[i * done + w]; }
};

// What teams of one warp use at the same time.
template <class T>
struct alignas(16) Staggered : T {
    unsigned char apart[16 + stagger(sizeof(T) + 16, 16)];
};

// The first `T` that begins where an element does or, with `ODD`, later.
template <class T, class E>
__device__ inline T* first_from(E* x) {
    return reinterpret_cast<T*>(ODD ? (u64(x) + sizeof(T) - sizeof(E)) / sizeof(T) * sizeof(T) : u64(x));
}

// Whether L2 is to let go of what is read once before columns that windows read again: numbers of four bytes lost by it.
constexpr bool ONCE = WINDOW > 0 && sizeof(Scalar) > 4;
template <bool Once, class T>
__device__ inline void copy(T* shared, const T* global) {
    if (Once) {
        copy_once<HOLDS && Pack::LENGTH == 1>(shared, global);
    } else if constexpr (HALVES) {
        copy_by_lines(shared, global);
    } else {
        copy_async(shared, global);
    }
}

// The calling thread's share of a piece of work: thread `own` of group `group` of `groups`, of `Wide` threads each.
template <int Wide>
struct Share {
    int own, group, groups;

    __device__ int thread() const { return group * Wide + own; }
    __device__ int threads() const { return groups * Wide; }
};

// Begins to copy columns `from` .. `end` of a matrix, `T` by `T`, neighbours by neighbouring threads. A column is asked for whole before the next: what two copies share of a line comes
// once if they follow each other.
template <class T, bool Once, int Wide>
__device__ inline void fetch_by(Resident to, Input a, int from, int end, int n, Share<Wide> share) {
    constexpr int LENGTH = sizeof(T) / sizeof(Scalar), MOST = ((ORDER > 0 ? ORDER : ROWS * LANES) + LENGTH - 1) / LENGTH;
    // Where columns are short, some side by side.
    constexpr int DEEP = MOST > Wide / 2 ? Wide : MOST > Wide / 4 ? Wide / 2 : Wide / 4, ROUNDS = (MOST + DEEP - 1) / DEEP, COLUMNS = Wide / DEEP;
    constexpr int AT_ONCE = WINDOW == NB ? 1 : LENGTH < Pack::LENGTH ? 4 : ROUNDS > 2 ? 1 : 4 / ROUNDS;  // as measured
    const int row = share.own % DEEP * LENGTH, column = from + share.group * COLUMNS + share.own / DEEP, step = share.groups * COLUMNS;
    const Scalar* source = a.at(row, column);
    Scalar* target = to.at(row, column);
#pragma unroll(AT_ONCE)
    for (int j = column; j < end; j += step, source += step * a.col, target += step * to.stride)
        UNROLL for (int r = 0; r < ROUNDS; ++r)
            if (row + (r * DEEP + 1) * LENGTH <= n) copy<Once>(first_from<T>(target) + r * DEEP, first_from<const T>(source) + r * DEEP);
}

// Begins to copy columns `from` .. `end` of a matrix, by packs where all begin where one does (`ODD`: or half a pack later, in turn), else by elements.
template <bool Once = false, int Wide>
__device__ inline void fetch_columns(Resident to, Input a, int from, int end, int n, Share<Wide> share) {
    if (BATCHLA_UNIT_ROWS_IN) {
        const auto begins = [&](int j) { return u64(a.at(0, j)) % sizeof(Pack) == 0; };
        if (Pack::LENGTH > 1 && (ODD || begins(from) && a.col % Pack::LENGTH == 0)) {
            fetch_by<Pack, Once>(to, a, from, end, n, share);
            // The rest, a row at a time: a copy by one lane costs as much as by all.
#pragma unroll 1
            for (int i = n / Pack::LENGTH * Pack::LENGTH; i < n; ++i)
#pragma unroll 1
                for (int j = from + share.thread(); j < end; j += share.threads()) {
                    const int k = ODD && !begins(j) ? 0 : i;
                    copy_async(to.at(k, j), a.at(k, j));
                }
        } else {
            fetch_by<Scalar, Once>(to, a, from, end, n, share);
        }
    } else {
        // A thread has a column.
#pragma unroll 1
        for (int j = from + share.thread(); j < end; j += share.threads()) {
            const Scalar* source = a.at(0, j);
            Scalar* target = to.at(0, j);
#pragma unroll 4
            for (int i = 0; i < n; ++i, source += a.row, ++target) copy_async(target, source);
        }
    }
    commit_copies();
}

// The part of columns `from` .. `end` that is beyond a matrix of order n: row k and column k of the identity, for each k from n on.
template <int Wide>
__device__ inline void fill_beyond(Resident a, int from, int end, int n, int order, Share<Wide> share) {
#pragma unroll 1
    for (int k = n; k < order; ++k)
#pragma unroll 1
        for (int j = from + share.thread(); j < end; j += share.threads()) *a.at(k, j) = j == k ? one<Scalar>() : zero<Scalar>();
#pragma unroll 1
    for (int k = max(n, from) + share.group; k < end; k += share.groups)
#pragma unroll 1
        for (int i = share.own; i < n; i += Wide) *a.at(i, k) = zero<Scalar>();
}

// Writes columns `begin` .. `end` of a matrix, which are on chip, rows where they belong. Returns whether an element is not finite. Neighbouring threads take neighbours in memory.
__device__ inline bool store(const Chip& chip, Output to, int begin, int end, int n, int thread) {
    constexpr int REST_AT_ONCE = Number<Scalar>::COMPLEX && Pack::LENGTH == 2 ? NB : 1;  // as measured
    const Resident from = chip.columns_from(begin);
    const int tid = opaque(thread);  // no address is kept from window to window
    Real trace = 0;                  // as long as all is finite
    UNROLL for (int top = 0; BATCHLA_UNIT_ROWS_OUT && top < OWN_ROWS; top += ABREAST) {
        if (ABREAST == 1 && !is_there(top, tid, n)) continue;
        int origin[ABREAST];
        UNROLL for (int r = 0; r < ABREAST; ++r) origin[r] = chip.origin[row_or_last(top + r, tid, n)];
        Scalar* target = to.at(tid + top * CREW, begin);
#pragma unroll 1
        for (int first = begin; first < end; first += NB) {
            const Scalar* source[ABREAST];
            UNROLL for (int r = 0; r < ABREAST; ++r) source[r] = from.at(chip.row_in(row_or_last(top + r, tid, n), origin[r], first, begin), first);
            const auto put = [&](int r, Scalar x) {
                trace = traced(trace, x);
                if (ABREAST == 1 || is_there(top + r, tid, n)) target[r * CREW] = x;
            };
            if (first + NB <= end) {
                Scalar x[ABREAST][NB];
                UNROLL for (int r = 0; r < ABREAST; ++r)
                    UNROLL for (int c = 0; c < NB; ++c) x[r][c] = source[r][c * from.stride];
                UNROLL for (int c = 0; c < NB; ++c, target += to.col)
                    UNROLL for (int r = 0; r < ABREAST; ++r) put(r, x[r][c]);
            } else {
#pragma unroll(REST_AT_ONCE)
                for (int c = 0; c < NB - 1; ++c, target += to.col)
                    UNROLL for (int r = 0; r < ABREAST; ++r)
                        if (first + c < end) put(r, source[r][c * from.stride]);
            }
        }
    }
    for (int j = begin + tid; !BATCHLA_UNIT_ROWS_OUT && j < end; j += CREW)
        for (int i = 0; i < n; ++i) {
            const Scalar x = *from.at(chip.row_in(i, chip.origin[i], j - (j - begin) % NB, begin), j);
            trace = traced(trace, x);
            *to.at(i, j) = x;
        }
    return !(trace == 0);
}
