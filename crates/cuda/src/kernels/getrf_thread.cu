// A = P L U with partial pivoting, a matrix a thread; one launch a batch.
#include "thread.cuh"

// The arguments of `getrf.cu`.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    getrf(Operand a, Operand lu, u32* pivots, u32* rows, u32* status, u64 batch, int) {
    __shared__ Elements all[THREADS / WARP];
    __shared__ Places all_places[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    Elements& elements = all[warp];
    Places& places = all_places[warp];
    for (u64 first = u64(blockIdx.x) * THREADS + warp * WARP; first < batch; first += u64(gridDim.x) * THREADS) {
        const Share share = {first, batch - first < WARP ? int(batch - first) : WARP, lane};
        Scalar x[N][N];
        u32 pivot[N], origin[N], own[N];
        load<BATCHLA_UNIT_ROWS_IN>(x, a, elements, share);
        const u32 info = getf2(x, pivot, origin);
        UNROLL for (int j = 0; j < N; ++j) own[j] = j;
        store<BATCHLA_UNIT_ROWS_OUT>(x, own, lu, elements, share);
        store(pivot, pivots, places, share);
        if (rows != nullptr) store(origin, rows, places, share);
        if (share.live()) status[first + lane] = all_finite(x) ? info : NOT_FINITE;
    }
}
