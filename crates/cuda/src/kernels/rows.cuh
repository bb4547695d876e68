// What inversion takes from the left and from the right, each thread with its own rows: a block column of a matrix on chip, less products with solved ones, which
// are on chip too or, by windows, in memory.
#pragma once
#include "tile.cuh"

constexpr bool STREAMED = WINDOW > 0;

// Quotients by a diagonal with such reciprocals.
__device__ inline auto quotients(const Scalar (*corner)[LINE], const Scalar* reciprocal) {
    return [=](Scalar x, int c, bool wanted) { return wanted ? Divisor<Scalar>{corner[c][c], reciprocal[c]}.into(x) : x; };
}

// Row r is row `tid + r * CREW` of the matrix; columns are those from `first` on. `left`: solved columns.
template <class Left>
struct Rows {
    Scalar element[OWN_ROWS][NB];
    Resident a;
    Left left;
    int first, n, order, tid;

    __device__ Rows(Resident a, Left left, int first, int n, int order, int tid) : a(a), left(left), first(first), n(n), order(order), tid(tid) {}

    template <class F>
    __device__ void for_each(F f) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int c = 0; c < NB; ++c) f(element[r][c], tid + r * CREW, first + c);
    }
    // Whether (i, j) is on the upper triangle. What lies in memory has no columns beyond the matrix.
    __device__ bool wanted(int i, int j) const { return i <= j && (!STREAMED || j < n); }
    // The block on the diagonal, kept from what takes its place.
    __device__ void copy_corner(Scalar (*corner)[LINE]) const {
        for (int e = STREAMED ? opaque(tid) : tid; e < NB * NB; e += CREW)
            if (!STREAMED || first + e % NB < n)
                corner[e % NB][e / NB] = !STREAMED || first + e / NB < n ? *a.at(first + e % NB, first + e / NB) : zero<Scalar>();
    }
    // What is left of X U = I within the block, from the left to the right; `quotient(x, c, wanted)`: of x and the diagonal's element c, or x
    // where that is not wanted.
    template <int Line, class F>
    __device__ void solve_upper(const Scalar (*corner)[Line], F quotient) {
        UNROLL for (int c = 0; c < NB; ++c) {
            if ((STREAMED || IN_REGISTERS) && first + c >= n) break;
            UNROLL for (int r = 0; r < OWN_ROWS; ++r) element[r][c] = quotient(element[r][c], c, tid + r * CREW <= first + c);
            subtract_line(c, corner, c + 1, WIDTH);
        }
    }
    // The same of X L = U^-1, from the right to the left.
    template <int Line>
    __device__ void solve_lower(const Scalar (*corner)[Line]) {
        UNROLL for (int c = NB - 1; c > 0; --c)
            if (first + c < n) subtract_line(c, corner, 0, c);
    }
    // Of columns `begin` .. `end`, less column c times its line.
    template <int Line>
    __device__ void subtract_line(int c, const Scalar (*corner)[Line], int begin, int end) {
        Scalar line[PACKS * Pack::LENGTH];
        UNROLL for (int p = begin / Pack::LENGTH; p * Pack::LENGTH < end; ++p)
            *reinterpret_cast<Pack*>(line + p * Pack::LENGTH) = *reinterpret_cast<const Pack*>(&corner[c][p * Pack::LENGTH]);
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int d = begin; d < end; ++d) element[r][d] = subtract_product(element[r][d], element[r][c], line[d]);
    }

#if BATCHLA_TENSOR
    // Rows of the identity, less X[., 0 .. first] U[0 .. first, .] for the triangular X on the left. `ready` is called before the block column is read; on return nobody
    // but, without STREAMED, its own thread reads it any more.
    template <class F>
    __device__ void subtract_left(F ready) {
        by_tiles<true>(a, ready);
        for_each([&](Scalar& x, int i, int j) { x = i < first ? *a.at(i, j) : i == j ? one<Scalar>() : zero<Scalar>(); });
        if (STREAMED) crew_sync();
    }
    // Rows of the upper triangle of `from`, less X[., first + NB .. n] L[first + NB .. n, .] for the X on the right, from the last column on.
    template <class M, class F>
    __device__ void subtract_right(const M& from, F ready) {
        by_tiles<false>(from, ready);
        for_each([&](Scalar& x, int i, int j) { x = i < order ? *a.at(i, j) : zero<Scalar>(); });
        if (STREAMED) crew_sync();
    }
    // The sums, put in the place of the block column.
    template <bool Upwards, class M, class F>
    __device__ void by_tiles(const M& from, F ready) {
        typedef Tile<4, NB / STEP, Left> Part;
        constexpr bool WHOLE = ORDER > 0 && ORDER % 32 == 0 && (Left::PADDED || EXACT == ORDER);  // no tile has rows beyond the matrix
        constexpr int COUNT = NB / STEP * 8, AHEAD = 2;
        Real kept[OWN_ROWS][COUNT];
        const int top = crew_warp<true>(tid) * LANES, lane = tid % LANES;
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, left, top + r * CREW, first, first + NB, order, lane);
            const bool there = tile.i < order;
            const int begin = Upwards ? tile.i : first + NB, end = Upwards ? first : n;
            Real ahead[AHEAD][4][2] = {};  // what is not written would take its registers from the start
            tile.load(from, [&](int i, int j, bool) { return !Upwards && wanted(i, j); });
            if (STREAMED && there) tile.template begin_stream<Upwards, Upwards>(ahead, begin, end);
            if (r == 0) ready();
            if (STREAMED && there) {
                if (WHOLE || tile.i + 32 <= order) {
                    tile.template subtract_stream<Upwards, Upwards, true>(ahead, begin, end);
                } else {
                    tile.template subtract_stream<Upwards, Upwards, false>(ahead, begin, end);
                }
            }
            if (!STREAMED && there) tile.template subtract<Upwards, Upwards, WHOLE>(begin, end);
            UNROLL for (int e = 0; e < COUNT; ++e) kept[r][e] = tile.sum[e / 8][e / 2 % 4][e % 2];
        }
        crew_sync();
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, left, top + r * CREW, first, first + NB, order, lane);
            UNROLL for (int e = 0; e < COUNT; ++e) tile.sum[e / 8][e / 2 % 4][e % 2] = kept[r][e];
            tile.store([&](int i, int, bool) { return i < (Upwards ? first : order); });
        }
        Lanes::sync();
    }
#else
    template <class F>
    __device__ void subtract_left(F ready) {
        for_each([](Scalar& x, int i, int j) { x = i == j ? one<Scalar>() : zero<Scalar>(); });
        ready();
        const int top = tid / LANES * LANES;  // whole warps below a block have nothing to do
        if (top < first) subtract_above(STREAMED ? top : top / NB * NB);
        crew_sync();
    }
    template <class M, class F>
    __device__ void subtract_right(const M& from, F ready) {
        for_each([&](Scalar& x, int i, int j) { x = wanted(i, j) ? *from.at(i, j) : zero<Scalar>(); });
        ready();
        constexpr int STEP = STREAMED ? Pack::LENGTH : NB;
        int k = n;
        while (k > first + NB && k % STEP != 0) subtract_row<false>(--k);
        if (STREAMED) {
            subtract_streamed<false, false>(first + NB, k);
        } else {
            for (; k > first + NB; k -= NB) subtract_block<false, false>(k - NB);
        }
        crew_sync();
    }
    // Own element of column k; `Masked`: zero on the left of the diagonal.
    template <bool Masked>
    __device__ Scalar own(int r, int k) const {
        const int i = tid + r * CREW;
        return Masked && k < i ? zero<Scalar>() : *left.at(min(i, order - 1), k);
    }
    // Less own elements of column k times row k.
    template <bool Masked>
    __device__ void subtract_row(int k) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            const Scalar x = own<Masked>(r, k);
            UNROLL for (int c = 0; c < NB; ++c) element[r][c] = subtract_product(element[r][c], x, *a.at(k, first + c));
        }
    }
    typedef Scalar Own[OWN_ROWS][Pack::LENGTH];  // own elements of a pack of columns
    template <bool Masked>
    __device__ void load_pack(Own& x, int k) const {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s) x[r][s] = own<Masked>(r, k + s);
    }
    // Less own elements of a pack of columns from k on times its rows, upwards or downwards: the order in which a sum is taken is part of the arithmetic.
    template <bool Upwards>
    __device__ void subtract_pack(const Own& x, int k) {
        UNROLL for (int c = 0; c < NB; ++c) {
            const Pack u = *a.pack(k, first + c);
            UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                UNROLL for (int r = 0; r < OWN_ROWS; ++r) element[r][c] = subtract_product(element[r][c], x[r][s], u.value[s]);
            }
        }
    }
    // The same for k .. k + NB.
    template <bool Upwards, bool Masked>
    __device__ void subtract_block(int k) {
        UNROLL for (int q = 0; q < PACKS; ++q) {
            const int p = Upwards ? q : PACKS - 1 - q;
            Own x;
            load_pack<Masked>(x, k + p * Pack::LENGTH);
            subtract_pack<Upwards>(x, k + p * Pack::LENGTH);
        }
    }
    // The same for `begin` .. `end`, whole packs, some of which are on their way from memory.
    template <bool Upwards, bool Masked>
    __device__ void subtract_streamed(int begin, int end) {
        constexpr int AHEAD = Pack::LENGTH == 1 ? 4 : 2;
        const int packs = (end - begin) / Pack::LENGTH;
        const auto k_of = [&](int pack) { return begin + (Upwards ? pack : packs - 1 - pack) * Pack::LENGTH; };
        Own x[AHEAD] = {};
        UNROLL for (int s = 0; s < AHEAD; ++s)
            if (s < packs) load_pack<Masked>(x[s], k_of(s));
#pragma unroll 1
        for (int done = 0; done < packs; done += AHEAD)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                if (done + s >= packs) break;
                subtract_pack<Upwards>(x[s], k_of(done + s));
                if (done + s + AHEAD < packs) load_pack<Masked>(x[s], k_of(done + s + AHEAD));
            }
    }
    __device__ void subtract_above(int begin) {
        if (STREAMED) {
            subtract_streamed<true, true>(begin, first);
        } else {
            for (int k = begin; k < first; k += NB) subtract_block<true, true>(k);
        }
    }
#endif
};
