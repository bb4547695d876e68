//! What a GPU does in which order: whether two pieces of work on the same memory may run at the same time.

use std::collections::HashMap;

use batchla_cuda::DevicePointer;
use batchla_cuda::driver::fake::Call;

/// How far each stream had come, by its number.
type Clock = HashMap<u64, usize>;

fn learn(clock: &mut Clock, other: &Clock) {
    for (&stream, &at) in other {
        let known = clock.entry(stream).or_default();
        *known = at.max(*known);
    }
}

/// Something that was done to an allocation.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) what: &'static str,
    pub(crate) stream: u64,
    /// Its place in its stream, from 1.
    at: usize,
    /// What was done before it began.
    before: Clock,
    /// Whether it only reads.
    reads: bool,
}

impl Access {
    /// Whether it begins only after another has ended.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        self.before.get(&other.stream).is_some_and(|&at| at >= other.at)
    }
}

/// All that was done to each allocation, in the order in which it was queued; ordered by streams and events, and, where `waits`, by what the host waited for.
pub(crate) fn accesses(calls: &[Call], waits: bool) -> Vec<((DevicePointer, usize), Vec<Access>)> {
    let mut allocations: Vec<((DevicePointer, usize), Vec<Access>)> = Vec::new();
    let (mut streams, mut events): (HashMap<u64, Clock>, HashMap<u64, Clock>) = Default::default();
    let mut host = Clock::new();
    for call in calls {
        let (what, stream, reads, words) = match call {
            Call::Allocate { pointer, bytes, stream } => {
                allocations.push(((*pointer, *bytes), Vec::new()));
                ("allocation", stream, false, vec![pointer.0])
            }
            Call::Free { pointer, stream } => ("free", stream, false, vec![pointer.0]),
            Call::Record { event, stream } => {
                let clock = streams.entry(stream.as_raw()).or_default().clone();
                events.insert(event.as_raw(), clock);
                continue;
            }
            Call::Wait { stream, event } => {
                let there = events.get(&event.as_raw()).cloned().unwrap_or_default();
                learn(streams.entry(stream.as_raw()).or_default(), &there);
                continue;
            }
            Call::Synchronize { stream } => {
                learn(&mut host, streams.entry(stream.as_raw()).or_default());
                continue;
            }
            Call::SynchronizeEvent { event } => {
                learn(&mut host, &events.get(&event.as_raw()).cloned().unwrap_or_default());
                continue;
            }
            Call::CopyToDevice { pointer, stream, .. } => ("copy up", stream, false, vec![pointer.0]),
            Call::CopyToHost { pointer, stream, .. } => ("copy down", stream, true, vec![pointer.0]),
            Call::Launch(launched) => {
                let words = launched.arguments.iter().flat_map(|bytes| bytes.chunks_exact(8));
                let words = words.filter_map(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
                ("kernel", &launched.stream, false, words.collect())
            }
            _ => continue,
        };
        let clock = streams.entry(stream.as_raw()).or_default();
        // What is queued now begins after what the host has waited for.
        if waits {
            learn(clock, &host);
        }
        let before = clock.clone();
        let at = clock.get(&stream.as_raw()).map_or(1, |at| at + 1);
        clock.insert(stream.as_raw(), at);
        let access = Access { what, stream: stream.as_raw(), at, before, reads };
        for ((pointer, bytes), all) in &mut allocations {
            if words.iter().any(|&word| word >= pointer.0 && word < pointer.0 + *bytes as u64) {
                all.push(access.clone());
            }
        }
    }
    allocations
}

/// Pairs of accesses to one allocation that nothing orders, in words.
pub(crate) fn races(calls: &[Call]) -> Vec<String> {
    let mut races = Vec::new();
    for ((pointer, _), all) in accesses(calls, true) {
        for (k, later) in all.iter().enumerate() {
            for earlier in &all[..k] {
                let ordered = earlier.stream == later.stream || later.follows(earlier);
                if !(ordered || earlier.reads && later.reads) {
                    races.push(format!("{:#x}: {} and a later {}", pointer.0, earlier.what, later.what));
                }
            }
        }
    }
    races
}
