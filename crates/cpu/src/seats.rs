//! Keeps a pool's threads off the core of whoever calls them.
//!
//! Linux may wake a thread on its caller's core although the one that it ran on before is idle, as was seen on a virtual machine of two cores, in most calls that were
//! milliseconds apart. There it waits behind its caller for milliseconds: as long as whole batches take that are worth several threads. A thread to which that happens
//! leaves the core, and from then on is kept off that of its latest caller.

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::Seats;
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::Seats;

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Those of a pool's threads, by number.
    #[derive(Debug)]
    pub(crate) struct Seats(Box<[Seat]>);

    #[derive(Debug, Default)]
    struct Seat {
        /// Who sits there, once it has started.
        thread: OnceLock<Pid>,
        /// The core that it is kept off, once it has woken up on its caller's, and those that it was left.
        off: Mutex<Option<(usize, CpuSet)>>,
    }

    impl Seats {
        /// For so many threads.
        pub(crate) fn new(count: usize) -> Self {
            Self((0..count).map(|_| Seat::default()).collect())
        }

        /// Takes a seat; called by each thread when it starts.
        pub(crate) fn sit(&self, number: usize) {
            let _new = self.0[number].thread.set(gettid());
        }

        /// Called before threads are woken up: keeps those that must be off the caller's core, which is returned.
        pub(crate) fn make_way(&self) -> usize {
            let core = sched_getcpu();
            self.0.iter().for_each(|seat| seat.keep_off(core, false));
            core
        }

        /// Called by a thread that has been woken up, with its caller's core.
        pub(crate) fn awake(&self, number: usize, core: usize) {
            if sched_getcpu() == core {
                self.0[number].keep_off(core, true);
            }
        }
    }

    impl Seat {
        /// Lets the thread run on all other cores that it might run on, if there are any, and no longer on this one: for the first time, if that `begins` here.
        fn keep_off(&self, core: usize, begins: bool) {
            let mut off = self.off.lock().unwrap_or_else(PoisonError::into_inner);
            let held = off.as_ref().is_some_and(|(before, _)| *before == core);
            if held || (off.is_none() && !begins) || core >= CpuSet::MAX_CPU {
                return;
            }
            let Some(&thread) = self.thread.get() else { return };
            let Ok(mut cores) = sched_getaffinity(Some(thread)) else { return };
            if !cores.is_set(core) {
                return;
            }
            // What it was kept off it gets back, unless somebody else has chosen its cores since.
            if let Some((before, left)) = *off
                && left == cores
            {
                cores.set(before);
            }
            cores.unset(core);
            if cores.count() > 0 && sched_setaffinity(Some(thread), &cores).is_ok() {
                *off = Some((core, cores));
            }
        }
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    mod tests {
        use std::thread;

        use super::*;

        /// The cores that this thread may run on.
        fn cores() -> Vec<usize> {
            let set = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
        }

        /// Lets this thread run on one core alone.
        fn stay_on(core: usize) {
            let mut set = CpuSet::new();
            set.set(core);
            sched_setaffinity(None, &set).unwrap();
        }

        /// Does `test` on a thread that has a seat, with all cores that it may run on, if there are several.
        fn seated(test: impl FnOnce(&Seats, &[usize]) + Send) {
            let seats = Seats::new(1);
            let work = || {
                seats.sit(0);
                let all = cores();
                if all.len() > 1 {
                    test(&seats, &all);
                }
            };
            thread::scope(|scope| scope.spawn(work).join()).unwrap();
        }

        fn without(all: &[usize], core: usize) -> Vec<usize> {
            all.iter().copied().filter(|&other| other != core).collect()
        }

        /// Makes way for a caller on that core.
        fn called_from(seats: &Seats, core: usize) {
            let call = || {
                stay_on(core);
                assert_eq!(seats.make_way(), core);
            };
            thread::scope(|scope| scope.spawn(call).join()).unwrap();
        }

        #[test]
        fn who_wakes_on_its_callers_core_leaves_it() {
            seated(|seats, all| {
                // It may be moved between two looks at its core, but not each time.
                let left = (0..1000).find_map(|_| {
                    let core = sched_getcpu();
                    seats.awake(0, core);
                    (cores() != all).then_some(core)
                });
                assert_eq!(Some(cores()), left.map(|core| without(all, core)));
            });
        }

        #[test]
        fn it_keeps_off_its_latest_callers_core_alone() {
            seated(|seats, all| {
                seats.0[0].keep_off(all[0], true);
                assert_eq!(cores(), without(all, all[0]));
                for &core in all.iter().rev().take(2) {
                    called_from(seats, core);
                    assert_eq!(cores(), without(all, core));
                }
            });
        }

        #[test]
        fn who_wakes_elsewhere_may_run_anywhere() {
            seated(|seats, all| {
                called_from(seats, all[0]);
                seats.awake(0, CpuSet::MAX_CPU);
                assert_eq!(cores(), all);
            });
        }

        #[test]
        fn who_may_run_on_one_core_alone_stays_there() {
            seated(|seats, all| {
                stay_on(all[1]);
                seats.awake(0, all[1]);
                assert_eq!(cores(), all[1..2]);
                called_from(seats, all[1]);
                assert_eq!(cores(), all[1..2]);
            });
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    /// Other systems are left to choose.
    #[derive(Debug)]
    pub(crate) struct Seats;

    impl Seats {
        pub(crate) fn new(_count: usize) -> Self {
            Self
        }

        pub(crate) fn sit(&self, _number: usize) {}

        pub(crate) fn make_way(&self) -> usize {
            0
        }

        pub(crate) fn awake(&self, _number: usize, _core: usize) {}
    }
}
