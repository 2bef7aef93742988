//! Guards: metrics that must not become worse than a limit.

use rxpath_stats::Scale;
use rxpath_stats::scale::Good;

/// The largest allowed worsening.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GuardLimit {
    /// The metric itself stays within this value.
    Value(f64),
    /// It becomes worse by at most this share of its value at the start.
    Share(f64),
    /// It becomes worse by at most this difference, in its own unit.
    Difference(f64),
}

/// A metric that must not become worse than a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricGuard {
    /// As it was asked for.
    pub text: String,
    /// The metric.
    pub metric: String,
    /// Its good direction.
    pub good: Good,
    /// How it is compared.
    pub scale: Scale,
    /// How much worse it may become: the largest of them counts.
    pub limits: Vec<GuardLimit>,
}

impl MetricGuard {
    /// A value of the metric as a search reads it: more is worse.
    pub fn reading(&self, value: f64) -> Option<f64> {
        let at = self.scale.of(value)?;
        Some(if self.good == Good::Up { -at } else { at })
    }

    /// How much worse it may become, from the start's reading. Below 0 if the start itself breaks the limit: then the
    /// kept settings must make it better by so much.
    pub fn margin(&self, start: f64) -> f64 {
        let margins = self.limits.iter().map(|limit| self.margin_of(*limit, start));
        margins.fold(f64::NEG_INFINITY, f64::max)
    }

    fn margin_of(&self, limit: GuardLimit, start: f64) -> f64 {
        let sign = if self.good == Good::Up { -1.0 } else { 1.0 };
        match limit {
            GuardLimit::Share(share) if self.good == Good::Up => -(1.0 - share.min(0.999)).ln(),
            GuardLimit::Share(share) => share.ln_1p(),
            GuardLimit::Value(value) => {
                self.scale.of(value).map_or(f64::NEG_INFINITY, |at| sign * at - start)
            }
            GuardLimit::Difference(difference) => {
                // From the scale back to the metric, worse by the difference, and onto the scale again.
                let now = (sign * start).exp() - self.scale.step();
                self.scale.of(now + sign * difference).map_or(f64::INFINITY, |at| sign * at - start)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(good: Good, scale: Scale, limit: GuardLimit) -> MetricGuard {
        MetricGuard { text: String::new(), metric: String::new(), good, scale, limits: vec![limit] }
    }

    #[test]
    fn the_larger_of_two_limits_counts() {
        let limits = vec![GuardLimit::Share(1.0), GuardLimit::Difference(100.0)];
        let guard =
            MetricGuard { limits, ..guard(Good::Down, Scale::Ratio, GuardLimit::Share(1.0)) };
        let worst = |start: f64| (start.ln() + guard.margin(start.ln())).exp();
        assert!((worst(5.0) - 105.0).abs() < 1e-9);
        assert!((worst(1000.0) - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn margins_are_from_the_start() {
        let share = Scale::Share { step: 0.001 };
        let loss = guard(Good::Down, share, GuardLimit::Value(0.001));
        let start = loss.reading(0.0).unwrap();
        assert!((loss.margin(start) - 2.0f64.ln()).abs() < 1e-9, "0.001 + 0.001 over 0.001");
        assert!(loss.margin(loss.reading(0.1).unwrap()) < -3.0, "the start breaks it");
        let points = guard(Good::Down, share, GuardLimit::Difference(0.02));
        let margin = points.margin(points.reading(0.1).unwrap());
        assert!((margin - (0.121f64 / 0.101).ln()).abs() < 1e-9);
        let latency = guard(Good::Down, Scale::Ratio, GuardLimit::Share(0.1));
        assert!((latency.margin(3.0) - 1.1f64.ln()).abs() < 1e-12);
        let rate = guard(Good::Up, Scale::Ratio, GuardLimit::Share(0.1));
        let (start, lower) = (rate.reading(1000.0).unwrap(), rate.reading(900.0).unwrap());
        assert!((lower - start - rate.margin(start)).abs() < 1e-9);
        let floor = guard(Good::Up, Scale::Ratio, GuardLimit::Value(900.0));
        assert!((floor.margin(start) - (lower - start)).abs() < 1e-9);
        let drop = guard(Good::Up, Scale::Ratio, GuardLimit::Difference(100.0));
        assert!((drop.margin(start) - (lower - start)).abs() < 1e-9);
    }
}
