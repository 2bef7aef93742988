//! The metrics of an experiment: which direction is good and in what unit they are.

/// The good direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// More is better.
    Up,
    /// Less is better.
    Down,
}

/// A metric that trials report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Key in results; ends with its unit.
    pub name: &'static str,
    /// Unit as shown to people.
    pub unit: &'static str,
    /// Good direction.
    pub good: Good,
    /// What it is, with its base and its two ends where it has them.
    pub what: &'static str,
}

/// Every metric that is known by name. Metrics of external programs are not in it: more is taken as better.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "delivered_pps",
        unit: "datagrams/s",
        good: Good::Up,
        what: "datagrams that the receiving application read, per second of the window",
    },
    Metric {
        name: "offered_pps",
        unit: "datagrams/s",
        good: Good::Up,
        what: "datagrams that the sender attempted, per second of the window",
    },
    Metric {
        name: "loss_ratio",
        unit: "of offered",
        good: Good::Down,
        what: "datagrams of the whole trial that were not delivered, as a share of those offered",
    },
    Metric {
        name: "receiver_cpu_ns_per_packet",
        unit: "ns/datagram",
        good: Good::Down,
        what: "time of the receiving threads on a CPU per datagram read, softirqs on top of them included",
    },
    Metric {
        name: "sender_cpu_ns_per_packet",
        unit: "ns/datagram",
        good: Good::Down,
        what: "time of the sending threads on a CPU per datagram offered, softirqs inside their calls included",
    },
    Metric {
        name: "blocked_ratio",
        unit: "of the window",
        good: Good::Down,
        what: "time that the sender waited for send buffer, as a share of the window and its threads",
    },
    Metric {
        name: "achieved_ratio",
        unit: "of asked",
        good: Good::Up,
        what: "offered rate as a share of the asked rate",
    },
];

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The good direction of a metric by name; up for names that are not known.
pub fn good(name: &str) -> Good {
    metric(name).map_or(Good::Up, |metric| metric.good)
}
