// A matrix that stays on chip: read once, worked on in shared memory, written once.
#pragma once
#include "panel.cuh"

static_assert(NB % Pack::LENGTH == 0, "panels of whole packs");

constexpr int TEAMS = BATCHLA_TEAMS;  // matrices a block; above one only where a team is a warp or less

// Column-major. Columns are an odd number of packs apart: few lanes meet in a bank, whether they take neighbours in a column or in a row.
struct Resident {
    Scalar* origin;
    int stride;

    static __device__ int stride_of(int order) { return ((order + Pack::LENGTH - 1) / Pack::LENGTH | 1) * Pack::LENGTH; }
    __device__ Scalar* at(int i, int j) const { return origin + i + j * stride; }
    // Rows i, i + 1 ... of a pack.
    __device__ Pack* pack(int i, int j) const { return reinterpret_cast<Pack*>(at(i, j)); }
};

// Shared memory of a team: the matrix, the reciprocals of its diagonal, exchanges, and of each row its origin.
struct Chip {
    Resident matrix;
    Scalar* reciprocal;
    u32* pivots;
    Position* origin;

    __device__ Chip(unsigned char* memory, int order, int team) {
        const u32 stride = Resident::stride_of(order), padded = (order + 3) / 4 * 4;
        unsigned char* part = memory + team * (stride * order * u32(sizeof(Scalar)) + padded * u32(sizeof(Scalar) + sizeof(u32) + sizeof(Position)));
        matrix = {reinterpret_cast<Scalar*>(part), int(stride)};
        reciprocal = matrix.origin + stride * order;
        pivots = reinterpret_cast<u32*>(reciprocal + padded);
        origin = reinterpret_cast<Position*>(pivots + padded);
    }
};

// A block column of rows in registers: row r is row `top + tid + r * THREADS` of the matrix.
struct Rows {
    Scalar element[ROWS][NB];
    const Scalar* own[ROWS];  // in the matrix's first column; rows beyond its end take the last

    __device__ Rows(Resident a, int top, int order, int tid) {
        UNROLL for (int r = 0; r < ROWS; ++r) own[r] = a.at(min(top + tid + r * THREADS, order - 1), 0);
    }
    // Less own element k times row k of the block column `first`. Own elements on the left of the diagonal, by row `i`, count as zero where `Masked`.
    template <bool Masked>
    __device__ void subtract_row(Resident a, int first, int width, int k, int i) {
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const Scalar left = Masked && k < i + r * THREADS ? zero<Scalar>() : own[r][k * a.stride];
            UNROLL for (int c = 0; c < NB; ++c)
                if (c < width) element[r][c] = subtract_product(element[r][c], left, *a.at(k, first + c));
        }
    }
    // The same for rows `k` .. `k + NB`, upwards or downwards: the order in which a sum is taken is part of the arithmetic.
    template <bool Upwards, bool Masked>
    __device__ void subtract_block(Resident a, int first, int k, int i) {
        UNROLL for (int q = 0; q < PACKS; ++q) {
            const int p = Upwards ? q : PACKS - 1 - q;
            Scalar left[ROWS][Pack::LENGTH];
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s) {
                    left[r][s] = own[r][(k + p * Pack::LENGTH + s) * a.stride];
                    if (Masked && k + p * Pack::LENGTH + s < i + r * THREADS) left[r][s] = zero<Scalar>();
                }
            UNROLL for (int c = 0; c < NB; ++c) {
                const Pack u = *a.pack(k + p * Pack::LENGTH, first + c);
                UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                    const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                    UNROLL for (int r = 0; r < ROWS; ++r) element[r][c] = subtract_product(element[r][c], left[r][s], u.value[s]);
                }
            }
        }
    }
    // The same for rows `begin` .. `first`, both whole blocks.
    template <bool Masked>
    __device__ void subtract_above(Resident a, int begin, int first, int width, int i) {
        if (width == NB) {
            for (int k = begin; k < first; k += NB) subtract_block<true, Masked>(a, first, k, i);
        } else {
#pragma unroll 1
            for (int k = begin; k < first; ++k) subtract_row<Masked>(a, first, width, k, i);
        }
    }
};

// Begins to copy columns `from` .. `order`; a thread copies its own rows where neighbours in a column are neighbours in memory.
__device__ inline void fetch_columns(Resident to, Input a, int from, int order, int tid) {
    constexpr bool OWN = BATCHLA_UNIT_ROWS_IN;
    const int begin = OWN ? 0 : from, lines = OWN ? order - from : order;
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int i = begin + tid + r * THREADS;
        if (i >= order) continue;
        const Scalar* source = OWN ? a.at(i, from) : a.at(0, i);
        Scalar* target = OWN ? to.at(i, from) : to.at(0, i);
        const u64 step = OWN ? a.col : a.row;
        const int stride = OWN ? to.stride : 1;
#pragma unroll 4
        for (int line = 0; line < lines; ++line, source += step, target += stride) copy_async(target, source);
    }
    commit_copies();
}

// Writes all of it. Neighbouring threads take neighbours in memory.
__device__ inline void store(Resident from, Output to, int order, int tid) {
    constexpr bool OWN = BATCHLA_UNIT_ROWS_OUT;
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int i = tid + r * THREADS;
        if (i >= order) continue;
        const Scalar* source = OWN ? from.at(i, 0) : from.at(0, i);
        Scalar* target = OWN ? to.at(i, 0) : to.at(0, i);
        const u64 step = OWN ? to.col : to.row;
        const int stride = OWN ? from.stride : 1;
#pragma unroll 4
        for (int line = 0; line < order; ++line, source += stride, target += step) *target = *source;
    }
}
