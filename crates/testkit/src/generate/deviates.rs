//! Random numbers, one independent stream a matrix.

use batchla_core::Scalar;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The stream of one matrix. Uniform deviates are the same bits everywhere; normal ones as far as the platform's `ln` is.
pub(super) struct Deviates {
    bits: ChaCha8Rng,
    spare: Option<f64>,
}

impl Deviates {
    pub(super) fn of_matrix(seed: u64, b: usize) -> Self {
        let mut bits = ChaCha8Rng::seed_from_u64(seed);
        bits.set_stream(b as u64);
        Self { bits, spare: None }
    }

    /// Uniform in [0, 1).
    pub(super) fn fraction(&mut self) -> f64 {
        (self.bits.next_u64() >> 11) as f64 * (f64::EPSILON / 2.0)
    }

    /// Uniform in [−1, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        2.0 * self.fraction() - 1.0
    }

    /// Uniform among the integers below `count`, which is above 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits.next_u64()) * count as u128) >> 64) as usize
    }

    /// Uniform among the integers from `−size` to `size`.
    pub(super) fn integer(&mut self, size: usize) -> f64 {
        self.below(2 * size + 1) as f64 - size as f64
    }

    /// Of normal distribution, mean 0 and variance 1 (Marsaglia's polar method).
    pub(super) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (self.uniform(), self.uniform());
            let square = u * u + v * v;
            if 0.0 < square && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(v * factor);
                return u * factor;
            }
        }
    }

    /// An element with one random part, or two for a complex type.
    pub(super) fn element<W: Scalar<Real = f64>>(&mut self, mut part: impl FnMut(&mut Self) -> f64) -> W {
        let re = part(self);
        let im = if W::IS_COMPLEX { part(self) } else { 0.0 };
        W::from_parts(re, im)
    }

    /// One of the units that multiply exactly: ±1, and ±i for a complex type.
    pub(super) fn unit<W: Scalar<Real = f64>>(&mut self) -> W {
        match self.below(if W::IS_COMPLEX { 4 } else { 2 }) {
            0 => W::from_parts(1.0, 0.0),
            1 => W::from_parts(-1.0, 0.0),
            2 => W::from_parts(0.0, 1.0),
            _ => W::from_parts(0.0, -1.0),
        }
    }
}
