// A matrix a thread, all of it in registers: the smallest orders.
#pragma once
#include "det.cuh"

constexpr int N = BATCHLA_ORDER;
constexpr int THREADS = BATCHLA_TEAMS;  // of a block, and as many matrices
constexpr int AREA = N * N;

// `Count` numbers of each of a warp's matrices, between registers and memory where they lie side by side: neighbouring threads take neighbours
// there, `Length` numbers at a time. An odd number of pieces apart, matrices meet in few banks.
template <class T, int Count, int Length>
struct Passage {
    struct alignas(Length * sizeof(T)) Piece {
        T value[Length];
    };
    static constexpr int PIECES = Count / Length, APART = PIECES | 1;
    Piece piece[WARP * APART];

    __device__ T& at(int lane, int e) { return piece[lane * APART + e / Length].value[e % Length]; }
    __device__ void fetch(const T* from, int matrices, int lane) {
        Warp::sync();  // all have taken what came before
        UNROLL for (int p = 0; p < PIECES; ++p) {
            const int i = p * WARP + lane;
            if (i < matrices * PIECES) copy_async(&piece[i / PIECES * APART + i % PIECES], reinterpret_cast<const Piece*>(from) + i);
        }
        commit_copies();
        wait_copies<0>();
        Warp::sync();
    }
    __device__ void put(T* to, int matrices, int lane) {
        Warp::sync();
        UNROLL for (int p = 0; p < PIECES; ++p) {
            const int i = p * WARP + lane;
            if (i < matrices * PIECES) reinterpret_cast<Piece*>(to)[i] = piece[i / PIECES * APART + i % PIECES];
        }
    }
};
typedef Passage<Scalar, AREA, AREA % Pack::LENGTH == 0 ? Pack::LENGTH : 1> Elements;
typedef Passage<u32, N, 1> Places;

// The matrices that a warp works on: `count` from `first` on, one a lane.
struct Share {
    u64 first;
    int count, lane;

    __device__ bool live() const { return lane < count; }
};

// Which of its elements is (i, j) where a matrix has no gaps.
template <bool UnitRows>
__device__ constexpr int place_of(int i, int j) {
    return UnitRows ? i + j * N : i * N + j;
}
// Whether matrices have no gaps, nor are there any between them.
template <bool UnitRows>
__device__ inline bool side_by_side(const Operand& x) {
    const bool whole = UnitRows ? x.col == N : x.col == 1 && x.row == N;
    return whole && x.lanes == 1 && x.group == AREA && u64(x.data) % sizeof(Elements::Piece) == 0;
}

template <class F>
__device__ inline void for_each_element(F f) {
    UNROLL for (int i = 0; i < N; ++i)
        UNROLL for (int j = 0; j < N; ++j) f(i, j);
}

// A matrix, or the identity for a thread that has none.
template <bool UnitRows>
__device__ inline void load(Scalar (&x)[N][N], const Operand& from, Elements& elements, Share share) {
    const bool passes = side_by_side<UnitRows>(from);
    if (passes) elements.fetch(from.data + share.first * AREA, share.count, share.lane);
    if (!share.live()) {
        for_each_element([&](int i, int j) { x[i][j] = i == j ? one<Scalar>() : zero<Scalar>(); });
    } else if (passes) {
        for_each_element([&](int i, int j) { x[i][j] = elements.at(share.lane, place_of<UnitRows>(i, j)); });
    } else {
        const MatrixAt<UnitRows> own(from, share.first + share.lane);
        for_each_element([&](int i, int j) { x[i][j] = *own.at(i, j); });
    }
}

// Column j becomes column `column[j]`.
template <bool UnitRows>
__device__ inline void store(const Scalar (&x)[N][N], const u32 (&column)[N], const Operand& to, Elements& elements, Share share) {
    if (side_by_side<UnitRows>(to)) {
        Warp::sync();  // all have put what came before
        for_each_element([&](int i, int j) { elements.at(share.lane, place_of<UnitRows>(i, column[j])) = x[i][j]; });
        elements.put(to.data + share.first * AREA, share.count, share.lane);
    } else if (share.live()) {
        const MatrixAt<UnitRows> own(to, share.first + share.lane);
        for_each_element([&](int i, int j) { *own.at(i, column[j]) = x[i][j]; });
    }
}

__device__ inline void store(const u32 (&x)[N], u32* to, Places& places, Share share) {
    Warp::sync();  // all have put what came before
    UNROLL for (int j = 0; j < N; ++j) places.at(share.lane, j) = x[j];
    places.put(to + share.first * N, share.count, share.lane);
}

__device__ inline bool all_finite(const Scalar (&x)[N][N]) {
    bool finite = true;
    for_each_element([&](int i, int j) { finite &= is_finite(x[i][j]); });
    return finite;
}

__device__ inline void exchange_if(bool so, u32& a, u32& b) {
    const u32 was = a;
    a = so ? b : a;
    b = so ? was : b;
}
__device__ inline void exchange_if(bool so, Scalar& a, Scalar& b) {
    const Scalar was = a;
    a = so ? b : a;
    b = so ? was : b;
}

// LAPACK's getf2, rows exchanged as they are chosen; `origin`: which row of A each row of U was. Returns LAPACK's info.
__device__ inline u32 getf2(Scalar (&a)[N][N], u32 (&pivot)[N], u32 (&origin)[N]) {
    u32 info = 0;
    UNROLL for (int i = 0; i < N; ++i) origin[i] = i;
    UNROLL for (int k = 0; k < N; ++k) {
        u32 upper = upper_key(a[k][k]), lower = lower_key(a[k][k]);
        pivot[k] = k;
        UNROLL for (int i = k + 1; i < N; ++i) {
            const u32 above = upper_key(a[i][k]), below = lower_key(a[i][k]);
            const bool larger = (above > upper) | ((above == upper) & (below > lower));
            upper = larger ? above : upper;
            lower = larger ? below : lower;
            pivot[k] = larger ? i : pivot[k];
        }
        UNROLL for (int i = k + 1; i < N; ++i) {
            const bool chosen = pivot[k] == u32(i);
            UNROLL for (int c = 0; c < N; ++c) exchange_if(chosen, a[k][c], a[i][c]);
            exchange_if(chosen, origin[k], origin[i]);
        }
        const Divisor<Scalar> by = divisor(a[k][k]);
        if (by.safe()) {
            UNROLL for (int i = k + 1; i < N; ++i) a[i][k] = by.by_reciprocal(a[i][k]);
        } else if (!is_zero(by.value)) {
            UNROLL for (int i = k + 1; i < N; ++i) a[i][k] = divide(a[i][k], by.value);
        } else if (info == 0) {
            info = k + 1;  // below a zero pivot all is zero: nothing to divide
        }
        UNROLL for (int i = k + 1; i < N; ++i)
            UNROLL for (int c = k + 1; c < N; ++c) a[i][c] = subtract_product(a[i][c], a[i][k], a[k][c]);
    }
    return info;
}
