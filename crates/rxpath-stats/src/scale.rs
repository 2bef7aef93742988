//! The scale on which two values are compared: logarithms.
//!
//! On it a halving and a doubling are equally far from no change, so swapping base and variant mirrors the interval and
//! the verdict. Shares have a natural zero: a step is added to them, which is the difference that matters near zero.
//! Far above the step this is the logarithm of the ratio again.

/// The good direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// More is better.
    Up,
    /// Less is better.
    Down,
}

/// How two values of a metric are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// By their ratio.
    Ratio,
    /// By their difference near zero and by their ratio far above `step`, because 0 is an ordinary value.
    Share {
        /// The difference that matters near zero, in the unit of the metric.
        step: f64,
    },
}

impl Scale {
    /// What is added to a value before its logarithm is taken.
    pub fn step(self) -> f64 {
        match self {
            Self::Ratio => 0.0,
            Self::Share { step } => step,
        }
    }

    /// A value on this scale; `None` where it has no logarithm.
    pub fn of(self, value: f64) -> Option<f64> {
        let shifted = value + self.step();
        (shifted > 0.0 && shifted.is_finite()).then(|| shifted.ln())
    }

    /// Effects up to this are the same in practice: `ratio` as a share of the value, of a share at least its step, each
    /// where the lower median of the two is `lower`.
    pub fn threshold(self, ratio: f64, lower: f64) -> f64 {
        let step = self.step();
        let from_zero = if step > 0.0 { step / (lower.max(0.0) + step) } else { 0.0 };
        ratio.max(from_zero).ln_1p()
    }

    /// The difference, in the metric's unit, that an effect makes of `base`.
    pub fn difference(self, effect: f64, base: f64) -> f64 {
        (base + self.step()) * effect.exp_m1()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_difference_near_zero_and_a_ratio_far_from_it() {
        let share = Scale::Share { step: 0.001 };
        let effect = |base, variant| share.of(variant).unwrap() - share.of(base).unwrap();
        let near = effect(0.0, 0.0005);
        assert!((share.difference(near, 0.0) - 0.0005).abs() < 1e-12);
        assert!(near < share.threshold(0.03, 0.0), "half a step is the same");
        assert!(effect(0.0, 0.003) > share.threshold(0.03, 0.0));
        let far = effect(0.4, 0.5);
        assert!((far - (0.5f64 / 0.4).ln()).abs() < 1e-3);
        assert!((share.threshold(0.03, 0.4) - 0.03f64.ln_1p()).abs() < 1e-12);
        assert_eq!(Scale::Ratio.of(0.0), None);
        assert_eq!(Scale::Ratio.of(f64::NAN), None);
        assert_eq!(share.of(-0.5), None);
        assert!((Scale::Ratio.difference(2.0f64.ln(), 10.0) - 10.0).abs() < 1e-12);
    }
}
