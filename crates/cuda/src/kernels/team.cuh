// How the threads of a matrix go about its block columns, and what they share.
#pragma once
#include "panel.cuh"

constexpr bool RIGHT_LOOKING = BATCHLA_RIGHT_LOOKING;
// Interchange: 1 serial, 2 warp-grouped, both at once on both sides; 3 warp-grouped, delayed on the right.
constexpr int INTERCHANGE = BATCHLA_INTERCHANGE;
constexpr bool DELAYED = INTERCHANGE == 3 && !RIGHT_LOOKING;

// Where the rows of a block lie within one warp, that warp solves with a diagonal block alone.
constexpr bool ROWS_IN_ONE_WARP = LANES % NB == 0;
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
struct alignas(16) Team : Election {
    Scalar upper[2][NB][LINE];     // rows of U, to be multiplied with
    Scalar diagonal[KEEPS_DIAGONAL ? 1 : NB][LINE];  // columns of the unit lower triangle that makes them
    Moves moves;
};

// Shared memory of a team whose size depends on the order: the panel where it is not in registers, the streamed part, diagonal
// blocks, and of each row its origin and, with the panel, its place.
struct Shared {
    Scalar *panel, *ring;
    Scalar (*diagonal)[LINE];
    Position *origin, *place;

    // Of a matrix of which the first `columns` are factored.
    __device__ Shared(unsigned char* memory, int order, int team, int columns) {
        const u64 padded = (order + THREADS - 1) / THREADS * THREADS;
        const u64 streamed = STAGES * AHEAD * ROWS * THREADS, lines = KEEPS_DIAGONAL ? (columns + NB - 1) / NB * NB : 0;
        const u64 elements = rounded((ROWS > 0 ? streamed : u64(order + 1) * NB) * sizeof(Scalar));
        const u64 diagonals = lines * LINE * sizeof(Scalar);
        const u64 positions = rounded((ROWS > 0 ? 1 : 2) * padded * sizeof(Position));
        unsigned char* part = memory + team * (elements + diagonals + positions);
        panel = ring = reinterpret_cast<Scalar*>(part);
        diagonal = reinterpret_cast<Scalar(*)[LINE]>(part + elements);
        origin = reinterpret_cast<Position*>(part + elements + diagonals);
        place = origin + padded;
    }
    __device__ Shared(unsigned char* memory, int order, int team) : Shared(memory, order, team, order) {}
    static __device__ u64 rounded(u64 bytes) { return (bytes + 15) / 16 * 16; }
};
