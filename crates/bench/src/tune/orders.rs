//! Which orders are looked at, and in which order: far apart first, so that a lack of time costs detail, not reach.

use std::ops::RangeInclusive;

/// Powers of two and one and a half times those, and both ends.
pub(super) fn anchors(orders: &RangeInclusive<usize>) -> Vec<usize> {
    let powers = (0..usize::BITS - 2).map(|k| 1usize << k);
    let mut anchors: Vec<usize> = powers.flat_map(|power| [power, power + power / 2]).collect();
    anchors.extend([*orders.start(), *orders.end()]);
    anchors.retain(|order| orders.contains(order));
    anchors.sort_unstable();
    anchors.dedup();
    anchors
}

/// The same, each as far as may be from those before it.
pub(super) fn far_first(anchors: &[usize]) -> Vec<usize> {
    let mut left: Vec<usize> = anchors.to_vec();
    let mut chosen: Vec<usize> = left.pop().into_iter().collect();
    while !left.is_empty() {
        let distance = |order: usize| {
            let to = |other: &usize| (order as f64 / *other as f64).ln().abs();
            chosen.iter().map(to).fold(f64::INFINITY, f64::min)
        };
        let farthest = (0..left.len()).max_by(|&a, &b| distance(left[a]).total_cmp(&distance(left[b]))).unwrap_or(0);
        chosen.push(left.remove(farthest));
    }
    chosen
}

/// All orders: anchors first, then the middle of the widest gap, again and again.
pub(super) fn sequence(orders: &RangeInclusive<usize>, anchors: &[usize]) -> Vec<usize> {
    let (mut sequence, mut sorted) = (anchors.to_vec(), anchors.to_vec());
    let gap = |pair: &[usize]| if pair[1] - pair[0] > 1 { pair[1] as f64 / pair[0] as f64 } else { 0.0 };
    while sorted.len() < orders.clone().count() {
        let widest = (1..sorted.len()).max_by(|&a, &b| gap(&sorted[a - 1..=a]).total_cmp(&gap(&sorted[b - 1..=b])));
        let Some(at) = widest else { break };
        let middle = ((sorted[at - 1] * sorted[at]) as f64).sqrt().round() as usize;
        let middle = middle.clamp(sorted[at - 1] + 1, sorted[at] - 1);
        sorted.insert(at, middle);
        sequence.push(middle);
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once_and_the_widest_gaps_first() {
        for orders in [1..=1, 1..=2, 3..=40, 1..=256, 190..=191] {
            let anchors = anchors(&orders);
            let mut all = sequence(&orders, &anchors);
            assert_eq!(far_first(&anchors).len(), anchors.len());
            assert_eq!(all[..anchors.len()], anchors);
            all.sort_unstable();
            assert_eq!(all, orders.collect::<Vec<_>>());
        }
        assert_eq!(anchors(&(5..=50)), [5, 6, 8, 12, 16, 24, 32, 48, 50]);
        assert_eq!(far_first(&[1, 2, 4, 8, 16])[..3], [16, 1, 4]);
    }
}
