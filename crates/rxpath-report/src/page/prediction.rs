//! The model's prediction for each variant, next to the measurement.

use rxpath_record::prediction::Predicted;

use crate::prelude::*;

/// The section, or nothing when nothing was predicted.
pub(super) fn section(run: &Run) -> Option<Section> {
    let predictions = &run.manifest.predictions;
    if predictions.is_empty() {
        return None;
    }
    let mut rows = Table::new("variant | metric | #predicted | #measured | #residual");
    for prediction in predictions {
        for (metric, of) in &prediction.metrics {
            rows.rows.push(row(&prediction.variant, metric, of));
        }
        if let Some(why) = &prediction.not_predicted {
            let mut row = vec![prediction.variant.clone(), format!("not predicted: {why}")];
            row.resize(rows.head.len(), "-".into());
            rows.rows.push(row);
        }
    }
    Some(Section {
        id: "prediction",
        title: "Model and measurement",
        lead: "Simulated from this host's calibration and the offered load, next to the median of the \
               trials. The residual is prediction minus measurement.",
        body: table(&rows, "Predictions"),
    })
}

fn row(variant: &str, metric: &str, of: &Predicted) -> Vec<String> {
    let shown = |value: f64| number::metric(metric, value);
    let sign = if of.residual() < 0.0 { "-" } else { "+" };
    vec![
        variant.to_owned(),
        metric.to_owned(),
        shown(of.predicted),
        shown(of.measured),
        format!("{sign}{}", shown(of.residual().abs())),
    ]
}
