//! Interval lines made from the kernel's counters, for programs that print none of ours.
//!
//! A receiver's datagrams are `Udp.InDatagrams`, a sender's `Udp.OutDatagrams + Udp.SndbufErrors` (what the
//! kernel accepted). **Caveat** both count aggregates for `UDP_GRO` receivers and GSO senders: what IP saw at the receiver,
//! in datagrams, stands next to them.

use rxpath_record::counters::Snapshot;

use super::line::Line;
use crate::testbed::Testbed;

/// Time between two readings.
const EVERY_NS: u64 = 50_000_000;

/// Reads both sides' counters again and again, when a program needs it.
pub struct Watcher<'a> {
    testbed: &'a dyn Testbed,
    wanted: bool,
    next_ns: u64,
    tx: Vec<Line>,
    rx: Vec<Line>,
}

impl<'a> Watcher<'a> {
    /// A watcher that reads nothing unless it is wanted: readings cost CPU time on a measured machine.
    pub fn new(testbed: &'a dyn Testbed, wanted: bool) -> Self {
        Self { testbed, wanted, next_ns: 0, tx: Vec::new(), rx: Vec::new() }
    }

    /// Reads the counters when it is time.
    pub fn look(&mut self) {
        let now = self.testbed.clock_ns();
        if self.wanted && now >= self.next_ns {
            self.next_ns = now + EVERY_NS;
            let snapshot = self.testbed.snapshot();
            self.tx.push(sent(&snapshot));
            self.rx.push(received(&snapshot));
        }
    }

    /// The receiver's lines so far.
    pub fn receiver(&self) -> &[Line] {
        &self.rx
    }

    /// The sender's lines and the receiver's.
    pub fn into_lines(self) -> (Vec<Line>, Vec<Line>) {
        (self.tx, self.rx)
    }
}

/// The counter of both address families added.
pub fn both_families(get: impl Fn(&str) -> Option<u64>, side: &str, counter: &str) -> u64 {
    ["Udp", "Udp6"].iter().filter_map(|group| get(&format!("{side}/{group}.{counter}"))).sum()
}

fn sent(snapshot: &Snapshot) -> Line {
    let get = |name: &str| snapshot.values.get(name).copied();
    let sent = both_families(get, "tx", "OutDatagrams") + both_families(get, "tx", "SndbufErrors");
    line(snapshot, sent, Some(sent))
}

fn received(snapshot: &Snapshot) -> Line {
    let get = |name: &str| snapshot.values.get(name).copied();
    line(snapshot, both_families(get, "rx", "InDatagrams"), None)
}

fn line(snapshot: &Snapshot, done: u64, attempted: Option<u64>) -> Line {
    let arrived = Some(arrived(snapshot));
    Line { t_ns: snapshot.t_ns as u64, done, attempted, arrived, ..Line::default() }
}

/// Datagrams that IP saw: the ECN counters, which add `gso_segs` (net/ipv4/ip_input.c `ip_rcv_core`), less what was handed to
/// other protocols.
fn arrived(snapshot: &Snapshot) -> u64 {
    let sum = |names: &[&str]| -> u64 {
        names.iter().filter_map(|name| snapshot.values.get(&format!("rx/{name}"))).sum()
    };
    let ecn = ["InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"];
    let all = ["IpExt", "Ip6"]
        .map(|group| sum(&ecn.map(|it| format!("{group}.{it}")).each_ref().map(String::as_str)));
    all.iter().sum::<u64>().saturating_sub(sum(&["Icmp.InMsgs", "Icmp6.InMsgs", "Tcp.InSegs"]))
}
