// What the kernels use of CUDA C++, for a host compiler. One operating-system thread runs the threads of a block in turn; whatever waits
// for others is a call into the emulator, which is attached when the object is loaded.
#pragma once

#define BATCHLA_EMULATED 1
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Each operating-system thread that runs blocks has shared memory of its own.
#define __shared__ thread_local

// What the kernels use of the mathematical library. All that its header brings for C++ would take longer than a kernel.
extern "C" {
#define OF_ONE(name) \
    double name(double); \
    float name##f(float);
#define OF_TWO(name) \
    double name(double, double); \
    float name##f(float, float);
OF_ONE(fabs)
OF_ONE(log)
OF_ONE(sqrt)
OF_TWO(fmax)
OF_TWO(fmin)
OF_TWO(hypot)
#undef OF_ONE
#undef OF_TWO
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
int ilogb(double);
int ilogbf(float);
}

// Not instrumented, and not inlined into what is.
#define EMULATOR __attribute__((noinline, no_sanitize("thread"), no_sanitize("undefined")))
#define CALLER __builtin_return_address(0)

// The dynamic shared memory, as large as that of any GPU; a launch says how much of it there is.
alignas(256) thread_local unsigned char memory[232448];

namespace emulator {

// Where a thread is. Written by the emulator before it lets a thread go on.
struct Here {
    unsigned int thread, block, threads, blocks;
};

// What the lanes of a warp brought to an exchange.
struct Exchanged {
    unsigned long long value[32];
    unsigned int ballot, largest;
};

enum Meeting { SYNC_WARP, BALLOT, ANY, ALL, REDUCE_MAX, SHUFFLE, SHUFFLE_XOR, SYNC_THREADS, SYNC_THREADS_OR, SYNC_THREADS_AND, SYNC_THREADS_COUNT };
enum Access { READ, WRITE, ATOMIC };

struct Emulator {
    const Here* (*here)();
    const Exchanged* (*exchange)(unsigned int meeting, unsigned int lanes, unsigned long long value, void* caller);
    unsigned int (*barrier)(unsigned int meeting, unsigned int vote, void* caller);
    void (*access)(const void* address, unsigned long bytes, unsigned int access, void* caller);
    void (*undefined)(const char* what, unsigned int line, const char* file, void* caller);
    void (*copy)(void* to, const void* from, unsigned long bytes, void* caller);
    void (*commit)();
    void (*wait)(unsigned int pending, void* caller);
};

static const Emulator* attached;

struct Index {
    unsigned int x;
};
EMULATOR inline Index thread() { return {attached->here()->thread}; }
EMULATOR inline Index block() { return {attached->here()->block}; }
EMULATOR inline Index threads() { return {attached->here()->threads}; }
EMULATOR inline Index blocks() { return {attached->here()->blocks}; }

template <class T>
inline unsigned long long carried(T x) {
    static_assert(sizeof(T) <= 8, "an exchange carries 64 bits");
    unsigned long long value = 0;
    __builtin_memcpy(&value, &x, sizeof(T));
    return value;
}
template <class T>
inline T delivered(unsigned long long value) {
    T x;
    __builtin_memcpy(&x, &value, sizeof(T));
    return x;
}

// Calls a kernel with arguments that lie where `from` points.
template <class... Rest>
struct Call;
template <>
struct Call<> {
    template <class F, class... Given>
    EMULATOR static void with(F kernel, void**, Given... given) {
        kernel(given...);
    }
};
template <class First, class... Rest>
struct Call<First, Rest...> {
    template <class F, class... Given>
    EMULATOR static void with(F kernel, void** from, Given... given) {
        Call<Rest...>::with(kernel, from + 1, given..., *static_cast<First*>(*from));
    }
};
template <class... A>
EMULATOR inline void call(void (*kernel)(A...), void** arguments) {
    Call<A...>::with(kernel, arguments);
}

}  // namespace emulator

#define threadIdx (emulator::thread())
#define blockIdx (emulator::block())
#define blockDim (emulator::threads())
#define gridDim (emulator::blocks())

EMULATOR inline void __syncthreads() { emulator::attached->barrier(emulator::SYNC_THREADS, 0, CALLER); }
EMULATOR inline int __syncthreads_or(int x) { return emulator::attached->barrier(emulator::SYNC_THREADS_OR, x != 0, CALLER) != 0; }
EMULATOR inline int __syncthreads_and(int x) {
    return emulator::attached->barrier(emulator::SYNC_THREADS_AND, x != 0, CALLER) == blockDim.x;
}
EMULATOR inline int __syncthreads_count(int x) { return emulator::attached->barrier(emulator::SYNC_THREADS_COUNT, x != 0, CALLER); }
EMULATOR inline void __syncwarp(unsigned int lanes = 0xffffffffu) {
    emulator::attached->exchange(emulator::SYNC_WARP, lanes, 0, CALLER);
}
EMULATOR inline unsigned int __ballot_sync(unsigned int lanes, int x) {
    return emulator::attached->exchange(emulator::BALLOT, lanes, x != 0, CALLER)->ballot;
}
EMULATOR inline int __any_sync(unsigned int lanes, int x) {
    return emulator::attached->exchange(emulator::ANY, lanes, x != 0, CALLER)->ballot != 0;
}
EMULATOR inline int __all_sync(unsigned int lanes, int x) {
    return emulator::attached->exchange(emulator::ALL, lanes, x == 0, CALLER)->ballot == 0;
}
#if __CUDA_ARCH__ >= 800
EMULATOR inline unsigned int __reduce_max_sync(unsigned int lanes, unsigned int x) {
    return emulator::attached->exchange(emulator::REDUCE_MAX, lanes, x, CALLER)->largest;
}
#endif
template <class T>
EMULATOR T __shfl_sync(unsigned int lanes, T x, int lane, int width = 32) {
    const emulator::Exchanged* all = emulator::attached->exchange(emulator::SHUFFLE, lanes, emulator::carried(x), CALLER);
    const int own = threadIdx.x % 32;
    return emulator::delivered<T>(all->value[(own & ~(width - 1)) | (lane & (width - 1))]);
}
template <class T>
EMULATOR T __shfl_xor_sync(unsigned int lanes, T x, int distance, int width = 32) {
    const emulator::Exchanged* all = emulator::attached->exchange(emulator::SHUFFLE_XOR, lanes, emulator::carried(x), CALLER);
    const int own = threadIdx.x % 32, other = own ^ distance;
    // A lane of a group further on is out of reach: one's own value comes back.
    return other / width > own / width ? x : emulator::delivered<T>(all->value[other & 31]);
}

// The threads of a block take turns only where they wait, so what is read and written here is one step.
#define ATOMIC(name, result)                                                        \
    template <class T>                                                              \
    EMULATOR T name(T* at, T x) {                                                   \
        emulator::attached->access(at, sizeof(T), emulator::ATOMIC, CALLER);        \
        const T old = *at;                                                          \
        *at = result;                                                               \
        return old;                                                                 \
    }
ATOMIC(atomicAdd, old + x)
ATOMIC(atomicMax, old > x ? old : x)
ATOMIC(atomicMin, old < x ? old : x)
ATOMIC(atomicOr, old | x)
ATOMIC(atomicAnd, old & x)
ATOMIC(atomicExch, x)
#undef ATOMIC
template <class T>
EMULATOR T atomicCAS(T* at, T expected, T x) {
    emulator::attached->access(at, sizeof(T), emulator::ATOMIC, CALLER);
    const T old = *at;
    if (old == expected) *at = x;
    return old;
}

#define EXTREMES(T)                                       \
    inline T min(T a, T b) { return b < a ? b : a; }      \
    inline T max(T a, T b) { return a < b ? b : a; }
EXTREMES(int)
EXTREMES(unsigned int)
EXTREMES(long long)
EXTREMES(unsigned long long)
#undef EXTREMES

inline unsigned int __float_as_uint(float x) { return emulator::delivered<unsigned int>(emulator::carried(x)); }
inline int __float_as_int(float x) { return emulator::delivered<int>(emulator::carried(x)); }
inline float __int_as_float(int x) { return emulator::delivered<float>(emulator::carried(x)); }
inline float __uint_as_float(unsigned int x) { return emulator::delivered<float>(emulator::carried(x)); }
inline long long __double_as_longlong(double x) { return emulator::delivered<long long>(emulator::carried(x)); }
inline double __longlong_as_double(long long x) { return emulator::delivered<double>(emulator::carried(x)); }
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }

#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED EMULATOR void emulator_attach(const emulator::Emulator* to) { emulator::attached = to; }
// Where this thread's shared memory lies.
EXPORTED EMULATOR unsigned char* emulator_memory() { return memory; }
#define EMULATED_KERNEL(name) \
    EXPORTED EMULATOR void emulator_run_##name(void** arguments) { emulator::call(name, arguments); }
