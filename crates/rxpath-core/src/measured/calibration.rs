//! The cost of an interrupt that tracepoints do not show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One measured point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CalibrationPoint {
    /// Interrupts a second that really arrived.
    pub rate_per_s: f64,
    /// Time per interrupt outside all tracepoints.
    pub irq_entry_us: f64,
}

crate::named! {
    /// What a calibration was measured with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum CalibrationKind {
        /// Packets, with all that a receive interrupt brings.
        Packets => "packets",
        /// Interrupts that do nothing: wrong by 20 % or more.
        Interrupts => "interrupts",
        /// Nothing: the user gave the value.
        Given => "given",
    }
    /// As the label of a metric has it.
    pub fn word(self) -> &'static str
}

/// What an interrupt costs on a host in addition to what tracepoints show: its entry and exit, a VM exit, a cold cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IrqCalibration {
    /// Time per interrupt outside all tracepoints, at the mean rate of this result.
    pub irq_entry_us: f64,
    /// From the lowest to the highest value that was used.
    pub interval_us: [f64; 2],
    /// The points, by rate. Between two points the time that interrupts take per second (`k` times the rate) is
    /// interpolated; outside the points `k` is constant.
    pub points: Vec<CalibrationPoint>,
    /// CPU that was measured; the others are assumed to be the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What it was measured with; none without an estimate, and in results of versions that did not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CalibrationKind>,
    /// Source of the value: `measured with packets`, `given`, another measurement, or why there is none.
    pub source: String,
}

impl IrqCalibration {
    /// A value that the user gave.
    pub fn given(irq_entry_us: f64) -> Self {
        Self {
            irq_entry_us,
            interval_us: [irq_entry_us; 2],
            points: vec![CalibrationPoint { rate_per_s: 0.0, irq_entry_us }],
            cpu: None,
            kind: Some(CalibrationKind::Given),
            source: "given".into(),
        }
    }

    /// No estimate, and why.
    pub fn none(why: impl Into<String>) -> Self {
        Self { source: why.into(), ..Self::default() }
    }

    /// Microseconds per interrupt at this rate.
    pub fn at(&self, rate_per_s: f64) -> f64 {
        let above = self.points.partition_point(|point| point.rate_per_s < rate_per_s);
        let before = above.checked_sub(1).and_then(|at| self.points.get(at));
        match (before, self.points.get(above)) {
            (Some(before), Some(after)) => {
                let span = after.rate_per_s - before.rate_per_s;
                let part = if span > 0.0 { (rate_per_s - before.rate_per_s) / span } else { 0.0 };
                let taken_us = |point: &CalibrationPoint| point.rate_per_s * point.irq_entry_us;
                let taken = taken_us(before) + part * (taken_us(after) - taken_us(before));
                taken / rate_per_s
            }
            (Some(only), None) | (None, Some(only)) => only.irq_entry_us,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_it_is_interpolated_and_beyond_them_held() {
        let point = |rate_per_s, irq_entry_us| CalibrationPoint { rate_per_s, irq_entry_us };
        let calibration = IrqCalibration {
            points: vec![point(250.0, 48.0), point(20_000.0, 6.0), point(110_000.0, 5.0)],
            ..IrqCalibration::default()
        };
        // 12 ms of a second, 120 ms, 550 ms; half way between the last two 335 ms.
        for (rate, us) in [
            (0.0, 48.0),
            (250.0, 48.0),
            (10_125.0, 66_000.0 / 10_125.0),
            (20_000.0, 6.0),
            (65_000.0, 335_000.0 / 65_000.0),
            (1e9, 5.0),
        ] {
            assert!((calibration.at(rate) - us).abs() < 1e-9, "{rate}");
        }
        assert!((IrqCalibration::given(3.5).at(1e6) - 3.5).abs() < 1e-12);
        assert!(IrqCalibration::none("one CPU").at(1e6).abs() < 1e-12);
    }

    #[test]
    fn a_calibration_says_what_it_was_measured_with() {
        assert_eq!(IrqCalibration::given(3.5).kind, Some(CalibrationKind::Given));
        assert_eq!(IrqCalibration::none("one CPU").kind, None);
        for kind in [CalibrationKind::Packets, CalibrationKind::Interrupts, CalibrationKind::Given]
        {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
        let old = r#"{"irq_entry_us": 1.0, "interval_us": [1.0, 1.0], "source": "given"}"#;
        assert_eq!(serde_json::from_str::<IrqCalibration>(old).unwrap().kind, None);
    }
}
