//! What makes a window worthless whatever it measured: a clock that was slewed in it, an instant that was missed.

use std::time::Duration;

use rxpath_host::clock::Pace;

use super::clock::DRIFT_PPM;

/// A clock that did not keep its pace from `begin` to `end`, in words.
pub fn slewed(begin: Pace, end: Pace) -> Option<String> {
    let slewed_ppm = end.ahead_ppm(begin);
    (slewed_ppm.abs() > DRIFT_PPM as f64).then(|| {
        let way = if slewed_ppm < 0.0 { "slowed down" } else { "sped up" };
        format!("its clock was {way} by {:.0} ppm in the window", slewed_ppm.abs())
    })
}

/// An instant that had passed when the host was ready for it, in words.
pub fn missed(what: &str, at_ns: u64, ready_ns: u64) -> Option<String> {
    let late = Duration::from_nanos(ready_ns.saturating_sub(at_ns));
    (!late.is_zero())
        .then(|| format!("it missed the begin of {what} by {:.1} ms", late.as_secs_f64() * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_slewed_is_a_fault() {
        // Half a second later.
        let after = |slew_ns: i64| {
            let at = |monotonic_ns, raw_ns| Pace { monotonic_ns, raw_ns, within_ns: 0 };
            let end = 9_500_000_000_u64.saturating_add_signed(slew_ns);
            slewed(at(9_000_000_000, 8_000_000_000), at(end, 8_500_000_000))
        };
        // 500 ppm is what the kernel gives a clock that runs wrong by itself.
        assert_eq!((after(250_000), after(-250_000)), (None, None));
        let sped_up = "its clock was sped up by 2100 ppm in the window";
        assert_eq!(after(1_050_000).as_deref(), Some(sped_up));
        let slowed_down = "its clock was slowed down by 2100 ppm in the window";
        assert_eq!(after(-1_050_000).as_deref(), Some(slowed_down));
    }

    #[test]
    fn an_instant_that_had_passed_is_a_fault() {
        assert_eq!(missed("its window", 9, 9), None);
        let told = missed("its window", 1_000_000, 36_500_000).unwrap();
        assert_eq!(told, "it missed the begin of its window by 35.5 ms");
    }
}
