//! The middle of a sample of times.

/// A median and the smallest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The median: half of the repetitions took longer.
    pub median: f64,
    /// The smallest.
    pub min: f64,
}

impl Sample {
    /// Of values in any order; none where there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, count) = (sorted.first()?, sorted.len());
        Some(Self { median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0, min })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(Sample::of(&[]), None);
        assert_eq!(Sample::of(&[3.0]), Some(Sample { median: 3.0, min: 3.0 }));
        assert_eq!(Sample::of(&[9.0, 1.0, 2.0]), Some(Sample { median: 2.0, min: 1.0 }));
        assert_eq!(Sample::of(&[4.0, 1.0, 2.0, 100.0]), Some(Sample { median: 3.0, min: 1.0 }));
    }
}
