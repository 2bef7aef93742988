//! What the BPF probes saw in a window: softirqs and polls, drops, latency, and whose CPU time it was.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rxpath_bpf::ProbeCost;
use rxpath_bpf::account::calibrate::Calibration;
use rxpath_bpf::account::row::PF_KTHREAD;
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::drops::{Drop, Drops};
use rxpath_bpf::filter::Filter;
use rxpath_bpf::object::Loaded;
use rxpath_bpf::polls::{CpuPolls, NapiPolls, Polls, PollsReading};
use rxpath_bpf::probe::{Probe, lost};
use rxpath_bpf::stages::{Pace, Stage, StageName, Stages};
use rxpath_bpf::steal::{Evidence, Steal, answer};
use rxpath_core::Log2;
use rxpath_host::HostError;
use rxpath_record::watch::{LatencyRow, ProbeShare};

use super::cost::{Meter, Running};

/// The running probes and their last reading.
#[derive(Debug)]
pub struct Probes {
    account: Account,
    polls: Polls,
    drops: Option<Drops>,
    stages: Option<Stages>,
    /// Probes that did not start, with the reason.
    missing: BTreeMap<String, String>,
    before: Reading,
    polled: PollsReading,
    dropped: HashMap<DropKey, u64>,
    /// When rows of drops were last forgotten.
    forgot: Instant,
    waited: Vec<Stage>,
    meter: Meter,
}

/// A row of drops goes after so long without one: there is one for each port that was ever tried.
const QUIET: Duration = Duration::from_secs(60);

/// What makes two drops the same: everything that the kernel's table is keyed by (`struct drop_key` of the probe).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DropKey {
    place: String,
    reason: String,
    ifindex: u32,
    netns: u32,
    protocol: String,
    port: u16,
    socket_inode: u64,
}

impl DropKey {
    fn of(drop: &Drop) -> Self {
        Self {
            place: drop.place.clone(),
            reason: drop.reason.clone(),
            ifindex: drop.ifindex,
            netns: drop.netns,
            protocol: drop.protocol.clone(),
            port: drop.port,
            socket_inode: drop.socket_inode,
        }
    }
}

/// A window.
#[derive(Debug, Default)]
pub struct Seen {
    /// Whose time it was.
    pub steal: Option<Steal>,
    /// The task that used most of each CPU.
    pub busiest: BTreeMap<u32, String>,
    /// NET_RX of each CPU: runs, ns in them.
    pub net_rx: BTreeMap<u32, (u64, u64)>,
    /// NAPI threads of each CPU: ns that they ran, what interrupted them taken off.
    pub napi_threads: BTreeMap<u32, u64>,
    /// Polls of each NAPI on each CPU.
    pub napis: Vec<NapiPolls>,
    /// Packets dropped in the window, and since watching began.
    pub drops: Vec<(Drop, u64)>,
    /// Latency of stages.
    pub latency: Vec<LatencyRow>,
    /// What the probes can't tell.
    pub gaps: BTreeMap<String, String>,
    /// What they cost, as it was measured last.
    pub cost: Option<ProbeShare>,
}

impl Probes {
    /// Starts every probe that this kernel takes.
    ///
    /// **Errors** when the probes of CPU time or of softirqs can't run; the others leave a gap.
    pub fn start() -> Result<Self, HostError> {
        let account = Account::start()?;
        let all = Filter::default();
        let polls = Polls::start(&all, false)?;
        let mut missing = BTreeMap::new();
        let mut keep =
            |what: &str, error: HostError| drop(missing.insert(what.to_owned(), error.to_string()));
        let drops = Drops::start(&all).map_err(|error| keep("drops by reason", error)).ok();
        let stages = Stages::start(&all, Pace::ByTurns);
        let stages = stages.map_err(|error| keep("latency of stages", error)).ok();
        let (before, polled) = (account.read()?, polls.read()?);
        let mut probes = Self {
            account,
            polls,
            drops,
            stages,
            missing,
            before,
            polled,
            dropped: HashMap::new(),
            forgot: Instant::now(),
            waited: Vec::new(),
            meter: Meter::new(),
        };
        probes.measure_cost();
        Ok(probes)
    }

    /// To be called some times a window: stages are looked at by turns, and what everything costs is measured at times.
    pub fn note(&mut self) {
        let always = always(&self.account, &self.polls, self.drops.as_ref());
        self.meter.note(&Running { always: &always, stages: self.stages.as_ref() });
        if let Some(stages) = &mut self.stages {
            stages.note();
        }
        self.measure_cost();
    }

    fn measure_cost(&mut self) {
        let always = always(&self.account, &self.polls, self.drops.as_ref());
        self.meter.measure(&Running { always: &always, stages: self.stages.as_ref() });
    }

    /// Those that run.
    fn parts(&self) -> Vec<&dyn Probe> {
        let mut parts: Vec<&dyn Probe> = vec![&self.account, &self.polls];
        parts.extend(self.drops.as_ref().map(|probe| probe as &dyn Probe));
        parts.extend(self.stages.as_ref().map(|probe| probe as &dyn Probe));
        parts
    }

    fn cost(&mut self) -> Option<ProbeShare> {
        let always = always(&self.account, &self.polls, self.drops.as_ref());
        let cost = self.meter.until_now(&Running { always: &always, stages: self.stages.as_ref() });
        cost.map(|cost| ProbeShare { lost_count: lost(&self.parts()), ..cost })
    }

    /// What happened since the reading before.
    pub fn read(&mut self) -> Result<Seen, HostError> {
        // First: the caller has just read what the sockets say of the same packets.
        let drops = self.drops()?;
        let (now, polled) = (self.account.read()?, self.polls.read()?);
        let (steal, _) = answer(Evidence {
            before: &self.before,
            after: &now,
            calibration: Calibration::none("a live view does not stop to calibrate"),
            // A frame has it beside this answer.
            cost: ProbeCost::default(),
            probes: self.account.programs(),
            flows_looked: Duration::ZERO,
        });
        let mut gaps = self.missing.clone();
        let why = "not estimated here: `rxpath steal` calibrates it";
        gaps.insert("entry and exit of interrupts".into(), why.into());
        gaps.extend(now.warnings.iter().map(|warning| (warning.code.clone(), warning.to_string())));
        let window = now.since(&self.before);
        if window.lost() > 0 {
            let why =
                format!("{} slices or polls found no room in the kernel's table", window.lost());
            gaps.insert("tasks".into(), why);
        }
        let lost = lost(&self.parts());
        if lost > 0 {
            let why = format!("{lost} found no room in a map of the probes since watching began");
            gaps.insert("records of the probes".into(), why);
        }
        let seen = Seen {
            busiest: busiest(&window),
            napi_threads: napi_threads(&window),
            net_rx: net_rx(&polled.cpus, &self.polled.cpus),
            napis: napis(&polled.napis, &self.polled.napis),
            drops,
            latency: self.latency()?,
            cost: self.cost(),
            steal: Some(steal),
            gaps,
        };
        (self.before, self.polled) = (now, polled);
        Ok(seen)
    }

    fn drops(&mut self) -> Result<Vec<(Drop, u64)>, HostError> {
        let Some(probe) = &self.drops else { return Ok(Vec::new()) };
        let rows = dropped(&mut self.dropped, probe.read()?);
        if self.forgot.elapsed() >= QUIET / 4 {
            self.forgot = Instant::now();
            probe.forget(QUIET)?;
        }
        Ok(rows)
    }

    fn latency(&mut self) -> Result<Vec<LatencyRow>, HostError> {
        let Some(probe) = &self.stages else { return Ok(Vec::new()) };
        let now = probe.read()?;
        let rows = now.iter().map(|stage| {
            let before = self.waited.iter().find(|old| old.stage == stage.stage);
            let histogram = since(&stage.latency_ns, before.map(|old| &old.latency_ns));
            let upper = |q: f64| histogram.quantile(q).map_or(0, |(_, high)| high);
            LatencyRow {
                stage: match stage.stage {
                    StageName::ReceiveToSocket => "receive-to-socket".into(),
                    StageName::SocketToRead => "socket-to-read".into(),
                },
                count: histogram.count(),
                p50_ns: upper(0.5),
                p99_ns: upper(0.99),
            }
        });
        let rows = rows.collect();
        self.waited = now;
        Ok(rows)
    }
}

/// The objects whose programs run all the time.
fn always<'a>(account: &'a Account, polls: &'a Polls, drops: Option<&'a Drops>) -> Vec<&'a Loaded> {
    [account.loaded(), polls.loaded()].into_iter().chain(drops.map(Probe::loaded)).collect()
}

/// What each kind of drop grew by since the reading before, with its total.
fn dropped(before: &mut HashMap<DropKey, u64>, read: Vec<Drop>) -> Vec<(Drop, u64)> {
    let mut found: Vec<(DropKey, Drop)> = Vec::new();
    let mut places: HashMap<DropKey, usize> = HashMap::new();
    for drop in read {
        let key = DropKey::of(&drop);
        // Two instructions may have one name (functions of that name in two files): their drops are one row here.
        if let Some(at) = places.get(&key) {
            found[*at].1.packets += drop.packets;
            continue;
        }
        places.insert(key.clone(), found.len());
        found.push((key, drop));
    }
    // A row that was forgotten begins anew.
    before.retain(|key, _| places.contains_key(key));
    let rows = found.into_iter().map(|(key, drop)| {
        let total = drop.packets;
        let old = before.insert(key, total).filter(|old| *old <= total).unwrap_or(0);
        (Drop { packets: total - old, ..drop }, total)
    });
    rows.collect()
}

fn since(now: &Log2, before: Option<&Log2>) -> Log2 {
    let Some(before) = before else { return now.clone() };
    let old = before.buckets.iter().chain(std::iter::repeat(&0));
    let buckets: Vec<u64> =
        now.buckets.iter().zip(old).map(|(now, old)| now.saturating_sub(*old)).collect();
    Log2::of(&buckets)
}

/// The task that used most of each CPU, the idle task left out.
fn busiest(window: &Reading) -> BTreeMap<u32, String> {
    let mut most: BTreeMap<u32, (u64, String)> = BTreeMap::new();
    for row in window.tasks.iter().filter(|row| row.key.pid != 0) {
        let found = most.entry(row.key.cpu).or_default();
        if row.charge.on_cpu_ns > found.0 {
            *found = (row.charge.on_cpu_ns, format!("{} ({})", row.comm, row.key.pid));
        }
    }
    most.into_iter().map(|(cpu, (_, name))| (cpu, name)).collect()
}

/// A NAPI that polls in a thread of its own (`napi/DEV-ID`, net/core/dev.c `napi_kthread_create`) is in no softirq.
pub(super) const NAPI_THREAD: &str = "napi/";

fn napi_threads(window: &Reading) -> BTreeMap<u32, u64> {
    let mut ran = BTreeMap::new();
    let threads = window.tasks.iter().filter(|row| row.flags & PF_KTHREAD != 0);
    for row in threads.filter(|row| row.comm.starts_with(NAPI_THREAD)) {
        let own_ns = row.charge.on_cpu_ns.saturating_sub(row.charge.interrupted_ns());
        *ran.entry(row.key.cpu).or_default() += own_ns;
    }
    ran
}

fn net_rx(now: &[CpuPolls], before: &[CpuPolls]) -> BTreeMap<u32, (u64, u64)> {
    let earlier =
        |cpu: u32| before.iter().find(|old| old.cpu == cpu).map_or((0, 0), CpuPolls::net_rx);
    let one = |cpu: &CpuPolls| {
        let ((runs, ns), (runs_before, ns_before)) = (cpu.net_rx(), earlier(cpu.cpu));
        (cpu.cpu, (runs.saturating_sub(runs_before), ns.saturating_sub(ns_before)))
    };
    now.iter().map(one).collect()
}

fn napis(now: &[NapiPolls], before: &[NapiPolls]) -> Vec<NapiPolls> {
    let key = |napi: &NapiPolls| (napi.napi_id, napi.ifindex, napi.netns, napi.cpu);
    let old: HashMap<_, &NapiPolls> = before.iter().map(|napi| (key(napi), napi)).collect();
    let one = |napi: &NapiPolls| {
        let before = old.get(&key(napi)).copied();
        let less = |pick: fn(&NapiPolls) -> u64| pick(napi).saturating_sub(before.map_or(0, pick));
        NapiPolls {
            polls_count: less(|napi| napi.polls_count),
            packets: less(|napi| napi.packets),
            exhausted_count: less(|napi| napi.exhausted_count),
            poll_ns: less(|napi| napi.poll_ns),
            packets_per_poll: since(
                &napi.packets_per_poll,
                before.map(|old| &old.packets_per_poll),
            ),
            ..napi.clone()
        }
    };
    now.iter().map(one).filter(|napi| napi.polls_count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_bpf::account::row::{Charge, TaskKey, TaskRow};

    #[test]
    fn drops_that_differ_in_one_part_of_the_kernels_key_are_two_rows() {
        let base = Drop { place: "f+0x1".into(), reason: "R".into(), ..Drop::default() };
        let variants = [
            Drop { protocol: "ipv6".into(), ..base.clone() },
            Drop { protocol: "ip".into(), ..base.clone() },
            Drop { socket_inode: 9, ..base.clone() },
            Drop { netns: 9, ..base.clone() },
            Drop { ifindex: 9, ..base.clone() },
            Drop { port: 9, ..base.clone() },
            Drop { reason: "S".into(), ..base },
        ];
        let read = |add: u64| -> Vec<Drop> {
            let counted = variants.iter().zip(1..);
            counted.map(|(drop, n)| Drop { packets: 100 * n + add, ..drop.clone() }).collect()
        };
        let mut before = HashMap::new();
        dropped(&mut before, read(0));
        let second: Vec<u64> =
            dropped(&mut before, read(0)).iter().map(|(drop, _)| drop.packets).collect();
        assert_eq!(second, [0; 7], "nothing was dropped in between");
        let third = dropped(&mut before, read(5));
        assert!(third.iter().all(|(drop, _)| drop.packets == 5), "{third:?}");
        assert_eq!(third[2].1, 305);
    }

    #[test]
    fn a_row_that_was_forgotten_begins_anew() {
        let drop = |packets| Drop { place: "f+0x1".into(), packets, ..Drop::default() };
        let mut before = HashMap::new();
        dropped(&mut before, vec![drop(100)]);
        assert!(dropped(&mut before, Vec::new()).is_empty() && before.is_empty());
        let again = dropped(&mut before, vec![drop(7)]);
        assert_eq!((again[0].0.packets, again[0].1), (7, 7));
        // Forgotten and there again from one reading to the next.
        let less = dropped(&mut before, vec![drop(3)]);
        assert_eq!((less[0].0.packets, less[0].1), (3, 3));
    }

    #[test]
    fn napi_threads_are_known_by_their_name_and_by_being_the_kernels() {
        let row = |pid: u32, comm: &str, flags: u32, cpu: u32| TaskRow {
            key: TaskKey { start_ns: 1, pid, cpu },
            charge: Charge { on_cpu_ns: 100, hardirq_ns: 10, net_rx_ns: 20, ..Charge::default() },
            tgid: pid,
            parent: 2,
            flags,
            comm: comm.into(),
            first_ns: 0,
            last_ns: 0,
        };
        let window = Reading {
            tasks: vec![
                row(7, "napi/veth-8193", PF_KTHREAD, 0),
                row(8, "napi/veth-8194", PF_KTHREAD, 0),
                row(7, "napi/veth-8193", PF_KTHREAD, 1),
                row(9, "napi/fake", 0, 1),
                row(10, "ksoftirqd/1", PF_KTHREAD, 1),
            ],
            ..Reading::default()
        };
        assert_eq!(napi_threads(&window), [(0, 140), (1, 70)].into());
    }

    #[test]
    fn two_places_of_one_name_are_added() {
        let drop = Drop { place: "f+0x1".into(), packets: 3, ..Drop::default() };
        let mut before = HashMap::new();
        let first = dropped(&mut before, vec![drop.clone(), drop]);
        assert_eq!((first.len(), first[0].0.packets, first[0].1), (1, 6, 6));
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let poll = |polls_count, packets| NapiPolls {
            napi_id: 7,
            polls_count,
            packets,
            packets_per_poll: Log2::of(&[0, polls_count]),
            ..NapiPolls::default()
        };
        let seen = napis(&[poll(12, 100)], &[poll(10, 40)]);
        assert_eq!((seen[0].polls_count, seen[0].packets), (2, 60));
        assert_eq!(seen[0].packets_per_poll.count(), 2);
        assert!(napis(&[poll(10, 40)], &[poll(10, 40)]).is_empty(), "nothing was polled");
        assert_eq!(since(&Log2::of(&[1, 5, 2]), Some(&Log2::of(&[1, 2]))), Log2::of(&[0, 3, 2]));
    }
}
