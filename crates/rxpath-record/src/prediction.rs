//! The model's prediction for a variant, always together with the measurement.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model's prediction for one variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Variant name.
    pub variant: String,
    /// What was predicted, by metric: `window_loss_ratio`, `delivered_pps`, `one_way_delay_p50_us`.
    pub metrics: BTreeMap<String, Predicted>,
    /// Why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_predicted: Option<String>,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// By the simulator, from the calibration and the offered load only.
    pub predicted: f64,
    /// Median over the valid trials.
    pub measured: f64,
}

impl Predicted {
    /// How far the prediction lies above the measurement, in the metric's unit.
    pub fn residual(&self) -> f64 {
        self.predicted - self.measured
    }
}
