//! What watches a trial by BPF in addition to its counters: reasons of drops over the whole trial, stolen time and the receive
//! side's softirqs over the measured window.
//!
//! Programs are loaded before the load begins and attached when their span does: loading costs the machine some
//! milliseconds of CPU time, attaching less than one.

use rxpath_bpf::account::Account;
use rxpath_bpf::account::calibrate::{self, Calibration};
use rxpath_core::{Nanos, Warning};
use rxpath_host::{HostError, Owner, thread};
use rxpath_record::ledger::DropReason;
use rxpath_record::stolen::Stolen;
use rxpath_record::traced::Traced;

use super::reasons::Reasons;
use super::stolen::StolenTime;
use super::tracing::Tracing;
use super::victim::Victim;
use crate::error::LabError;
use crate::scenario::spec::{Observe, Resolved, Variant};
use crate::testbed::Testbed;

/// The observers of one trial.
#[derive(Default)]
pub struct Observers {
    reasons: Option<Reasons>,
    stolen: Option<StolenTime>,
    tracing: Option<Tracing>,
}

/// What they saw.
#[derive(Default)]
pub struct Observed {
    /// Why the kernel dropped packets.
    pub reasons: Vec<DropReason>,
    /// Who paid in the window.
    pub stolen: Option<Stolen>,
    /// What the receive side did in the window.
    pub traced: Option<Traced>,
    /// What to know before trusting it.
    pub warnings: Vec<Warning>,
}

impl Observers {
    /// Those that the variant wants.
    pub fn start(
        variant: &Variant,
        calibration: Option<&Calibration>,
        receiver_netns: Option<u32>,
    ) -> Result<Self, HostError> {
        let Observe { sample_interval: _, drops, steal, trace } = variant.observe;
        let not_calibrated = || Calibration::none("it was not measured");
        let calibration = || calibration.cloned().unwrap_or_else(not_calibrated);
        let stolen = || StolenTime::start(calibration(), Victim::of(&variant.background));
        Ok(Self {
            reasons: drops.then(Reasons::start).transpose()?,
            stolen: steal.then(stolen).transpose()?,
            tracing: trace.then(|| Tracing::load(receiver_netns)).transpose()?,
        })
    }

    /// The window begins.
    pub fn open(&mut self, measure: Nanos, owner: Option<&Owner>) -> Result<(), LabError> {
        if let Some(tracing) = &mut self.tracing {
            tracing.open(measure)?;
        }
        if let Some(stolen) = &mut self.stolen {
            stolen.open(measure, owner)?;
        }
        Ok(())
    }

    /// The victim's process, where it has one of its own.
    pub fn victim_pid(&self) -> Option<i32> {
        self.stolen.as_ref()?.victim_pid()
    }

    /// To be called now and then while the window lasts.
    pub fn note(&mut self) {
        if let Some(tracing) = &mut self.tracing {
            tracing.note();
        }
        if let Some(stolen) = &mut self.stolen {
            stolen.note();
        }
    }

    /// The window ends.
    pub fn close(&mut self, testbed: &dyn Testbed, seen: &mut Observed) -> Result<(), LabError> {
        // First what only has to be read: the account waits for its victim.
        if let Some(tracing) = self.tracing.take() {
            let (found, warnings) = tracing.close(testbed)?;
            seen.traced = Some(found);
            seen.warnings.extend(warnings);
        }
        if let Some(stolen) = self.stolen.take() {
            let (found, warnings) = stolen.close()?;
            seen.stolen = Some(found);
            seen.warnings.extend(warnings);
        }
        Ok(())
    }

    /// The trial is quiescent again.
    pub fn end(self, testbed: &dyn Testbed, seen: &mut Observed) -> Result<(), HostError> {
        if let Some(reasons) = self.reasons {
            let (found, warnings) = reasons.read(testbed)?;
            seen.reasons = found;
            seen.warnings.extend(warnings);
        }
        Ok(())
    }
}

fn wanted(resolved: &Resolved, of: impl Fn(&Observe) -> bool) -> bool {
    let here = resolved.variants.iter().filter(|variant| variant.not_available.is_none());
    here.map(|variant| &variant.observe).any(of)
}

/// Starts an observer and lets it go.
type Attempt = fn() -> Result<(), HostError>;

/// Tries each observer that a variant wants, before anything is made and not in the middle of the first trial.
///
/// # Errors
/// [`LabError::CannotRun`] with what is missing.
pub fn can_run(resolved: &Resolved) -> Result<(), LabError> {
    let tries: [(bool, Attempt); 3] = [
        (wanted(resolved, |observe| observe.drops), || Reasons::start().map(drop)),
        (wanted(resolved, |observe| observe.steal), || Account::start().map(drop)),
        (wanted(resolved, |observe| observe.trace), Tracing::try_load),
    ];
    for (wanted, attempt) in tries {
        if wanted {
            attempt().map_err(|error| LabError::CannotRun {
                what: error.to_string(),
                hint: "rxpath doctor says what is missing; runs that observe nothing by BPF need none of it"
                    .into(),
            })?;
        }
    }
    Ok(())
}

/// What an interrupt costs here, measured once for a run that wants to know who paid; takes six seconds of the victim's
/// CPU.
pub fn calibrated(resolved: &Resolved) -> Result<Option<Calibration>, LabError> {
    if !wanted(resolved, |observe| observe.steal) {
        return Ok(None);
    }
    let mut here = resolved.variants.iter().filter(|variant| variant.not_available.is_none());
    let victim = here.find_map(|variant| variant.background.victim);
    let last = || Ok::<_, HostError>(thread::allowed_cpus()?.0.last().copied().unwrap_or(0));
    let cpu = victim.map_or_else(last, Ok)?;
    let account = Account::start()?;
    match calibrate::measure(&account, cpu) {
        Ok(calibration) => Ok(Some(calibration)),
        Err(error @ HostError::Unsupported { .. }) => {
            Ok(Some(Calibration::none(error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}
