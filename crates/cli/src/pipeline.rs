//! Reading, computing and writing at the same time, a chunk each.

use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use batchla::Error;

/// Chunks in memory at a time: one that is read, one that is worked on, one that is written.
pub(crate) const CHUNKS: usize = 3;

/// Runs `read`, `work` and `write` over one chunk after another until `read` has none: `read` and `write` in threads of their own, `work` in this one.
///
/// What `write` leaves of a chunk goes back to `read`, so that there are never more than [`CHUNKS`], and their memory serves again. The first error
/// ends all three.
pub(crate) fn run<Spent: Send + Default, Chunk: Send, Done: Send>(
    mut read: impl FnMut(Spent) -> Result<Option<Chunk>, Error> + Send,
    mut work: impl FnMut(Chunk) -> Result<Done, Error>,
    mut write: impl FnMut(Done) -> Result<Spent, Error> + Send,
) -> Result<(), Error> {
    let (return_spent, spent) = channel();
    let (give_chunk, chunks) = sync_channel(CHUNKS);
    let (give_done, done) = sync_channel(CHUNKS);
    for _ in 0..CHUNKS {
        // The other end is at hand.
        let _ = return_spent.send(Spent::default());
    }
    thread::scope(|scope| {
        // An end that is gone has an error to tell, or nothing more to do.
        let reader = scope.spawn(move || {
            while let Ok(spent) = spent.recv() {
                let Some(chunk) = read(spent)? else { break };
                if give_chunk.send(chunk).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let writer = scope.spawn(move || {
            done.into_iter().try_for_each(|done| {
                let _ = return_spent.send(write(done)?);
                Ok(())
            })
        });
        let worked = chunks.into_iter().try_for_each(|chunk| {
            let _ = give_done.send(work(chunk)?);
            Ok(())
        });
        drop(give_done);
        let (written, read) = (joined(writer), joined(reader));
        worked.and(read).and(written)
    })
}

fn joined(thread: ScopedJoinHandle<'_, Result<(), Error>>) -> Result<(), Error> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use batchla::ErrorKind;

    use super::*;

    fn fault() -> Error {
        Error::new(ErrorKind::Io, "test", "it was to fail")
    }

    #[test]
    fn every_chunk_is_worked_on_in_order_and_never_more_than_three_are_there() {
        let (mut next, mut seen, alive) = (0, Vec::new(), AtomicUsize::new(0));
        let read = |(): ()| {
            assert!(alive.fetch_add(1, Ordering::SeqCst) < CHUNKS || next == 100);
            next += 1;
            Ok((next <= 100).then_some(next))
        };
        let write = |done: usize| {
            seen.push(done);
            alive.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        run(read, |chunk| Ok(2 * chunk), write).unwrap();
        assert_eq!(seen, (1..=100).map(|chunk| 2 * chunk).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_of_any_part_ends_all_of_them() {
        for part in 0..3 {
            let fail = |here: usize, chunk: usize| if here == part && chunk == 5 { Err(fault()) } else { Ok(chunk) };
            let mut next = 0;
            let read = |(): ()| {
                next += 1;
                fail(0, next).map(Some)
            };
            let error = run(read, |chunk| fail(1, chunk), |chunk| fail(2, chunk).map(drop)).unwrap_err();
            assert!(error.to_string().contains("it was to fail"), "{error}");
        }
    }
}
