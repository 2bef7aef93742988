//! What makes a window worthless whatever it measured: a clock that was slewed in it, a link that went away.

use rxpath_host::clock::Pace;
use rxpath_host::netlink::Netlink;

use super::clock::DRIFT_PPM;

/// What is compared at the two ends of a window.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    pace: Pace,
    /// `None` where the device cannot be read.
    carrier_changes: Option<u32>,
}

impl Steady {
    /// Reads it now.
    pub fn now(device: &str) -> Self {
        let link = Netlink::route().and_then(|mut route| route.link(device));
        let carrier_changes = link.ok().and_then(|link| link.carrier_changes);
        Self { pace: Pace::now(), carrier_changes }
    }

    /// What happened up to `later`, in words.
    pub fn faults(self, later: Self, device: &str) -> Vec<String> {
        let slewed_ppm = later.pace.ahead_ppm(self.pace);
        let clock = (slewed_ppm.abs() > DRIFT_PPM as f64).then(|| {
            let way = if slewed_ppm < 0.0 { "slowed down" } else { "sped up" };
            format!("its clock was {way} by {:.0} ppm", slewed_ppm.abs())
        });
        let changed = self.carrier_changes != later.carrier_changes;
        let link = changed.then(|| format!("{device} lost its carrier"));
        clock.into_iter().chain(link).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second later.
    fn after(slew_ns: i64, carrier_changes: u32) -> Vec<String> {
        let at = |monotonic_ns, raw_ns, changes| Steady {
            pace: Pace { monotonic_ns, raw_ns, within_ns: 0 },
            carrier_changes: Some(changes),
        };
        let begin = at(9_000_000_000, 8_000_000_000, 2);
        let end =
            at(9_500_000_000_u64.saturating_add_signed(slew_ns), 8_500_000_000, carrier_changes);
        begin.faults(end, "ens1f0")
    }

    #[test]
    fn a_clock_that_is_slewed_and_a_link_that_went_away_are_faults() {
        // 500 ppm is what the kernel gives a clock that runs wrong by itself.
        assert_eq!(after(250_000, 2), Vec::<String>::new());
        assert_eq!(after(-250_000, 2), Vec::<String>::new());
        assert_eq!(after(1_050_000, 2), ["its clock was sped up by 2100 ppm"]);
        assert_eq!(after(-1_050_000, 2), ["its clock was slowed down by 2100 ppm"]);
        // Down and up again.
        assert_eq!(after(0, 4), ["ens1f0 lost its carrier"]);
        assert_eq!(after(1_050_000, 3).len(), 2);
    }

    #[test]
    fn a_device_of_this_host_is_steady() {
        let before = Steady::now("lo");
        assert_eq!(before.faults(Steady::now("lo"), "lo"), Vec::<String>::new());
    }
}
