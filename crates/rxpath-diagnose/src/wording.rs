//! Numbers as text: always finite, always with the unit.

pub use rxpath_core::number::grouped as count;
use rxpath_core::number::{self, counted, si};
use rxpath_core::{Bytes, CpuList};

/// A share as percent: `0.1 %`, `8.3 %`, `97 %`; 100 is said only of what rounds to it.
pub fn percent(ratio: f64) -> String {
    match finite(ratio) {
        ratio if ratio <= 0.0 => "0 %".into(),
        ratio if ratio < 0.0001 => "under 0.01 %".into(),
        ratio if ratio < 0.01 => number::percent(ratio, 2),
        ratio if ratio < 0.0995 => number::percent(ratio, 1),
        ratio => number::percent(ratio, 0),
    }
}

/// A rate of datagrams: `270k datagrams/s`.
pub fn rate(pps: f64) -> String {
    format!("{} datagrams/s", si(finite(pps).round()))
}

/// A change of a rate: `+30 %`, `-4 %`, `0 %`.
pub fn change(from: f64, to: f64) -> String {
    let percent = (finite(to) / finite(from) - 1.0) * 100.0;
    if !percent.is_finite() {
        return "from nothing".into();
    }
    if percent.abs() < 0.5 { "0 %".into() } else { format!("{percent:+.0} %") }
}

/// `1 datagram`, `1,200 datagrams`.
pub fn datagrams(n: u64) -> String {
    counted(n, "datagram")
}

/// A time in its handiest unit: `1.9 us`, `340 ms`.
pub fn span(seconds: f64) -> String {
    number::span(finite(seconds))
}

/// A size as `--rcvbuf` takes it: `4MiB`, rounded up to a power of two of KiB.
pub fn size_option(bytes: f64) -> String {
    let kib = (finite(bytes).clamp(1024.0, 1e15) / 1024.0).ceil() as u64;
    Bytes(kib.next_power_of_two() * 1024).to_string().replace(' ', "")
}

/// `CPU 1`, `CPUs 0,2`, or `a CPU that was not seen`.
pub fn cpus(list: &[u32]) -> String {
    match list {
        [] => "a CPU that was not seen".into(),
        [one] => format!("CPU {one}"),
        many => format!("CPUs {}", CpuList(many.to_vec())),
    }
}

/// `1 thread`, `4 threads`.
pub fn threads(n: usize) -> String {
    counted(n as u64, "thread")
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_two_digits_and_small_ones_stay_visible() {
        assert_eq!(percent(0.9996), "100 %");
        assert_eq!(percent(0.0834), "8.3 %");
        assert_eq!(percent(0.000_05), "under 0.01 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(f64::NAN), "0 %");
    }

    #[test]
    fn options_are_what_the_command_line_takes() {
        for bytes in [0.0, 1e3, 5e6, 7e9, f64::INFINITY] {
            let text = size_option(bytes);
            assert!(text.parse::<Bytes>().is_ok(), "{text}");
        }
        assert_eq!(size_option(5e6), "8MiB");
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(100.0, 130.0), "+30 %");
        assert_eq!(change(100.0, 96.0), "-4 %");
        assert_eq!(change(100.0, 100.2), "0 %");
        assert_eq!(change(0.0, 5.0), "from nothing");
    }
}
