//! The waits of a trial: for counters to be stable, for a rate to settle, for time to pass, each with a limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::clock::monotonic_ns;
use rxpath_record::counters::Snapshot;

use crate::error::LabError;

/// Two readings this far apart must be equal for counters to count as stable.
const REST: Duration = Duration::from_millis(30);
/// Counters that timers move long after the last packet: connections leave TIME-WAIT a minute later.
const TIMERS: [&str; 3] = ["TcpExt.TW", "TcpExt.TWRecycled", "TcpExt.TWKilled"];
/// How often a wait looks up.
const GLANCE: Duration = Duration::from_millis(20);

/// Waits until two readings in a row are equal and `empty` says that no queue between the two sides holds a packet;
/// returns the last reading. `None` when that did not happen in time.
///
/// Only the two sides' counters count: the machine's own may move for reasons that are not the lab's. They alone are
/// not enough: a ring whose NAPI thread gets no CPU time is full and moves nothing.
pub fn at_rest(
    snapshot: impl Fn() -> Snapshot,
    limit: Duration,
    stop: &AtomicBool,
    empty: &dyn Fn(&Snapshot) -> bool,
) -> Result<Option<Snapshot>, LabError> {
    let deadline = Instant::now() + limit;
    let mut before = snapshot();
    loop {
        pause(REST, stop)?;
        let now = snapshot();
        if sides(&before).eq(sides(&now)) && empty(&now) {
            return Ok(Some(now));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        before = now;
    }
}

fn sides(snapshot: &Snapshot) -> impl Iterator<Item = (&String, &u64)> {
    snapshot.values.iter().filter(|(name, _)| {
        let own = name.rsplit('/').next().unwrap_or(name);
        !name.starts_with("machine/") && !TIMERS.contains(&own)
    })
}

/// Lets time pass until this instant of `CLOCK_MONOTONIC`, looking at the stop flag and calling `glance`, which may end it. Says
/// whether `glance` did.
pub fn until(
    until_ns: u64,
    stop: &AtomicBool,
    mut glance: impl FnMut() -> Result<bool, LabError>,
) -> Result<bool, LabError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if glance()? {
            return Ok(true);
        }
        let now = monotonic_ns();
        if now >= until_ns {
            return Ok(false);
        }
        // why: the pacing of a phase; it ends at an instant, not after a guess.
        std::thread::sleep(GLANCE.min(Duration::from_nanos(until_ns - now)));
    }
}

/// Does the same for a span from now on.
pub fn within(
    span: Duration,
    stop: &AtomicBool,
    glance: impl FnMut() -> Result<bool, LabError>,
) -> Result<bool, LabError> {
    until(monotonic_ns() + span.as_nanos() as u64, stop, glance)
}

/// Lets a span pass unless a signal cuts it short.
pub fn pause(span: Duration, stop: &AtomicBool) -> Result<(), LabError> {
    within(span, stop, || Ok(false)).map(drop)
}
