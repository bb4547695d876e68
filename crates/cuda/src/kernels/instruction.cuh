// Instructions that C++ has no words for, each with its twin in plain C++.
#pragma once
#include "scalar.cuh"

// The architecture that PTX may be written for; 0: none, as where kernels run on the CPU.
#if defined(__CUDA_ARCH__) && !defined(BATCHLA_EMULATED)
#define PTX_ARCH __CUDA_ARCH__
#else
#define PTX_ARCH 0
#endif

// c -= a b where `condition` holds: a predicated instruction, no branch.
__device__ inline void subtract_product_if(bool condition, float& c, float a, float b) {
#if PTX_ARCH > 0
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p fma.rn.f32 %0, %1, %2, %0; }" : "+f"(c) : "f"(-a), "f"(b), "r"(u32(condition)));
#else
    if (condition) c = subtract_product(c, a, b);
#endif
}
__device__ inline void subtract_product_if(bool condition, double& c, double a, double b) {
#if PTX_ARCH > 0
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

// Copies one element from global to shared memory while the thread goes on. Only the thread that copied may read it, after `wait_copies`.
// Older architectures copy at once.
template <class T>
__device__ inline void copy_async(T* shared, const T* global) {
#if PTX_ARCH >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(u32(__cvta_generic_to_shared(shared))), "l"(global), "n"(sizeof(T)));
#else
    *shared = *global;
#endif
}
// Ends a group of copies, which may be empty.
__device__ inline void commit_copies() {
#if PTX_ARCH >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
// Waits for all of this thread's groups but the latest `Pending`.
template <int Pending>
__device__ inline void wait_copies() {
#if PTX_ARCH >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}
