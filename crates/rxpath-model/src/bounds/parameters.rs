//! The parameters of the bounds, as a TOML file or flags give them, and what is derived from them.

use rxpath_core::{Bytes, ItemCount, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::kinds::socket_capacity::{capacity, estimated_truesize};

/// 65,535 less the headers of IPv4 and UDP (RFC 791, RFC 768).
const LARGEST_DATAGRAM: u64 = 65_507;

/// `NAPI_POLL_WEIGHT` (include/linux/netdevice.h).
const WEIGHT: u64 = 64;
/// Default of `net.core.netdev_budget`.
const BUDGET: u64 = 300;
/// Default of `net.core.rmem_default` on 64-bit kernels.
const RCVBUF: u64 = 212_992;
/// Default of `net.core.netdev_max_backlog`.
const BACKLOG: u64 = 1000;

/// Parameters that cannot be.
#[derive(Debug, Error)]
pub enum BadParameters {
    /// The file is not the TOML that is read.
    #[error("{why}")]
    File {
        /// The parser's words, with the place.
        why: String,
    },
    /// A value out of its range or against another.
    #[error("`{name}` {why}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
}

/// What is known about host and load. Everything is optional; bounds that need more are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Offered datagrams per second.
    #[serde(rename(serialize = "arrival_rate_pps"))]
    pub arrival_rate: Option<Rate>,
    /// Payload of a datagram.
    #[serde(rename(serialize = "size_bytes"))]
    pub size: Option<Bytes>,
    /// Kernel memory of a queued datagram; estimated from `size` when it is not given.
    #[serde(rename(serialize = "truesize_bytes"))]
    pub truesize: Option<Bytes>,
    /// The reader's CPU time per datagram while it never sleeps.
    pub service_ns: Option<Nanos>,
    /// The reader's share of its CPU, above 0 and at most 1.
    #[serde(rename(serialize = "share_ratio"))]
    pub share: Option<f64>,
    /// Softirq and reader run on one CPU.
    pub same_cpu: bool,
    /// Receive buffer as the kernel accounts it (`sk_rcvbuf`).
    #[serde(rename(serialize = "rcvbuf_bytes"))]
    pub rcvbuf: Option<Bytes>,
    /// How long the reader stops.
    #[serde(rename(serialize = "stall_ns"))]
    pub stall: Option<Nanos>,
    /// How often it stops.
    #[serde(rename(serialize = "period_ns"))]
    pub period: Option<Nanos>,
    /// Descriptors of the receive ring.
    #[serde(rename(serialize = "ring_packets"))]
    pub ring: Option<ItemCount>,
    /// Softirq time per poll.
    pub poll_ns: Option<Nanos>,
    /// Softirq time per packet.
    pub packet_ns: Option<Nanos>,
    /// CPU time per interrupt, all included.
    pub irq_ns: Option<Nanos>,
    /// Packets per poll at the offered rate; 1 is the dearest.
    #[serde(rename(serialize = "batch_packets"))]
    pub batch: Option<f64>,
    /// The CPU share that the softirq may take: 1 inline, its fair share in ksoftirqd or a NAPI thread.
    #[serde(rename(serialize = "softirq_share_ratio"))]
    pub softirq_share: Option<f64>,
    /// NAPI weight.
    #[serde(rename(serialize = "weight_packets"))]
    pub weight: Option<ItemCount>,
    /// `net.core.netdev_budget`.
    #[serde(rename(serialize = "budget_packets"))]
    pub budget: Option<ItemCount>,
    /// Busy NAPIs on one CPU.
    #[serde(rename(serialize = "napis_count"))]
    pub napis: Option<ItemCount>,
    /// Interrupt coalescing by time, in microseconds as ethtool gives it.
    pub rx_usecs: Option<u64>,
    /// Longest time in which the ring is not served beyond the coalescing timer.
    #[serde(rename(serialize = "starvation_ns"))]
    pub starvation: Option<Nanos>,
    /// Packets that arrive at `arrival_rate` in one burst.
    #[serde(rename(serialize = "burst_packets"))]
    pub burst: Option<ItemCount>,
    /// `net.core.netdev_max_backlog`.
    #[serde(rename(serialize = "backlog_packets"))]
    pub backlog: Option<ItemCount>,
    /// Softirq time per packet on the CPU that RPS steers to.
    pub backlog_packet_ns: Option<Nanos>,
    /// How long the load lasts.
    #[serde(rename(serialize = "duration_ns"))]
    pub duration: Option<Nanos>,
    /// Flows of equal rate.
    #[serde(rename(serialize = "flows_count"))]
    pub flows: Option<ItemCount>,
    /// Receive queues.
    #[serde(rename(serialize = "queues_count"))]
    pub queues: Option<ItemCount>,
    /// TCP receive window.
    #[serde(rename(serialize = "window_bytes"))]
    pub window: Option<Bytes>,
    /// Round-trip time.
    #[serde(rename(serialize = "rtt_ns"))]
    pub rtt: Option<Nanos>,
    /// The reader's CPU share where ksoftirqd holds softirqs back.
    #[serde(rename(serialize = "app_share_ratio"))]
    pub app_share: Option<f64>,
}

impl Parameters {
    /// Reads a TOML file's text.
    pub fn from_toml(text: &str) -> Result<Self, BadParameters> {
        toml::from_str(text).map_err(|error: toml::de::Error| BadParameters::File {
            why: one_line(&error.to_string()),
        })
    }

    /// Refuses what is out of range or contradicts itself.
    pub fn check(&self) -> Result<(), BadParameters> {
        let bad = |name, why: &str| Err(BadParameters::Value { name, why: why.to_owned() });
        let shares = [
            ("share", self.share),
            ("softirq_share", self.softirq_share),
            ("app_share", self.app_share),
        ];
        for (name, share) in shares {
            if share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
                return bad(name, "must be above 0 and at most 1");
            }
        }
        if self.rx_usecs.is_some_and(|usecs| usecs > 1_000_000_000) {
            return bad("rx_usecs", "must be at most 1e9 us");
        }
        if self.batch.is_some_and(|batch| !(1.0..=1e9).contains(&batch)) {
            return bad("batch", "must be at least 1 packet per poll");
        }
        let counts = [
            ("arrival_rate", self.arrival_rate.map(|Rate(n)| ItemCount(n)), "datagrams a second"),
            ("weight", self.weight, "packets"),
            ("budget", self.budget, "packets"),
            ("napis", self.napis, "NAPIs"),
            ("flows", self.flows, "flows"),
            ("queues", self.queues, "queues"),
            ("ring", self.ring, "descriptors"),
        ];
        for (name, count, unit) in counts {
            if count.is_some_and(|ItemCount(n)| n == 0 || n > 1_000_000_000_000) {
                return bad(name, &format!("must be from 1 to 1000G {unit}"));
            }
        }
        if self.size.is_some_and(|Bytes(size)| size > LARGEST_DATAGRAM) {
            return bad(
                "size",
                "must be at most 65507 bytes, the payload of the largest UDP datagram over IPv4",
            );
        }
        if let (Some(size), Some(truesize)) = (self.size, self.truesize)
            && truesize < size
        {
            return bad("truesize", "must be at least `size`: it contains the payload (bytes)");
        }
        for (name, cost) in [("service_ns", self.service_ns), ("packet_ns", self.packet_ns)] {
            if cost == Some(Nanos(0)) {
                return bad(name, "must be above 0 ns");
            }
        }
        match (self.stall, self.period) {
            (Some(stall), Some(period)) if stall >= period => {
                bad("period", "must be longer than `stall`: a reader that never runs reads nothing")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn arrivals(&self) -> Option<f64> {
        self.arrival_rate.map(|Rate(n)| n as f64)
    }

    /// The coalescing timer in seconds.
    pub(super) fn timer(&self) -> Option<f64> {
        self.rx_usecs.map(|usecs| usecs as f64 / 1e6)
    }

    /// Whether the parameter of this name was given.
    pub(super) fn knows(known: &serde_json::Value, name: &str) -> bool {
        let given = |key: &str| known.get(key).is_some_and(|value| !value.is_null());
        let units = ["pps", "bytes", "ns", "packets", "ratio", "count"];
        given(name) || units.iter().any(|unit| given(&format!("{name}_{unit}")))
    }

    pub(super) fn weight(&self) -> u64 {
        self.weight.map_or(WEIGHT, |ItemCount(n)| n)
    }

    pub(super) fn budget(&self) -> u64 {
        self.budget.map_or(BUDGET, |ItemCount(n)| n)
    }

    pub(super) fn backlog(&self) -> f64 {
        self.backlog.map_or(BACKLOG, |ItemCount(n)| n) as f64
    }

    pub(super) fn rcvbuf(&self) -> u64 {
        self.rcvbuf.map_or(RCVBUF, |Bytes(n)| n)
    }

    /// Kernel memory per datagram, and whether it is only estimated from the payload.
    pub(super) fn truesize(&self) -> Option<(u64, bool)> {
        if let Some(Bytes(truesize)) = self.truesize {
            return Some((truesize.max(1), false));
        }
        Some((estimated_truesize(self.size?.0), true))
    }

    /// Datagrams that an unread socket holds, and those it holds for sure while it is read.
    ///
    /// Memory of read datagrams is freed when a quarter of the buffer has accumulated (`udp_rmem_release`,
    /// net/ipv4/udp.c), so three quarters are certain while reading.
    pub(super) fn places(&self) -> Option<(u64, u64)> {
        let places = capacity(self.rcvbuf(), self.truesize()?.0);
        Some((places, (places * 3 / 4).max(1)))
    }

    /// Packets/s of one queue when every poll is full and no interrupt is needed.
    pub(super) fn ring_rate(&self) -> Option<f64> {
        let (weight, packet) = (self.weight() as f64, self.packet_ns?.as_secs_f64());
        let poll = self.poll_ns.unwrap_or_default().as_secs_f64();
        Some(self.softirq_share.unwrap_or(1.0) * weight / (poll + weight * packet))
    }

    /// Packets/s that RPS's target CPU takes from its backlog.
    pub(super) fn backlog_rate(&self) -> Option<f64> {
        Some(1.0 / self.backlog_packet_ns.filter(|ns| ns.0 > 0)?.as_secs_f64())
    }

    /// Softirq seconds per packet at the batch of the offered rate, interrupt included.
    pub(super) fn softirq_cost(&self) -> Option<f64> {
        let each = self.packet_ns?.as_secs_f64();
        let poll = self.poll_ns.unwrap_or_default().as_secs_f64();
        let irq = self.irq_ns.unwrap_or_default().as_secs_f64();
        Some(each + (poll + irq) / self.batch.unwrap_or(1.0))
    }

    /// Packets/s that reach the socket.
    pub(super) fn to_socket(&self) -> Option<f64> {
        let limits = [self.ring_rate(), self.backlog_rate()];
        Some(limits.into_iter().flatten().fold(self.arrivals()?, f64::min))
    }

    /// Packets/s that the reader takes when it never lacks work.
    pub(super) fn reader_rate(&self) -> Option<f64> {
        let taken =
            if self.same_cpu { (self.to_socket()? * self.softirq_cost()?).min(1.0) } else { 0.0 };
        Some(self.share.unwrap_or(1.0) * (1.0 - taken) / self.service_ns?.as_secs_f64())
    }
}

/// The parser's message without its drawing of the line.
pub(crate) fn one_line(text: &str) -> String {
    let told: Vec<&str> =
        text.lines().filter(|line| !line.contains(" |") && !line.trim().starts_with('|')).collect();
    told.join(": ").trim().to_owned()
}
