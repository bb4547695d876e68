// A^-1 from A = P L U: X U = I, then X L = U^-1, each by delayed correction, the order of columns undone on the way out. Of the triangle a block column at a time is on
// chip; solved columns come from memory, each once for every block column that they correct. One crew of threads a matrix or, of few matrices, several, each of which has some rows; one launch a
// batch.
#include "rows.cuh"

static_assert(WINDOW == NB, "a window is a block column");
constexpr bool PART = BATCHLA_PART;  // a block has some of a matrix's rows
// Solved columns, whole block columns, that stay on chip beside those in memory, as far as there is room: of U^-1 the first, no row of which is longer, and of X the last.
constexpr int EARLY = BATCHLA_EARLY, LATE = BATCHLA_LATE;
static_assert(EARLY % NB == 0 && LATE % NB == 0, "whole block columns");
// The first column of X that has a copy.
__device__ inline int first_late(int order) { return (order + NB - 1) / NB * NB - LATE; }
static_assert(ORDER % 8 == 0, "a class of orders, by how far columns are apart in the workspace");
// X takes the place of U^-1 in the workspace, too, from where it is read again: columns begin where lines of memory do, and all are as long as the compiler knows. Where the kernel is for the
// last order of its class that is so in the result, and the second copy would cost more than it gains.
constexpr bool APART = ORDER == 0 || EXACT != ORDER;
// Lines of the workspace that nobody reads again are let go of: on their way to memory they are in the way of others. Numbers of other types gained nothing by it, nor larger matrices.
constexpr bool DISCARDS = !PART && !Number<Scalar>::COMPLEX && sizeof(Scalar) == 8 && ORDER <= 256;
// Columns of the workspace before this one are read until the end.
__device__ inline int kept_until(int order) { return min(APART ? first_late(order) : NB, order); }

// Shared memory: a block column, and copies of solved ones; of its block on the diagonal a copy, line by line, and the reciprocals of its diagonal; where columns of the result lie.
struct InverseChip {
    Resident columns, copies;
    Scalar (*corner)[LINE];
    Scalar* reciprocal;
    u64* place;

    // A matrix is worked on as one of order `order`: beyond order n it is the identity.
    __device__ InverseChip(unsigned char* memory, int n, int order, int tid) {
        columns = {reinterpret_cast<Scalar*>(memory), Resident::stride_of(order)};
        for (int i = n; !PADDED && i < order; ++i)
            for (int c = tid; c < NB; c += CREW) *columns.at(i, c) = zero<Scalar>();
        copies = {columns.at(0, NB), columns.stride};
        corner = reinterpret_cast<Scalar(*)[LINE]>(copies.origin + max(EARLY * first_copies().stride, LATE * copies.stride));
        reciprocal = corner[NB];
        place = reinterpret_cast<u64*>(reciprocal + NB);
    }
    // The matrix, of which column `first` is the first on chip.
    __device__ Resident columns_from(int first) const { return {columns.at(0, -first), columns.stride}; }
    __device__ Resident first_copies() const { return {copies.origin, Resident::stride_of(EARLY)}; }
    // Of which column `split` is the first.
    __device__ Resident last_copies(int split) const { return {copies.at(0, -split), copies.stride}; }
};

// The columns of X as the result has them.
struct Solved {
    Output result;
    const u64* place;

    __device__ Scalar* at(int i, int k) const { return result.at(i, 0) + place[k]; }
    __device__ u64 step() const { return result.row; }
};

// Begins to copy the factors' block column at `first`, rows `from` .. `to`.
__device__ inline void fetch_factors(const InverseChip& chip, Input lu, int first, int from, int to, int n, int order, int tid) {
    const Share<CREW> share = {opaque(tid), 0, 1};
    const Resident a = chip.columns_from(first), target = {a.at(from, 0), a.stride};
    const int last = min(first + NB, order);
    lu.origin = lu.at(from, 0);
    if (PADDED) {
        fetch_by<Pack, ONCE>(target, lu, first, last, to - from, share);
        commit_copies();
    } else {
        fetch_columns<ONCE>(target, lu, first, min(last, n), min(to, n) - from, share);
        if (APART && last > n) fill_beyond(a, first, last, n, order, share);
    }
}

// Lets go of columns `from` .. `to` of the workspace, whole block columns, which end where lines do.
__device__ inline void discard(Resident w, int from, int to, int order, int tid) {
    constexpr int EACH = CACHE_LINE / sizeof(Scalar);
    for (int e = tid * EACH; e < (to - from) * order; e += CREW * EACH) discard_line(w.at(0, from) + e);
}

// U^-1, block columns from the left to the right. `inverse` may lie where `lu` does.
__device__ inline void invert_upper(const InverseChip& chip, Input lu, Resident inverse, int n, int order, int tid, int base) {
    const auto fetch = [&](int first) { fetch_factors(chip, lu, first, 0, min(first + NB, order), n, order, tid); };
    fetch(0);
#pragma unroll 1
    for (int first = 0; first < order; first += NB) {
        const int last = min(first + NB, order);
        const Resident a = chip.columns_from(first);
        Rows<Resident, PART, (EARLY > 0)> rows(a, inverse, first, order, order, tid, base, chip.first_copies(), EARLY);
        rows.subtract_left([&] {
            wait_copies<0>();
            crew_sync();
            rows.copy_corner(chip.corner);
            for (int k = first + tid; k < last; k += CREW) chip.reciprocal[k - first] = reciprocal(*a.at(k, k));
        });
        if (last < order) fetch(last);
        if (rows.top_of(0) < last) {
            rows.solve_upper_by_reciprocals(chip.corner, chip.reciprocal);
            rows.for_each([&](Scalar& x, int i, int j) {
                if ((RAGGED && j >= order) || i > j) return;
                *inverse.at(i, j) = x;
                if (first < EARLY) *chip.first_copies().at(i, j) = x;
            });
        }
        Lanes::sync();
    }
}

// X for X L = `inverse`, block columns from the right to the left, which `solved` has for those that follow. Returns whether an element is not finite.
template <class M>
__device__ inline bool solve_lower(const InverseChip& chip, Input lu, Resident inverse, M solved, Solved x, bool discards, int n, int order, int tid, int base) {
    const auto fetch = [&](int first) { fetch_factors(chip, lu, first, first, order, n, order, tid); };
    Real trace = 0;  // as long as all is finite
    const int last = (order - 1) / NB * NB, split = first_late(order);
    fetch(last);
#pragma unroll 1
    for (int first = last; first >= 0; first -= NB) {
        Rows<M, PART, (LATE > 0)> rows(chip.columns_from(first), solved, first, order, order, tid, base, chip.last_copies(split), split);
        rows.subtract_right(inverse, [&] {
            wait_copies<0>();
            crew_sync();
            rows.copy_corner(chip.corner);
        });
        if (discards && first < last && first + NB >= kept_until(order)) discard(inverse, first + NB, min(first + 2 * NB, order), order, tid);
        // Rows of a warp are its own: only the corner, which the next block column's barrier guards, is shared from here on.
        if (first > 0) fetch(first - NB);
        rows.solve_lower(chip.corner, inverse);
        rows.for_each([&](Scalar& e, int i, int j) {
            if (i >= order) return;
            if (first >= split) *chip.last_copies(split).at(i, j) = e;
            if (RAGGED && j >= order) return;
            if (i < n) trace = traced(trace, e);  // what is computed beyond the matrix may overflow
            if (!APART || (first > 0 && first < split)) *solved.at(i, j) = e;  // the others nobody reads there
            if (APART && i < n && j < n) store_once(x.at(i, j), e);
        });
        Lanes::sync();
    }
    return !(trace == 0);
}

// `w`: where U^-1 lies meanwhile, column-major, with room for a matrix of order `order`; it may be where the factors are. Column k of the result goes to column rows[k] of `x`, or stays in its place where `rows` is null;
// then `w` and `x` may be one. Fills the inverse of a failed matrix with NaN. `PART`: `parts` blocks have a matrix, `w` is not where the factors are, and failed matrices are left to who launches this.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getri_resident(Operand lu, Operand w, Operand x, const u32* rows, u32* status, u64 batch, int given, int parts) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n = EXACT > 0 ? EXACT : given, order = ORDER > 0 ? ORDER : (n + 7) / 8 * 8, tid = crew_thread();
    const bool discards = DISCARDS && rows != nullptr;
    const InverseChip chip(memory, n, order, tid);
    for (u64 item = blockIdx.x; item < (PART ? batch * parts : batch); item += gridDim.x) {
        const u64 b = PART ? item / parts : batch - 1 - item;  // what LU has left last may still be in L2
        const int base = PART ? int(item % parts) * CREW : 0;
        const Output result(x, b);
        u32 failed = PART ? 0 : status[b];
        // Blocks of one matrix may see it fail while others begin with it.
        if (PART && crew_any(tid == 0 && status[b] != 0)) failed = NOT_FINITE;
        if (failed == 0) {
            const Resident inverse = {w.matrix(b), order};
            const Solved solved = {result, chip.place};
            for (int k = tid; k < n; k += CREW) chip.place[k] = u64(rows == nullptr ? k : rows[b * n + k]) * result.col;
            invert_upper(chip, Input(lu, b), inverse, n, order, tid, base);
            crew_sync();
            bool bad;
            if constexpr (APART) {
                bad = solve_lower(chip, Input(lu, b), inverse, inverse, solved, discards, n, order, tid, base);
            } else {
                bad = solve_lower(chip, Input(lu, b), inverse, solved, solved, discards, n, order, tid, base);
            }
            if (crew_any(bad)) failed = NOT_FINITE;
            if (discards) discard(inverse, 0, kept_until(order), order, tid);
            if (tid == 0 && failed != 0) atomicExch(status + b, failed);
        }
        for (int i = tid; !PART && failed != 0 && i < n; i += CREW)
            for (int j = 0; j < n; ++j) *result.at(i, j) = not_a_number<Scalar>();
    }
}
