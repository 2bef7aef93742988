//! One source that is on and off for exponential times, a buffer `B`, a constant drain: the share that is lost.
//!
//! **Source** D. Anick, D. Mitra, M. Sondhi, "Stochastic Theory of a Data-Handling System with Multiple Sources",
//! BSTJ 61, 1982, for one source. Fluid: below some tens of packets of buffer the grain of packets shows.
//! Written so that the mean equal to the drain, where the decay `eta` is 0, is no special case.

use crate::inputs::{Code, Inputs, Outputs, Problem};

/// A source with its drain.
#[derive(Clone, Copy, Debug)]
pub struct OnOff {
    /// Packets/s while on; above the drain.
    pub peak_pps: f64,
    /// Packets/s that leave.
    pub drain_pps: f64,
    /// Mean seconds on.
    pub on_s: f64,
    /// Mean seconds off.
    pub off_s: f64,
}

impl OnOff {
    fn on_fraction(&self) -> f64 {
        self.on_s / (self.on_s + self.off_s)
    }

    /// Decay of the queue's tail per packet; 0 or less when the mean is not below the drain.
    pub fn decay(&self) -> f64 {
        1.0 / (self.on_s * (self.peak_pps - self.drain_pps)) - 1.0 / (self.off_s * self.drain_pps)
    }

    /// Fraction lost with a buffer of `buffer` packets.
    pub fn loss(&self, buffer: f64) -> f64 {
        let rise = self.peak_pps - self.drain_pps;
        // 1 - k = eta g with these, so that eta cancels from the closed form.
        let (g, k) = (rise * self.on_s, self.on_s / self.off_s * rise / self.drain_pps);
        let span = self.decay() * buffer;
        let full = if span >= 0.0 {
            (-span).exp() * g / (g + k * buffer * shrink(span))
        } else {
            g / (g * span.exp() + k * buffer * shrink(-span))
        };
        rise / self.peak_pps * full
    }

    /// P(queue > level) with an unlimited buffer.
    pub fn longer_than(&self, level: f64) -> f64 {
        let mean = self.peak_pps * self.on_fraction();
        if mean >= self.drain_pps {
            1.0
        } else {
            mean / self.drain_pps * (-self.decay() * level).exp()
        }
    }
}

/// `(1 - e^-x)/x`.
fn shrink(x: f64) -> f64 {
    if x.abs() < 1e-300 { 1.0 } else { -(-x).exp_m1() / x }
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let source = OnOff {
        peak_pps: inputs.positive("peak")?,
        drain_pps: inputs.positive("drain")?,
        on_s: inputs.positive("mean_on_s")?,
        off_s: inputs.positive("mean_off_s")?,
    };
    let buffer = inputs.not_negative("B")?;
    if source.peak_pps <= source.drain_pps {
        return Ok(Outputs::default()
            .with("loss_fraction", 0.0)
            .with("p_q_gt_B_infinite", 0.0)
            .but(Problem::new(
                Code::NoValue,
                "the peak does not exceed the drain rate: nothing ever queues",
            )));
    }
    Ok(Outputs::default()
        .with("eta_per_pkt", source.decay())
        .with("loss_fraction", source.loss(buffer))
        .with("p_q_gt_B_infinite", source.longer_than(buffer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_and_order(
            drain in 1e3..1e6_f64, over in 1.01..10.0_f64, on in 1e-4..0.1_f64, off in 1e-4..0.1_f64,
            buffer in 0.0..1e5_f64,
        ) {
            let source = OnOff { peak_pps: drain * over, drain_pps: drain, on_s: on, off_s: off };
            let (some, more) = (source.loss(buffer), source.loss(buffer + 1.0));
            prop_assert!(more <= some * (1.0 + 1e-12) && some <= 1.0 - 1.0 / over + 1e-12);
            // Never less than what no buffer can hold.
            let mean = source.peak_pps * source.on_fraction();
            prop_assert!(some >= 1.0 - drain / mean - 1e-9);
        }
    }

    #[test]
    fn without_buffer_the_peak_is_cut() {
        let source = OnOff { peak_pps: 2e5, drain_pps: 1e5, on_s: 0.002, off_s: 0.006 };
        assert!((source.loss(0.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn mean_equal_to_drain_is_the_limit_of_its_neighbours() {
        let at = |off_s| OnOff { peak_pps: 2e5, drain_pps: 1e5, on_s: 0.002, off_s }.loss(400.0);
        assert!((at(0.002) - 0.5 * (at(0.002 * 1.000_01) + at(0.002 * 0.999_99))).abs() < 1e-9);
    }
}
