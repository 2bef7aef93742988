//! The sampler's thread reads all sources at each instant and keeps what it read as series.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rxpath_bpf::cost::own_cpu;
use rxpath_core::PathSide;
use rxpath_host::read::netlink::Queues;
use rxpath_host::read::procfs::{schedstat, softnet, stat};
use rxpath_host::read::thread;
use rxpath_host::{HostError, Root};
use rxpath_record::samples::{SampleSeries, SamplerCost, TrialSamples};

use super::{SamplerSources, Shared};
use crate::clock::monotonic_ns;
use crate::testbed::ring::{self, Ring};

/// Sockets of a side that are followed one by one: each lookup takes some microseconds a thousand times a second.
const FOLLOWED: usize = 4;
/// A list of TCP sockets walks a hash table that all namespaces share (some ms); single ones are looked up.
const LIST_EVERY_NS: u64 = 500_000_000;
/// Threads of a side whose run and wait time is read.
const THREADS: usize = 4;
/// `/proc/stat` counts ticks: reading it more often shows nothing new. softnet_stat goes with it.
const TICKS_EVERY_NS: u64 = 10_000_000;

/// What a series belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entity {
    /// The followed sockets of a side together.
    All,
    Socket(usize),
    Thread(usize),
    Cpu(u32),
    /// The ring of the receiving device.
    Ring,
}

impl std::fmt::Display for Entity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Socket(n) => write!(f, "socket{n}"),
            Self::Thread(n) => write!(f, "thread{n}"),
            Self::Cpu(n) => write!(f, "cpu{n}"),
            Self::Ring => f.write_str("ring"),
        }
    }
}

/// Key of a series: side, entity, metric, whether it is a counter. Nothing in it is allocated.
type Key = (PathSide, Entity, &'static str, bool);

#[derive(Default)]
pub(super) struct Work {
    target: SamplerSources,
    /// The host.
    root: Root,
    schedstats: Vec<(PathSide, usize, File)>,
    /// TCP connections of each side, as they were listed last, and when they are listed again.
    listed: Vec<(u64, Vec<Queues>)>,
    /// Sockets by inode in the order in which they were first seen.
    followed: BTreeMap<(PathSide, u32), usize>,
    columns: BTreeMap<Key, Vec<Option<u64>>>,
    t_ns: Vec<i64>,
    ticks_ns: u64,
    unfollowed: u64,
    failed_reads: u64,
    cpus: thread::SeenCpus,
}

impl Work {
    pub(super) fn new(target: SamplerSources) -> Self {
        let open = |side: PathSide, (at, (pid, tid)): (usize, &(i32, i32))| {
            Some((side, at, File::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?))
        };
        let of = |(side, ids): &(PathSide, Vec<(i32, i32)>)| -> Vec<_> {
            ids.iter().take(THREADS).enumerate().filter_map(|each| open(*side, each)).collect()
        };
        let schedstats = target.threads.iter().flat_map(of).collect();
        let listed = vec![(0, Vec::new()); target.sockets.len()];
        Self { target, schedstats, listed, ..Self::default() }
    }

    pub(super) fn run(mut self, shared: &Shared) -> TrialSamples {
        let cpu_from = own_cpu();
        let start_ns = monotonic_ns();
        let (mut next_ns, mut missed) = (start_ns, 0);
        while !shared.stop.load(Ordering::Relaxed) {
            let now = monotonic_ns();
            if now < next_ns {
                // why: the pacing of the samples; each carries the clock at which it was taken.
                std::thread::sleep(Duration::from_nanos(next_ns - now));
                continue;
            }
            missed += (now - next_ns) / self.target.interval_ns;
            next_ns += ((now - next_ns) / self.target.interval_ns + 1) * self.target.interval_ns;
            self.sample(now);
            shared.samples_count.fetch_add(1, Ordering::Release);
        }
        let cost = SamplerCost {
            cpu_s: own_cpu().saturating_sub(cpu_from).as_secs_f64(),
            span_s: (monotonic_ns() - start_ns) as f64 / 1e9,
            samples_count: self.t_ns.len() as u64,
            missed_count: missed,
            cpus: self.cpus.cpus().0,
            unfollowed_sockets_count: self.unfollowed,
            failed_reads_count: self.failed_reads,
        };
        let series = self.columns.into_iter().map(|((side, entity, metric, counter), values)| {
            let entity = entity.to_string();
            SampleSeries { side, entity, metric: metric.into(), counter, values }
        });
        TrialSamples {
            interval_ns: self.target.interval_ns,
            t_ns: self.t_ns,
            series: series.collect(),
            cost,
            ..TrialSamples::default()
        }
    }

    fn sample(&mut self, now: u64) {
        self.cpus.note();
        self.t_ns.push(now as i64);
        for at in 0..self.target.sockets.len() {
            // A failed read is a gap: an empty list would say that the queues were empty.
            match self.found(at, now) {
                Ok(found) => self.sockets(self.target.sockets[at].0, &found),
                Err(_) => self.failed_reads += 1,
            }
        }
        for at in 0..self.schedstats.len() {
            let (side, thread, file) = &self.schedstats[at];
            let (side, entity) = (*side, Entity::Thread(*thread));
            if let Some(time) = read_schedstat(file) {
                self.put((side, entity, "run_ns", true), time.run_ns);
                self.put((side, entity, "wait_ns", true), time.wait_ns);
            }
        }
        if let Some(passed) = self.target.ring.as_mut().and_then(Ring::passed) {
            let mut put = |metric, counter, packets| {
                self.put((PathSide::Rx, Entity::Ring, metric, counter), packets);
            };
            put("handed_packets", true, passed.handed);
            put("refused_packets", true, passed.refused);
            put("polled_packets", true, passed.polled);
            put("occupancy_packets", false, passed.inside());
            put("capacity_packets", false, ring::CAPACITY_PACKETS);
        }
        if now >= self.ticks_ns {
            self.ticks_ns = now + TICKS_EVERY_NS;
            self.ticks();
        }
        // What was not read this time is a gap.
        for values in self.columns.values_mut() {
            values.resize(self.t_ns.len(), None);
        }
    }

    /// The sockets of one side now: UDP's by a list, TCP's first ones by their addresses.
    fn found(&mut self, at: usize, now: u64) -> Result<Vec<Queues>, HostError> {
        let (_, netlink, ask) = &mut self.target.sockets[at];
        if !ask.tcp {
            return netlink.queues(*ask);
        }
        let (next_ns, listed) = &mut self.listed[at];
        if now >= *next_ns {
            *listed = netlink.queues(*ask)?;
            *next_ns = now + LIST_EVERY_NS;
            listed.sort_by_key(|queues| queues.inode);
            self.unfollowed = self.unfollowed.max(listed.len().saturating_sub(FOLLOWED) as u64);
            listed.truncate(FOLLOWED);
        }
        // A connection that has closed is not there; one that cannot be read makes the whole sample a gap.
        let one = |q: &Queues| netlink.queues_of(ask.v6, q.local, q.remote).transpose();
        listed.iter().filter_map(one).collect()
    }

    fn sockets(&mut self, side: PathSide, found: &[Queues]) {
        self.put((side, Entity::All, "sockets_count", false), found.len() as u64);
        let sum = |of: &dyn Fn(&Queues) -> u64| found.iter().map(of).sum::<u64>();
        self.put((side, Entity::All, "unread_bytes", false), sum(&|q| q.unread_bytes.into()));
        // Without the memory of one of them there is no sum.
        let memory: Option<Vec<_>> = found.iter().map(|queues| queues.memory).collect();
        if let Some(memory) = memory {
            let rmem = memory.iter().map(|memory| u64::from(memory.rmem)).sum();
            self.put((side, Entity::All, "rmem_bytes", false), rmem);
            let backlog = memory.iter().map(|memory| u64::from(memory.backlog)).sum();
            self.put((side, Entity::All, "backlog_bytes", false), backlog);
        }
        for queues in found {
            let count = self.followed.keys().filter(|(of, _)| *of == side).count();
            let index = match self.followed.get(&(side, queues.inode)) {
                Some(index) => *index,
                None if count < FOLLOWED => {
                    self.followed.insert((side, queues.inode), count);
                    count
                }
                None => continue,
            };
            self.socket(side, index, queues);
        }
        self.unfollowed = self.unfollowed.max(found.len().saturating_sub(FOLLOWED) as u64);
    }

    fn socket(&mut self, side: PathSide, index: usize, queues: &Queues) {
        let entity = Entity::Socket(index);
        let mut gauge = |metric, counter, value: u32| {
            self.put((side, entity, metric, counter), u64::from(value));
        };
        gauge("unread_bytes", false, queues.unread_bytes);
        gauge("unsent_bytes", false, queues.unsent_bytes);
        if let Some(out_of_order) = queues.out_of_order_total {
            gauge("out_of_order_packets", true, out_of_order);
        }
        let Some(memory) = queues.memory else { return };
        gauge("rmem_bytes", false, memory.rmem);
        gauge("rcvbuf_bytes", false, memory.rcvbuf);
        gauge("backlog_bytes", false, memory.backlog);
        gauge("drops_packets", true, memory.drops);
        gauge("fwd_alloc_bytes", false, memory.fwd_alloc);
        gauge("wmem_queued_bytes", false, memory.wmem_queued);
        gauge("sndbuf_bytes", false, memory.sndbuf);
    }

    /// Softirq and steal ticks of each CPU, and what its receive softirq did.
    fn ticks(&mut self) {
        for (cpu, line) in softnet::read(&self.root).unwrap_or_default() {
            let mut count = |metric, value: u32| {
                self.put((PathSide::Machine, Entity::Cpu(cpu), metric, true), u64::from(value));
            };
            count("processed_packets", line.processed);
            count("dropped_packets", line.dropped);
            count("time_squeeze_count", line.time_squeeze);
        }
        let Ok(times) = self.root.parsed(stat::PATH, stat::parse) else { return };
        for (cpu, times) in times.cpus {
            let entity = Entity::Cpu(cpu);
            self.put((PathSide::Machine, entity, "softirq_ticks", true), times.softirq);
            self.put((PathSide::Machine, entity, "steal_ticks", true), times.steal);
        }
    }

    fn put(&mut self, key: Key, value: u64) {
        let at = self.t_ns.len();
        let column = self.columns.entry(key).or_default();
        column.resize(at.saturating_sub(1), None);
        column.push(Some(value));
    }
}

fn read_schedstat(file: &File) -> Option<schedstat::SchedStat> {
    let mut text = [0u8; 128];
    let length = file.read_at(&mut text, 0).ok()?;
    schedstat::parse(str::from_utf8(&text[..length]).ok()?).ok()
}
