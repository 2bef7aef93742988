//! Latency of stages from reading to reading, and what it sums up to.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::measured::{Outlier, StageName, StageTimes};
use rxpath_host::read::identity::network_namespace;
use rxpath_record::watch::{LatencyRow, StageLatency};

use super::rows::since;

/// The protocol of a socket.
const UDP: u32 = nix::libc::IPPROTO_UDP as u32;

/// The last reading, and the sums since they were taken.
#[derive(Debug, Default)]
pub(super) struct Latency {
    before: Vec<StageTimes>,
    /// When the last latency of the reading before that one ended.
    older_ns: u64,
    /// What was measured since they were asked for last.
    pub(super) sums: BTreeMap<String, StageLatency>,
}

impl Latency {
    /// Ports of UDP in this network namespace, each with a process that was seen to read there since the reading before: `/proc`
    /// may not show who has its sockets open. Who read there earlier may have ended, and its number and port may be another's.
    pub(super) fn readers(&self) -> BTreeSet<(u16, i32)> {
        let here = |own| readers(&self.before, own, self.older_ns);
        network_namespace().map_or_else(|_| BTreeSet::new(), here)
    }

    /// What was measured since the last reading.
    pub(super) fn since(&mut self, now: Vec<StageTimes>) -> Vec<LatencyRow> {
        let sum_s = |stage: &StageTimes| stage.mean_ns * stage.latencies_count as f64 / 1e9;
        let mut rows = Vec::new();
        for stage in &now {
            let before = self.before.iter().find(|old| old.stage == stage.stage);
            let histogram = since(&stage.latency_ns, before.map(|old| &old.latency_ns));
            let upper = |q: f64| histogram.quantile(q).map_or(0, |(_, high)| high);
            let name = stage.stage.word();
            let (count, p50_ns, p99_ns) = (histogram.count(), upper(0.5), upper(0.99));
            rows.push(LatencyRow { stage: name.into(), count, p50_ns, p99_ns });
            let sum = self.sums.entry(name.into()).or_default();
            sum.histogram_ns.add(&histogram);
            sum.sum_s += sum_s(stage) - before.map_or(0.0, sum_s);
        }
        self.older_ns = last_ns(&self.before);
        self.before = now;
        rows
    }
}

/// When the last of all ended.
fn last_ns(stages: &[StageTimes]) -> u64 {
    let all = stages.iter().flat_map(|stage| &stage.outliers);
    all.map(|one| one.t_ns).max().unwrap_or(0)
}

/// Ports and processes of the reads after that time.
fn readers(stages: &[StageTimes], netns: u64, after_ns: u64) -> BTreeSet<(u16, i32)> {
    let reads = stages.iter().filter(|stage| stage.stage == StageName::SocketToRead);
    let reads = reads.flat_map(|stage| &stage.outliers).filter(|read| read.t_ns > after_ns);
    let is_own =
        |read: &&Outlier| u64::from(read.netns) == netns && read.protocol == UDP && read.pid > 0;
    reads.filter(is_own).map(|read| (read.port, read.pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_a_port_is_known_of_udp_in_this_namespace_since_the_reading_before() {
        let read = |port, netns, protocol, pid| Outlier {
            t_ns: 5,
            port,
            netns,
            protocol,
            pid,
            ..Outlier::default()
        };
        let of = |stage, outliers| StageTimes { stage, outliers, ..StageTimes::default() };
        let reads = vec![
            Outlier { t_ns: 4, ..read(53, 7, UDP, 811) },
            read(53, 7, UDP, 812),
            read(53, 7, UDP, 812),
            read(54, 8, UDP, 813),
            read(80, 7, 6, 814),
            // Of a task that is none of this pid namespace's.
            read(55, 7, UDP, 0),
        ];
        let interrupted = vec![read(53, 7, UDP, 99)];
        let stages =
            [of(StageName::ReceiveToSocket, interrupted), of(StageName::SocketToRead, reads)];
        assert_eq!(readers(&stages, 7, 4), [(53, 812)].into());
        assert_eq!(readers(&stages, 7, 0), [(53, 811), (53, 812)].into());
        assert_eq!(readers(&stages, 7, last_ns(&stages)), BTreeSet::new());
    }
}
