//! What every file of rules needs.

use std::collections::BTreeMap;

pub(crate) use crate::answer::Details;
pub use crate::answer::{Answer, Checked};
pub use crate::facts::{Count, Device, Evidence, Gap, OrGap, RARE_RATIO, RequiredFact};
pub use crate::knob::Set;
pub use crate::rule::{Ask, Check, idle, quiet};
pub use crate::rule_file::Checks;
pub use crate::weight::Goal::{Benchmark, Fairness, Latency, Throughput};
pub use crate::weight::Magnitude::{Loss, Multiple, Unmeasured};
pub use crate::weight::Severity::{Fail, Info, Warn};
pub use rxpath_host::{Group, Knob};

/// How often each of these is there.
pub fn tally<K: Ord>(all: impl IntoIterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// `57 %`, `0.021 %`.
pub fn percent(ratio: f64) -> String {
    rxpath_core::number::percent(ratio, if ratio >= 0.1 { 0 } else { 2 })
}

/// What this process may see; `None` where this kernel has no such thing.
pub fn if_there<T>(answer: Result<T, Gap>) -> Result<Option<T>, Gap> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Gap::Absent(_)) => Ok(None),
        Err(gap) => Err(gap),
    }
}

/// A counter's change in the window; `None` if this kernel lacks the counter.
pub fn moved(ask: &Ask<'_>, name: &str) -> Result<Option<u64>, Gap> {
    if_there(ask.facts.count(name).known())?.map(Count::in_window).transpose()
}

/// Whether this host forwards packets.
pub fn routes(ask: &Ask<'_>) -> bool {
    ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]
        .into_iter()
        .any(|key| ask.facts.sysctl_number(key).value().is_some_and(|value| *value != 0))
}

/// The value of a sysctl that rules only record.
pub fn recorded(ask: &Ask<'_>, key: &str, unit: &str) -> Checked {
    Answer::recorded(format!("{}{unit}", ask.facts.sysctl_number(key).known()?))
}
