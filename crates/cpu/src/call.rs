//! Threads that are called to take part in some work, which does not wait for those who come too late.
//!
//! To wake a thread takes some ten microseconds, on virtual machines fifty, and as long again if the caller sleeps until the last one is done: as long as
//! hundreds of small matrices take.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::seats::Seats;
use crate::team::wait_until;

/// Nobody takes part from now on.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Calls that a thread has not answered, at most: while all are busy with another caller's work, these must not pile up.
const MOST_CALLS: usize = 16;

/// Threads that wait to be called.
#[derive(Debug)]
pub(crate) struct Pool {
    threads: ThreadPool,
    /// Calls that are not answered.
    calls: Arc<AtomicUsize>,
    seats: Arc<Seats>,
}

impl Pool {
    /// So many.
    pub(crate) fn new(count: usize) -> Result<Self, ThreadPoolBuildError> {
        let name = |thread| format!("batchla-{thread}");
        let seats = Arc::new(Seats::new(count));
        let sit = {
            let seats = Arc::clone(&seats);
            move |thread| seats.sit(thread)
        };
        let threads = ThreadPoolBuilder::new().num_threads(count).thread_name(name).start_handler(sit).build()?;
        Ok(Self { threads, calls: Arc::default(), seats })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Does `work` on the caller's thread, as number 0, and on those of `most` of the pool's who come before it is done there. Whoever came is done on return.
    ///
    /// # Panics
    /// As `work` does, on whichever thread.
    pub(crate) fn together(&self, most: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: those alone use it who entered before the call was closed, and `Closing` waits for these.
        let work = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        let call = Arc::new(Call { work, inside: AtomicUsize::new(0), panic: Mutex::new(None) });
        let closing = Closing(&call);
        let core = self.seats.make_way();
        for thread in 1..=most.min(self.count()) {
            if self.calls.fetch_add(1, Ordering::Relaxed) >= MOST_CALLS * self.count() {
                self.calls.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            let (call, calls, seats) = (Arc::clone(&call), Arc::clone(&self.calls), Arc::clone(&self.seats));
            self.threads.spawn(move || {
                calls.fetch_sub(1, Ordering::Relaxed);
                if let Some(number) = rayon::current_thread_index() {
                    seats.awake(number, core);
                }
                call.answer(thread);
            });
        }
        work(0);
        drop(closing);
        let panic = call.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

struct Call {
    work: &'static (dyn Fn(usize) + Sync),
    /// Threads of the pool that take part; [`CLOSED`].
    inside: AtomicUsize,
    /// What the first of them that panicked had to say.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Call {
    /// Takes part, unless it is too late.
    fn answer(&self, thread: usize) {
        let enter = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        if self.inside.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter).is_err() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.work)(thread))) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
        self.inside.fetch_sub(1, Ordering::Release);
    }
}

/// Closes a call at its end, and waits for those who take part.
struct Closing<'a>(&'a Call);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_or(CLOSED, Ordering::Relaxed);
        wait_until(|| self.0.inside.load(Ordering::Acquire) == CLOSED);
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn threads_that_come_in_time_take_part_and_are_done_on_return() {
        let (pool, started, ended) = (Pool::new(3).unwrap(), AtomicUsize::new(0), AtomicUsize::new(0));
        pool.together(3, &|_| {
            started.fetch_add(1, Ordering::Relaxed);
            while started.load(Ordering::Relaxed) < 4 {
                thread::yield_now();
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ended.into_inner(), 4);
    }

    #[test]
    fn nobody_waits_for_threads_that_are_busy_and_their_calls_do_not_pile_up() {
        let pool = Pool::new(1).unwrap();
        let (busy, is_busy) = channel();
        let (free, is_free) = channel::<()>();
        pool.threads.spawn(move || {
            busy.send(()).unwrap();
            let _ = is_free.recv();
        });
        is_busy.recv().unwrap();
        let done = AtomicUsize::new(0);
        for _ in 0..10 * MOST_CALLS {
            pool.together(1, &|thread| {
                assert_eq!(thread, 0);
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!((done.load(Ordering::Relaxed), pool.calls.load(Ordering::Relaxed)), (10 * MOST_CALLS, MOST_CALLS));
        drop(free);
        while pool.calls.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        // What came too late was not done.
        assert_eq!(done.into_inner(), 10 * MOST_CALLS);
    }

    #[test]
    fn a_panic_anywhere_reaches_the_caller_once_all_are_done() {
        let pool = Pool::new(2).unwrap();
        for culprit in 0..3 {
            let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |thread: usize| {
                started.fetch_add(1, Ordering::Relaxed);
                while started.load(Ordering::Relaxed) < 3 {
                    thread::yield_now();
                }
                if thread == culprit {
                    panic!("as planned");
                }
                ended.fetch_add(1, Ordering::Relaxed);
            };
            assert!(catch_unwind(AssertUnwindSafe(|| pool.together(2, &work))).is_err());
            assert_eq!(ended.into_inner(), 2);
        }
    }
}
