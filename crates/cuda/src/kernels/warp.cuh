// What the threads of a warp do together, in the oldest instructions that serve, with newer ones where the architecture has them.
#pragma once
#include "scalar.cuh"

constexpr int WARP = 32;

// The lanes of a warp that work together: all, or aligned groups of a power of two side by side. Every function is called by the
// whole warp at once, each group for itself: groups never go separate ways around a call.
template <int Lanes>
struct Group {
    static constexpr u32 EVERYONE = 0xffffffffu;

    // The lanes of this group on which `x` holds.
    static __device__ u32 ballot(bool x) {
        const u32 all = __ballot_sync(EVERYONE, x);
        if constexpr (Lanes == WARP) {
            return all;
        } else {
            return all >> (threadIdx.x % WARP / Lanes * Lanes) & ((1u << Lanes) - 1);
        }
    }
    static __device__ bool any(bool x) { return ballot(x) != 0; }
    // Whether, in any group of the warp, `x` holds on more than one lane.
    static __device__ bool several(bool x) {
        const u32 mine = ballot(x);
        const bool here = (mine & (mine - 1)) != 0;
        return Lanes == WARP ? here : __any_sync(EVERYONE, here);
    }
    static __device__ u32 largest(u32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        if constexpr (Lanes == WARP) {
            return __reduce_max_sync(EVERYONE, x);
        } else
#endif
        {
            for (int distance = Lanes / 2; distance > 0; distance /= 2) x = max(x, __shfl_xor_sync(EVERYONE, x, distance));
            return x;
        }
    }
    static __device__ u32 least(u32 x) { return ~largest(~x); }
    static __device__ void sync() { __syncwarp(); }

    template <class R>
    static __device__ R broadcast(R x, int lane) {
        return __shfl_sync(EVERYONE, x, lane, Lanes);
    }
    template <class R>
    static __device__ Complex<R> broadcast(Complex<R> x, int lane) {
        return {broadcast(x.re, lane), broadcast(x.im, lane)};
    }
    template <class R>
    static __device__ R exchange(R x, int distance) {
        return __shfl_xor_sync(EVERYONE, x, distance);
    }
    template <class R>
    static __device__ Complex<R> exchange(Complex<R> x, int distance) {
        return {exchange(x.re, distance), exchange(x.im, distance)};
    }
    template <class R>
    static __device__ R sum(R x) {
        for (int distance = Lanes / 2; distance > 0; distance /= 2) x += exchange(x, distance);
        return x;
    }
};

typedef Group<WARP> Warp;

// c -= a b where `condition` holds: a predicated instruction, no branch.
__device__ inline void subtract_product_if(bool condition, float& c, float a, float b) {
#if defined(__CUDA_ARCH__) && !defined(BATCHLA_EMULATED)
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p fma.rn.f32 %0, %1, %2, %0; }" : "+f"(c) : "f"(-a), "f"(b), "r"(u32(condition)));
#else
    if (condition) c = subtract_product(c, a, b);
#endif
}
__device__ inline void subtract_product_if(bool condition, double& c, double a, double b) {
#if defined(__CUDA_ARCH__) && !defined(BATCHLA_EMULATED)
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p fma.rn.f64 %0, %1, %2, %0; }" : "+d"(c) : "d"(-a), "d"(b), "r"(u32(condition)));
#else
    if (condition) c = subtract_product(c, a, b);
#endif
}
template <class R>
__device__ inline void subtract_product_if(bool condition, Complex<R>& c, Complex<R> a, Complex<R> b) {
    subtract_product_if(condition, c.re, a.re, b.re);
    subtract_product_if(condition, c.re, -a.im, b.im);
    subtract_product_if(condition, c.im, a.re, b.im);
    subtract_product_if(condition, c.im, a.im, b.re);
}
