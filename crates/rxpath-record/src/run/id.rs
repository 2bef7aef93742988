//! Names of runs: `<YYYYMMDDTHHMMSSZ>-<scenario>-<6 hex>`.

use jiff::{Timestamp, tz::TimeZone};

/// Longest scenario part; the whole name stays far below the 255 bytes of a file name.
const MAX_SCENARIO_CHARS: usize = 64;

/// The directory name of a run that started at `started`.
///
/// The scenario may be a file's name: what is not a letter, a digit, `-`, `_` or `.` becomes `-`, so that the
/// name is one path component that a shell needs no quotes for. Of `random` the low 24 bits are used.
pub fn run_id(started: Timestamp, scenario: &str, random: u32) -> String {
    let time = started.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = scenario.chars().map(plain).take(MAX_SCENARIO_CHARS).collect();
    let name = name.trim_matches(['-', '.']);
    let name = if name.is_empty() { "run" } else { name };
    format!("{time}-{name}-{:06x}", random & 0x00ff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_says_when_what_and_which() {
        let id = run_id(at("2026-11-21T00:35:07.9Z"), "million-pps", 0xab00_0c0f);
        assert_eq!(id, "20261121T003507Z-million-pps-000c0f");
    }

    #[test]
    fn a_scenario_cannot_leave_the_base_directory() {
        let id = run_id(at("2026-01-02T03:04:05Z"), "../../etc/x y", 1);
        assert_eq!(id, "20260102T030405Z-etc-x-y-000001");
    }

    proptest! {
        #[test]
        fn every_name_is_one_component(scenario in ".{0,100}", random in any::<u32>()) {
            let id = run_id(at("2026-01-02T03:04:05Z"), &scenario, random);
            prop_assert!(id.len() < 128 && !id.contains('/') && !id.starts_with('.'));
        }
    }
}
