//! What the BPF probes saw in a window: softirqs and polls, drops, latency, and whose CPU time it was.

mod again;
mod budget;
mod costing;
mod dropping;
mod latency;
mod one_flow;
mod ports;
mod rows;
mod seen;
mod sizes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rxpath_bpf::ProbeCost;
use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_bpf::account::{Account, Reading};
use rxpath_bpf::cost::own_cpu;
use rxpath_bpf::filter::Filter;
use rxpath_bpf::polls::{PollRows, PollsReading};
use rxpath_bpf::probe::Probe;
use rxpath_bpf::stages::{Pace, Stages};
use rxpath_bpf::steal::{Steal, StealInputs, answer_of};
use rxpath_bpf::turns::TurnStep;
use rxpath_host::HostError;
use rxpath_record::watch::{PollSizes, PortName, ProbeDutyCycle, StageLatency};

use super::cost::Meter;
use super::entry::{EntryCost, entry_gap};
use super::turning::{Sample, Turning};
use super::unloaded::Unloaded;
use again::Again;
use budget::{CPU_RATIO, READ_NS, SWITCHING};
use costing::Timing;
use dropping::Dropping;
use latency::Latency;
use one_flow::OneFlow;
use ports::Ports;
use rows::{
    busiest, length, longest_s, napi_threads, napis, net_rx, net_tx_ns, no_room, with_gone,
};
use sizes::Sizes;

pub use budget::ProbeLimit;
pub(super) use rows::NAPI_THREAD;
pub(super) use seen::Seen;

/// The running probes and their last reading.
#[derive(Debug)]
pub struct Probes {
    /// Counts polls too.
    account: Account,
    polls: PollRows,
    drops: Dropping,
    stages: Option<Stages>,
    /// Probes that did not start, with the reason.
    missing: BTreeMap<String, String>,
    /// The same for good: nobody tries again, and a restart may have more of them.
    pub(super) unloaded: Vec<Unloaded>,
    before: Reading,
    polled: PollsReading,
    latency: Latency,
    one_flow: OneFlow,
    ports: Ports,
    sizes: Sizes,
    meter: Meter,
    timing: Timing,
    /// Of account and stages.
    turns: Turning,
    /// Of entering and leaving an interrupt.
    irq_entry: IrqCalibration,
    /// For how long was counted, and packets that were looked at, when the turn before ended.
    counted: Duration,
    received: u64,
    /// When the hook of reads goes after a turn, whatever is unread.
    reads_until: Option<Instant>,
    /// What they may take of one CPU, and whether latency is left out for that.
    cpu_ratio: f64,
    without_latency: bool,
    /// None runs at all, to save what they cost.
    is_off: bool,
    /// When a turn that could not begin is tried again.
    again: Again,
    /// What was seen last, for frames without a new sample.
    pub(super) seen: Seen,
}

/// What the probes see, in words.
const COUNTED: &str = ProbeDutyCycle::PROBES[0];
const DROPPED: &str = ProbeDutyCycle::PROBES[1];
/// What is missing without the probe of drops.
const DROP_PROBE: &str = "drops by reason";
/// And without that of stages.
const LATENCY_PROBE: &str = "latency of stages";

impl Probes {
    /// Starts every probe that this kernel takes.
    ///
    /// **Errors** when the probes of CPU time or of softirqs can't run; the others leave a gap.
    pub fn start(irq_entry: EntryCost) -> Result<Self, HostError> {
        let all = Filter::default();
        let mut unloaded = Vec::new();
        let mut keep = |what, error: HostError| unloaded.push(Unloaded::of(what, &error));
        // Loading takes much longer than putting into place, and what is in its place runs for each packet.
        let drops = Dropping::load(CPU_RATIO).map_err(|error| keep(DROP_PROBE, error)).ok();
        let stages = Stages::load(&all, Pace::OnCall);
        let mut account = Account::live()?;
        // Before polls are counted, and without the others' programs in its interrupts.
        let irq_entry = irq_entry.calibration(&mut account);
        let polls = PollRows::all()?;
        polls.begin_turn(account.loaded())?;
        let stages = stages.and_then(Stages::started);
        let stages = stages.map_err(|error| keep(LATENCY_PROBE, error)).ok();
        let (before, polled) = (account.read()?, polls.read(account.loaded())?);
        let mut probes = Self {
            account,
            polls,
            drops: drops.unwrap_or_else(|| Dropping::none(CPU_RATIO)),
            stages,
            missing: unloaded.iter().map(Unloaded::gap).collect(),
            unloaded,
            before,
            polled,
            latency: Latency::default(),
            one_flow: OneFlow::default(),
            ports: Ports::default(),
            sizes: Sizes::default(),
            meter: Meter::default(),
            timing: Timing::default(),
            turns: Turning::new(budget::rest(CPU_RATIO), SWITCHING, 0.0),
            irq_entry,
            counted: Duration::ZERO,
            received: 0,
            reads_until: None,
            cpu_ratio: CPU_RATIO,
            without_latency: false,
            is_off: false,
            again: Again::default(),
            seen: Seen::default(),
        };
        // Counted from here on: starting took longer than a turn lasts.
        let [rest_ns, drops_ns] = probes.spent_ns();
        probes.turns = Turning::new(budget::rest(CPU_RATIO), SWITCHING, rest_ns);
        if let Err(error) = probes.drops.count(CPU_RATIO, drops_ns) {
            let unloaded = Unloaded::of(DROP_PROBE, &error);
            probes.missing.extend([unloaded.gap()]);
            probes.unloaded.push(unloaded);
        }
        // The first turn decides whether pauses follow: it must be no longer than it has to be.
        sleep(budget::rest(CPU_RATIO).shortest_turn);
        probes.note();
        Ok(probes)
    }

    /// When [`Probes::note`] is due.
    pub fn due(&self) -> Option<Instant> {
        let reads = self.stages.as_ref().and_then(Stages::reads_due);
        let again = self.again.due.filter(|_| !self.is_off);
        [self.turns.due(), self.drops.due(), self.reads_until, reads, again]
            .into_iter()
            .flatten()
            .min()
    }

    /// To be called when it is due: turns begin and end.
    pub fn note(&mut self) {
        if self.again.is_due(Instant::now()) && !self.is_off {
            self.switch_on();
        } else if let Err(error) = self.turn() {
            self.failed(&error);
        }
        match self.drops.step() {
            TurnStep::Stay => {}
            TurnStep::End => self.end_turn_of_drops(),
            TurnStep::Begin => self.begin_turn_of_drops(),
        }
        self.note_reads();
    }

    /// What they take of one CPU from now on, and what they leave out for that. Programs stay loaded.
    pub fn limit(&mut self, limit: ProbeLimit) {
        self.cpu_ratio = limit.cpu_ratio;
        self.turns.set_share(budget::rest(limit.cpu_ratio).share);
        self.drops.turns.set_share(budget::drops(limit.cpu_ratio).share);
        self.without_latency = !limit.with_latency;
        if self.is_off == limit.with_any {
            self.is_off = !limit.with_any;
            if self.is_off { self.switch_off() } else { self.switch_on() }
        }
    }

    fn switch_off(&mut self) {
        self.stop();
        self.reads_until = None;
        if let Some(stages) = &mut self.stages {
            stages.give_up_reads();
        }
        self.drops.switch_off();
        self.turns.stop();
    }

    fn switch_on(&mut self) {
        match self.begin_turn() {
            Ok(()) => self.again.worked(),
            Err(error) => self.failed(&error),
        }
        self.begin_turn_of_drops();
    }

    /// A turn could not begin. What was counted stays, and it is tried again.
    fn failed(&mut self, error: &HostError) {
        self.turns.stop();
        self.stop();
        self.missing.insert(COUNTED.into(), error.to_string());
        self.again.failed(Instant::now());
    }

    /// Ends a turn that must not last as long as what comes next.
    pub fn rest(&mut self) {
        if self.turns.is_short() {
            self.end_turn();
        }
        if self.drops.turns.is_short() {
            self.end_turn_of_drops();
        }
    }

    fn turn(&mut self) -> Result<(), HostError> {
        match self.turns.step() {
            TurnStep::Stay => {}
            TurnStep::End => self.end_turn(),
            TurnStep::Begin => self.begin_turn()?,
        }
        Ok(())
    }

    fn begin_turn(&mut self) -> Result<(), HostError> {
        let (account, polls) = (&mut self.account, &self.polls);
        let stages = self.stages.as_mut().filter(|_| !self.without_latency);
        self.reads_until = None;
        self.turns.begin(|| {
            account.attach()?;
            if let Some(stages) = stages {
                stages.begin_turn();
            }
            account.begin_turn();
            polls.begin_turn(account.loaded())
        })?;
        self.missing.remove(COUNTED);
        Ok(())
    }

    fn end_turn(&mut self) {
        let ([cost_ns, _], packets) = (self.spent_ns(), self.packets());
        let counted = self.turns.counted();
        self.time_runs(counted);
        if !self.turns.end(cost_ns) {
            return;
        }
        let before = own_cpu();
        self.stop();
        self.turns.ended(before);
        // As many reads as packets at most: so long may each of them cost something.
        let counted_s = (counted.saturating_sub(self.counted)).as_secs_f64().max(1e-3);
        let reads_ns = packets.saturating_sub(self.received) as f64 * READ_NS / counted_s;
        (self.counted, self.received) = (counted, packets);
        self.reads_until = self.turns.due().map(|due| {
            let now = Instant::now();
            let cycle_s = due.saturating_duration_since(now).as_secs_f64() + counted_s;
            let linger_s =
                (budget::reads(self.cpu_ratio) * cycle_s * 1e9 / reads_ns.max(1.0)).min(cycle_s);
            now + Duration::from_secs_f64(linger_s)
        });
    }

    /// Counts nothing but drops any more, until the next turn. The programs go in the reverse order of attaching.
    fn stop(&mut self) {
        // The length of a turn was just taken: polls, whose times are divided by it, end first. CPU time has its own.
        let ended = [self.polls.end_turn(self.account.loaded()), self.account.end_turn()];
        if let Some(error) = ended.into_iter().find_map(Result::err) {
            self.missing.insert(COUNTED.into(), error.to_string());
        }
        if let Some(stages) = &mut self.stages {
            stages.end_turn();
        }
        self.account.detach();
    }

    fn begin_turn_of_drops(&mut self) {
        match self.drops.begin_turn() {
            // It did not start, and why is said.
            Ok(()) if self.drops.probe.is_none() => {}
            Ok(()) => drop(self.missing.remove(DROP_PROBE)),
            Err(error) => {
                self.drops.failed();
                self.missing.insert(DROP_PROBE.into(), error.to_string());
                // They would be added once more in each window.
                (self.seen.drops, self.seen.drops_counted_s) = (Vec::new(), 0.0);
            }
        }
    }

    fn end_turn_of_drops(&mut self) {
        let [_, cost_ns] = self.spent_ns();
        self.drops.end_turn(cost_ns);
    }

    /// After a turn the hook of reads waits for what is unread, as long as that costs little.
    fn note_reads(&mut self) {
        let Some(stages) = &mut self.stages else { return };
        stages.note();
        if self.reads_until.is_some_and(|until| Instant::now() >= until) {
            self.reads_until = None;
            stages.give_up_reads();
        }
    }

    /// Where CPU time went in the newest sample.
    pub fn steal(&self) -> Option<&Steal> {
        self.seen.steal.as_deref().filter(|_| !self.is_off && self.again.due.is_none())
    }

    /// What happened since the sample before; of that one again, where not enough was counted since.
    pub fn read(&mut self) -> Result<Seen, HostError> {
        if self.is_off {
            return Err(HostError::Unsupported {
                what: "measure with BPF probes".into(),
                needs: "a larger budget: they were left out to keep it".into(),
            });
        }
        // The newest sample gets older, and would be shown as that of each window.
        if let Some(why) = self.missing.get(COUNTED).filter(|_| self.again.due.is_some()) {
            return Err(HostError::Unsupported {
                what: "measure with BPF probes".into(),
                needs: format!("its programs in their places, which is tried again: {why}"),
            });
        }
        let read = self.read_samples();
        self.seen.once_read(read)
    }

    /// Puts what is new into what was seen last.
    fn read_samples(&mut self) -> Result<(), HostError> {
        // First: the caller has just read what the sockets say of the same packets.
        let drops = self.drops.turns.take();
        if let Some(sample) = drops {
            (self.seen.drops, self.seen.drops_counted_s) = self.drops.read(sample)?;
        }
        let rest = self.turns.take();
        if let Some(sample) = rest {
            self.look(sample)?;
        }
        let sampled = [
            self.turns.sampled(COUNTED, rest.is_some()),
            self.drops.turns.sampled(DROPPED, drops.is_some()),
        ];
        self.seen.sampled = sampled.into_iter().flatten().collect();
        self.seen.lost_count = self.lost()?;
        let lost: u64 = self.seen.lost_count.values().sum();
        let why = no_room(lost, "found no room in a map of the probes since watching began");
        self.seen.gaps.extend(why.map(|why| ("records of the probes".to_owned(), why)));
        self.seen.gaps.extend(self.missing.clone());
        if self.without_latency {
            self.seen.gaps.insert(LATENCY_PROBE.into(), "left out to keep the budget".into());
        }
        self.seen.cost = Some(self.cost(lost));
        Ok(())
    }

    /// Everything but drops.
    fn look(&mut self, sample: Sample) -> Result<(), HostError> {
        let polled = self.polls.read(self.account.loaded())?;
        let (latency, one_flow) = match self.stages.as_ref().filter(|_| !self.without_latency) {
            Some(probe) => {
                self.ports.read(probe)?;
                let (stages, packets) = probe.read()?;
                (self.latency.since(stages), self.one_flow.since(packets))
            }
            None => (Vec::new(), BTreeMap::new()),
        };
        // Last of what can fail: the tasks of a window are in one reading only.
        let mut now = self.account.read()?;
        let window = now.take_since(&self.before);
        // Where thousands of tasks run, their rows take some MB: those of two samples are not needed at the same time.
        self.seen.steal = None;
        let evidence = StealInputs {
            before: &self.before,
            after: &now,
            calibration: self.irq_entry.clone(),
            // A frame has it next to this answer.
            cost: ProbeCost::default(),
            probes: self.account.programs(),
            flows_looked: Duration::ZERO,
        };
        let (mut steal, _) = answer_of(&window, evidence);
        let counted_s = sample.counted.as_secs_f64();
        let most_s = longest_s([&self.before, &now], (counted_s, sample.whole.as_secs_f64()));
        steal.window_s = length(steal.cpus.iter().map(|cpu| cpu.window_s), most_s);
        let mut gaps: BTreeMap<String, String> = entry_gap(&self.irq_entry).into_iter().collect();
        gaps.extend(now.warnings.iter().map(|warning| (warning.code.clone(), warning.to_string())));
        let why = no_room(window.lost(), "slices or polls found no room in the kernel's table");
        gaps.extend(why.map(|why| ("slices of tasks".to_owned(), why)));
        let polls = napis(&polled.napis, &self.polled.napis);
        self.sizes.add(&polls);
        self.seen = Seen {
            counted_s,
            busiest: busiest(&window),
            napi_threads: napi_threads(&window),
            net_rx: net_rx(&polled.cpus, &self.polled.cpus),
            net_tx_ns: net_tx_ns(&polled.cpus, &self.polled.cpus),
            napis: polls,
            latency,
            readers: self.latency.readers(),
            one_flow,
            steal: Some(Arc::new(steal)),
            gaps,
            ..std::mem::take(&mut self.seen)
        };
        self.polled = with_gone(polled, std::mem::take(&mut self.polled));
        self.before = now;
        Ok(())
    }

    /// Latencies that were measured since they were asked for last.
    pub fn latencies(&mut self) -> BTreeMap<String, StageLatency> {
        std::mem::take(&mut self.latency.sums)
    }

    /// The share of each port in the packets that were received since they were asked for last.
    pub fn port_shares(&mut self) -> BTreeMap<PortName, f64> {
        // Of a time in which nobody looked nothing is known.
        if self.without_latency { BTreeMap::new() } else { self.ports.take() }
    }

    /// Polls that were counted since they were asked for last.
    pub fn polls(&mut self) -> BTreeMap<String, PollSizes> {
        self.sizes.take()
    }
}
