// X = A^-1 B of matrices that are one panel, each read once: LU in registers, then the sweeps with both triangles, in registers too: of many right-hand sides one a lane, of few
// some at a time by all lanes. One warp (or less) a matrix, one launch a batch.
#include "lookahead.cuh"

static_assert(IN_REGISTERS, "matrices that are one panel");

constexpr bool MANY = BATCHLA_COLUMNS == 0;
constexpr int TILE = MANY ? 1 : BATCHLA_COLUMNS;  // of few: right-hand sides at a time

// Of few, row r of a thread is row `tid + r * LANES` of L and U, and of right-hand sides in their order.
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

// The divisor of row k, which may be divided by through its reciprocal.
__device__ inline Divisor<Scalar> divisor_of(Shared& shared, int k) { return {shared.rows()[k][k], shared.candidates(k)[0].told().value[0]}; }

// x = U^-1 x.
__device__ inline void solve_upper(const Triangles& a, Sides& x, Shared& shared, int tid) {
    UNROLL for (int k = WIDTH - 1; k >= 0; --k) {
        const int own = k / LANES;
        const Divisor<Scalar> by = divisor_of(shared, k);
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

// Of many, all rows of a lane's own.
typedef Scalar Side[WIDTH];

// A pack of row i. Where rows are short the compiler may move what it loads: text is short too, and systems of order 8 are up to a fifth faster so, as measured.
__device__ inline Pack pack_of(Shared& shared, int i, int k) {
    const Scalar* own = &shared.rows()[i][k];
    return NB > 8 ? pack_on_chip(own) : *reinterpret_cast<const Pack*>(own);
}

__device__ inline void solve_lower(Shared& shared, Side& y) {
    UNROLL for (int k = 0; k < WIDTH; k += Pack::LENGTH)
        UNROLL for (int i = k + 1; i < WIDTH; ++i) {
            const Pack l = pack_of(shared, i, k);
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s)
                if (k + s < i) y[i] = subtract_product(y[i], l.value[s], y[k + s]);
        }
}

__device__ inline void solve_upper(Shared& shared, Side& x) {
    UNROLL for (int k = (WIDTH - 1) / Pack::LENGTH * Pack::LENGTH; k >= 0; k -= Pack::LENGTH)
        UNROLL for (int i = min(k + Pack::LENGTH, WIDTH) - 1; i >= 0; --i) {
            const Pack u = pack_of(shared, i, k);
            UNROLL for (int s = Pack::LENGTH - 1; s >= 0; --s)
                if (k + s > i && k + s < WIDTH) x[i] = subtract_product(x[i], u.value[s], x[k + s]);
            if (i >= k) x[i] = divisor_of(shared, i).by_reciprocal(x[i]);
        }
}

// The same where a pivot may not be divided by through its reciprocal, in the result's memory, right-hand sides `first` .. `end`, each by one thread; short, for it is seldom
// wanted.
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

// Right-hand sides `b` from `column` on, solved into `x`. Traces stay zero as long as all is finite.
struct Systems {
    Shared& shared;
    MatrixAt<false> b, x;
    int n, columns, tid;
    bool live, wanted, safe;  // there is a matrix, it was factored, its pivots may be divided by through their reciprocals

    __device__ Real solve_many(Real trace, int column) {
        const int c = column + tid;
        const bool there = c < columns;
        Side side;
        UNROLL for (int k = 0; k < WIDTH; ++k) side[k] = live && there ? *b.at(shared.distance[k], c) : zero<Scalar>();
        solve_lower(shared, side);
        if (safe) solve_upper(shared, side);
        UNROLL for (int k = 0; k < WIDTH; ++k) {
            trace = traced(trace, side[k]);
            if (wanted && there) *x.at(k, c) = side[k];
        }
        return trace;
    }
    __device__ Real solve_few(Real trace, const Triangles& a, int column) {
        Sides sides;
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int c = 0; c < TILE; ++c) {
                const int i = tid + r * LANES;
                sides[r][c] = live && i < n && column + c < columns ? *b.at(shared.distance[min(i, n - 1)], column + c) : zero<Scalar>();
            }
        Lanes::sync();  // before any of these is overwritten
        solve_lower(a, sides, tid);
        if (safe) solve_upper(a, sides, shared, tid);
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int c = 0; c < TILE; ++c) {
                const int i = tid + r * LANES;
                if (i >= n || column + c >= columns) continue;
                trace = traced(trace, sides[r][c]);
                if (wanted) *x.at(i, column + c) = sides[r][c];
            }
        return trace;
    }
};

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
        Panels<ROWS> panel(0, order, tid);
        factor_in_registers(panel, shared, Input(a, m), n, order, tid, live);
        const bool bad = Lanes::any(gather_rows(panel, shared, n));
        u32 word = bad ? NOT_FINITE : shared.info();
        // In the whole warp: its teams go on together.
        const bool safe = !Warp::any(prepare_sweeps(panel, shared, tid, [](int i) { return i; }));
        if (!MANY)
            UNROLL for (int r = 0; r < ROWS; ++r)
                UNROLL for (int p = 0; p < PACKS; ++p) {
                    const Pack row = pack_of(shared, min(tid + r * LANES, n - 1), p * Pack::LENGTH);
                    UNROLL for (int s = 0; s < Pack::LENGTH; ++s) panel.element[r][p * Pack::LENGTH + s] = row.value[s];
                }
        Systems systems = {shared, {b, m}, {x, m}, n, columns, tid, live, live && word == 0, safe};
        Real trace = 0;
#pragma unroll 1
        for (int column = 0; column < columns; column += MANY ? LANES : TILE) {
            trace = MANY ? systems.solve_many(trace, column) : systems.solve_few(trace, panel.element, column);
            if (safe) continue;
            const int end = systems.wanted ? min(column + (MANY ? LANES : TILE), columns) : 0;
            solve_upper_with_care(shared, systems.x, n, column, end, tid);
            for (int c = column; c < end; ++c)
                for (int i = tid; i < n; i += LANES) trace = traced(trace, *systems.x.at(i, c));
        }
        if (Lanes::any(!(trace == 0)) && word == 0) word = NOT_FINITE;
        Lanes::sync();  // others may have written what failed
        if (live) {
            if (tid == 0) status[m] = word;
            for (int i = tid; word != 0 && i < n; i += LANES)
                for (int c = 0; c < columns; ++c) *systems.x.at(i, c) = not_a_number<Scalar>();
        }
    }
}
