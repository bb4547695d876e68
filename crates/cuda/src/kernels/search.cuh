// Pivot search: the first row, as rows stand now, of largest |re| + |im| in a column of the panel.
#pragma once
#include "panel.cuh"

// The row offered by one thread.
struct Offer {
    u32 upper, lower;
    Position place;
};

__device__ inline bool better(Offer a, Offer b) {
    // Bits and not branches: lanes differ in this.
    return (a.upper > b.upper) | ((a.upper == b.upper) & ((a.lower > b.lower) | ((a.lower == b.lower) & (a.place < b.place))));
}

// A place beyond every matrix: where no row is left, each thread offers one of its own, so that still only one of a warp is chosen.
constexpr Position NOWHERE = 1 << 30;

// The best of the rows that this thread owns, and its element; the upper key is 0 where none is left.
template <class P>
__device__ Offer own_offer(P& panel, Scalar& pivot, int j, int k, int tid) {
    Offer best = {0, 0, NOWHERE + tid};
    pivot = zero<Scalar>();
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        const Position place = panel.place(r, tid);
        const Scalar x = panel.at(r, j, tid);
        const Offer own = {upper_key(x), lower_key(x), place};
        const bool takes = (place >= k) & ((r == 0) | better(own, best));
        best = {takes ? own.upper : best.upper, takes ? own.lower : best.lower, takes ? own.place : best.place};
        pivot = takes || r == 0 ? x : pivot;
    }
    return best;
}

// Writes down the row that stands at `place`, from the pack of column j on.
template <class P>
__device__ void post_row(P& panel, Scalar* to, Position place, int j, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        if (panel.place(r, tid) == place) {
            UNROLL for (int c = j / Pack::LENGTH * Pack::LENGTH; c < NB; ++c) to[c] = panel.at(r, c, tid);
        }
    }
}

// The row chosen, and its upper key.
struct Choice {
    Candidate& candidate;
    u32 upper;

    // Whether its reciprocal may be used: as `Divisor::safe`.
    __device__ bool safe() const { return upper - Range<Real>::LEAST_KEY < Range<Real>::MOST_KEY - Range<Real>::LEAST_KEY; }
};

// By warps: each offers its best row before the one barrier; every thread then takes the best of those. A warp that has no rows left
// (`works` does not hold) offers none.
template <class P>
__device__ Choice search_by_warps(P& panel, Election& election, int j, int k, bool works, int tid) {
    Candidate* candidate = election.candidates(j);
    Candidate& own_candidate = candidate[tid / LANES];
    u32 most = 0;
    if (works) {
        Scalar pivot;
        const Offer own = own_offer(panel, pivot, j, k, tid);
        most = Lanes::largest(own.upper);
        const Scalar inverse = reciprocal(pivot);  // before it is known whose is wanted: the division overlaps the search
        bool mine = own.upper == most;
        if (Lanes::several(mine)) {
            if (sizeof(Real) == 8) {
                const u32 low = Lanes::largest(mine ? own.lower : 0);
                mine = mine && own.lower == low;
            }
            if (sizeof(Real) == 4 || Lanes::several(mine)) {
                const u32 first = Lanes::least(mine ? u32(own.place) : ~0u);
                mine = mine && u32(own.place) == first;
            }
        }
        if (mine) {
            post_row(panel, own_candidate.row, own.place, j, tid);
            own_candidate.tell(inverse, own.place);
            if (WARPS > 1) own_candidate.upper() = own.upper;
            if (WARPS > 1 && sizeof(Real) == 8) own_candidate.lower() = own.lower;
        }
    } else if (WARPS > 1 && tid % LANES == 0) {
        own_candidate.upper() = 0;
    }
    team_sync();
    if (WARPS == 1) return {candidate[0], most};

    int best = 0;
    bool tie = false;
    u32 upper = candidate[0].upper();
    if (WARPS > 8) {
        const int w = tid % LANES;
        const u32 other = w < WARPS ? candidate[w].upper() : 0;
        upper = Lanes::largest(other);
        const u32 those = Lanes::ballot(w < WARPS && other == upper);
        tie = (those & (those - 1)) != 0;
        best = __ffs(those) - 1;
    } else {
        UNROLL for (int w = 1; w < WARPS; ++w) {
            const u32 other = candidate[w].upper();
            tie = other > upper ? false : tie || other == upper;
            if (other > upper) {
                upper = other;
                best = w;
            }
        }
    }
    if (tie) {
        for (int w = best + 1; w < WARPS; ++w) {
            Candidate &a = candidate[w], &b = candidate[best];
            if (a.upper() != upper) continue;
            const bool lower_is_more = sizeof(Real) == 8 && a.lower() > b.lower(), same = sizeof(Real) == 4 || a.lower() == b.lower();
            if (lower_is_more || (same && a.place() < b.place())) best = w;
        }
    }
    return {candidate[best], upper};
}

// By the paper's binary tree: thread t compares elements t and t + half, neighbours with neighbours; a barrier a level.
template <class P>
__device__ Choice search_by_tree(P& panel, Election& election, int j, int k, int tid) {
    __shared__ Offer tree[THREADS];
    Candidate& winner = election.candidates(j)[0];
    Scalar pivot;
    const Offer own = own_offer(panel, pivot, j, k, tid);
    tree[tid] = own;
    for (int count = THREADS; count > 1;) {
        int half = (count + 1) / 2;
        team_sync();
        if (tid + half < count && better(tree[tid + half], tree[tid])) tree[tid] = tree[tid + half];
        count = half;
    }
    team_sync();
    Offer best = tree[0];
    if (own.place == best.place) {
        post_row(panel, winner.row, best.place, j, tid);
        if (ALL_KEPT && tid >= LANES) post_row(panel, election.chosen(j, tid), best.place, j, tid);
        winner.tell(reciprocal(winner.row[j]), best.place);
    }
    team_sync();
    return {winner, best.upper};
}
