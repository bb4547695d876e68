// What inversion takes from the left and from the right, each thread with its own rows: a block column of a matrix on chip, less products.
#pragma once
#include "tile.cuh"

// Row r is row `tid + r * CREW` of the matrix; columns are those from `first` on.
struct Rows {
    Scalar element[OWN_ROWS][NB];
    Resident a;
    int first, n, order, tid;

    __device__ Rows(Resident a, int first, int n, int order, int tid) : a(a), first(first), n(n), order(order), tid(tid) {}

    template <class F>
    __device__ void for_each(F f) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int c = 0; c < NB; ++c) f(element[r][c], tid + r * CREW, first + c);
    }
    // The block on the diagonal, kept from what takes its place.
    __device__ void copy_corner(Scalar (&corner)[NB][LINE]) const {
        for (int e = tid; e < NB * NB; e += CREW) corner[e % NB][e / NB] = *a.at(first + e % NB, first + e / NB);
    }

#if BATCHLA_TENSOR
    // Rows of the identity, less X[., 0 .. first] U[0 .. first, .] for the triangular X on the left. On return nobody reads the block column any more.
    __device__ void subtract_left() {
        by_tiles<true>();
        for_each([&](Scalar& x, int i, int j) { x = i < first ? *a.at(i, j) : i == j ? one<Scalar>() : zero<Scalar>(); });
    }
    // Rows of the upper triangle, less X[., first + NB .. n] L[first + NB .. n, .] for the X on the right, from the last column on.
    __device__ void subtract_right() {
        by_tiles<false>();
        for_each([&](Scalar& x, int i, int j) { x = i < order ? *a.at(i, j) : zero<Scalar>(); });
    }
    // The sums, put in the place of the block column.
    template <bool Left>
    __device__ void by_tiles() {
        typedef Tile<4, NB / STEP> Part;
        constexpr int COUNT = NB / STEP * 8;
        Real kept[OWN_ROWS][COUNT];
        const int top = tid / LANES * LANES, lane = tid % LANES;
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, a, top + r * CREW, first, order, order, lane);
            if (tile.i >= order) continue;
            tile.load([&](int i, int j) { return !Left && i <= j; });
            if (Left) {
                tile.template subtract<true, true>(tile.i, first);
            } else {
                tile.template subtract<false, false>(first + NB, n);
            }
            UNROLL for (int e = 0; e < COUNT; ++e) kept[r][e] = tile.sum[e / 8][e / 2 % 4][e % 2];
        }
        crew_sync();
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, a, top + r * CREW, first, order, order, lane);
            UNROLL for (int e = 0; e < COUNT; ++e) tile.sum[e / 8][e / 2 % 4][e % 2] = kept[r][e];
            tile.store([&](int i, int) { return i < (Left ? first : order); });
        }
        Lanes::sync();
    }
#else
    __device__ void subtract_left() {
        for_each([](Scalar& x, int i, int j) { x = i == j ? one<Scalar>() : zero<Scalar>(); });
        const int top = tid / LANES * LANES;  // whole warps below a block have nothing to do
        if (top < first) subtract_above(top / NB * NB);
        crew_sync();
    }
    __device__ void subtract_right() {
        for_each([&](Scalar& x, int i, int j) { x = i <= j ? *a.at(i, j) : zero<Scalar>(); });
        int k = n;
        while (k > first + NB && k % NB != 0) subtract_row<false>(--k);
        for (; k > first + NB; k -= NB) subtract_block<false, false>(k - NB);
        crew_sync();
    }
    // Own element of column k; `Masked`: zero on the left of the diagonal.
    template <bool Masked>
    __device__ Scalar own(int r, int k) const {
        const int i = tid + r * CREW;
        return Masked && k < i ? zero<Scalar>() : *a.at(min(i, order - 1), k);
    }
    // Less own elements of column k times row k.
    template <bool Masked>
    __device__ void subtract_row(int k) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            const Scalar left = own<Masked>(r, k);
            UNROLL for (int c = 0; c < NB; ++c) element[r][c] = subtract_product(element[r][c], left, *a.at(k, first + c));
        }
    }
    // The same for k .. k + NB, upwards or downwards: the order in which a sum is taken is part of the arithmetic.
    template <bool Upwards, bool Masked>
    __device__ void subtract_block(int k) {
        UNROLL for (int q = 0; q < PACKS; ++q) {
            const int p = Upwards ? q : PACKS - 1 - q;
            Scalar left[OWN_ROWS][Pack::LENGTH];
            UNROLL for (int r = 0; r < OWN_ROWS; ++r)
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s) left[r][s] = own<Masked>(r, k + p * Pack::LENGTH + s);
            UNROLL for (int c = 0; c < NB; ++c) {
                const Pack u = *a.pack(k + p * Pack::LENGTH, first + c);
                UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                    const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                    UNROLL for (int r = 0; r < OWN_ROWS; ++r) element[r][c] = subtract_product(element[r][c], left[r][s], u.value[s]);
                }
            }
        }
    }
    __device__ void subtract_above(int begin) {
        for (int k = begin; k < first; k += NB) subtract_block<true, true>(k);
    }
#endif
};
