// LU with partial pivoting of a matrix on chip, right-looking. One warp (or less) factors panels: each as soon as its own columns are
// up to date, while the helpers, if there are, bring those behind it up to date with the panel before. Rows are exchanged on the
// right of a panel; on its left they stay where they were, and their places are noted.
#pragma once
#include "getf2.cuh"
#include "tile.cuh"

static_assert(ROWS * LANES <= 256, "places are counted in bytes");

// Which rows come to a panel's places, and where the rows that were there go.
struct alignas(16) Exchange {
    Position from[NB], to[NB];
};

// What the crew of a matrix shares, beside the matrix.
struct Shared : Election {
    union {
        Exchange exchange[IN_REGISTERS ? 1 : 2];  // of the two panels that are worked with at a time
        u64 distance[NB];                         // which row of A each row of U was, or how far into a result that leads: of a matrix that is one panel, or of a block column
    };
    Scalar upper[IN_REGISTERS ? 1 : NB][LINE];  // the rows of U of the next panel

    // The exchange of column j of the latest panel, counted from its first.
    __device__ Position pivot(int j) { return candidates(j)[0].place(); }
    // The rows chosen, the one of column j in line j.
    __device__ Scalar (*rows())[CANDIDATE] { return reinterpret_cast<Scalar(*)[CANDIDATE]>(candidates(0)[0].row); }
};

// Whether rows are asked for their places at each column of a panel, or carry along that they may be chosen; as measured.
constexpr bool BY_PLACE = IN_REGISTERS || (Number<Scalar>::COMPLEX && (sizeof(Scalar) == 8) == (WINDOW == 0));

// The warp that factors panels has those rows that were at places top + lane, top + lane + LANES ... when they were dealt.
template <int Rows>
struct Panels : Panel<Rows> {
    Position was[Rows];  // before the latest exchange
    int top;

    __device__ Panels(int top, int order, int lane) : Panel<Rows>(nullptr, nullptr, order, lane), top(top) {
        UNROLL for (int r = 0; r < Rows; ++r) this->position[r] = was[r] = dealt(r, lane) < order ? dealt(r, lane) : -1;
    }
    // The place that row r had when it was dealt.
    __device__ int dealt(int r, int lane) const { return top + lane + r * LANES; }
};

// The unit lower triangle of the panel at `first`, by packs of its columns.
struct Lower {
    Pack column[NB - 1][PACKS];
};
__device__ inline Lower lower_of(Resident a, int first) {
    Lower l;
    UNROLL for (int k = 0; k < NB - 1; ++k)
        UNROLL for (int p = (k + 1) / Pack::LENGTH; p < PACKS; ++p) l.column[k][p] = a.read(first + p * Pack::LENGTH, first + k);
    return l;
}
__device__ inline void solve_lower(Scalar (&y)[NB], const Lower& l) {
    UNROLL for (int k = 0; k < NB - 1; ++k)
        UNROLL for (int i = k + 1; i < NB; ++i) y[i] = subtract_product(y[i], l.column[k][i / Pack::LENGTH].value[i % Pack::LENGTH], y[k]);
}

// The columns of the panel at `first`, where they lack, but for a window's first, the exchange and the part of the panel before.
template <int Rows>
__device__ inline void load_panel(Panels<Rows>& panel, Resident a, Shared& shared, int window, int first, int lane) {
    const int before = first - NB;
    UNROLL for (int r = 0; r < Rows; ++r)
        UNROLL for (int c = 0; c < NB; ++c) panel.element[r][c] = panel.was[r] >= max(before, 0) ? *a.at(panel.was[r], first + c) : zero<Scalar>();
    if (first == window) return;
    UNROLL for (int r = 0; r < Rows; ++r) {
        const int k = panel.position[r] - before;
        if (k >= 0 && k < NB)
            UNROLL for (int c = 0; c < NB; ++c) shared.upper[k][c] = panel.element[r][c];
    }
    Lanes::sync();
    for (int c = lane; c < NB; c += LANES) {
        Scalar y[NB];
        UNROLL for (int k = 0; k < NB; ++k) y[k] = shared.upper[k][c];
        solve_lower(y, lower_of(a, before));
        UNROLL for (int k = 1; k < NB; ++k) shared.upper[k][c] = y[k];
    }
    Lanes::sync();
    constexpr int AT_ONCE = Number<Scalar>::COMPLEX && (WINDOW == 0 || !TENSOR) ? 2 : 4;  // as measured: shorter text, or less to count
    const Scalar* own[Rows];
    UNROLL for (int r = 0; r < Rows; ++r) own[r] = a.at(max(panel.position[r], 0), before);
#pragma unroll(AT_ONCE)
    for (int k = 0; k < NB; ++k) {
        Scalar l[Rows];
        UNROLL for (int r = 0; r < Rows; ++r) l[r] = own[r][k * a.stride];
        UNROLL for (int p = 0; p < PACKS; ++p) {
            const Pack u = *reinterpret_cast<const Pack*>(&shared.upper[k][p * Pack::LENGTH]);
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s)
                UNROLL for (int r = 0; r < Rows; ++r) {
                    Scalar& x = panel.element[r][p * Pack::LENGTH + s];
                    x = subtract_product(x, l[r], u.value[s]);
                }
        }
    }
}

// Factors the panel at `first`, which lies in `a`, whose rows are exchanged, where `getf2_plain` does not: where elements tie for a pivot, and where one is too small or too
// large for its reciprocal. Short, for it is seldom wanted.
__device__ inline void getf2_in_place(Resident a, Shared& shared, int first, int n, int order, int lane) {
#pragma unroll 1
    for (int k = first; k < first + WIDTH; ++k) {
        Offer best = {0, 0, NOWHERE + lane};
#pragma unroll 1
        for (int i = k + lane; i < (k < n ? n : order); i += LANES) {
            const Scalar x = *a.at(i, k);
            const Offer own = {upper_key(x), lower_key(x), i};
            if (better(own, best)) best = own;
        }
        bool mine = best.upper == Lanes::largest(best.upper);
        mine &= best.lower == Lanes::largest(mine ? best.lower : 0);
        const Position chosen = Lanes::least(mine ? u32(best.place) : ~0u);
        Lanes::sync();  // all have read what is exchanged
        for (int c = first + lane; c < first + WIDTH; c += LANES) {
            const Scalar x = *a.at(chosen, c), y = *a.at(k, c);
            *a.at(chosen, c) = y;
            *a.at(k, c) = x;
        }
        if (lane == 0) shared.candidates(k - first)[0].tell(zero<Scalar>(), chosen - first);
        Lanes::sync();
        const Divisor<Scalar> by = divisor(*a.at(k, k));
        if (lane == 0 && is_zero(by.value)) atomicMin(&shared.zero, u32(k));
#pragma unroll 1
        for (int i = k + 1 + lane; i < order; i += LANES) {
            // Below a zero pivot all is zero: nothing to divide.
            const Scalar l = is_zero(by.value) ? *a.at(i, k) : by.into(*a.at(i, k));
            *a.at(i, k) = l;
            for (int c = k + 1; c < first + WIDTH; ++c) *a.at(i, c) = subtract_product(*a.at(i, c), l, *a.at(k, c));
        }
        Lanes::sync();
    }
}
// For panels of several numbers of rows, whose kernel has its text once.
__device__ NOINLINE void call_getf2_in_place(Resident a, Shared& shared, int first, int n, int order, int lane) {
    getf2_in_place(a, shared, first, n, order, lane);
}

// The same for a panel in registers; `a` is where that may take place, the matrix or as good.
template <int Rows>
__device__ inline void getf2_with_care(Panels<Rows>& panel, Resident a, Shared& shared, int first, int n, int order, int lane) {
    Lanes::sync();  // all have read the panel
    UNROLL for (int r = 0; r < Rows; ++r)
        if (panel.position[r] >= first)
            UNROLL for (int c = 0; c < WIDTH; ++c) *a.at(panel.position[r], first + c) = panel.element[r][c];
    Lanes::sync();
    if (IN_REGISTERS || ROWS == 1) {
        getf2_in_place(a, shared, first, n, order, lane);
    } else {
        call_getf2_in_place(a, shared, first, n, order, lane);
    }
#pragma unroll 1
    for (int k = first; k < first + WIDTH; ++k) {
        const Position chosen = first + shared.pivot(k - first);
        UNROLL for (int r = 0; r < Rows; ++r) {
            const Position place = panel.position[r];
            panel.position[r] = place == chosen ? k : place == k ? chosen : place;
        }
    }
    UNROLL for (int r = 0; r < Rows; ++r)
        UNROLL for (int c = 0; c < WIDTH; ++c)
            if (panel.position[r] >= first) panel.element[r][c] = *a.at(panel.position[r], first + c);
}

// Factors the panel at `first`, which `load()` brings; `work` is where that may take place, the matrix or as good.
template <int Rows, class Load>
__device__ inline void factor_panel(Panels<Rows>& panel, Resident work, Shared& shared, int first, int n, int order, int lane, Load load) {
    Position was[Rows];
    UNROLL for (int r = 0; r < Rows; ++r) was[r] = panel.position[r];
    bool plain = true;
#pragma unroll 1
    while (true) {
        load();
        if (!plain) {
            getf2_with_care(panel, work, shared, first, n, order, lane);
            break;
        }
        if (getf2_plain<WIDTH, IN_REGISTERS, BY_PLACE>(panel, shared, first, lane)) break;
        plain = false;
        UNROLL for (int r = 0; r < Rows; ++r) panel.position[r] = was[r];
    }
    UNROLL for (int r = 0; r < Rows; ++r) panel.was[r] = was[r];
}

// A matrix that is one panel, factored in registers; where there is none (`live` does not hold), the identity.
__device__ inline void factor_in_registers(Panels<ROWS>& panel, Shared& shared, Input in, int n, int order, int tid, bool live) {
    if (tid == 0) shared.begin();
    factor_panel(panel, {shared.rows()[0], CANDIDATE}, shared, 0, n, order, tid, [&] {
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const int i = opaque(tid) + r * LANES;  // no address is kept for a second turn
            if (live) {
                const Scalar* source = in.at(min(i, n - 1), 0);
                UNROLL for (int c = 0; c < NB; ++c, source += in.col) panel.element[r][c] = c < n ? *source : zero<Scalar>();
            } else {
                UNROLL for (int c = 0; c < NB; ++c) panel.element[r][c] = i == c ? one<Scalar>() : zero<Scalar>();
            }
        }
    });
}

// Brings its rows to their places in `rows`. Returns whether an element of the matrix is not finite.
__device__ inline bool gather_rows(const Panels<ROWS>& panel, Shared& shared, int n) {
    Lanes::sync();  // all have read the rows chosen
    Real trace = 0;
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const Position place = panel.position[r];
        if (place < 0) continue;
        UNROLL for (int p = 0; p < PACKS; ++p) {
            Pack x;
            UNROLL for (int s = 0; s < Pack::LENGTH; ++s) {
                const int c = p * Pack::LENGTH + s;
                x.value[s] = panel.element[r][c];
                if (c < n) trace = traced(trace, x.value[s]);
            }
            *reinterpret_cast<Pack*>(&shared.rows()[place][p * Pack::LENGTH]) = x;
        }
    }
    Lanes::sync();
    return !(trace == 0);
}

// What both sweeps with its triangles take, which are in `rows`: `distance` of the row of A that each row of U was, and reciprocals of the diagonal. Returns whether the
// calling thread has met a pivot that may not be divided by through its reciprocal.
template <class F>
__device__ inline bool prepare_sweeps(const Panels<ROWS>& panel, Shared& shared, int tid, F distance) {
    UNROLL for (int r = 0; r < ROWS; ++r)
        if (panel.position[r] >= 0) shared.distance[panel.position[r]] = distance(tid + r * LANES);
    bool unsafe = false;
    for (int k = tid; k < WIDTH; k += LANES) {
        const Divisor<Scalar> by = divisor(shared.rows()[k][k]);
        unsafe |= !by.safe();
        shared.candidates(k)[0].told().value[0] = by.reciprocal;
    }
    Lanes::sync();
    return unsafe;
}

// Puts the factored panel where others find it, and tells them of it.
template <int Rows>
__device__ inline void store_panel(const Panels<Rows>& panel, const Chip& chip, Resident a, Shared& shared, int window, int first, int lane) {
    Exchange& exchange = shared.exchange[first / NB % 2];
    UNROLL for (int r = 0; r < Rows; ++r) {
        const int was = panel.was[r], to = panel.position[r];
        if (to < 0) continue;
        chip.place_of(chip.origin[panel.dealt(r, lane)], (first - window) / NB) = to;
        if (to < first) continue;
        UNROLL for (int c = 0; c < NB; ++c) *a.at(to, first + c) = panel.element[r][c];
        if (to < first + NB) exchange.from[to - first] = was;
        if (was < first + NB) exchange.to[was - first] = to;
    }
    for (int e = lane; first > window && e < NB * PACKS; e += LANES) {
        const int c = e / PACKS, k = e % PACKS * Pack::LENGTH;
        Pack u;
        UNROLL for (int s = 0; s < Pack::LENGTH; ++s) u.value[s] = shared.upper[k + s][c];
        a.write(first - NB + k, first + c, u);
    }
    for (int j = lane; j < NB; j += LANES) chip.pivots[first + j] = first + shared.pivot(j);
    Lanes::sync();
}

// Column `c` after the exchange of the panel at `first`, and its rows of U there, which are then final.
__device__ inline void solve_column(Resident a, const Exchange& exchange, int first, int c) {
    const Lower l = lower_of(a, first);  // before anything is stored: the compiler would not dare to load it later
    Scalar *column = a.at(0, c), come[NB], gone[NB];
    UNROLL for (int j = 0; j < NB; ++j) {
        come[j] = column[exchange.from[j]];
        gone[j] = column[first + j];
    }
    UNROLL for (int j = 0; j < NB; ++j)
        if (exchange.to[j] >= first + NB) column[exchange.to[j]] = gone[j];
    solve_lower(come, l);
    UNROLL for (int j = 0; j < NB; ++j) column[first + j] = come[j];
}

// The columns before `end` behind the panel that follows the one at `first`, up to date with it. By lane `lane` of warp `warp` of `warps`.
__device__ inline void follow(Resident a, const Exchange& exchange, int first, int end, int order, int warp, int warps, int lane) {
    if (WINDOW > 0 && WINDOW <= 2 * NB) return;  // there are none
    for (int c = first + 2 * NB + warp * LANES; c < end; c += warps * LANES) {
        if (c + lane < end) solve_column(a, exchange, first, c + lane);
        Lanes::sync();
        update_columns<LANES>(a, a, first + NB, first, c, min(c + LANES, end), order, lane);
    }
}

// Begins with columns 0 .. `end`: those of the first panel are there on return, for the warp that factors it; others come while it does. Where there is no matrix (`live` does
// not hold), with the identity.
__device__ inline void begin_columns(Input in, const Chip& chip, Shared& shared, int end, int n, int order, int tid, bool live) {
    // Helpers have nothing to do before the first panel is there: they bring what is behind it. Where that was no gain, all bring all.
    constexpr bool APART = HELPERS > 0 && WINDOW == 0 && !(INVERTS && Number<Scalar>::COMPLEX && !TENSOR);
    constexpr int WIDE = APART ? LANES : CREW;
    const bool helps = APART && tid >= LANES;
    const Share<WIDE> share = {tid % WIDE, helps ? tid / WIDE - 1 : 0, helps ? HELPERS : 1};
    if (CROWDS && n < 0) hold_registers(reinterpret_cast<u32*>(chip.pivots));
    if (tid == 0) shared.begin();
    for (int i = tid; tid < LANES && i < order; i += LANES) chip.origin[i] = i;
#pragma unroll 1
    for (int part = helps ? 1 : 0; part < (APART && !helps ? 1 : 2); ++part) {
        const int from = part * NB, last = part == 0 ? NB : end;
        if (live) fetch_columns<ONCE>(chip.matrix, in, from, min(last, n), n, share);
        fill_beyond(chip.matrix, from, last, live ? n : 0, order, share);
    }
    if (!APART) {
        wait_copies<1>();
        crew_sync();
    } else {
        if (!helps) wait_copies<0>();
        Lanes::sync();
    }
}

// Where rows that are dealt were before the latest exchange, of the panel at `before`.
template <int Rows>
__device__ inline void trace_rows(Panels<Rows>& panel, const Exchange& exchange, int before) {
    UNROLL for (int r = 0; r < Rows; ++r) {
        const int k = panel.position[r] - before;
        if (k >= 0 && k < NB) panel.was[r] = exchange.from[k];
        UNROLL for (int j = 0; j < NB; ++j)
            if (k >= NB && exchange.to[j] == before + k) panel.was[r] = before + j;
    }
}

// Notes where the rows have come from that were dealt, by the places that they have now.
template <int Rows>
__device__ inline void keep_origins(const Panels<Rows>& panel, const Chip& chip, int lane) {
    Position origin[Rows];
    UNROLL for (int r = 0; r < Rows; ++r) origin[r] = panel.position[r] >= 0 ? chip.origin[panel.dealt(r, lane)] : 0;
    Lanes::sync();
    UNROLL for (int r = 0; r < Rows; ++r)
        if (panel.position[r] >= 0) chip.origin[panel.position[r]] = origin[r];
}

// What is done in a step, after the first of which all columns are on chip. The warp that factors panels and its helpers come here from loops of their own.
__device__ inline void end_step(Shared& shared, int first) {
    if (first == 0) wait_copies<0>();
    if (HELPERS > 0) {
        meet(&shared.meeting, CREW);
    } else if (first == 0) {
        crew_sync();
    }
}

// Panels from the one at `first` on, before `end`, by the warp that factors them, with `Rows` rows a thread: all, as long as half of them do not hold what is left; then what is
// left is dealt anew. To halve them again costs more in text than it gains.
template <int Rows>
__device__ inline void factor_panels(const Chip& chip, Shared& shared, int window, int first, int end, int n, int order, int lane) {
    constexpr int FEWER = Rows == ROWS && Rows > 1 ? (Rows + 1) / 2 : 0;
    const Resident a = chip.columns_from(window);
    // From which place on rows are wanted: those of U of the panel before are, but for a window's first.
    const auto top = [&] { return first == window ? first : first - NB; };
    const auto wanted = [&] { return first < end && order - top() > FEWER * LANES; };
    if (wanted()) {
        Panels<Rows> panel(top(), order, lane);
        if (first > window) trace_rows(panel, shared.exchange[(first / NB + 1) % 2], first - NB);
#pragma unroll 1
        do {
            if (HELPERS == 0 && first > window) follow(a, shared.exchange[(first / NB + 1) % 2], first - NB, end, order, 0, 1, lane);
            factor_panel(panel, a, shared, first, n, order, lane, [&] { load_panel(panel, a, shared, window, first, lane); });
            store_panel(panel, chip, a, shared, window, first, lane);
            end_step(shared, first);
            first += NB;
        } while (wanted());
        keep_origins(panel, chip, lane);
    }
    if constexpr (FEWER > 0) factor_panels<FEWER>(chip, shared, window, first, end, n, order, lane);
}

// Leaves, of columns `window` .. `end` of L and U, what is on chip there, and of each row where it has come from and, until it is one of U, where it stands in each
// block column. All that is on their left has had its part.
__device__ inline void factor_columns(const Chip& chip, Shared& shared, int window, int end, int n, int order, int tid) {
    const int warp = crew_warp<INVERTS || !TENSOR || (WINDOW > 0)>(tid), lane = tid % LANES;
    if (HELPERS == 0 || warp == 0) {
        factor_panels<ROWS>(chip, shared, window, window, end, n, order, lane);
    } else {
#pragma unroll 1
        for (int first = window; first < end; first += NB) {
            if (first > window) follow(chip.columns_from(window), shared.exchange[(first / NB + 1) % 2], first - NB, end, order, warp - 1, HELPERS, lane);
            end_step(shared, first);
        }
    }
    crew_sync();
}
