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
    /// The interval runs between two order statistics, the k-th from either end: the true median lies outside with the
    /// probability that fewer than k of so many tosses of a coin show heads, or fewer than k tails. No distribution is assumed.
    /// Below six values no such interval is sure enough, and it spans all.
    pub(crate) fn of(sample: &mut [f64]) -> Self {
        sample.sort_by(f64::total_cmp);
        let (count, first) = (sample.len(), outside(sample.len()));
        let value = (sample[(count - 1) / 2] + sample[count / 2]) / 2.0;
        Self { value, low: sample[first], high: sample[count - 1 - first] }
    }
}

/// How many values lie outside the interval on either side: the most for which both tails together stay below 5 %.
fn outside(count: usize) -> usize {
    if count > 1000 {
        // Half to the power of the count is nearing underflow; the normal distribution is close enough by now.
        return (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()) as usize;
    }
    // The probability of exactly `heads` heads, and of no more.
    let (mut exactly, mut tail, mut heads) = (0.5f64.powi(count as i32), 0.0, 0);
    loop {
        tail += exactly;
        if tail > 0.025 {
            return heads;
        }
        exactly *= (count - heads) as f64 / (heads + 1) as f64;
        heads += 1;
    }
}
