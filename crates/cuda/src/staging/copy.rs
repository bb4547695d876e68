//! How bytes move within host memory.

/// Copies `count` elements from every `from_step` bytes to every `to_step` bytes.
///
/// # Safety
/// The elements are there on both sides, and the two do not overlap.
pub(super) unsafe fn copy_spaced(
    from: *mut u8,
    from_step: usize,
    to: *mut u8,
    to_step: usize,
    count: usize,
    element: usize,
) {
    if from_step == element && to_step == element {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, count * element) };
    }
    let each = |k: usize| (from.wrapping_add(k * from_step), to.wrapping_add(k * to_step));
    for (from, to) in (0..count).map(each) {
        // SAFETY: the caller's promise.
        unsafe {
            match element {
                4 => std::ptr::copy_nonoverlapping(from, to, 4),
                8 => std::ptr::copy_nonoverlapping(from, to, 8),
                _ => std::ptr::copy_nonoverlapping(from, to, element),
            }
        }
    }
}

/// Copies to memory that nobody reads soon. Where the processor can, the memory's lines are written without being read first and without a place in
/// the caches, which saves a third of the traffic.
///
/// # Safety
/// The bytes are there on both sides, and the two do not overlap.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;
    const EACH: usize = size_of::<__m128i>();
    let head = (to.addr().wrapping_neg() % LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let rest = head + lines * LINE;
    // SAFETY: the caller's promise; head, whole lines and the rest are all of it. Lines of `to` are aligned, and every x86-64 has SSE2.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let at = head + line * LINE;
            let load = |k: usize| _mm_loadu_si128(from.add(at + k * EACH).cast());
            let line = [load(0), load(1), load(2), load(3)];
            line.into_iter().enumerate().for_each(|(k, x)| _mm_stream_si128(to.add(at + k * EACH).cast(), x));
        }
        std::ptr::copy_nonoverlapping(from.add(rest), to.add(rest), bytes - rest);
        // Such stores are ordered with nothing that other threads do until then.
        _mm_sfence();
    }
}

/// The same by whatever the system's copy does.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_past_the_caches_copies_every_byte_and_no_other_wherever_it_starts_and_ends() {
        let from: Vec<u8> = (0..400).map(|i| (i % 251) as u8).collect();
        for start in 0..70 {
            for bytes in [0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 257] {
                let mut to = vec![255; 400];
                // SAFETY: within both vectors.
                unsafe { copy_past_caches(from.as_ptr().add(3), to.as_mut_ptr().add(start), bytes) };
                let expected: Vec<u8> = (0..400)
                    .map(|i| if (start..start + bytes).contains(&i) { from[i - start + 3] } else { 255 })
                    .collect();
                assert_eq!(to, expected, "{bytes} bytes at {start}");
            }
        }
    }
}
