//! One interval line of a workload, whatever it speaks: what was done so far, and by which threads.
//!
//! Each protocol counts something else first (datagrams, bytes, transactions, requests); a trial needs the count, who
//! did it and where. Lines are cumulative, so that any two of them give a rate.

use serde_json::Value;

use crate::scenario::spec::Protocol;

/// A reading of one side's counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// `CLOCK_MONOTONIC` at the reading.
    pub t_ns: u64,
    /// Attempted so far, where the side tells it apart (a sender of datagrams).
    pub attempted: Option<u64>,
    /// Done so far: what [`Protocol::counted`] names.
    pub done: u64,
    /// Datagrams that the receiver's IP saw so far, where the line is made of the kernel's counters.
    pub arrived: Option<u64>,
    /// Payload bytes so far.
    pub bytes: u64,
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
    /// Reads what a workload of `protocol` printed; `None` when it lacks the clock or the count.
    pub fn read(protocol: Protocol, value: &Value) -> Option<Self> {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let list = |key: &str| -> Vec<u64> {
            let all = value.get(key).and_then(Value::as_array);
            all.into_iter().flatten().filter_map(Value::as_u64).collect()
        };
        let counted = protocol.counted();
        let done = match protocol {
            // One of the two stands still unless the stream goes both ways.
            Protocol::TcpStream => number("delivered_bytes")? + number("sent_bytes")?,
            _ => number(counted)?,
        };
        let thread_done = match protocol {
            Protocol::TcpStream => {
                let pairs =
                    list("thread_delivered_bytes").into_iter().zip(list("thread_sent_bytes"));
                pairs.map(|(delivered, sent)| delivered + sent).collect()
            }
            _ => list(&format!("thread_{counted}")),
        };
        Some(Self {
            t_ns: number("t_ns")?,
            arrived: None,
            attempted: number(&format!("offered_{counted}")),
            done,
            bytes: number("bytes").unwrap_or(0),
            thread_done,
            thread_cpus: list("thread_cpus").into_iter().map(|cpu| cpu as u32).collect(),
            socket_done: list(&format!("socket_{counted}")),
            socket_rmem_bytes: list("socket_rmem_bytes"),
            socket_drops_packets: list("socket_drops_packets"),
            blocked_s: value.get("blocked_s").and_then(Value::as_f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_load::udp::result::Interval;
    use serde_json::json;

    #[test]
    fn what_our_udp_workloads_print_is_read_whole() {
        let printed = Interval {
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
        };
        let read = Line::read(Protocol::Udp, &serde_json::to_value(&printed).unwrap()).unwrap();
        let wanted = Line {
            arrived: None,
            t_ns: 5,
            attempted: Some(9),
            done: 8,
            bytes: 256,
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
        let value = json!({
            "t_ns": 1, "requests_total": 7, "thread_requests_total": [7],
            "delivered_bytes": 9, "sent_bytes": 0, "thread_delivered_bytes": [4, 5], "thread_sent_bytes": [0, 0],
        });
        let line = Line::read(Protocol::Http, &value).unwrap();
        assert_eq!((line.done, line.thread_done.as_slice()), (7, [7].as_slice()));
        let line = Line::read(Protocol::TcpStream, &value).unwrap();
        assert_eq!((line.done, line.thread_done.as_slice()), (9, [4, 5].as_slice()));
        assert_eq!(Line::read(Protocol::TcpRr, &value), None, "no transactions in it");
    }
}
