//! What does the receiver of a variant take without loss on this host?
//!
//! Rates that mean the same everywhere are shares of that capacity. It is searched before the first block with short
//! trials of the variant without its background load: the rate is doubled until datagrams are lost, then the step
//! between is halved. The answer is a rate that was run without loss, so it errs to the low side by less than
//! [`NARROW`].

use rxpath_core::units::si;
use rxpath_core::{Nanos, Warning};
use rxpath_record::manifest::Trial;

use crate::error::LabError;
use crate::scenario::spec::{Background, Observe, Resolved, Variant, Workload};

/// Where the search begins. **Unit** datagrams/s.
const FIRST: f64 = 5_000.0;
/// Where it gives up: no receiver loses anything at what the sender can offer.
const LAST: f64 = 20_000_000.0;
/// Loss that counts as none: what a burst of a shared machine may cost.
const LOSSLESS_RATIO: f64 = 0.002;
/// A receiver that delivers less than this share of what is offered falls behind, though a large buffer hides the loss
/// in a short trial.
const KEPT_UP_RATIO: f64 = 0.97;
/// A shared machine makes a trial worse and never better: a rate that fails is tried this often before it counts.
const TRIES: u32 = 3;
/// A rate that the sender did not reach says nothing about the receiver.
const REACHED_RATIO: f64 = 0.97;
/// The search ends when the rates with and without loss are this close.
const NARROW: f64 = 1.08;

/// One short trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) target_pps: f64,
    pub(super) offered_pps: f64,
    pub(super) delivered_pps: f64,
    pub(super) loss_ratio: f64,
}

impl Step {
    /// What a trial at this rate said; `None` when its ledger does not tell.
    pub(super) fn of(target_pps: f64, trial: &Trial) -> Option<Self> {
        let metric = |name: &str| trial.metrics.get(name).copied();
        Some(Self {
            target_pps,
            offered_pps: metric("offered_pps")?,
            delivered_pps: metric("delivered_pps")?,
            loss_ratio: metric("loss_ratio")?,
        })
    }

    fn is_lossless(&self) -> bool {
        self.loss_ratio <= LOSSLESS_RATIO && self.delivered_pps >= KEPT_UP_RATIO * self.offered_pps
    }

    fn is_reached(&self) -> bool {
        self.offered_pps >= REACHED_RATIO * self.target_pps
    }
}

/// The search: the highest rate without loss, and every step on the way.
///
/// # Errors
/// What `run` fails with; [`LabError::CannotRun`] when the sender can't offer more than the receiver takes, or when
/// even the lowest rate loses.
pub(super) fn search(
    mut run: impl FnMut(f64) -> Result<Step, LabError>,
) -> Result<(f64, Vec<Step>), LabError> {
    let (mut good, mut bad) = (None, None);
    let mut steps = Vec::new();
    let mut rate = FIRST;
    while rate <= LAST && good.zip(bad).is_none_or(|(good, bad): (f64, f64)| bad / good > NARROW) {
        let step = best(rate, &mut run)?;
        steps.push(step);
        match (step.is_lossless(), step.is_reached()) {
            (true, true) => good = Some(rate),
            (true, false) => break,
            (false, _) => bad = Some(rate),
        }
        rate = match (good, bad) {
            (Some(good), Some(bad)) => f64::sqrt(good * bad),
            (Some(good), None) => good * 2.0,
            (None, _) => break,
        };
    }
    match (good, bad) {
        (Some(good), Some(_)) => Ok((good, steps)),
        (Some(_), None) => Err(none(&steps, "the sender can't offer more than the receiver takes")),
        (None, _) => Err(none(&steps, "datagrams are lost at the lowest rate already")),
    }
}

/// The first trial at this rate that shows no limit of the receiver, or the last of all.
fn best(rate: f64, run: &mut impl FnMut(f64) -> Result<Step, LabError>) -> Result<Step, LabError> {
    let mut step = run(rate)?;
    for _ in 1..TRIES {
        if step.is_lossless() && step.is_reached() {
            break;
        }
        step = run(rate)?;
    }
    Ok(step)
}

fn none(steps: &[Step], why: &str) -> LabError {
    LabError::CannotRun {
        what: format!("the receiver's capacity was not found: {why} ({})", told(steps)),
        hint: "set load.rate instead of load.capacity_ratio, or give serve.work".into(),
    }
}

/// In words: `5k asked, all delivered`.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} asked, ", si(self.target_pps))?;
        match (self.is_lossless(), self.is_reached()) {
            (true, true) => f.write_str("all delivered"),
            (true, false) => write!(f, "{} offered", si(self.offered_pps)),
            (false, _) => {
                let lost = self.loss_ratio * 100.0;
                write!(f, "{} delivered, {lost:.1} % lost", si(self.delivered_pps))
            }
        }
    }
}

fn told(steps: &[Step]) -> String {
    steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The variant whose capacity is meant, alone on its CPUs; `None` when no variant asks for a share.
pub(super) fn wanted(resolved: &Resolved) -> Option<Variant> {
    let asks = |variant: &&Variant| variant.not_available.is_none() && share(variant).is_some();
    let mut variant = resolved.variants.iter().find(asks)?.clone();
    variant.background = Background::default();
    variant.observe = Observe { sample_interval: Nanos(0), ..Observe::default() };
    Some(variant)
}

fn share(variant: &Variant) -> Option<f64> {
    variant.load.own().and_then(|own| own.capacity_ratio)
}

/// Gives a sender its rate. **Unit** datagrams/s.
pub(super) fn at_rate(variant: &mut Variant, pps: f64) {
    if let Workload::Own(own) = &mut variant.load {
        own.options.rate = Some(pps.round().max(1.0) as u64);
    }
}

/// Gives each variant that asks for a share its rate, and says what the rates rest on.
pub(super) fn apply(resolved: &mut Resolved, pps: f64, steps: &[Step]) {
    for variant in &mut resolved.variants {
        if let Some(share) = share(variant) {
            at_rate(variant, share * pps);
        }
    }
    let text = format!(
        "the receiver takes {} datagrams/s here without loss; load.capacity_ratio is a share of that",
        si(pps)
    );
    let why = format!("searched before the first block: {}", told(steps));
    resolved.warnings.push(Warning::new("capacity-measured", text).because(why));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A receiver of this capacity before a sender of this one.
    fn host(takes: f64, offers: f64) -> impl FnMut(f64) -> Result<Step, LabError> {
        move |target_pps| {
            let offered_pps = target_pps.min(offers);
            let delivered_pps = offered_pps.min(takes);
            // A buffer that hides loss below a tenth.
            let loss_ratio = (0.9 - takes / offered_pps).max(0.0);
            Ok(Step { target_pps, offered_pps, delivered_pps, loss_ratio })
        }
    }

    proptest! {
        #[test]
        fn the_answer_is_below_the_capacity_and_close_to_it(takes in 6_000.0..5_000_000.0f64) {
            let (pps, steps) = search(host(takes, 1e8)).unwrap();
            prop_assert!(pps * KEPT_UP_RATIO <= takes && pps * NARROW >= takes, "{pps} of {takes}");
            prop_assert!(steps.len() < 20);
        }
    }

    #[test]
    fn a_receiver_that_outruns_the_sender_has_no_capacity_to_be_found() {
        let error = search(host(1e9, 300_000.0)).unwrap_err().to_string();
        assert!(
            error.contains("can't offer more") && error.contains("320k asked, 300k offered"),
            "{error}"
        );
    }

    #[test]
    fn a_single_bad_trial_does_not_count() {
        let (mut quiet, mut count) = (host(50_000.0, 1e8), 0);
        let noisy = |pps: f64| {
            count += 1;
            let step = quiet(pps)?;
            Ok(if count % 2 == 1 { Step { loss_ratio: 0.5, ..step } } else { step })
        };
        let (pps, _) = search(noisy).unwrap();
        assert!(pps > 50_000.0 / NARROW && pps * KEPT_UP_RATIO <= 50_000.0, "{pps}");
    }

    #[test]
    fn loss_at_the_lowest_rate_is_told() {
        let error = search(host(100.0, 1e8)).unwrap_err().to_string();
        assert!(
            error.contains("lowest rate") && error.contains("5k asked, 100 delivered, 88.0 % lost"),
            "{error}"
        );
    }
}
