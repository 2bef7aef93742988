//! One interval line of a workload, whatever it speaks: what was done so far, and by which threads.
//!
//! Each protocol counts something else first (datagrams, bytes, transactions, requests); a trial needs the count, who
//! did it and where. Lines are cumulative, so that any two of them give a rate.

use rxpath_load::http::{load::result as load, serve::result as serve};
use rxpath_load::{tcp::result as tcp, udp::result as udp};
use serde::Deserialize;
use serde_json::Value;

use crate::scenario::spec::Protocol;

/// A reading of one side's counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// `CLOCK_MONOTONIC` at the reading.
    pub t_ns: u64,
    /// Attempted so far, where the side tells it apart (a sender of datagrams).
    pub attempted: Option<u64>,
    /// Done so far: what [`Protocol::series`] names.
    pub done: u64,
    /// Datagrams that the receiver's IP saw so far, where the line is made of the kernel's counters.
    pub arrived: Option<u64>,
    /// Done per thread.
    pub thread_done: Vec<u64>,
    /// CPU that each thread was on.
    pub thread_cpus: Vec<u32>,
    /// Done per socket.
    pub socket_done: Vec<u64>,
    /// `sk_rmem_alloc` per socket.
    pub socket_rmem_bytes: Vec<u64>,
    /// `SKMEMINFO_DROPS` per socket.
    pub socket_drops_packets: Vec<u64>,
    /// Blocked on the send buffer so far, all threads.
    pub blocked_s: Option<f64>,
}

impl Line {
    /// Reads what a workload of `protocol` printed; `None` when it is not of that form.
    pub fn read(protocol: Protocol, is_server: bool, value: &Value) -> Option<Self> {
        match (protocol, is_server) {
            (Protocol::Udp, _) => udp::Interval::deserialize(value).ok().map(Self::from),
            (Protocol::TcpStream, _) => tcp::Interval::deserialize(value).ok().map(Self::stream),
            (Protocol::TcpRr | Protocol::TcpCrr, _) => {
                tcp::Interval::deserialize(value).ok().map(Self::transactions)
            }
            (Protocol::Http, false) => load::Interval::deserialize(value).ok().map(|it| {
                Self::requests(it.t_ns, it.requests_total, it.thread_requests_total, it.thread_cpus)
            }),
            (Protocol::Http, true) => serve::Interval::deserialize(value).ok().map(|it| {
                Self::requests(it.t_ns, it.requests_total, it.thread_requests_total, it.thread_cpus)
            }),
        }
    }

    /// One of the two directions is idle unless the stream goes both ways.
    fn stream(it: tcp::Interval) -> Self {
        let threads = it.thread_delivered_bytes.iter().zip(&it.thread_sent_bytes);
        let thread_done = threads.map(|(delivered, sent)| delivered + sent).collect();
        Self::requests(it.t_ns, it.delivered_bytes + it.sent_bytes, thread_done, it.thread_cpus)
    }

    fn transactions(it: tcp::Interval) -> Self {
        Self::requests(it.t_ns, it.transactions_total, it.thread_transactions_total, it.thread_cpus)
    }

    fn requests(t_ns: u64, done: u64, thread_done: Vec<u64>, thread_cpus: Vec<u32>) -> Self {
        Self { t_ns, done, thread_done, thread_cpus, ..Self::default() }
    }
}

impl From<udp::Interval> for Line {
    fn from(it: udp::Interval) -> Self {
        Self {
            t_ns: it.t_ns,
            attempted: it.offered_packets,
            // What an XDP program counts and drops is done: that is its task.
            done: it.packets + it.dropped_in_xdp_packets.unwrap_or(0),
            arrived: None,
            thread_done: it.thread_packets,
            thread_cpus: it.thread_cpus,
            socket_done: it.socket_packets,
            socket_rmem_bytes: it.socket_rmem_bytes,
            socket_drops_packets: it.socket_drops_packets,
            blocked_s: it.blocked_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_our_udp_workloads_print_is_read_whole() {
        let printed = udp::Interval {
            t_ns: 5,
            offered_packets: Some(9),
            packets: 8,
            bytes: 256,
            thread_packets: vec![3, 5],
            thread_cpus: vec![0, 1],
            socket_packets: vec![8],
            socket_rmem_bytes: vec![768],
            socket_drops_packets: vec![1],
            blocked_s: Some(0.5),
            dropped_in_xdp_packets: Some(4),
        };
        let read =
            Line::read(Protocol::Udp, false, &serde_json::to_value(&printed).unwrap()).unwrap();
        let wanted = Line {
            arrived: None,
            t_ns: 5,
            attempted: Some(9),
            done: 12,
            thread_done: vec![3, 5],
            thread_cpus: vec![0, 1],
            socket_done: vec![8],
            socket_rmem_bytes: vec![768],
            socket_drops_packets: vec![1],
            blocked_s: Some(0.5),
        };
        assert_eq!(read, wanted);
    }

    #[test]
    fn each_protocol_counts_its_own() {
        let http = load::Interval {
            requests_total: 7,
            thread_requests_total: vec![7],
            ..load::Interval::default()
        };
        let printed = serde_json::to_value(http).unwrap();
        let line = Line::read(Protocol::Http, false, &printed).unwrap();
        assert_eq!((line.done, line.thread_done.as_slice()), (7, [7].as_slice()));
        assert_eq!(Line::read(Protocol::TcpRr, false, &printed), None, "no transactions in it");
        let tcp = tcp::Interval {
            delivered_bytes: 9,
            thread_delivered_bytes: vec![4, 5],
            thread_sent_bytes: vec![0, 0],
            ..tcp::Interval::default()
        };
        let printed = serde_json::to_value(tcp).unwrap();
        let line = Line::read(Protocol::TcpStream, true, &printed).unwrap();
        assert_eq!((line.done, line.thread_done.as_slice()), (9, [4, 5].as_slice()));
    }
}
