// What the compiler's instrumentation calls at each access to memory and at undefined behaviour, in place of the sanitizers' own
// libraries, which know neither the GPU's threads nor its memories.
#pragma once

#define HOOK extern "C" EMULATOR
// How far above the hook's frame the caller's locals are, at most: what the compiler writes there at once, of several of them, it need not align.
#define LOCALS (16ul << 10)
#define ALIGNED(address, bytes)                                                                                                        \
    if (reinterpret_cast<unsigned long>(address) % (bytes) != 0 &&                                                                     \
        reinterpret_cast<unsigned long>(address) - reinterpret_cast<unsigned long>(__builtin_frame_address(0)) >= LOCALS) {            \
        emulator::attached->undefined("an address is misaligned", 0, "", CALLER);                                                      \
    }
#define ACCESS(name, bytes, kind) \
    HOOK void name(void* address) { emulator::attached->access(address, bytes, emulator::kind, CALLER); }
#define ALIGNED_ACCESS(name, bytes, kind)                                    \
    HOOK void name(void* address) {                                          \
        ALIGNED(address, bytes)                                              \
        emulator::attached->access(address, bytes, emulator::kind, CALLER);  \
    }
#define ACCESSES(bytes)                                  \
    ALIGNED_ACCESS(__tsan_read##bytes, bytes, READ)              \
    ALIGNED_ACCESS(__tsan_write##bytes, bytes, WRITE)            \
    ALIGNED_ACCESS(__tsan_volatile_read##bytes, bytes, READ)     \
    ALIGNED_ACCESS(__tsan_volatile_write##bytes, bytes, WRITE)   \
    ACCESS(__tsan_unaligned_read##bytes, bytes, READ)    \
    ACCESS(__tsan_unaligned_write##bytes, bytes, WRITE)  \
    HOOK void __tsan_read_write##bytes(void* address) {  \
        ALIGNED(address, bytes)                          \
        emulator::attached->access(address, bytes, emulator::READ, CALLER);  \
        emulator::attached->access(address, bytes, emulator::WRITE, CALLER); \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
HOOK void __tsan_read_range(void* address, unsigned long bytes) { emulator::attached->access(address, bytes, emulator::READ, CALLER); }
HOOK void __tsan_write_range(void* address, unsigned long bytes) { emulator::attached->access(address, bytes, emulator::WRITE, CALLER); }
HOOK void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
    emulator::attached->access(from, bytes, emulator::READ, CALLER);
    emulator::attached->access(to, bytes, emulator::WRITE, CALLER);
    return __builtin_memcpy(to, from, bytes);
}
HOOK void* __tsan_memset(void* to, int value, unsigned long bytes) {
    emulator::attached->access(to, bytes, emulator::WRITE, CALLER);
    return __builtin_memset(to, value, bytes);
}
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}

// Whatever is found starts with the place in the source.
namespace emulator {
struct Place {
    const char* file;
    unsigned int line, column;
};
}  // namespace emulator
#define UNDEFINED(name, what)                                                              \
    HOOK void __ubsan_handle_##name(const emulator::Place* place, unsigned long, unsigned long) {    \
        emulator::attached->undefined(what, place->line, place->file, CALLER);             \
    }
UNDEFINED(out_of_bounds, "an index is beyond its array")
UNDEFINED(add_overflow, "a sum of integers overflows")
UNDEFINED(sub_overflow, "a difference of integers overflows")
UNDEFINED(mul_overflow, "a product of integers overflows")
UNDEFINED(negate_overflow, "a negated integer overflows")
UNDEFINED(divrem_overflow, "an integer is divided by zero")
UNDEFINED(shift_out_of_bounds, "a shift is by too much, or of a negative number")
UNDEFINED(float_cast_overflow, "a number does not fit the integer it becomes")
UNDEFINED(load_invalid_value, "a truth value or an enumeration is none of its values")
UNDEFINED(vla_bound_not_positive, "an array has no elements")
UNDEFINED(nonnull_arg, "an argument is null")
UNDEFINED(nonnull_return_v1, "a result is null")
UNDEFINED(invalid_builtin, "a count of zeros is taken of zero")
UNDEFINED(builtin_unreachable, "what cannot be reached was")
UNDEFINED(missing_return, "a function ends without its result")
