//! The hook that runs for each read: in place while a packet is followed that may be read.
//!
//! What became ready in a turn may be read long after it; but with that hook in place each read costs its thread some 0.1 us,
//! of a million reads a second a tenth of a CPU, and after a turn all that is followed is mostly read at once.

use std::time::{Duration, Instant};

use rxpath_host::HostError;

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::object::Loaded;

/// Its program.
pub const NAME: &str = "sock_recv_length";

/// The iterator that tells what is followed still.
pub const STILL_FOLLOWED: &str = "still_followed";

/// The first look whether all is read comes so long after the turn.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// The longest time from one look to the next: each walks over all sockets that ever had a packet followed.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// What of a socket is followed and not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Packets.
    pub packets: u64,
    /// Since when the oldest waits, CLOCK_MONOTONIC; 0 when none does.
    since_ns: u64,
}

impl Unread {
    /// Since when the oldest waits, CLOCK_MONOTONIC.
    pub fn oldest_ns(&self) -> Option<u64> {
        (self.since_ns > 0).then_some(self.since_ns)
    }
}

/// One for each socket that has a storage.
pub fn storages(loaded: &Loaded) -> Result<Vec<Unread>, HostError> {
    let bytes = loaded.iterate_over(STILL_FOLLOWED, "waiting")?;
    // `struct unread`.
    let one = |bytes: &[u8]| {
        let mut f = Fields::of(bytes);
        Unread { packets: f.u64(), since_ns: f.u64() }
    };
    Ok(bytes.chunks_exact(16).map(one).collect())
}

/// The hook.
#[derive(Debug, Default)]
pub struct ReadHook {
    /// Since when it is in place.
    since: Option<Instant>,
    /// For how long it was, before that.
    before: Duration,
    /// When it is looked whether all is read, and how long after the look before.
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
            // While it stays from turn to turn, because something is never read, it is looked seldom.
            self.look = None;
        }
        Ok(())
    }

    /// Takes it away when nothing that is followed is unread; to be called again and again while nothing new is followed.
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
        // Without the iterator the hook stays: that costs, and is right.
        let Ok(storages) = storages(loaded) else { return };
        if storages.iter().all(|socket| socket.oldest_ns().is_none()) {
            self.detach(loaded);
        }
    }

    /// Takes it away. What is followed still is given up.
    pub fn detach(&mut self, loaded: &mut Loaded) {
        loaded.detach_some(&[NAME]);
        self.before += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// When it is looked whether all is read; none while it is not in place or nobody has asked.
    pub fn due(&self) -> Option<Instant> {
        self.since.and(self.look).map(|(due, _)| due)
    }

    /// For how long it was in place.
    pub fn in_place(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
