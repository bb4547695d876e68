// Where the elements of a batch lie, and how many of them a load moves at once.
#pragma once
#include "scalar.cuh"

// Element (b, i, j) lies at (b / lanes) * group + b % lanes + i * row + j * col.
struct Operand {
    Scalar* data;
    u64 lanes, group, row, col;

    __device__ Scalar* matrix(u64 b) const { return data + (lanes == 1 ? b * group : b / lanes * group + b % lanes); }
};

// One matrix of an operand. `UnitRows`: neighbours in a column are neighbours in memory, known when compiled.
template <bool UnitRows>
struct MatrixAt {
    Scalar* origin;
    u64 row, col;

    __device__ MatrixAt(const Operand& batch, u64 b)
        : origin(batch.matrix(b)), row(UnitRows ? 1 : batch.row), col(batch.col) {}
    __device__ Scalar* at(u64 i, u64 j) const { return origin + (UnitRows ? i : i * row) + j * col; }
};

// Sixteen bytes of numbers: what one shared-memory instruction moves.
struct alignas(16) Pack {
    static constexpr int LENGTH = 16 / sizeof(Scalar);
    Scalar value[LENGTH];
};
