//! What every file of rules needs.

pub use crate::check::Ask;
pub use crate::facts::{Count, Device, Evidence, Known, RARE_RATIO};
pub use crate::finding::Found;
pub use crate::knob::{Knob, Set};
pub use crate::rule::Goal::{Benchmark, Fairness, Latency, Throughput};
pub use crate::rule::Magnitude::{Loss, Multiple, Percents, Tens, Unmeasured};
pub use crate::rule::Severity::{Fail, Info, Warn};
pub use crate::rule::{Answer, Area, Check, Checked, Effect, Gap, Kind, Rule, Text, Weight};

/// The undo of a knob that is one value.
pub const VALUE_BACK: &str = "restore the previous value; a plan's journal has it";

/// The undo of what nothing changes.
pub const NOTHING_CHANGED: &str = "nothing to undo: rxpath reads this and never changes it";

/// The set line of what is only recorded.
pub const NO_SETTING: &str = "no setting: recorded so that two results can be compared";

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
