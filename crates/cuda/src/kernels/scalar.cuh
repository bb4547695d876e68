// The four number types, and what the kernels compute with them.
//
// Every product that is added or subtracted is fused, by name: the sequence of roundings is the source's, not the compiler's,
// so that all kernels of one arithmetic give the same bits.
#pragma once
#include "batchla_config.h"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef int Position;  // of a row or column

constexpr u32 NOT_FINITE = 0xffffffffu;  // an outcome word; others are LAPACK's info

#define UNROLL _Pragma("unroll")
// For what is long and seldom called.
#define NOINLINE __attribute__((noinline))

template <class R>
struct alignas(2 * sizeof(R)) Complex {
    R re, im;
};

// A scalar type: its real type, its zero and one.
template <class T>
struct Number {
    typedef T Real;
    static constexpr bool COMPLEX = false;
    static __device__ T real(T x) { return x; }
};
template <class R>
struct Number<Complex<R>> {
    typedef R Real;
    static constexpr bool COMPLEX = true;
    static __device__ Complex<R> real(R x) { return {x, R(0)}; }
};

#if BATCHLA_SCALAR == 0
typedef float Scalar;
#elif BATCHLA_SCALAR == 1
typedef double Scalar;
#elif BATCHLA_SCALAR == 2
typedef Complex<float> Scalar;
#else
typedef Complex<double> Scalar;
#endif
typedef Number<Scalar>::Real Real;

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

// What a real type can hold.
template <class R>
struct Range;
template <>
struct Range<float> {
    static __device__ float infinity() { return __int_as_float(0x7f800000); }
    static __device__ float nan() { return __int_as_float(0x7fc00000); }
    // Numbers between these have a reciprocal, and complex ones a square modulus, at least half the square of the size, that neither overflows nor loses bits.
    // `upper_key` of these:
    static constexpr float LEAST = 0x1p-62f;
    static constexpr float MOST = 0x1p63f;
    static constexpr u32 LEAST_KEY = 0x20800001, MOST_KEY = 0x5f000001;
};
template <>
struct Range<double> {
    static __device__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
    static __device__ double nan() { return __longlong_as_double(0x7ff8000000000000ll); }
    static constexpr double LEAST = 0x1p-479;
    static constexpr double MOST = 0x1p479;
    static constexpr u32 LEAST_KEY = 0x22000001, MOST_KEY = 0x5de00001;
};

__device__ inline float magnitude(float x) { return fabsf(x); }
__device__ inline double magnitude(double x) { return fabs(x); }
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }
template <class R>
__device__ inline bool is_finite(R x) {
    return magnitude(x) < Range<R>::infinity();
}
template <class R>
__device__ inline bool is_finite(Complex<R> x) {
    return is_finite(x.re) && is_finite(x.im);
}

template <class T>
__device__ inline T zero() {
    return Number<T>::real(0);
}
template <class T>
__device__ inline T one() {
    return Number<T>::real(1);
}
template <class T>
__device__ inline T not_a_number() {
    return Number<T>::real(Range<typename Number<T>::Real>::nan());
}
template <>
__device__ inline Complex<float> not_a_number() {
    return {Range<float>::nan(), Range<float>::nan()};
}
template <>
__device__ inline Complex<double> not_a_number() {
    return {Range<double>::nan(), Range<double>::nan()};
}

template <class R>
__device__ inline bool is_zero(R x) {
    return x == R(0);
}
template <class R>
__device__ inline bool is_zero(Complex<R> x) {
    return x.re == R(0) && x.im == R(0);
}

// |re| + |im|, by which LAPACK compares.
template <class R>
__device__ inline R size(R x) {
    return magnitude(x);
}
template <class R>
__device__ inline R size(Complex<R> x) {
    return magnitude(x.re) + magnitude(x.im);
}

// c + a b and c - a b.
template <class R>
__device__ inline R add_product(R c, R a, R b) {
    return fused(a, b, c);
}
template <class R>
__device__ inline Complex<R> add_product(Complex<R> c, Complex<R> a, Complex<R> b) {
    return {fused(-a.im, b.im, fused(a.re, b.re, c.re)), fused(a.im, b.re, fused(a.re, b.im, c.im))};
}
template <class R>
__device__ inline R subtract_product(R c, R a, R b) {
    return fused(-a, b, c);
}
template <class R>
__device__ inline Complex<R> subtract_product(Complex<R> c, Complex<R> a, Complex<R> b) {
    return {fused(a.im, b.im, fused(-a.re, b.re, c.re)), fused(-a.im, b.re, fused(-a.re, b.im, c.im))};
}
template <class R>
__device__ inline R sum(R a, R b) {
    return a + b;
}
template <class R>
__device__ inline Complex<R> sum(Complex<R> a, Complex<R> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class T>
__device__ inline T times(T a, T b) {
    return add_product(zero<T>(), a, b);
}

template <class R>
__device__ inline R conjugate(R x) {
    return x;
}
template <class R>
__device__ inline Complex<R> conjugate(Complex<R> x) {
    return {x.re, -x.im};
}
template <class R>
__device__ inline R negative(R x) {
    return -x;
}
template <class R>
__device__ inline Complex<R> negative(Complex<R> x) {
    return {-x.re, -x.im};
}
template <class R>
__device__ inline R scaled(R x, R by) {
    return x * by;
}
template <class R>
__device__ inline Complex<R> scaled(Complex<R> x, R by) {
    return {x.re * by, x.im * by};
}

__device__ inline int exponent(float x) { return ilogbf(x); }
__device__ inline int exponent(double x) { return ilogb(x); }
__device__ inline float shifted(float x, int by) { return ldexpf(x, by); }
__device__ inline double shifted(double x, int by) { return ldexp(x, by); }

// a / b without overflow on the way: both are brought near one by powers of two; Smith's method divides those.
template <class R>
__device__ inline R divide(R a, R b) {
    return a / b;
}
template <class R>
__device__ NOINLINE Complex<R> divide(Complex<R> a, Complex<R> b) {
    R a_size = larger(magnitude(a.re), magnitude(a.im)), b_size = larger(magnitude(b.re), magnitude(b.im));
    if (!is_finite(a) || !is_finite(b) || b_size == R(0)) {
        R to = is_finite(a) && is_finite(b) && a_size > R(0) ? Range<R>::infinity() : Range<R>::nan();
        return {to, to};
    }
    if (a_size == R(0)) return a;
    int a_shift = exponent(a_size), b_shift = exponent(b_size);
    a = {shifted(a.re, -a_shift), shifted(a.im, -a_shift)};
    b = {shifted(b.re, -b_shift), shifted(b.im, -b_shift)};
    bool turned = magnitude(b.im) > magnitude(b.re);
    if (turned) {
        a = {a.im, a.re};
        b = {b.im, b.re};
    }
    R ratio = b.im / b.re;
    R scale = R(1) / fused(b.im, ratio, b.re);
    R re = fused(a.im, ratio, a.re) * scale, im = fused(-a.re, ratio, a.im) * scale;
    if (turned) im = -im;
    return {shifted(re, a_shift - b_shift), shifted(im, a_shift - b_shift)};
}

// The real numbers that numbers are made of.
template <class R>
__device__ inline R* parts(Complex<R>* x) {
    return &x->re;
}
template <class R>
__device__ inline const R* parts(const Complex<R>* x) {
    return &x->re;
}
template <class R>
__device__ inline R* parts(R* x) {
    return x;
}

// A position in a number's stead.
template <class T>
__device__ inline T carrying(Position x);
template <>
__device__ inline float carrying<float>(Position x) {
    return __int_as_float(x);
}
template <>
__device__ inline double carrying<double>(Position x) {
    return __longlong_as_double(u32(x));
}
template <>
__device__ inline Complex<float> carrying<Complex<float>>(Position x) {
    return {__int_as_float(x), 0};
}
template <>
__device__ inline Complex<double> carrying<Complex<double>>(Position x) {
    return {__longlong_as_double(u32(x)), 0};
}
__device__ inline Position carried(float x) { return Position(__float_as_uint(x)); }
__device__ inline Position carried(double x) { return Position(__double_as_longlong(x)); }
template <class R>
__device__ inline Position carried(Complex<R> x) {
    return carried(x.re);
}

// Two words that order as the size does: NaN above infinity, infinity above the rest. The upper one is above zero for every size.
__device__ inline u32 upper_key(float x) { return (__float_as_uint(x) & 0x7fffffffu) + 1; }
__device__ inline u32 lower_key(float) { return 0; }
__device__ inline u32 upper_key(double x) { return (u32(u64(__double_as_longlong(x)) >> 32) & 0x7fffffffu) + 1; }
__device__ inline u32 lower_key(double x) { return u32(__double_as_longlong(x)); }
template <class R>
__device__ inline u32 upper_key(Complex<R> x) {
    return upper_key(size(x));
}
template <class R>
__device__ inline u32 lower_key(Complex<R> x) {
    return lower_key(size(x));
}
