//! What is to be done, as a value: enough to choose a plan with no data and no device at hand.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::layout::BatchLayout;
use crate::scalar::{Scalar, ScalarKind};
use crate::source::SourceKind;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// `A = P L U`.
    Factorize,
    /// `X = A⁻¹`.
    Invert,
    /// `op(A) X = B`.
    Solve,
    /// `det A`.
    Determinant,
}

impl Operation {
    /// In one lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Factorize => "factorize",
            Self::Invert => "invert",
            Self::Solve => "solve",
            Self::Determinant => "determinant",
        }
    }
}

/// Which form of the matrix a solve uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transpose {
    /// `A X = B`.
    #[default]
    None,
    /// `Aᵀ X = B`.
    Transpose,
    /// `Aᴴ X = B`.
    ConjugateTranspose,
}

impl Transpose {
    /// All three.
    pub const ALL: [Self; 3] = [Self::None, Self::Transpose, Self::ConjugateTranspose];
}

/// What is wanted beside the main result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Extras {
    /// Sign or phase and logarithm of the determinant.
    pub determinant: bool,
    /// The 1-norm condition number `‖A‖₁ ‖A⁻¹‖₁` (only of an inversion from matrices).
    pub condition: bool,
}

impl Extras {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Also the determinant.
    #[must_use]
    pub fn with_determinant(self) -> Self {
        Self { determinant: true, ..self }
    }

    /// Also the condition number.
    #[must_use]
    pub fn with_condition(self) -> Self {
        Self { condition: true, ..self }
    }
}

/// One operation on a batch: scalar, order, right-hand sides, layouts, in place or not, extras. Valid once made.
///
/// ```
/// use batchla_core::{BatchLayout, Problem, SourceKind};
/// let a = BatchLayout::row_major(1000, 21, 21)?;
/// let problem = Problem::invert::<f64>(SourceKind::Matrix, a, a)?;
/// assert_eq!(problem.to_string(), "invert f64 n=21 from matrices, 1000 x (21 x 21) row-major");
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    operation: Operation,
    scalar: ScalarKind,
    source: SourceKind,
    a: BatchLayout,
    b: Option<BatchLayout>,
    out: BatchLayout,
    transpose: Transpose,
    extras: Extras,
}

impl Problem {
    /// `A = P L U` from `a` into `lu` (the same layout where the source is in place).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::Argument`] where the operands do not fit each other.
    pub fn factorize<T: Scalar>(source: SourceKind, a: BatchLayout, lu: BatchLayout) -> Result<Self, Error> {
        if source == SourceKind::Factors {
            return Err(
                Error::new(ErrorKind::Argument, "factorize", "the source is factors already").advise("pass matrices")
            );
        }
        Self::square::<T>(Operation::Factorize, source, a, lu)
    }

    /// `X = A⁻¹` from `a` (matrices or factors) into `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::Argument`] where the operands do not fit each other.
    pub fn invert<T: Scalar>(source: SourceKind, a: BatchLayout, x: BatchLayout) -> Result<Self, Error> {
        Self::square::<T>(Operation::Invert, source, a, x)
    }

    /// `op(A) X = B`: `a` matrices or factors, `b` the right-hand sides (`None`: they lie in `x`), `x` the solutions.
    ///
    /// One matrix serves a whole batch of right-hand sides where `a` has a batch of one; one right-hand side serves a whole batch of
    /// matrices where `b` has.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::Argument`] where the operands do not fit each other.
    pub fn solve<T: Scalar>(
        source: SourceKind,
        a: BatchLayout,
        b: Option<BatchLayout>,
        x: BatchLayout,
        transpose: Transpose,
    ) -> Result<Self, Error> {
        let n = a.order("solve")?;
        if source == SourceKind::InPlace {
            return Err(Error::new(ErrorKind::Argument, "solve", "the matrices cannot lie in the solution's place")
                .advise("pass matrices or factors; only right-hand sides are overwritten"));
        }
        let given = b.unwrap_or(x);
        let batch = broadcast(a.batch(), given.batch());
        if given.rows() != n || x.rows() != n || given.cols() != x.cols() || batch != Some(x.batch()) {
            return Err(Error::new(
                ErrorKind::Shape,
                "solve",
                format!("matrices {a}, right-hand sides {given} and solutions {x} do not fit each other"),
            )
            .advise(
                "right-hand sides and solutions have the order's rows and equal columns; batches are equal or one",
            ));
        }
        let scalar = T::KIND;
        Ok(Self { operation: Operation::Solve, scalar, source, a, b, out: x, transpose, extras: Extras::none() })
    }

    /// `det A` of `a` (matrices or factors).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::Argument`] where the operands do not fit.
    pub fn determinant<T: Scalar>(source: SourceKind, a: BatchLayout) -> Result<Self, Error> {
        if source == SourceKind::InPlace {
            return Err(crate::determinant::source_in_place("determinant"));
        }
        Self::square::<T>(Operation::Determinant, source, a, a)?.with_extras(Extras::none().with_determinant())
    }

    /// The same problem with `extras`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where the operation does not give them.
    pub fn with_extras(self, extras: Extras) -> Result<Self, Error> {
        let refuse = |what: &str| {
            Err(Error::new(ErrorKind::Argument, self.operation.name(), format!("{what} of this operation is not to be had"))
                .advise("the determinant comes with factorize, invert and determinant, the condition with an inversion from matrices"))
        };
        if extras.condition && (self.operation != Operation::Invert || self.source == SourceKind::Factors) {
            return refuse("the condition number");
        }
        if extras.determinant && self.operation == Operation::Solve {
            return refuse("the determinant");
        }
        Ok(Self { extras, ..self })
    }

    fn square<T: Scalar>(
        operation: Operation,
        source: SourceKind,
        a: BatchLayout,
        out: BatchLayout,
    ) -> Result<Self, Error> {
        let n = a.order(operation.name())?;
        if (out.batch(), out.rows(), out.cols()) != (a.batch(), n, n) {
            return Err(Error::new(
                ErrorKind::Shape,
                operation.name(),
                format!("matrices {a} and results {out} differ in dimensions"),
            )
            .advise("make the result of the same dimensions as the input"));
        }
        if source == SourceKind::InPlace && a != out {
            return Err(Error::new(
                ErrorKind::Argument,
                operation.name(),
                format!("in place, but the layouts {a} and {out} differ"),
            )
            .advise("in place, input and result are one batch"));
        }
        let (scalar, transpose, extras) = (T::KIND, Transpose::None, Extras::none());
        Ok(Self { operation, scalar, source, a, b: None, out, transpose, extras })
    }

    /// The same problem over dense layouts of the same orders, as [`Backend::to_device`](crate::Backend::to_device) makes them.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where a dense layout would overflow.
    pub fn packed(&self) -> Result<Self, Error> {
        let b = self.b.map(|b| b.packed()).transpose()?;
        Ok(Self { a: self.a.packed()?, b, out: self.out.packed()?, ..self.clone() })
    }

    /// The same problem with `batch` results. An operand of one matrix that serves them all stays one.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where a layout would overflow.
    pub fn with_batch(&self, batch: usize) -> Result<Self, Error> {
        let own = |layout: BatchLayout| if self.serves_all(&layout) { Ok(layout) } else { layout.with_batch(batch) };
        let b = self.b.map(own).transpose()?;
        Ok(Self { a: own(self.a)?, b, out: self.out.with_batch(batch)?, ..self.clone() })
    }

    /// Whether an operand of this layout is one matrix for many results.
    pub fn serves_all(&self, operand: &BatchLayout) -> bool {
        operand.batch() == 1 && self.batch() != 1
    }

    /// What is to be done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The number type.
    pub fn scalar(&self) -> ScalarKind {
        self.scalar
    }

    /// What it starts from.
    pub fn source(&self) -> SourceKind {
        self.source
    }

    /// The order of the matrices.
    pub fn order(&self) -> usize {
        self.a.rows()
    }

    /// Right-hand sides a matrix; 0 where there are none.
    pub fn right_hand_sides(&self) -> usize {
        if self.operation == Operation::Solve { self.out.cols() } else { 0 }
    }

    /// Results in the batch.
    pub fn batch(&self) -> usize {
        self.out.batch()
    }

    /// Where the matrices or factors lie.
    pub fn a(&self) -> &BatchLayout {
        &self.a
    }

    /// Where the right-hand sides lie, unless in the solution's place.
    pub fn b(&self) -> Option<&BatchLayout> {
        self.b.as_ref()
    }

    /// Where the results go.
    pub fn out(&self) -> &BatchLayout {
        &self.out
    }

    /// Which form of the matrix a solve uses.
    pub fn transpose(&self) -> Transpose {
        self.transpose
    }

    /// What is wanted beside the main result.
    pub fn extras(&self) -> Extras {
        self.extras
    }

    /// Floating-point operations of the whole batch, by the usual counts: LU 2/3 n³, inversion 2 n³ (from factors
    /// 4/3 n³), solution 2 n² a right-hand side; four times that for complex types.
    pub fn flops(&self) -> f64 {
        let n = self.order() as f64;
        let lu = 2.0 / 3.0 * n * n * n;
        let one = match (self.operation, self.source) {
            (Operation::Factorize | Operation::Determinant, SourceKind::InPlace | SourceKind::Matrix) => lu,
            (Operation::Invert, SourceKind::InPlace | SourceKind::Matrix) => 3.0 * lu,
            (Operation::Invert, SourceKind::Factors) => 2.0 * lu,
            (Operation::Solve, source) => {
                let solve = 2.0 * n * n * self.right_hand_sides() as f64;
                solve + if source == SourceKind::Matrix { lu } else { 0.0 }
            }
            (_, SourceKind::Factors) => 0.0,
        };
        let complex = matches!(self.scalar, ScalarKind::C32 | ScalarKind::C64);
        one * self.batch() as f64 * if complex { 4.0 } else { 1.0 }
    }
}

/// The batch of a result of two operands: equal, or one serves all.
pub(crate) fn broadcast(a: usize, b: usize) -> Option<usize> {
    match (a, b) {
        _ if a == b => Some(a),
        (1, other) | (other, 1) => Some(other),
        _ => None,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} n={}", self.operation.name(), self.scalar, self.order())?;
        if self.operation == Operation::Solve {
            write!(f, " nrhs={}", self.right_hand_sides())?;
        }
        write!(f, " {}, {}", self.source.name(), self.a)?;
        if self.out != self.a {
            write!(f, " into {}", self.out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(batch: usize, rows: usize, cols: usize) -> BatchLayout {
        BatchLayout::column_major(batch, rows, cols).unwrap()
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused_with_their_names() {
        let error = Problem::invert::<f64>(SourceKind::Matrix, layout(2, 3, 4), layout(2, 3, 4)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains("3 x 4"), "{error}");
        let a = layout(2, 3, 3);
        for (b, x) in
            [(layout(2, 4, 1), layout(2, 3, 1)), (layout(3, 3, 1), layout(2, 3, 1)), (layout(2, 3, 2), layout(2, 3, 1))]
        {
            let error = Problem::solve::<f64>(SourceKind::Factors, a, Some(b), x, Transpose::None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape);
        }
    }

    #[test]
    fn one_matrix_or_one_right_hand_side_serves_a_batch() {
        let one = Problem::solve::<f32>(SourceKind::Factors, layout(1, 3, 3), None, layout(5, 3, 2), Transpose::None)
            .unwrap();
        assert_eq!((one.batch(), one.right_hand_sides()), (5, 2));
        let b = Some(layout(1, 3, 1));
        assert!(
            Problem::solve::<f32>(SourceKind::Matrix, layout(5, 3, 3), b, layout(5, 3, 1), Transpose::None).is_ok()
        );
    }

    #[test]
    fn fewer_results_take_fewer_operands_but_for_those_that_serve_all() {
        let b = Some(layout(1, 3, 1));
        let solve =
            Problem::solve::<f32>(SourceKind::Matrix, layout(5, 3, 3), b, layout(5, 3, 1), Transpose::None).unwrap();
        let part = solve.with_batch(2).unwrap();
        assert_eq!((part.batch(), part.a().batch(), part.b().map(BatchLayout::batch)), (2, 2, Some(1)));
        assert!(solve.with_batch(1 << 62).is_err());
        let (own, a) = (Some(layout(5, 3, 1)), layout(5, 3, 3));
        let solve = Problem::solve::<f32>(SourceKind::Matrix, a, own, layout(5, 3, 1), Transpose::None).unwrap();
        assert_eq!(solve.with_batch(2).unwrap().b().map(BatchLayout::batch), Some(2));
    }

    #[test]
    fn contradictions_are_refused() {
        let a = layout(2, 3, 3);
        let rows = BatchLayout::row_major(2, 3, 3).unwrap();
        assert!(Problem::invert::<f64>(SourceKind::InPlace, a, rows).is_err());
        assert!(Problem::factorize::<f64>(SourceKind::Factors, a, a).is_err());
        assert!(Problem::determinant::<f64>(SourceKind::InPlace, a).is_err());
        let extras = Extras::none().with_condition();
        assert!(Problem::factorize::<f64>(SourceKind::Matrix, a, a).unwrap().with_extras(extras).is_err());
        assert!(Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap().with_extras(extras).is_ok());
    }

    #[test]
    fn operations_and_sources_have_their_names() {
        let sources = [SourceKind::InPlace, SourceKind::Matrix, SourceKind::Factors];
        assert_eq!(sources.map(SourceKind::name), ["in place", "from matrices", "from factors"]);
        use Operation::{Determinant, Factorize, Invert, Solve};
        assert_eq!(
            [Factorize, Invert, Solve, Determinant].map(Operation::name),
            ["factorize", "invert", "solve", "determinant"]
        );
    }

    #[test]
    fn extras_are_had_of_the_operations_that_give_them_and_stay() {
        let a = layout(2, 3, 3);
        let (determinant, condition) = (Extras::none().with_determinant(), Extras::none().with_condition());
        let invert = |source| Problem::invert::<f64>(source, a, a).unwrap();
        let both = invert(SourceKind::InPlace).with_extras(determinant.with_condition()).unwrap();
        assert_eq!((both.extras().determinant, both.extras().condition), (true, true));
        assert!(invert(SourceKind::Factors).with_extras(condition).is_err());
        assert!(invert(SourceKind::Factors).with_extras(determinant).is_ok());
        let x = layout(2, 3, 1);
        let solve = Problem::solve::<f64>(SourceKind::Matrix, a, None, x, Transpose::ConjugateTranspose).unwrap();
        assert_eq!(solve.transpose(), Transpose::ConjugateTranspose);
        assert!(solve.clone().with_extras(Extras::none()).is_ok() && solve.with_extras(determinant).is_err());
    }

    #[test]
    fn packed_all_operands_are_dense() {
        let apart = |rows, cols| layout(4, rows, cols).with_group_stride(100).unwrap();
        let (a, b, x) = (apart(3, 3), apart(3, 2), apart(3, 2));
        let packed =
            Problem::solve::<f64>(SourceKind::Matrix, a, Some(b), x, Transpose::Transpose).unwrap().packed().unwrap();
        assert!(packed.a().is_dense() && packed.b().is_some_and(BatchLayout::is_dense) && packed.out().is_dense());
        assert_eq!((packed.transpose(), packed.batch()), (Transpose::Transpose, 4));
    }

    #[test]
    fn flops_are_the_usual_counts() {
        let a = layout(10, 3, 3);
        let solve = |source| Problem::solve::<f64>(source, a, None, layout(10, 3, 4), Transpose::None).unwrap().flops();
        assert_eq!((solve(SourceKind::Factors), solve(SourceKind::Matrix)), (720.0, 900.0));
        assert_eq!(Problem::invert::<f64>(SourceKind::Factors, a, a).unwrap().flops(), 360.0);
        assert_eq!(Problem::determinant::<f64>(SourceKind::Matrix, a).unwrap().flops(), 180.0);
        assert_eq!(Problem::determinant::<f64>(SourceKind::Factors, a).unwrap().flops(), 0.0);
        assert_eq!(Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap().flops(), 540.0);
        assert_eq!(Problem::factorize::<num_complex::Complex<f32>>(SourceKind::InPlace, a, a).unwrap().flops(), 720.0);
    }
}
