//! One-way delays, as far as the clocks of the two hosts allow them.

use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_load::quantiles::Quantiles;
use rxpath_load::udp::result::ServeResult;

use crate::output::Metrics;
use crate::testbed::hosts::delay::DelayError;

/// A delay is given if its bound is at most this share of its median.
const LARGEST_BOUND: f64 = 0.5;

/// Delays as they truly are, with their bound; `None` where the clocks are not known well enough.
fn given(served: &ServeResult, error: DelayError) -> Option<(&Quantiles, f64)> {
    let delay = served.one_way_delay_us.as_ref()?;
    let median_us = delay.p50 + shift_us(error);
    let is_given = served.early_packets == 0 && bound_us(error) <= median_us * LARGEST_BOUND;
    is_given.then_some((delay, median_us))
}

fn shift_us(error: DelayError) -> f64 {
    error.shift_ns as f64 / 1e3
}

fn bound_us(error: DelayError) -> f64 {
    error.bound_ns as f64 / 1e3
}

pub(super) fn metrics(served: &ServeResult, error: DelayError, all: &mut Metrics) {
    if let Some((delay, median_us)) = given(served, error) {
        all.insert("one_way_delay_p50_us".into(), median_us);
        all.insert("one_way_delay_p99_us".into(), delay.p99 + shift_us(error));
        if error.bound_ns > 0 {
            all.insert("one_way_delay_bound_us".into(), bound_us(error));
        }
    }
    // On one clock it is the delay less a constant.
    if let Some(delay) = served.one_way_delay_us.as_ref().filter(|_| error.bound_ns > 0) {
        all.insert("delay_above_least_p50_us".into(), delay.p50 - delay.min);
        all.insert("delay_above_least_p99_us".into(), delay.p99 - delay.min);
    }
}

/// Why one-way delays are not given, where they were measured.
pub(super) fn refused(served: &ServeResult, error: DelayError) -> Option<Warning> {
    let delay = served.one_way_delay_us.as_ref()?;
    if given(served, error).is_some() {
        return None;
    }
    let bound = bound_us(error);
    let text = if served.early_packets > 0 {
        format!(
            "one-way delays are not given: {} datagrams came before they were sent, so a clock jumped or the clocks drift apart",
            grouped(served.early_packets)
        )
    } else {
        format!(
            "one-way delays are not given: the clocks are known to +-{bound:.0} us, and the median would be {:.0} us",
            delay.p50 + shift_us(error)
        )
    };
    Some(
        Warning::new("no-one-way-delay", text)
            .cure("delays above the least of the trial are: delay_above_least_p50_us"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(p50: f64) -> ServeResult {
        let delay = Quantiles { min: p50 - 10.0, p50, p99: p50 + 90.0, ..Quantiles::default() };
        ServeResult { one_way_delay_us: Some(delay), ..ServeResult::default() }
    }

    #[test]
    fn a_delay_is_given_as_far_as_the_clocks_are_known() {
        let mut all = Metrics::new();
        metrics(&served(100.0), DelayError::default(), &mut all);
        assert_eq!(
            all.keys().map(String::as_str).collect::<Vec<_>>(),
            ["one_way_delay_p50_us", "one_way_delay_p99_us"]
        );
        let mut all = Metrics::new();
        let known = DelayError { shift_ns: -20_000, bound_ns: 40_000 };
        metrics(&served(100.0), known, &mut all);
        assert_eq!((all["one_way_delay_p50_us"], all["one_way_delay_p99_us"]), (80.0, 170.0));
        assert_eq!((all["one_way_delay_bound_us"], all["delay_above_least_p99_us"]), (40.0, 100.0));
        assert_eq!(refused(&served(100.0), known), None);
    }

    #[test]
    fn a_delay_smaller_than_twice_its_bound_is_refused_with_both_numbers() {
        let (mut all, coarse) = (Metrics::new(), DelayError { shift_ns: 0, bound_ns: 60_000 });
        metrics(&served(100.0), coarse, &mut all);
        assert!(!all.contains_key("one_way_delay_p50_us"));
        assert!(!all.contains_key("one_way_delay_bound_us"), "the bound of nothing");
        assert!((all["delay_above_least_p50_us"] - 10.0).abs() < 1e-9, "{all:?}");
        let text = refused(&served(100.0), coarse).unwrap().text;
        assert!(text.contains("+-60 us") && text.contains("median would be 100 us"), "{text}");
    }

    #[test]
    fn datagrams_from_the_future_void_the_delay() {
        let early = ServeResult { early_packets: 3, ..served(1_000.0) };
        let (mut all, error) = (Metrics::new(), DelayError { shift_ns: 0, bound_ns: 1 });
        metrics(&early, error, &mut all);
        assert!(!all.contains_key("one_way_delay_p50_us"));
        assert!(refused(&early, error).unwrap().text.contains("3 datagrams came before"));
    }
}
