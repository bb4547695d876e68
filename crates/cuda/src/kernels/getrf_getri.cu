// A^-1, each matrix read once and written once: LU on chip, then X U = I and X L = U^-1 in its place, each by delayed correction. One
// team of threads a matrix, one launch a batch.
#include "crout.cuh"
#include "det.cuh"

// The columns of U^-1 in place of those of U, from the left to the right.
__device__ inline void invert_upper(const Chip& chip, int order, int tid) {
    const Resident a = chip.matrix;
    const int top = tid & ~(LANES - 1);  // whole warps below a block have nothing to do
    for (int k = tid; k < order; k += THREADS) chip.reciprocal[k] = reciprocal(*a.at(k, k));
    team_sync();
    for (int first = 0; first < order; first += NB) {
        const int width = min(NB, order - first);
        Rows rows(a, 0, order, tid);
        if (top < first + width) {
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int c = 0; c < NB; ++c) rows.element[r][c] = tid + r * THREADS == first + c ? one<Scalar>() : zero<Scalar>();
            rows.subtract_above<true>(a, top / NB * NB, first, width, tid);
            UNROLL for (int c = 0; c < NB; ++c) {
                if (c >= width) break;
                UNROLL for (int d = 0; d < c; ++d) {
                    const Scalar u = *a.at(first + d, first + c);
                    UNROLL for (int r = 0; r < ROWS; ++r)
                        rows.element[r][c] = subtract_product(rows.element[r][c], rows.element[r][d], u);
                }
                const Divisor<Scalar> by = {*a.at(first + c, first + c), chip.reciprocal[first + c]};
                UNROLL for (int r = 0; r < ROWS; ++r)
                    if (tid + r * THREADS <= first + c) rows.element[r][c] = by.into(rows.element[r][c]);
            }
        }
        team_sync();  // all have read what is overwritten
        if (top < first + width)
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int c = 0; c < NB; ++c)
                    if (c < width && tid + r * THREADS <= first + c) *a.at(tid + r * THREADS, first + c) = rows.element[r][c];
    }
}

// The columns of X, from the right to the left, and at once into the result. Returns whether an element is not finite.
__device__ inline bool solve_lower(const Chip& chip, Output result, int order, int tid, bool wanted) {
    const Resident a = chip.matrix;
    bool bad = false;
    for (int first = (order - 1) / NB * NB; first >= 0; first -= NB) {
        const int width = min(NB, order - first), last = first + width;
        Rows rows(a, 0, order, tid);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const int i = tid + r * THREADS;
            UNROLL for (int c = 0; c < NB; ++c) rows.element[r][c] = c < width && i <= first + c ? *a.at(i, first + c) : zero<Scalar>();
        }
        int k = order;
        while (k > last && k % NB != 0) rows.subtract_row<false>(a, first, NB, --k, 0);
        for (; k > last; k -= NB) rows.subtract_block<false, false>(a, first, k - NB, 0);
        UNROLL for (int c = NB - 2; c >= 0; --c) {
            UNROLL for (int d = NB - 1; d > c; --d) {
                if (d >= width) continue;
                const Scalar l = *a.at(first + d, first + c);
                UNROLL for (int r = 0; r < ROWS; ++r) rows.element[r][c] = subtract_product(rows.element[r][c], rows.element[r][d], l);
            }
        }
        team_sync();  // all have read what is overwritten
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const int i = tid + r * THREADS;
            if (i >= order) continue;
            UNROLL for (int c = 0; c < NB; ++c)
                if (c < width) {
                    *a.at(i, first + c) = rows.element[r][c];
                    bad |= !is_finite(rows.element[r][c]);
                    if (wanted) *result.at(i, chip.origin[first + c]) = rows.element[r][c];
                }
        }
        team_sync();  // threads beyond the last row take it for their own
    }
    return bad;
}

// The determinants of the matrices that the calling warp has a part in, of which the first thread's is number `b`.
__device__ inline void tell_determinants(unsigned char* memory, u32 word, Real* result, u64 b, u64 batch, int order, int mine, int tid) {
    constexpr int MATES = WARP / LANES;
    if (tid >= WARP) return;
    const int lane = threadIdx.x % WARP;
    for (int mate = 0; mate < MATES; ++mate) {
        const Chip chip(memory, order, mine / MATES * MATES + mate);
        const u32 its_word = Warp::broadcast(word, mate * LANES);
        if (b + mate >= batch) break;
        tell_determinant([&](int k) { return *chip.matrix.at(k, k); }, [&](int k) { return chip.pivots[k] != u32(k); }, its_word,
                         result + (b + mate) * (Number<Scalar>::COMPLEX ? 3 : 2), order, lane);
    }
}

// `determinants` may be null.
extern "C" __global__ void __launch_bounds__(THREADS* TEAMS, BATCHLA_BLOCKS)
    getrf_getri(Operand a, Operand x, Real* determinants, u32* status, u64 batch, int order) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Election elections[TEAMS];
    const int tid = TEAMS == 1 ? threadIdx.x : threadIdx.x % THREADS, mine = TEAMS == 1 ? opaque(0) : threadIdx.x / THREADS;
    const Chip chip(memory, order, mine);

    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        bool bad = false;
        u32 word = crout(Input(a, b), chip, elections[mine], chip.pivots, true, order, bad, tid, live);
        if (bad) word = NOT_FINITE;
        if (determinants != nullptr) tell_determinants(memory, word, determinants, first + mine / (WARP / LANES) * (WARP / LANES), batch, order, mine, tid);
        const Output result(x, b);
        // Teams of one warp go on together, whatever has become of their matrices.
        if (TEAMS > 1 || word == 0) {
            invert_upper(chip, order, tid);
            bad = solve_lower(chip, result, order, tid, live && word == 0);
            if (team_any(bad) && word == 0) word = NOT_FINITE;
        }
        if (live) {
            if (tid == 0) status[b] = word;
            for (int i = tid; word != 0 && i < order; i += THREADS)
                for (int j = 0; j < order; ++j) *result.at(i, j) = not_a_number<Scalar>();
        }
        team_sync();
    }
}
