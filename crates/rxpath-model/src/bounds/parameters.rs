//! The parameters of the bounds, as a TOML file or flags give them, and what is derived from them.

#[cfg(feature = "clap")]
use rxpath_core::plain_time::{nanoseconds, whole_microseconds};
use rxpath_core::{Bytes, ItemCount, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::napi_budget::{BUDGET, WEIGHT};
use crate::kinds::socket_capacity::{capacity, estimated_truesize};
use crate::sim::ParameterError;
use crate::sim::values::{bad, read};

/// 65,535 less the headers of IPv4 and UDP (RFC 791, RFC 768).
const LARGEST_DATAGRAM: u64 = 65_507;

/// Default of `net.core.rmem_default` on 64-bit kernels.
const RCVBUF: u64 = 212_992;
/// Default of `net.core.netdev_max_backlog`.
const BACKLOG: u64 = 1000;

/// What is known about host and load: keys of a file, and options of `rxpath model bounds`. Everything is optional; bounds
/// that need more are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Offered datagrams per second.
    #[serde(rename(serialize = "arrival_rate_pps"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PPS"))]
    pub arrival_rate: Option<Rate>,
    /// Payload of a datagram.
    #[serde(rename(serialize = "size_bytes"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub size: Option<Bytes>,
    /// Packets that arrive in one burst at --arrival-rate.
    #[serde(rename(serialize = "burst_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub burst: Option<ItemCount>,
    /// Duration of the load.
    #[serde(rename(serialize = "duration_ns"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub duration: Option<Nanos>,
    /// Flows of equal rate.
    #[serde(rename(serialize = "flows_count"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub flows: Option<ItemCount>,
    /// TCP receive window.
    #[serde(rename(serialize = "window_bytes"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub window: Option<Bytes>,
    /// Round-trip time.
    #[serde(rename(serialize = "rtt_ns"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub rtt: Option<Nanos>,
    /// The reader's CPU time per datagram if the reader never sleeps.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NS", value_parser = nanoseconds))]
    pub service_ns: Option<Nanos>,
    /// The reader's share of its CPU, at most 1.
    #[serde(rename(serialize = "share_ratio"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATIO"))]
    pub share: Option<f64>,
    /// Softirq and reader run on one CPU.
    #[cfg_attr(feature = "clap", arg(long))]
    pub same_cpu: bool,
    /// The reader's share if ksoftirqd limits softirqs (default 0.5).
    #[serde(rename(serialize = "app_share_ratio"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATIO"))]
    pub app_share: Option<f64>,
    /// Receive buffer as the kernel accounts it (default 212992).
    #[serde(rename(serialize = "rcvbuf_bytes"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub rcvbuf: Option<Bytes>,
    /// Kernel memory of a queued datagram (default: estimated from --size).
    #[serde(rename(serialize = "truesize_bytes"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub truesize: Option<Bytes>,
    /// Length of a pause of the reader.
    #[serde(rename(serialize = "stall_ns"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub stall: Option<Nanos>,
    /// How often the reader pauses.
    #[serde(rename(serialize = "period_ns"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub period: Option<Nanos>,
    /// Descriptors of the receive ring.
    #[serde(rename(serialize = "ring_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub ring: Option<ItemCount>,
    /// Interrupt coalescing by time: microseconds, or a time with its unit.
    #[cfg_attr(feature = "clap", arg(long, value_name = "US", value_parser = whole_microseconds))]
    pub rx_usecs: Option<u64>,
    /// Softirq time per poll.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NS", value_parser = nanoseconds))]
    pub poll_ns: Option<Nanos>,
    /// Softirq time per packet.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NS", value_parser = nanoseconds))]
    pub packet_ns: Option<Nanos>,
    /// CPU time per interrupt, everything included.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NS", value_parser = nanoseconds))]
    pub irq_ns: Option<Nanos>,
    /// Packets per poll at the offered rate (default 1).
    ///
    /// 1 is the most expensive: each packet pays a poll and an interrupt.
    #[serde(rename(serialize = "batch_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub batch: Option<f64>,
    /// CPU share that the softirq can use (default 1).
    ///
    /// 1 where softirqs run inline; their fair share where ksoftirqd or a NAPI thread runs them.
    #[serde(rename(serialize = "softirq_share_ratio"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATIO"))]
    pub softirq_share: Option<f64>,
    /// NAPI weight (default 64).
    #[serde(rename(serialize = "weight_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub weight: Option<ItemCount>,
    /// net.core.netdev_budget (default 300).
    #[serde(rename(serialize = "budget_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub budget: Option<ItemCount>,
    /// Busy NAPIs on one CPU.
    #[serde(rename(serialize = "napis_count"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub napis: Option<ItemCount>,
    /// Receive queues.
    #[serde(rename(serialize = "queues_count"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub queues: Option<ItemCount>,
    /// Longest time without service, in addition to the coalescing timer.
    #[serde(rename(serialize = "starvation_ns"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub starvation: Option<Nanos>,
    /// net.core.netdev_max_backlog (default 1000).
    #[serde(rename(serialize = "backlog_packets"))]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub backlog: Option<ItemCount>,
    /// Softirq time per packet on the CPU that RPS steers to.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NS", value_parser = nanoseconds))]
    pub backlog_packet_ns: Option<Nanos>,
}

impl Parameters {
    /// Reads a TOML file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        read(text)
    }

    /// These, and from the file what they leave open.
    #[must_use]
    pub fn over(self, file: Self) -> Self {
        let own = self;
        macro_rules! over {
            ($($name:ident)*) => {
                Self { same_cpu: own.same_cpu || file.same_cpu, $($name: own.$name.or(file.$name)),* }
            };
        }
        over!(
            arrival_rate size burst duration flows window rtt
            service_ns share app_share rcvbuf truesize stall period
            ring rx_usecs poll_ns packet_ns irq_ns batch softirq_share weight budget napis queues
            starvation backlog backlog_packet_ns
        )
    }

    /// Refuses what is out of range or contradicts itself.
    pub fn check(&self) -> Result<(), ParameterError> {
        let bad = |name: &str, why: &str| Err(bad(name, why));
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

    /// Softirq seconds per poll.
    pub(super) fn poll_s(&self) -> f64 {
        self.poll_ns.unwrap_or_default().as_secs_f64()
    }

    /// Packets/s of one queue when every poll is full and no interrupt is needed.
    pub(super) fn ring_rate(&self) -> Option<f64> {
        let (weight, packet) = (self.weight() as f64, self.packet_ns?.as_secs_f64());
        Some(self.softirq_share.unwrap_or(1.0) * weight / (self.poll_s() + weight * packet))
    }

    /// Packets/s that RPS's target CPU takes from its backlog.
    pub(super) fn backlog_rate(&self) -> Option<f64> {
        Some(1.0 / self.backlog_packet_ns.filter(|ns| ns.0 > 0)?.as_secs_f64())
    }

    /// Softirq seconds per packet at the batch of the offered rate, interrupt included.
    pub(super) fn softirq_cost(&self) -> Option<f64> {
        let each = self.packet_ns?.as_secs_f64();
        let irq = self.irq_ns.unwrap_or_default().as_secs_f64();
        Some(each + (self.poll_s() + irq) / self.batch.unwrap_or(1.0))
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
