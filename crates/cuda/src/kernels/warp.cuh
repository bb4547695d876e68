// What the threads of a warp do together, in the oldest instructions that serve, with newer ones where the architecture has them.
#pragma once
#include "instruction.cuh"

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
        } else if constexpr (2 * Lanes == WARP) {
            const bool low = threadIdx.x % WARP < Lanes;
            const u32 below = __reduce_max_sync(EVERYONE, low ? x : 0), above = __reduce_max_sync(EVERYONE, low ? 0 : x);
            return low ? below : above;
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
