//! What an endpoint measures in the window of a trial. All of it begins and ends by the instants of that window.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rxpath_core::{PathSide, SchedClass};
use rxpath_host::netlink::Netlink;
use rxpath_host::read::procfs::task;
use rxpath_host::write::sched;
use rxpath_host::{HostError, Root};
use rxpath_live::observe::{Between, CpuSnapshot, Ours};
use rxpath_record::counters::Snapshot;
use rxpath_record::hosts::ControlCost;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ahead::Ahead;
use super::carriers::Carriers;
use super::cost::{EndpointCost, UsedCpus};
use super::counting::Counting;
use super::device_cpus::Interrupted;
use super::faults::{self, PaceReader, Paces};
use super::links::{CarryingLinks, LinkSpeed, LinksReading, window_faults};
use super::outlet::{Outlet, json};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::trial::phase;
use crate::trial::sampler::{SampledQueues, Sampler, SamplerSources, Sampling, queue_ask};

/// Time from the second reading of the links to the begin: a driver may ask its firmware.
const LINKS_AHEAD: Duration = Duration::from_millis(150);

/// A window to be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowAsk {
    /// Latest begin, of the host's clock.
    pub from_ns: u64,
    /// Latest end, of the host's clock.
    pub to_ns: u64,
    /// Processes whose CPU time is the workload's.
    pub leaders: Vec<i32>,
    /// Further processes of the experiment, where both hosts are one machine.
    pub others: Vec<i32>,
    /// The device whose counters are wanted.
    pub device: String,
    /// How fast the device and those below it are to run; empty where that is not known, or a setting changed it.
    #[serde(default)]
    pub speeds: Vec<LinkSpeed>,
}

/// What the coordinator may want of a window that was ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AheadAsk {
    /// The load has settled: earlier instants. Whether the window begins by them: true or false.
    Earlier {
        /// Begin, of the host's clock.
        from_ns: u64,
        /// End, of the host's clock.
        to_ns: u64,
        /// From this instant of the host's clock on it does not take them: its answer would come too late.
        by_ns: u64,
    },
    /// Another host did not take the earlier instants: the latest ones hold again, unless the window has begun.
    AsArmed,
    /// Samples queues and threads from its begin on.
    Sample(SampleAsk),
    /// Ends the sampler: [`SampledQueues`].
    Sampled,
}

/// What a window showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredWindow {
    /// The instants that held for it, of the host's clock.
    pub window_ns: [u64; 2],
    /// CPU time.
    pub between: Between,
    /// Counters at its begin and at its end.
    pub counters: [Snapshot; 2],
    /// What the endpoint cost meanwhile.
    #[serde(default)]
    pub cost: Option<ControlCost>,
    /// What makes it worthless, in words.
    #[serde(default)]
    pub faults: Vec<String>,
    /// What to know of it otherwise.
    #[serde(default)]
    pub warnings: Vec<rxpath_core::Warning>,
    /// How far its clock may have been from an even pace since its first reading, with the errors of the readings. **Unit** ns.
    #[serde(default)]
    pub uneven_ns: u64,
}

/// Queues and threads to be sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleAsk {
    /// Time from sample to sample.
    pub interval_ns: u64,
    /// The side of the host.
    pub side: PathSide,
    /// Port of the receiver.
    pub port: u16,
    /// TCP instead of UDP.
    pub tcp: bool,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// Process and thread ids.
    pub threads: Vec<(i32, i32)>,
}

/// The window of a trial, from the order on, and the sampler that begins with it.
#[derive(Default)]
pub struct HostWindow {
    ahead: Option<Arc<Ahead>>,
    sampler: Option<JoinHandle<SampledQueues>>,
}

impl HostWindow {
    /// Measures a window, in a thread of its own. What a trial that failed left ends first.
    pub fn arm(
        &mut self,
        (id, ask): (u64, WindowAsk),
        paces: Option<PaceReader>,
        victim: Arc<AtomicI32>,
        outlet: &Arc<Outlet>,
    ) {
        self.end();
        let ahead = Arc::new(Ahead::armed([ask.from_ns, ask.to_ns]));
        self.ahead = Some(Arc::clone(&ahead));
        outlet.later(id, move |outlet| window(&ask, &ahead, paces, &victim, outlet));
    }

    /// The instants of the window that was ordered last.
    ///
    /// # Errors
    /// If there is none.
    pub fn ahead(&self) -> Result<&Arc<Ahead>, LabError> {
        self.ahead.as_ref().ok_or_else(|| LabError::internal("no window is ahead"))
    }

    /// Does what is wanted of it.
    pub fn answer(&mut self, ask: AheadAsk) -> Result<Value, LabError> {
        match ask {
            AheadAsk::Earlier { from_ns, to_ns, by_ns } => {
                json(&self.ahead()?.earlier([from_ns, to_ns], by_ns, monotonic_ns))
            }
            AheadAsk::AsArmed => {
                self.ahead()?.as_armed(monotonic_ns);
                Ok(Value::Null)
            }
            AheadAsk::Sample(ask) => self.sample(ask).map(|()| Value::Null),
            AheadAsk::Sampled => json(&self.sampled()),
        }
    }

    /// Samples from the begin of the window to its end.
    fn sample(&mut self, ask: SampleAsk) -> Result<(), LabError> {
        let (target, ahead) = (target(ask)?, Arc::clone(self.ahead()?));
        self.sampler = Some(std::thread::spawn(move || {
            let Ok(window_ns) = ahead.wait(Duration::ZERO, ahead.is_over()) else {
                return SampledQueues::default();
            };
            let asked_ns = monotonic_ns();
            let running = Box::new(Sampler::start(target));
            // What was sampled until a trial ended counts.
            let _ = phase::until(window_ns[1], ahead.is_over(), || Ok(false));
            let found = running.finish();
            let late = faults::late("its sampler", window_ns, began_ns(&found, asked_ns));
            SampledQueues { faults: late.into_iter().collect(), ..found }
        }));
        Ok(())
    }

    /// What it sampled, once the window is over.
    fn sampled(&mut self) -> SampledQueues {
        self.sampler.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// The load has ended, and with it what is still to be measured or is measured yet.
    pub fn end(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.end();
        }
        self.sampled();
    }
}

fn target(ask: SampleAsk) -> Result<SamplerSources, HostError> {
    let SampleAsk { interval_ns, side, port, tcp, v6, threads } = ask;
    let sockets = match queue_ask(side, port, tcp, v6) {
        Some(ask) => vec![(side, Netlink::sock_diag()?, ask)],
        None => Vec::new(),
    };
    Ok(SamplerSources { interval_ns, sockets, threads: vec![(side, threads)], ring: None })
}

/// The instant of the first sample. Without a sample it is that of the start of the sampler.
fn began_ns(found: &SampledQueues, asked_ns: u64) -> u64 {
    let first = found.samples.as_ref().and_then(|samples| samples.t_ns.first());
    first.and_then(|first_ns| u64::try_from(*first_ns).ok()).unwrap_or(asked_ns)
}

/// Waits for the window's begin, reads, waits for its end, reads again.
fn window(
    ask: &WindowAsk,
    ahead: &Ahead,
    paces: Option<PaceReader>,
    victim: &AtomicI32,
    outlet: &Outlet,
) -> Result<MeasuredWindow, LabError> {
    // Where ksoftirqd has the CPU, an ordinary thread reads late. This one sleeps between its readings. Without the right it goes on.
    let _ = sched::set_class(0, SchedClass::Fifo(1));
    let mut counting = Counting::open(&ask.device)?;
    let (mut carriers, [ordered, near]) = links_before(ask, ahead)?;
    let ready_ns = monotonic_ns();
    let window_ns = ahead.wait_and(Duration::ZERO, ahead.is_over(), || carriers.note())?;
    carriers.begin(window_ns[0]);
    // A line of a program that a silent connection does not take holds this up, and so does a CPU that others have.
    outlet.hold();
    let held_ns = monotonic_ns();
    let ready_ns = if faults::is_late(window_ns, held_ns) { held_ns } else { ready_ns };
    let missed = faults::missed("it", window_ns[0], ready_ns);
    let mut ours = Ours::with_children(std::process::id() as i32, &ask.leaders);
    // Families overlap: a coordinator on this machine may have started its endpoints, and these the workloads.
    ours.pids.extend(ask.others.iter().flat_map(|other| task::family(&Root::host(), *other)));
    ours.pids.sort_unstable();
    ours.pids.dedup();
    let mut paces = paces.map_or_else(Paces::begin, PaceReader::into_window);
    let before = Interrupted::now(&counting.lowest());
    let cpus = UsedCpus::begin();
    // The threads of everybody are read before the mark, and after the one at the end.
    let from = CpuSnapshot::take(&ours);
    let mut cost = EndpointCost::begin(cpus, outlet);
    let first = counting.read();
    let passed = phase::until(window_ns[1], ahead.is_over(), || {
        paces.note();
        cost.note();
        carriers.note();
        Ok(false)
    });
    let last = counting.read();
    // A process of its own since the window began, or none.
    ours.pids.extend(Some(victim.load(Ordering::Relaxed)).filter(|pid| *pid > 0));
    let to = CpuSnapshot::of_ours(&ours);
    let cost = cost.end(outlet);
    let between = Between::marks(&from, &to, &ours);
    paces.read();
    let after = Interrupted::now(&counting.lowest());
    let device_cpus = after.cpus_since(&before, [&first, &last]);
    let between = Between { device_cpus, ..between };
    outlet.release();
    passed?;
    let mut faults: Vec<String> = missed.into_iter().chain(paces.faults()).collect();
    let links = [ordered, near, CarryingLinks::now(&ask.device)];
    faults.extend(window_faults(links, &ask.speeds, &carriers.lost_when(window_ns[0])));
    let (warnings, uneven_ns) = (paces.warnings(), paces.uneven_ns());
    let counters = [first, last];
    Ok(MeasuredWindow { window_ns, between, counters, cost, faults, warnings, uneven_ns })
}

/// Reads the links now, at the order to measure, and a moment ahead of the window. What happens to them in ramp and settle is still
/// in the window: TCP is slower, and queues are full.
fn links_before(ask: &WindowAsk, ahead: &Ahead) -> Result<(Carriers, [LinksReading; 2]), LabError> {
    let changes = |links: &LinksReading| {
        links.as_ref().map(CarryingLinks::carrier_changes).unwrap_or_default()
    };
    // Before the links are read: no loss is between the two.
    let mut carriers = Carriers::listen();
    let ordered = CarryingLinks::now(&ask.device);
    carriers.changes = changes(&ordered);
    ahead.wait_and(LINKS_AHEAD, ahead.is_over(), || carriers.note())?;
    carriers.note();
    // Not in the window: a driver may ask its firmware.
    let near = CarryingLinks::now(&ask.device);
    carriers.near(changes(&near));
    Ok((carriers, [ordered, near]))
}

#[cfg(test)]
mod tests {
    use rxpath_record::samples::TrialSamples;

    use super::*;

    #[test]
    fn a_sampler_whose_order_comes_after_the_begin_of_the_window_says_how_late_it_was() {
        let second_ns = 1_000_000_000;
        let from_ns = monotonic_ns().saturating_sub(second_ns);
        let ahead = Arc::new(Ahead::armed([from_ns, from_ns + second_ns / 2]));
        let mut window = HostWindow { ahead: Some(ahead), sampler: None };
        let (interval_ns, port, threads) = (1_000_000, 1, Vec::new());
        let (side, tcp, v6) = (PathSide::Rx, false, false);
        window.sample(SampleAsk { interval_ns, side, port, tcp, v6, threads }).unwrap();
        let [fault]: [String; 1] = window.sampled().faults.try_into().unwrap();
        assert!(fault.starts_with("its sampler missed the begin of its window by "), "{fault}");
    }

    #[test]
    fn a_sampler_began_with_its_first_sample() {
        let of = |t_ns: &[i64]| SampledQueues {
            samples: Some(TrialSamples { t_ns: t_ns.to_vec(), ..TrialSamples::default() }),
            ..SampledQueues::default()
        };
        assert_eq!(began_ns(&of(&[40, 50]), 10), 40);
        assert_eq!(began_ns(&of(&[]), 10), 10);
        assert_eq!(began_ns(&SampledQueues::default(), 10), 10);
    }
}
