//! Results that go past the caches: memory is not read before it is overwritten, and what is read again stays where it is.

use std::marker::PhantomData;
use std::slice::IterMut;

use super::Vector;

/// Writing past the caches. What follows its end comes after all that was written, for other threads too.
pub(crate) struct Streams<V: Vector>(PhantomData<V>);

impl<V: Vector> Streams<V> {
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        Self(PhantomData)
    }

    /// A stream into a slice, from its start to its end.
    #[inline(always)]
    pub(crate) fn to<'a>(&'a self, to: &'a mut [V::Real]) -> Stream<'a, V> {
        let (head, to) = to.split_at_mut(to.as_ptr().align_offset(align_of::<V>()).min(to.len()));
        let (whole, tail) = to.split_at_mut(to.len() / V::LANES * V::LANES);
        let line = V::splat(num_traits::zero());
        Stream { head, whole: V::from_reals_mut(whole).iter_mut(), tail, line, held: 0, lifetime: PhantomData }
    }
}

impl<V: Vector> Drop for Streams<V> {
    #[inline(always)]
    fn drop(&mut self) {
        V::fence();
    }
}

/// A slice that is written piece by piece: whole vectors at a time, whatever the pieces.
pub(crate) struct Stream<'a, V: Vector> {
    /// What lies before the first aligned vector.
    head: &'a mut [V::Real],
    whole: IterMut<'a, V>,
    tail: &'a mut [V::Real],
    /// The numbers that do not make a vector yet.
    line: V,
    held: usize,
    lifetime: PhantomData<&'a Streams<V>>,
}

impl<V: Vector> Stream<'_, V> {
    /// Writes the next numbers.
    #[inline(always)]
    pub(crate) fn push(&mut self, mut from: &[V::Real]) {
        if !self.head.is_empty() {
            let count = self.head.len().min(from.len());
            let head = self.head.split_off_mut(..count).unwrap_or_default();
            head.copy_from_slice(&from[..count]);
            from = &from[count..];
        }
        if self.held > 0 {
            from = &from[self.hold(from)..];
            if self.held == V::LANES
                && let Some(to) = self.whole.next()
            {
                self.line.stream(to);
                self.held = 0;
            }
        }
        let parts = from.chunks_exact(V::LANES);
        let rest = parts.remainder();
        // Parts first: their end must not take a place.
        for (part, to) in parts.zip(self.whole.by_ref()) {
            V::load(part).stream(to);
        }
        self.hold(rest);
    }

    /// Keeps as many numbers as make a vector; tells how many.
    #[inline(always)]
    fn hold(&mut self, from: &[V::Real]) -> usize {
        let count = from.len().min(V::LANES - self.held);
        V::as_reals_mut(std::slice::from_mut(&mut self.line))[self.held..][..count].copy_from_slice(&from[..count]);
        self.held += count;
        count
    }
}

impl<V: Vector> Drop for Stream<'_, V> {
    #[inline(always)]
    fn drop(&mut self) {
        let count = self.held.min(self.tail.len());
        self.tail[..count].copy_from_slice(&V::as_reals(std::slice::from_ref(&self.line))[..count]);
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::HostArray;

    use super::super::{InstructionSet, Lanes, Work, dispatch};
    use super::*;

    struct Pieces<'a> {
        from: &'a [f32],
        to: &'a mut [f32],
        piece: usize,
    }

    impl Work<f32> for Pieces<'_> {
        type Output = ();

        #[inline(always)]
        fn run<L: Lanes<Number = f32>>(self) {
            let streams = Streams::<L::Vector>::begin();
            let mut stream = streams.to(L::reals_mut(self.to));
            for piece in self.from.chunks(self.piece) {
                stream.push(L::reals(piece));
            }
        }
    }

    #[test]
    fn a_stream_writes_what_it_is_given_wherever_it_begins_and_ends() {
        let from: Vec<f32> = (1..=100).map(|x| x as f32).collect();
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            for (start, len, piece) in (0..17).flat_map(|start| {
                [0, 1, 15, 16, 17, 31, 50, 83]
                    .into_iter()
                    .flat_map(move |len| [1, 7, 16, 21, 83].map(|p| (start, len, p)))
            }) {
                let mut all = HostArray::<f32>::zeroed(100).expect("memory");
                dispatch(set, Pieces { from: &from[..len], to: &mut all[start..start + len], piece });
                let (before, rest) = all.split_at(start);
                let (written, after) = rest.split_at(len);
                assert_eq!(written, &from[..len], "{set}: {len} from {start} on, {piece} at a time");
                assert!(before.iter().chain(after).all(|&x| x == 0.0), "{set}: {len} from {start} on");
            }
        }
    }
}
