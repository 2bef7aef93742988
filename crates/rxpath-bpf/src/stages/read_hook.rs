//! The hook that runs for each read: in place while a packet is followed that may be read.
//!
//! A packet that became ready in a duty cycle may be read long after it. But with this hook in place each read costs
//! its thread some 0.1 us: at a million reads/s a tenth of a CPU. Mostly all followed packets are read soon after the
//! cycle.

use std::time::{Duration, Instant};

use rxpath_host::HostError;

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::object::Loaded;

/// Its program.
pub const NAME: &str = "sock_recv_length";

/// The iterator that reports which packets are still followed.
pub const STILL_FOLLOWED: &str = "still_followed";

/// The first check whether all packets are read comes this long after the duty cycle.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// The longest time between two checks: each walks over all sockets that ever had a followed packet.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Followed and unread packets of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Packets.
    pub packets: u64,
    /// Since when the oldest waits, CLOCK_MONOTONIC; none when none does.
    pub oldest_ns: Option<u64>,
}

/// One for each socket that has a storage.
pub fn storages(loaded: &Loaded) -> Result<Vec<Unread>, HostError> {
    let bytes = loaded.iterate(STILL_FOLLOWED, Some("waiting"))?;
    // `struct unread`.
    let one = |bytes: &[u8]| {
        let mut f = Fields::of(bytes);
        Unread { packets: f.u64(), oldest_ns: Some(f.u64()).filter(|ns| *ns > 0) }
    };
    Ok(bytes.chunks_exact(16).map(one).collect())
}

/// The hook.
#[derive(Debug, Default)]
pub struct ReadHook {
    /// Since when it is in place.
    since: Option<Instant>,
    /// How long it was in place before that.
    before: Duration,
    /// When the next check whether all is read is due, and the time since the previous check.
    look: Option<(Instant, Duration)>,
}

impl ReadHook {
    /// Puts it into place, before packets are followed.
    pub fn attach(&mut self, loaded: &mut Loaded) -> Result<(), HostError> {
        if self.since.is_none() {
            let now = monotonic_ns().to_ne_bytes();
            loaded.put("reads_since", &0u32.to_ne_bytes(), &now)?;
            loaded.attach_some(&[NAME])?;
            self.since = Some(Instant::now());
            // While it stays in place because a packet is never read, checks are rare.
            self.look = None;
        }
        Ok(())
    }

    /// Detaches it when no followed packet is unread; to be called repeatedly while nothing new is followed.
    pub fn detach_when_read(&mut self, loaded: &mut Loaded) {
        let now = Instant::now();
        if self.since.is_none() {
            return;
        }
        let (due, after) = *self.look.get_or_insert((now + FIRST_LOOK, FIRST_LOOK));
        if now < due {
            return;
        }
        let after = (2 * after).min(LAST_LOOK);
        self.look = Some((now + after, after));
        // Without the iterator the hook stays: this costs time, but results are correct.
        let Ok(storages) = storages(loaded) else { return };
        if storages.iter().all(|socket| socket.oldest_ns.is_none()) {
            self.detach(loaded);
        }
    }

    /// Detaches it. Packets that are still followed are abandoned.
    pub fn detach(&mut self, loaded: &mut Loaded) {
        loaded.detach_some(&[NAME]);
        self.before += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// When the next check whether all is read is due; none while it is not in place or not requested.
    pub fn due(&self) -> Option<Instant> {
        self.since.and(self.look).map(|(due, _)| due)
    }

    /// How long it was in place.
    pub fn in_place(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
