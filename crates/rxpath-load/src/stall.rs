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
#[derive(Debug)]
pub(crate) struct Stalls {
    stall: Option<ReaderStall>,
    next_ns: u64,
}

impl Stalls {
    pub(crate) fn new(stall: Option<ReaderStall>) -> Self {
        Self { stall, next_ns: 0 }
    }

    /// Sleeps when a stall is due, no longer than until the stop; returns for how long.
    #[inline]
    pub(crate) fn sleep(&mut self, shared: &Shared) -> u64 {
        self.stall.map_or(0, |stall| self.sleep_if_due(stall, shared))
    }

    fn sleep_if_due(&mut self, stall: ReaderStall, shared: &Shared) -> u64 {
        let now = clock::now_ns();
        if self.next_ns == 0 {
            self.next_ns = now + stall.every_ns;
        }
        if now < self.next_ns {
            return 0;
        }
        let until = now + stall.sleep_ns;
        while clock::now_ns() < until && !shared.is_stopped() {
            clock::sleep_until(until);
        }
        let back = clock::now_ns();
        self.next_ns = back + stall.every_ns.saturating_sub(stall.sleep_ns);
        back - now
    }
}
