//! Interval lines made from the kernel's counters, for programs that print none of ours.
//!
//! A receiver's datagrams are `Udp.InDatagrams`, a sender's `Udp.OutDatagrams + Udp.SndbufErrors` (what the
//! kernel accepted). **Caveat** both count aggregates for `UDP_GRO` receivers and GSO senders: what IP saw at the receiver,
//! in datagrams, stands next to them.

use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::Signal;
use rxpath_core::{IntoMap, PathSide};
use rxpath_host::Root;
use rxpath_host::read::snapshot::Reader;
use rxpath_record::counters::Snapshot;

use super::line::Line;
use super::several::lines::{between, together};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::shared::locked;
use crate::testbed::{Started, Testbed};

/// Time between two readings.
const EVERY_NS: u64 = 50_000_000;

/// Reads both sides' counters again and again, when a program needs it.
pub struct Watcher<'a> {
    testbed: &'a dyn Testbed,
    wanted: bool,
    next_ns: u64,
    tx: Vec<Line>,
    rx: Vec<Line>,
    /// Where the hosts read themselves.
    told: Vec<(PathSide, Told)>,
}

/// The lines of a program that reads the counters of its host.
struct Told {
    lines: Arc<Mutex<Vec<Line>>>,
    program: Started,
    reader: Option<JoinHandle<()>>,
}

impl<'a> Watcher<'a> {
    /// A watcher that reads nothing unless it is wanted: readings cost CPU time on a measured machine.
    pub fn new(testbed: &'a dyn Testbed, wanted: bool) -> Result<Self, LabError> {
        let programs = if wanted { testbed.counter_lines()? } else { Vec::new() };
        let told = programs.into_iter().map(|(side, program)| (side, Told::of(side, program)));
        let told: Vec<_> = told.collect();
        let wanted = wanted && told.is_empty();
        Ok(Self { testbed, wanted, next_ns: 0, tx: Vec::new(), rx: Vec::new(), told })
    }

    /// Reads the counters when it is time.
    pub fn look(&mut self) {
        let now = monotonic_ns();
        if self.wanted && now >= self.next_ns {
            self.next_ns = now + EVERY_NS;
            let snapshot = self.testbed.snapshot();
            self.tx.push(sent(&snapshot));
            self.rx.push(received(&snapshot));
        }
    }

    fn told(&self, side: PathSide) -> Vec<Line> {
        let of_side = self.told.iter().filter(|(own, _)| *own == side);
        let each: Vec<Vec<Line>> = of_side.map(|(_, told)| locked(&told.lines).clone()).collect();
        together(&each)
    }

    /// The receiver's lines so far.
    pub fn receiver(&self) -> Vec<Line> {
        if self.told.is_empty() { self.rx.clone() } else { self.told(PathSide::Rx) }
    }

    /// The sender's lines and the receiver's.
    pub fn into_lines(self) -> (Vec<Line>, Vec<Line>) {
        if self.told.is_empty() {
            return (self.tx, self.rx);
        }
        let (tx, rx) = (self.told(PathSide::Tx), self.told(PathSide::Rx));
        // A sender's line says too what the receiver's IP saw by then.
        let seen =
            |line: Line| between(&rx, line.t_ns).map(|rx| Line { arrived: rx.arrived, ..line });
        (tx.into_iter().filter_map(seen).collect(), rx)
    }
}

impl Told {
    fn of(side: PathSide, mut program: Started) -> Self {
        let lines = Arc::<Mutex<Vec<Line>>>::default();
        let (kept, clock) = (Arc::clone(&lines), program.clock);
        let reader = program.stdout.take().map(|pipe| {
            std::thread::spawn(move || {
                for text in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let Ok(snapshot) = serde_json::from_str::<Snapshot>(&text) else { continue };
                    let line = of_host(side, snapshot);
                    locked(&kept).push(Line { t_ns: clock.from_host_ns(line.t_ns), ..line });
                }
            })
        });
        Self { lines, program, reader }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.program.process.signal(Signal::SIGKILL);
        self.program.process.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The counters of this host that lines are made of, twenty times a second as a line of JSON, until nobody reads them.
pub fn follow(mut to: impl Write) -> Result<(), LabError> {
    let mut reader = Reader::all(&Root::host());
    loop {
        let values = reader.read().values.into_iter().filter(|(name, _)| is_used(name)).into_map();
        let snapshot = Snapshot { values, t_ns: monotonic_ns() as i64, ..Snapshot::default() };
        let text = serde_json::to_string(&snapshot)
            .map_err(|error| LabError::not_json("counters", &error))?;
        if writeln!(to, "{text}").and_then(|()| to.flush()).is_err() {
            return Ok(());
        }
        // why: the pace of the lines.
        std::thread::sleep(Duration::from_nanos(EVERY_NS));
    }
}

fn is_used(name: &str) -> bool {
    ["Udp.", "Udp6.", "IpExt.In", "Ip6.In", "Icmp.InMsgs", "Icmp6.InMsgs", "Tcp.InSegs"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// A line from a host's own names of its counters.
fn of_host(side: PathSide, read: Snapshot) -> Line {
    let values = read.values.into_iter().map(|(name, value)| (format!("{side}/{name}"), value));
    let snapshot = Snapshot { values: values.into_map(), ..read };
    if side == PathSide::Tx { sent(&snapshot) } else { received(&snapshot) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_s_own_line_is_that_of_its_side() {
        let values = [("Udp.InDatagrams", 5), ("Udp.OutDatagrams", 7), ("IpExt.InNoECTPkts", 9)];
        let read = || Snapshot {
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            t_ns: 3,
            ..Snapshot::default()
        };
        assert!(values.iter().all(|(name, _)| is_used(name)));
        let rx = of_host(PathSide::Rx, read());
        assert_eq!((rx.t_ns, rx.done, rx.arrived), (3, 5, Some(9)));
        assert_eq!(of_host(PathSide::Tx, read()).done, 7);
    }
}
