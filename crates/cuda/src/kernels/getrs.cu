// op(A) X = B from A = P L U: an exchange of rows and two triangular sweeps. One block takes one matrix and a tile of its
// right-hand sides, which stays in shared memory.
#include "operand.cuh"
#include "warp.cuh"

constexpr int NB = WARP;               // rows solved together, one a lane
constexpr int TILE = BATCHLA_COLUMNS;  // right-hand sides of a block

// op(L U) by its elements.
struct Triangles {
    const Scalar* origin;
    u64 row, col;

    __device__ Scalar at(u64 i, u64 j) const { return origin[i * row + j * col]; }
};

// Solves with the lower (forward) or upper (backward) triangle; `unit`: its diagonal is ones. x[i * TILE + c] is right-hand side c.
__device__ inline void sweep(Triangles a, Scalar* x, int order, bool forward, bool unit) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const int blocks = (order + NB - 1) / NB;
    for (int step = 0; step < blocks; ++step) {
        const int first = (forward ? step : blocks - 1 - step) * NB, count = min(NB, order - first);
        const int i = first + lane;
        for (int c = warp; c < TILE; c += warps) {
            Scalar own = lane < count ? x[i * TILE + c] : zero<Scalar>();
            for (int s = 0; s < count; ++s) {
                const int k = forward ? s : count - 1 - s;
                if (lane == k && !unit) own = divisor(a.at(i, i)).into(own);
                const Scalar solved = Warp::broadcast(own, k);
                const bool left = forward ? lane > k : lane < k;
                if (left && lane < count) own = subtract_product(own, a.at(i, first + k), solved);
            }
            if (lane < count) x[i * TILE + c] = own;
        }
        __syncthreads();
        const int begin = forward ? first + count : 0, end = forward ? order : first;
        for (int r = begin + threadIdx.x; r < end; r += blockDim.x) {
            Scalar own[TILE];
            UNROLL for (int c = 0; c < TILE; ++c) own[c] = x[r * TILE + c];
            for (int s = 0; s < count; ++s) {
                const int k = first + (forward ? s : count - 1 - s);
                const Scalar factor = a.at(r, k);
                UNROLL for (int c = 0; c < TILE; ++c) own[c] = subtract_product(own[c], factor, x[k * TILE + c]);
            }
            UNROLL for (int c = 0; c < TILE; ++c) x[r * TILE + c] = own[c];
        }
        __syncthreads();
    }
}

// `form`: 0 A, 1 A^T, 2 A^H, for which right-hand sides and solutions are conjugated. `one_matrix`: it serves the whole batch (`lu` then steps by nothing). `status` holds each result's word so
// far; results that are not finite raise it. `b` and `x` may be one.
extern "C" __global__ void getrs(Operand lu, const u32* rows, u32 one_matrix, Operand b, Operand x, u32* status, u64 batch,
                                 int order, int columns, int form) {
    extern __shared__ __align__(16) unsigned char memory[];
    Scalar* tile = reinterpret_cast<Scalar*>(memory);
    const u64 tiles = (columns + TILE - 1) / TILE;
    for (u64 item = blockIdx.x; item < batch * tiles; item += gridDim.x) {
        const u64 m = item / tiles;
        const int first = item % tiles * TILE, count = min(TILE, columns - first);
        const u32* row = rows + (one_matrix ? 0 : m * order);
        const MatrixAt<false> right(b, m), result(x, m);
        // Neighbouring threads take neighbouring elements, whichever way they lie.
        for (int e = threadIdx.x; e < order * TILE; e += blockDim.x) {
            const int i = right.row < right.col ? e % order : e / TILE, c = right.row < right.col ? e / order : e % TILE;
            const Scalar value = c < count ? *right.at(form == 0 ? row[i] : i, first + c) : zero<Scalar>();
            tile[i * TILE + c] = form == 2 ? conjugate(value) : value;
        }
        __syncthreads();
        Triangles a = {lu.matrix(m), form == 0 ? lu.row : lu.col, form == 0 ? lu.col : lu.row};
        // A = P L U: first L, then U; transposed, first U^T, which is lower, then L^T.
        sweep(a, tile, order, true, form == 0);
        sweep(a, tile, order, false, form != 0);
        bool bad = false;
        for (int e = threadIdx.x; e < order * TILE; e += blockDim.x) {
            const int i = result.row < result.col ? e % order : e / TILE, c = result.row < result.col ? e / order : e % TILE;
            if (c < count) {
                bad = bad || !is_finite(tile[i * TILE + c]);
                *result.at(form == 0 ? i : row[i], first + c) = form == 2 ? conjugate(tile[i * TILE + c]) : tile[i * TILE + c];
            }
        }
        // Blocks of one matrix may see failures at once.
        if (__syncthreads_or(bad) && threadIdx.x == 0) atomicCAS(status + m, 0u, NOT_FINITE);
    }
}
