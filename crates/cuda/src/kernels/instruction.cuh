// Instructions that C++ has no words for, each with its twin in plain C++.
#pragma once
#include "scalar.cuh"

// The architecture that PTX may be written for; 0: none, as where kernels run on the CPU.
#if defined(__CUDA_ARCH__) && !defined(BATCHLA_EMULATED)
#define PTX_ARCH __CUDA_ARCH__
#else
#define PTX_ARCH 0
#endif

// A number of which the compiler knows nothing: what is made from it is kept, not made again wherever it is used.
__device__ inline int opaque(int x) {
#if PTX_ARCH > 0
    asm volatile("" : "+r"(x));
#endif
    return x;
}

// 1 / x for x within Range, but for the last bit; no branch. What is subnormal counts as zero. The compiler leaves it where it is written.
__device__ inline float reciprocal(float x) {
#if PTX_ARCH > 0
    float r;
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    r = fused(fused(-x, r, 1.0f), r, r);
    asm volatile("" : "+f"(r));
    return r;
#else
    return 1.0f / (magnitude(x) < 0x1p-126f ? x * 0.0f : x);
#endif
}
__device__ inline double reciprocal(double x) {
#if PTX_ARCH > 0
    double r;
    asm volatile("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    const double e = fused(-x, r, 1.0);
    r = fused(fused(e, e, e), r, r);
    r = fused(fused(-x, r, 1.0), r, r);
    asm volatile("" : "+d"(r));
    return r;
#else
    return 1.0 / (magnitude(x) < 0x1p-1022 ? x * 0.0 : x);
#endif
}
template <class R>
__device__ inline Complex<R> reciprocal(Complex<R> x) {
    const R scale = reciprocal(fused(x.re, x.re, x.im * x.im));
    return {x.re * scale, -x.im * scale};
}

// A divisor, with its reciprocal where that is safe. The quotient is corrected by its remainder: of real numbers x / x is one, as exact
// tests of singularity want. Tiny or huge divisors (LAPACK's sfmin rule) are divided by.
template <class T>
struct Divisor {
    typedef typename Number<T>::Real R;
    T value, reciprocal;

    __device__ bool safe() const { return size(value) >= Range<R>::LEAST && size(value) < Range<R>::MOST; }
    __device__ T by_reciprocal(T x) const {
        const T quotient = times(x, reciprocal);
        return add_product(quotient, subtract_product(x, quotient, value), reciprocal);
    }
    __device__ T into(T x) const { return safe() ? by_reciprocal(x) : divide(x, value); }
};
template <class T>
__device__ inline Divisor<T> divisor(T value) {
    return {value, reciprocal(value)};
}

// Where `wanted` holds, stores `Count` numbers in shared memory, by packs from number `first` on; no branch. How far each pack is from the first is part of its instruction: else
// there would be one more to add it.
template <int Count, int Done = 0>
__device__ inline void store_if(bool wanted, int first, double* shared, const double* x) {
    if (Done >= first) {
#if PTX_ARCH > 0
        const u32 to = u32(__cvta_generic_to_shared(shared));
        if constexpr (Count - Done >= 2) {
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.v2.f64 [%1 + %4], {%2, %3}; }" ::"r"(u32(wanted)), "r"(to), "d"(x[Done]),
                         "d"(x[Done + 1]), "n"(Done * 8)
                         : "memory");
        } else {
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.f64 [%1 + %3], %2; }" ::"r"(u32(wanted)), "r"(to), "d"(x[Done]), "n"(Done * 8)
                         : "memory");
        }
#else
        for (int t = Done; wanted && t < min(Done + 2, Count); ++t) shared[t] = x[t];
#endif
    }
    if constexpr (Done + 2 < Count) store_if<Count, Done + 2>(wanted, first, shared, x);
}
template <int Count, int Done = 0>
__device__ inline void store_if(bool wanted, int first, float* shared, const float* x) {
    static_assert(Count == 2 || Count % 4 == 0, "whole packs, or half of one");
    if (Done >= first) {
#if PTX_ARCH > 0
        const u32 to = u32(__cvta_generic_to_shared(shared));
        if constexpr (Count - Done >= 4) {
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.v4.f32 [%1 + %6], {%2, %3, %4, %5}; }" ::"r"(u32(wanted)), "r"(to), "f"(x[Done]),
                         "f"(x[Done + 1]), "f"(x[Done + 2]), "f"(x[Done + 3]), "n"(Done * 4)
                         : "memory");
        } else {
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.v2.f32 [%1], {%2, %3}; }" ::"r"(u32(wanted)), "r"(to), "f"(x[Done]), "f"(x[Done + 1])
                         : "memory");
        }
#else
        for (int t = Done; wanted && t < min(Done + 4, Count); ++t) shared[t] = x[t];
#endif
    }
    if constexpr (Done + 4 < Count) store_if<Count, Done + 4>(wanted, first, shared, x);
}

// Sixteen bytes from shared memory. The compiler leaves them where they are written, and does not ask of every access around them whether it is to the same place: of sweeps that are text from
// end to end that took most of its time.
__device__ inline void load_sixteen(double* x, const double* shared) {
#if PTX_ARCH > 0
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(u32(__cvta_generic_to_shared(shared))) : "memory");
#else
    for (int i = 0; i < 2; ++i) x[i] = shared[i];
#endif
}
__device__ inline void load_sixteen(float* x, const float* shared) {
#if PTX_ARCH > 0
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(u32(__cvta_generic_to_shared(shared)))
                 : "memory");
#else
    for (int i = 0; i < 4; ++i) x[i] = shared[i];
#endif
}

// Prepares `place`, in shared memory, for meetings of all `count` threads of a block, which call this together.
__device__ inline void begin_meetings(u64* place, int count) {
#if PTX_ARCH >= 800
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(u32(__cvta_generic_to_shared(place))), "r"(count) : "memory");
    __syncthreads();
#endif
}
// All threads wait for each other, as by `__syncthreads`, but each warp may come here from another place of the text.
__device__ inline void meet(u64* place, int count) {
#if PTX_ARCH >= 800
    const u32 at = u32(__cvta_generic_to_shared(place));
#if PTX_ARCH >= 900
    asm volatile("{ .reg .b64 phase; .reg .pred p; mbarrier.arrive.shared.b64 phase, [%0];\nWAIT: mbarrier.try_wait.shared.b64 p, [%0], phase; @!p bra WAIT; }" ::"r"(at)
                 : "memory");
#else
    asm volatile("{ .reg .b64 phase; .reg .pred p; mbarrier.arrive.shared.b64 phase, [%0];\nWAIT: mbarrier.test_wait.shared.b64 p, [%0], phase; @!p bra WAIT; }" ::"r"(at)
                 : "memory");
#endif
#elif PTX_ARCH > 0
    asm volatile("barrier.sync 1, %0;" ::"r"(count) : "memory");
#else
    __syncthreads();
#endif
}

// The slot of the multiprocessor that the calling warp has; slots four apart share their arithmetic units.
__device__ inline u32 warp_slot() {
#if PTX_ARCH > 0
    u32 slot;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(slot));
    return slot;
#else
    return 4 * blockIdx.x;
#endif
}

// Copies one element from global to shared memory while the thread goes on. Only the thread that copied may read it, after `wait_copies`.
// Older architectures copy at once.
template <class T>
__device__ inline void copy_async(T* shared, const T* global) {
#if PTX_ARCH >= 800
    const u32 to = u32(__cvta_generic_to_shared(shared));
    if constexpr (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(sizeof(T)));
    }
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

// Products by matrix instructions: a complex number takes part as two real ones, in A as its parts lie in memory, and each element of B stands for [re im; -im re].
constexpr int PARTS = Number<Scalar>::COMPLEX ? 2 : 1;
// Columns of C, and columns of A and rows of B, that one step multiplies.
constexpr int STEP = 8 / PARTS;

// c += a b by a whole warp, a of 8 x 8 and b of 8 x 8 numbers: with row r = lane / 4 and column q = lane % 4, a lane holds elements (r, 2 q) and
// (r, 2 q + 1) of c, (r, q) and (r, q + 4) of a, (q, r) and (q + 4, r) of b. Each sum is a chain of fused products, k upwards.
__device__ inline void multiply_add(double (&c)[2], const double (&a)[2], const double (&b)[2]) {
#if PTX_ARCH >= 800
    UNROLL for (int s = 0; s < 2; ++s)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"(a[s]), "d"(b[s]));
#else
    const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4;
    for (int k = 0; k < 8; ++k) {
        const double l = __shfl_sync(0xffffffffu, a[k / 4], 4 * row + k % 4);
        for (int e = 0; e < 2; ++e) c[e] = fused(l, __shfl_sync(0xffffffffu, b[k / 4], 4 * (2 * column + e) + k % 4), c[e]);
    }
#endif
}
// The same for two times eight rows.
__device__ inline void multiply_add(double (&c)[2], double (&d)[2], const double (&a_c)[2], const double (&a_d)[2], const double (&b)[2]) {
#if PTX_ARCH >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(d[0]), "+d"(d[1])
        : "d"(a_c[0]), "d"(a_d[0]), "d"(a_c[1]), "d"(a_d[1]), "d"(b[0]), "d"(b[1]));
#else
    multiply_add(c, a_c, b);
    multiply_add(d, a_d, b);
#endif
}
