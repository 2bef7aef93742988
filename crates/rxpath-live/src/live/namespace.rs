//! Which network namespace is watched, and what the softirqs of this machine did for others.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rxpath_host::lab::netns::NETNS_DIR;
use rxpath_host::read::netlink::NetworkLink;

/// Fewer packets than this per second, or than this share of all, are the readings' difference in time.
const LEAST_PPS: f64 = 100.0;
const LEAST_RATIO: f64 = 0.05;

/// The namespace of this thread as a person calls it: its name of `ip netns`, or its number.
pub(super) fn name() -> String {
    let of = |path: &Path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let Some(own) = of(Path::new("/proc/thread-self/ns/net")) else { return String::new() };
    if of(Path::new("/proc/1/ns/net")) == Some(own) {
        return "the one of process 1".into();
    }
    let named = std::fs::read_dir(NETNS_DIR).into_iter().flatten().flatten();
    let mut found: Vec<String> = named
        .filter(|entry| of(&entry.path()) == Some(own))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found.into_iter().next().unwrap_or_else(|| format!("net:[{}]", own.1))
}

/// Packets per second that softirqs handled for other namespaces, at least: all that they processed less what the devices
/// of this one took, each of them, whether or not it repeats another; or than IP took, where a driver counts late. `None`
/// where that is too little to be sure.
pub(super) fn elsewhere(
    [processed, by_ip]: [u64; 2],
    links: Option<(&[NetworkLink], &[NetworkLink])>,
    seconds: f64,
) -> Option<f64> {
    let (before, now) = links?;
    let moved = |link: &NetworkLink| {
        let then = before.iter().find(|old| old.index == link.index);
        let then = then.and_then(|old| old.stat("rx.packets")).unwrap_or(0);
        link.stat("rx.packets").and_then(|count| count.checked_sub(then)).unwrap_or(0)
    };
    let here = now.iter().map(moved).fold(0, u64::saturating_add).max(by_ip);
    let others = processed.saturating_sub(here) as f64;
    let pps = others / seconds;
    let sure = pps >= LEAST_PPS && others >= LEAST_RATIO * processed as f64;
    sure.then_some(pps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(received: u64) -> Vec<NetworkLink> {
        let one = |index| NetworkLink {
            index,
            stats: vec![("rx.packets", received)],
            ..NetworkLink::default()
        };
        vec![one(1), one(2)]
    }

    #[test]
    fn what_no_device_of_this_namespace_took_went_elsewhere() {
        let (before, now) = (links(100), links(600));
        let of = |processed| elsewhere([processed, 0], Some((&before, &now)), 2.0);
        assert_eq!(of(5_000), Some(2_000.0));
        // As many, fewer by GRO, and a difference of the readings.
        assert_eq!(of(1_000), None);
        assert_eq!(of(10), None);
        assert_eq!(of(1_040), None);
        assert_eq!(elsewhere([5_000, 0], None, 2.0), None);
        // Its driver has not counted them yet.
        assert_eq!(elsewhere([5_000, 4_900], Some((&now, &now)), 2.0), None);
    }

    #[test]
    fn this_namespace_has_a_name_or_a_number() {
        assert!(!name().is_empty());
    }
}
