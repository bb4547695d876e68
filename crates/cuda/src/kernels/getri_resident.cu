// A^-1 from A = P L U: X U = I, then X L = U^-1, each by delayed correction, the order of columns undone on the way out. Of the triangle a block column at a time is on
// chip; solved columns come from memory, each once for every block column that they correct. One crew of threads a matrix or, of few matrices, several, each of which has some rows; one launch a
// batch.
#include "rows.cuh"

static_assert(WINDOW == NB, "a window is a block column");
constexpr bool PART = BATCHLA_PART;  // a block has some of a matrix's rows
// Solved columns, whole block columns, that stay on chip beside those in memory, as far as there is room: of U^-1 the first, no row of which is longer, and of X the last.
constexpr int EARLY = BATCHLA_EARLY, LATE = BATCHLA_LATE;
static_assert(EARLY % NB == 0 && LATE % NB == 0, "whole block columns");
static_assert(ORDER % 8 == 0, "a class of orders, by how far columns are apart in the workspace");

// Shared memory: a block column, and copies of solved ones; of its block on the diagonal a copy, line by line, and the reciprocals of its diagonal; where columns of the result lie.
struct InverseChip {
    Resident columns, copies;
    Scalar (*corner)[LINE];
    Scalar* reciprocal;
    u64* place;

    // Columns have room for whole steps of products, with zeros beyond the matrix.
    __device__ InverseChip(unsigned char* memory, int n, int order, int tid) {
        const int rows = (order + 7) / 8 * 8;
        columns = {reinterpret_cast<Scalar*>(memory), Resident::stride_of(rows)};
        for (int i = n; i < rows; ++i)
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
    static constexpr bool PADDED = false;
    Output result;
    const u64* place;

    __device__ Scalar* at(int i, int k) const { return result.at(i, 0) + place[k]; }
    __device__ u64 step() const { return result.row; }
};

// U^-1, block columns from the left to the right. `inverse` may lie where `lu` does.
__device__ inline void invert_upper(const InverseChip& chip, Input lu, Resident inverse, int n, int order, int tid, int base) {
    const auto fetch = [&](int first) {
        const int last = min(first + NB, n);
        fetch_columns<ONCE>(chip.columns_from(first), lu, first, last, last, Share<CREW>{opaque(tid), 0, 1});
    };
    fetch(0);
#pragma unroll 1
    for (int first = 0; first < n; first += NB) {
        const int last = min(first + NB, n);
        const Resident a = chip.columns_from(first);
        Rows<Resident, PART, (EARLY > 0)> rows(a, inverse, first, n, order, tid, base, chip.first_copies(), EARLY);
        rows.subtract_left([&] {
            wait_copies<0>();
            crew_sync();
            rows.copy_corner(chip.corner);
            for (int k = first + tid; k < last; k += CREW) chip.reciprocal[k - first] = reciprocal(*a.at(k, k));
        });
        if (last < n) fetch(last);
        if (rows.top_of(0) < last) {
            rows.solve_upper(chip.corner, quotients(chip.corner, chip.reciprocal));
            rows.for_each([&](Scalar& x, int i, int j) {
                if (j >= n || i > j) return;
                *inverse.at(i, j) = x;
                if (first < EARLY) *chip.first_copies().at(i, j) = x;
            });
        }
        Lanes::sync();
    }
}

// X for X L = `inverse`, block columns from the right to the left. Returns whether an element is not finite.
__device__ inline bool solve_lower(const InverseChip& chip, Input lu, Resident inverse, Solved x, int n, int tid, int base) {
    const auto fetch = [&](int first) {
        const Resident a = chip.columns_from(first);
        Input below = lu;
        below.origin = lu.at(first, 0);
        fetch_columns<ONCE>({a.at(first, 0), a.stride}, below, first, min(first + NB, n), n - first, Share<CREW>{opaque(tid), 0, 1});
    };
    Real trace = 0;  // as long as all is finite
    const int last = (n - 1) / NB * NB, split = last + NB - LATE;
    fetch(last);
#pragma unroll 1
    for (int first = last; first >= 0; first -= NB) {
        Rows<Solved, PART, (LATE > 0)> rows(chip.columns_from(first), x, first, n, n, tid, base, chip.last_copies(split), split);
        rows.subtract_right(inverse, [&] {
            wait_copies<0>();
            crew_sync();
            rows.copy_corner(chip.corner);
        });
        // Rows of a warp are its own: only the corner, which the next block column's barrier guards, is shared from here on.
        if (first > 0) fetch(first - NB);
        rows.solve_lower(chip.corner, inverse);
        rows.for_each([&](Scalar& e, int i, int j) {
            if (i >= n) return;
            if (first >= split) *chip.last_copies(split).at(i, j) = e;  // products take whole steps: beyond the matrix it is zero
            if (j >= n) return;
            trace = traced(trace, e);
            *x.at(i, j) = e;
        });
        Lanes::sync();
    }
    return !(trace == 0);
}

// `w`: where U^-1 lies meanwhile, column-major, which may be where the factors do. Column k of the result goes to column rows[k] of `x`, or stays in its place where `rows` is null;
// then `w` and `x` may be one. Fills the inverse of a failed matrix with NaN. `PART`: `parts` blocks have a matrix, `w` is not where the factors are, and failed matrices are left to who launches this.
extern "C" __global__ void __launch_bounds__(CREW, BATCHLA_BLOCKS)
    getri_resident(Operand lu, Operand w, Operand x, const u32* rows, u32* status, u64 batch, int given, int parts) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n = EXACT > 0 ? EXACT : given, order = ORDER > 0 ? ORDER : n, tid = crew_thread();
    const InverseChip chip(memory, n, order, tid);
    for (u64 item = blockIdx.x; item < (PART ? batch * parts : batch); item += gridDim.x) {
        const u64 b = PART ? item / parts : item;
        const int base = PART ? int(item % parts) * CREW : 0;
        const Output result(x, b);
        u32 failed = PART ? 0 : status[b];
        // Blocks of one matrix may see it fail while others begin with it.
        if (PART && crew_any(tid == 0 && status[b] != 0)) failed = NOT_FINITE;
        if (failed == 0) {
            const Resident inverse = {w.matrix(b), ORDER > 0 ? ORDER : int(w.col)};
            for (int k = tid; k < n; k += CREW) chip.place[k] = u64(rows == nullptr ? k : rows[b * n + k]) * result.col;
            invert_upper(chip, Input(lu, b), inverse, n, order, tid, base);
            crew_sync();
            const bool bad = solve_lower(chip, Input(lu, b), inverse, {result, chip.place}, n, tid, base);
            if (crew_any(bad)) failed = NOT_FINITE;
            if (tid == 0 && failed != 0) atomicExch(status + b, failed);
        }
        for (int i = tid; !PART && failed != 0 && i < n; i += CREW)
            for (int j = 0; j < n; ++j) *result.at(i, j) = not_a_number<Scalar>();
    }
}
