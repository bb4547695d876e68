
// Appended to `instruction.cuh`, whose own twins copy at once: here copies go on beside the thread, as on architectures that have them.
#if __CUDA_ARCH__ >= 800
namespace emulator {
template <class T>
EMULATOR void copy_async(T* shared, const T* global) {
    if ((reinterpret_cast<unsigned long>(shared) | reinterpret_cast<unsigned long>(global)) % sizeof(T) != 0)
        attached->undefined("a copy begins within what it moves at a time", 0, "", CALLER);
    attached->copy(shared, global, sizeof(T), CALLER);
}
EMULATOR inline void commit_copies() { attached->commit(); }
template <int Pending>
EMULATOR void wait_copies() {
    attached->wait(Pending, CALLER);
}
}  // namespace emulator
#define copy_async emulator::copy_async
#define commit_copies emulator::commit_copies
#define wait_copies emulator::wait_copies
#endif
