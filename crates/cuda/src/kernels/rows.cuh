// What inversion takes from the left and from the right, each thread with its own rows: a block column of a matrix on chip, less products with solved ones, which
// are on chip too or, by windows, in memory.
#pragma once
#include "tile.cuh"

constexpr bool STREAMED = WINDOW > 0;
// Whether the last block column has columns beyond the last order of a class: a question at every column, whose answer the compiler knows for most orders.
constexpr bool RAGGED = STREAMED && (ORDER == 0 || ORDER % NB != 0);
constexpr int FEW = 64 / sizeof(Scalar);  // columns of which a thread has U^-1 and the sums at once, where it cannot have all

// For a divisor of which it is not known whether its reciprocal is safe: seldom wanted, so a call.
__device__ NOINLINE Scalar divide_with_care(Scalar x, Scalar value, Scalar reciprocal) { return Divisor<Scalar>{value, reciprocal}.into(x); }

// Columns are those from `first` on. `left`: solved columns. `Some`: other crews have rows of the matrix, too; each thread has one, this crew's from `base` on. `Copied`: of some
// solved columns there are copies on chip.
template <class Left, bool Some = false, bool Copied = false>
struct Rows {
    static constexpr int OWN_ROWS = Some ? 1 : ::OWN_ROWS;
    static constexpr int ASIDE = STREAMED && NB > FEW ? FEW : NB;  // columns of U^-1 that are fetched before they are used
    Scalar element[OWN_ROWS][NB];
    Scalar aside[OWN_ROWS][ASIDE];
    Resident a;
    Left left;
    int first, n, order, tid, base;
    Resident copies;
    int split;  // upwards columns before it have a copy, downwards those from there on

    __device__ Rows(Resident a, Left left, int first, int n, int order, int tid, int base = 0, Resident copies = {}, int split = 0)
        : a(a), left(left), first(first), n(n), order(order), tid(tid), base(Some ? base : 0), copies(copies), split(split) {}

    // Of columns `begin` .. `end`, taken upwards or downwards, those that have a copy come first; then, from here on, the others.
    template <bool Upwards>
    __device__ int copied_until(int begin, int end) const {
        return !Copied ? (Upwards ? begin : end) : Upwards ? max(begin, min(split, end)) : min(end, max(split, begin));
    }

    // The first of the warp's rows r. Upper rows of a triangle have most to do: who has many of one kind has few of the next.
    __device__ int top_of(int r) const {
        constexpr int ALL = CREW / LANES;
        const int warp = crew_warp<TENSOR>(tid);
        return base + LANES * (r % 2 == 0 ? r * ALL + warp : (r + 1) * ALL - 1 - warp);
    }
    // Row r of the thread, as the matrix counts.
    __device__ int row(int r) const { return r == 0 ? base + tid : top_of(r) + tid % LANES; }
    template <class F>
    __device__ void for_each(F f) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int c = 0; c < NB; ++c) f(element[r][c], row(r), first + c);
    }
    // The block on the diagonal, kept from what takes its place.
    __device__ void copy_corner(Scalar (*corner)[LINE]) const {
        const int own = STREAMED ? opaque(tid) : tid;
        UNROLL for (int turn = 0; turn < NB * NB; turn += CREW) {
            const int e = turn + own;
            if ((turn + CREW <= NB * NB || e < NB * NB) && (!RAGGED || first + e % NB < n))
                corner[e % NB][e / NB] = !RAGGED || first + e / NB < n ? *a.at(first + e % NB, first + e / NB) : zero<Scalar>();
        }
    }
    // What is left of X U = I within the block, from the left to the right; `quotient(x, c, wanted)`: of x and the diagonal's element c, or x
    // where that is not wanted.
    template <int Line, class F>
    __device__ void solve_upper(const Scalar (*corner)[Line], F quotient) {
        UNROLL for (int c = 0; c < NB; ++c) {
            if ((RAGGED || IN_REGISTERS) && first + c >= n) break;
            UNROLL for (int r = 0; r < OWN_ROWS; ++r) element[r][c] = quotient(element[r][c], c, row(r) <= first + c);
            subtract_line(element, 0, c, corner, c + 1, WIDTH);
        }
    }
    // The same, by a diagonal with such reciprocals. Whether all are safe is asked once: if at each column, each would wait for the answer. What is not wanted is zero, and stays it.
    template <int Line>
    __device__ void solve_upper_by_reciprocals(const Scalar (*corner)[Line], const Scalar* reciprocal) {
        bool unsafe = false;
        for (int c = tid % LANES; c < (RAGGED ? min(NB, n - first) : NB); c += LANES) unsafe |= !Divisor<Scalar>{corner[c][c], reciprocal[c]}.safe();
        if (!Lanes::any(unsafe)) {
            solve_upper(corner, [=](Scalar x, int c, bool) { return Divisor<Scalar>{corner[c][c], reciprocal[c]}.by_reciprocal(x); });
        } else {
            solve_upper(corner, [=](Scalar x, int c, bool wanted) { return wanted ? divide_with_care(x, corner[c][c], reciprocal[c]) : x; });
        }
    }
    // The same of X L = U^-1, from the right to the left, for columns `begin` .. `end` of the block: `sums` has, from column `from` on, what columns beyond them contribute,
    // `upper(r, c)` gives the elements of U^-1. These come last: where elements grow, products that matter together may each be lost beside them.
    template <int Line, int Wide, class F>
    __device__ void solve_lower(const Scalar (*corner)[Line], Scalar (&sums)[OWN_ROWS][Wide], int from, int begin, int end, F upper) {
        UNROLL for (int c = end - 1; c >= begin; --c) {
            UNROLL for (int r = 0; r < OWN_ROWS; ++r) element[r][c] = sum(upper(r, c), sums[r][c - from]);
            if (!RAGGED || first + c < n) subtract_line(sums, from, c, corner, from, c);
        }
    }
    // All of the block, of which the last columns of U^-1, which lies in `from`, have been set aside.
    template <int Line>
    __device__ void solve_lower(const Scalar (*corner)[Line], Resident from) {
        UNROLL for (int end = NB; end > 0; end -= ASIDE) {
            Scalar own[OWN_ROWS][ASIDE];
            UNROLL for (int r = 0; r < OWN_ROWS; ++r)
                UNROLL for (int c = 0; c < ASIDE; ++c) own[r][c] = aside[r][c];
            if (end > ASIDE) set_aside(from, end - ASIDE);
            solve_lower(corner, element, 0, max(end - ASIDE, 0), end, [&](int r, int c) { return own[r][c - max(end - ASIDE, 0)]; });
        }
    }
    // Own elements of U^-1, of the last columns of the block before `end`.
    __device__ void set_aside(Resident from, int end) {
        const int begin = max(end - ASIDE, 0);
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int c = 0; c < ASIDE; ++c) {
                const int i = row(r), j = first + begin + c;
                aside[r][c] = i <= j && (!RAGGED || j < n) ? *from.at(i, j) : zero<Scalar>();
            }
    }
    // All of a matrix that is one block, U^-1 being where X will be: a few columns at a time, for which there are sums beside it.
    template <int Line>
    __device__ void solve_lower(const Scalar (*corner)[Line]) {
        constexpr int WIDE = (FEW + OWN_ROWS - 1) / OWN_ROWS;
        UNROLL for (int begin = (WIDTH - 1) / WIDE * WIDE; begin >= 0; begin -= WIDE) {
            const int end = min(begin + WIDE, WIDTH);
            Scalar sums[OWN_ROWS][WIDE] = {};
            UNROLL for (int c = WIDTH - 1; c >= end; --c) subtract_line(sums, begin, c, corner, begin, end);
            solve_lower(corner, sums, begin, begin, end, [&](int r, int c) { return element[r][c]; });
        }
    }
    // Of columns `begin` .. `end`, less column c times its line; `x` has them from column `from` on.
    template <int Line, int Wide>
    __device__ void subtract_line(Scalar (&x)[OWN_ROWS][Wide], int from, int c, const Scalar (*corner)[Line], int begin, int end) {
        constexpr bool LONG = IN_REGISTERS && NB > 24;  // shorter ones are up to 8 % slower so, as measured
        Scalar line[PACKS * Pack::LENGTH];
        UNROLL for (int p = begin / Pack::LENGTH; p * Pack::LENGTH < end; ++p) {
            const Scalar* own = &corner[c][p * Pack::LENGTH];
            *reinterpret_cast<Pack*>(line + p * Pack::LENGTH) = LONG ? pack_on_chip(own) : *reinterpret_cast<const Pack*>(own);
        }
        UNROLL for (int r = 0; r < OWN_ROWS; ++r)
            UNROLL for (int d = begin; d < end; ++d) x[r][d - from] = subtract_product(x[r][d - from], element[r][c], line[d]);
    }

#if BATCHLA_TENSOR
    // Rows of the identity, less X[., 0 .. first] U[0 .. first, .] for the triangular X on the left. `ready` is called before the block column is read; on return nobody
    // but, without STREAMED, its own thread reads it any more.
    template <class F>
    __device__ void subtract_left(F ready) {
        by_tiles<true>(ready, [] {});
        for_each([&](Scalar& x, int i, int j) { x = i < first ? *a.at(i, j) : i == j ? one<Scalar>() : zero<Scalar>(); });
        if (STREAMED) crew_sync();
    }
    // Zero, less X[., first + NB .. n] L[first + NB .. n, .] for the X on the right, from the last column on; U^-1 is set aside before the sums take its place.
    template <class F>
    __device__ void subtract_right(Resident from, F ready) {
        by_tiles<false>(ready, [&] { set_aside(from, NB); });
        for_each([&](Scalar& x, int i, int j) { x = i < order ? *a.at(i, j) : zero<Scalar>(); });
        if (STREAMED) crew_sync();
    }
    // The sums, put in the place of the block column after `done`.
    template <bool Upwards, class F, class G>
    __device__ void by_tiles(F ready, G done) {
        typedef Tile<4, NB / STEP, Left> Part;
        constexpr bool WHOLE = ORDER > 0 && ORDER % 32 == 0;  // no tile has rows beyond it
        constexpr int COUNT = NB / STEP * 8, AHEAD = 2;
        Real kept[OWN_ROWS][COUNT];
        const int lane = tid % LANES;
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, left, top_of(r), first, first + NB, order, lane);
            const bool there = tile.i < order;
            // Beyond the matrix there are zeros, in whole steps.
            const int begin = Upwards ? tile.i : first + NB, end = Upwards ? first : (n + STEP - 1) / STEP * STEP;
            Real ahead[AHEAD][4][2] = {};  // what is not written would take its registers from the start
            tile.clear();
            const int cut = copied_until<Upwards>(begin, end), from = Upwards ? cut : begin, until = Upwards ? end : cut;
            if (STREAMED && there) tile.template begin_stream<Upwards, Upwards, WHOLE>(ahead, from, until);
            if (r == 0) ready();
            if (Copied && there) {
                Tile<4, NB / STEP> near(a, copies, tile.i, first, first + NB, order, lane);
                near.clear();
                const int steps = Upwards ? (cut - begin) / STEP : (end - cut + STEP - 1) / STEP;
                // In a triangle nothing is read of rows beyond the matrix.
#pragma unroll 1
                for (int s = 0; s < steps; ++s) near.template subtract_step<Upwards, Upwards, WHOLE || Upwards>(Upwards ? begin + s * STEP : cut + (steps - 1 - s) * STEP);
                UNROLL for (int e = 0; e < COUNT; ++e) tile.sum[e / 8][e / 2 % 4][e % 2] = near.sum[e / 8][e / 2 % 4][e % 2];
            }
            if (STREAMED && there) {
                if (WHOLE || tile.i + 32 <= order) {
                    tile.template subtract_stream<Upwards, Upwards, true>(ahead, from, until);
                } else {
                    tile.template subtract_stream<Upwards, Upwards, false>(ahead, from, until);
                }
            }
            if (!STREAMED && there) tile.template subtract<Upwards, Upwards, WHOLE>(begin, end);
            UNROLL for (int e = 0; e < COUNT; ++e) kept[r][e] = tile.sum[e / 8][e / 2 % 4][e % 2];
        }
        done();
        crew_sync();
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            Part tile(a, left, top_of(r), first, first + NB, order, lane);
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
        subtract_above<1>();
        crew_sync();
    }
    template <class F>
    __device__ void subtract_right(Resident from, F ready) {
        for_each([](Scalar& x, int, int) { x = zero<Scalar>(); });
        ready();
        constexpr int STEP = STREAMED ? Pack::LENGTH : NB;
        // On chip there are zeros beyond the matrix: a whole block of real numbers costs less than most of its rows one by one, as measured.
        int k = !STREAMED && !Number<Scalar>::COMPLEX && n % NB > NB / 2 ? order : n;
        while (k > first + NB && k % STEP != 0) subtract_row(--k);
        if (STREAMED) {
            subtract_streamed<false, OWN_ROWS>(first + NB, k);
        } else {
            for (; k > first + NB; k -= NB) subtract_block<false, OWN_ROWS>(k - NB);
        }
        crew_sync();
        set_aside(from, NB);
    }
    // Own element of column k of `from`; `Masked`: zero on the left of the diagonal.
    template <bool Masked, class M>
    __device__ Scalar own(const M& from, int r, int k) const {
        const int i = row(r);
        return Masked && k < i ? zero<Scalar>() : *from.at(min(i, order - 1), k);
    }
    // Less own elements of column k times row k.
    __device__ void subtract_row(int k) {
        UNROLL for (int r = 0; r < OWN_ROWS; ++r) {
            const Scalar x = own<false>(left, r, k);
            UNROLL for (int c = 0; c < NB; ++c) element[r][c] = subtract_product(element[r][c], x, *a.at(k, first + c));
        }
    }
    // What follows is for the first `Count` rows of each thread; of those upwards, in a triangle, elements on the left of the diagonal are zero.
    typedef Scalar Own[OWN_ROWS][Pack::LENGTH];  // own elements of a pack of columns
    template <bool Upwards, int Count, class M>
    __device__ void load_pack(Own& x, const M& from, int k) const {
        UNROLL for (int r = 0; r < Count; ++r)
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s) x[r][s] = own<Upwards>(from, r, k + s);
    }
    // Less own elements of a pack of columns from k on times its rows, upwards or downwards: the order in which a sum is taken is part of the arithmetic.
    template <bool Upwards, int Count>
    __device__ void subtract_pack(const Own& x, int k) {
        UNROLL for (int c = 0; c < NB; ++c) {
            const Pack u = *a.pack(k, first + c);
            UNROLL for (int t = 0; t < Pack::LENGTH; ++t) {
                const int s = Upwards ? t : Pack::LENGTH - 1 - t;
                UNROLL for (int r = 0; r < Count; ++r) element[r][c] = subtract_product(element[r][c], x[r][s], u.value[s]);
            }
        }
    }
    // The same for k .. k + NB.
    template <bool Upwards, int Count>
    __device__ void subtract_block(int k) {
        UNROLL for (int q = 0; q < PACKS; ++q) {
            const int p = Upwards ? q : PACKS - 1 - q;
            Own x;
            load_pack<Upwards, Count>(x, left, k + p * Pack::LENGTH);
            subtract_pack<Upwards, Count>(x, k + p * Pack::LENGTH);
        }
    }
    // The same for `begin` .. `end`, whole packs, some of which are on their way from memory.
    template <bool Upwards, int Count>
    __device__ void subtract_streamed(int begin, int end) {
        constexpr int AHEAD = Pack::LENGTH == 1 ? 4 : 2;
        const int cut = copied_until<Upwards>(begin, end), all = (end - begin) / Pack::LENGTH, near = (Upwards ? cut - begin : end - cut) / Pack::LENGTH, packs = all - near;
        const auto k_of = [&](int pack) { return begin + (Upwards ? near + pack : packs - 1 - pack) * Pack::LENGTH; };
        Own x[AHEAD] = {};
        UNROLL for (int s = 0; s < AHEAD; ++s)
            if (s < packs) load_pack<Upwards, Count>(x[s], left, k_of(s));
        if (Copied)
#pragma unroll 1
            for (int q = 0; q < near; ++q) {
                const int k = begin + (Upwards ? q : all - 1 - q) * Pack::LENGTH;
                Own own;
                load_pack<Upwards, Count>(own, copies, k);
                subtract_pack<Upwards, Count>(own, k);
            }
#pragma unroll 1
        for (int done = 0; done < packs; done += AHEAD)
            UNROLL for (int s = 0; s < AHEAD; ++s) {
                if (done + s >= packs) break;
                subtract_pack<Upwards, Count>(x[s], k_of(done + s));
                if (done + s + AHEAD < packs) load_pack<Upwards, Count>(x[s], left, k_of(done + s + AHEAD));
            }
    }
    // Less what the triangle has for the block: as long as it has none for rows after the first `Count`, then for one more.
    template <int Count>
    __device__ void subtract_above() {
        const auto start = [&](int r) { return min(first, STREAMED ? top_of(r) : top_of(r) / NB * NB); };
        const int begin = start(Count - 1), end = Count < OWN_ROWS ? start(Count) : first;
        if (begin == first) return;  // whole warps below a block have nothing to do
        if (STREAMED) {
            subtract_streamed<true, Count>(begin, end);
        } else {
            for (int k = begin; k < end; k += NB) subtract_block<true, Count>(k);
        }
        if constexpr (Count < OWN_ROWS) subtract_above<Count + 1>();
    }
#endif
};
