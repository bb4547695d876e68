// Pivot search: the first row, as rows stand now, of largest |re| + |im| in a column of the panel.
#pragma once
#include "panel.cuh"

// The row offered by one thread.
struct Offer {
    u64 key;
    Position place;
};

__device__ inline bool better(Offer a, Offer b) { return a.key > b.key || (a.key == b.key && a.place < b.place); }

// A place beyond every matrix: where no row is left, each thread offers one of its own, so that still only one of a warp is chosen.
constexpr Position NOWHERE = 1 << 30;

// The best of the rows that this thread owns; key 0 where none is left.
template <class P>
__device__ Offer own_offer(P& panel, int j, int k, int tid) {
    Offer best = {0, NOWHERE + tid};
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        Position place = panel.place(r, tid);
        Offer own = {place >= k ? order_key(size(panel.at(r, j, tid))) : 0, place};
        if (place >= k && better(own, best)) best = own;
    }
    return best;
}

// Writes down the row that stands at `place`, with its pivot's reciprocal.
template <class P>
__device__ void post_row(P& panel, Candidate& to, Offer offer, int j, int tid) {
    UNROLL for (int r = 0; r < panel.rows(); ++r) {
        if (panel.place(r, tid) == offer.place) {
            UNROLL for (int c = 0; c < NB; ++c)
                if (c >= j / Pack::LENGTH * Pack::LENGTH) to.row[c] = panel.at(r, c, tid);
        }
    }
    to.key = offer.key;
    to.place = offer.place;
}

// By warps: each offers its best row before the one barrier; every thread then takes the best of those.
template <class P>
__device__ const Candidate& search_by_warps(P& panel, Team& team, int j, int k, int tid) {
    Candidate* candidate = team.candidate[j & 1];
    Offer own = own_offer(panel, j, k, tid);
    Scalar pivot = panel.rows() > 0 ? panel.at(0, j, tid) : zero<Scalar>();
    UNROLL for (int r = 1; r < panel.rows(); ++r)
        if (panel.place(r, tid) == own.place) pivot = panel.at(r, j, tid);
    Scalar inverse = reciprocal(pivot);  // before it is known whose is wanted: the division overlaps the search

    u32 high = u32(own.key >> 32), low = u32(own.key);
    bool mine = true;
    u32 most = 0;
    if (sizeof(Real) == 8) {
        most = Lanes::largest(high);
        mine = high == most;
    }
    if (sizeof(Real) == 4 || Lanes::several(mine)) {
        u32 best = Lanes::largest(mine ? low : 0);
        mine = mine && low == best;
        most |= best;
        if (Lanes::several(mine)) {
            const u32 first = Lanes::least(mine ? u32(own.place) : ~0u);
            mine = mine && u32(own.place) == first;
        }
    }
    if (mine) {
        post_row(panel, candidate[tid / LANES], own, j, tid);
        candidate[tid / LANES].reciprocal = inverse;
    }
    team_sync();

    int best = 0;
    Offer offer = {candidate[0].key, candidate[0].place};
    UNROLL for (int w = 1; w < WARPS; ++w) {
        Offer other = {candidate[w].key, candidate[w].place};
        if (better(other, offer)) {
            offer = other;
            best = w;
        }
    }
    return candidate[best];
}

// By the paper's binary tree: thread t compares elements t and t + half, neighbours with neighbours; a barrier a level.
template <class P>
__device__ const Candidate& search_by_tree(P& panel, Team& team, int j, int k, int tid) {
    __shared__ Offer tree[THREADS];
    Candidate& winner = team.candidate[j & 1][0];
    Offer own = own_offer(panel, j, k, tid);
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
        post_row(panel, winner, best, j, tid);
        winner.reciprocal = reciprocal(winner.row[j]);
    }
    team_sync();
    return winner;
}
