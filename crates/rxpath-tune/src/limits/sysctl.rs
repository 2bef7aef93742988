//! Which values a sysctl of the receive path takes.
//!
//! The question it answers: *would the kernel take this, and does it still make sense?* It must not read the host: what
//! only this host knows is [`super::within`].

use super::table::SETTINGS;
use super::takes::{INT, Takes};

const UINT: i64 = u32::MAX as i64;

/// Names and ranges from the kernel, which a test compares with the running kernel.
pub fn kernel_ranges() -> impl Iterator<Item = (&'static str, i64, i64)> {
    SETTINGS.kernel.iter().map(|(name, (min, max))| (name.as_str(), *min, *max))
}

/// The range of a sysctl that is listed by its own name and takes one number.
fn range(key: &str) -> Option<&'static (i64, i64)> {
    SETTINGS.kernel.get(key).or_else(|| SETTINGS.ours.get(key))
}

/// Whether a sysctl stands here by its own name, whatever it begins with.
pub(super) fn is_listed(key: &str) -> bool {
    range(key).is_some()
}

fn takes(key: &str) -> Option<Takes> {
    if let Some(takes) = SETTINGS.others.get(key) {
        return Some(takes.clone());
    }
    let of_device = || match key.split('.').collect::<Vec<&str>>().as_slice() {
        // A device's name may hold dots.
        ["net", "ipv4" | "ipv6", "conf" | "neigh", _, .., name] => SETTINGS.of_device.get(*name),
        _ => None,
    };
    range(key).or_else(of_device).map(|(min, max)| Takes::Number(*min, *max))
}

/// Whether a value is one that the sysctl takes; one that is not known here may be any line, see [`like`].
pub(super) fn check(key: &str, value: &str) -> Result<(), String> {
    match takes(key) {
        Some(takes) => takes.check(value),
        None if value.trim().is_empty() => Err("the value is empty".into()),
        None => Ok(()),
    }
}

/// Whether a value has the form of the one that is there, for sysctls that are not known here: as many numbers, each an
/// int or unsigned int; or words.
pub(super) fn like(key: &str, now: &str, value: &str) -> Result<(), String> {
    if takes(key).is_some() {
        return Ok(());
    }
    let numbers = |text: &str| -> Option<Vec<i64>> {
        text.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    match numbers(now).filter(|now| !now.is_empty()) {
        None if value.trim().is_empty() => Err("the value is empty".into()),
        None => value.split_whitespace().try_for_each(|word| Takes::Name.check(word)),
        Some(now) => {
            let fit = |all: &Vec<i64>| {
                all.len() == now.len() && all.iter().all(|n| (-INT - 1..=UINT).contains(n))
            };
            let words = format!("`{value}`: expected {} whole number(s), as it has now", now.len());
            numbers(value).filter(fit).map(drop).ok_or(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::table::Settings;
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let Settings { kernel, ours, of_device, others, .. } = &*SETTINGS;
        let names = kernel.keys().chain(ours.keys()).chain(others.keys());
        let all: BTreeSet<&String> = names.clone().collect();
        assert_eq!(names.count(), all.len());
        let mut ranges = kernel.values().chain(ours.values()).chain(of_device.values());
        assert!(ranges.all(|(min, max)| min < max));
    }

    #[test]
    fn each_kind_has_its_form() {
        for (key, good, bad) in [
            ("net.ipv4.ip_local_port_range", "32768 60999", "70000 80000"),
            ("net.ipv4.ip_local_port_range", "1\t65535", "0 65535"),
            ("net.ipv4.ip_local_port_range", "9 9", "60999 32768"),
            ("net.ipv4.ip_local_port_range", "9 9", "9"),
            ("net.ipv4.ip_local_reserved_ports", "", "65536"),
            ("net.ipv4.ip_local_reserved_ports", "8080,9148-9160", "9160-9148"),
            ("net.ipv4.tcp_mem", "0 1 2", "3 2 1"),
            ("net.ipv4.tcp_rmem", "1 2 3", "0 2 3"),
            ("net.core.rps_default_mask", "3", "zzz"),
            ("net.core.flow_limit_cpu_bitmap", "00000000,3", "-1"),
            ("net.core.default_qdisc", "fq_codel", "fq codel"),
            ("net.ipv4.conf.eth0.rp_filter", "2", "3"),
            ("net.ipv4.conf.eth0.1.rp_filter", "0", "x"),
            ("net.ipv4.tcp_syn_retries", "127", "128"),
            ("net.ipv4.tcp_adv_win_scale", "-31", "-32"),
        ] {
            assert_eq!(check(key, good), Ok(()), "{key}={good}");
            assert!(check(key, bad).is_err(), "{key}={bad}");
        }
    }

    #[test]
    fn what_is_not_known_here_keeps_its_form() {
        let key = "net.ipv4.cipso_cache_bucket_size";
        assert_eq!(like(key, "10", "20"), Ok(()));
        for bad in ["", "ten", "1 2", "4294967296", "-2147483649", "1.5"] {
            assert!(like(key, "10", bad).is_err(), "{bad}");
        }
        for bad in ["", " ", "a;b", "$(x)"] {
            assert!(like("net.ipv4.x", "reno bbr", bad).is_err(), "{bad}");
        }
        assert_eq!(like("net.ipv4.x", "reno", "reno bbr"), Ok(()));
        assert_eq!(like("net.ipv4.x", "reno", "bbr"), Ok(()));
        assert_eq!(like("net.core.rmem_max", "1", "known by name"), Ok(()), "the table's matter");
    }

    proptest! {
        /// What is accepted lies in the range, and all of the range is accepted.
        #[test]
        fn a_number_is_taken_exactly_within_its_range(row: Index, by in -3i64..4, edge: bool, any: i64) {
            let all: Vec<_> = SETTINGS.kernel.iter().chain(&SETTINGS.ours).collect();
            let (key, (min, max)) = *row.get(&all);
            let (min, max) = (*min, *max);
            for value in [if edge { min + by } else { max + by }, any] {
                prop_assert_eq!(check(key, &value.to_string()).is_ok(), (min..=max).contains(&value), "{}={}", key, value);
            }
        }

        #[test]
        fn triples_that_are_taken_ascend(text in "[0-9 -]{0,40}") {
            if check("net.ipv4.tcp_rmem", &text).is_ok() {
                let all: Vec<i64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
                prop_assert!(all.len() == 3 && 1 <= all[0] && all[0] <= all[1] && all[1] <= all[2] && all[2] <= INT);
            }
        }

        #[test]
        fn any_text_is_judged(row: Index, text in ".{0,40}") {
            let all: Vec<_> = SETTINGS.others.keys().collect();
            let _ = (check(all[row.index(all.len())], &text), like("net.ipv4.x", &text, &text));
        }
    }
}
