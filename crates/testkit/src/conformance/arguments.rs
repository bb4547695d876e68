//! Bad arguments, forced plans, and runs of what was prepared.

use batchla_core::{
    Batch, BatchLayout, Error, ErrorKind, Extras, FactorizeArgs, FactorsRef, InvertArgs, Memory, Options, Prepared,
    Problem, Report, Scalar, SolveArgs, Source, SourceKind, Transpose,
};

use super::guarded::{Complete, Guarded, in_words};
use super::{Scope, Tally, Verdict};
use crate::generate::Generator;

fn expect<R>(what: &str, kind: ErrorKind, result: Result<R, Error>, tally: &mut Tally) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("{what} was accepted")),
        Err(error) if error.kind() != kind => Err(format!("{what} gave an error of kind {}: {error}", error.kind())),
        Err(error) if error.advice().is_empty() => Err(format!("{what} gave an error without advice: {error}")),
        Err(_) => {
            tally.compared += 1;
            Ok(())
        }
    }
}

pub(super) fn bad_arguments_give_the_documented_error<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    _scope: &Scope,
) -> Verdict {
    let backend = guarded.backend;
    let mut tally = Tally::default();
    let layout = |batch, rows, cols| BatchLayout::column_major(batch, rows, cols).map_err(in_words);
    let batch =
        |b, m, n| -> Result<Batch<T, B::Memory>, String> { backend.allocate_batch(layout(b, m, n)?).map_err(in_words) };
    let (wide, four) = (batch(2, 3, 4)?, batch(2, 4, 4)?);
    let shape = ErrorKind::Shape;
    expect("factorize of 3 x 4", shape, backend.factorize(&wide), &mut tally)?;
    expect("invert of 3 x 4", shape, backend.invert(&wide), &mut tally)?;
    expect("determinant of 3 x 4", shape, backend.determinant(&wide), &mut tally)?;
    expect("solve with 3 x 4", shape, backend.solve(&wide, &batch(2, 3, 1)?), &mut tally)?;
    expect("3 rows for order 4", shape, backend.solve(&four, &batch(2, 3, 1)?), &mut tally)?;
    expect("3 right-hand sides for 2 matrices", shape, backend.solve(&four, &batch(3, 4, 1)?), &mut tally)?;
    expect("a smaller result", shape, backend.invert_into(&four, &mut batch(1, 4, 4)?), &mut tally)?;
    expect("a result of another order", shape, backend.invert_into(&four, &mut batch(2, 3, 3)?), &mut tally)?;
    let factors = backend.factorize_owned(batch(2, 4, 4)?).map_err(in_words)?;
    expect("3 rows for factors of order 4", shape, factors.solve(&batch(2, 3, 1)?), &mut tally)?;
    expect(
        "5 right-hand sides in place of 2",
        shape,
        factors.solve_in_place(&mut batch(5, 3, 1)?, Transpose::None),
        &mut tally,
    )?;

    // A forced plan that there is not: the rejection is the source.
    let problem = Problem::invert::<T>(SourceKind::Matrix, *four.layout(), *four.layout()).map_err(in_words)?;
    let forced = backend.prepare(&problem, &Options::default().with_plan("no-such-plan"));
    if forced.as_ref().err().is_some_and(|error| std::error::Error::source(error).is_none()) {
        return Err("the error of an unknown plan has no source".to_owned());
    }
    expect("an unknown plan", ErrorKind::Unsupported, forced, &mut tally)?;

    // Operands other than those prepared.
    let prepared = backend.prepare(&problem, guarded.options).map_err(in_words)?;
    let mut workspace = backend.workspace(&prepared).map_err(in_words)?;
    let mut run = |source: Source<'_, T, B::Memory>, out: BatchLayout, room: usize| -> Result<(), Error> {
        let mut x = backend.allocate_batch(out)?;
        let mut report = Report::allocate(backend, room, Extras::none())?;
        backend.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)
    };
    let rows = BatchLayout::row_major(2, 4, 4).map_err(in_words)?;
    let (three, argument) = (batch(3, 4, 4)?, ErrorKind::Argument);
    expect(
        "a larger batch than prepared",
        argument,
        run(Source::Matrix(three.view()), layout(3, 4, 4)?, 3),
        &mut tally,
    )?;
    expect("another layout than prepared", argument, run(Source::Matrix(four.view()), rows, 2), &mut tally)?;
    expect("another source than prepared", argument, run(Source::InPlace, layout(2, 4, 4)?, 2), &mut tally)?;
    expect("no room for outcomes", argument, run(Source::Matrix(four.view()), layout(2, 4, 4)?, 1), &mut tally)?;
    let one = batch(1, 4, 4)?;
    expect("one matrix for two inverses", argument, run(Source::Matrix(one.view()), layout(2, 4, 4)?, 2), &mut tally)?;
    run(Source::Matrix(four.view()), layout(2, 4, 4)?, 2).map_err(in_words)?;
    run(Source::Matrix(one.view()), layout(1, 4, 4)?, 2).map_err(in_words)?;
    expect("batches that differ", argument, run(Source::Matrix(four.view()), layout(1, 4, 4)?, 1), &mut tally)?;

    // Factors with too few pivots or outcomes, and a report without room for what was prepared.
    let extras = Extras::none().with_determinant();
    let problem = Problem::invert::<T>(SourceKind::Factors, *four.layout(), *four.layout());
    let problem = problem.and_then(|problem| problem.with_extras(extras)).map_err(in_words)?;
    let prepared = backend.prepare(&problem, guarded.options).map_err(in_words)?;
    let mut workspace = backend.workspace(&prepared).map_err(in_words)?;
    let mut run = |pivots: usize, outcomes: usize, extras: Extras| -> Result<(), Error> {
        let still: Vec<u32> = (0..pivots as u32).map(|at| at % 4).collect();
        let (mut pivots, outcomes) = (backend.allocate::<u32>(pivots)?, backend.allocate::<u32>(outcomes)?);
        backend.write(&still, B::Memory::slice_mut(&mut pivots))?;
        let (pivots, outcomes) = (B::Memory::slice(&pivots), B::Memory::slice(&outcomes));
        let source = Source::Factors(FactorsRef { lu: four.view(), pivots, outcomes });
        let mut x = backend.allocate_batch(*four.layout())?;
        let mut report = Report::allocate(backend, 2, extras)?;
        backend.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)
    };
    run(8, 2, extras).map_err(in_words)?;
    run(9, 3, extras).map_err(in_words)?;
    expect("too few pivots", argument, run(7, 2, extras), &mut tally)?;
    expect("too few outcomes", argument, run(8, 1, extras), &mut tally)?;
    expect("neither pivots nor outcomes", argument, run(0, 0, extras), &mut tally)?;
    expect("no room for determinants", argument, run(8, 2, Extras::none()), &mut tally)?;

    let problem = Problem::factorize::<T>(SourceKind::Matrix, *four.layout(), *four.layout()).map_err(in_words)?;
    let prepared = backend.prepare(&problem, guarded.options).map_err(in_words)?;
    let mut workspace = backend.workspace(&prepared).map_err(in_words)?;
    let mut few = backend.allocate::<u32>(7).map_err(in_words)?;
    let mut report = Report::allocate(backend, 2, Extras::none()).map_err(in_words)?;
    let result = backend.run_factorize(
        &prepared,
        FactorizeArgs::new(
            &Source::Matrix(four.view()),
            &mut batch(2, 4, 4)?.view_mut(),
            B::Memory::slice_mut(&mut few),
            report.view_mut(),
        ),
        &mut workspace,
    );
    expect("no room for pivots", argument, result, &mut tally)?;
    let inverter = Problem::invert::<T>(SourceKind::Matrix, *four.layout(), *four.layout());
    let inverter = backend.prepare(&inverter.map_err(in_words)?, guarded.options).map_err(in_words)?;
    let mut workspace = backend.workspace(&inverter).map_err(in_words)?;
    let mut pivots = backend.allocate::<u32>(8).map_err(in_words)?;
    let result = backend.run_factorize(
        &inverter,
        FactorizeArgs::new(
            &Source::Matrix(four.view()),
            &mut batch(2, 4, 4)?.view_mut(),
            B::Memory::slice_mut(&mut pivots),
            report.view_mut(),
        ),
        &mut workspace,
    );
    expect("another operation than prepared", argument, result, &mut tally)?;
    let b = batch(2, 4, 1)?;
    let mut x = batch(2, 4, 1)?;
    let given =
        Problem::solve::<T>(SourceKind::Matrix, *four.layout(), Some(*b.layout()), *x.layout(), Transpose::None);
    let solver = backend.prepare(&given.map_err(in_words)?, guarded.options).map_err(in_words)?;
    let mut scratch = backend.workspace(&solver).map_err(in_words)?;
    let wide = batch(2, 4, 2)?;
    for (what, b) in [("right-hand sides that were prepared are missing", None), ("2 columns for 1", Some(wide.view()))]
    {
        let source = Source::Matrix(four.view());
        let mut report = Report::allocate(backend, 2, Extras::none()).map_err(in_words)?;
        let result = backend.run_solve(
            &solver,
            SolveArgs::new(&source, b.as_ref(), &mut x.view_mut(), report.view_mut()),
            &mut scratch,
        );
        expect(what, argument, result, &mut tally)?;
    }
    let result = backend.run_solve(
        &prepared,
        SolveArgs::new(&Source::Matrix(four.view()), None, &mut x.view_mut(), report.view_mut()),
        &mut workspace,
    );
    expect("a solve of what was prepared to factorize", argument, result, &mut tally)?;
    Ok(tally)
}

pub(super) fn what_was_prepared_runs_again_and_on_smaller_batches<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let backend = guarded.backend;
    let mut tally = Tally::default();
    for &n in scope.orders.iter().filter(|&&n| n > 0 && n <= scope.thorough) {
        let layout = |batch| BatchLayout::row_major(batch, n, n).map_err(in_words);
        let problem = Problem::invert::<T>(SourceKind::Matrix, layout(6)?, layout(6)?).map_err(in_words)?;
        let prepared = backend.prepare(&problem, guarded.options).map_err(in_words)?;
        if prepared.problem() != &problem {
            return Err(format!("{problem} was prepared as {}", prepared.problem()));
        }
        let mut workspace = backend.workspace(&prepared).map_err(in_words)?;
        // NaN first: nothing of it may stay in the workspace.
        let mut poison = Batch::<T>::zeros(layout(6)?).map_err(in_words)?;
        poison.as_mut_slice().fill(T::nan());
        let healthy: Batch<T> = Generator::Normal.batch(layout(6)?, 21).map_err(in_words)?;
        let mut inverses = Vec::new();
        for (host, batch) in [(&healthy, 6), (&poison, 6), (&healthy, 6), (&healthy, 4), (&poison, 1), (&healthy, 1)] {
            let part = Batch::from_vec(host.as_slice().to_vec(), layout(batch)?).map_err(in_words)?;
            let a = backend.to_device(&part).map_err(in_words)?;
            let mut x = backend.allocate_batch::<T>(layout(batch)?).map_err(in_words)?;
            let mut report = Report::allocate(backend, batch, Extras::none()).map_err(in_words)?;
            let source = Source::Matrix(a.view());
            backend
                .run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)
                .map_err(in_words)?;
            inverses.push((backend.to_host(&x).map_err(in_words)?, report.read_outcomes().map_err(in_words)?));
        }
        let (fresh, _) = &inverses[0];
        for (run, batch) in [(2, 6), (3, 4), (5, 1)] {
            let (x, outcomes) = &inverses[run];
            let len = batch * n * n;
            if x.as_slice()[..len] != fresh.as_slice()[..len] || !outcomes.iter().all(|outcome| outcome.is_regular()) {
                return Err(format!("n = {n}: run {run} of what was prepared differs from the first"));
            }
            tally.compared += batch;
        }
    }
    Ok(tally)
}

pub(super) fn enormous_batches_are_prepared_in_64_bits<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    _scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    // More than 2^31 elements, and more than 65 535 matrices: nothing is allocated but what preparing needs.
    for (batch, n) in [(70_000, 200), (600_000_000, 2), (3_000_000_000, 1)] {
        for layout in [BatchLayout::column_major(batch, n, n), BatchLayout::interleaved(batch, n, n, 8)] {
            let layout = layout.map_err(in_words)?;
            let problem = Problem::invert::<T>(SourceKind::Matrix, layout, layout).map_err(in_words)?;
            let prepared = guarded.backend.prepare(&problem, guarded.options).map_err(in_words)?;
            if prepared.problem().batch() != batch {
                return Err(format!("{problem} was prepared as {}", prepared.problem()));
            }
            tally.compared += 1;
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_only_where_it_is_of_the_kind_and_gives_advice() {
        let mut tally = Tally::default();
        let mut told = |result: Result<(), Error>| expect("a test", ErrorKind::Shape, result, &mut tally).err();
        let error = |kind| Error::new(kind, "test", "wrong");
        assert!(told(Ok(())).is_some_and(|what| what.contains("accepted")));
        assert!(told(Err(error(ErrorKind::Argument).advise("try"))).is_some_and(|what| what.contains("of kind")));
        assert!(told(Err(error(ErrorKind::Shape))).is_some_and(|what| what.contains("without advice")));
        assert_eq!(told(Err(error(ErrorKind::Shape).advise("try"))), None);
        assert_eq!(tally.compared, 1);
    }
}
