// The panel: the block column that is being factored, one row (or every THREADS-th) a thread.
#pragma once
#include "operand.cuh"
#include "warp.cuh"

constexpr int NB = BATCHLA_NB;            // columns of a panel
constexpr int THREADS = BATCHLA_THREADS;  // threads that work on one matrix
constexpr int ROWS = BATCHLA_ROWS;        // rows a thread holds in registers; 0: the panel lies in shared memory
constexpr int LANES = THREADS < WARP ? THREADS : WARP;  // small matrices share a warp
constexpr int WARPS = THREADS / LANES;
typedef Group<LANES> Lanes;

// The threads of one matrix wait for each other.
__device__ inline void team_sync() {
    if (WARPS == 1) {
        Lanes::sync();
    } else {
        __syncthreads();
    }
}
__device__ inline bool team_any(bool x) { return WARPS == 1 ? Lanes::any(x) : __syncthreads_or(x); }

constexpr bool RIGHT_LOOKING = BATCHLA_RIGHT_LOOKING;
// Interchange: 1 serial, 2 warp-grouped, both at once on both sides; 3 warp-grouped, delayed on the right.
constexpr int INTERCHANGE = BATCHLA_INTERCHANGE;
constexpr bool DELAYED = INTERCHANGE == 3 && !RIGHT_LOOKING;

// Where the rows of a block lie within one warp, that warp solves with a diagonal block alone.
constexpr bool ROWS_IN_ONE_WARP = LANES % NB == 0;
// A row of the panel in shared memory, by whole packs, and one more against bank conflicts.
constexpr int PACKS = (NB + Pack::LENGTH - 1) / Pack::LENGTH;
constexpr int LINE = (PACKS + 1) * Pack::LENGTH;

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

// A row offered as the pivot row by one warp, with the reciprocal of its pivot.
struct alignas(16) Candidate {
    Scalar row[LINE];
    Scalar reciprocal;
    u64 key;
    Position place;
};

// Columns of the streamed part that are fetched at a time.
constexpr int AHEAD = BATCHLA_AHEAD;
// How many such fetches shared memory has room for; 0: they go to registers, within a block column.
constexpr int STAGES = BATCHLA_STAGES;

// Whether the diagonal blocks stay in shared memory once they are factored.
constexpr bool KEEPS_DIAGONAL = STAGES > 0 && !RIGHT_LOOKING;

// The exchanges of a panel, and the moves that they come to.
struct Moves {
    Position pivot[NB];
    Position from[2 * NB], to[2 * NB];
    int count;
};

// What the threads of one matrix share, beside what depends on the order.
struct alignas(16) Team {
    Scalar upper[2][NB][LINE];     // rows of U, to be multiplied with
    Scalar diagonal[KEEPS_DIAGONAL ? 1 : NB][LINE];  // columns of the unit lower triangle that makes them
    Candidate candidate[2][WARPS];
    Moves moves;
};

// Shared memory of a team whose size depends on the order: the panel where it is not in registers, the streamed part, diagonal
// blocks, and of each row its origin and, with the panel, its place.
struct Shared {
    Scalar *panel, *ring;
    Scalar (*diagonal)[LINE];
    Position *origin, *place;

    __device__ Shared(unsigned char* memory, int order, int team) {
        const u64 padded = (order + THREADS - 1) / THREADS * THREADS;
        const u64 streamed = STAGES * AHEAD * ROWS * THREADS, lines = KEEPS_DIAGONAL ? (order + NB - 1) / NB * NB : 0;
        const u64 elements = rounded((ROWS > 0 ? streamed : u64(order + 1) * NB) * sizeof(Scalar));
        const u64 diagonals = lines * LINE * sizeof(Scalar);
        const u64 positions = rounded((ROWS > 0 ? 1 : 2) * padded * sizeof(Position));
        unsigned char* part = memory + team * (elements + diagonals + positions);
        panel = ring = reinterpret_cast<Scalar*>(part);
        diagonal = reinterpret_cast<Scalar(*)[LINE]>(part + elements);
        origin = reinterpret_cast<Position*>(part + elements + diagonals);
        place = origin + padded;
    }
    static __device__ u64 rounded(u64 bytes) { return (bytes + 15) / 16 * 16; }
};
