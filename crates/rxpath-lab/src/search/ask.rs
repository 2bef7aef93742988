//! The objective and the guards of a search, from the words of the command line or of a scenario.

use std::collections::BTreeMap;

use rxpath_core::Nanos;
use rxpath_record::metric::{good, is_share, scale};
use rxpath_stats::Scale;
use rxpath_stats::scale::Good;
use rxpath_tune::auto::{GuardLimit, MetricGuard};

/// The least value that still has a logarithm: of a trial that delivered nothing.
const NOTHING: f64 = 1e-9;

/// What is made better.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The metric.
    pub metric: String,
    /// Its good direction.
    pub good: Good,
    scale: Scale,
}

impl Objective {
    /// Reads `max METRIC`, `min METRIC` or `METRIC`, whose good direction is then the usual one.
    ///
    /// # Errors
    /// In words what is wrong and what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (wanted, metric) = match words.as_slice() {
            [metric] => (good(metric), *metric),
            ["max", metric] => (Good::Up, *metric),
            ["min", metric] => (Good::Down, *metric),
            _ => {
                return Err(format!(
                    "--objective `{text}`: write max METRIC or min METRIC, for example max delivered_pps"
                ));
            }
        };
        if wanted != good(metric) {
            let right = if wanted == Good::Up { "min" } else { "max" };
            return Err(format!(
                "--objective `{text}`: that would make it worse; write {right} {metric}"
            ));
        }
        Ok(Self { metric: metric.into(), good: wanted, scale: scale(metric) })
    }

    /// -1 where less of the metric is better.
    pub fn sign(&self) -> f64 {
        if self.good == Good::Up { 1.0 } else { -1.0 }
    }

    /// A value as the search reads it: more is better.
    pub fn reading(&self, value: f64) -> f64 {
        let least = self.scale.of(NOTHING).unwrap_or_default();
        self.sign() * self.scale.of(value.max(0.0)).unwrap_or(least)
    }
}

/// What is asked of a search, in addition to what it is about.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// Time for all trials.
    pub budget: Nanos,
    /// Patterns of names and settings; without any, all candidates are tried.
    pub only: &'a [String],
    /// Measure the start once and list the candidates; search nothing.
    pub dry_run: bool,
    /// Also keep what is likely but not proven alone, if all of it together is better.
    pub bundle: bool,
    /// Seed of the arrays and of the order of trials.
    pub seed: u64,
}

/// How a guard is written.
const FORM: &str =
    "write METRIC<VALUE, METRIC<=+SHARE% or METRIC<=+SHARE%|+VALUE, for example loss_ratio<0.001";

/// Reads `METRIC<VALUE`, `METRIC<=+10%`, `METRIC>=-5%`; `METRIC<=+100%|+50` is the larger of both.
///
/// # Errors
/// In words what is wrong and what would be right.
pub fn guard(text: &str) -> Result<MetricGuard, String> {
    let said = |what: &str, right: &str| format!("--guard `{text}`: {what}; {right}");
    let wrong = |what: &str, right: &str| Err(said(what, right));
    let Some(at) = text.find(['<', '>']) else { return wrong("there is no < or >", FORM) };
    let (metric, rest) = (text[..at].trim(), &text[at + 1..]);
    if metric.is_empty() {
        return wrong("no metric is named", FORM);
    }
    let good = good(metric);
    let (is_upper, wanted) =
        (text[at..].starts_with('<'), if good == Good::Up { '>' } else { '<' });
    if is_upper != (good == Good::Down) {
        let less = if good == Good::Up { "more" } else { "less" };
        return wrong(&format!("{less} of {metric} is better"), &format!("write {wanted}"));
    }
    let values = rest.strip_prefix('=').unwrap_or(rest).split('|').map(str::trim);
    let limits =
        values.map(|value| limit(value, metric).map_err(|(what, right)| said(&what, right)));
    let limits = limits.collect::<Result<_, _>>()?;
    Ok(MetricGuard { text: text.into(), metric: metric.into(), good, scale: scale(metric), limits })
}

/// `0.001`, `+10%`, `-5`: how much worse a metric may become; else what is wrong and what would be right.
fn limit(value: &str, metric: &str) -> Result<GuardLimit, (String, &'static str)> {
    let good = good(metric);
    let wrong = |what: &str, right| Err((what.to_owned(), right));
    let sign = value.chars().next().filter(|first| matches!(first, '+' | '-'));
    let bare = sign.map_or(value, |sign| value.trim_start_matches(sign));
    let share = bare.strip_suffix("pp").or(bare.strip_suffix('%'));
    let number = share.unwrap_or(bare).trim().parse::<f64>().ok();
    let Some(number) = number.filter(|it| it.is_finite() && *it >= 0.0) else {
        return wrong(&format!("`{value}` is no number"), FORM);
    };
    let size = if share.is_some() { number * 0.01 } else { number };
    Ok(match sign {
        None => GuardLimit::Value(size),
        Some('-') if good == Good::Down => return wrong("it would have to get better", "write +"),
        Some('+') if good == Good::Up => return wrong("it would have to get better", "write -"),
        Some(_) if value.ends_with('%') && !is_share(metric) => GuardLimit::Share(size),
        Some(_) => GuardLimit::Difference(size),
    })
}

/// All guards of a search.
///
/// # Errors
/// As [`guard`]; and in words which of them can't hold together.
pub fn guards(texts: &[String], objective: &Objective) -> Result<Vec<MetricGuard>, String> {
    let guards = texts.iter().map(|text| guard(text)).collect::<Result<Vec<_>, String>>()?;
    contradiction(objective, &guards).map_or(Ok(guards), Err)
}

/// An objective or guard that is not measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// Which, and where.
    pub what: String,
    /// What is measured instead.
    pub hint: String,
}

/// Objective and guards must be among what is measured.
///
/// # Errors
/// Names the first that is not, and what is.
pub fn measured(
    objective: &Objective,
    guards: &[MetricGuard],
    (metrics, where_): (&BTreeMap<String, f64>, &str),
) -> Result<(), NotMeasured> {
    let wanted = std::iter::once(("--objective", &objective.metric))
        .chain(guards.iter().map(|guard| ("--guard", &guard.metric)));
    let missing = wanted.into_iter().find(|(_, metric)| !metrics.contains_key(*metric));
    let Some((option, metric)) = missing else { return Ok(()) };
    let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
    let what = format!("{option} {metric}: {where_} does not measure it here");
    Err(NotMeasured { what, hint: format!("it measures {}", names.join(", ")) })
}

/// What can't hold together.
fn contradiction(objective: &Objective, guards: &[MetricGuard]) -> Option<String> {
    if let Some(guard) = guards.iter().find(|guard| guard.metric == objective.metric) {
        return Some(format!(
            "--guard `{}`: {} is the objective, which may only get better; leave the guard out",
            guard.text, guard.metric
        ));
    }
    guards.iter().enumerate().find_map(|(at, guard)| {
        let other = guards[..at].iter().find(|other| other.metric == guard.metric)?;
        Some(format!(
            "--guard `{}` and --guard `{}`: two limits of one metric; keep the stricter",
            other.text, guard.text
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_have_a_direction() {
        let read = |text: &str| Objective::read(text).unwrap();
        assert_eq!(read("max delivered_pps"), read("delivered_pps"));
        let latency = read("min one_way_delay_p99_us");
        assert!(latency.reading(10.0) > latency.reading(20.0));
        assert!(read("delivered_pps").reading(0.0) < -20.0);
        for (text, part) in [
            ("max loss_ratio", "write min loss_ratio"),
            ("most of all", "max METRIC"),
            ("", "max METRIC"),
        ] {
            let why = Objective::read(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn guards_are_values_shares_or_differences() {
        let limit = |text: &str| match guard(text).unwrap().limits[..] {
            [limit] => limit,
            ref more => panic!("{text}: {more:?}"),
        };
        assert_eq!(limit("loss_ratio<0.001"), GuardLimit::Value(0.001));
        assert_eq!(limit("loss_ratio <= 0.1%"), GuardLimit::Value(0.001));
        assert_eq!(limit("victim_taken_ratio<=+2%"), GuardLimit::Difference(0.02));
        assert_eq!(limit("one_way_delay_p99_us<=+10%"), GuardLimit::Share(0.1));
        assert_eq!(limit("delivered_pps>=-5%"), GuardLimit::Share(0.05));
        let larger = guard("socket_to_read_p99_us<=+100% | +50").unwrap().limits;
        assert_eq!(larger, [GuardLimit::Share(1.0), GuardLimit::Difference(50.0)]);
        for (text, part) in [
            ("loss_ratio", "no < or >"),
            ("<3", "no metric"),
            ("loss_ratio>0.01", "less of loss_ratio is better; write <"),
            ("loss_ratio<-1%", "write +"),
            ("delivered_pps>+1%", "write -"),
            ("loss_ratio<few", "`few` is no number"),
            ("socket_to_read_p99_us<=+100%|", "`` is no number"),
            ("socket_to_read_p99_us<=+100%|-5", "write +"),
            ("loss_ratio<nan", "no number"),
        ] {
            let why = guard(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn guards_that_contradict_are_refused() {
        let objective = Objective::read("delivered_pps").unwrap();
        let guards =
            |texts: &[&str]| texts.iter().map(|text| guard(text).unwrap()).collect::<Vec<_>>();
        assert_eq!(contradiction(&objective, &guards(&["loss_ratio<0.1"])), None);
        let own = contradiction(&objective, &guards(&["delivered_pps>5"])).unwrap();
        assert!(own.contains("is the objective"), "{own}");
        let two =
            contradiction(&objective, &guards(&["loss_ratio<0.1", "loss_ratio<0.2"])).unwrap();
        assert!(two.contains("keep the stricter"), "{two}");
    }
}
