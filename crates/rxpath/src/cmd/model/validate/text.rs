//! The table of a validated scenario.

use rxpath_core::number::si;
use rxpath_lab::predict::validate::{Validated, ValidatedVariant};

/// Predicted, measured, error and both baselines, and the result of each goal.
pub(super) fn table(scenario: &Validated) -> String {
    let mut text = format!("{} ({})\n", scenario.scenario, scenario.run.display());
    let fitted = scenario.fitted.iter();
    text.extend(fitted.map(|(key, value)| format!("  learned: {key} = {value:.0}\n")));
    text += &format!(
        "  {:<18} {:>9} {:>10} {:>19} {:>10} {:>8}  {:>8} {:>8}  {:>6} {:>6} {:>6}\n",
        "variant",
        "offered/s",
        "measured",
        "(range)",
        "predicted",
        "error",
        "best mu",
        "last",
        "p50",
        "p90",
        "p99"
    );
    text.extend(scenario.variants.iter().map(line));
    if let Some(nrmse) = scenario.goodput_nrmse {
        text +=
            &format!("  goodput: root mean square error {:.1} % of the largest\n", nrmse * 100.0);
    }
    if let Some(knee) = &scenario.knee {
        text += &format!(
            "  knee: predicted {}/s, measured {}/s\n",
            si(knee.predicted_pps),
            si(knee.measured_pps)
        );
    }
    for goal in &scenario.goals {
        let word = if goal.reached { "reached" } else { "MISSED" };
        text += &format!("  {word}: {}: {}\n", goal.goal, goal.got);
    }
    text.push('\n');
    text
}

fn line(row: &ValidatedVariant) -> String {
    let [median, least, most] = row.measured_loss;
    let delay = |name: &str| {
        row.delay_log_ratio
            .get(name)
            .map_or_else(|| "-".into(), |ratio| format!("x{:.2}", ratio.exp()))
    };
    let (predicted, error) = match row.predicted_loss {
        Some(loss) => (format!("{loss:.4}"), format!("{:+.4}", loss - median)),
        None => ("-".into(), "-".into()),
    };
    let mut text = format!(
        "  {:<18} {:>9} {median:>10.4} {:>19} {predicted:>10} {error:>8}  {:>8.4} {:>8.4}  {:>6} {:>6} {:>6}{}\n",
        row.variant,
        si(row.offered_pps),
        format!("({least:.4} to {most:.4})"),
        row.best_goodput_loss,
        row.last_rate_loss,
        delay("p50"),
        delay("p90"),
        delay("p99"),
        if row.fitted { "  fitted" } else { "" },
    );
    for (stage, both) in &row.stages {
        text += &format!(
            "    {:<35} {:>10.4} {:>30.4} {:>+8.4}\n",
            format!("at the {stage}"),
            both.measured,
            both.predicted,
            both.residual()
        );
    }
    if let Some(why) = &row.not_predicted {
        text += &format!("    not predicted: {why}\n");
    }
    text
}
