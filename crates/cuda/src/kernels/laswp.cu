// Interchange of rows, by the exchanges of some columns.
#include "laswp.cuh"

// The exchanges of columns `begin` .. `end` (NB of them at most), in all others.
extern "C" __global__ void __launch_bounds__(THREADS, BATCHLA_BLOCKS)
    laswp(Operand lu, const u32* pivots, u64 batch, int order, int begin, int end) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Moves moves;
    Position* origin = reinterpret_cast<Position*>(memory);
    const int tid = threadIdx.x;
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const Output out(lu, b);
        for (int j = tid; j < end - begin; j += THREADS) moves.pivot[j] = pivots[b * order + begin + j];
        if (INTERCHANGE != 1) {
            for (int i = begin + tid; i < order; i += THREADS) origin[i] = i;
            if (tid == 0) moves.count = 0;
            team_sync();
            for (int k = begin; tid == 0 && k < end; ++k) {
                const Position p = moves.pivot[k - begin], row = origin[k];
                origin[k] = origin[p];
                origin[p] = row;
            }
            team_sync();
            for (int i = begin + tid; i < order; i += THREADS)
                if (origin[i] != i) list_move(moves, origin[i], i);
        }
        team_sync();
        interchange(moves, out, begin, end - begin, 0, begin, tid, true);
        interchange(moves, out, begin, end - begin, end, order, tid, true);
        team_sync();
    }
}
