//! From the evidence of one trial to the stage that limits it, how sure that is, and what to change.
//!
//! Plain rules, one file each under `rules/`, in one list. A rule sees numbers only: [`Evidence`] carries
//! neither scenario nor variant names, and this crate must not ask for them, read the host or measure.
//!
//! How the answer is found: every rule may claim; the claim that explains the largest loss wins, and the
//! other losses are named as what comes next. Only when nothing noteworthy is lost does the answer rest on
//! who had no time left. What cannot be told apart is said to be so, with the trial that would tell.

pub mod check;
mod choose;
mod claim;
mod combine;
mod headroom;
mod lines;
mod reader;
mod remedy;
mod rules;
mod stages;
mod thresholds;
mod view;
mod wording;

use rxpath_record::evidence::Evidence;
use rxpath_record::verdict::Verdict;

pub use combine::combine;

/// Says which stage limits the delivered rate of one trial.
///
/// Total: any evidence gets a verdict; what is missing lowers the confidence and is named in the evidence
/// lines. Numbers that are not finite count as missing.
///
/// **Caveat** the split of a CPU's busy time into softirq and system time is made at ticks and can err by
/// half and more on kernels without `CONFIG_IRQ_TIME_ACCOUNTING`; idle time and the threads' run and wait
/// times are exact. Rules therefore rest on the exact ones and take the split as support only, except where
/// nothing else tells (livelock), and then they say so.
pub fn diagnose(evidence: &Evidence) -> Verdict {
    let view = view::View::new(evidence);
    let claims = rules::ALL.iter().filter_map(|rule| rule(&view)).collect();
    choose::verdict(&view, claims, rules::rest(&view))
}
