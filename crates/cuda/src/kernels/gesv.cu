// X = A^-1 B of matrices that are one panel, each read once: LU in registers, then the sweeps with both triangles, some right-hand sides at a time, in registers too.
// One warp (or less) a matrix, one launch a batch.
#include "lookahead.cuh"

static_assert(IN_REGISTERS, "matrices that are one panel");

constexpr int TILE = BATCHLA_COLUMNS;  // right-hand sides at a time

// Row r of a thread is row `tid + r * LANES` of L and U, and of right-hand sides in their order.
typedef Scalar Triangles[ROWS][NB];
typedef Scalar Sides[ROWS][TILE];

// y = L^-1 y.
__device__ inline void solve_lower(const Triangles& a, Sides& y, int tid) {
    UNROLL for (int k = 0; k + 1 < WIDTH; ++k)
        UNROLL for (int c = 0; c < TILE; ++c) {
            const Scalar solved = Lanes::broadcast(y[k / LANES][c], k % LANES);
            UNROLL for (int r = k / LANES; r < ROWS; ++r) {
                const Scalar less = subtract_product(y[r][c], a[r][k], solved);
                y[r][c] = tid + r * LANES > k ? less : y[r][c];
            }
        }
}

// x = U^-1 x, where all pivots may be divided by through their reciprocals.
__device__ inline void solve_upper(const Triangles& a, Sides& x, Shared& shared, int tid) {
    UNROLL for (int k = WIDTH - 1; k >= 0; --k) {
        const int own = k / LANES;
        const Divisor<Scalar> by = {shared.rows()[k][k], shared.candidates(k)[0].told().value[0]};
        UNROLL for (int c = 0; c < TILE; ++c) {
            const Scalar quotient = by.by_reciprocal(x[own][c]);
            x[own][c] = tid + own * LANES == k ? quotient : x[own][c];
            const Scalar solved = Lanes::broadcast(x[own][c], k % LANES);
            UNROLL for (int r = 0; r <= own; ++r) {
                const Scalar less = subtract_product(x[r][c], a[r][k], solved);
                x[r][c] = tid + r * LANES < k ? less : x[r][c];
            }
        }
    }
}

// The same where they may not, in the result's memory, right-hand sides `first` .. `end`, each by one thread; short, for it is seldom wanted.
__device__ inline void solve_upper_with_care(Shared& shared, MatrixAt<false> x, int n, int first, int end, int tid) {
    Lanes::sync();
#pragma unroll 1
    for (int c = first + tid; c < end; c += LANES)
#pragma unroll 1
        for (int k = n - 1; k >= 0; --k) {
            const Scalar solved = divisor(shared.rows()[k][k]).into(*x.at(k, c));
            *x.at(k, c) = solved;
#pragma unroll 1
            for (int i = 0; i < k; ++i) *x.at(i, c) = subtract_product(*x.at(i, c), shared.rows()[i][k], solved);
        }
    Lanes::sync();
}

// Where rows of U have come from, and reciprocals of the diagonal. Returns whether all pivots may be divided by through these, in the whole warp: its teams go on together.
__device__ inline bool prepare_sweeps(const Panels& panel, Shared& shared, int tid) {
    UNROLL for (int r = 0; r < ROWS; ++r)
        if (panel.position[r] >= 0) shared.distance[panel.position[r]] = tid + r * LANES;
    bool unsafe = false;
    for (int k = tid; k < WIDTH; k += LANES) {
        const Divisor<Scalar> by = divisor(shared.rows()[k][k]);
        unsafe |= !by.safe();
        shared.candidates(k)[0].told().value[0] = by.reciprocal;
    }
    Lanes::sync();
    return !Warp::any(unsafe);
}

// `b` and `x` may be one.
extern "C" __global__ void __launch_bounds__(CREW* TEAMS, BATCHLA_BLOCKS)
    gesv(Operand a, Operand b, Operand x, u32* status, u64 batch, int given, int columns) {
    __shared__ Staggered<Shared> all[TEAMS];
    const int n = known(given), order = order_on_chip(n);
    const int tid = crew_thread(), mine = TEAMS == 1 ? opaque(0) : threadIdx.x / CREW;
    Shared& shared = all[mine];

    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 m = live ? first + mine : first;
        Panels panel(order, tid);
        factor_in_registers(panel, shared, Input(a, m), n, order, tid, live);
        const bool bad = Lanes::any(gather_rows(panel, shared, n));
        u32 word = bad ? NOT_FINITE : shared.info();
        const bool safe = prepare_sweeps(panel, shared, tid);
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int p = 0; p < PACKS; ++p) {
                const Pack row = *reinterpret_cast<const Pack*>(&shared.rows()[min(tid + r * LANES, n - 1)][p * Pack::LENGTH]);
                UNROLL for (int s = 0; s < Pack::LENGTH; ++s) panel.element[r][p * Pack::LENGTH + s] = row.value[s];
            }
        const MatrixAt<false> right(b, m), result(x, m);
        Real trace = 0;
#pragma unroll 1
        for (int column = 0; column < columns; column += TILE) {
            Sides sides;
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int c = 0; c < TILE; ++c) {
                    const int i = tid + r * LANES;
                    sides[r][c] = live && i < n && column + c < columns ? *right.at(shared.distance[min(i, n - 1)], column + c) : zero<Scalar>();
                }
            Lanes::sync();  // before any of these is overwritten
            solve_lower(panel.element, sides, tid);
            if (safe) solve_upper(panel.element, sides, shared, tid);
            const bool wanted = live && word == 0;
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int c = 0; c < TILE; ++c) {
                    const int i = tid + r * LANES;
                    if (i >= n || column + c >= columns) continue;
                    trace = traced(trace, sides[r][c]);
                    if (wanted) *result.at(i, column + c) = sides[r][c];
                }
            if (safe) continue;
            const int end = wanted ? min(column + TILE, columns) : 0;
            solve_upper_with_care(shared, result, n, column, end, tid);
            for (int c = column; c < end; ++c)
                for (int i = tid; i < n; i += LANES) trace = traced(trace, *result.at(i, c));
        }
        if (Lanes::any(!(trace == 0)) && word == 0) word = NOT_FINITE;
        if (live) {
            if (tid == 0) status[m] = word;
            for (int i = tid; word != 0 && i < n; i += LANES)
                for (int c = 0; c < columns; ++c) *result.at(i, c) = not_a_number<Scalar>();
        }
        Lanes::sync();
    }
}
