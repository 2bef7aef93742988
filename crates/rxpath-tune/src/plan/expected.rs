//! A plan with the effects that a model predicts of its steps, as data and as text. Predictions are not measurements.

use schemars::JsonSchema;
use serde::Serialize;

use super::Plan;

/// A plan, with the expected effect of each step if requested.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Planned {
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// One entry per step, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictions: Option<Vec<Expected>>,
}

/// The expected effect of one step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Expected {
    /// The setting.
    pub set: String,
    /// The effects stated by the rules behind it, with their sources.
    pub catalogue: Vec<String>,
    /// `prediction`: always simulated, never measured.
    pub kind: &'static str,
    /// The change made in the simulation.
    pub simulated: Vec<String>,
    /// By metric: before and after.
    pub metrics: Vec<MetricPrediction>,
    /// Why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_predicted: Option<String>,
}

/// One metric.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MetricPrediction {
    /// Its name.
    pub metric: String,
    /// With the old value.
    pub before: f64,
    /// With the new one.
    pub after: f64,
}

impl Expected {
    /// Its lines below the lines of the step.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.catalogue.iter().map(|text| format!("     catalogue: {text}")).collect();
        lines.push(if let Some(why) = &self.not_predicted {
            format!("     no prediction: {why}")
        } else {
            let told: Vec<String> = self.metrics.iter().map(MetricPrediction::words).collect();
            format!("     prediction (simulated): {}", told.join(", "))
        });
        lines
    }
}

impl MetricPrediction {
    fn words(&self) -> String {
        let Self { metric, before, after } = self;
        match metric.as_str() {
            "window_loss_ratio" => {
                format!("loss {:.2} % -> {:.2} %", before * 100.0, after * 100.0)
            }
            "delivered_pps" => format!("delivered {before:.0}/s -> {after:.0}/s"),
            _ => {
                let quantile = metric.trim_start_matches("one_way_delay_").trim_end_matches("_us");
                format!("{quantile} of the one-way delay {before:.1} us -> {after:.1} us")
            }
        }
    }
}
