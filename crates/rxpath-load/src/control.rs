//! How a parent process (the lab) controls a workload: lines on standard input, JSON Lines on standard output.
//!
//! With `--control` a workload sets up, prints its settings and `ready`, and waits.
//! `start T` starts it at that instant of `CLOCK_MONOTONIC`; `stop` ends it: a sender stops sending, a receiver
//! drains to EAGAIN, reads its sockets' memory counters, prints its result and waits for `close`.
//! End of input means that the parent has exited: stop at once and exit.

use std::str::FromStr;

use thiserror::Error;

/// A command from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start at this instant of `CLOCK_MONOTONIC` (ns).
    Start(u64),
    /// Stop, drain, report.
    Stop,
    /// Close the sockets and exit.
    Close,
}

/// A line that is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a command; expected `start NANOSECONDS`, `stop` or `close`")]
pub struct BadOrder(pub String);

impl FromStr for Order {
    type Err = BadOrder;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut words = line.split_whitespace();
        let order = match (words.next(), words.next()) {
            (Some("start"), Some(t)) => t.parse().ok().map(Self::Start),
            (Some("stop"), None) => Some(Self::Stop),
            (Some("close"), None) => Some(Self::Close),
            _ => None,
        };
        order.filter(|_| words.next().is_none()).ok_or_else(|| BadOrder(line.trim().into()))
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(t) => write!(f, "start {t}"),
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
        for order in [Order::Start(17), Order::Stop, Order::Close] {
            assert_eq!(order.to_string().parse::<Order>().unwrap(), order);
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "start", "start x", "stop 1", "start 1 2", "STOP"] {
            assert!(line.parse::<Order>().is_err(), "{line}");
        }
    }
}
