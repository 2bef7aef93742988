//! What this host and its devices say of the values that a setting takes.
//!
//! The question it answers: *which value can't be, before it is tried?* What the host does not say is no bound.

use std::fs;
use std::path::Path;

use rxpath_core::CpuList;

use crate::netlink::Netlink;
use crate::pairs::Pairs;
use crate::read::sysfs::device::receive_queues;
use crate::{Group, HostError, Root, Target};

/// The bounds of one setting, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest numbers, by the names of a group.
    pub least: Pairs,
    /// Largest numbers, by the names of a group.
    pub most: Pairs,
    /// The words that are offered, of which one is taken.
    pub words: Option<Vec<String>>,
    /// The CPUs that there can be.
    pub cpus: Option<CpuList>,
    /// The CPUs of which at least one must be named.
    pub online: Option<CpuList>,
    /// The number of receive queues that a mask names.
    pub queues: Option<u32>,
    /// Smallest and largest number of a file.
    pub range: Option<(i64, i64)>,
    /// Why no value may be asked for now.
    pub obstacle: Option<&'static str>,
}

/// Sysctls that are masks of CPUs.
const MASKS: [&str; 2] = ["net.core.rps_default_mask", "net.core.flow_limit_cpu_bitmap"];

/// Files that take one of the words of another file: how they end, and the other's name next to it.
const OFFERED: [(&str, &str); 4] = [
    ("/scaling_governor", "scaling_available_governors"),
    ("/energy_performance_preference", "energy_performance_available_preferences"),
    ("/current_clocksource", "available_clocksource"),
    ("/current_tracer", "available_tracers"),
];

impl Bounds {
    /// Those of a setting that is no group: from files of `/sys`.
    pub(super) fn of_file(target: &Target) -> Self {
        let root = Root::host();
        let cpus = |file: &str| root.cpus(&format!("/sys/devices/system/cpu/{file}")).ok();
        let possible = || Self { cpus: cpus("possible"), ..Self::default() };
        match target {
            Target::Irq { .. } => Self { online: cpus("online"), ..possible() },
            Target::Sysctl { key } if MASKS.contains(&key.replace('/', ".").as_str()) => possible(),
            Target::Attr { attr, .. } if attr.ends_with("_cpus") => possible(),
            Target::Attr { dev, attr } if attr.ends_with("/xps_rxqs") => {
                let count = receive_queues(&root, dev).count() as u32;
                Self { queues: Some(count).filter(|count| *count > 0), ..Self::default() }
            }
            Target::Sysfs { path } => Self::of_sysfs(path),
            _ => Self::default(),
        }
    }

    fn of_sysfs(path: &Path) -> Self {
        let name = path.to_string_lossy();
        let beside = |name: &str| text(&path.with_file_name(name));
        if let Some((_, other)) = OFFERED.iter().find(|(end, _)| name.ends_with(end)) {
            return Self { words: beside(other).map(|text| words(&text)), ..Self::default() };
        }
        if let Some(listed) = text(path).filter(|text| word_of_list(text).is_some()) {
            return Self { words: Some(words(&listed)), ..Self::default() };
        }
        if name.ends_with("/scaling_min_freq") || name.ends_with("/scaling_max_freq") {
            let number = |name| beside(name)?.parse::<i64>().ok();
            let range = number("cpuinfo_min_freq").zip(number("cpuinfo_max_freq"));
            return Self { range, ..Self::default() };
        }
        Self::default()
    }

    /// Those of a group of a device, from the most that its driver takes.
    ///
    /// A device keeps a queue to receive and one to send (net/ethtool/channels.c `ethnl_set_channels`): where it has no
    /// queues of one kind alone, the combined ones are all that there are.
    pub(super) fn of_group(group: Group, most: Pairs) -> Self {
        let mut least = Pairs::default();
        let alone = |kind| most.get(kind).is_some_and(|count| count != "0");
        if group == Group::Channels && !(alone("rx") && alone("tx")) && alone("combined") {
            least.push("combined", 1);
        }
        Self { least, most, ..Self::default() }
    }

    /// Those of a device's link.
    pub(super) fn of_link(route: &mut Netlink, dev: &str) -> Result<Self, HostError> {
        let mut bounds = Self::default();
        if let Some((min, max)) = route.mtu_limits(dev)? {
            bounds.least.push("mtu", min);
            bounds.most.push("mtu", max);
        }
        Ok(bounds)
    }
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Of a file that lists its words, `default [performance] powersave`, the one in force: it takes that word alone. `None` for
/// any other text.
pub(super) fn word_of_list(text: &str) -> Option<&str> {
    let inside = |word: &'_ str| word.len() > 2 && word.starts_with('[') && word.ends_with(']');
    let mut chosen = text.split_whitespace().filter(|word| inside(word));
    let (one, None) = (chosen.next()?, chosen.next()) else { return None };
    (!text.trim().contains('\n')).then(|| one.trim_matches(['[', ']']))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_the_files_offer() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("pcie_aspm/parameters")).unwrap();
        for (name, text) in [
            ("pcie_aspm/parameters/policy", "[default] performance powersave \n"),
            ("scaling_governor", "schedutil\n"),
            ("scaling_available_governors", "performance schedutil\n"),
            ("scaling_min_freq", "800000\n"),
            ("cpuinfo_min_freq", "400000\n"),
            ("cpuinfo_max_freq", "3000000\n"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        let of = |name: &str| Bounds::of_sysfs(&at(name));
        let policy = of("pcie_aspm/parameters/policy").words.unwrap();
        assert_eq!(policy, ["default", "performance", "powersave"]);
        assert_eq!(of("scaling_governor").words.unwrap(), ["performance", "schedutil"]);
        assert_eq!(of("scaling_min_freq").range, Some((400_000, 3_000_000)));
        assert_eq!(of("current_clocksource"), Bounds::default(), "what is not said is no bound");
    }

    #[test]
    fn the_word_in_force_stands_in_brackets() {
        assert_eq!(word_of_list("always [madvise] never\n"), Some("madvise"));
        assert_eq!(word_of_list("[none]"), Some("none"));
        for other in
            ["", "madvise", "[]", "[a] [b]", "[a]\n[b]", "0-3 [a\nb]", "[a\nb c]", "x\n[y] z"]
        {
            assert_eq!(word_of_list(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_last_queue_stays() {
        for (most, least) in [
            ("combined=4", "combined=1"),
            ("rx=0 tx=0 combined=4", "combined=1"),
            ("rx=4 tx=4 combined=4", ""),
            ("rx=4 tx=4", ""),
        ] {
            let bounds = Bounds::of_group(Group::Channels, most.parse().unwrap());
            assert_eq!(bounds.least.to_string(), least, "{most}");
        }
        assert!(Bounds::of_group(Group::Rings, "rx=512".parse().unwrap()).least.is_empty());
    }

    #[test]
    fn masks_and_interrupts_are_bound_to_the_cpus_that_there_can_be() {
        for name in ["irq/1", "net.core.rps_default_mask", "lo/queues/rx-0/rps_cpus"] {
            let bounds = Bounds::of_file(&name.parse().unwrap());
            assert!(bounds.cpus.is_some_and(|cpus| cpus.0.contains(&0)), "{name}");
        }
        assert_eq!(Bounds::of_file(&"lo/queues/tx-0/xps_rxqs".parse().unwrap()).queues, Some(1));
        let loopback = Bounds::of_link(&mut Netlink::route().unwrap(), "lo").unwrap();
        assert_eq!(loopback, Bounds::default(), "its driver sets none");
    }
}
