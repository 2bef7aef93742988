//! Kernel statistics of one connection, and of many together.

use std::mem::offset_of;
use std::ops::Add;
use std::os::fd::RawFd;

use libc::tcp_info;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::tcp_info::TcpInfo;

/// Connections that a result lists one by one.
pub const LISTED: usize = 64;

/// One connection at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionResult {
    /// Client's address, then the server's.
    pub name: String,
    /// Thread that served it.
    pub thread: u32,
    /// Payload bytes accepted by this side's kernel.
    pub sent_bytes: u64,
    /// Payload bytes read by this side.
    pub delivered_bytes: u64,
    /// Whole transactions.
    pub transactions_total: u64,
    /// How it ended when that was by an error: errno name, or `EOF`.
    pub error: Option<String>,
    /// `TCP_INFO` of this side's end.
    pub tcp: Option<TcpSummary>,
}

/// `TCP_INFO` of one connection or of several together; a value that the kernel does not report is `null`.
///
/// **Source** `tcp_get_info`, net/ipv4/tcp.c.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSummary {
    /// Connections that were read.
    pub connections_count: u64,
    /// Smoothed round trip, mean over connections (`tcpi_rtt`).
    pub rtt_us: Option<f64>,
    /// Its mean deviation, mean over connections (`tcpi_rttvar`).
    pub rttvar_us: Option<f64>,
    /// Smallest round trip of all (`tcpi_min_rtt`).
    pub min_rtt_us: Option<f64>,
    /// Segment size of sending, mean over connections (`tcpi_snd_mss`).
    pub mss_bytes: Option<f64>,
    /// Congestion window, mean over connections (`tcpi_snd_cwnd`).
    pub cwnd_packets: Option<f64>,
    /// Sum of the rates of the last samples (`tcpi_delivery_rate`).
    pub delivery_rate_bps: Option<f64>,
    /// Retransmitted segments, sum (`tcpi_total_retrans`).
    pub retransmits_total: Option<u64>,
    /// Largest distance of reordering that is taken for loss (`tcpi_reordering`).
    pub reordering_packets: Option<u64>,
    /// Times that reordering was seen, sum (`tcpi_reord_seen`).
    pub reordering_total: Option<u64>,
    /// Time with unacknowledged data, sum (`tcpi_busy_time`).
    pub busy_s: Option<f64>,
    /// Of the busy time, waited for the peer's receive window (`tcpi_rwnd_limited`).
    pub rwnd_limited_s: Option<f64>,
    /// Of the busy time, waited for room in the send buffer (`tcpi_sndbuf_limited`).
    pub sndbuf_limited_s: Option<f64>,
    /// Bytes acknowledged by the peer, sum (`tcpi_bytes_acked`), including the preamble.
    pub acked_bytes: Option<u64>,
    /// Bytes received by the kernel, sum (`tcpi_bytes_received`), including the preamble.
    pub received_bytes: Option<u64>,
    /// Segments sent, with retransmissions and bare acknowledgements, sum (`tcpi_segs_out`).
    pub sent_packets: Option<u64>,
    /// Segments that came to the socket, sum (`tcpi_segs_in`).
    pub received_packets: Option<u64>,
    /// Segments that arrived out of order, sum (`tcpi_rcv_ooopack`).
    pub ooo_packets: Option<u64>,
    /// Window that the peer announced last, mean over connections (`tcpi_snd_wnd`).
    pub peer_window_bytes: Option<f64>,
    /// Window that this side announced last, mean over connections (`tcpi_rcv_wnd`).
    pub receive_window_bytes: Option<f64>,
}

/// Of each value, how it is read of one connection, from which field, and how those of two are put together; behind the
/// newer ones the kernel that brought them.
macro_rules! values {
    ($($name:ident: $read:ident $at:ident, $join:ident;)*) => {
        impl TcpSummary {
            /// Of one connection, by the number of a descriptor that the caller keeps open.
            pub(crate) fn read(fd: RawFd) -> Option<Self> {
                let info = TcpInfo::read(fd).ok()?;
                Some(Self {
                    connections_count: 1,
                    $($name: info.$read(offset_of!(tcp_info, $at))),*
                })
            }

            /// Both together; if either does not know a value, nor do both.
            #[must_use]
            pub fn with(self, other: Self) -> Self {
                let counts = (self.connections_count as f64, other.connections_count as f64);
                Self {
                    connections_count: self.connections_count + other.connections_count,
                    $($name: self.$name.zip(other.$name).map(|(x, y)| $join(x, y, counts))),*
                }
            }
        }
    };
}

values! {
    rtt_us: amount tcpi_rtt, mean;
    rttvar_us: amount tcpi_rttvar, mean;
    min_rtt_us: measured tcpi_min_rtt, least;
    mss_bytes: amount tcpi_snd_mss, mean;
    cwnd_packets: amount tcpi_snd_cwnd, mean;
    delivery_rate_bps: bits tcpi_delivery_rate, sum;
    retransmits_total: count tcpi_total_retrans, sum;
    reordering_packets: count tcpi_reordering, most;
    reordering_total: count tcpi_reord_seen, sum; // 5.0
    busy_s: seconds tcpi_busy_time, sum;
    rwnd_limited_s: seconds tcpi_rwnd_limited, sum;
    sndbuf_limited_s: seconds tcpi_sndbuf_limited, sum;
    acked_bytes: wide tcpi_bytes_acked, sum;
    received_bytes: wide tcpi_bytes_received, sum;
    sent_packets: count tcpi_segs_out, sum;
    received_packets: count tcpi_segs_in, sum;
    ooo_packets: count tcpi_rcv_ooopack, sum; // 5.4
    peer_window_bytes: amount tcpi_snd_wnd, mean; // 5.4
    receive_window_bytes: amount tcpi_rcv_wnd, mean; // 6.2
}

fn mean(x: f64, y: f64, (a, b): (f64, f64)) -> f64 {
    (x * a + y * b) / (a + b).max(1.0)
}

fn sum<T: Add<Output = T>>(x: T, y: T, _: (f64, f64)) -> T {
    x + y
}

fn least(x: f64, y: f64, _: (f64, f64)) -> f64 {
    x.min(y)
}

fn most(x: u64, y: u64, _: (f64, f64)) -> u64 {
    x.max(y)
}

impl TcpSummary {
    /// All of them together; `None` of none.
    pub fn of(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(Self::with)
    }

    /// Share of the busy time that it waited for the peer's window.
    pub fn rwnd_limited_ratio(&self) -> Option<f64> {
        ratio(self.rwnd_limited_s, self.busy_s)
    }

    /// Share of the busy time that it waited for room in the send buffer.
    pub fn sndbuf_limited_ratio(&self) -> Option<f64> {
        ratio(self.sndbuf_limited_s, self.busy_s)
    }
}

fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| (part / whole).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(rtt: f64, retransmits: Option<u64>) -> TcpSummary {
        TcpSummary {
            connections_count: 1,
            rtt_us: Some(rtt),
            min_rtt_us: Some(rtt / 2.0),
            retransmits_total: retransmits,
            busy_s: Some(2.0),
            rwnd_limited_s: Some(0.5),
            ..TcpSummary::default()
        }
    }

    #[test]
    fn means_sums_and_least_are_over_all_connections() {
        let three = TcpSummary::of([one(10.0, Some(1)), one(20.0, Some(2)), one(60.0, Some(3))]);
        let three = three.unwrap();
        assert_eq!(three.connections_count, 3);
        assert_eq!((three.rtt_us, three.min_rtt_us), (Some(30.0), Some(5.0)));
        assert_eq!(three.retransmits_total, Some(6));
        assert_eq!(three.rwnd_limited_ratio(), Some(0.25));
        assert_eq!(three.sndbuf_limited_ratio(), None);
    }

    #[test]
    fn what_one_does_not_know_is_not_taken_for_zero() {
        let sum = TcpSummary::of([one(1.0, Some(1)), one(1.0, None)]).unwrap();
        assert_eq!(sum.retransmits_total, None);
        assert_eq!(TcpSummary::of([]), None);
    }
}
