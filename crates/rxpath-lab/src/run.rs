//! A whole run: blocks of trials in random order, their statistics, and the directory that keeps them.
//!
//! The question: *does this change make a difference here, how large, and which stage limits?* A run must leave
//! nothing behind but its directory, however it ends.

pub(crate) mod admission;
mod available;
pub mod capacity;
mod disturbed;
mod end;
pub mod headline;
mod options;
pub(crate) mod pairs;
pub mod progress;
pub mod series;
mod steadiness;
pub mod steps;
pub mod summary;
mod times;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use rand::RngExt;
use rxpath_bpf::account::calibrate::IrqCalibration;
use rxpath_core::Warning;
use rxpath_host::Root;
use rxpath_host::lab::capture::scrub::Scrubber;
use rxpath_host::lab::owner::{self, Owner};
use rxpath_host::read::environment;
use rxpath_record::environment::Environment;
use rxpath_record::event::{RunEvent, What};
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::run::{ENVIRONMENT_SCHEMA, MANIFEST_SCHEMA, RunWriter, run_id};
use rxpath_record::samples::TrialSamples;
use serde::Serialize;

pub use self::admission::LOCK_PATIENCE;
use self::admission::{can_run, lock, shared_counters};
pub use self::available::left_out;
pub use self::options::Options;
use self::progress::Progress;
use self::times::Times;
use crate::clock::{epoch_offset_ns, monotonic_ns};
use crate::error::{AfterLoss, LabError};
use crate::hosts::{Hosts, names, probe};
use crate::installed;
use crate::plan::{self, REPLACEMENTS};
use crate::scenario::spec::{Resolved, Topology, Variant};
use crate::testbed::hosts::HostsTestbed;
use crate::testbed::local::LocalTestbed;
use crate::testbed::netns::NetnsTestbed;
use crate::testbed::{Change, Testbed};
use crate::trial::compose::{Number, compose};
use crate::trial::config::TrialConfig;
use crate::trial::observers;
use crate::trial::runner::run_trial;

/// A run that has ended, one way or another, with its directory written.
#[derive(Debug)]
pub struct FinishedRun {
    /// The run directory.
    pub directory: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
    /// The error that ended it early.
    pub error: Option<LabError>,
}

/// Runs an experiment.
///
/// # Errors
/// Only what prevents a run directory from being made or kept; an error in a trial ends the run and is reported in
/// [`FinishedRun::error`] with everything before it kept.
pub fn run(
    resolved: &Resolved,
    options: &Options<'_>,
    progress: &mut dyn Progress,
) -> Result<FinishedRun, LabError> {
    within(resolved, options, progress, |running| {
        running.find_capacity()?;
        if running.early.is_none() {
            running.blocks()?;
        }
        running.paired_trials()
    })
}

/// Does this work with the lab locked and a run directory made.
fn within(
    resolved: &Resolved,
    options: &Options<'_>,
    progress: &mut dyn Progress,
    work: impl FnOnce(&mut Running<'_>) -> Result<(), LabError>,
) -> Result<FinishedRun, LabError> {
    let needs_lab = resolved.variants.iter().any(|variant| variant.topology.makes_lab());
    if needs_lab {
        can_run(options.without_root.as_deref())?;
    }
    installed::check(resolved, options.hosts)?;
    options.hosts.map_or(Ok(()), |hosts| hosts.check_programs(resolved))?;
    let wanted = observers::wanted(resolved);
    options
        .hosts
        .map_or_else(|| observers::can_run(&wanted), |hosts| hosts.can_observe(&wanted))?;
    if needs_lab {
        // What a killed run left would take names and CPU time.
        owner::cleanup()?;
    }
    let mut waiting = |text: &str| progress.found(text);
    // Hosts hold their own locks.
    let is_here = options.hosts.is_none_or(|hosts| hosts.is_here);
    let _lock = is_here.then(|| lock(options.stop, options.patience, &mut waiting)).transpose()?;
    options.hosts.map_or(Ok(()), |hosts| hosts.probe(&probe::ports(resolved)))?;
    let random: u32 = rand::rng().random();
    let started = Timestamp::now();
    let id = run_id(started, &resolved.name, random);
    let register = || Owner::register(&format!("{:06x}", random & 0x00ff_ffff));
    let lab_owner = needs_lab.then(register).transpose()?;
    let writer = RunWriter::create(options.base, &id)?;
    let mut manifest = first_manifest(resolved, options, (id, started))?;
    manifest.warnings.extend(shared_counters(resolved));
    manifest.warnings.extend(options.hosts.into_iter().flat_map(Hosts::warnings));
    let mut running = Running {
        resolved: resolved.clone(),
        options,
        owner: lab_owner,
        writer,
        manifest,
        progress,
        deadline_ns: monotonic_ns().saturating_add(resolved.trials.time_limit.0),
        next_trial: 0,
        calibration: None,
        times: Times::default(),
        scrubber: options.hosts.map(Hosts::scrubber),
        early: None,
    };
    let outcome = running.begin().and_then(|()| work(&mut running));
    running.end(outcome)
}

fn first_manifest(
    resolved: &Resolved,
    options: &Options<'_>,
    (id, started): (String, Timestamp),
) -> Result<Manifest, LabError> {
    Ok(Manifest {
        schema: MANIFEST_SCHEMA.into(),
        run_id: id,
        command: options.command.clone(),
        version: options.version.into(),
        scenario: resolved.name.clone(),
        question: resolved.question.clone(),
        expected: resolved.expected.clone(),
        resolved: as_json("scenario", resolved)?,
        seed: resolved.trials.seed,
        started: started.to_string(),
        epoch_offset_ns: epoch_offset_ns(),
        main_metric: main_metric(resolved),
        hosts: options.hosts.map(Hosts::record).unwrap_or_default(),
        warnings: resolved.warnings.clone(),
        ..Manifest::default()
    })
}

/// What the run directory must have: a run that does not say what it ran is none.
fn as_json(what: &str, value: &impl Serialize) -> Result<serde_json::Value, LabError> {
    serde_json::to_value(value).map_err(|error| LabError::not_json(&format!("the {what}"), &error))
}

/// The metric that a scenario is about: what its victim got, or that of its protocol.
fn main_metric(resolved: &Resolved) -> String {
    let first = resolved.available().next().or(resolved.variants.first());
    first.map_or("delivered_pps", Variant::main_metric).to_owned()
}

struct Running<'a> {
    /// As given, with the rates that only a measurement here could tell.
    resolved: Resolved,
    options: &'a Options<'a>,
    owner: Option<Owner>,
    writer: RunWriter,
    manifest: Manifest,
    progress: &'a mut dyn Progress,
    deadline_ns: u64,
    next_trial: u32,
    /// What an interrupt costs here, when a variant wants to know who paid.
    calibration: Option<IrqCalibration>,
    times: Times,
    /// Replaces what names the hosts in what third-party programs print.
    scrubber: Option<Scrubber>,
    /// Why it ends before everything planned was run: as the last event says it.
    early: Option<&'static str>,
}

impl<'a> Running<'a> {
    fn tell(&mut self, what: What) -> Result<(), LabError> {
        Ok(self.writer.event(&RunEvent { t_ns: monotonic_ns() as i64, what })?)
    }

    /// Keeps a warning of the run, as an event too: a killed run has no other record of it.
    fn warn(&mut self, warning: Warning) -> Result<(), LabError> {
        self.manifest.warnings.push(warning.clone());
        self.tell(What::Warned(warning))
    }

    fn begin(&mut self) -> Result<(), LabError> {
        let (run_id, scenario) = (self.manifest.run_id.clone(), self.manifest.scenario.clone());
        self.tell(What::RunStarted { run_id, scenario })?;
        for warning in self.manifest.warnings.clone() {
            self.tell(What::Warned(warning))?;
        }
        let hosts = match self.options.hosts {
            Some(hosts) => hosts.facts(),
            None => [("local".to_owned(), environment::collect(&Root::host()))].into(),
        };
        self.writer.environment(&Environment { schema: ENVIRONMENT_SCHEMA.into(), hosts })?;
        if let Some(calibration) = self.options.calibration {
            self.writer.calibration(&as_json("calibration", calibration)?)?;
        }
        self.writer.manifest(&self.manifest)?;
        let plan = plan::plan_between(&self.resolved, self.options.hosts.map(Hosts::rests_take));
        self.progress.planned(&plan, self.writer.directory());
        if observers::calibrates(&self.resolved) {
            let cpu = observers::victim_cpu(&self.resolved);
            let hosts = self.options.hosts;
            let found = hosts.map_or_else(|| observers::calibrate(cpu), |it| it.calibrate(cpu))?;
            let text = if found.points.is_empty() {
                let text = format!("interrupt entry and exit are not estimated: {}", found.source);
                let kept = Warning::new("irq-entry-unknown", text.clone());
                self.warn(kept.because("what was taken from tasks is then counted too small"))?;
                text
            } else {
                format!("interrupt entry and exit: {:.2} us each", found.irq_entry_us)
            };
            self.progress.found(&text);
            self.calibration = Some(found);
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<(), LabError> {
        let trials = self.resolved.trials.clone();
        for block in 0..=trials.max_blocks.max(trials.blocks) {
            if block > trials.blocks && summary::settled(&self.resolved, &self.manifest) {
                break;
            }
            for index in plan::block_order(&self.resolved, block) {
                if monotonic_ns() >= self.deadline_ns {
                    let limit = trials.time_limit;
                    let text = format!("the time limit of {limit} ended the run in block {block}");
                    self.early = Some("out-of-time");
                    return self.warn(Warning::new("time-limit", text));
                }
                let variant = self.resolved.variants[index].clone();
                if variant.not_available.is_some() {
                    continue;
                }
                self.trial_with_replacements(&variant, block)?;
                if self.early.is_some() {
                    return Ok(());
                }
            }
            summary::update(&self.resolved, &mut self.manifest);
            self.writer.manifest(&self.manifest)?;
        }
        Ok(())
    }

    /// A void trial is run again, at most [`REPLACEMENTS`] times.
    fn trial_with_replacements(&mut self, variant: &Variant, block: u32) -> Result<(), LabError> {
        for _ in 0..=REPLACEMENTS {
            let trial = match self.ended_trial(variant, block) {
                Err(LabError::NotAvailable { why }) => return self.leave_out(&variant.name, why),
                made => made?,
            };
            let counts = trial.void.is_none();
            self.manifest.trials.push(trial);
            if !self.options.keep_noisy
                && let Some(warning) = disturbed::hopeless(&self.manifest.trials)
            {
                self.early = Some("too-noisy");
                return self.warn(warning);
            }
            if counts || monotonic_ns() >= self.deadline_ns {
                break;
            }
        }
        Ok(())
    }

    /// A trial, with its end on record. Where noise is allowed it is not void because of that.
    fn ended_trial(&mut self, variant: &Variant, block: u32) -> Result<Trial, LabError> {
        let mut trial = self.trial(variant, block)?;
        if self.options.keep_noisy {
            disturbed::forgive(&mut trial);
        }
        self.progress.trial_ended(&trial);
        self.tell(What::TrialEnded { trial: trial.trial, void: trial.void.clone() })?;
        Ok(trial)
    }

    fn trial(&mut self, variant: &Variant, block: u32) -> Result<Trial, LabError> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let number = Number { trial: self.next_trial, block };
        self.next_trial += 1;
        self.progress.trial_started(number.trial, block, &variant.name);
        self.tell(What::TrialStarted {
            trial: number.trial,
            block,
            variant: variant.name.clone(),
        })?;
        let testbed = self.set_up(variant, number.trial)?;
        let files = self.writer.directory().join("programs").join(format!("trial{}", number.trial));
        let config = TrialConfig {
            variant,
            witness: self.options.witness,
            calibration: self.calibration.as_ref(),
            files: &files,
            owner: self.owner.as_ref(),
            trials: &self.resolved.trials,
            exe: self.options.exe,
            stop: self.options.stop,
        };
        let (progress, writer) = (&mut *self.progress, &mut self.writer);
        let (mut unwritten, mut phase) = (None, "set-up".to_owned());
        // Told as they begin, so that a killed run says how far it came.
        let raw = run_trial(&config, testbed.as_ref(), &mut |now| {
            progress.phase(now);
            now.clone_into(&mut phase);
            let what = What::Phase { trial: number.trial, phase: now.to_owned() };
            if let Err(error) = writer.event(&RunEvent { t_ns: monotonic_ns() as i64, what }) {
                unwritten.get_or_insert(error);
            }
        });
        let raw = raw.map_err(|error| self.lost(error, &phase, number.trial))?;
        if let Some(error) = unwritten {
            return Err(error.into());
        }
        for event in series::events(number.trial, variant.protocol(), &raw) {
            self.writer.event(&event)?;
        }
        for warning in self.times.keep(&mut self.writer, number.trial, &raw)? {
            self.warn(warning)?;
        }
        if let Some(samples) = &raw.samples {
            let variant = variant.name.clone();
            self.writer.samples(&TrialSamples {
                trial: number.trial,
                variant,
                ..samples.clone()
            })?;
        }
        let mut trial = compose(number, variant, testbed.as_ref(), raw);
        if !disturbed::counts(&trial, self.options.keep_noisy) {
            testbed.restore().map_err(|error| self.lost(error, "undo", number.trial))?;
        }
        if let Some(scrubber) = &mut self.scrubber {
            trial.workloads.values_mut().for_each(|record| names::hide(scrubber, record));
        }
        Ok(trial)
    }

    /// The testbed of a trial, with its settings on record.
    fn set_up(&mut self, variant: &Variant, trial: u32) -> Result<Box<dyn Testbed + 'a>, LabError> {
        let made = self.testbed(variant, trial);
        let testbed = made.map_err(|error| self.lost(error, "set-up", trial))?;
        for Change { side, setting, old, new, since_trial } in testbed.changes().to_vec() {
            self.tell(What::SettingChanged { side, setting, old, new, since_trial })?;
        }
        Ok(testbed)
    }

    /// The end of a trial, with what became of the host that was lost, if it was that.
    fn lost(&mut self, error: LabError, phase: &str, trial: u32) -> LabError {
        self.without_addresses(error).in_trial(phase, trial + 1, |host| {
            let Some(hosts) = self.options.hosts else { return AfterLoss::default() };
            if hosts.remote(host).is_some() {
                self.progress.found(&format!("{host} does not answer: connecting to it again"));
            }
            hosts.after_loss(host, self.options.stop)
        })
    }

    fn testbed(&self, variant: &Variant, trial: u32) -> Result<Box<dyn Testbed + 'a>, LabError> {
        if let Some(hosts) = self.options.hosts {
            return Ok(Box::new(HostsTestbed::make(hosts, variant, &self.resolved.trials, trial)?));
        }
        let (lab, tune) = (&variant.lab, &variant.tune);
        Ok(match (variant.topology, &self.owner) {
            (Topology::Netns, Some(owner)) => Box::new(NetnsTestbed::make(owner, lab, tune)?),
            (Topology::Local, _) => Box::new(LocalTestbed::make(lab)?),
            (Topology::Netns | Topology::Hosts, _) => return Err(LabError::internal("no testbed")),
        })
    }
}
