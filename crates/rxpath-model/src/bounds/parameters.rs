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

/// A row: `/// meaning`, `name: type as "its name in results" (its option's properties);`.
macro_rules! parameters {
    ($($(#[doc = $what:tt])* $name:ident: $type:ty as $told:tt ($($option:tt)*);)*) => {
        /// What is known about host and load: keys of a file, and options of `rxpath model bounds`. Everything is
        /// optional; bounds that need more are named.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[cfg_attr(feature = "clap", derive(clap::Args))]
        #[serde(deny_unknown_fields, default)]
        pub struct Parameters {
            $(
                $(#[doc = $what])*
                #[serde(rename(serialize = $told))]
                #[cfg_attr(feature = "clap", arg(long, $($option)*))]
                pub $name: $type,
            )*
        }

        impl Parameters {
            /// These, and from the file what they leave open.
            #[must_use]
            pub fn over(self, file: Self) -> Self {
                Self { $($name: given_or(self.$name, file.$name)),* }
            }

            /// Whether the parameter of this name was given.
            pub(super) fn has(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name != <$type>::default(),)*
                    _ => false,
                }
            }
        }
    };
}

fn given_or<T: Default + PartialEq>(own: T, file: T) -> T {
    if own == T::default() { file } else { own }
}

parameters! {
    /// Offered datagrams per second.
    arrival_rate: Option<Rate> as "arrival_rate_pps" (value_name = "PPS");
    /// Payload of a datagram.
    size: Option<Bytes> as "size_bytes" (value_name = "BYTES");
    /// Packets that arrive in one burst at --arrival-rate.
    burst: Option<ItemCount> as "burst_packets" (value_name = "N");
    /// Duration of the load.
    duration: Option<Nanos> as "duration_ns" (value_name = "TIME");
    /// Flows of equal rate.
    flows: Option<ItemCount> as "flows_count" (value_name = "N");
    /// TCP receive window.
    window: Option<Bytes> as "window_bytes" (value_name = "BYTES");
    /// Round-trip time.
    rtt: Option<Nanos> as "rtt_ns" (value_name = "TIME");
    /// The reader's CPU time per datagram if the reader never sleeps.
    service_ns: Option<Nanos> as "service_ns" (value_name = "NS", value_parser = nanoseconds);
    /// The reader's share of its CPU, at most 1.
    share: Option<f64> as "share_ratio" (value_name = "RATIO");
    /// Softirq and reader run on one CPU.
    same_cpu: bool as "same_cpu" ();
    /// The reader's share if ksoftirqd limits softirqs (default 0.5).
    app_share: Option<f64> as "app_share_ratio" (value_name = "RATIO");
    /// Receive buffer as the kernel accounts it (default 212992).
    rcvbuf: Option<Bytes> as "rcvbuf_bytes" (value_name = "BYTES");
    /// Kernel memory of a queued datagram (default: estimated from --size).
    truesize: Option<Bytes> as "truesize_bytes" (value_name = "BYTES");
    /// Length of a pause of the reader.
    stall: Option<Nanos> as "stall_ns" (value_name = "TIME");
    /// How often the reader pauses.
    period: Option<Nanos> as "period_ns" (value_name = "TIME");
    /// Descriptors of the receive ring.
    ring: Option<ItemCount> as "ring_packets" (value_name = "N");
    /// Interrupt coalescing by time: microseconds, or a time with its unit.
    rx_usecs: Option<u64> as "rx_usecs" (value_name = "US", value_parser = whole_microseconds);
    /// Softirq time per poll.
    poll_ns: Option<Nanos> as "poll_ns" (value_name = "NS", value_parser = nanoseconds);
    /// Softirq time per packet.
    packet_ns: Option<Nanos> as "packet_ns" (value_name = "NS", value_parser = nanoseconds);
    /// CPU time per interrupt, everything included.
    irq_ns: Option<Nanos> as "irq_ns" (value_name = "NS", value_parser = nanoseconds);
    /// Packets per poll at the offered rate (default 1).
    ///
    /// 1 is the most expensive: each packet pays a poll and an interrupt.
    batch: Option<f64> as "batch_packets" (value_name = "N");
    /// CPU share that the softirq can use (default 1).
    ///
    /// 1 where softirqs run inline; their fair share where ksoftirqd or a NAPI thread runs them.
    softirq_share: Option<f64> as "softirq_share_ratio" (value_name = "RATIO");
    /// NAPI weight (default 64).
    weight: Option<ItemCount> as "weight_packets" (value_name = "N");
    /// net.core.netdev_budget (default 300).
    budget: Option<ItemCount> as "budget_packets" (value_name = "N");
    /// Busy NAPIs on one CPU.
    napis: Option<ItemCount> as "napis_count" (value_name = "N");
    /// Receive queues.
    queues: Option<ItemCount> as "queues_count" (value_name = "N");
    /// Longest time without service, in addition to the coalescing timer.
    starvation: Option<Nanos> as "starvation_ns" (value_name = "TIME");
    /// net.core.netdev_max_backlog (default 1000).
    backlog: Option<ItemCount> as "backlog_packets" (value_name = "N");
    /// Softirq time per packet on the CPU that RPS steers to.
    backlog_packet_ns: Option<Nanos> as "backlog_packet_ns" (value_name = "NS", value_parser = nanoseconds);
}

impl Parameters {
    /// Reads a TOML file's text.
    pub fn from_toml(text: &str) -> Result<Self, ParameterError> {
        read(text)
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
