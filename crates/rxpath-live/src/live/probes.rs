//! The tracepoints that are watched in addition to the counters, and their cost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rxpath_bpf::cost::{PartMeter, RunTimes, own_cpu};
use rxpath_bpf::object::Loaded;
use rxpath_bpf::{Probe, ProbeCost, probe};
use rxpath_record::evidence::Probed;
use rxpath_record::ledger::DropReason;

use super::Owners;
use super::programs::Programs;
use super::reads::{Reading, Readings};
use super::reasons::Reasons;
use super::sockets::Socket;
use crate::witness::{Traffic, Witness, Witnessed};

/// Why there are no BPF probes where the user does not want them.
pub const NOT_ASKED: &str = "BPF was not asked for";

/// What is watched with them, and its cost.
pub(crate) struct Probes {
    /// They are to be started before the window.
    wanted: bool,
    /// None where nobody asked for them.
    parts: Option<Parts>,
    cost: ProbeCost,
    cpu_before: Duration,
}

impl Probes {
    /// Those that start before the window, where they are wanted.
    pub(super) fn new(wanted: bool) -> Self {
        let cost = unknown(NOT_ASKED.into());
        Self { wanted, parts: None, cost, cpu_before: own_cpu() }
    }

    /// Programs that are in their places already.
    pub(crate) fn of(programs: Programs) -> Self {
        Self { parts: Some(Parts::of(programs)), ..Self::new(false) }
    }

    /// The programs, as they were given.
    pub(crate) fn into_programs(self) -> Programs {
        self.parts.map_or_else(|| Programs::none(NOT_ASKED), Parts::into_programs)
    }

    /// Puts them into place, before the window.
    pub(super) fn start(&mut self) {
        if self.wanted {
            self.parts = Some(Parts::start());
        }
        self.parts.iter_mut().for_each(Parts::time);
    }

    /// Adds who has read the sockets by now: `/proc` may not show who has them open.
    pub(super) fn add_readers(&self, owners: &mut Owners) {
        let reads = self.parts.as_ref().and_then(|parts| parts.reads.as_ref().ok());
        for by in reads.and_then(|reads| reads.probe.read().ok()).unwrap_or_default() {
            if let Some(inode) = u32::try_from(by.inode).ok().filter(|inode| *inode != 0) {
                owners.entry(inode).or_default().insert(by.pid);
            }
        }
    }

    /// A window of about this length begins.
    pub(super) fn begin(&mut self, length: Duration) {
        self.cpu_before = own_cpu();
        self.parts.iter_mut().for_each(|parts| parts.begin(length));
    }

    /// To be called some fifty times a second: the cost is measured in the first part of the window only.
    pub(super) fn note(&mut self) {
        if let Some(meter) = self.parts.as_mut().and_then(|parts| parts.meter.as_mut()) {
            meter.note();
        }
    }

    /// The window ends: the kernel's drop reasons up to now, and which threads read in it. A reading that fails leaves its
    /// reason.
    pub(super) fn end_window(&mut self) -> Option<Readings> {
        self.parts.as_mut()?.end_window()
    }

    /// Ends the measuring of the cost.
    pub(super) fn close(&mut self) {
        if let Some(parts) = &mut self.parts {
            self.cost = parts.cost();
        }
    }

    /// The kernel's drop reasons in the window; a reading that fails leaves its reason.
    pub(super) fn reasons(&mut self) -> Option<Vec<DropReason>> {
        let parts = self.parts.as_mut()?;
        let read = parts.reasons.as_ref().ok()?.read();
        read.map_err(|why| parts.reasons = Err(why)).ok()
    }

    /// What they report of the window, where they ran, and what they cost.
    pub(super) fn end(
        &mut self,
        sockets: &BTreeMap<u32, Socket>,
        owners: &Owners,
    ) -> (Option<Probed>, ProbeCost) {
        let lost = self.parts.as_ref().map_or(Ok(0), Parts::lost);
        let mut probed = self.parts.as_mut().and_then(|parts| parts.end(sockets, owners));
        if let (Some(seen), Err(why)) = (&mut probed, &lost) {
            seen.gaps.push(format!("how many records found no room in a map is unknown: {why}"));
        }
        let lost_count = lost.unwrap_or(0);
        let reader_cpu_s = own_cpu().saturating_sub(self.cpu_before).as_secs_f64();
        (probed, ProbeCost { lost_count, reader_cpu_s, ..std::mem::take(&mut self.cost) })
    }
}

/// What runs; each part may be missing with its reason.
struct Parts {
    witness: Witness,
    reasons: Result<Reasons, String>,
    reads: Result<Reading, String>,
    /// Until the window begins: its meter then finds the kernel measuring.
    timed: Option<RunTimes>,
    /// From the window's begin on; none where no program runs.
    meter: Option<PartMeter>,
    begun: Instant,
    /// Its length, and what was seen in it, from its end on.
    window: Duration,
    seen: Option<Witnessed>,
}

/// Longest time to put programs into place: a machine without CPU to spare takes seconds for each, and what is looked for
/// may be over then.
const STARTING: Duration = Duration::from_secs(2);

/// Whether there is time for one more part.
fn in_time(begun: Instant) -> Result<(), String> {
    let took = begun.elapsed();
    if took <= STARTING {
        return Ok(());
    }
    Err(format!(
        "left out: the programs before it took {took:.1?} to be put into place, this machine has no CPU to spare"
    ))
}

impl Parts {
    /// The most telling parts first.
    fn start() -> Self {
        let begun = Instant::now();
        let reasons = Reasons::start();
        let reads = in_time(begun).and_then(|()| Reading::start());
        let witness = Witness::start_while(&|| in_time(begun));
        Self::new(witness, reasons, reads)
    }

    /// Programs that are in their places.
    fn of(programs: Programs) -> Self {
        let reasons = Err("a deep look does not watch them".to_owned());
        let reads = programs.reads.map(Reading::of);
        Self::new(Witness::of_locks(programs.locks), reasons, reads)
    }

    fn new(
        witness: Witness,
        reasons: Result<Reasons, String>,
        reads: Result<Reading, String>,
    ) -> Self {
        let (begun, window) = (Instant::now(), Duration::ZERO);
        Self { witness, reasons, reads, timed: None, meter: None, begun, window, seen: None }
    }

    fn into_programs(self) -> Programs {
        let reads = self.reads.map(|reading| reading.probe);
        Programs { reads, locks: self.witness.locks }
    }

    /// Before the window: see [`RunTimes`]. Where no program runs the kernel is not asked.
    fn time(&mut self) {
        if !self.probes().is_empty() {
            self.timed = RunTimes::measured().ok();
        }
    }

    fn begin(&mut self, length: Duration) {
        self.witness.begin();
        self.reasons.iter_mut().for_each(Reasons::begin);
        self.reads.iter_mut().for_each(Reading::begin);
        let objects: Vec<&Loaded> = self.probes().into_iter().map(Probe::loaded).collect();
        let meter = (!objects.is_empty()).then(|| PartMeter::start(&objects, length));
        (self.meter, self.timed, self.begun) = (meter, None, Instant::now());
    }

    fn end_window(&mut self) -> Option<Readings> {
        self.window = self.begun.elapsed();
        // Reads first: they are compared with the counters, which were just read. The witness takes longest.
        let reads = self.reads.as_mut().ok().and_then(Reading::end);
        self.reasons.iter_mut().for_each(Reasons::end);
        self.seen = Some(self.witness.end());
        reads
    }

    /// What the programs cost over the window.
    fn cost(&mut self) -> ProbeCost {
        let part = match &mut self.meter {
            Some(meter) => meter.stop(),
            None => unknown("no BPF program runs".into()),
        };
        let factor = self.window.as_secs_f64() / part.measured_s.max(1e-9);
        let map_bytes = probe::map_bytes(&self.probes());
        ProbeCost { map_bytes, ..part.scaled(|_| factor) }
    }

    fn probes(&self) -> Vec<&dyn Probe> {
        let mut probes = self.witness.parts();
        probes.extend(self.reasons.as_ref().ok().map(|it| &it.probe as &dyn Probe));
        probes.extend(self.reads.as_ref().ok().map(|it| &it.probe as &dyn Probe));
        probes
    }

    /// What found no room in a map since the start.
    fn lost(&self) -> Result<u64, String> {
        probe::lost(&self.probes()).map_err(|error| error.to_string())
    }

    fn end(&mut self, sockets: &BTreeMap<u32, Socket>, owners: &Owners) -> Option<Probed> {
        let holders = sockets.keys().filter_map(|inode| owners.get(inode));
        let readers: Vec<i32> = holders.flatten().copied().collect();
        let all: BTreeSet<i32> = owners.values().flatten().copied().collect();
        let workloads: Vec<i32> = all.into_iter().chain([std::process::id() as i32]).collect();
        let traffic = Traffic { workloads: &workloads, readers: &readers };
        let mut seen = self.seen.take()?.of(&traffic);
        let reasons = self.reasons.as_ref().err();
        let reads = self.reads.as_ref().map_or_else(Some, |reading| reading.failed.as_ref());
        seen.gaps.extend(reasons.map(|why| format!("drop reasons: {why}")));
        seen.gaps.extend(reads.map(|why| format!("which threads read: {why}")));
        Some(seen)
    }
}

fn unknown(why: String) -> ProbeCost {
    ProbeCost { gap: Some(why), ..ProbeCost::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where it may ask: as root, in a build with BPF.
    #[test]
    fn without_programs_the_kernel_is_not_asked_to_measure() {
        let mut probes = Probes::of(Programs::none("not in this test"));
        probes.start();
        assert!(probes.parts.is_some_and(|parts| parts.timed.is_none()));
    }

    #[test]
    fn parts_for_which_the_time_is_up_are_left_out_with_the_reason() {
        assert_eq!(in_time(Instant::now()), Ok(()));
        let long_ago = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let late = Witness::start_while(&|| in_time(long_ago));
        let seen = late.end().of(&Traffic { workloads: &[], readers: &[] });
        assert!(!seen.gaps.is_empty(), "{seen:?}");
        assert!(seen.gaps.iter().all(|gap| gap.contains("left out: the programs")), "{seen:?}");
    }
}
