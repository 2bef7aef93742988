//! The phases of one trial in their order, and what each leaves for the next.

mod armed;

use std::any::Any;
use std::time::Duration;

use rxpath_core::{PathSide, Warning};
use rxpath_host::HostError;
use rxpath_live::witness::{Traffic, Witness};
use rxpath_record::counters::Snapshot;
use rxpath_record::evidence::Probed;
use rxpath_record::manifest::FlowCpu;
use rxpath_record::samples::TrialSamples;
use rxpath_stats::slope::Drift;

use self::armed::Armed;
use super::attached::Attached;
use super::background::{Alongside, Background};
use super::config::{TrialConfig, whole};
use super::kernel_lines::Watcher;
use super::line::Line;
use super::measurements::Measurements;
use super::observers::{Observed, Observing};
use super::peer::Peer;
use super::sampler::{Sampled, SampledQueues, Sampling};
use super::side::SideMeasurements;
use super::{phase, start, steadiness, waiting, window};
use crate::error::LabError;
use crate::scenario::spec::Variant;
use crate::testbed::Testbed;
use crate::testbed::hosts::delay::ClocksAfter;
use crate::testbed::hosts::start::Starts;
use crate::testbed::ring::Ring;
use crate::testbed::seat::Seat;
use crate::testbed::window::{Measured, Windowed};

/// Counters must be quiescent within this time, before and after the load.
const REST_LIMIT: Duration = Duration::from_secs(10);
/// A workload must be set up within this time.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// A workload must report within this time after the order to stop.
const RESULT_LIMIT: Duration = Duration::from_secs(15);
/// A rate is watched at least this long before it counts as settled.
const SETTLE_SPAN_S: f64 = 0.4;

/// Both programs of a trial on their testbed.
struct Trial<'a> {
    config: &'a TrialConfig<'a>,
    testbed: &'a dyn Testbed,
    load: Box<dyn Peer + 'a>,
    serve: Option<Box<dyn Peer + 'a>>,
    watcher: Watcher<'a>,
    background: Box<dyn Alongside>,
    observers: Box<dyn Observing>,
    observed: Observed,
    starts: Starts,
    armed: Armed<'a>,
    warnings: Vec<Warning>,
}

/// Runs one trial from quiescent counters to quiescent counters; `begin` gets the name of each phase.
///
/// # Errors
/// [`LabError::Died`] and [`LabError::Silent`] when a workload fails, [`LabError::Interrupted`] on a signal;
/// both programs are gone when this returns.
pub fn run_trial(
    config: &TrialConfig<'_>,
    testbed: &dyn Testbed,
    begin: &mut dyn FnMut(&str),
) -> Result<Measurements, LabError> {
    let watcher = Watcher::new(testbed, needs_watcher(config.variant))?;
    // Before the receiver takes the port.
    let flow_cpus = flow_cpus(config.variant, testbed)?;
    let mut attached = Attached::before(testbed);
    // The server first: a load may connect while it sets up.
    let mut serve = start::serve(config, testbed)?;
    if let Some(serve) = &mut serve {
        serve.wait_ready(READY_LIMIT, config.stop)?;
    }
    let mut load = start::load(config, testbed)?;
    load.wait_ready(READY_LIMIT, config.stop)?;
    let mut warnings = Vec::new();
    let _awake = awake(config, testbed, &mut warnings)?;
    let observers = testbed.observers(config.variant, config.cost().as_ref())?;
    let mut trial = Trial {
        config,
        testbed,
        load,
        serve,
        watcher,
        background: Box::new(Background::default()),
        observers,
        observed: Observed::default(),
        starts: Starts::default(),
        armed: Armed::default(),
        warnings,
    };
    attached.look();
    let before = trial.counters("before the load")?;
    let tracked = testbed.conntrack();
    let mut witness = config.witness.then(Witness::start);
    let ring = trial.ring()?;
    trial.background = testbed.background(config.variant, config.owner)?;
    begin("ramp");
    let ramp_end = trial.start()?;
    trial.pass(ramp_end, "ramp")?;
    begin("settle");
    trial.settle(ramp_end)?;
    begin("measure");
    let queues = trial.sampler(ring)?;
    let (mut window, probed) = trial.measure(witness.as_mut(), ramp_end)?;
    // Its programs go before the drain.
    drop(witness);
    let samples = queues.and_then(|queues| trial.sampled(queues, &mut window));
    trial.say_background()?;
    begin("drain");
    let load = trial.stop_load()?;
    let hooks = attached.look();
    let empty =
        |now: &Snapshot| waiting::nothing(config.variant, (testbed, &hooks), &load, [&before, now]);
    trial.rest("after the load", &empty)?;
    let foreign_drops = trial.foreign_drops()?;
    let serve = trial.stop_server()?;
    begin("read");
    let after = trial.counters("after draining")?;
    let conntrack = tracked.zip(testbed.conntrack()).map(|(before, after)| [before, after]);
    let queued_bytes = testbed.queued_bytes()?;
    trial.observers.end(&|netns| testbed.side_of(netns), &mut trial.observed)?;
    let ended = trial.finish(load, serve, window)?;
    let counters = [before, after];
    let ended = Measurements { counters, hooks, foreign_drops, conntrack, ..ended };
    Ok(Measurements { queued_bytes, flow_cpus, probed, samples, ..ended })
}

/// Held for the trial, where its variant wants it. A host whose CPUs cannot be kept awake, and a user who may not, get a
/// warning: the trial's own noise then shows whether it mattered.
fn awake(
    config: &TrialConfig<'_>,
    testbed: &dyn Testbed,
    warnings: &mut Vec<Warning>,
) -> Result<Option<Box<dyn Any>>, LabError> {
    match config.variant.lab.awake.then(|| testbed.keep_awake()).transpose() {
        Err(LabError::Host(error @ (HostError::Unsupported { .. } | HostError::Denied { .. }))) => {
            warnings.push(Warning::new("not-awake", format!("lab.awake has no effect: {error}")));
            Ok(None)
        }
        held => held,
    }
}

/// Only of unconnected senders with known source ports: what another socket sees holds for no other.
fn flow_cpus(variant: &Variant, testbed: &dyn Testbed) -> Result<Vec<FlowCpu>, LabError> {
    let Some(own) = variant.load.own().filter(|own| own.datagrams.is_some()) else {
        return Ok(Vec::new());
    };
    let options = &own.options;
    match (options.unconnected, options.source_port) {
        (true, Some(first)) => testbed.flow_cpus(first, options.flows.unwrap_or(1), own.port),
        _ => Ok(Vec::new()),
    }
}

/// Foreign programs print no lines of ours: the kernel's counters stand in for them. Without a server there are no
/// lines of a receiver either, and none are needed: nothing is delivered.
fn needs_watcher(variant: &Variant) -> bool {
    variant.load.is_external() || variant.serve.is_external()
}

/// A generator with a duration of its own is waited for that long.
fn own_length(config: &TrialConfig<'_>) -> Duration {
    if config.variant.load.is_external() {
        whole(config.trials).as_duration()
    } else {
        Duration::ZERO
    }
}

/// Process and thread id of each thread of a side's programs, by host.
fn threads(side: PathSide, peer: &dyn Peer) -> Vec<(Seat, Vec<(i32, i32)>)> {
    let of_program = |(pid, tids): (u32, Vec<i32>)| -> Vec<(i32, i32)> {
        let pid = pid as i32;
        let tids = if tids.is_empty() { vec![pid] } else { tids };
        tids.into_iter().map(|tid| (pid, tid)).collect()
    };
    let of_host = |(index, programs): (usize, Vec<(u32, Vec<i32>)>)| {
        (Seat { side, index }, programs.into_iter().flat_map(of_program).collect())
    };
    peer.threads().into_iter().enumerate().map(of_host).collect()
}

impl Trial<'_> {
    fn look(&mut self, phase: &'static str) -> Result<(), LabError> {
        if let Some(serve) = &mut self.serve {
            serve.check_alive(phase)?;
        }
        self.load.check_alive(phase)?;
        self.watcher.look();
        self.observers.note();
        Ok(())
    }

    fn pass(&mut self, until_ns: u64, phase: &'static str) -> Result<(), LabError> {
        phase::until(until_ns, self.config.stop, || self.look(phase).map(|()| false)).map(drop)
    }

    /// Waits until no change of the rate is shown that would matter over the window, or for the time that the scenario
    /// gives.
    fn settle(&mut self, ramp_end: u64) -> Result<(), LabError> {
        let stop = self.config.stop;
        let (settle, measure) = (self.config.trials.settle, self.config.trials.measure);
        let limit = ramp_end + settle.0;
        let mut drift = None;
        let look = || -> Result<bool, LabError> {
            self.look("settle")?;
            let recent: Vec<Line> =
                self.rate_lines().into_iter().filter(|line| line.t_ns >= ramp_end).collect();
            let rates = window::rates(&recent);
            let watched = rates.last().map_or(0.0, |(at, _)| *at);
            drift = Drift::of(&rates);
            Ok(watched >= SETTLE_SPAN_S
                && drift.is_some_and(|drift| !drift.matters(measure.as_secs_f64())))
        };
        let is_settled = phase::until(limit, stop, look)?;
        if is_settled && let Some(mut window) = self.armed.window.take() {
            let from_ns = window.start_ns();
            let look = || self.look("settle").and_then(|()| window.settled(stop));
            let waited = phase::until(from_ns, stop, look);
            self.armed.window = Some(window);
            waited?;
        }
        let is_late = !is_settled && settle.0 > 0;
        self.warnings.extend(is_late.then(|| steadiness::not_settled(drift, settle, measure)));
        Ok(())
    }

    /// The lines whose rate has to settle: the receiver's, or the sender's where nobody receives.
    ///
    /// A client with answers counts both directions, so the lines of either side serve there.
    fn rate_lines(&self) -> Vec<Line> {
        let load = || self.load.intervals();
        let own = self.serve.as_ref().map_or_else(load, |serve| serve.intervals());
        let answered = self.config.variant.protocol().is_answered();
        let own = if own.is_empty() && answered { load() } else { own };
        if own.is_empty() { self.watcher.receiver() } else { own }
    }

    fn measure(
        &mut self,
        mut witness: Option<&mut Witness>,
        ramp_end: u64,
    ) -> Result<(Windowed, Option<Probed>), LabError> {
        let measured = self.measured();
        let mut window = match self.armed.window.take() {
            Some(window) => window,
            None => self.testbed.window(&measured)?,
        };
        if let Some(witness) = &mut witness {
            witness.begin();
        }
        self.observers.open(measured.length, self.config.owner)?;
        if let Some(victim) = self.observers.victim_pid() {
            window.include(victim);
        }
        let end_ns = window.start_ns() + measured.length.0;
        self.pass(end_ns, "measure")?;
        let testbed = self.testbed;
        self.observers.close(&|netns| testbed.side_of(netns), &mut self.observed)?;
        let probed = witness.map(|witness| {
            let (workloads, readers) = (measured.leaders(), measured.serves.concat());
            witness.end().of(&Traffic { workloads: &workloads, readers: &readers })
        });
        let mut windowed = window.close(self.testbed)?;
        let load_end_ns = self.load_end_ns(ramp_end - self.config.trials.ramp.0);
        let load_end_ns = load_end_ns.or_else(|| self.load.ended_ns());
        let has_ended = load_end_ns.is_some_and(|load_end_ns| load_end_ns < end_ns);
        let fault = "the window began so late that the senders had ended in it";
        windowed.faults.extend(has_ended.then(|| fault.to_owned()));
        windowed.faults.append(&mut self.observed.faults);
        Ok((windowed, probed))
    }

    /// The link's ring, where each datagram is one packet in it that IP has counted: GSO cuts packets below IP, and an
    /// engine that makes packets itself goes around it.
    fn ring(&self) -> Result<Option<Ring>, LabError> {
        let variant = self.config.variant;
        let own = variant.load.own();
        let whole = own.is_some_and(|own| {
            let by_sockets = own.options.engine.is_none() && own.options.corrupt.is_none();
            own.datagrams.is_some() && own.options.gso.is_none() && by_sockets
        });
        if whole && variant.observe.sample_interval.0 > 0 { self.testbed.ring() } else { Ok(None) }
    }

    /// What the window measures.
    fn measured(&self) -> Measured {
        Measured {
            loads: self.load.leaders(),
            serves: self.serve.as_ref().map_or_else(Vec::new, |serve| serve.leaders()),
            others: self.background.pids(),
            length: self.config.trials.measure,
        }
    }

    /// Starts the sampler, unless one waits for the window or the scenario wants none.
    fn sampler(&mut self, ring: Option<Ring>) -> Result<Option<Box<dyn Sampling>>, LabError> {
        let variant = self.config.variant;
        let interval_ns = variant.observe.sample_interval.0;
        if interval_ns == 0 || self.armed.queues.is_some() {
            return Ok(self.armed.queues.take());
        }
        let mut all = threads(PathSide::Tx, self.load.as_ref());
        all.extend(
            self.serve.as_deref().into_iter().flat_map(|serve| threads(PathSide::Rx, serve)),
        );
        let (tcp, v6) = (variant.protocol().over_tcp(), variant.lab.ipv6);
        let port = variant.serve.port();
        Ok(Some(self.testbed.sampler(Sampled {
            interval_ns,
            port,
            tcp,
            v6,
            threads: all,
            ring,
        })?))
    }

    /// Ends the sampler: its samples, if it did not fail.
    fn sampled(
        &mut self,
        queues: Box<dyn Sampling>,
        window: &mut Windowed,
    ) -> Option<TrialSamples> {
        let SampledQueues { samples, warning, faults } = queues.finish();
        self.warnings.extend(warning);
        window.faults.extend(faults);
        samples
    }

    /// Ends the receiver, where there is one.
    fn stop_server(&mut self) -> Result<SideMeasurements, LabError> {
        match &mut self.serve {
            Some(serve) => serve.stop(RESULT_LIMIT, self.config.stop),
            None => Ok(SideMeasurements::default()),
        }
    }

    /// The drops of a foreign receiver's sockets: it does not tell them, and the memory limit of its control group counts
    /// nowhere else.
    fn foreign_drops(&self) -> Result<Vec<Option<Vec<u64>>>, LabError> {
        let variant = self.config.variant;
        if !variant.serve.is_external() || variant.protocol().over_tcp() {
            return Ok(Vec::new());
        }
        self.testbed.socket_drops(variant.serve.port())
    }

    /// Whether the background ran to the end, and whether the reader's nice acts against it.
    fn say_background(&mut self) -> Result<(), LabError> {
        let variant = self.config.variant;
        let nice = variant.serve.own().and_then(|own| own.options.nice).unwrap_or(0);
        let readers = self.serve.as_ref().map_or_else(Vec::new, |serve| serve.leaders().concat());
        self.warnings.extend(self.background.warnings(&variant.background, &readers, nice)?);
        Ok(())
    }

    /// The counters of the machines and of the network between them, at an end of the trial.
    fn counters(&mut self, when: &str) -> Result<Snapshot, LabError> {
        let mut counters = self.rest(when, &|_| true)?;
        self.testbed.read_network_counters(&mut counters);
        Ok(counters)
    }

    fn rest(
        &mut self,
        when: &str,
        empty: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<Snapshot, LabError> {
        let rested = self.testbed.rest(REST_LIMIT, self.config.stop, empty)?;
        if rested.is_none() && !self.testbed.shared_with_others() {
            let limit_s = REST_LIMIT.as_secs();
            let text = format!("counters still moved or packets still waited {limit_s} s {when}");
            let why = "a queue did not run empty, or something in the lab went on";
            self.warnings.push(Warning::new("counters-moving", text).because(why));
        }
        Ok(rested.unwrap_or_else(|| self.testbed.snapshot()))
    }

    fn finish(
        mut self,
        load: SideMeasurements,
        mut serve: SideMeasurements,
        mut window: Windowed,
    ) -> Result<Measurements, LabError> {
        let (kernel_tx, kernel_rx) = self.watcher.into_lines();
        let load = load.or_lines(kernel_tx);
        if let Some(server) = self.serve {
            serve = serve.or_lines(kernel_rx);
            self.warnings.extend(server.close()?);
        }
        self.warnings.extend(self.load.close()?);
        let (mut warnings, mut observed) = (self.warnings, self.observed);
        warnings.append(&mut observed.warnings);
        warnings.append(&mut window.warnings);
        let ClocksAfter { delay, jumps, warning } = self.testbed.clocks_after()?;
        window.jumps = jumps;
        window.faults.extend(self.starts.faults);
        window.starts = self.starts.hosts;
        warnings.extend(warning);
        let delay_error = delay.with_uneven(window.uneven_ns);
        let ended = Measurements { observed, load, serve, warnings, ..Measurements::default() };
        Ok(Measurements { window, delay_error, ..ended })
    }
}
