// Outcome words, and what a failed matrix leaves behind.
#include "operand.cuh"

// Each of `batch` results starts from the word of its matrix; `step` 0: one matrix serves all.
extern "C" __global__ void spread(const u32* from, u64 step, u32* to, u64 batch) {
    for (u64 b = u64(blockIdx.x) * blockDim.x + threadIdx.x; b < batch; b += u64(gridDim.x) * blockDim.x) to[b] = from[b * step];
}

// Fills the results of failed matrices with NaN.
extern "C" __global__ void fill_failed(Operand x, const u32* status, u64 batch, int rows, int columns) {
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        if (status[b] == 0) continue;
        const MatrixAt<false> result(x, b);
        for (u64 e = threadIdx.x; e < u64(rows) * columns; e += blockDim.x)
            *result.at(e % rows, e / rows) = not_a_number<Scalar>();
    }
}
