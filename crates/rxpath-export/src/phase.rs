//! How much longer a host's first window is: hosts of a fleet that start together do not end their windows together.

use std::time::Duration;

/// Digits of an id that a number has room for.
const DIGITS: usize = 16;

/// Less than a window of this length: a share of it by the first hexadecimal digits of the host's id. Zero for an id without any.
pub fn delay(id: &str, window: Duration) -> Duration {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(DIGITS).collect();
    let number = u64::from_str_radix(&digits, 16).unwrap_or(0);
    window.mul_f64(number as f64 / 2f64.powi(64)).min(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_share_of_a_window_by_the_id() {
        let window = Duration::from_secs(10);
        for (id, delay_ms) in [
            ("0000000000000000", 0),
            ("8000000000000000", 5000),
            ("ffffffffffffffff", 10_000),
            ("40000000-0000-4000-8000-000000000000", 2500),
            ("", 0),
        ] {
            let got = delay(id, window);
            assert!(got.abs_diff(Duration::from_millis(delay_ms)) < Duration::from_millis(1));
            assert!(got <= window, "{got:?}");
        }
    }
}
