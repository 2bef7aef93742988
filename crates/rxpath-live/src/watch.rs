//! The live path: one frame after another from counters, socket tables and, where they may run, BPF probes.
//!
//! The question it answers: *what moves through which stage of this host now, what is lost, and who pays?* It changes
//! nothing, and sends nothing but the packets of a short calibration ([`EntryCost::Measured`]) in a network namespace of its
//! own. Rates are those of this network namespace; softirqs, CPUs and tasks are the machine's.
//! Without root or BPF it says in every frame what is not known for that reason.

mod cost;
mod counters;
mod cpus;
mod drops;
mod entry;
mod links;
mod owners;
mod places;
mod probes;
mod queues;
mod reasoned;
mod sockets;
mod stages;
mod tasks;
mod totals;
mod turning;
mod unloaded;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rxpath_bpf::cost::own_cpu;
use rxpath_core::{Fact, IntoMap};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::cgroup::GroupNames;
use rxpath_host::read::only::Only;
use rxpath_host::read::procfs::is_first_pid_namespace;
use rxpath_host::read::snapshot::Reader;
use rxpath_host::read::topology;
use rxpath_host::{HostError, Root};
use rxpath_record::counters::Snapshot;
use rxpath_record::watch::{WatchFrame, WindowTotals};

use crate::live;
use crate::observe::{Between, CpuSnapshot, Ours};

use counters::Rates;
use links::{LinkRates, Links};
use owners::Owners;
use probes::{Probes, Seen};
use queues::QueueSampler;
use sockets::{SocketSampler, SocketSamples};
use tasks::{Everybody, Used};

pub use crate::live::NOT_ASKED;
pub use entry::EntryCost;
pub use probes::ProbeLimit;
pub use unloaded::Unloaded;

/// What is watched, and how.
#[derive(Clone, Debug, Default)]
pub struct WatcherOptions {
    /// Why without BPF, although it might run.
    pub counters_only: Option<&'static str>,
    /// Only the sockets of these processes.
    pub only: Option<Only>,
    /// What entering and leaving an interrupt costs.
    pub irq_entry: EntryCost,
}

/// Verdicts of `diagnose` that rest on what a frame does not hold.
const NOT_JUDGED: &str = "tasks that pay, wrong ticks and waits for a socket's lock are no verdicts here: `rxpath diagnose` \
                          measures them";

/// Watches until it is dropped; its BPF programs go with it.
#[derive(Debug)]
pub struct LiveWatcher {
    root: Root,
    /// Process ids of BPF are those of `/proc`.
    sees_processes: bool,
    nodes: BTreeMap<u32, u32>,
    counters: Reader,
    diag: Netlink,
    /// Or why there are none.
    probes: Result<Probes, String>,
    /// Of these the whole, when none could be loaded.
    none_loaded: Option<Unloaded>,
    queues: QueueSampler,
    links: Links,
    unseen: live::Unseen,
    sockets: SocketSampler,
    owners: Owners,
    everybody: Everybody,
    groups: GroupNames,
    /// Counters when watching began, for totals.
    first: Snapshot,
    begun: Begun,
    number: u64,
    /// The last window lost packets above the thresholds of the diagnosis.
    loses: bool,
}

/// The readings at the beginning of a window.
#[derive(Debug)]
struct Begun {
    snapshot: Snapshot,
    mark: CpuSnapshot,
    ours: Ours,
    own_cpu: Duration,
    around: live::Around,
}

/// One window, read: what the parts of a frame are made from.
struct Window<'a> {
    rates: Rates<'a>,
    between: &'a Between,
    /// Or why there is nothing from BPF.
    seen: Result<&'a Seen, &'a str>,
    links: &'a LinkRates,
    used: &'a Used,
    around: &'a live::Around,
    /// Places of loss that no counter has.
    unseen: &'a [String],
    window_s: f64,
}

impl Window<'_> {
    /// Something of the probes, per second that was counted; their gap without them.
    fn probed(&self, value: impl Fn(&Seen) -> f64) -> Fact<f64> {
        match self.seen {
            Ok(seen) => Fact::ok(value(seen) / seen.per_s()),
            Err(why) => Fact::absent(why),
        }
    }

    /// One counter of `softnet_stat` over all CPUs, per second.
    fn softnet_per_s(&self, counter: &str) -> Fact<f64> {
        self.rates.softnet_per_s(counter, self.between.cpus.iter().map(|cpu| cpu.cpu))
    }
}

impl LiveWatcher {
    /// Takes the first readings; the first frame is about the time from here on.
    ///
    /// # Errors
    /// Without a netlink socket for sockets; missing probes are reported in the frames instead.
    pub fn start(options: WatcherOptions) -> Result<Self, HostError> {
        let root = Root::host();
        let mut none_loaded = None;
        let probes = match options.counters_only {
            Some(why) => Err(why.to_owned()),
            None => Probes::start(options.irq_entry).map_err(|error| {
                none_loaded = Some(Unloaded::of(WatchFrame::ALL_PROBES, &error));
                error.to_string()
            }),
        };
        let mut counters = Reader::all(&root).with_energy(&root);
        let mut diag = Netlink::sock_diag()?;
        let mut sockets = SocketSampler::of(options.only);
        sockets.look_at_end(&mut diag);
        let everybody = Everybody::start(&root, probes.is_ok());
        let queues = QueueSampler::start(&root);
        let begun = Begun::now(&mut counters, Ours::default());
        let links = Links::start(&begun.around);
        Ok(Self {
            sees_processes: is_first_pid_namespace(&root),
            nodes: nodes(&root),
            first: begun.snapshot.clone(),
            number: 0,
            loses: false,
            root,
            counters,
            diag,
            probes,
            none_loaded,
            queues,
            links,
            unseen: live::Unseen::default(),
            sockets,
            owners: Owners::default(),
            everybody,
            groups: GroupNames::default(),
            begun,
        })
    }

    /// Why there are no BPF probes; `None` when they run.
    pub fn without_probes(&self) -> Option<&str> {
        self.probes.as_ref().err().map(String::as_str)
    }

    /// What could not be loaded or attached at the start. Nobody tries again; what was attached once is tried again.
    pub fn unloaded(&self) -> Vec<Unloaded> {
        let some = self.probes.iter().flat_map(|probes| &probes.unloaded);
        self.none_loaded.iter().chain(some).cloned().collect()
    }

    /// In how many windows a device of this namespace came, went, or changed its name or state.
    pub fn link_changes(&self) -> u64 {
        self.links.changes()
    }

    /// Whether the window of the last frame lost packets above the thresholds of the diagnosis, wherever.
    pub fn loses(&self) -> bool {
        self.loses
    }

    /// Whether a list of sockets takes more than 20 ms of CPU time, and is read once in five minutes.
    pub fn has_dear_list(&self) -> bool {
        self.sockets.has_dear_list()
    }

    /// When [`LiveWatcher::note`] is due; none without probes.
    pub fn due(&self) -> Option<Instant> {
        self.probes.as_ref().ok().and_then(Probes::due)
    }

    /// The turns of probes begin and end.
    pub fn note(&mut self) {
        if let Ok(probes) = &mut self.probes {
            probes.note();
        }
    }

    /// Limits what the probes cost from now on.
    pub fn limit(&mut self, limit: ProbeLimit) {
        if let Ok(probes) = &mut self.probes {
            probes.limit(limit);
        }
    }

    /// Looks at UDP's sockets: their largest filling of a window is the largest of all looks.
    pub fn look(&mut self) {
        self.note();
        self.sockets.look(&mut self.diag);
    }

    /// Ends the window here and begins the next. What cannot be read leaves a gap in the frame.
    pub fn frame(&mut self) -> WatchFrame {
        // Before that: a short turn would last as long as all of it.
        if let Ok(probes) = &mut self.probes {
            probes.rest();
        }
        // The walks take milliseconds. What counts one loss in three places (socket, tracepoint, table) is read after
        // them, one right behind the other.
        let used = self.everybody.until_now(&self.root);
        self.sockets.look_at_end(&mut self.diag);
        let looks = self.sockets.take();
        let seen = match &mut self.probes {
            Ok(probes) => probes.read().map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        let ended = Begun::now(&mut self.counters, self.begun.ours.clone());
        let links = self.links.until(&ended.around);
        let around = [&self.begun.around, &ended.around];
        let nameless = seen.as_ref().ok().and_then(reasoned::nameless);
        let unseen = live::unseen(&mut self.unseen, around, nameless.as_ref());
        let between = Between::marks(&self.begun.mark, &ended.mark, &self.begun.ours);
        let window_s = between.seconds().max(1e-3);
        let nobody = BTreeSet::new();
        let named = seen.as_ref().ok().filter(|_| self.sees_processes);
        let readers = named.map_or(&nobody, |seen| &seen.readers);
        self.owners.learn(&self.root, &looks, readers);
        let window = Window {
            rates: Rates { before: &self.begun.snapshot, now: &ended.snapshot, window_s },
            between: &between,
            seen: seen.as_ref().map_err(String::as_str),
            links: &links,
            used: &used,
            around: &ended.around,
            unseen: &unseen,
            window_s,
        };
        let (queues, gaps) = self.queues.until_now(&self.root, &window);
        self.number += 1;
        let (mut frame, loses) = self.compose(&window, &looks, &ended.snapshot);
        frame.own_cpu_ratio =
            ended.own_cpu.saturating_sub(self.begun.own_cpu).as_secs_f64() / window_s;
        frame.probe_cost = seen.as_ref().ok().and_then(|seen| seen.cost.clone());
        frame.sampled = seen.as_ref().map_or_else(|_| Vec::new(), |seen| seen.sampled.clone());
        frame.queues = queues;
        frame.gaps.extend(gaps);
        self.loses = loses;
        self.begun = self.begin_with(ended);
        frame
    }

    /// What the window of this frame, the last one, adds to totals; none without probes.
    pub fn totals(&mut self, frame: &WatchFrame) -> Option<WindowTotals> {
        let probes = self.probes.as_mut().ok()?;
        let (latencies, polls) = (probes.latencies(), probes.polls());
        let (lost_count, shares) = (probes.seen.lost_count.clone(), probes.port_shares());
        let softirqs_s = probes.seen.softirqs_s(frame.window_s);
        let steal = probes.steal()?;
        let totals = totals::of(steal, frame.window_s, &self.root, &mut self.groups);
        let network_s = totals.taken().network_s;
        let flows_s = shares.into_iter().map(|(port, share)| (port, share * network_s)).collect();
        Some(WindowTotals { latencies, polls, lost_count, flows_s, softirqs_s, ..totals })
    }

    /// Everything that is made from what was read, and whether it has a loss.
    fn compose(
        &self,
        window: &Window<'_>,
        looks: &SocketSamples,
        now: &Snapshot,
    ) -> (WatchFrame, bool) {
        let moved = now.since(&self.begun.snapshot);
        let mut evidence = live::evidence(&live::Read {
            between: window.between,
            moved: &moved,
            counted_s: window.window_s,
            around: [&self.begun.around, window.around],
            sockets: &looks.udp(),
            owners: &self.owners.by_inode,
            reasons: None,
            unseen: window.unseen,
            reads: None,
            waiters: &live::Waiters::new(),
            tcp: &looks.tcp,
            asked: None,
            of_connections: window.between,
            // Walking the groups of all readers costs too much for each frame.
            groups: &live::ReaderGroups::default(),
        });
        if let Ok(seen) = window.seen {
            seen.add_to(&mut evidence);
        }
        // In addition to the counters: the tracepoint's sample is of other moments.
        evidence.any_protocol.extend(reasoned::claims(window, &evidence));
        let (verdict, loses) = rxpath_diagnose::judge(&evidence);
        let lost_at = places::losses(window, &evidence);
        let mut gaps = moved.gaps.clone();
        if !self.counters.counts_energy() {
            // Most machines have no such counters, or only for root: nobody asked for them here.
            gaps.remove("energy");
        }
        gaps.extend(looks.udp_gap.clone().map(|why| (live::UDP_SOCKETS.to_owned(), why)));
        gaps.extend(looks.gap.clone().map(|why| ("TCP sockets".to_owned(), why)));
        gaps.extend(window.used.gap.clone().map(|why| ("tasks".to_owned(), why)));
        gaps.extend(self.owners.capped().map(|why| ("threads of programs".to_owned(), why)));
        gaps.extend(self.owners.hidden().map(|why| ("owners of sockets".to_owned(), why)));
        gaps.extend(window.links.gap.clone().map(|why| ("devices".to_owned(), why)));
        gaps.insert(WatchFrame::VERDICT.to_owned(), NOT_JUDGED.to_owned());
        match window.seen {
            Err(why) => drop(gaps.insert(WatchFrame::ALL_PROBES.to_owned(), why.to_owned())),
            Ok(seen) => gaps.extend(seen.gaps.clone()),
        }
        let frame = WatchFrame {
            number: self.number,
            at_unix_s: unix_s(),
            window_s: window.window_s,
            stages: stages::rows(window, &evidence, &lost_at),
            elsewhere_pps: evidence.elsewhere_pps,
            verdict: Some(verdict),
            cpus: cpus::rows(window, &self.nodes),
            sockets: looks.rows(window.window_s, &self.owners),
            sockets_count: looks.count(),
            tasks: tasks::rows(window),
            drops: drops::rows(window, &self.first, now),
            losses: places::rows(&lost_at),
            latency: window.seen.map_or_else(|_| Vec::new(), |seen| seen.latency.clone()),
            gaps,
            power_w: moved.power_w(window.window_s),
            ..WatchFrame::default()
        };
        (frame, loses)
    }

    /// The readings of the window's end begin the next; the threads of new owners are marked now.
    fn begin_with(&mut self, ended: Begun) -> Begun {
        let ours = Ours { pids: self.owners.pids(), ..Ours::default() };
        if ours.pids == ended.ours.pids {
            return ended;
        }
        Begun { mark: CpuSnapshot::of_ours(&ours), ours, ..ended }
    }
}

impl Begun {
    fn now(counters: &mut Reader, ours: Ours) -> Self {
        let mark = CpuSnapshot::of_ours(&ours);
        let (snapshot, around) = (live::snapshot(counters), live::Around::now());
        Self { snapshot, mark, ours, own_cpu: own_cpu(), around }
    }
}

/// NUMA node of each CPU, where it is known.
fn nodes(root: &Root) -> BTreeMap<u32, u32> {
    let cpus = topology::read(root).map_or_else(|_| Vec::new(), |topology| topology.cpus);
    cpus.iter().filter_map(|cpu| Some((cpu.cpu, *cpu.node.value()?))).into_map()
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests;
