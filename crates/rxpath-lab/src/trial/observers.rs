//! What watches a trial by BPF in addition to its counters: reasons of drops over the whole trial, stolen time and the receive
//! side's softirqs over the measured window.
//!
//! Programs are loaded before the load begins and attached when their span does: loading costs the machine some
//! milliseconds of CPU time, attaching less than one.

use rxpath_bpf::account::Account;
use rxpath_bpf::account::calibrate::{self, IrqCalibration};
use rxpath_bpf::drops::Drops;
use rxpath_core::{Nanos, Warning};
use rxpath_host::lab::owner::Owner;
use rxpath_host::read::{procfs, thread};
use rxpath_host::{HostError, Root};
use rxpath_record::ledger::DropReason;
use rxpath_record::stolen::StolenCpuTime;
use rxpath_record::traced::Traced;
use serde::{Deserialize, Serialize};

use super::reasons;
use super::sides::Sides;
use super::stolen::StolenTime;
use super::tracing::Tracing;
use super::victim::Victim;
use crate::error::{LabError, cannot};
use crate::scenario::spec::{Background, Observe, Resolved};

/// What watches a trial by BPF, wherever that is.
pub trait Observing {
    /// The hosts have the instants of the window: what watches there begins by them.
    ///
    /// # Errors
    /// Of a host that is lost.
    fn announce(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// The window begins.
    ///
    /// # Errors
    /// If a program cannot be attached, or the victim not be started.
    fn open(&mut self, measure: Nanos, owner: Option<&Owner>) -> Result<(), LabError>;

    /// The victim's process, where it is one of its own on this host.
    fn victim_pid(&self) -> Option<i32> {
        None
    }

    /// Whether any of them watches the window, and not the whole trial alone.
    fn watches_window(&self) -> bool {
        false
    }

    /// To be called now and then while the window lasts.
    fn note(&mut self) {}

    /// The window ends.
    ///
    /// # Errors
    /// If it cannot be read, or the victim failed.
    fn close(&mut self, sides: Sides<'_>, seen: &mut Observed) -> Result<(), LabError>;

    /// The trial is quiescent again.
    ///
    /// # Errors
    /// If it cannot be read.
    fn end(&mut self, sides: Sides<'_>, seen: &mut Observed) -> Result<(), LabError>;
}

/// The observers of one trial on this host.
#[derive(Default)]
pub struct Observers {
    reasons: Option<Drops>,
    stolen: Option<StolenTime>,
    tracing: Option<Tracing>,
}

/// What they saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Why the kernel dropped packets.
    pub reasons: Vec<DropReason>,
    /// Who paid in the window.
    pub stolen: Option<StolenCpuTime>,
    /// What the receive side did in the window.
    pub traced: Option<Traced>,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
    /// What makes the window worthless, in words.
    #[serde(default)]
    pub faults: Vec<String>,
    /// Of the reasons those of each receiver's host, where hosts are observed.
    #[serde(skip)]
    pub by_receiver: Vec<Vec<DropReason>>,
}

impl Observers {
    /// Those that are wanted, with the victim of the background.
    pub fn start(
        wanted: &Observe,
        background: &Background,
        calibration: Option<IrqCalibration>,
        receiver_netns: Option<u32>,
    ) -> Result<Self, HostError> {
        let calibration =
            calibration.unwrap_or_else(|| IrqCalibration::none("it was not measured"));
        let stolen = || StolenTime::start(calibration, Victim::of(background));
        Ok(Self {
            reasons: wanted.drops.then(reasons::start).transpose()?,
            stolen: wanted.steal.then(stolen).transpose()?,
            tracing: wanted.trace.then(|| Tracing::load(receiver_netns)).transpose()?,
        })
    }
}

impl Observing for Observers {
    fn open(&mut self, measure: Nanos, owner: Option<&Owner>) -> Result<(), LabError> {
        if let Some(tracing) = &mut self.tracing {
            tracing.open(measure)?;
        }
        if let Some(stolen) = &mut self.stolen {
            stolen.open(measure, owner)?;
        }
        Ok(())
    }

    fn victim_pid(&self) -> Option<i32> {
        self.stolen.as_ref()?.victim_pid()
    }

    fn watches_window(&self) -> bool {
        self.stolen.is_some() || self.tracing.is_some()
    }

    fn note(&mut self) {
        if let Some(tracing) = &mut self.tracing {
            tracing.note();
        }
        if let Some(stolen) = &mut self.stolen {
            stolen.note();
        }
    }

    fn close(&mut self, sides: Sides<'_>, seen: &mut Observed) -> Result<(), LabError> {
        // First what only has to be read: the account waits for its victim.
        if let Some(tracing) = self.tracing.take() {
            seen.traced = Some(tracing.close(sides, &mut seen.warnings)?);
        }
        if let Some(stolen) = self.stolen.take() {
            seen.stolen = Some(stolen.close(&mut seen.warnings)?);
        }
        Ok(())
    }

    fn end(&mut self, sides: Sides<'_>, seen: &mut Observed) -> Result<(), LabError> {
        if let Some(reasons) = self.reasons.take() {
            seen.reasons.extend(reasons::read(&reasons, sides, &mut seen.warnings)?);
        }
        Ok(())
    }
}

/// What any variant of a run wants.
pub fn wanted(resolved: &Resolved) -> Observe {
    let mut all = Observe::default();
    for variant in resolved.available() {
        let Observe { sample_interval: _, drops, steal, irq_entry: _, trace } = variant.observe;
        all.drops |= drops;
        all.steal |= steal;
        all.trace |= trace;
    }
    all
}

/// Whether a variant needs the cost of an interrupt and does not give it.
pub fn calibrates(resolved: &Resolved) -> bool {
    resolved.available().any(|variant| variant.observe.steal && variant.observe.irq_entry.is_none())
}

/// The CPU of the victim of a run, where it has one.
pub fn victim_cpu(resolved: &Resolved) -> Option<u32> {
    resolved.available().find_map(|variant| variant.background.victim)
}

/// Starts an observer and lets it go.
type Attempt = fn() -> Result<(), HostError>;

/// Tries each observer on this host, before anything is made and not in the middle of the first trial.
///
/// # Errors
/// [`LabError::CannotRun`] with what is missing.
pub fn can_run(wanted: &Observe) -> Result<(), LabError> {
    let tries: [(bool, Attempt); 4] = [
        (wanted.drops, || reasons::start().map(drop)),
        (wanted.steal, knows_pids),
        (wanted.steal, || Account::start().map(drop)),
        (wanted.trace, || Tracing::load(None).map(drop)),
    ];
    for (wanted, attempt) in tries {
        if wanted {
            let hint = "rxpath doctor says what is missing; runs that observe nothing by BPF need none of it";
            attempt().map_err(|error| cannot(error.to_string(), hint))?;
        }
    }
    Ok(())
}

/// The receiver and the victim are found among tasks by their pids.
fn knows_pids() -> Result<(), HostError> {
    if procfs::is_first_pid_namespace(&Root::host()) {
        return Ok(());
    }
    Err(HostError::Unsupported {
        what: "observe.steal".into(),
        needs: "the host's pid namespace: probes know tasks by the pids of that namespace".into(),
    })
}

/// Measures what an interrupt costs on this host; takes six seconds of one CPU: the victim's, or the last one.
pub fn calibrate(cpu: Option<u32>) -> Result<IrqCalibration, LabError> {
    let last = || Ok::<_, HostError>(thread::allowed_cpus()?.0.last().copied().unwrap_or(0));
    let cpu = cpu.map_or_else(last, Ok)?;
    let mut account = Account::start()?;
    Ok(calibrate::measure(&mut account, cpu)?)
}
