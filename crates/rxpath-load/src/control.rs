//! How a parent process (the lab) controls a workload: lines on standard input, JSON Lines on standard output.
//!
//! With `--control` a workload sets up, prints its settings and `ready`, and waits.
//! `start T` starts it at that instant of `CLOCK_MONOTONIC`; with `start T until U` it ends at the instant U if no order
//! ends it earlier, because the link that is measured may carry the orders. `stop` ends it: a sender stops sending, a receiver
//! drains to EAGAIN, reads its sockets' memory counters, prints its result and waits for `close`.
//! End of input means that the parent has exited: stop at once and exit.

use std::str::FromStr;

use thiserror::Error;

/// A command from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlCommand {
    /// Start at an instant of `CLOCK_MONOTONIC`.
    Start {
        /// The instant. **Unit** ns.
        at_ns: u64,
        /// The instant at which it ends without another order. **Unit** ns.
        until_ns: Option<u64>,
    },
    /// Stop, drain, report.
    Stop,
    /// Close the sockets and exit.
    Close,
}

/// A line that is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a command; expected `start NANOSECONDS [until NANOSECONDS]`, `stop` or `close`"
)]
pub struct BadOrder(pub String);

impl FromStr for ControlCommand {
    type Err = BadOrder;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let instant = |word: &str| word.parse::<u64>().ok();
        let order = match words.as_slice() {
            ["start", at] => instant(at).map(|at_ns| Self::Start { at_ns, until_ns: None }),
            ["start", at, "until", end] => instant(at)
                .zip(instant(end))
                .map(|(at_ns, end_ns)| Self::Start { at_ns, until_ns: Some(end_ns) }),
            ["stop"] => Some(Self::Stop),
            ["close"] => Some(Self::Close),
            _ => None,
        };
        order.ok_or_else(|| BadOrder(line.trim().into()))
    }
}

impl std::fmt::Display for ControlCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start { at_ns, until_ns: None } => write!(f, "start {at_ns}"),
            Self::Start { at_ns, until_ns: Some(end_ns) } => {
                write!(f, "start {at_ns} until {end_ns}")
            }
            Self::Stop => f.write_str("stop"),
            Self::Close => f.write_str("close"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_read_back() {
        let start = |until_ns| ControlCommand::Start { at_ns: 17, until_ns };
        for order in [start(None), start(Some(19)), ControlCommand::Stop, ControlCommand::Close] {
            assert_eq!(order.to_string().parse::<ControlCommand>().unwrap(), order);
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "start",
            "start x",
            "stop 1",
            "start 1 2",
            "start 1 until",
            "start 1 until x",
            "start 1 until 2 3",
            "STOP",
        ] {
            assert!(line.parse::<ControlCommand>().is_err(), "{line}");
        }
    }
}
