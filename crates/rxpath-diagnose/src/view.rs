//! The evidence as the rules see it: checked numbers, threads grouped by side, what is missing.

mod cpu_at;
mod gaps;
mod possible;
mod service;
mod side;

use rxpath_core::SortFew;
use rxpath_record::evidence::{CpuUse, ProbedCpu, SocketUse, SoftirqPlace, WindowEvidence};
use rxpath_record::ledger::{Drop, Place};

use crate::part::Part;
use crate::thresholds::{
    FULL_RATIO, LOSS_RATIO, MOST_OF_SOFTIRQ_RATIO, ONE_CPU_RATIO, SOFTIRQ_OF_BUSY_RATIO,
    WATCHED_LOSS_PACKETS, WATCHED_LOSS_PPS,
};

pub use cpu_at::CpuAt;
pub use gaps::EvidenceGap;
pub use service::{Service, Unsure};
use side::by_number;
pub use side::{Lead, SideThreads, ThreadSaturation, lead};

/// The evidence of one trial, checked once. Lists are sorted, so their order never matters.
pub struct View<'a> {
    /// The raw evidence, for values that need no checks.
    pub raw: &'a WindowEvidence,
    /// Length of the window; `None` when it is no length.
    pub window_s: Option<f64>,
    /// The sending threads as one.
    pub sender: SideThreads<'a>,
    /// The receiving threads as one.
    pub reader: SideThreads<'a>,
    /// The CPUs of the receiver's machine, by number.
    pub cpus: Vec<&'a CpuUse>,
    /// The sockets, by index; on a watched host those of the service that dropped most, if any dropped.
    pub sockets: Vec<&'a SocketUse>,
    /// The services of a watched host that dropped packets, the one that dropped most first.
    pub services: Vec<Service<'a>>,
    /// Why the reading threads are uncertain.
    pub unsure: Option<Unsure>,
    /// The CPUs that the receive softirq runs on, by number; empty = not known.
    pub softirq_cpus: Vec<u32>,
    /// What is missing.
    pub gaps: Vec<EvidenceGap>,
}

impl<'a> View<'a> {
    /// Checks `evidence`.
    pub fn new(evidence: &'a WindowEvidence) -> Self {
        let services = service::that_dropped(evidence);
        let sender = SideThreads::new(&evidence.sender_threads.iter().collect::<Vec<_>>());
        let readers = service::readers(evidence, services.first());
        let reader = SideThreads::new(&readers);
        let mut cpus: Vec<&CpuUse> = evidence.cpus.iter().collect();
        cpus.sort_few_by(|a, b| {
            (a.cpu.cmp(&b.cpu))
                .then(a.idle_ratio.total_cmp(&b.idle_ratio))
                .then(a.softirq_ratio.total_cmp(&b.softirq_ratio))
        });
        let mut sockets: Vec<&SocketUse> = match services.first() {
            Some(service) => service.sockets.clone(),
            None => evidence.sockets.iter().collect(),
        };
        sockets
            .sort_few_by_key(|s| (s.index, s.delivered_packets, s.drops_packets, s.rcvbuf_bytes));
        let known = by_number(match &evidence.softirq {
            SoftirqPlace::SenderCall => sender.cpus.clone(),
            SoftirqPlace::Rps { cpus }
            | SoftirqPlace::Napi { cpus }
            | SoftirqPlace::NapiThread { cpus } => cpus.clone(),
        });
        // Of the possible readers, the actual ones.
        let mut took = match known.as_slice() {
            // Nothing but what comes in from the wire makes receive softirqs on a machine of its own.
            [] if !evidence.sender_hosts.is_empty() => counted_cpus(evidence),
            known => known.to_vec(),
        };
        took.retain(|cpu| takes_packets(evidence, *cpu));
        let softirq_cpus = if took.is_empty() { known } else { took };
        let window_s = Some(evidence.window_s).filter(|s| s.is_finite() && *s > 0.0);
        let mut view = Self {
            raw: evidence,
            window_s,
            sender,
            reader,
            cpus,
            unsure: service::unsure(&readers, &sockets),
            sockets,
            services,
            softirq_cpus,
            gaps: Vec::new(),
        };
        view.gaps = gaps::find(&view);
        view
    }

    /// Offered in the window, datagrams/s.
    pub fn offered_pps(&self) -> f64 {
        sound_rate(self.raw.offered_pps)
    }

    /// Delivered in the window, datagrams/s.
    pub fn delivered_pps(&self) -> f64 {
        sound_rate(self.raw.delivered_pps)
    }

    /// The target rate, if one was set.
    pub fn target_pps(&self) -> Option<f64> {
        self.raw.target_pps.filter(|pps| pps.is_finite() && *pps > 0.0)
    }

    /// Offered over the whole trial.
    pub fn offered_packets(&self) -> u64 {
        self.raw.ledger.offered_packets
    }

    /// Every loss: those of the ledger, and those of any protocol.
    pub fn losses(&self) -> impl Iterator<Item = &'a Drop> + use<'a> {
        let others = self.raw.any_protocol.iter().map(|loss| &loss.drop);
        self.raw.ledger.drops.iter().chain(others)
    }

    /// Lost at `place` over the whole trial.
    pub fn lost_at(&self, place: Place) -> u64 {
        let drops = self.losses().filter(|drop| drop.place == place);
        drops.fold(0, |sum, drop| sum.saturating_add(drop.packets))
    }

    /// Dropped at the sampled sockets of a watched host.
    pub fn service_drops(&self) -> u64 {
        self.services.iter().fold(0, |sum, service| sum.saturating_add(service.drops()))
    }

    /// Whether these sockets have at least half of the losses at socket buffers of a watched host. Otherwise others
    /// lost them: sockets that closed or were not selected.
    pub fn services_lost_most(&self) -> bool {
        let lost = self.lost_at(Place::SocketBuffer);
        let counts = self.raw.watched && self.is_loss_at(Place::SocketBuffer, lost);
        !counts || self.service_drops() >= lost.div_ceil(2)
    }

    /// The drops at `place` that happened, in a fixed order.
    pub fn drops_at(&self, place: Place) -> Vec<&'a Drop> {
        let mut found: Vec<&Drop> =
            self.losses().filter(|drop| drop.place == place && drop.packets > 0).collect();
        found.sort_few_by(|a, b| b.packets.cmp(&a.packets).then(a.counter.cmp(&b.counter)));
        found
    }

    /// Lost over the whole trial; for losses of any protocol, only those without another counter.
    pub fn lost_packets(&self) -> u64 {
        self.losses().fold(0, |sum, drop| sum.saturating_add(drop.packets))
    }

    /// The number of packets of any protocol that is the base of the losses at `place`; `None` if the base is the
    /// offered datagrams.
    pub fn of_any_protocol(&self, place: Place) -> Option<u64> {
        let here = self.raw.any_protocol.iter().filter(|loss| loss.drop.place == place);
        here.map(|loss| loss.of_packets).max()
    }

    /// `packets` lost at `place` as a share of the packets that got this far.
    pub fn share_at(&self, place: Place, packets: u64) -> f64 {
        match self.of_any_protocol(place) {
            Some(all) => (packets as f64 / all.max(1) as f64).min(1.0),
            None => self.of_offered(packets),
        }
    }

    /// Whether `packets` lost at `place` are enough to be a limit.
    pub fn is_loss_at(&self, place: Place, packets: u64) -> bool {
        self.is_noteworthy(packets) && self.share_at(place, packets) >= LOSS_RATIO
    }

    /// Lost at `place` over the whole trial, if that is enough to be a limit.
    pub fn loss_at(&self, place: Place) -> Option<u64> {
        Some(self.lost_at(place)).filter(|lost| self.is_loss_at(place, *lost))
    }

    /// `packets` as a share of the offered ones.
    pub fn of_offered(&self, packets: u64) -> f64 {
        packets as f64 / self.offered_packets().max(1) as f64
    }

    /// Whether `packets` lost are enough to be a limit.
    pub fn is_loss(&self, packets: u64) -> bool {
        self.is_noteworthy(packets) && self.of_offered(packets) >= LOSS_RATIO
    }

    /// TCP segments that arrived on a watched host, per second.
    pub fn segments_pps(&self) -> f64 {
        let segments = self.raw.tcp.as_ref().map_or(0, |tcp| tcp.received_segments);
        self.window_s.map_or(0.0, |window_s| sound_rate(segments as f64 / window_s))
    }

    /// Whether TCP had traffic: a stray segment does not count.
    pub fn has_tcp(&self) -> bool {
        self.segments_pps() >= 1.0
    }

    /// Whether `segments` are more than strays, and at least this share of all.
    pub fn is_noteworthy_share(&self, segments: u64, of: u64, ratio: f64) -> bool {
        self.is_noteworthy(segments) && segments as f64 >= ratio * of as f64
    }

    /// Whether they are more than strays: one packet can make a large share on a watched host.
    fn is_noteworthy(&self, packets: u64) -> bool {
        let least = self.window_s.map_or(0.0, |window_s| WATCHED_LOSS_PPS * window_s);
        let many = packets >= WATCHED_LOSS_PACKETS && packets as f64 >= least;
        packets > 0 && (many || !self.raw.watched)
    }

    /// Whether any significant loss occurred.
    pub fn loses(&self) -> bool {
        let datagrams = self.raw.ledger.drops.iter();
        let lost = datagrams.fold(0u64, |sum, drop| sum.saturating_add(drop.packets));
        let others = self.raw.any_protocol.iter().map(|loss| loss.drop.place);
        self.is_loss(lost) || others.into_iter().any(|at| self.is_loss_at(at, self.lost_at(at)))
    }

    /// The use of one CPU; a number alone is one of the receiver's machine.
    pub fn cpu<'c>(&self, at: impl Into<CpuAt<'c>>) -> Option<&'a CpuUse> {
        let CpuAt { host, cpu }: CpuAt<'_> = at.into();
        if host.is_empty() {
            return self.cpus.iter().copied().find(|c| c.cpu == cpu);
        }
        self.cpus_of(host).iter().find(|c| c.cpu == cpu)
    }

    /// The CPUs of a sender's machine; of an empty name those of the receiver's.
    pub fn cpus_of(&self, host: &str) -> &'a [CpuUse] {
        if host.is_empty() {
            return &self.raw.cpus;
        }
        let machine = self.raw.sender_hosts.iter().find(|machine| machine.name == host);
        machine.map(|machine| machine.cpus.as_slice()).unwrap_or_default()
    }

    /// Busy share of one CPU (1 less idle).
    pub fn busy_ratio<'c>(&self, at: impl Into<CpuAt<'c>>) -> Option<f64> {
        self.cpu(at).map(|c| 1.0 - sound_ratio(c.idle_ratio))
    }

    /// Softirq share of one CPU: measured between tracepoints where they were watched, else by ticks.
    pub fn softirq_ratio(&self, cpu: u32) -> Option<f64> {
        self.softirq_measured_ratio(cpu).or_else(|| self.softirq_ticks_ratio(cpu))
    }

    /// Softirq share of one CPU, where it was measured between tracepoints.
    pub fn softirq_measured_ratio(&self, cpu: u32) -> Option<f64> {
        let probed = self.probed_cpu(cpu)?;
        let (net, other) = (probed.net_softirq_ratio, probed.other_softirq_ratio);
        Some(sound_ratio(sound_ratio(net) + sound_ratio(other)))
    }

    /// Softirq share of one CPU, by ticks.
    pub fn softirq_ticks_ratio(&self, cpu: u32) -> Option<f64> {
        self.cpu(cpu).map(|c| sound_ratio(c.softirq_ratio))
    }

    /// What tracepoints measured of one CPU.
    pub fn probed_cpu(&self, cpu: u32) -> Option<&'a ProbedCpu> {
        self.raw.probed.as_ref()?.cpus.iter().find(|probed| probed.cpu == cpu)
    }

    /// Datagrams that connection tracking dropped: a part of those lost in netfilter.
    pub fn lost_in_conntrack(&self) -> u64 {
        let dropped = self.raw.conntrack.map_or(0, |conntrack| conntrack.drops_packets);
        dropped.min(self.lost_at(Place::Netfilter))
    }

    /// The CPU of the receive softirq that is judged, with its busy share: the CPU whose backlog dropped most if known,
    /// else the CPU with the most softirq time. Other work may keep another CPU busier.
    pub fn softirq_cpu(&self) -> Option<(u32, f64)> {
        let cpu = self.dropping_cpu().or_else(|| {
            let known =
                self.softirq_cpus.iter().filter_map(|&cpu| Some((cpu, self.softirq_load(cpu)?)));
            Some(known.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?.0)
        })?;
        Some((cpu, self.busy_ratio(cpu)?))
    }

    /// The CPU of the receive softirq, when it is full and the softirq itself fills it.
    pub fn saturated_softirq(&self) -> Option<u32> {
        let (cpu, busy) = self.softirq_cpu().filter(|(_, busy)| *busy >= FULL_RATIO)?;
        (self.softirq_load(cpu)? >= SOFTIRQ_OF_BUSY_RATIO * busy).then_some(cpu)
    }

    /// The CPU whose backlog dropped most, if most of the losses before softirqs are in the backlog.
    fn dropping_cpu(&self) -> Option<u32> {
        let backlog = self.lost_at(Place::Backlog);
        if backlog == 0 || backlog < self.lost_at(Place::Ring) {
            return None;
        }
        let dropping = self.raw.spread.iter().flat_map(|spread| &spread.packets);
        let known = dropping.filter(|c| c.dropped_packets > 0 && self.cpu(c.cpu).is_some());
        known.max_by_key(|c| (c.dropped_packets, std::cmp::Reverse(c.cpu))).map(|c| c.cpu)
    }

    /// Share of one CPU that the receive path's interrupts, softirqs and NAPI thread take.
    pub fn softirq_load(&self, cpu: u32) -> Option<f64> {
        let usage = self.cpu(cpu)?;
        let mut own = self.softirq_ratio(cpu)? + sound_ratio(usage.irq_ratio);
        if matches!(self.raw.softirq, SoftirqPlace::NapiThread { .. }) {
            // A NAPI thread polls in process context; what is not under local_bh_disable counts as system.
            let system = || sound_ratio(usage.system_ratio);
            own += self.napi_threads_ratio(cpu).unwrap_or_else(system);
        }
        Some(own)
    }

    /// Share of one CPU that NAPI threads took, where it was measured.
    pub fn napi_threads_ratio(&self, cpu: u32) -> Option<f64> {
        let mut rows = self.raw.spread.iter().flat_map(|spread| &spread.packets);
        rows.find(|row| row.cpu == cpu)?.napi_threads_ratio.map(sound_ratio)
    }

    /// Packets per second that reached one CPU's softirq or were dropped at its backlog.
    pub fn arriving_pps(&self, cpu: u32) -> Option<f64> {
        let here = self.raw.spread.as_ref()?.packets.iter().find(|c| c.cpu == cpu)?;
        let pps = here.packets.saturating_add(here.dropped_packets) as f64 / self.window_s?;
        (pps.is_finite() && pps > 0.0).then_some(pps)
    }

    /// Whether the softirqs' time belongs to UDP: on a watched host softirqs work for every protocol and namespace.
    pub fn softirqs_are_of_udp(&self) -> bool {
        let counted = self.raw.spread.iter().flat_map(|spread| &spread.packets);
        let all = counted.fold(0u64, |sum, c| sum.saturating_add(c.packets));
        let most = self.offered_packets() as f64 >= MOST_OF_SOFTIRQ_RATIO * all as f64;
        !self.raw.watched || (all > 0 && most)
    }

    /// Whether the receive softirq, or a part of it, runs on the sender's time.
    ///
    /// True inside the sender's call, and for RPS or NAPI in softirq context on a CPU of the sender's; a
    /// NAPI thread competes for the CPU instead and shows as waiting. Never on another machine than the receiver's.
    pub fn softirq_on_sender(&self) -> bool {
        match &self.raw.softirq {
            _ if self.sends_from_elsewhere() => false,
            SoftirqPlace::SenderCall => true,
            SoftirqPlace::Rps { .. } => shared(&self.softirq_cpus, &self.sender.cpus).is_some(),
            SoftirqPlace::Napi { .. } => {
                self.softirq_cpus.is_empty()
                    || shared(&self.softirq_cpus, &self.sender.cpus).is_some()
            }
            SoftirqPlace::NapiThread { .. } => false,
        }
    }

    /// Whether the sender with the least time left runs on another machine than the receiver.
    pub fn sends_from_elsewhere(&self) -> bool {
        !self.sender.lead.host.is_empty()
    }

    /// `sender`, with its name if it is another machine: `sender gen1`.
    pub fn sender_name(&self) -> String {
        match self.sender.lead.host {
            "" => "sender".into(),
            host => format!("sender {host}"),
        }
    }

    /// The CPU on which softirqs interrupt the reader, when they run on its CPU without the sender's call.
    pub fn softirq_on_reader(&self) -> Option<u32> {
        match self.raw.softirq {
            SoftirqPlace::Rps { .. } | SoftirqPlace::Napi { .. } => {
                shared(&self.softirq_cpus, &self.reader.lead.cpus)
            }
            SoftirqPlace::SenderCall | SoftirqPlace::NapiThread { .. } => None,
        }
    }

    /// A CPU that sender and reader share.
    pub fn sender_on_reader(&self) -> Option<u32> {
        shared(&self.sender.cpus, &self.reader.cpus)
    }

    /// The share of its time in which the sender was blocked on its own send buffer.
    pub fn blocked_ratio(&self) -> f64 {
        let threads = self.sender.count.max(1) as f64;
        let blocked = sound_rate(self.raw.sender_blocked_s);
        self.window_s.map_or(0.0, |window_s| sound_ratio(blocked / (window_s * threads)))
    }

    /// The ledger's time: the trial is longer than its window.
    pub fn trial_s(&self) -> Option<f64> {
        let pps = self.offered_pps();
        (pps > 0.0).then(|| self.offered_packets() as f64 / pps).filter(|s| s.is_finite())
    }

    /// The gaps in the evidence for a claim that needs `parts`.
    pub fn gaps_in(&self, parts: &[Part]) -> impl Iterator<Item = &EvidenceGap> {
        self.gaps.iter().filter(move |gap| parts.contains(&gap.part))
    }
}

/// The CPUs whose softirqs were counted.
fn counted_cpus(evidence: &WindowEvidence) -> Vec<u32> {
    let counted = evidence.spread.iter().flat_map(|spread| &spread.packets);
    by_number(counted.map(|c| c.cpu).collect())
}

/// Whether a CPU's softirq took a significant part of the packets, where counted.
fn takes_packets(evidence: &WindowEvidence, cpu: u32) -> bool {
    let Some(spread) = &evidence.spread else { return false };
    let all = spread.packets.iter().fold(0u64, |sum, c| sum.saturating_add(c.packets));
    let here = spread.packets.iter().filter(|c| c.cpu == cpu).map(|c| c.packets).max();
    here.is_some_and(|here| here > 0 && here as f64 >= (1.0 - ONE_CPU_RATIO) * all as f64)
}

/// A rate or a span: finite and not negative, else 0.
pub fn sound_rate(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { value } else { 0.0 }
}

/// A share: within 0 and 1, 0 when it is no number.
pub fn sound_ratio(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 }
}

fn shared(some: &[u32], others: &[u32]) -> Option<u32> {
    some.iter().copied().find(|cpu| others.contains(cpu))
}
