//! How much longer this host's first window is: hosts of a fleet that start together do not end their windows together.

use rxpath_tune::plan::HostMark;

use crate::cmd::prelude::*;

/// Digits of an id that a number has room for.
const DIGITS: usize = 16;

/// Less than a window of this length; the same at each start on this host. None where the host has no id.
pub(super) fn delay(window: Duration) -> Duration {
    HostMark::here().map_or(Duration::ZERO, |mark| of(&mark, window))
}

/// By the hash of the machine's id. Without one by the boot, which is as good for hosts that boot together.
fn of(mark: &HostMark, window: Duration) -> Duration {
    let id = mark.machine.as_deref().unwrap_or(&mark.boot_id);
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(DIGITS).collect();
    let number = u64::from_str_radix(&digits, 16).unwrap_or(0);
    window.mul_f64(number as f64 / 2f64.powi(64)).min(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn mark(machine: Option<&str>, boot_id: &str) -> HostMark {
        HostMark {
            machine: machine.map(str::to_owned),
            boot_id: boot_id.into(),
            ..HostMark::default()
        }
    }

    #[test]
    fn it_is_a_share_of_a_window_by_the_machine_and_else_by_the_boot() {
        let boot = "40000000-0000-4000-8000-000000000000";
        for (machine, boot_id, delay_ms) in [
            (Some("0000000000000000"), boot, 0),
            (Some("8000000000000000"), boot, 5000),
            (Some("ffffffffffffffff"), boot, 10_000),
            (None, boot, 2500),
            (None, "", 0),
        ] {
            let got = of(&mark(machine, boot_id), WINDOW);
            assert!(got.abs_diff(Duration::from_millis(delay_ms)) < Duration::from_millis(1));
            assert!(got <= WINDOW, "{got:?}");
        }
    }

    #[test]
    fn it_is_the_same_at_each_start() {
        assert_eq!(delay(WINDOW), delay(WINDOW));
    }
}
