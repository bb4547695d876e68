//! The host's side of a transfer: memory as it lies, or the elements that a layout with gaps names.

use std::ops::Range;

use batchla_core::{BatchLayout, Strides};
use rayon::prelude::*;

use super::copy::{copy_past_caches, copy_spaced};

/// From here on a host copy is worth threads: one core's copy is slower than the link.
const PARALLEL: usize = 1 << 20;
/// Bytes that a thread copies at a time: few enough that no thread is waited for long. Measured on an H200's host with 16 cores, 2026-11-21, by `batchla bench host`.
const PART: usize = 128 << 10;

/// Host memory of a transfer, as bytes in the order in which the device holds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    start: *mut u8,
    lines: Option<Lines>,
}

// SAFETY: an address and numbers; those who read and write through it promise that they may.
unsafe impl Send for Side {}
// SAFETY: as above.
unsafe impl Sync for Side {}

/// Elements that are not all neighbours: a line is what the dense layout of the same order holds together.
#[derive(Clone, Copy, Debug)]
struct Lines {
    layout: BatchLayout,
    element: usize,
}

impl Side {
    /// Memory as it lies.
    pub(crate) fn plain(start: *mut u8) -> Self {
        Self { start, lines: None }
    }

    /// A batch whose first element is at `start`, elements of so many bytes.
    pub(crate) fn of(start: *mut u8, layout: &BatchLayout, element: usize) -> Self {
        let dense = layout.is_dense() && layout.packed().is_ok_and(|packed| packed == *layout);
        Self { start, lines: (!dense).then_some(Lines { layout: *layout, element }) }
    }

    /// The address of a byte, where bytes lie as on the device.
    pub(crate) fn plain_at(&self, at: usize) -> Option<*mut u8> {
        self.lines.is_none().then(|| self.at(at))
    }

    fn at(&self, at: usize) -> *mut u8 {
        self.start.wrapping_add(at)
    }

    /// Copies the bytes of a range to `to`; places that belong to nobody are left out.
    ///
    /// # Safety
    /// The range is within the batch, and its elements may be read; `to` has room, which nobody else uses.
    pub(crate) unsafe fn gather(&self, range: Range<usize>, to: *mut u8) {
        let buffer = Self::plain(to);
        // SAFETY: the caller's promise.
        in_parts(range.clone(), |part| unsafe {
            let to = buffer.at(part.start - range.start);
            match self.lines {
                None => std::ptr::copy_nonoverlapping(self.at(part.start), to, part.len()),
                Some(lines) => lines.each_run(part, |at, step, there, count| {
                    copy_spaced(self.at(at), step, to.wrapping_add(there), lines.element, count, lines.element);
                }),
            }
        });
    }

    /// Copies the bytes of a range from `from`; places that belong to nobody are left as they are.
    ///
    /// # Safety
    /// The range is within the batch, and its elements are nobody else's; `from` has as many bytes.
    pub(crate) unsafe fn scatter(&self, range: Range<usize>, from: *const u8) {
        let buffer = Self::plain(from.cast_mut());
        // SAFETY: the caller's promise.
        in_parts(range.clone(), |part| unsafe {
            let from = buffer.at(part.start - range.start).cast_const();
            match self.lines {
                None if range.len() >= PARALLEL => copy_past_caches(from, self.at(part.start), part.len()),
                // Few bytes are soon read.
                None => std::ptr::copy_nonoverlapping(from, self.at(part.start), part.len()),
                Some(lines) => lines.each_run(part, |at, step, there, count| {
                    let (to, from) = (self.at(at), from.wrapping_add(there));
                    copy_spaced(from.cast_mut(), lines.element, to, step, count, lines.element);
                }),
            }
        });
    }
}

/// Runs a large range in parts, by several threads.
fn in_parts(range: Range<usize>, work: impl Fn(Range<usize>) + Sync) {
    if range.len() < PARALLEL {
        return work(range);
    }
    let count = range.len().div_ceil(PART);
    (0..count).into_par_iter().for_each(|k| {
        let start = range.start + k * PART;
        work(start..range.end.min(start + PART));
    });
}

impl Lines {
    /// Calls `run` with each part of a line in a range of bytes: where it starts on the host, the bytes from one element to the next, where it
    /// starts behind the range's start, how many elements. A range starts and ends between elements.
    fn each_run(&self, range: Range<usize>, mut run: impl FnMut(usize, usize, usize, usize)) {
        let (layout, element) = (&self.layout, self.element);
        let Strides { lanes, group, row, col } = layout.strides();
        let (rows, cols) = (layout.rows(), layout.cols());
        let by_rows = lanes == 1 && layout.is_row_major();
        // In a line: the lanes of a group, a row, or a column.
        let (length, step) = match () {
            () if lanes > 1 => (lanes, 1),
            () if by_rows => (cols, col),
            () => (rows, row),
        };
        let (mut at, end) = (range.start / element, range.end / element);
        while at < end {
            let (line, first) = (at / length, at % length);
            let count = (length - first).min(end - at);
            let (outer, i, j) = match () {
                () if lanes > 1 => (line / (rows * cols), line % rows, line / rows % cols),
                () if by_rows => (line / rows, line % rows, 0),
                () => (line / cols, 0, line % cols),
            };
            // Lanes without a matrix belong to nobody.
            let there = if lanes > 1 { (layout.batch() - outer * lanes).min(lanes) } else { length };
            let named = there.saturating_sub(first).min(count);
            let start = outer * group + i * row + j * col + first * step;
            if named > 0 {
                run(start * element, step * element, at * element - range.start, named);
            }
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::{Batch, BatchMut};

    use super::*;

    #[test]
    fn a_large_copy_by_threads_copies_every_byte() {
        for len in [0, 1, PARALLEL - 1, PARALLEL, 3 * PARALLEL + 13] {
            let mut from: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0; len];
            // SAFETY: two vectors of `len` bytes.
            unsafe { Side::plain(from.as_mut_ptr()).gather(0..len, to.as_mut_ptr()) };
            assert!(from == to, "{len}");
        }
    }

    #[test]
    fn elements_between_gaps_come_in_the_order_of_the_dense_layout_and_go_back() {
        let strides = |lanes, group, row, col| Strides { lanes, group, row, col };
        for layout in [
            BatchLayout::new(5, 3, 4, strides(1, 40, 1, 9)).unwrap(),
            BatchLayout::new(5, 3, 4, strides(1, 70, 11, 2)).unwrap(),
            BatchLayout::new(5, 3, 4, strides(2, 50, 3, 11)).unwrap(),
            BatchLayout::interleaved(5, 3, 4, 2).unwrap(),
            BatchLayout::new(5, 1, 1, strides(1, 7, 3, 2)).unwrap(),
        ] {
            let batch =
                Batch::<f64>::from_fn(5, layout.rows(), layout.cols(), |b, i, j| (1 + b + 10 * i + 100 * j) as f64);
            let batch = batch.unwrap();
            let mut there = vec![-1.0; layout.span()];
            BatchMut::new(&mut there, layout).unwrap().copy_from(&batch.view()).unwrap();
            let packed = batch.to_layout(layout.packed().unwrap()).unwrap();
            let side = Side::of(there.as_mut_ptr().cast(), &layout, 8);
            assert!(side.plain_at(0).is_none(), "{layout}");
            // Ranges that begin and end within a line.
            let (all, mut dense) = (packed.as_slice().len(), vec![0.0; packed.as_slice().len()]);
            for start in (0..all).step_by(5) {
                let end = all.min(start + 5);
                // SAFETY: within both.
                unsafe { side.gather(8 * start..8 * end, dense.as_mut_ptr().add(start).cast()) };
            }
            assert_eq!(dense, packed.as_slice(), "{layout}");
            let (before, doubled) = (there.clone(), dense.iter().map(|x| 2.0 * x).collect::<Vec<f64>>());
            let side = Side::of(there.as_mut_ptr().cast(), &layout, 8);
            // SAFETY: as above.
            unsafe { side.scatter(0..8 * all, doubled.as_ptr().cast()) };
            let expected: Vec<f64> = before.iter().map(|&x| if x == -1.0 { x } else { 2.0 * x }).collect();
            assert_eq!(there, expected, "{layout}");
        }
    }
}
