//! Faults planted in the kernels' text, one at a time: a check or a result must show each. What shows it is recorded in MUTANTS.md.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use batchla_core::{Error, ErrorKind, Options, ScalarKind, Transpose};
use batchla_cuda::Cuda;
use batchla_emulated::{Checks, Emulated, Gaps, Step, Trial};
use batchla_testkit::{Scope, check};

use machine::open;

/// What shows a fault.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// A check, by the words of its report.
    Check(&'static str),
    /// Results: another bit than sound kernels leave.
    Results,
    /// A check of the conformance suite.
    Suite(&'static str),
}
use Shown::{Check, Results, Suite};

/// A planted fault, and the smallest run that shows it.
struct Mutant {
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    scalar: ScalarKind,
    order: usize,
    plan: &'static str,
    step: Step,
    rows_first: bool,
    gaps: Gaps,
    batch: usize,
    architecture: &'static str,
    shown: Shown,
}

const F64: Mutant = Mutant {
    name: "",
    file: "",
    from: "",
    to: "",
    scalar: ScalarKind::F64,
    order: 40,
    plan: "left-looking",
    step: Step::Factorize,
    rows_first: false,
    gaps: Gaps::None,
    batch: 7,
    architecture: "sm_90",
    shown: Results,
};

/// Panels streamed, and updated by matrix instructions.
const BY_INSTRUCTIONS: &str = "left-looking:tensor=1,panel=8,rows=2,stages=2";
/// The first and the last solved columns on chip, too.
const BY_COPIES: &str = "resident:inverse-window=8,inverse-copies=2";
/// Windows of which each warp has some columns in registers.
const HELD: &str = "resident:panel=8,window=16,helpers=1";
/// Three strips.
const STRIPS: &str = "blocked:width=16,panel=8,together=1,finish=0";
/// Two of which go together.
const PAIRS: &str = "blocked:width=16,panel=8,together=2,finish=0";
/// One, and the rest on chip.
const FINISHED: &str = "blocked:width=16,panel=8";
/// A matrix that goes from memory to registers and back.
const IN_REGISTERS: &str = "resident:panel=16,exact=1";
/// One that a thread has for its own.
const BY_THREAD: &str = "resident:rows=8,panel=8,exact=1";
/// One in registers, solved with a right-hand side a lane, and with a row a lane.
const A_SIDE_A_LANE: &str = "resident:panel=16,exact=1,solve-columns=0";
const A_ROW_A_LANE: &str = "resident:panel=16,exact=1,solve-columns=4";
/// Solutions with the triangles where they lie, and by bands of rows.
const FROM_MEMORY: &str = "left-looking:solve-panel=0";
const BY_BANDS: &str = "left-looking:solve-panel=8,solve-columns=16,solve-share=16,solve-warps=1,solve-band=32";
/// An inversion with the lines of a triangle in shared memory.
const BLOCK_COLUMNS: &str = "left-looking:inverse-window=0";

const SCOPE: Scope = Scope { name: "mutants", orders: &[0, 1, 3], thorough: 3, many: None, huge: None };

impl Mutant {
    fn emulated(&self) -> Emulated {
        // Where results show it, accesses need no watching, and the compiler is done in half the time.
        let checks = if let Check(_) = self.shown { Checks::All } else { Checks::None };
        Emulated::new(self.architecture).seed(3).checks(checks).largest_grid(2).edit(self.file, self.from, self.to)
    }

    fn trial(&self) -> Trial {
        let &Self { scalar, order, plan, step, rows_first, gaps, batch, .. } = self;
        Trial { scalar, order, plan, step, rows_first, gaps, batch }
    }

    /// The words of what shows it.
    fn found(&self, planted: &Cuda, sound: &Cuda) -> String {
        let words = |error: &Error| {
            let text = error.to_string();
            let kinds = [
                "out of bounds",
                "uninitialised memory",
                "race",
                "copy under way",
                "barrier not reached by all",
                "divergent warp exchange",
                "undefined behaviour",
            ];
            let kind = kinds.iter().find(|kind| text.contains(&format!("{kind}: block")));
            assert!(kind.is_none() || text.contains(", thread ") && text.contains(".cu"), "no line: {text}");
            kind.map_or_else(|| text.clone(), |&kind| kind.to_owned())
        };
        if let Suite(name) = self.shown {
            let verdict = check::<f64, _>(planted, name, &SCOPE, &Options::default().with_plan(self.plan));
            return if verdict.is_err() { name.to_owned() } else { "nothing".to_owned() };
        }
        match self.trial().run(planted, sound) {
            Err(error) if error.kind() == ErrorKind::Compile || error.kind() == ErrorKind::Argument => {
                panic!("{error}")
            }
            Err(error) => words(&error),
            Ok(left) if left == self.trial().run(sound, sound).unwrap() => "nothing".to_owned(),
            Ok(_) => "results".to_owned(),
        }
    }

    fn expected(&self) -> &'static str {
        match self.shown {
            Check(words) | Suite(words) => words,
            Results => "results",
        }
    }

    fn row(&self) -> String {
        let by = match self.shown {
            Check(words) => format!("check: {words}"),
            Results => "results".to_owned(),
            Suite(name) => format!("conformance: {}", name.replace('_', " ")),
        };
        format!("| {} | `{}` | {by} |", self.name.replace('_', " "), self.file)
    }
}

macro_rules! mutants {
    ($($name:ident { $($field:ident: $value:expr),* $(,)? })*) => {
        const MUTANTS: &[Mutant] = &[$(Mutant { name: stringify!($name), $($field: $value,)* ..F64 }),*];

        $(
            #[test]
            fn $name() {
                let mutant = MUTANTS.iter().find(|mutant| mutant.name == stringify!($name)).unwrap();
                let Some(sound) = open(Emulated::new("sm_90")) else { return };
                let planted = open(mutant.emulated()).unwrap();
                assert_eq!(mutant.found(&planted, &sound), mutant.expected());
            }
        )*
    };
}

mutants! {
    // Barriers, and waits.
    rows_that_are_fetched_are_not_waited_for {
        file: "update.cuh", from: "            wait_copies<Stages - 1>();\n", to: "", plan: "left-looking:stages=2", shown: Check("copy under way"),
    }
    no_barrier_after_the_warps_have_posted_their_rows {
        file: "search.cuh", from: "    team_sync();\n    if (WARPS", to: "    if (WARPS", shown: Check("uninitialised memory"),
    }
    a_pivot_row_is_overwritten_while_others_still_read_the_last {
        file: "panel.cuh", from: "candidate[ALL_KEPT ? j : j & 1];", to: "candidate[0];", shown: Check("race"),
    }
    the_tree_goes_on_before_its_winner_has_posted {
        file: "search.cuh", from: "    team_sync();\n    return {winner", to: "    return {winner", plan: "tree-search",
        shown: Check("uninitialised memory"),
    }
    no_barrier_between_levels_of_the_tree {
        file: "search.cuh", from: "        team_sync();\n        if (tid + half", to: "        if (tid + half", plan: "tree-search",
        shown: Check("uninitialised memory"),
    }
    what_matrix_instructions_take_is_not_waited_for {
        file: "fragments.cuh", from: "            wait_copies<STAGES - 1>();\n", to: "", order: 75, plan: BY_INSTRUCTIONS, shown: Check("copy under way"),
    }
    rows_are_given_before_the_last_are_read {
        file: "fragments.cuh", from: "                Lanes::sync();  // all", to: "                // all", order: 75, plan: BY_INSTRUCTIONS, shown: Check("race"),
    }
    rows_are_taken_before_they_are_given {
        file: "fragments.cuh", from: "                Lanes::sync();\n", to: "", order: 75, plan: BY_INSTRUCTIONS, shown: Check("race"),
    }
    what_was_never_fetched_is_multiplied {
        file: "fragments.cuh", from: "parts(ring)[e] = 0;", to: ";", order: 75, plan: BY_INSTRUCTIONS, shown: Check("uninitialised memory"),
    }
    matrix_instructions_fetch_too_few_rows {
        file: "fragments.cuh", from: "if (i >= next / NB * NB + NB && i < order)", to: "if (i > next / NB * NB + NB && i < order)", order: 75, plan: BY_INSTRUCTIONS, shown: Results,
    }
    matrix_instructions_go_beyond_the_matrix {
        file: "fragments.cuh", from: " && i < order)", to: ")", order: 75, plan: BY_INSTRUCTIONS, shown: Check("race"),
    }
    matrix_instructions_take_the_wrong_half_of_a_step {
        file: "fragments.cuh", from: "first - q + column / PARTS + half * (STEP / 2), part", to: "first - q + column / PARTS + (1 - half) * (STEP / 2), part", order: 75, plan: BY_INSTRUCTIONS,
        shown: Results,
    }
    an_imaginary_part_keeps_its_sign {
        file: "fragments.cuh", from: "part == 1 && to == 0 ? u : -u", to: "-u", scalar: ScalarKind::C64, order: 75, plan: BY_INSTRUCTIONS, shown: Results,
    }
    a_warp_stops_one_block_too_early {
        file: "fragments.cuh", from: "r * THREADS + WARP <= q + NB", to: "r * THREADS + WARP <= q + 2 * NB", order: 75, plan: BY_INSTRUCTIONS, shown: Results,
    }
    no_barrier_before_rows_of_u_are_used {
        file: "update.cuh", from: "    team_sync();\n    return rows.store", to: "    return rows.store", shown: Check("uninitialised memory"),
    }
    one_buffer_for_two_blocks_of_u {
        file: "update.cuh", from: "const int buffer = (q / NB) & 1;", to: "const int buffer = 0;", shown: Check("race"),
    }
    rows_of_one_warp_are_exchanged_without_waiting_for_its_reads {
        file: "laswp.cuh", from: "        Lanes::sync();\n", to: "", shown: Check("race"),
    }
    moves_are_counted_before_the_count_is_zero {
        file: "laswp.cuh", from: "moves.count = 0;\n    team_sync();", to: "moves.count = 0;", shown: Check("undefined behaviour"),
    }
    moves_are_counted_without_an_atomic {
        file: "laswp.cuh", from: "atomicAdd(&moves.count, 1)", to: "moves.count++", shown: Check("race"),
    }
    exchanges_are_handed_on_before_all_are_known {
        file: "getrf_spread.cu", from: "        team_sync();  // all is told", to: "        // all is told", order: 20, plan: "spread:panel=8", shown: Check("race"),
    }
    rows_of_l_are_moved_while_others_still_read_them {
        file: "getrf_spread.cu", from: "            team_sync();\n            store_panel(", to: "            store_panel(", plan: "spread:panel=8", shown: Check("race"),
    }
    rows_of_u_are_written_where_others_still_read_rows_of_a {
        file: "getrf_trailing.cu", from: "        crew_sync();  // rows of A that", to: "        // rows of A that", order: 40, plan: STRIPS, shown: Check("race"),
    }
    a_tile_is_solved_before_it_has_come {
        file: "getrf_trailing.cu", from: "        wait_copies<0>();\n        crew_sync();\n        if (k + NB", to: "        crew_sync();\n        if (k + NB", order: 40, plan: STRIPS, shown: Check("copy under way"),
    }
    exchanges_of_a_strip_are_traced_before_all_are_known {
        file: "getrf_trailing.cu", from: "atomicMin(&chip.origin[i], -1 - k);\n    }\n    crew_sync();", to: "atomicMin(&chip.origin[i], -1 - k);\n    }", order: 40, plan: STRIPS, shown: Check("uninitialised memory"),
    }
    exchanges_of_later_strips_are_counted_from_their_own_first_row {
        file: "getrf_strip.cu", from: "exchanges[j] += base;", to: "exchanges[j] += 0;", order: 40, plan: STRIPS, shown: Results,
    }
    a_strip_forgets_an_earlier_zero_pivot {
        file: "getrf_strip.cu", from: "earlier != 0 ? earlier : info != 0", to: "info != 0", order: 40, plan: STRIPS, shown: Results,
    }
    rows_on_the_left_of_a_strip_are_written_where_others_still_read {
        file: "getrf_strip.cu", from: "        team_sync();\n        UNROLL", to: "        UNROLL", order: 40, plan: PAIRS, shown: Check("race"),
    }
    exchanges_of_a_strip_that_is_one_panel_leave_its_left_alone {
        file: "getrf_strip.cu", from: "bad, TOGETHER && before > 0, tid, true);", to: "bad, false, tid, true);", order: 40, plan: "blocked:width=8,panel=8,together=2,tile-ahead=1,finish=0", shown: Results,
    }
    columns_behind_strips_together_take_the_exchanges_of_one {
        file: "getrf_trailing.cu", from: "ALWAYS ? MOST : given", to: "min(given, MOST / 2)", order: 40, plan: PAIRS, shown: Results,
    }
    exchanges_at_the_end_are_counted_from_its_own_first_row {
        file: "getrf_finish.cu", from: "= base + chip.pivots[i]", to: "= chip.pivots[i]", order: 40, plan: FINISHED, shown: Results,
    }
    the_end_forgets_an_earlier_zero_pivot {
        file: "getrf_finish.cu", from: "before != 0 ? before : info != 0", to: "info != 0", order: 56, plan: "blocked:width=32,panel=8", shown: Results,
    }
    lines_of_the_triangle_are_overwritten_while_others_still_read {
        file: "triangle.cuh", from: "    const int lines = to - from;\n    __syncthreads();", to: "    const int lines = to - from;",
        plan: "timely", step: Step::Invert, shown: Check("race"),
    }
    lines_of_the_triangle_are_read_before_all_are_there {
        file: "triangle.cuh", from: "zero<Scalar>();\n    __syncthreads();\n}", to: "zero<Scalar>();\n}",
        plan: BLOCK_COLUMNS, step: Step::Invert, shown: Check("uninitialised memory"),
    }
    a_sweep_goes_on_before_its_block_is_solved {
        file: "getrs.cu", from: "x[i * TILE + c] = own;\n        }\n        __syncthreads();", to: "x[i * TILE + c] = own;\n        }",
        plan: FROM_MEMORY, step: Step::Solve(Transpose::None), shown: Check("race"),
    }
    a_panel_is_worked_with_before_it_has_come {
        file: "getrs_resident.cu", from: "            wait_copies<0>();\n", to: "", step: Step::Solve(Transpose::None), shown: Check("copy under way"),
    }
    a_panel_comes_where_the_last_is_still_read {
        file: "getrs_resident.cu", from: "which % 2 * NB", to: "0 * which", step: Step::Solve(Transpose::None), shown: Check("copy under way"),
    }
    right_hand_sides_are_updated_before_their_corner_is_solved {
        file: "getrs_resident.cu", from: "            group_sync();\n            update_sides", to: "            update_sides", step: Step::Solve(Transpose::None),
        shown: Check("race"),
    }
    what_is_beyond_the_matrix_is_not_cleared {
        file: "getrs_resident.cu", from: "(end > n || first + NB > n)", to: "false", order: 37, step: Step::Solve(Transpose::None),
        shown: Check("uninitialised memory"),
    }
    right_hand_sides_beyond_the_last_are_solved {
        file: "getrs_resident.cu", from: "min(SHARE, columns - first_side)", to: "SHARE", step: Step::Solve(Transpose::None), shown: Check("race"),
    }
    a_permutation_is_copied_before_it_is_made {
        file: "permutation.cu", from: "            status[b] = word;\n        }\n        __syncthreads();",
        to: "            status[b] = word;\n        }", step: Step::Invert, shown: Check("race"),
    }
    a_tile_is_written_while_others_still_read {
        file: "permutation.cu", from: "left += WARP) {\n                __syncthreads();", to: "left += WARP) {", step: Step::Invert,
        rows_first: true, shown: Check("race"),
    }
    a_barrier_that_only_threads_with_a_row_reach {
        file: "getri.cu", from: "if (__syncthreads_or(bad)) failed", to: "if (threadIdx.x < order && __syncthreads_or(bad)) failed",
        plan: BLOCK_COLUMNS, step: Step::Invert, shown: Check("barrier not reached by all"),
    }

    // Warps.
    only_the_best_lanes_come_to_a_vote {
        file: "search.cuh", from: "if (sizeof(Real) == 4 || Lanes::several(mine)) {", to: "if (mine && Lanes::several(mine)) {",
        shown: Check("divergent warp exchange"),
    }
    a_reduction_asks_the_wrong_lane {
        file: "warp.cuh", from: "x = max(x, __shfl_xor_sync(EVERYONE, x, distance));",
        to: "x = max(x, __shfl_xor_sync(EVERYONE, x, distance / 2));", architecture: "sm_70", shown: Check("race"),
    }
    a_small_team_hears_the_votes_of_the_first {
        file: "warp.cuh", from: "all >> (threadIdx.x % WARP / Lanes * Lanes)", to: "all >> 0", order: 7, shown: Check("race"),
    }
    a_solved_element_is_taken_from_the_next_lane {
        file: "getrs.cu", from: "Warp::broadcast(own, k)", to: "Warp::broadcast(own, k + 1)", plan: FROM_MEMORY,
        step: Step::Solve(Transpose::None), shown: Results,
    }

    // Pivots and permutations.
    of_equal_pivots_the_last_is_taken {
        file: "search.cuh", from: "(a.lower == b.lower) & (a.place < b.place)", to: "(a.lower == b.lower) & (a.place > b.place)", plan: "tree-search",
        shown: Results,
    }
    nan_below_the_diagonal_is_unseen {
        file: "scalar.cuh", from: "return (u32(u64(__double_as_longlong(x)) >> 32) & 0x7fffffffu) + 1;",
        to: "return x == x ? (u32(u64(__double_as_longlong(x)) >> 32) & 0x7fffffffu) + 1 : 1;", shown: Results,
    }
    the_panels_edge_is_off_by_one {
        file: "getf2.cuh", from: "chosen = u32(j) < u32(width)", to: "chosen = j > 0 && j < width", shown: Results,
    }
    origins_of_rows_grow_stale {
        file: "factor.cuh", from: "origin[team.moves.to[tid + s * THREADS]] = moved[s];", to: ";", shown: Results,
    }
    every_matrix_is_permuted_as_the_first {
        file: "permutation.cu", from: "columns[b * order + left + c]", to: "columns[left + c]", step: Step::Invert, rows_first: true,
        shown: Results,
    }
    an_exchange_does_not_turn_the_sign {
        file: "det.cuh", from: "? negative(phase) : phase", to: "? phase : phase", step: Step::Determinant, shown: Results,
    }

    equal_pivots_of_two_warps_are_not_compared {
        file: "search.cuh", from: "if (tie) {", to: "if (false) {", order: 48, shown: Results,
    }
    equal_pivots_of_nine_warps_are_not_compared {
        file: "search.cuh", from: "tie = (those & (those - 1)) != 0;", to: "tie = false;", order: 75, plan: "left-looking:rows=1,threads=288", shown: Results,
    }
    the_warp_after_the_best_is_chosen {
        file: "search.cuh", from: "best = __ffs(those) - 1;", to: "best = __ffs(those);", order: 75, plan: "left-looking:rows=1,threads=288", shown: Check("uninitialised memory"),
    }
    origins_of_rows_on_chip_grow_stale {
        file: "lookahead.cuh", from: "chip.origin[panel.position[r]] = origin[r];",
        to: "chip.origin[panel.position[r]] = panel.position[r];", plan: "resident", step: Step::All, shown: Results,
    }
    a_matrix_has_the_outcome_of_its_neighbour {
        file: "getrf_getri.cu", from: "Warp::broadcast(word, mate * LANES)", to: "Warp::broadcast(word, 0)", order: 7, plan: "resident",
        step: Step::All, shown: Results,
    }

    // One panel, in registers.
    rows_are_gathered_while_others_still_read_those_chosen {
        file: "lookahead.cuh", from: "    Lanes::sync();  // all have read the rows chosen\n", to: "", order: 11, plan: IN_REGISTERS, step: Step::All,
        shown: Check("race"),
    }
    rows_are_read_before_all_are_gathered {
        file: "lookahead.cuh", from: "    }\n    Lanes::sync();\n    return !(trace == 0);", to: "    }\n    return !(trace == 0);", order: 7,
        plan: IN_REGISTERS, step: Step::All, shown: Check("race"),
    }
    columns_of_the_result_are_used_before_all_are_known {
        file: "lookahead.cuh", from: "    Lanes::sync();\n    return unsafe;", to: "    return unsafe;", order: 7,
        plan: IN_REGISTERS, step: Step::All, shown: Check("race"),
    }
    columns_of_the_result_are_those_of_the_matrix {
        file: "lookahead.cuh", from: "= distance(tid + r * LANES);", to: "= distance(panel.position[r]);",
        order: 7, plan: IN_REGISTERS, step: Step::All, shown: Results,
    }
    tiny_pivots_are_divided_by_through_their_reciprocals {
        file: "lookahead.cuh", from: "unsafe |= !by.safe();", to: "unsafe = false;", scalar: ScalarKind::C32, order: 7, plan: IN_REGISTERS, step: Step::All, shown: Results,
    }
    the_last_column_of_a_panel_takes_no_part {
        file: "resident.cuh", from: "IN_REGISTERS ? ORDER : NB;", to: "IN_REGISTERS ? ORDER - 1 : NB;", order: 7, plan: IN_REGISTERS, step: Step::All, shown: Check("uninitialised memory"),
    }
    // A matrix a thread.
    matrices_are_put_before_all_have_come_to_their_place {
        file: "thread.cuh", from: "__device__ void put(T* to, int matrices, int lane) {\n        Warp::sync();", to: "__device__ void put(T* to, int matrices, int lane) {",
        order: 3, plan: BY_THREAD, step: Step::All, shown: Check("race"),
    }
    a_thread_overwrites_what_its_warp_has_not_put {
        file: "thread.cuh", from: "        Warp::sync();  // all have put what came before\n        for", to: "        for",
        order: 3, plan: BY_THREAD, step: Step::All, gaps: Gaps::Given, batch: Trial::MANY, shown: Check("race"),
    }
    a_warp_puts_matrices_that_it_has_not {
        file: "thread.cuh", from: "if (i < matrices * PIECES) reinterpret_cast", to: "reinterpret_cast", order: 2, plan: BY_THREAD, shown: Check("out of bounds"),
    }
    of_equal_pivots_a_thread_takes_the_last {
        file: "thread.cuh", from: "(below > lower)", to: "(below >= lower)", order: 6, plan: BY_THREAD, shown: Results,
    }
    a_thread_forgets_where_rows_have_come_from {
        file: "thread.cuh", from: "            exchange_if(chosen, origin[k], origin[i]);\n", to: "", order: 4, plan: BY_THREAD, step: Step::All, shown: Results,
    }
    a_thread_divides_by_tiny_pivots_through_their_reciprocals {
        file: "thread.cuh", from: "if (by.safe()) {", to: "if (!is_zero(by.value)) {", scalar: ScalarKind::C32, order: 3, plan: BY_THREAD, shown: Results,
    }
    phases_of_a_determinant_are_paired_otherwise {
        file: "det.cuh", from: "sign[paired ? k + distance : 0]", to: "sign[paired ? k + 1 : 0]", scalar: ScalarKind::C64, order: 4, plan: BY_THREAD, step: Step::All, shown: Results,
    }

    right_hand_sides_keep_their_order {
        file: "gesv.cu", from: "*b.at(shared.distance[min(i, n - 1)], column + c)", to: "*b.at(i, column + c)", order: 7, plan: A_ROW_A_LANE,
        step: Step::System, shown: Results,
    }
    rows_above_the_diagonal_are_eliminated_first {
        file: "gesv.cu", from: "y[r][c] = tid + r * LANES > k ? less", to: "y[r][c] = tid + r * LANES >= k ? less", order: 7, plan: A_ROW_A_LANE,
        step: Step::System, shown: Results,
    }
    the_last_right_hand_sides_are_forgotten {
        file: "gesv.cu", from: "column < columns; column += MANY", to: "column + TILE <= columns; column += MANY", order: 7, plan: A_ROW_A_LANE,
        step: Step::System, shown: Results,
    }
    solutions_are_divided_by_tiny_pivots_reciprocals {
        file: "lookahead.cuh", from: "unsafe |= !by.safe();", to: "unsafe = false;", scalar: ScalarKind::C32, order: 7, plan: IN_REGISTERS, step: Step::System, shown: Results,
    }
    a_right_hand_side_of_nan_is_swallowed {
        file: "gesv.cu", from: "                trace = traced(trace, sides[r][c]);\n", to: "", order: 11, plan: A_ROW_A_LANE, step: Step::System, shown: Results,
    }
    all_lanes_have_one_right_hand_side {
        file: "gesv.cu", from: "const int c = column + tid;", to: "const int c = column;", order: 7, plan: A_SIDE_A_LANE, step: Step::System, shown: Check("race"),
    }
    a_row_takes_its_own_column_too {
        file: "gesv.cu", from: "if (k + s < i) y[i]", to: "if (k + s <= i) y[i]", order: 7, plan: A_SIDE_A_LANE, step: Step::System, shown: Results,
    }
    a_pack_that_a_sweep_loads_is_its_first_number_twice {
        file: "instruction.cuh", from: "for (int i = 0; i < 2; ++i) x[i] = shared[i];", to: "for (int i = 0; i < 2; ++i) x[i] = shared[0];", order: 7, plan: A_SIDE_A_LANE,
        step: Step::System, shown: Results,
    }
    half_a_warp_takes_the_other_halfs_largest {
        file: "warp.cuh", from: "return low ? below : above;", to: "return low ? above : below;", order: 11, plan: IN_REGISTERS, step: Step::All, shown: Check("uninitialised memory"),
    }

    // On chip.
    helpers_go_on_before_the_panel_is_there {
        file: "lookahead.cuh", from: "meet(&shared.meeting, CREW);", to: "",
        plan: "resident:helpers=1,tensor=1", shown: Check("race"),
    }
    columns_are_updated_before_their_rows_of_u_are_solved {
        file: "lookahead.cuh", from: "solve_column(a, exchange, first, c + lane);\n        Lanes::sync();",
        to: "solve_column(a, exchange, first, c + lane);", plan: "resident", shown: Check("race"),
    }
    rows_of_u_are_solved_before_all_are_posted {
        file: "lookahead.cuh", from: "    Lanes::sync();\n    for (int c = lane; c < NB; c += LANES) {",
        to: "    for (int c = lane; c < NB; c += LANES) {", plan: "resident", shown: Check("uninitialised memory"),
    }
    a_row_that_leaves_the_panel_is_not_listed {
        file: "lookahead.cuh", from: "if (was < first + NB) exchange.to", to: "if (was < first + NB - 1) exchange.to", plan: "resident",
        shown: Check("uninitialised memory"),
    }
    a_block_of_u_is_overwritten_while_others_still_read {
        file: "rows.cuh", from: "        crew_sync();\n        UNROLL", to: "        UNROLL", plan: "resident:inverse-window=8", step: Step::All,
        shown: Check("race"),
    }
    a_window_lacks_the_last_panel_on_its_left {
        file: "window.cuh", from: "k < window; k += NB", to: "k + NB < window; k += NB", plan: "resident:panel=4,window=8", shown: Results,
    }
    a_panel_on_the_left_is_overwritten_while_others_use_it {
        file: "window.cuh", from: "wait_copies<0>();\n        crew_sync();", to: "wait_copies<0>();\n        Lanes::sync();",
        plan: "resident:panel=4,window=8,helpers=1", shown: Check("race"),
    }
    rows_on_the_left_of_the_last_window_stay_where_they_were {
        file: "window.cuh", from: "    settle_windows(chip, out, window - WINDOW, kept, order, tid);\n", to: "", plan: "resident:panel=4,window=8",
        shown: Results,
    }
    a_panel_goes_to_its_place_before_all_of_it_is_on_chip {
        file: "window.cuh", from: "wait_copies<AHEAD>();\n", to: "wait_copies<AHEAD + 1>();\n", plan: "resident:panel=4,window=8", shown: Check("copy under way"),
    }
    a_panel_comes_to_where_others_still_read_the_one_before {
        file: "window.cuh", from: "SLOTS < 5 ? SLOTS - 2 : 3", to: "SLOTS - 1", order: 61, plan: "resident:panel=4,window=8,helpers=1", shown: Check("copy under way"),
    }
    a_panel_comes_to_where_the_last_window_is_still_read {
        file: "window.cuh", from: "    crew_sync();\n    if constexpr (HOLDS) {\n        settle", to: "    if constexpr (HOLDS) {\n        settle", order: 61, plan: "resident:panel=4,window=8,helpers=1", shown: Check("race"),
    }
    a_window_is_taken_into_registers_before_it_has_come {
        file: "held.cuh", from: "wait_copies<0>();\n    crew_sync();\n    Held", to: "crew_sync();\n    Held", order: 61, plan: HELD, shown: Check("copy under way"),
    }
    panels_come_to_the_place_of_a_window_that_others_still_read {
        file: "held.cuh", from: "own.load();\n    crew_sync();", to: "own.load();", order: 61, plan: HELD, shown: Check("race"),
    }
    a_panel_is_used_before_it_has_come {
        file: "held.cuh", from: "wait_copies<FLYING - 1>();", to: "wait_copies<FLYING>();", order: 61, plan: HELD, shown: Check("copy under way"),
    }
    a_panel_comes_to_where_the_one_before_is_still_used {
        file: "held.cuh", from: "TURNS > 2 ? 2 : 1", to: "TURNS", order: 61, plan: HELD, shown: Check("copy under way"),
    }
    rows_of_u_come_to_the_front_while_those_before_are_written {
        file: "held.cuh", from: "        Lanes::sync();\n    }\n    crew_sync();", to: "    }\n    crew_sync();", order: 61, plan: HELD, shown: Check("race"),
    }
    rows_of_u_are_used_before_they_are_solved_for {
        file: "held.cuh", from: "        Lanes::sync();\n        own.subtract", to: "        own.subtract", order: 61, plan: HELD, shown: Check("race"),
    }
    a_warp_without_columns_reads_those_of_another {
        file: "held.cuh", from: "if (j >= end) return;", to: "", order: 77, plan: "resident:panel=8,window=16,helpers=3", shown: Check("race"),
    }
    columns_of_the_next_warp_are_written_too {
        file: "held.cuh", from: "if (c >= min(last, n)) continue;", to: "if (c >= min(end, n)) continue;", scalar: ScalarKind::C64, order: 33,
        plan: "resident:panel=4,window=8,helpers=1", shown: Check("race"),
    }
    a_window_comes_back_to_the_chip_while_others_still_use_a_panel {
        file: "held.cuh", from: "    crew_sync();\n    own.store(window);", to: "    own.store(window);", order: 61, plan: HELD, shown: Check("race"),
    }
    what_is_beyond_the_matrix_in_panels_is_not_zero {
        file: "held.cuh", from: "*chip.matrix.at(i, c) = zero<Scalar>();", to: ";", order: 61, plan: HELD, shown: Results,
    }
    rows_on_the_left_of_the_last_window_are_not_written {
        file: "held.cuh", from: "if (end < order || i <", to: "if (end <= order || i <", order: 61, plan: HELD, shown: Results,
    }
    the_last_rows_on_the_left_stay_where_they_were {
        file: "held.cuh", from: "store_once(out.at(to[r], k + c)", to: "store_once(out.at(first + r * LANES, k + c)", order: 61, plan: HELD, shown: Results,
    }
    rows_on_the_left_are_read_while_they_are_moved {
        file: "held.cuh", from: "        Lanes::sync();\n        UNROLL for (int r = 0; r < DEEP; ++r)", to: "        UNROLL for (int r = 0; r < DEEP; ++r)", order: 61, plan: HELD, shown: Check("race"),
    }
    what_is_beyond_the_matrix_is_zero {
        file: "resident.cuh", from: "*a.at(k, j) = j == k ? one<Scalar>() : zero<Scalar>();", to: "*a.at(k, j) = zero<Scalar>();", order: 13,
        plan: "resident:panel=4", shown: Results,
    }
    the_first_panel_is_factored_before_it_has_come {
        file: "lookahead.cuh", from: "if (!helps) wait_copies<0>();", to: "", plan: "resident:helpers=1,tensor=1", shown: Check("copy under way"),
    }
    helpers_work_with_columns_that_have_not_come {
        file: "lookahead.cuh", from: "if (first == 0) wait_copies<0>();", to: "", plan: "resident:helpers=1,tensor=1", shown: Check("copy under way"),
    }
    helpers_bring_a_share_of_the_columns_too_few {
        file: "lookahead.cuh", from: "helps ? tid / WIDE - 1 : 0", to: "helps ? tid / WIDE : 0", plan: "resident:helpers=2,tensor=1",
        shown: Check("uninitialised memory"),
    }
    every_other_column_is_left_out {
        file: "resident.cuh", from: "step = share.groups * COLUMNS;", to: "step = 2 * share.groups * COLUMNS;", order: 37, plan: "resident:panel=8,tensor=1", shown: Check("uninitialised memory"),
    }
    what_the_second_round_of_a_column_brings_is_left_out {
        file: "resident.cuh", from: "UNROLL for (int r = 0; r < ROUNDS; ++r)", to: "UNROLL for (int r = 0; r < 1; ++r)", order: 77, plan: "resident", shown: Check("uninitialised memory"),
    }
    rows_of_a_window_go_to_where_those_before_them_stand {
        file: "window.cuh", from: "chip.place_of(row_or_last(r, tid, n), WINDOW", to: "chip.place_of(row_or_last(0, tid, n), WINDOW", order: 77, plan: "resident:panel=8,window=32,helpers=1", shown: Results,
    }
    rows_on_the_left_that_come_side_by_side_stand_with_the_first {
        file: "window.cuh", from: "chip.past_origin(row_or_last(top + r,", to: "chip.past_origin(row_or_last(top,", order: 77, plan: "resident:panel=8,window=32,helpers=0", shown: Results,
    }
    rows_that_are_written_side_by_side_go_to_the_first {
        file: "resident.cuh", from: "target[r * CREW] = x;", to: "target[0] = x;", order: 77, plan: "resident:panel=8,window=32,helpers=0", shown: Results,
    }
    the_last_row_of_a_matrix_is_taken_for_one_beyond {
        file: "resident.cuh", from: "surely_there(r) || tid + r * CREW < n;", to: "surely_there(r) || tid + r * CREW < n - 1;", order: 61, plan: "resident", shown: Results,
    }
    every_other_column_of_u_behind_a_strip_is_left_out {
        file: "getrf_trailing.cu", from: "c < TILE; c += SETS", to: "c < TILE; c += 2 * SETS", order: 40, plan: STRIPS, shown: Check("uninitialised memory"),
    }
    a_row_behind_a_strip_is_traced_back_from_the_exchange_before_its_last {
        file: "getrf_trailing.cu", from: "k < 0 ? t + 1 : k + 1", to: "k < 0 ? t : k", order: 40, plan: STRIPS, shown: Results,
    }
    warps_behind_a_strip_have_all_the_same_rows {
        file: "getrf_trailing.cu", from: "depth + warp / ACROSS * rows", to: "depth", order: 100, plan: STRIPS, shown: Results,
    }
    rows_behind_a_strip_that_are_more_than_a_warp_takes_at_a_time_are_left_out {
        file: "getrf_trailing.cu", from: "top < stop;)", to: "top == begin && top < stop;)", order: 180, batch: 1, plan: STRIPS, shown: Results,
    }
    triangles_of_a_strip_lie_where_the_one_before_does {
        file: "getrf_trailing.cu", from: "{to.at(k, 0), to.stride}", to: "{to.at(0, 0), to.stride}", order: 40, plan: STRIPS, shown: Results,
    }
    the_last_column_of_a_whole_block_is_not_written {
        file: "resident.cuh", from: "if (first + NB <= end) {", to: "if (first + NB < end) {", plan: "resident", shown: Results,
    }
    a_chosen_row_is_said_to_stand_where_the_threads_first_does {
        file: "getf2.cuh", from: "place = which == r ? panel.place(r, tid) : place;", to: "", plan: "resident", shown: Results,
    }
    the_row_on_the_diagonal_is_never_chosen {
        file: "getf2.cuh", from: "panel.place(r, tid) >= j ?", to: "panel.place(r, tid) > j ?", scalar: ScalarKind::C32, order: 13,
        plan: "resident:panel=4", shown: Results,
    }
    a_panels_first_row_is_never_chosen {
        file: "getf2.cuh", from: "panel.place(r, tid) >= 0 ? ~0u", to: "panel.place(r, tid) > 0 ? ~0u", order: 13, plan: "resident:panel=4", shown: Results,
    }
    ties_are_not_seen_in_quotients {
        file: "getf2.cuh", from: "if (BY_QUOTIENTS) ties = quotient >= upper_key(Real(1)) - 1;", to: ";", order: 48, plan: "resident", shown: Results,
    }
    equal_quotients_are_no_tie {
        file: "getf2.cuh", from: "quotient >= upper_key(Real(1)) - 1", to: "quotient > upper_key(Real(1)) - 1", order: 48, plan: "resident", shown: Results,
    }
    columns_of_the_inverse_stay_where_they_are {
        file: "getrf_getri.cu", from: "chip.origin[first + c] * result.col", to: "u64(first + c) * result.col", plan: "resident", step: Step::All,
        shown: Results,
    }
    rows_that_are_dealt_are_said_to_have_been_chosen_where_they_stand {
        file: "lookahead.cuh", from: "panel.was[r] = exchange.from[k];", to: "panel.was[r] = before + k;", order: 61, plan: "resident", shown: Results,
    }
    rows_that_are_dealt_are_said_to_have_stood_where_they_stand {
        file: "lookahead.cuh", from: "panel.was[r] = before + j;", to: ";", order: 61, plan: "resident", shown: Results,
    }
    fewer_rows_are_dealt_than_are_left {
        file: "lookahead.cuh", from: "order - top() > FEWER * LANES;", to: "order - top() > FEWER * LANES + NB;", order: 61, plan: "resident", shown: Results,
    }
    origins_are_overwritten_while_others_read_them {
        file: "lookahead.cuh", from: ": 0;\n    Lanes::sync();", to: ": 0;", order: 61, plan: "resident", shown: Check("race"),
    }
    rows_of_u_are_looked_up_where_they_no_longer_stand {
        file: "resident.cuh", from: "return i < first + NB ? i :", to: "return false ? i :", order: 61, plan: "resident", shown: Results,
    }
    rows_of_u_have_no_place_in_the_next_window {
        file: "window.cuh", from: "i < end - NB; i += CREW) chip.place_of", to: "i < window - NB; i += CREW) chip.place_of",
        order: 33, plan: "resident:panel=4,window=8", shown: Check("race"),
    }
    a_sum_is_taken_in_another_order {
        file: "rows.cuh", from: "Upwards ? q : PACKS - 1 - q", to: "q", plan: "resident:tensor=0", step: Step::All, shown: Results,
    }
    what_lies_left_of_the_diagonal_counts {
        file: "rows.cuh", from: "Masked && k < i ?", to: "false && k < i ?", plan: "resident:tensor=0", step: Step::All, shown: Results,
    }
    what_lies_left_of_the_diagonal_counts_in_a_tile {
        file: "tile.cuh", from: "Masked && l < mine ?", to: "false && l < mine ?", plan: "resident", step: Step::All, shown: Results,
    }
    a_sum_leaves_out_what_is_no_whole_step {
        file: "rows.cuh", from: "(n + STEP - 1) / STEP * STEP", to: "n / STEP * STEP", order: 37, plan: "resident", step: Step::All, shown: Results,
    }
    a_sum_leaves_out_the_last_block {
        file: "rows.cuh", from: "NB / 2 ? order : n", to: "NB / 2 ? order - NB : n", order: 39, plan: "resident:tensor=0", step: Step::All, shown: Results,
    }
    a_step_that_comes_later_is_taken_first {
        file: "tile.cuh", from: "(Upwards ? step : (end - begin - 1) / STEP - step)", to: "step", plan: "resident:inverse-window=8", step: Step::All, shown: Results,
    }
    columns_that_are_on_their_way_are_those_of_another_step {
        file: "tile.cuh", from: "done + s + Ahead, begin", to: "done + s + 1, begin", order: 70, plan: "resident:inverse-window=8",
        step: Step::All, shown: Results,
    }
    packs_that_are_on_their_way_are_those_before {
        file: "rows.cuh", from: "load_pack<Upwards, Count>(x[s], left, k_of(done + s + AHEAD))", to: "load_pack<Upwards, Count>(x[s], left, k_of(done + s))",
        plan: "resident:inverse-window=8,tensor=0", step: Step::All, shown: Results,
    }
    a_row_takes_a_part_once_more_with_the_rows_below {
        file: "rows.cuh", from: "Count < OWN_ROWS ? start(Count) : first;", to: "first;", order: 41, plan: "resident:inverse-window=8,inverse-rows=2,tensor=0",
        step: Step::All, shown: Results,
    }
    rows_below_are_late_for_their_part {
        file: "rows.cuh", from: "const int begin = start(Count - 1), end", to: "const int begin = Count > 1 ? first : start(0), end", order: 41,
        plan: "resident:inverse-window=8,inverse-rows=2,tensor=0", step: Step::All, shown: Results,
    }
    rows_beyond_the_matrix_are_no_zeros {
        file: "getri_resident.cu", from: "for (int i = n; !PADDED", to: "for (int i = order; !PADDED", order: 37,
        plan: "left-looking:tensor=0,inverse-window=16", step: Step::All, shown: Check("uninitialised memory"),
    }
    lu_leaves_nothing_beyond_the_matrix {
        file: "getrf_resident.cu", from: "const int kept = PADDED ? order : n;", to: "const int kept = n;", order: 41, plan: "resident:inverse-window=16",
        step: Step::All, shown: Check("uninitialised memory"),
    }
    columns_beyond_the_matrix_have_a_place_in_the_result {
        file: "getri_resident.cu", from: "i < n && j < n) store_once", to: "i < n) store_once", order: 41, plan: "resident:inverse-window=16", step: Step::All,
        shown: Check("uninitialised memory"),
    }
    a_window_is_read_before_all_of_it_is_there {
        file: "getri_resident.cu", from: "            crew_sync();\n            rows.copy_corner(chip.corner);\n            for", to:
        "            rows.copy_corner(chip.corner);\n            for", plan: "resident:inverse-window=8", step: Step::All, shown: Check("copy under way"),
    }
    the_next_window_comes_while_others_still_have_their_sums_there {
        file: "rows.cuh", from: "i == j ? one<Scalar>() : zero<Scalar>(); });\n        if (STREAMED) crew_sync();", to: "i == j ? one<Scalar>() : zero<Scalar>(); });",
        plan: "resident:inverse-window=8", step: Step::All, shown: Check("race"),
    }
    the_sweep_of_l_begins_before_that_of_u_is_done {
        file: "getri_resident.cu", from: "order, tid, base);\n            crew_sync();", to: "order, tid, base);", plan: "resident:inverse-window=8", step: Step::All,
        shown: Check("race"),
    }
    columns_of_the_inverse_keep_their_order {
        file: "getri_resident.cu", from: "rows == nullptr ? k : rows[b * n + k]", to: "k", plan: "resident:inverse-window=8", step: Step::All,
        shown: Results,
    }
    columns_that_have_a_copy_are_taken_twice {
        file: "rows.cuh", from: "from = Upwards ? cut : begin, until = Upwards ? end : cut;", to: "from = begin, until = end;", plan: BY_COPIES, step: Step::All,
        shown: Results,
    }
    copies_are_taken_the_other_way_round {
        file: "rows.cuh", from: "cut + (steps - 1 - s) * STEP", to: "cut + s * STEP", plan: BY_COPIES, step: Step::All, shown: Results,
    }
    packs_of_copies_are_taken_the_other_way_round {
        file: "rows.cuh", from: "begin + (Upwards ? q : all - 1 - q)", to: "begin + (Upwards ? q : packs + q)", scalar: ScalarKind::F32, plan: BY_COPIES,
        step: Step::All, shown: Results,
    }
    the_first_of_the_columns_with_copies_has_none {
        file: "getri_resident.cu", from: "if (first >= split)", to: "if (first > split)", plan: BY_COPIES, step: Step::All, shown: Check("uninitialised memory"),
    }
    copies_of_the_other_sweep_are_taken {
        file: "getri_resident.cu", from: "if (first < EARLY)", to: "if (first > EARLY)", plan: BY_COPIES, step: Step::All, shown: Check("uninitialised memory"),
    }
    columns_beyond_the_matrix_have_no_copy {
        file: "getri_resident.cu", from: "if (i >= order) return;\n            if (first", to: "if (i >= order || j >= n) return;\n            if (first", order: 41, plan: BY_COPIES, step: Step::All,
        shown: Check("uninitialised memory"),
    }
    solved_columns_that_are_read_again_stay_out_of_the_workspace {
        file: "getri_resident.cu", from: "(first > 0 && first < split)", to: "(first > 0 && first + NB < split)", order: 41, plan: BY_COPIES, step: Step::All,
        shown: Results,
    }
    lines_are_let_go_of_that_are_read_again {
        file: "getri_resident.cu", from: "first + NB >= kept_until(order)", to: "true", order: 41, plan: BY_COPIES, step: Step::All, shown: Results,
    }
    a_result_that_lies_in_the_workspace_is_let_go_of {
        file: "getri_resident.cu", from: "DISCARDS && rows != nullptr", to: "DISCARDS", order: 41, plan: BY_COPIES, step: Step::All, rows_first: true,
        shown: Results,
    }
    an_imaginary_part_has_the_wrong_sign_in_a_tile {
        file: "tile.cuh", from: "signed_by(b, part == 0 || to == 1)", to: "-b", scalar: ScalarKind::C64, plan: "resident:panel=8,tensor=1",
        shown: Results,
    }
    an_imaginary_part_is_left_behind {
        file: "tile.cuh", from: "parts(&value)[part] = x[part];", to: "parts(&value)[part] = x[0];", scalar: ScalarKind::C64,
        plan: "resident:panel=8,tensor=1", shown: Results,
    }
    columns_on_chip_are_further_apart_than_there_is_room_for {
        file: "resident.cuh", from: "(packs + more)", to: "(packs + more + 2)", plan: "resident:panel=8,tensor=0", shown: Check("out of bounds"),
    }
    a_row_of_the_panel_beyond_the_matrix_is_updated {
        file: "tile.cuh", from: "below(m) / EIGHT * EIGHT < order", to: "below(m) / EIGHT * EIGHT <= order", order: 40, plan: "resident:panel=8,tensor=1",
        shown: Check("uninitialised memory"),
    }
    a_matrix_that_begins_off_a_pack_is_taken_for_one_that_does_not {
        file: "resident.cuh", from: "start + (ODD ?", to: "start + (false ?", order: 37, plan: "resident:panel=8,tensor=1", shown: Results,
    }
    the_other_end_of_an_odd_column_is_copied_alone {
        file: "resident.cuh", from: "ODD && !begins(j) ? 0 : i", to: "ODD && begins(j) ? 0 : i", order: 37, plan: "resident:panel=8,tensor=1", shown: Results,
    }
    odd_columns_are_copied_as_if_they_began_with_a_pack {
        file: "resident.cuh", from: "reinterpret_cast<T*>(ODD ?", to: "reinterpret_cast<T*>(false ?", order: 37, plan: "resident:panel=8,tensor=1",
        shown: Check("undefined behaviour"),
    }

    // Addresses.
    matrices_are_found_by_a_narrow_number {
        file: "operand.cuh", from: "b * group :", to: "(b * group & 2047) :", shown: Check("race"),
    }
    rows_are_neighbours_where_they_are_not {
        file: "operand.cuh", from: "(UnitRows ? i : i * row)", to: "i", rows_first: true, shown: Check("race"),
    }
    a_panel_is_loaded_one_row_too_far {
        file: "columns.cuh", from: "live && i < order ? i : -1", to: "live && i <= order ? i : -1",
        plan: "left-looking:panel=8,rows=1", shown: Check("uninitialised memory"),
    }
    a_panel_is_loaded_one_column_too_far {
        file: "columns.cuh", from: "there && c < width ? *from.at", to: "there && c <= width ? *from.at", order: 33,
        shown: Check("out of bounds"),
    }
    the_streamed_part_overwrites_what_is_not_yet_used {
        file: "update.cuh", from: "s < Stages - 1; ++s) fetch();", to: "s < Stages; ++s) fetch();", shown: Check("copy under way"),
    }
    a_diagonal_block_is_kept_one_column_off {
        file: "factor.cuh", from: "shared.diagonal[first + c]", to: "shared.diagonal[first + c + 1]",
        shown: Check("uninitialised memory"),
    }
    columns_on_the_right_keep_their_rows {
        file: "laswp.cu", from: "end - begin, end, order", to: "end - begin, end + 1, order",
        plan: "multi-kernel-batched:width=8", shown: Results,
    }
    a_group_of_panels_leaves_its_first_out {
        file: "getrf_steps.cu", from: "for (int q = begin; q < end; q += NB)", to: "for (int q = begin + NB; q < end; q += NB)",
        plan: "multi-kernel-two-level:width=8,together=2", shown: Results,
    }
    exchanges_are_traced_from_the_first_on {
        file: "origin.cuh", from: "for (int j = NB - 1; j >= 0; --j) i =", to: "for (int j = 0; j < NB; ++j) i =", plan: "spread:panel=8", shown: Results,
    }
    exchanges_of_one_panel_alone_reach_rows_of_l {
        file: "getrf_spread.cu", from: "exchanges, end, order, end, order, tid", to: "exchanges, end, min(end + NB, order), end, order, tid", plan: "spread:panel=8",
        shown: Results,
    }
    a_zero_pivot_beyond_the_first_panel_is_not_told {
        file: "getrf_spread.cu", from: "atomicCAS(status + b, 0u, info)", to: "(void)info", plan: "spread:panel=8", shown: Results,
    }
    a_block_column_is_taken_from_where_it_is_not_yet {
        file: "getrf_spread.cu", from: "if (before == 0) {", to: "if (first == 0) {", plan: "spread:panel=8", shown: Results,
    }
    places_lie_beyond_the_shared_memory {
        file: "team.cuh", from: "place = origin + padded;", to: "place = origin + 2 * padded;", plan: "shared-panel",
        shown: Check("out of bounds"),
    }
    one_line_of_the_triangle_is_not_shared {
        file: "triangle.cuh", from: "k < lines; k += blockDim.x", to: "k < lines - 1; k += blockDim.x",
        plan: BLOCK_COLUMNS, step: Step::Invert, shown: Check("uninitialised memory"),
    }
    the_list_of_moves_is_too_short {
        file: "team.cuh", from: "Position from[2 * NB], to[2 * NB];", to: "Position from[NB], to[NB];",
        shown: Check("undefined behaviour"),
    }

    // Arithmetic.
    a_conjugation_is_missing {
        file: "getrs.cu", from: "form == 2 ? conjugate(value) : value", to: "value", scalar: ScalarKind::C64, plan: FROM_MEMORY,
        step: Step::Solve(Transpose::ConjugateTranspose), shown: Results,
    }
    unit_and_other_triangles_are_swapped_when_transposed {
        file: "getrs.cu", from: "sweep(a, tile, order, false, form != 0);", to: "sweep(a, tile, order, false, form == 0);",
        plan: FROM_MEMORY, step: Step::Solve(Transpose::Transpose), shown: Results,
    }
    solutions_stay_conjugated {
        file: "getrs_resident.cu", from: "first_side + c) = form == 2 ? conjugate(value) : value;", to: "first_side + c) = value;",
        scalar: ScalarKind::C64, step: Step::Solve(Transpose::ConjugateTranspose), shown: Results,
    }
    the_wrong_triangle_is_divided_by {
        file: "getrs_resident.cu", from: "lane, n, form == 0, safe}", to: "lane, n, form != 0, safe}", step: Step::Solve(Transpose::Transpose), shown: Results,
    }
    a_block_on_the_diagonal_is_told_a_row_by_the_wrong_lane {
        file: "getrs_resident.cu", from: "broadcast(told, owner)", to: "broadcast(told, DEEP - 1 - owner)", scalar: ScalarKind::C64,
        step: Step::Solve(Transpose::None), shown: Results,
    }
    every_block_takes_the_first_rows {
        file: "getri_resident.cu", from: "int(item % parts) * CREW", to: "0", order: 41, plan: "left-looking:inverse-window=8,inverse-parts=2", step: Step::Invert,
        shown: Check("race"),
    }
    the_last_pack_of_a_column_is_not_copied {
        file: "getrs_resident.cu", from: "WHOLE || i < rows)", to: "WHOLE || i < rows - Pack::LENGTH)", plan: BY_BANDS,
        step: Step::Solve(Transpose::None), shown: Check("uninitialised memory"),
    }
    a_bands_sum_is_taken_downwards {
        file: "getrs_resident.cu", from: "tile.template subtract<Forward, false>", to: "tile.template subtract<!Forward, false>", plan: BY_BANDS,
        step: Step::Solve(Transpose::None), shown: Results,
    }
    a_band_is_not_put_back {
        file: "getrs_resident.cu", from: "            tile.store(there);\n", to: "", plan: BY_BANDS, step: Step::Solve(Transpose::None), shown: Results,
    }
    a_row_starts_right_of_its_diagonal {
        file: "getri.cu", from: "return k >= i + r * threads ?", to: "return k > i + r * threads ?", plan: BLOCK_COLUMNS,
        step: Step::Invert, shown: Results,
    }
    failed_matrices_keep_what_was_there {
        file: "outcome.cu", from: "if (status[b] == 0) continue;", to: "if (status[b] == 0 || status[b] != 0xffffffffu) continue;",
        step: Step::Solve(Transpose::None), shown: Results,
    }
    a_subnormal_pivot_is_multiplied_with_its_reciprocal {
        file: "getf2.cuh", from: "if (choice.safe()) {", to: "if (true) {",
        shown: Suite("extremes_of_the_range_keep_the_contract"),
    }
    order_zero_leaves_the_last_outcomes {
        file: "getrf.cu", from: "if (live && tid == 0) status[b]", to: "if (live && tid == 0 && order > 0) status[b]",
        shown: Suite("empty_batches_and_orders_zero_and_one_work"),
    }
}

/// Or else what shows it would be that nothing can be compiled.
#[test]
fn every_fault_has_the_text_that_it_changes() {
    for mutant in MUTANTS {
        let path = format!("{}/../cuda/src/kernels/{}", env!("CARGO_MANIFEST_DIR"), mutant.file);
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.matches(mutant.from).count(), 1, "{}: {:?} in {}", mutant.name, mutant.from, mutant.file);
    }
}

#[test]
fn the_document_lists_every_mutant_and_what_shows_it() {
    let document = include_str!("../MUTANTS.md");
    let missing: Vec<_> = MUTANTS.iter().map(Mutant::row).filter(|row| !document.contains(row)).collect();
    assert!(missing.is_empty(), "not in MUTANTS.md:\n{}", missing.join("\n"));
}
