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
            from[r] = chip.row_in(i, chip.origin[i], first, 0);
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
__device__ inline void invert_upper(const Chip& chip, Scalar (*corner)[LINE], int n, int order, int tid) {
    const Resident a = chip.matrix;
    for (int k = tid; k < order; k += CREW) chip.reciprocal[k] = reciprocal(*a.at(k, k));
    for (int first = 0; first < order; first += NB) {
        Rows<Resident> rows(a, a, first, n, order, tid);
        rows.subtract_left([&] { rows.copy_corner(corner); });
        rows.solve_upper_by_reciprocals(corner, chip.reciprocal + first);
        rows.for_each([&](Scalar& x, int i, int j) {
            if (i <= j) *a.at(i, j) = x;
        });
        crew_sync();
    }
}

// The columns of X, from the right to the left, and at once into the result. Returns whether an element is not finite.
__device__ inline bool solve_lower(const Chip& chip, Shared& shared, Output result, int n, int order, int tid, bool wanted) {
    const Resident a = chip.matrix;
    Scalar (*const corner)[LINE] = shared.upper;
    Real trace = 0;
    for (int first = order - NB; first >= 0; first -= NB) {
        Rows<Resident> rows(a, a, first, n, order, tid);
        rows.subtract_right(a, [&] {
            rows.copy_corner(corner);
            for (int c = tid; c < NB; c += CREW) shared.distance[c] = chip.origin[first + c] * result.col;
        });
        rows.solve_lower(corner, a);
        rows.for_each([&](Scalar& x, int i, int j) {
            if (i >= order) return;
            *a.at(i, j) = x;
            trace = traced(trace, x);
            if (wanted && i < n && j < n) result.at(i, 0)[shared.distance[j - first]] = x;
        });
        crew_sync();  // threads beyond the last row take it for their own
    }
    return !(trace == 0);
}

// The same of a matrix that is one panel, from registers and to registers.

// Returns whether an element is not finite.
__device__ inline bool invert_in_registers(Shared& shared, Output result, int n, int order, int tid) {
    const Scalar (*corner)[CANDIDATE] = shared.rows();
    const Resident none = {nullptr, 0};
    Rows<Resident> rows(none, none, 0, n, order, tid);
    rows.for_each([](Scalar& x, int i, int j) { x = i == j ? one<Scalar>() : zero<Scalar>(); });
    rows.solve_upper(corner, [=](Scalar x, int c, bool wanted) {
        const Scalar quotient = Divisor<Scalar>{corner[c][c], corner[c][Candidate::TOLD]}.by_reciprocal(x);
        return wanted ? quotient : x;  // no branch
    });
    rows.solve_lower(corner);
    Real trace = 0;
    UNROLL for (int r = 0; r < ROWS; ++r)
        if (tid + r * LANES < n) {
            Scalar* const row = result.at(tid + r * LANES, 0);
            UNROLL for (int j = 0; j < n; ++j) {
                trace = traced(trace, rows.element[r][j]);
                row[shared.distance[j]] = rows.element[r][j];
            }
        }
    return !(trace == 0);
}

// The same where a pivot is not safe: in the result's memory; short, for it is seldom wanted.
__device__ inline bool invert_with_care(Shared& shared, Output result, int n, int tid) {
    const Scalar (*corner)[CANDIDATE] = shared.rows();
    Real trace = 0;
#pragma unroll 1
    for (int i = tid; i < n; i += LANES) {
        Scalar* const row = result.at(i, 0);
#pragma unroll 1
        for (int c = 0; c < n; ++c) {
            Scalar x = i == c ? one<Scalar>() : zero<Scalar>();
#pragma unroll 1
            for (int k = i; k < c; ++k) x = subtract_product(x, row[shared.distance[k]], corner[k][c]);
            row[shared.distance[c]] = i <= c ? divisor(corner[c][c]).into(x) : x;
        }
#pragma unroll 1
        for (int c = n - 1; c >= 0; --c) {
            Scalar x = zero<Scalar>();
#pragma unroll 1
            for (int k = n - 1; k > c; --k) x = subtract_product(x, row[shared.distance[k]], corner[k][c]);
            x = sum(row[shared.distance[c]], x);
            row[shared.distance[c]] = x;
            trace = traced(trace, x);
        }
    }
    return !(trace == 0);
}

// The determinants of the matrices that the calling warp has a part in, of which the first thread's is number `b` of the batch and `team` of the block. Of a team,
// `diagonal(team, k)` is that of U, `pivot(team, k)` LAPACK's.
template <class Diagonal, class Pivot>
__device__ inline void tell_determinants(Diagonal diagonal, Pivot pivot, u32 word, Real* result, u64 b, u64 batch, int n, int team, int tid) {
    constexpr int MATES = WARP / LANES;
    if (CREW > WARP && tid >= WARP) return;
    for (int mate = 0; mate < MATES; ++mate) {
        Real* const its = b + mate < batch ? result + (b + mate) * (Number<Scalar>::COMPLEX ? 3 : 2) : nullptr;
        tell_determinant([&](int k) { return diagonal(team + mate, k); }, [&](int k) { return pivot(team + mate, k) != u32(k); },
                         Warp::broadcast(word, mate * LANES), its, n, threadIdx.x % WARP);
    }
}

// `determinants` may be null.
extern "C" __global__ void __launch_bounds__(CREW* TEAMS, BATCHLA_BLOCKS)
    getrf_getri(Operand a, Operand x, Real* determinants, u32* status, u64 batch, int given) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Staggered<Shared> all[TEAMS];
    const int n = known(given), order = order_on_chip(n);
    const int tid = crew_thread(), mine = TEAMS == 1 ? opaque(0) : threadIdx.x / CREW;
    Shared& shared = all[mine];
    if (HELPERS > 0) begin_meetings(&shared.meeting, CREW);

    for (u64 first = u64(blockIdx.x) * TEAMS; first < batch; first += u64(gridDim.x) * TEAMS) {
        const bool live = first + mine < batch;
        const u64 b = live ? first + mine : first;
        const Input in(a, b);
        const Chip chip(memory, order, mine, in.at(0, 0));
        const Output result(x, b);
        bool bad, safe = true;
        if (IN_REGISTERS) {
            Panels<ROWS> panel(0, order, tid);
            factor_in_registers(panel, shared, in, n, order, tid, live);
            bad = Lanes::any(gather_rows(panel, shared, n));
            safe = !Lanes::any(prepare_sweeps(panel, shared, tid, [&](int i) { return i * result.col; }));
        } else {
            begin_columns(in, chip, shared, order, n, order, tid, live);
            factor_columns(chip, shared, 0, order, n, order, tid);
            bad = crew_any(settle_rows(chip, order, tid));
        }
        u32 word = bad ? NOT_FINITE : shared.info();
        if (determinants != nullptr) {
            const auto diagonal = [&](int team, int k) { return IN_REGISTERS ? all[team].rows()[k][k] : *Chip(memory, order, team, in.at(0, 0)).matrix.at(k, k); };
            const auto pivot = [&](int team, int k) { return IN_REGISTERS ? u32(all[team].pivot(k)) : Chip(memory, order, team).pivots[k]; };
            const int before = mine % (WARP / LANES);  // teams of the warp
            tell_determinants(diagonal, pivot, live ? word : NOT_FINITE, determinants, first + mine - before, batch, n, mine - before, tid);
        }
        // Teams of one warp go on together, whatever has become of their matrices.
        if (TEAMS > 1 || word == 0) {
            const bool wanted = live && word == 0;
            if (IN_REGISTERS) {
                bad = !wanted ? false : safe ? invert_in_registers(shared, result, n, order, tid) : invert_with_care(shared, result, n, tid);
            } else {
                invert_upper(chip, shared.upper, n, order, tid);
                bad = solve_lower(chip, shared, result, n, order, tid, wanted);
            }
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
