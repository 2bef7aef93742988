//! A reader that stalls on purpose.

use rxpath_core::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::clock;
use crate::tally::Shared;
use crate::values::number;

/// A reader that stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct ReaderStall {
    /// Sleeps this long.
    #[arg(long = "sleep", value_name = "TIME", value_parser = number::<Nanos>, required = false)]
    #[arg(requires = "every_ns", help = "Stall: sleep this long …")]
    pub sleep_ns: u64,
    /// Once in this time.
    #[arg(long = "every", value_name = "TIME", value_parser = number::<Nanos>, required = false)]
    #[arg(requires = "sleep_ns", help = "… once in this time")]
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

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use crate::udp::serve::options::ServeOptions;

    fn options(line: &str) -> Result<ServeOptions, clap::Error> {
        let command = ServeOptions::augment_args(clap::Command::new("rxpath"));
        let found = command.try_get_matches_from(line.split_whitespace())?;
        ServeOptions::from_arg_matches(&found)
    }

    #[test]
    fn options_that_need_each_other_are_given_together_or_not_at_all() {
        let plain = options("serve 127.0.0.1:0").unwrap();
        assert!(plain.stall.is_none() && plain.busy_poll.is_none());
        let both = options("serve 127.0.0.1:0 --sleep 2ms --every 5ms --busy-poll 50").unwrap();
        let stall = both.stall.unwrap();
        assert_eq!((stall.sleep_ns, stall.every_ns), (2_000_000, 5_000_000));
        let poll = both.busy_poll.unwrap();
        assert_eq!((poll.poll_us, poll.prefer, poll.budget_packets), (50, false, None));
        for (one, missing) in [
            ("--sleep 2ms", "--every <TIME>"),
            ("--every 5ms", "--sleep <TIME>"),
            ("--prefer-busy-poll", "--busy-poll <US>"),
            ("--busy-poll-budget 8", "--busy-poll <US>"),
        ] {
            let said = options(&format!("serve 127.0.0.1:0 {one}")).unwrap_err().to_string();
            assert!(said.contains(missing), "{said}");
        }
    }
}
