//! From the evidence of one trial to the stage that limits it, how sure that is, and what to change.
//!
//! Plain rules, one file each under `rules/`, in one list. A rule sees numbers only: [`WindowEvidence`] carries
//! neither scenario nor variant names, and this crate must not ask for them, read the host or measure.
//!
//! How the answer is found: every rule may claim. The claim that explains the largest loss wins; the other losses are
//! named as next limits. If no significant loss exists, the answer depends on which thread or CPU had no time left. If
//! causes cannot be distinguished, the verdict says so and names the trial that would decide.

mod choose;
mod claim;
mod combine;
mod headroom;
mod lines;
mod part;
mod reader;
mod remedy;
mod rules;
pub mod stages;
mod thresholds;
mod view;
mod wording;

use rxpath_record::evidence::WindowEvidence;
use rxpath_record::verdict::DiagnosisVerdict;

pub use combine::{TrialPair, combine};
pub use thresholds::PAIRS;

/// Names the stage that limits the delivered rate of one trial.
///
/// Total: any evidence gets a verdict; missing evidence lowers the confidence and is named in the evidence lines.
/// Numbers that are not finite count as missing.
///
/// **Caveat** the split of a CPU's busy time into softirq and system time is made at ticks. It can be wrong by half or
/// more on kernels without `CONFIG_IRQ_TIME_ACCOUNTING`. Idle time and the threads' run and wait times are exact. Rules
/// rest on the exact times and use the split only as support. Where only the split is available (livelock), the rule
/// says so.
pub fn diagnose(evidence: &WindowEvidence) -> DiagnosisVerdict {
    judge(evidence).0
}

/// The same verdict, and whether packets were lost above the thresholds of the rules, wherever.
pub fn judge(evidence: &WindowEvidence) -> (DiagnosisVerdict, bool) {
    let view = view::View::new(evidence);
    let (all, rest) = rules::of(evidence);
    let claims: Vec<claim::Claim> = all.iter().filter_map(|rule| rule(&view)).collect();
    // What TCP drops is in no ledger of a watched host: its rules claim it.
    let loses = view.loses() || claims.iter().any(|claim| claim.lost_packets > 0);
    (choose::verdict(&view, claims, rest(&view)), loses)
}
