//! A reader that stalls on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::clock;
use crate::tally::Shared;

/// A reader that stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReaderStall {
    /// Sleeps this long.
    pub sleep_ns: u64,
    /// Once in this time.
    pub every_ns: u64,
}

/// The stalls of one worker.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    stall: Option<ReaderStall>,
    next_ns: u64,
    /// The longest pause of the worker.
    pub(crate) longest_ns: u64,
}

impl Stalls {
    pub(crate) fn new(stall: Option<ReaderStall>) -> Self {
        Self { stall, ..Self::default() }
    }

    /// Sleeps when a stall is due, no longer than until the stop.
    #[inline]
    pub(crate) fn sleep(&mut self, shared: &Shared) {
        if let Some(stall) = self.stall {
            self.sleep_if_due(stall, shared);
        }
    }

    fn sleep_if_due(&mut self, stall: ReaderStall, shared: &Shared) {
        let now = clock::now_ns();
        if self.next_ns == 0 {
            self.next_ns = now + stall.every_ns;
        }
        if now < self.next_ns {
            return;
        }
        let until = now + stall.sleep_ns;
        while clock::now_ns() < until && !shared.is_stopped() {
            clock::sleep_until(until);
        }
        let back = clock::now_ns();
        self.next_ns = back + stall.every_ns.saturating_sub(stall.sleep_ns);
        self.longest_ns = self.longest_ns.max(back - now);
    }
}
