//! A linear fit of the time of softirq passes over their packets: the cost of a pass with its poll, and of a packet.

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
/// 95 % of a normal distribution: passes are many.
const NORMAL: f64 = 1.96;

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
}

/// Least squares of `t = pass + packet * w`. `tracing_ns` is the cost of tracing per pass; it is subtracted.
pub fn passes(sums: Sums, tracing_ns: f64) -> Result<PassCosts, TooNoisy> {
    let Sums { n, w, ww, t, wt, tt } = sums;
    if n < FEWEST {
        return Err(TooNoisy(format!("{n:.0} passes were measured, {FEWEST:.0} are needed")));
    }
    let (mean_w, mean_t) = (w / n, t / n);
    let (spread, moved) = (ww - n * mean_w * mean_w, wt - n * mean_w * mean_t);
    if spread / n < LEAST_VARIANCE {
        return Err(TooNoisy(format!(
            "almost all passes took {mean_w:.2} packets: the costs of pass and packet cannot be separated"
        )));
    }
    let packet = moved / spread;
    let pass = mean_t - packet * mean_w;
    let unexplained = (tt - n * mean_t * mean_t - packet * moved).max(0.0);
    let variance = unexplained / (n - 2.0);
    let half_packet = NORMAL * (variance / spread).sqrt();
    let half_pass = NORMAL * (variance * (1.0 / n + mean_w * mean_w / spread)).sqrt();
    let pass = pass - tracing_ns;
    if packet <= 0.0 || pass <= 0.0 {
        return Err(TooNoisy(format!(
            "a fitted cost is negative ({pass:.0} ns per pass, {packet:.0} ns per packet)"
        )));
    }
    let estimate = |value: f64, half: f64, how: &str| Estimate {
        value,
        interval: [(value - half).max(0.0), value + half],
        unit: "ns".into(),
        residual: Some(variance.sqrt()),
        measurements_count: n as u64,
        how: how.into(),
    };
    Ok(PassCosts {
        pass: estimate(
            pass,
            half_pass,
            "tracepoints, linear fit over passes, tracing cost subtracted",
        ),
        packet: estimate(packet, half_packet, "tracepoints, linear fit over passes"),
    })
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
            let each = (0..4000_u32).map(|i| {
                let w = f64::from(i / 4 % 31 + 1);
                (w, pass + packet * w + wave(i) + 100.0)
            });
            let got = passes(sums(each), 100.0).unwrap();
            prop_assert!((got.pass.value - pass).abs() < 1e-3 * pass + 1.0, "{:?}", got);
            prop_assert!((got.packet.value - packet).abs() < 1e-3 * packet, "{:?}", got);
            prop_assert!(got.pass.interval[0] <= pass + 1e-3 && pass <= got.pass.interval[1] + 1e-3);
            prop_assert!(got.pass.residual.unwrap() <= noise + 1.0);
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let same = sums((0..1000).map(|_| (1.0, 2000.0)));
        assert!(passes(same, 0.0).unwrap_err().to_string().contains("cannot be separated"));
        let few = sums((0..100).map(|i| (f64::from(i), 2000.0)));
        assert!(passes(few, 0.0).unwrap_err().to_string().contains("200 are needed"));
        let falling =
            sums((1..1000).map(|i| (f64::from(i % 9), 9000.0 - 100.0 * f64::from(i % 9))));
        assert!(passes(falling, 0.0).unwrap_err().to_string().contains("negative"));
    }
}
