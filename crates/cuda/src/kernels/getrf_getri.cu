// A^-1, each matrix read once and written once: LU on chip, then X U = I and X L = U^-1 in its place, each by delayed correction. One
// crew of threads a matrix, one launch a batch.
#include "det.cuh"
#include "lookahead.cuh"
#include "rows.cuh"

// Brings the rows of L to their places, where rows of U are. Returns whether an element is not finite.
__device__ inline bool settle_rows(const Chip& chip, int order, int tid) {
    const Resident a = chip.matrix;
    const int lane = tid % LANES;
    Real trace = 0;  // as long as all is finite
    for (int first = tid / LANES * NB; first < order; first += CREW / LANES * NB) {
        int from[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const int i = min(lane + r * LANES, order - 1);
            from[r] = chip.place_of(chip.origin[i], first / NB);
        }
        Scalar x[NB][ROWS];
        UNROLL for (int c = 0; c < NB; ++c)
            UNROLL for (int r = 0; r < ROWS; ++r)
            {
                x[c][r] = *a.at(from[r], first + c);
                trace = traced(trace, x[c][r]);
            }
        Lanes::sync();
        UNROLL for (int c = 0; c < NB; ++c)
            UNROLL for (int r = 0; r < ROWS; ++r)
                if (lane + r * LANES < order) *a.at(lane + r * LANES, first + c) = x[c][r];
    }
    crew_sync();
    return !(trace == 0);
}

// The columns of U^-1 in place of those of U, from the left to the right.
__device__ inline void invert_upper(const Chip& chip, Scalar (&corner)[NB][LINE], int n, int order, int tid) {
    const Resident a = chip.matrix;
    for (int k = tid; k < order; k += CREW) chip.reciprocal[k] = reciprocal(*a.at(k, k));
    for (int first = 0; first < order; first += NB) {
        Rows<Resident> rows(a, a, first, n, order, tid);
        rows.subtract_left([&] { rows.copy_corner(corner); });
        rows.solve_upper(corner, chip.reciprocal + first);
        rows.for_each([&](Scalar& x, int i, int j) {
            if (i <= j) *a.at(i, j) = x;
        });
        crew_sync();
    }
}

// The columns of X, from the right to the left, and at once into the result. Returns whether an element is not finite.
__device__ inline bool solve_lower(const Chip& chip, Scalar (&corner)[NB][LINE], Output result, int n, int order, int tid, bool wanted) {
    const Resident a = chip.matrix;
    Real trace = 0;
    for (int first = order - NB; first >= 0; first -= NB) {
        Rows<Resident> rows(a, a, first, n, order, tid);
        rows.subtract_right(a, [&] { rows.copy_corner(corner); });
        rows.solve_lower(corner);
        rows.for_each([&](Scalar& x, int i, int j) {
            if (i >= order) return;
            *a.at(i, j) = x;
            trace = traced(trace, x);
            if (wanted && i < n && j < n) *result.at(i, chip.origin[j]) = x;
        });
        crew_sync();  // threads beyond the last row take it for their own
    }
    return !(trace == 0);
}

// The determinants of the matrices that the calling warp has a part in, of which the first thread's is number `b`.
__device__ inline void tell_determinants(unsigned char* memory, u32 word, Real* result, u64 b, u64 batch, int n, int order, int mine, int tid) {
    constexpr int MATES = WARP / LANES;
    if (tid >= WARP) return;
    const int lane = threadIdx.x % WARP;
    for (int mate = 0; mate < MATES; ++mate) {
        const Chip chip(memory, order, mine / MATES * MATES + mate);
        const u32 its_word = Warp::broadcast(word, mate * LANES);
        if (b + mate >= batch) break;
        tell_determinant([&](int k) { return *chip.matrix.at(k, k); }, [&](int k) { return chip.pivots[k] != u32(k); }, its_word,
                         result + (b + mate) * (Number<Scalar>::COMPLEX ? 3 : 2), n, lane);
    }
}

// `determinants` may be null.
extern "C" __global__ void __launch_bounds__(CREW* TEAMS, BATCHLA_BLOCKS)
    getrf_getri(Operand a, Operand x, Real* determinants, u32* status, u64 batch, int given) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Staggered<Shared> all[TEAMS];
    const int n = known(given), order = order_on_chip(n);
    const int tid = crew_thread(), mine = TEAMS == 1 ? opaque(0) : threadIdx.x / CREW;
    const Chip chip(memory, order, mine);
    Shared& shared = all[mine];

    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        Panels panel(order, tid % LANES);
        begin_columns(Input(a, b), chip, shared, order, n, order, tid, live);
        factor_columns(panel, chip, shared, chip.pivots, 0, order, n, order, tid, live);
        u32 word = shared.info();
        if (crew_any(settle_rows(chip, order, tid))) word = NOT_FINITE;
        if (determinants != nullptr) tell_determinants(memory, word, determinants, first + mine / (WARP / LANES) * (WARP / LANES), batch, n, order, mine, tid);
        const Output result(x, b);
        // Teams of one warp go on together, whatever has become of their matrices.
        if (TEAMS > 1 || word == 0) {
            invert_upper(chip, shared.upper, n, order, tid);
            const bool bad = solve_lower(chip, shared.upper, result, n, order, tid, live && word == 0);
            if (crew_any(bad) && word == 0) word = NOT_FINITE;
        }
        if (live) {
            if (tid == 0) status[b] = word;
            for (int i = tid; word != 0 && i < n; i += CREW)
                for (int j = 0; j < n; ++j) *result.at(i, j) = not_a_number<Scalar>();
        }
        crew_sync();
    }
}
