//! The median of a sample, and how sure it is.

/// A median and its interval of at least 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Median {
    /// The median.
    pub(crate) value: f64,
    /// The interval's lower end.
    pub(crate) low: f64,
    /// The interval's upper end.
    pub(crate) high: f64,
}

impl Median {
    /// Of a sample that is not empty.
    ///
    /// The interval runs between two order statistics, as many values from either end: the true median lies outside with the
    /// probability that no more than those of so many tosses of a coin show heads, or tails. No distribution is assumed.
    /// Below six values no such interval is sure enough, and it spans all.
    pub(crate) fn of(sample: &mut [f64]) -> Self {
        sample.sort_by(f64::total_cmp);
        let (count, first) = (sample.len(), outside(sample.len()));
        let value = (sample[(count - 1) / 2] + sample[count / 2]) / 2.0;
        Self { value, low: sample[first], high: sample[count - 1 - first] }
    }
}

/// How many values lie outside the interval on either side: the most for which both tails together stay below 5 %. With `k` outside, the true median is beyond
/// an end where no more than `k` of the values are there.
fn outside(count: usize) -> usize {
    if count > 1000 {
        // Half to the power of the count is nearing underflow; the normal distribution is close enough by now.
        return (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()) as usize - 1;
    }
    // The probability of exactly `heads` heads, and of no more.
    let (mut exactly, mut tail, mut heads) = (0.5f64.powi(count as i32), 0.0, 0usize);
    loop {
        tail += exactly;
        if tail > 0.025 {
            return heads.saturating_sub(1);
        }
        exactly *= (count - heads) as f64 / (heads + 1) as f64;
        heads += 1;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_interval_misses_the_median_once_in_twenty_at_most() {
        // Ranks of tables: of 6 values all, of 15 the 4th and the 12th, of 31 the 10th and the 22nd.
        let outside_of = [1, 5, 6, 15, 31].map(super::outside);
        assert_eq!(outside_of, [0, 0, 0, 3, 9]);
        assert!((super::outside(1000) + 1).abs_diff(super::outside(1001)) <= 1);
        let mut sample: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(super::Median::of(&mut sample), super::Median { value: 8.0, low: 4.0, high: 12.0 });
    }
}
