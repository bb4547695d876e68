//! Threads that find no matrix left to begin: they take part in those that others still work on.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use batchla_core::Scalar;

/// Multiplications that are worth handing to another thread: some microseconds of work.
const LEAST: usize = 1 << 17;

/// Columns of a piece: a multiple of those of any tile.
const COLUMNS: usize = 8;

/// Looks for work before a thread that waits lets others have its core.
const LOOKS: u32 = 4096;

/// The threads of one run.
///
/// Nobody waits for a thread that has not come yet: whoever works on a matrix does what no one else takes. Those that have nothing to do stay awake
/// while there are matrices under way, since waking one up takes longer than most pieces.
pub(crate) struct Team {
    /// Stretches of the batch that are not done.
    left: AtomicUsize,
    /// Threads that wait for something to do.
    free: AtomicUsize,
    /// As many as there are offers.
    offered: AtomicUsize,
    offers: Mutex<Vec<&'static Offer<'static>>>,
}

/// What several threads can do together: each call takes pieces until none is left.
struct Offer<'a> {
    job: &'a (dyn Fn() + Sync),
    /// Threads that take part, beside the one that offers it.
    taking: AtomicUsize,
}

impl Team {
    /// For a batch in so many stretches.
    pub(crate) fn new(stretches: usize) -> Self {
        let (free, offered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { left: AtomicUsize::new(stretches), free, offered, offers: Mutex::new(Vec::new()) }
    }

    /// Does `work`, which ends a stretch, even by panicking.
    pub(crate) fn finish(&self, work: impl FnOnce()) {
        let _done = Decreased(&self.left);
        work();
    }

    /// Takes part in whatever is offered until all stretches are done.
    pub(crate) fn help(&self) {
        self.free.fetch_add(1, Ordering::Relaxed);
        let _free = Decreased(&self.free);
        loop {
            wait_until(|| self.left.load(Ordering::Acquire) == 0 || self.offered.load(Ordering::Relaxed) > 0);
            if self.left.load(Ordering::Acquire) == 0 {
                return;
            }
            self.take_part();
        }
    }

    /// Threads that would take part now.
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// Does `work` on all columns, `ld` apart and each worth so many multiplications, together with whoever is free: piece by piece, each with its
    /// first column's number.
    pub(crate) fn share<T: Scalar>(
        &self,
        columns: &mut [T],
        ld: usize,
        multiplications: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let (count, free) = (columns.len() / ld, self.free());
        let each = multiplications.max(1) * if T::IS_COMPLEX { 4 } else { 1 };
        let width = LEAST.div_ceil(each).max(count / (2 * (free + 1))).next_multiple_of(COLUMNS);
        if free == 0 || count <= width {
            return work(0, columns);
        }
        let pieces = Mutex::new(columns.chunks_mut(width * ld).enumerate());
        let next = || lock(&pieces).next();
        let job = || {
            while let Some((at, piece)) = next() {
                work(at * width, piece);
            }
        };
        let offer = Offer { job: &job, taking: AtomicUsize::new(0) };
        // Also where the job panics, nothing is left behind that others could take.
        let _withdrawn = Withdrawn { team: self, offer: self.offer(&offer) };
        job();
    }

    /// Offers a job, which has to be withdrawn before it ends.
    fn offer<'a>(&self, offer: &'a Offer<'a>) -> &'a Offer<'a> {
        // SAFETY: only a thread that was counted under the lock uses it, and `Withdrawn` waits for all of these after the last could be.
        let forever = unsafe { std::mem::transmute::<&'a Offer<'a>, &'static Offer<'static>>(offer) };
        lock(&self.offers).push(forever);
        self.offered.fetch_add(1, Ordering::Relaxed);
        offer
    }

    /// Takes part in the last job that is offered, if any, until nothing of it is left.
    fn take_part(&self) {
        let offers = lock(&self.offers);
        let Some(&offer) = offers.last() else { return };
        offer.taking.fetch_add(1, Ordering::Relaxed);
        drop(offers);
        let _done = Decreased(&offer.taking);
        (offer.job)();
        self.withdraw(offer);
    }

    /// Takes an offer back, unless it was already.
    fn withdraw(&self, offer: &Offer<'_>) {
        let mut offers = lock(&self.offers);
        if let Some(at) = offers.iter().position(|other| std::ptr::addr_eq(*other, offer)) {
            offers.swap_remove(at);
            self.offered.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for what other threads do soon: to sleep until then would take longer.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    let mut looks = 0;
    while !done() {
        if looks < LOOKS {
            looks += 1;
            spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

/// One less at its end.
struct Decreased<'a>(&'a AtomicUsize);

impl Drop for Decreased<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Takes an offer back at its end, and waits for those who take part.
struct Withdrawn<'a> {
    team: &'a Team,
    offer: &'a Offer<'a>,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.team.withdraw(self.offer);
        wait_until(|| self.offer.taking.load(Ordering::Acquire) == 0);
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Worth a piece to every column.
    const LARGE: usize = 1 << 20;

    /// The work on a team of so many, once all others wait.
    fn with_helpers(helpers: usize, work: impl FnOnce(&Team)) {
        let team = Team::new(1);
        thread::scope(|scope| {
            (0..helpers).for_each(|_| drop(scope.spawn(|| team.help())));
            team.finish(|| {
                while team.free() < helpers {
                    thread::yield_now();
                }
                work(&team);
            });
        });
        assert_eq!((team.free(), team.left.into_inner(), team.offered.into_inner()), (0, 0, 0));
    }

    #[test]
    fn each_column_is_done_once_whoever_takes_it() {
        for helpers in 0..4 {
            with_helpers(helpers, |team| {
                for columns in [0, 1, 7, 8, 9, 64, 100] {
                    let mut a = vec![0.0; 3 * columns];
                    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                        team.share(&mut a, 3, LARGE, |first, piece| {
                            piece.iter_mut().enumerate().for_each(|(at, x)| *x += (3 * first + at) as f64);
                        });
                    }
                    let times = if cfg!(miri) { 2.0 } else { 200.0 };
                    assert!(
                        a.iter().enumerate().all(|(at, &x)| x == times * at as f64),
                        "{helpers} help with {columns}"
                    );
                }
            });
        }
    }

    #[test]
    fn others_take_pieces_while_one_is_at_work() {
        with_helpers(1, |team| {
            let begun = AtomicUsize::new(0);
            // Nobody ends a piece before there are two.
            team.share(&mut [0.0; 64], 1, LARGE, |_, _| {
                begun.fetch_add(1, Ordering::Relaxed);
                while begun.load(Ordering::Relaxed) < 2 {
                    thread::yield_now();
                }
            });
        });
    }

    #[test]
    fn what_panics_leaves_nothing_to_take_and_nobody_waiting() {
        with_helpers(0, |team| {
            team.free.fetch_add(1, Ordering::Relaxed);
            let work = |_: usize, _: &mut [f64]| panic!("as planned");
            assert!(catch_unwind(AssertUnwindSafe(|| team.share(&mut [0.0; 64], 1, LARGE, work))).is_err());
            team.free.fetch_sub(1, Ordering::Relaxed);
        });
    }

    #[test]
    fn little_work_is_not_shared() {
        with_helpers(2, |team| {
            let pieces = AtomicUsize::new(0);
            team.share(&mut [0.0; 64], 1, 1, |_, _| {
                pieces.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(pieces.into_inner(), 1);
        });
    }
}
