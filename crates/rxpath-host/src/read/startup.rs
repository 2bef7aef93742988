//! Which line of a start-up file mentions a setting: udev rules and rc.local.
//!
//! The question it answers: *may a line of these files set this setting at boot?* It is a search for names: sysctl keys
//! in both spellings, paths, names of device files next to the device's name, options of `ethtool`. Values and
//! conditions are not read, so nothing here says what the setting will be. Scripts that these files call, and units of
//! systemd, are not read.
//!
//! **Source** udev(7), systemd-rc-local-generator(8): rc.local runs, as the last of them, if it may be executed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rxpath_core::{Fact, IntoMap};

use crate::read::optional::Optional;
use crate::read::procfs::sysctl;
use crate::read::sysfs::device;
use crate::{Root, glob};

/// Directories of udev rules, the one that hides the others first.
pub(crate) const UDEV: [&str; 4] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
];

/// Where distributions look for rc.local.
pub(crate) const SCRIPTS: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];

/// Files of a device that hold settings of the receive path.
pub const DEVICE_FILES: [&str; 9] = [
    "gro_flush_timeout",
    "mtu",
    "napi_defer_hard_irqs",
    "rps_cpus",
    "rps_flow_cnt",
    "threaded",
    "tx_queue_len",
    "xps_cpus",
    "xps_rxqs",
];

/// Beginnings of the names of settings: paths, and sysctl keys in both spellings.
const NAMES: [&str; 9] =
    ["/proc/irq/", "/proc/sys/", "/sys/", "kernel.", "kernel/", "net.", "net/", "vm.", "vm/"];

/// Words that say what a name is about: keys of udev, and what `ethtool -s` changes of a link.
const CONTEXT: [&str; 7] = ["ATTR", "KERNEL", "NAME", "advertise", "autoneg", "duplex", "speed"];

/// A line that names a setting, with those of its words that name settings and devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupLine {
    /// The file and the line, from 1: `/etc/rc.local:7`.
    pub place: String,
    words: Vec<String>,
}

impl StartupLine {
    /// Whether it names the setting at a path below `/proc` or `/sys`, itself or by a pattern.
    pub fn mentions(&self, path: &str) -> bool {
        self.words.iter().any(|word| {
            if word.starts_with('/') {
                glob::is_match(word, path)
            } else {
                glob::is_match(&sysctl::path(word), path)
            }
        })
    }

    /// Whether it names this file of a device ([`DEVICE_FILES`]).
    pub fn mentions_file(&self, device: &str, file: &str) -> bool {
        self.words.iter().any(|word| last(word) == file) && self.may_mean(device)
    }

    /// Whether it runs `ethtool` on a device with one of the options.
    pub fn mentions_ethtool(&self, device: &str, options: &[&str]) -> bool {
        self.has("ethtool")
            && options.iter().any(|option| self.has(option))
            && self.may_mean(device)
    }

    /// Whether one of its words is this one.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// Whether it names a file below `/proc/irq` with this name.
    pub fn mentions_irq(&self, start: &str) -> bool {
        self.words
            .iter()
            .any(|word| word.starts_with("/proc/irq/") && last(word).starts_with(start))
    }

    /// Whether it names the device, or leaves open which it means: by a variable, a pattern, a udev rule without a name.
    fn may_mean(&self, device: &str) -> bool {
        let inside = format!("/{device}/");
        let named = |word: &String| {
            if word.starts_with('/') {
                word.contains(['$', '%', '*']) || word.contains(&inside)
            } else {
                word == "$" || glob::is_match(word, device)
            }
        };
        let is_any = self.has("ATTR") && !self.has("KERNEL") && !self.has("NAME");
        is_any || self.words.iter().any(named)
    }
}

/// The lines of a text that name settings, by number: those of their words that name a setting, one of the devices, or
/// what is done. Whatever else they hold is left out: people, disks, passwords.
pub fn parse_startup(text: &str, devices: &[String]) -> BTreeMap<usize, Vec<String>> {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "_./*?-:$%[]!@".contains(c);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    let words = lines.filter_map(|(at, line)| {
        let words: Vec<&str> = line
            .split(|c| !is_sign(c))
            .map(|word| if is_ethtool(word) { "ethtool" } else { word })
            .collect();
        let runs_ethtool = words.contains(&"ethtool");
        let keep = |word: &&str| match *word {
            word if is_name(word) || CONTEXT.contains(&word) => Some(word.to_owned()),
            word if devices.iter().any(|device| glob::is_match(word, device)) => {
                Some(word.to_owned())
            }
            word if runs_ethtool && word.starts_with('-') => Some(word.to_owned()),
            word if word.contains(['$', '%']) => Some("$".to_owned()),
            _ => None,
        };
        let named = words.iter().any(|word| is_name(word));
        named.then(|| (at + 1, words.iter().filter_map(keep).collect()))
    });
    words.into_map()
}

fn is_name(word: &str) -> bool {
    word == "ethtool"
        || NAMES.iter().any(|start| word.starts_with(start))
        || DEVICE_FILES.contains(&last(word))
}

fn is_ethtool(word: &str) -> bool {
    last(word) == "ethtool" && !NAMES.iter().any(|start| word.starts_with(start))
}

/// The last part of a path.
fn last(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The lines of all files in the order in which they act, and whether all of them could be read.
pub fn read(root: &Root) -> (Vec<StartupLine>, Fact<()>) {
    let mut reads = Optional::below(root);
    let devices = device::names(root).unwrap_or_default();
    let scripts = SCRIPTS.iter().filter(|path| is_run(root, path)).map(|path| (*path).to_owned());
    let mut all = Vec::new();
    for path in reads.files(&UDEV, "rules").into_iter().chain(scripts) {
        let lines = parse_startup(&reads.text(&path), &devices).into_iter();
        all.extend(
            lines.map(|(line, words)| StartupLine { place: format!("{path}:{line}"), words }),
        );
    }
    (all, reads.whole())
}

/// Whether a script is run at boot: only one that may be executed is. A captured tree holds no other.
pub(crate) fn is_run(root: &Root, path: &str) -> bool {
    let may_run = |real: &Path| {
        fs::metadata(real).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    if root.is_live() { may_run(&root.path(path)) } else { root.exists(path) }
}

/// The text with nothing in it but the words that [`parse_startup`] takes, each on its line.
pub(crate) fn names_only(text: &str, devices: &[String]) -> String {
    let lines = parse_startup(text, devices);
    let last = lines.keys().next_back().copied().unwrap_or(0);
    let words = |line| lines.get(&line).map(|words| words.join(" ")).unwrap_or_default();
    (1..=last).map(|line| words(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> StartupLine {
        let devices = ["eth0".to_owned(), "eth1".to_owned()];
        let words = parse_startup(text, &devices).into_values().next().unwrap_or_default();
        StartupLine { place: "x:1".into(), words }
    }

    #[test]
    fn a_sysctl_is_found_in_both_spellings() {
        for text in [
            "sysctl -w net.core.a=3",
            "/sbin/sysctl -w 'net/core/a=3'",
            "if true; then echo 5 >/proc/sys/net/core/a; fi",
            "SUBSYSTEM==\"net\", SYSCTL{net/core/a}=\"1\"",
            "sysctl -w net.core.[ab]=3",
        ] {
            assert!(line(text).mentions("/proc/sys/net/core/a"), "{text}");
            assert!(!line(text).mentions("/proc/sys/net/core/aa"), "{text}");
        }
        for text in ["# sysctl -w net.core.a=3", "  #echo > /proc/sys/net/core/a", "modprobe a"] {
            assert!(!line(text).mentions("/proc/sys/net/core/a"), "{text}");
        }
    }

    #[test]
    fn a_device_file_is_found_with_its_device() {
        for text in [
            "echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
            "for q in /sys/class/net/eth0/queues/rx-*/rps_cpus; do",
            "KERNEL==\"eth0\", ATTR{queues/rx-0/rps_cpus}=\"f\"",
            "KERNEL==\"eth[0-9]\", RUN+=\"/bin/sh -c 'echo f > /sys/%p/queues/rx-0/rps_cpus'\"",
        ] {
            assert!(line(text).mentions_file("eth0", "rps_cpus"), "{text}");
            assert!(!line(text).mentions_file("eth0", "xps_cpus"), "{text}");
        }
        // Which device is meant is open.
        for text in ["echo f > /sys/class/net/$d/queues/rx-0/rps_cpus", "ATTR{rps_cpus}=\"f\""] {
            assert!(line(text).mentions_file("eth7", "rps_cpus"), "{text}");
        }
        let mtu = line("ip link set eth1 mtu 9000");
        assert!(mtu.mentions_file("eth1", "mtu") && !mtu.mentions_file("eth0", "mtu"));
        assert!(line("echo 1 > /proc/irq/120/smp_affinity_list").mentions_irq("smp_affinity"));
    }

    #[test]
    fn an_option_of_ethtool_is_found_with_its_device() {
        let features = ["-K", "--features"];
        for text in
            ["/usr/sbin/ethtool -K eth0 gro off", "test -e /x && ethtool --features $dev gro off"]
        {
            assert!(line(text).mentions_ethtool("eth0", &features), "{text}");
            assert!(!line(text).mentions_ethtool("eth0", &["-G"]), "{text}");
        }
        assert!(!line("ethtool -K eth1 gro off").mentions_ethtool("eth0", &features));
    }

    #[test]
    fn files_act_in_their_order_and_hide_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/x", "");
        put("usr/lib/udev/rules.d/60-net.rules", "SYSCTL{net/core/a}=\"1\"\n");
        put("etc/udev/rules.d/60-net.rules", "#\nSUBSYSTEM==\"net\", SYSCTL{net/core/a}=\"2\"\n");
        put("run/udev/rules.d/50-x.rules", "SUBSYSTEM==\"net\", ATTR{mtu}=\"9000\"\n");
        put("etc/udev/rules.d/notes.txt", "ATTR{mtu}=\"1\"\n");
        put("etc/rc.local", "#!/bin/sh\nsysctl -w net.core.a=3\n");
        let (lines, whole) = read(&Root::tree(dir.path()).unwrap());
        assert!(whole.gap().is_none(), "{whole:?}");
        let places: Vec<&str> = lines.iter().map(|line| line.place.as_str()).collect();
        let wanted = [
            "/run/udev/rules.d/50-x.rules:1",
            "/etc/udev/rules.d/60-net.rules:2",
            "/etc/rc.local:2",
        ];
        assert_eq!(places, wanted);
        // A directory by the name of a file: no privilege opens it as one.
        fs::create_dir_all(dir.path().join("etc/udev/rules.d/40-a.rules")).unwrap();
        let (lines, whole) = read(&Root::tree(dir.path()).unwrap());
        assert_eq!(lines.len(), 3);
        assert!(whole.gap().is_some_and(|why| why.contains("40-a.rules")));
    }

    proptest! {
        #[test]
        fn what_is_left_reads_the_same(
            before in "\\PC{0,40}",
            name in "[a-z*0$]{1,5}",
            value in "[a-z0-9 ]{1,6}",
        ) {
            let devices = ["eth0".to_owned()];
            let text = format!("\n{before} echo {value} > /sys/class/net/{name}/mtu\nethtool -K {name} gro {value}\n\
                                sysctl -w net.a.b={name}\nmount -o password={value}\n");
            let left = names_only(&text, &devices);
            prop_assert!(!left.contains("password"));
            prop_assert_eq!(parse_startup(&left, &devices), parse_startup(&text, &devices));
        }
    }
}
