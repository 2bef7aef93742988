//! Changes that may help a receive path: settings of the lab or of a host, and options of the service.
//!
//! A change whose parts only work together is one entry. Values depend on what is now; an entry that has its values already
//! is none. The names are keys of a scenario.

mod service;

use rxpath_core::CpuList;
use rxpath_host::glob::is_match;
use rxpath_host::read::sysfs::device::RxQueue;
use rxpath_record::manifest::Trial;
use rxpath_record::verdict::Stage;
use rxpath_tune::auto::Risk;

use crate::scenario::spec::{Topology, Variant};
use crate::testbed::tuned::RPS_OF_EACH_QUEUE;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name in reports.
    pub name: String,
    /// What it sets: `KEY=VALUE` of a scenario.
    pub sets: Vec<String>,
    /// The limiting stages at which it acts.
    pub stages: &'static [Stage],
    /// What it risks.
    pub risk: Risk,
    /// It only restores the kernel's default.
    pub is_default: bool,
}

impl Entry {
    /// A change that acts at these stages and risks nothing.
    pub fn new(
        name: impl Into<String>,
        sets: impl Into<Vec<String>>,
        stages: &'static [Stage],
    ) -> Self {
        let (name, sets) = (name.into(), sets.into());
        Self { name, sets, stages, risk: Risk::None, is_default: false }
    }

    fn wide(self) -> Self {
        Self { risk: Risk::Wide, ..self }
    }

    fn of_link(self) -> Self {
        Self { risk: Risk::Link, ..self }
    }

    fn by_default(self) -> Self {
        Self { is_default: true, ..self }
    }

    /// Whether one of these patterns is its name or one of its settings, with or without the side.
    pub fn matches(&self, patterns: &[String]) -> bool {
        let own = self.sets.iter().filter_map(|set| Some(set.split_once('=')?.0)).map(|key| {
            let side = key.strip_prefix(RECEIVER).or(key.strip_prefix("tune.sender."));
            [key, side.unwrap_or(key)]
        });
        own.flatten()
            .chain([self.name.as_str()])
            .any(|text| patterns.iter().any(|pattern| is_match(pattern, text)))
    }
}

/// What the entries depend on.
struct Seen<'a> {
    variant: &'a Variant,
    trial: &'a Trial,
    /// CPUs of this process.
    cpus: &'a [u32],
}

/// Settings of the receiving host in a scenario.
const RECEIVER: &str = "tune.receiver.";

fn receiver(set: &str) -> String {
    format!("{RECEIVER}{set}")
}

fn sender(set: &str) -> String {
    format!("tune.sender.{set}")
}

const THREADED: &str = "{dev}/threaded=1";
const DEFERRED: [&str; 2] = ["{dev}/napi_defer_hard_irqs=2", "{dev}/gro_flush_timeout=50000"];
/// Where early demux, the look-up of the socket before the route, acts.
const EARLY: &[Stage] = &[Stage::Softirq, Stage::SenderOrSoftirq];

/// A veth end has NAPI with GRO on and all TSO of its peer off (`veth_skb_is_eligible_for_gro`).
fn napi() -> Vec<String> {
    let tso = ["tx-tcp", "tx-tcp-ecn", "tx-tcp-mangleid", "tx-tcp6"]
        .map(|name| sender(&format!("{{dev}}/features/{name}-segmentation=off")));
    [receiver("{dev}/features/rx-gro=on")].into_iter().chain(tso).collect()
}

/// Every entry for this scenario.
pub fn entries(variant: &Variant, trial: &Trial, cpus: &[u32]) -> Vec<Entry> {
    let seen = Seen { variant, trial, cpus };
    let mut all = match variant.topology {
        Topology::Hosts => [card(), whole_host()].concat(),
        _ => [link(), seen.around_the_link()].concat(),
    };
    all.extend(seen.steering());
    if seen.variant.serve.own().is_some_and(|own| !own.absent) {
        all.extend(seen.service());
    }
    if variant.protocol().over_tcp() {
        all.extend(of_tcp());
    } else {
        let set = receiver("net.ipv4.udp_early_demux=0");
        all.push(Entry::new("no early demux", [set], EARLY));
    }
    all
}

/// Every entry for a host's own traffic through one device, with its settings by the names of `tune plan`.
pub fn of_host(device: &str, queues: &[RxQueue], cpus: &[u32]) -> Vec<Entry> {
    let mut all = [card(), whole_host(), of_tcp()].concat();
    for entry in &mut all {
        let own = entry.sets.iter().filter_map(|set| set.strip_prefix(RECEIVER));
        entry.sets = own.map(|set| set.replace("{dev}", device)).collect();
    }
    all.extend(no_steering(device, queues));
    all.push(no_sleep(cpus));
    all
}

/// Idle CPUs poll: none has to wake up for a packet.
///
/// **Source** `cpuidle_governor_latency_req` (drivers/cpuidle/governor.c): `n/a` is a latency of 0.
fn no_sleep(cpus: &[u32]) -> Entry {
    let one = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us=n/a");
    Entry::new("no sleep of idle CPUs", cpus.iter().map(one).collect::<Vec<_>>(), &[]).wide()
}

/// RPS off on every queue, where it is on.
fn no_steering(device: &str, queues: &[RxQueue]) -> Option<Entry> {
    let is_on = |queue: &&RxQueue| queue.rps_cpus.value().is_some_and(|cpus| !cpus.0.is_empty());
    let queues = queues.iter().filter(is_on);
    let sets: Vec<String> =
        queues.map(|queue| format!("{device}/queues/rx-{}/rps_cpus=0", queue.index)).collect();
    let stages = &[Stage::RpsPointless, Stage::Softirq, Stage::Livelock];
    (!sets.is_empty()).then(|| Entry::new("no RPS", sets, stages).by_default())
}

impl Seen<'_> {
    /// RPS: off where it shares the reader's CPU, on where one CPU does everything.
    fn steering(&self) -> Option<Entry> {
        let (reader, load) = (&self.variant.serve.cpus().0, &self.variant.load.cpus().0);
        let now = &self.variant.lab.rps_cpus.0;
        let is_free = |cpu: &&u32| !reader.contains(cpu) && !load.contains(cpu);
        let free = self.cpus.iter().find(is_free);
        let target = match free {
            Some(cpu) if !now.contains(cpu) => Some(*cpu),
            _ if !now.is_empty() => None,
            _ => Some(*reader.first().filter(|cpu| !load.contains(cpu))?),
        };
        let (name, mask) = match target {
            Some(cpu) => (format!("RPS to CPU {cpu}"), CpuList(vec![cpu]).to_mask()),
            None => ("no RPS".to_owned(), "0".to_owned()),
        };
        let stages = &[
            Stage::SenderOrSoftirq,
            Stage::Softirq,
            Stage::OneCpu,
            Stage::RpsMissing,
            Stage::RpsPointless,
            Stage::Livelock,
            Stage::Application,
            Stage::ApplicationDescheduled,
            Stage::Victim,
        ];
        let sets = if self.variant.topology == Topology::Hosts {
            vec![receiver(&format!("{RPS_OF_EACH_QUEUE}={mask}"))]
        } else {
            let queues = 0..self.variant.lab.queues.max(1);
            let one = |queue| receiver(&format!("{{dev}}/queues/rx-{queue}/rps_cpus={mask}"));
            queues.map(one).collect()
        };
        Some(Entry { is_default: target.is_none(), ..Entry::new(name, sets, stages) })
    }
}

/// Offloads and NAPI of the link.
fn link() -> Vec<Entry> {
    const SOFTIRQ: &[Stage] =
        &[Stage::Softirq, Stage::SenderOrSoftirq, Stage::OneCpu, Stage::Livelock];
    const SENDER: &[Stage] = &[Stage::Sender, Stage::SenderOrSoftirq];
    let threads = &[Stage::Livelock, Stage::Softirq];
    let tso = ["tx-tcp", "tx-tcp6"]
        .map(|name| sender(&format!("{{dev}}/features/{name}-segmentation=on")));
    let udp = sender("{dev}/features/tx-udp-segmentation=on");
    vec![
        Entry::new("NAPI on the link", napi(), SOFTIRQ),
        Entry::new("threaded NAPI", [napi(), vec![receiver(THREADED)]].concat(), threads),
        Entry::new(
            "deferred interrupts",
            [napi(), DEFERRED.map(receiver).to_vec()].concat(),
            SOFTIRQ,
        ),
        no_threads(),
        Entry::new("UDP segmentation offload", [udp], SENDER).by_default(),
        Entry::new("TCP segmentation offload", tso, SENDER).by_default(),
    ]
}

/// Packets are processed in softirqs again, which no scheduler holds back.
fn no_threads() -> Entry {
    let stages = &[Stage::Ring, Stage::Softirq, Stage::Livelock];
    Entry::new("no threaded NAPI", [receiver("{dev}/threaded=0")], stages).by_default()
}

/// What a network card of a host may be given. Rings and coalescing may take the link down for a moment.
fn card() -> Vec<Entry> {
    const SOFTIRQ: &[Stage] = &[Stage::Softirq, Stage::OneCpu, Stage::Livelock];
    const RING: &[Stage] = &[Stage::Ring, Stage::Softirq];
    let one = |name: &str, set: &str, stages| Entry::new(name, [receiver(set)], stages);
    vec![
        one("GRO", "{dev}/features/rx-gro=on", SOFTIRQ),
        one("threaded NAPI", THREADED, SOFTIRQ),
        no_threads(),
        Entry::new("deferred interrupts", DEFERRED.map(receiver), SOFTIRQ),
        one("larger ring", "{dev}/rings/rx=4096", RING).of_link(),
        one("later interrupts", "{dev}/coalesce/rx-usecs=50", SOFTIRQ).of_link(),
        one("interrupts at once", "{dev}/coalesce/rx-usecs=0", &[]).of_link(),
    ]
}

/// Limits of the receive path that hold for a whole host.
fn whole_host() -> Vec<Entry> {
    const SOFTIRQ: &[Stage] = &[Stage::Softirq, Stage::Ring, Stage::OneCpu];
    let budget = ["net.core.netdev_budget=600", "net.core.netdev_budget_usecs=8000"];
    let backlog = receiver("net.core.netdev_max_backlog=16384");
    let polling = ["net.core.busy_read=50", "net.core.busy_poll=50"].map(receiver);
    vec![
        Entry::new("larger budget of a softirq", budget.map(receiver), SOFTIRQ).wide(),
        Entry::new("longer backlog", [backlog], &[Stage::Backlog]).wide(),
        Entry::new("busy polling", polling, &[Stage::ApplicationDescheduled]).wide(),
    ]
}

/// Sysctls of TCP that a network namespace has of its own.
fn of_tcp() -> Vec<Entry> {
    let both = |set: &str| [receiver(set), sender(set)];
    let windows = [
        receiver("net.ipv4.tcp_rmem=4096 1048576 33554432"),
        sender("net.ipv4.tcp_wmem=4096 1048576 33554432"),
    ];
    let slow_start = both("net.ipv4.tcp_slow_start_after_idle=0");
    let accept = ["net.core.somaxconn=65535", "net.ipv4.tcp_max_syn_backlog=65535"];
    vec![
        Entry::new("larger TCP windows", windows, &[Stage::TcpReceive, Stage::Sender]),
        Entry::new("no slow start after idle", slow_start, &[Stage::Sender]),
        Entry::new("no TCP timestamps", both("net.ipv4.tcp_timestamps=0"), &[]),
        Entry::new("no autocorking", both("net.ipv4.tcp_autocorking=0"), &[]),
        Entry::new("no early demux", [receiver("net.ipv4.tcp_early_demux=0")], EARLY),
        Entry::new("longer accept queue", accept.map(receiver), &[Stage::AcceptQueue]),
    ]
}
