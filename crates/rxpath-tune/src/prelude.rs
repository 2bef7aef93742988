//! What every file of rules needs.

pub use crate::check::Ask;
pub use crate::facts::{Count, Device, Evidence, Known, OrGap, RARE_RATIO};
pub use crate::finding::Found;
pub use crate::knob::Set;
pub use crate::rule::Goal::{Benchmark, Fairness, Latency, Throughput};
pub use crate::rule::Magnitude::{Loss, Multiple, Percents, Tens, Unmeasured};
pub use crate::rule::Severity::{Fail, Info, Warn};
pub use crate::rule::{Answer, Area, Check, Checked, Effect, Gap, Kind, Rule, Text, Weight};
pub use rxpath_host::{Group, Knob};

/// The undo of a knob that is one value.
pub(crate) const VALUE_BACK: &str = Text::JUDGED.undo;

/// The undo of what nothing changes.
pub(crate) const NOTHING_CHANGED: &str = Text::RECORDED.undo;

/// The set line of what is only recorded.
pub(crate) const NO_SETTING: &str = Text::RECORDED.set_now;

/// `57 %`, `0.021 %`.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.2} %") }
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
    if !device.is_nic() {
        Some(Answer::silent("no hardware behind this device"))
    } else if !device.is_up() {
        Some(Answer::silent("the device is down"))
    } else {
        None
    }
}
