//! A linear fit of the time of softirq passes over their packets: the cost of a pass with its poll, and of a packet.

use rxpath_stats::student;

use super::Estimate;
use super::fit::TooNoisy;

/// Sums over passes: `t` the time of one in ns, `w` its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Passes.
    pub n: f64,
    /// Sum of `w`.
    pub w: f64,
    /// Sum of `w*w`.
    pub ww: f64,
    /// Sum of `t`.
    pub t: f64,
    /// Sum of `w*t`.
    pub wt: f64,
    /// Sum of `t*t`.
    pub tt: f64,
}

/// What a pass and a packet cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PassCosts {
    /// ns per pass, its one poll included.
    pub pass: Estimate,
    /// ns per packet.
    pub packet: Estimate,
}

/// Fewest passes behind a line.
const FEWEST: f64 = 200.0;
/// Least variance of packets per pass: below it the two costs cannot be separated.
const LEAST_VARIANCE: f64 = 0.05;
/// Fewest trials whose scatter says anything.
const FEWEST_TRIALS: usize = 3;

impl Sums {
    /// Both together.
    #[must_use]
    pub fn plus(self, o: Self) -> Self {
        Self {
            n: self.n + o.n,
            w: self.w + o.w,
            ww: self.ww + o.ww,
            t: self.t + o.t,
            wt: self.wt + o.wt,
            tt: self.tt + o.tt,
        }
    }

    /// ns per pass and per packet by least squares; `None` when packets per pass vary too little.
    fn costs(self) -> Option<[f64; 2]> {
        let mean_w = self.w / self.n;
        let spread = self.ww - self.n * mean_w * mean_w;
        let packet = (self.wt - mean_w * self.t) / spread;
        (spread / self.n >= LEAST_VARIANCE).then(|| [self.t / self.n - packet * mean_w, packet])
    }

    /// What the costs leave unexplained of a pass, as a standard deviation.
    fn residual(self, [pass, packet]: [f64; 2]) -> f64 {
        let unexplained = self.tt - pass * self.t - packet * self.wt;
        (unexplained.max(0.0) / (self.n - 2.0)).sqrt()
    }
}

/// Least squares of `t = pass + packet * w` over the passes of all trials. `tracing_ns` is the cost of tracing per pass; it
/// is subtracted.
///
/// Passes of one trial are alike, so trials count: the intervals are those of the jackknife that leaves out one trial at
/// a time (B. Efron, C. Stein, "The jackknife estimate of variance", Annals of Statistics 9, 1981).
pub fn passes(trials: &[Sums], tracing_ns: f64) -> Result<PassCosts, TooNoisy> {
    let all = trials.iter().fold(Sums::default(), |all, trial| all.plus(*trial));
    if all.n < FEWEST {
        return Err(TooNoisy(format!("{:.0} passes were measured, {FEWEST:.0} are needed", all.n)));
    }
    let inseparable = || {
        let mean_w = all.w / all.n;
        TooNoisy(format!(
            "almost all passes took {mean_w:.2} packets: the costs of pass and packet cannot be separated"
        ))
    };
    let costs = all.costs().ok_or_else(inseparable)?;
    let (pass, packet) = (costs[0] - tracing_ns, costs[1]);
    if packet <= 0.0 || pass <= 0.0 {
        return Err(TooNoisy(format!(
            "a fitted cost is negative ({pass:.0} ns per pass, {packet:.0} ns per packet)"
        )));
    }
    if trials.len() < FEWEST_TRIALS {
        return Err(TooNoisy(format!(
            "{} trials were traced; {FEWEST_TRIALS} are needed to know how passes scatter",
            trials.len()
        )));
    }
    let without = |left_out: usize| {
        let others = trials.iter().enumerate().filter(|(at, _)| *at != left_out);
        others.fold(Sums::default(), |all, (_, trial)| all.plus(*trial)).costs()
    };
    let jackknifed: Vec<[f64; 2]> =
        (0..trials.len()).map(without).collect::<Option<_>>().ok_or_else(inseparable)?;
    let estimate = |at: usize, value: f64, how: &str| {
        let half = half_width(jackknifed.iter().map(|costs| costs[at]));
        Estimate {
            value,
            interval: Some([(value - half).max(0.0), value + half]),
            unit: "ns".into(),
            residual: Some(all.residual(costs)),
            measurements_count: trials.len() as u64,
            how: how.into(),
        }
    };
    let how = "tracepoints, linear fit over passes";
    Ok(PassCosts {
        pass: estimate(0, pass, &format!("{how}, tracing cost subtracted")),
        packet: estimate(1, packet, how),
    })
}

/// Half of the 95 % interval of a value, from its values without one group each.
fn half_width(without_one: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let groups = without_one.len() as f64;
    let mean = without_one.clone().sum::<f64>() / groups;
    let square: f64 = without_one.map(|value| (value - mean).powi(2)).sum();
    student::two_sided(0.05, groups - 1.0) * ((groups - 1.0) / groups * square).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums(each: impl Iterator<Item = (f64, f64)>) -> Sums {
        each.fold(Sums::default(), |all, (w, t)| {
            all.plus(Sums { n: 1.0, w, ww: w * w, t, wt: w * t, tt: t * t })
        })
    }

    proptest! {
        #[test]
        fn costs_are_found_again(pass in 300.0..9000.0_f64, packet in 200.0..3000.0_f64, noise in 0.0..200.0_f64) {
            let wave = |i: u32| [1.0, -1.0, 0.3, -0.3][i as usize % 4] * noise;
            let trial = |from: u32| sums((from..from + 1000).map(|i| {
                let w = f64::from(i / 4 % 31 + 1);
                (w, pass + packet * w + wave(i) + 100.0)
            }));
            let got = passes(&[0, 1000, 2000, 3000].map(trial), 100.0).unwrap();
            prop_assert!((got.pass.value - pass).abs() < 1e-3 * pass + 1.0, "{:?}", got);
            prop_assert!((got.packet.value - packet).abs() < 1e-3 * packet, "{:?}", got);
            let [low, high] = got.pass.interval.unwrap();
            prop_assert!(low <= pass + 1.0 && pass <= high + 1.0);
            prop_assert!(got.pass.residual.unwrap() <= noise + 1.0);
        }
    }

    /// Thousands of passes in each of four trials, and each trial has a cost of its own.
    #[test]
    fn the_interval_is_that_of_trials_not_of_passes() {
        let trial = |cost: f64| {
            sums((0..5000).map(|i| (f64::from(i % 31 + 1), cost + 500.0 * f64::from(i % 31 + 1))))
        };
        let costs = [900.0, 1100.0, 950.0, 1050.0];
        let got = passes(&costs.map(trial), 0.0).unwrap();
        assert!((got.pass.value - 1000.0).abs() < 1.0);
        // Standard deviation of the four 91.3, three degrees of freedom: 3.182 * 91.3 / 2.
        assert!((got.pass.half_width() - 145.2).abs() < 1.0, "{got:?}");
        assert_eq!(got.pass.measurements_count, 4);
        let two = passes(&[900.0, 1100.0].map(trial), 0.0).unwrap_err().to_string();
        assert!(two.contains("2 trials were traced; 3 are needed"), "{two}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let refused = |each: Sums| passes(&[each], 0.0).unwrap_err().to_string();
        let same = sums((0..1000).map(|_| (1.0, 2000.0)));
        assert!(refused(same).contains("cannot be separated"));
        let few = sums((0..100).map(|i| (f64::from(i), 2000.0)));
        assert!(refused(few).contains("200 are needed"));
        let falling =
            sums((1..1000).map(|i| (f64::from(i % 9), 9000.0 - 100.0 * f64::from(i % 9))));
        assert!(refused(falling).contains("negative"));
    }
}
