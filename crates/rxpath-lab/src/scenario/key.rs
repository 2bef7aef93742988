//! A key that a scenario can set, and the form of its value.

use super::protocol::Protocol;

/// Engines of HTTP.
pub(super) const OF_HTTP: [&str; 2] = ["epoll", "uring"];

/// One key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Dotted name: `serve.batch`.
    pub name: &'static str,
    pub kind: Kind,
    /// The protocols that have it; none named = all.
    pub protocols: &'static [Protocol],
    /// One line for the reference.
    pub doc: &'static str,
}

impl Key {
    pub const fn new(
        name: &'static str,
        kind: Kind,
        protocols: &'static [Protocol],
        doc: &'static str,
    ) -> Self {
        Self { name, kind, protocols, doc }
    }

    /// Whether a workload of this protocol has it.
    pub fn fits(&self, protocol: Protocol) -> bool {
        self.protocols.is_empty() || self.protocols.contains(&protocol)
    }
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Int(u64, u64),
    /// A whole number that may be negative.
    Signed(i64, i64),
    /// A number with k, M or G.
    Count(u64, u64),
    /// A number of things per second.
    Rate(u64, u64),
    /// Bits per second.
    BitRate(u64, u64),
    /// A size such as 64KiB; the bounds are bytes.
    Bytes(u64, u64),
    /// A duration such as 10us; the bounds are nanoseconds.
    Nanos(u64, u64),
    /// A share between the bounds.
    Ratio(f64, f64),
    Choice(&'static [&'static str]),
    /// An engine of HTTP, or one of these of UDP.
    Engine(fn() -> Vec<&'static str>),
    SchedClass,
    Cpus,
    OneCpu,
    Text,
    /// A list of texts.
    Lines,
    /// A command: a list of words, or one text that is split as a shell splits it.
    Command,
    /// A table of names to values.
    Names,
    Qdisc,
    Parser,
    /// A side, all, or a list of aliases.
    OnHosts,
}
