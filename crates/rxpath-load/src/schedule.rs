//! Whether a client kept its schedule, and the warning where it did not.

use rxpath_core::Warning;
use rxpath_core::number::grouped;

/// A client that did this share of its schedule has kept it.
pub(crate) const KEPT_RATIO: f64 = 0.995;

/// The warning about a schedule of requests or transactions that was not kept: `did` of `target` a second, `what` names
/// them (`requests/s were answered`).
pub(crate) fn not_kept(did: f64, target: f64, what: &str, unsent_total: u64) -> Warning {
    let unsent = grouped(unsent_total);
    let text = format!(
        "{did:.0} of {target} {what}; {unsent} were due but never sent, and no percentile includes them"
    );
    Warning::new("schedule-not-kept", text)
        .because("when the schedule falls behind, response times grow for the whole run")
        .cure("lower --rate, or use more connections (-c)")
}
