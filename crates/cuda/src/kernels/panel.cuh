// The panel: the block column that is being factored, one row (or every THREADS-th) a thread.
#pragma once
#include "block.cuh"
#include "warp.cuh"

constexpr int THREADS = BATCHLA_THREADS;  // threads that work on one matrix
constexpr int LANES = THREADS < WARP ? THREADS : WARP;  // small matrices share a warp
constexpr int WARPS = THREADS / LANES;
typedef Group<LANES> Lanes;

typedef MatrixAt<BATCHLA_UNIT_ROWS_IN> Input;
typedef MatrixAt<BATCHLA_UNIT_ROWS_OUT> Output;

// The threads of one matrix wait for each other.
__device__ inline void team_sync() {
    if (WARPS == 1) {
        Lanes::sync();
    } else {
        __syncthreads();
    }
}
__device__ inline bool team_any(bool x) { return WARPS == 1 ? Lanes::any(x) : __syncthreads_or(x); }

// Rows tid, tid + THREADS ... of the panel. `position[r]` is the place that row r has after the exchanges so far, or -1 for
// rows beyond the matrix; rows move only when the panel is stored.
template <int Rows>
struct Panel {
    Scalar element[Rows][NB];
    Position position[Rows];

    __device__ Panel(Scalar*, Position*, int, int) {}
    __device__ constexpr int rows() const { return Rows; }
    __device__ Scalar& at(int r, int c, int) { return element[r][c]; }
    __device__ Position& place(int r, int) { return position[r]; }
    // Whether row r stands below block row q.
    __device__ bool below(int r, int q, int) const { return position[r] >= q + NB; }
};

// The same in shared memory, for orders that registers cannot hold: column by column, one element further apart than the order. A thread
// has no rows beyond the matrix.
template <>
struct Panel<0> {
    Scalar* element;
    Position* position;
    int stride, count;

    __device__ Panel(Scalar* element, Position* position, int order, int tid)
        : element(element), position(position), stride(order + 1), count(max(order - tid + THREADS - 1, 0) / THREADS) {}
    __device__ int rows() const { return count; }
    __device__ Scalar& at(int r, int c, int tid) { return element[c * stride + r * THREADS + tid]; }
    __device__ Position& place(int r, int tid) { return position[r * THREADS + tid]; }
    __device__ bool below(int r, int q, int tid) const { return position[r * THREADS + tid] >= q + NB; }
};

// A pack of a line in shared memory.
__device__ inline Pack pack_on_chip(const Scalar* line) {
    Pack x;
    load_sixteen(parts(x.value), parts(line));
    return x;
}

// Two numbers that one instruction moves where they are 16 bytes at most.
struct alignas(2 * sizeof(Scalar) < 16 ? 2 * sizeof(Scalar) : 16) Pair {
    Scalar value[2];
};

// A row offered as the pivot row by one warp, the reciprocal of its pivot and the place where it stands and, where there are more warps, what these compare.
struct alignas(16) Candidate {
    static constexpr int TOLD = PACKS * Pack::LENGTH;
    static constexpr int BYTES = TOLD * sizeof(Scalar) + sizeof(Pair) + (WARPS > 1 ? 2 * sizeof(u32) : 0);
    // An odd number of packs: threads that read different rows meet in few banks.
    Scalar row[(((BYTES + 15) / 16) | 1) * Pack::LENGTH];

    __device__ Pair& told() { return *reinterpret_cast<Pair*>(row + TOLD); }
    __device__ void tell(Scalar reciprocal, Position place) { told() = {{reciprocal, carrying<Scalar>(place)}}; }
    __device__ Position place() { return carried(told().value[1]); }
    __device__ u32& upper() { return reinterpret_cast<u32*>(&told() + 1)[0]; }
    __device__ u32& lower() { return reinterpret_cast<u32*>(&told() + 1)[1]; }
};

constexpr int CANDIDATE = sizeof(Candidate) / sizeof(Scalar);  // elements from one to the next

// Whether all candidates of a panel are kept, so that the rows chosen need not be written down again.
constexpr bool ALL_KEPT = WARPS <= 2;

// The rows chosen, where they are written down again.
template <bool Kept>
struct Chosen {
    Scalar row[NB][LINE];
    __device__ Scalar* chosen_again(int j) { return row[j]; }
};
template <>
struct Chosen<true> {
    __device__ Scalar* chosen_again(int) { return nullptr; }
};

// What it takes to choose pivots, and the rows chosen.
struct alignas(16) Election : Chosen<ALL_KEPT> {
    Candidate candidate[ALL_KEPT ? NB : 2][WARPS];
    u32 zero;     // the first column whose pivot is zero
    u64 meeting;  // of warps whose ways part

    // By one thread, some barriers before the first panel's end.
    __device__ void begin() { zero = ~0u; }
    // LAPACK's info.
    __device__ u32 info() const { return zero == ~0u ? 0 : zero + 1; }
    __device__ Candidate* candidates(int j) { return candidate[ALL_KEPT ? j : j & 1]; }
    // The row chosen in column j, as seen by a thread of the warp that had it.
    __device__ Scalar* chosen(int j, int tid) {
        return ALL_KEPT ? candidate[ALL_KEPT ? j : 0][tid / LANES].row : chosen_again(j);
    }
};
