//! What every file of rules needs.

pub use crate::check::Ask;
pub use crate::facts::{Count, Device, Evidence, Known, OrGap, RARE_RATIO};
pub(crate) use crate::finding::Details;
pub use crate::knob::Set;
pub use crate::rule::Goal::{Benchmark, Fairness, Latency, Throughput};
pub use crate::rule::Magnitude::{Loss, Multiple, Unmeasured};
pub use crate::rule::Severity::{Fail, Info, Warn};
pub use crate::rule::{Answer, Check, Checked, Gap};
pub use crate::rule_file::RuleFile;
pub use rxpath_host::{Group, Knob};

/// `57 %`, `0.021 %`.
pub fn percent(ratio: f64) -> String {
    rxpath_core::number::percent(ratio, if ratio >= 0.1 { 0 } else { 2 })
}

/// Answers for the loopback device and for devices that carry nothing: rules that are for virtual devices too.
pub fn idle(device: &Device) -> Option<Checked> {
    if device.is_loopback() {
        Some(Answer::silent("the loopback device"))
    } else if !device.is_up() {
        Some(Answer::silent("the device is down"))
    } else {
        None
    }
}

/// Answers for devices that are no hardware or carry nothing: the usual reason to stay silent.
pub fn quiet(device: &Device) -> Option<Checked> {
    if device.is_nic() {
        idle(device)
    } else {
        Some(Answer::silent("no hardware behind this device"))
    }
}

/// The value of a sysctl that rules only record.
pub fn recorded(ask: &Ask<'_>, key: &str, unit: &str) -> Checked {
    Answer::recorded(format!("{}{unit}", ask.facts.sysctl_number(key).known()?))
}
