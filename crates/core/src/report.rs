//! What a run tells beside its main result: outcomes, and extras where they were wanted.

use crate::backend::{Backend, ReportMut};
use crate::determinant::Determinant;
use crate::error::Error;
use crate::memory::{HostMemory, Memory};
use crate::outcome::Outcome;
use crate::problem::Extras;
use crate::scalar::Scalar;

/// Outcomes and extras of a batch, in the memory where they were written.
///
/// In host memory they are read at once; on a device the `read_` methods wait for the work queued on them.
#[derive(Debug)]
pub struct Report<T: Scalar, M: Memory = HostMemory> {
    batch: usize,
    outcomes: M::Array<u32>,
    determinants: Option<M::Array<Determinant<T>>>,
    conditions: Option<M::Array<T::Real>>,
}

impl<T: Scalar, M: Memory> Report<T, M> {
    /// Room for a batch's outcomes and for `extras`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn allocate<B: Backend<Memory = M>>(backend: &B, batch: usize, extras: Extras) -> Result<Self, Error> {
        Ok(Self {
            batch,
            outcomes: backend.allocate_each(batch, 1)?,
            determinants: extras.determinant.then(|| backend.allocate_each(batch, 1)).transpose()?,
            conditions: extras.condition.then(|| backend.allocate_each(batch, 1)).transpose()?,
        })
    }

    /// The report, to be written by a run.
    pub fn view_mut(&mut self) -> ReportMut<'_, T, M> {
        ReportMut {
            outcomes: M::slice_mut(&mut self.outcomes),
            determinants: self.determinants.as_mut().map(M::slice_mut),
            conditions: self.conditions.as_mut().map(M::slice_mut),
        }
    }

    /// The outcome words, where they are.
    pub fn outcome_words(&self) -> M::Slice<'_, u32> {
        M::slice(&self.outcomes)
    }

    /// Reads the outcomes, after waiting for the work that writes them.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn read_outcomes(&self) -> Result<Vec<Outcome>, Error> {
        let mut words = vec![0; self.batch];
        M::read(M::slice(&self.outcomes), &mut words)?;
        Ok(words.into_iter().map(Outcome::from_word).collect())
    }

    /// Reads the determinants, after waiting for the work that writes them; `None` where they were not wanted.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn read_determinants(&self) -> Result<Option<Vec<Determinant<T>>>, Error> {
        read_all::<_, M>(self.determinants.as_ref(), self.batch)
    }

    /// Reads the 1-norm condition numbers, after waiting for the work that writes them; `None` where they were not wanted.
    ///
    /// Singular matrices have an infinite one, matrices that are not finite NaN.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn read_conditions(&self) -> Result<Option<Vec<T::Real>>, Error> {
        read_all::<_, M>(self.conditions.as_ref(), self.batch)
    }
}

impl<T: Scalar> Report<T> {
    /// Each matrix and how it fared.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = (usize, Outcome)> + '_ {
        self.outcomes.iter().map(|&word| Outcome::from_word(word)).enumerate()
    }

    /// Whether every matrix was regular.
    pub fn all_regular(&self) -> bool {
        self.outcomes.iter().all(|&word| word == 0)
    }

    /// The determinants, where they were wanted.
    pub fn determinants(&self) -> Option<&[Determinant<T>]> {
        self.determinants.as_deref()
    }

    /// The 1-norm condition numbers, where they were wanted (see [`Report::read_conditions`]).
    pub fn conditions(&self) -> Option<&[T::Real]> {
        self.conditions.as_deref()
    }
}

fn read_all<E: crate::Element, M: Memory>(array: Option<&M::Array<E>>, batch: usize) -> Result<Option<Vec<E>>, Error> {
    array
        .map(|array| {
            let mut values = vec![E::default(); batch];
            M::read(M::slice(array), &mut values)?;
            Ok(values)
        })
        .transpose()
}
