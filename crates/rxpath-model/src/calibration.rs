//! Costs of a host's receive path, as parameters of the simulator: fitted from measurements, stored as a file.
//!
//! Pure: the caller supplies the measurements. Each parameter has an interval, a residual and its method. The file also
//! records the host and the conditions, because another host has other costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sim::values::{bad, find};
use crate::sim::{ParameterError, Values};

pub mod fit;
mod least_squares;
pub mod passes;

/// Schema id of the file.
pub const SCHEMA: &str = "rxpath/calibration/1.0";

/// A calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// `rxpath/calibration/1.0`.
    pub schema: String,
    /// RFC 3339, UTC.
    pub made: String,
    /// Where.
    pub host: CalibratedHost,
    /// On which device and with which datagrams.
    pub conditions: Conditions,
    /// By the simulator's key.
    pub parameters: BTreeMap<String, Estimate>,
    /// What is less certain than it could be, and why.
    pub caveats: Vec<String>,
}

/// Properties of the host that determine costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedHost {
    /// Kernel release.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_count: u32,
    /// Hypervisor, when there is one.
    pub hypervisor: Option<String>,
}

/// What else the costs hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Kind of device.
    pub device: String,
    /// Payload of a datagram.
    pub size_bytes: u64,
    /// CPU of the receive path.
    pub cpu: u32,
    /// Clock source.
    pub clock: String,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its 95 % interval over trials; `null` where the measurements show no scatter: one of them, or an extreme.
    pub interval: Option<[f64; 2]>,
    /// `ns`, `bytes`, `descriptors`.
    pub unit: String,
    /// What the fit leaves unexplained, as a standard deviation in the unit that `how` names; nothing when it is exact.
    pub residual: Option<f64>,
    /// Measurements behind it.
    pub measurements_count: u64,
    /// How it was found.
    pub how: String,
}

/// A calibration that cannot be used: the file is not one, or has a value that the simulator does not take.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct CalibrationError(String);

impl Calibration {
    /// Reads a file's text and checks every value against the simulator's ranges.
    pub fn from_json(text: &str) -> Result<Self, CalibrationError> {
        let malformed = |why: String| {
            CalibrationError(format!("not a calibration file: {}", why.replace('\n', " ")))
        };
        let read: Self =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if !read.schema.starts_with("rxpath/calibration/1.") {
            let schema: String = read.schema.chars().take(60).collect();
            return Err(malformed(format!(
                "its schema is `{schema}`, this version reads {SCHEMA}"
            )));
        }
        read.apply(&mut Values::default()).map_err(|error| CalibrationError(error.to_string()))?;
        Ok(read)
    }

    /// Sets what was calibrated.
    pub fn apply(&self, values: &mut Values) -> Result<(), ParameterError> {
        for (key, estimate) in &self.parameters {
            if !(estimate.value.is_finite() && estimate.value >= 0.0) {
                let why = format!("is {}, and must be a number of 0 or more", estimate.value);
                return Err(bad(key, why));
            }
            // Facts about the measurement that the simulator does not need stand among the parameters, too.
            if find(key).is_none() {
                continue;
            }
            if estimate.unit == "ratio" {
                values.set(&format!("{key}={:.4}", estimate.value))?;
            } else {
                values.put(key, estimate.value.round() as i64)?;
            }
        }
        Ok(())
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.parameters.get(key).map(|estimate| estimate.value)
    }

    /// In what `host` differs from the calibrated one; nothing when it is the same.
    pub fn differs_from(&self, host: &CalibratedHost) -> Option<String> {
        let said = [
            ("kernel", &self.host.kernel, &host.kernel),
            ("CPU", &self.host.cpu_model, &host.cpu_model),
        ];
        let mut differences: Vec<String> = said
            .iter()
            .filter(|(_, then, now)| then != now)
            .map(|(what, then, now)| format!("its {what} is {then}, this is {now}"))
            .collect();
        if self.host.cpus_count != host.cpus_count {
            differences
                .push(format!("it has {} CPUs, this {}", self.host.cpus_count, host.cpus_count));
        }
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}

impl Estimate {
    /// Half of the interval's width; infinite where there is none.
    pub fn half_width(&self) -> f64 {
        self.interval.map_or(f64::INFINITY, |[low, high]| (high - low) / 2.0)
    }

    /// A value that was read and not fitted.
    pub fn exact(value: f64, unit: &str, how: &str) -> Self {
        Self {
            value,
            interval: Some([value, value]),
            unit: unit.into(),
            residual: None,
            measurements_count: 1,
            how: how.into(),
        }
    }
}

#[cfg(test)]
mod tests;
