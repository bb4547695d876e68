// What caches are told of what is read or written: L2 lets go of what is read once, or written to be read by no one, before what is read again.
#pragma once
#include "instruction.cuh"

// `copy_async` of what is read once. `Lines`: sixteen bytes, too, go through L1, which takes each sector from L2 once: what goes past it takes one and a half.
template <bool Lines, class T>
__device__ inline void copy_once(T* shared, const T* global) {
#if PTX_ARCH >= 800
    const u32 to = u32(__cvta_generic_to_shared(shared));
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if constexpr (sizeof(T) == 16 && !Lines) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "l"(policy));
    } else {
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(sizeof(T)), "l"(policy));
    }
#else
    copy_async(shared, global);
#endif
}

// `copy_async` through L1 of sixteen bytes, too.
template <class T>
__device__ inline void copy_by_lines(T* shared, const T* global) {
#if PTX_ARCH >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(u32(__cvta_generic_to_shared(shared))), "l"(global), "n"(sizeof(T)));
#else
    copy_async(shared, global);
#endif
}

// Stores what no one reads again.
template <class T>
__device__ inline void store_once(T* global, const T& x) {
#if PTX_ARCH > 0
    if constexpr (sizeof(T) == 4) {
        asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(global), "r"(reinterpret_cast<const u32&>(x)) : "memory");
    } else if constexpr (sizeof(T) == 8) {
        asm volatile("st.global.cs.b64 [%0], %1;" ::"l"(global), "l"(reinterpret_cast<const u64&>(x)) : "memory");
    } else {
        const u64* const part = reinterpret_cast<const u64*>(&x);
        asm volatile("st.global.cs.v2.b64 [%0], {%1, %2};" ::"l"(global), "l"(part[0]), "l"(part[1]) : "memory");
    }
#else
    *global = x;
#endif
}

// Lets go of a line of memory: what it holds is lost, and need not leave L2 for memory, until someone has written it anew.
constexpr int CACHE_LINE = 128;  // bytes
__device__ inline void discard_line(void* line) {
#if PTX_ARCH >= 800
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(line) : "memory");
#elif PTX_ARCH == 0
    for (int i = 0; i < CACHE_LINE / 8; ++i) static_cast<u64*>(line)[i] = ~u64(0);  // NaN, whoever reads it
#endif
}
