// det A = sign * exp(log_abs), from the diagonal of U and the exchanges. Sums are taken in a fixed order.
#pragma once
#include "operand.cuh"
#include "warp.cuh"

__device__ inline void store_parts(Real* to, Real x) { to[0] = x; }
__device__ inline void store_parts(Real* to, Complex<Real> x) {
    to[0] = x.re;
    to[1] = x.im;
}

__device__ inline float modulus(float x) { return fabsf(x); }
__device__ inline double modulus(double x) { return fabs(x); }
__device__ inline float modulus(Complex<float> x) { return hypotf(x.re, x.im); }
__device__ inline double modulus(Complex<double> x) { return hypot(x.re, x.im); }
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline double logarithm(double x) { return log(x); }
template <class R>
__device__ inline R of_modulus_one(R x, R modulus) {
    return x / modulus;
}
template <class R>
__device__ inline Complex<R> of_modulus_one(Complex<R> x, R modulus) {
    return {x.re / modulus, x.im / modulus};
}

// Phase, turned about where rows were exchanged, and logarithm of the modulus, of a finite number. That of a complex one may be beyond the largest number: then half of it is looked at.
struct Polar {
    Scalar phase;
    Real logarithm;
};
__device__ inline Polar polar(Scalar u, bool exchanged) {
    Real size = modulus(u);
    const bool beyond = Number<Scalar>::COMPLEX && size == Range<Real>::infinity();
    if (beyond) {
        u = scaled(u, Real(0.5));
        size = modulus(u);
    }
    const Scalar phase = of_modulus_one(u, size);
    Real log_abs = logarithm(size);
    if (beyond) log_abs += logarithm(Real(2));
    return {exchanged ? negative(phase) : phase, log_abs};
}
// A product of phases, brought back to modulus one.
__device__ inline Scalar turned(Scalar sign, Scalar by) {
    sign = times(sign, by);
    return of_modulus_one(sign, modulus(sign));
}

// Of a matrix that failed, what its outcome says.
__device__ inline void store_determinant(Scalar sign, Real log_abs, u32 word, Real* result) {
    if (word == NOT_FINITE) {
        sign = not_a_number<Scalar>();
        log_abs = Range<Real>::nan();
    } else if (word != 0) {
        sign = zero<Scalar>();
        log_abs = -Range<Real>::infinity();
    }
    constexpr int PARTS = Number<Scalar>::COMPLEX ? 2 : 1;
    store_parts(result, sign);
    result[PARTS] = log_abs;
}

// By one warp: the parts of the sign, then the logarithm. `diagonal(k)` is that of U,
// `exchanged(k)` whether row k was exchanged; nothing is read of a matrix that failed. `result` may be null.
template <class Diagonal, class Exchanged>
__device__ void tell_determinant(Diagonal diagonal, Exchanged exchanged, u32 word, Real* result, int order, int lane) {
    Scalar sign = one<Scalar>();
    Real log_abs = 0;
    for (int k = lane; word == 0 && k < order; k += WARP) {
        const Polar u = polar(diagonal(k), exchanged(k));
        sign = turned(sign, u.phase);
        log_abs += u.logarithm;
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) sign = turned(sign, Warp::exchange(sign, distance));
    log_abs = Warp::sum(log_abs);
    if (lane == 0 && result != nullptr) store_determinant(sign, log_abs, word, result);
}

// The same by one thread, of order `N`: products and sums are paired as the lanes of a warp pair them.
template <int N, class Diagonal, class Exchanged>
__device__ inline void tell_own_determinant(Diagonal diagonal, Exchanged exchanged, u32 word, Real* result) {
    Scalar sign[N];
    Real log_abs[N];
    UNROLL for (int k = 0; k < N; ++k) {
        const Polar u = polar(diagonal(k), exchanged(k));
        sign[k] = turned(one<Scalar>(), u.phase);
        log_abs[k] = u.logarithm;
    }
    UNROLL for (int distance = WARP / 2; distance > 0; distance /= 2)
        UNROLL for (int k = 0; k < N && k < distance; ++k) {
            const bool paired = k + distance < N;
            sign[k] = turned(sign[k], paired ? sign[paired ? k + distance : 0] : one<Scalar>());
            if (paired) log_abs[k] += log_abs[paired ? k + distance : 0];
        }
    store_determinant(sign[0], log_abs[0], word, result);
}
