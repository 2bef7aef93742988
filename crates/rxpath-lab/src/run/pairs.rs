//! Pairs of trials decide verdicts that blocks of trials leave open.

use rxpath_core::Warning;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::verdict::PairedTrial;

use super::{Running, summary};
use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::scenario::spec::{Resolved, Variant};

/// Trials of the pairs of a run, if every variant's verdict needs them.
pub(crate) fn most(resolved: &Resolved, between_hosts: bool) -> u64 {
    // The settings of a pair are those of the lab's link: hosts would run the same trial twice.
    if !resolved.trials.paired || between_hosts {
        return 0;
    }
    2 * (rxpath_diagnose::PAIRS * resolved.available().count()) as u64
}

impl Running<'_> {
    /// Pairs of trials for each variant whose verdict says that only they can decide.
    pub(super) fn paired_trials(&mut self) -> Result<(), LabError> {
        summary::update(&self.resolved, &mut self.manifest);
        if most(&self.resolved, self.options.hosts.is_some()) == 0 {
            return Ok(());
        }
        for variant in self.resolved.variants.clone() {
            let wanted = summary::undecided(&self.manifest, &variant.name);
            let Some(both) = wanted.and_then(|it| paired_variants(&variant, it)) else { continue };
            let mut pairs = Vec::new();
            for _ in 0..rxpath_diagnose::PAIRS {
                if monotonic_ns() >= self.deadline_ns || self.early.is_some() {
                    break;
                }
                match self.pair(&both) {
                    Ok(pair) => pairs.extend(pair),
                    // A third-party sender may not run with the softirq on another CPU: the question stays open.
                    Err(error @ LabError::Died { .. }) => {
                        let text = format!("the paired trials of `{}` failed", variant.name);
                        self.warn(
                            Warning::new("no-paired-trials", text).because(error.to_string()),
                        )?;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            summary::decide(&mut self.manifest, &variant.name, &pairs);
        }
        Ok(())
    }

    /// Two trials, one right after the other; nothing if one of them is void.
    fn pair(&mut self, both: &[Variant; 2]) -> Result<Option<[WindowEvidence; 2]>, LabError> {
        let mut seen = Vec::new();
        for variant in both {
            let trial = self.ended_trial(variant, 0)?;
            seen.extend(trial.void.is_none().then(|| trial.evidence.clone()));
            self.manifest.trials.push(trial);
        }
        Ok(seen.try_into().ok())
    }
}

/// The variant, and the same with the receive softirq moved away from the sender's CPU; `None` when there is no other CPU.
fn paired_variants(variant: &Variant, wanted: PairedTrial) -> Option<[Variant; 2]> {
    let named =
        |what: &str| Variant { name: format!("{} ({what})", variant.name), ..variant.clone() };
    let (before, mut paired) = (named("softirq not moved"), named("softirq moved"));
    let away = summary::cpu_beside(variant)?;
    match wanted {
        PairedTrial::Rps => paired.lab.rps_cpus = rxpath_core::CpuList(vec![away]),
        PairedTrial::NapiThread => {
            (paired.lab.gro, paired.lab.tso, paired.lab.threaded) = (true, false, true);
            paired.lab.napi_cpu = Some(away);
        }
    }
    Some([before, paired])
}
