//! Compares the settings of the next boot with the current settings: the kernel command line and files of sysctl.d. A
//! setting that a udev rule or rc.local mentions is not compared: what they set is not read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rxpath_host::read::environment::in_force;
use rxpath_host::read::procfs::sysctl;
use rxpath_host::read::startup::DEVICE_FILES;

use crate::facts::Kept;
use crate::prelude::*;
use crate::rule_file::table;

/// Settings outside `net` that the receive path depends on.
const BESIDE_NET: [&str; 8] = [
    "kernel/bpf_stats_enabled",
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/sched_rt_runtime_us",
    "kernel/soft_watchdog",
    "kernel/timer_migration",
    "kernel/watchdog",
    "vm/stat_interval",
];

const CPU: &str = "/sys/devices/system/cpu";

/// Command line parameters that a running kernel shows and accepts: name, file.
///
/// **Source** Documentation/admin-guide/kernel-parameters.txt; parameters of modules are those of
/// `/sys/module/NAME/parameters` with mode 0644.
static PARAMETERS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| table("rules/surroundings/parameters"));

/// A value that the next boot sets.
struct Wanted {
    /// The source of the value.
    source: String,
    /// The value, as the live file shows it.
    value: String,
}

/// The places of start-up files that mention a setting.
pub(super) fn mentions(ask: &Ask<'_>, path: &str) -> Vec<String> {
    let lines = ask.facts.startup().iter().filter(|line| line.mentions(path));
    lines.map(|line| line.place.clone()).collect()
}

/// Lines of start-up files that mention settings that neither sysctl.d nor the command line sets.
fn other_files(ask: &Ask<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (name, path) in PARAMETERS.iter() {
        let is_compared = ask.facts.kernel.parameter(name).is_some();
        let places = mentions(ask, path).into_iter().filter(|_| !is_compared);
        all.extend(places.map(|place| format!("{place} mentions {path}")));
    }
    for line in ask.facts.startup().iter().filter(|_| !ask.facts.scope.is_entered) {
        for device in &ask.facts.devices {
            let files = DEVICE_FILES.iter().filter(|file| line.mentions_file(&device.name, file));
            all.extend(
                files.map(|file| format!("{} mentions {} of {}", line.place, file, device.name)),
            );
        }
    }
    all
}

/// Lines of sysctl.d that are in force for settings of the receive path, by their paths.
pub(super) fn in_files<'a>(ask: &Ask<'a>) -> BTreeMap<String, &'a Kept> {
    let mut all = ask.facts.kept_in_force();
    all.retain(|path, _| is_ours(ask, path));
    all
}

fn is_ours(ask: &Ask<'_>, path: &str) -> bool {
    let key = path.strip_prefix("/proc/sys/").unwrap_or_default();
    let is_net = key.starts_with("net/") && !ask.facts.scope.is_entered;
    is_net || BESIDE_NET.contains(&key)
}

/// What the kernel command line sets of the sysctls, by path: `sysctl.KEY=VALUE` (fs/proc/proc_sysctl.c
/// `process_sysctl_arg`, 5.8) and the parameters of their own (Documentation/admin-guide/kernel-parameters.txt).
fn booted(words: &[String]) -> BTreeMap<String, Wanted> {
    let mut all = BTreeMap::new();
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let set = match (name, value) {
            ("nmi_watchdog", "0" | "1") => Some(("kernel.nmi_watchdog", value)),
            ("nowatchdog", "") => Some(("kernel.watchdog", "0")),
            ("nosoftlockup", "") => Some(("kernel.soft_watchdog", "0")),
            ("numa_balancing", "disable") => Some(("kernel.numa_balancing", "0")),
            ("numa_balancing", "enable") => Some(("kernel.numa_balancing", "1")),
            _ if word.contains('=') => name.strip_prefix("sysctl.").map(|key| (key, value)),
            _ => None,
        };
        if let Some((key, value)) = set {
            let source = format!("the command line ({word})");
            all.insert(sysctl::path(key), Wanted { source, value: value.to_owned() });
        }
    }
    all
}

/// The value that a file shows once the parameter has acted; `None` for values that act in another way.
fn acted(name: &str, value: &str) -> Option<String> {
    let shown = match (name, value) {
        ("nosmt", "") => "off",
        ("nosmt", "force") => "forceoff",
        ("nosmt", _) => return None,
        ("intel_pstate", "disable") => "off",
        ("intel_pstate", "active" | "passive") => value,
        ("amd_pstate", "active" | "passive" | "guided" | "disable") => value,
        ("intel_pstate" | "amd_pstate", _) | (_, "") => return None,
        _ => value,
    };
    Some(shown.to_owned())
}

/// Other values that the command line sets, by the file that shows them.
fn parameters(ask: &Ask<'_>) -> BTreeMap<String, Wanted> {
    let kernel = &ask.facts.kernel;
    let mut all = BTreeMap::new();
    let mut add = |path: String, name: &str, value: &str| {
        let Some(acts) = acted(name, value) else { return };
        let word = if value.is_empty() { name.to_owned() } else { format!("{name}={value}") };
        let source = format!("the command line ({word})");
        all.insert(path, Wanted { source, value: acts });
    };
    for (name, path) in PARAMETERS.iter() {
        if let Some(value) = kernel.parameter(name) {
            add(path.clone(), name, value);
        }
    }
    let governor = "cpufreq.default_governor";
    if let Some(value) = kernel.parameter(governor) {
        let policies = ask.facts.list(&format!("{CPU}/cpufreq")).into_value().unwrap_or_default();
        for policy in policies.iter().filter(|name| name.starts_with("policy")) {
            let path = format!("{CPU}/cpufreq/{policy}/scaling_governor");
            add(path, governor, value);
        }
    }
    all
}

/// Everything that is kept, by the file that shows it now.
fn wanted(ask: &Ask<'_>) -> Result<BTreeMap<String, Wanted>, Gap> {
    let words = (&ask.facts.kernel.cmdline).known()?;
    let mut all = parameters(ask);
    all.extend(booted(words).into_iter().filter(|(path, _)| is_ours(ask, path)));
    // Files are applied after the kernel has started, and the last one wins.
    all.extend(in_files(ask).into_iter().map(|(path, line)| {
        let (source, value) = (line.file.clone(), line.value.clone());
        (path, Wanted { source, value })
    }));
    Ok(all)
}

/// A setting's name as people write it: sysctls with dots, others by their path.
pub(super) fn called(path: &str) -> String {
    path.strip_prefix("/proc/sys/").map_or_else(|| path.to_owned(), |key| key.replace('/', "."))
}

pub(super) fn kept(ask: &Ask<'_>) -> Checked {
    let (mut compared, mut unread, mut differ, mut denied) = (0, Vec::new(), Vec::new(), None);
    let mut mentioned = Vec::new();
    // What such a file mentions is not compared.
    ask.facts.startup_whole()?;
    for (path, wanted) in wanted(ask)? {
        if let Some(place) = mentions(ask, &path).pop() {
            mentioned.push(format!("{place} mentions {}", called(&path)));
            continue;
        }
        let live = match ask.facts.text(&path).known() {
            Ok(live) => live,
            Err(gap) => {
                denied = denied.or(Some(gap).filter(|gap| matches!(gap, Gap::Denied(_))));
                unread.push(called(&path));
                continue;
            }
        };
        let live = in_force(&live);
        // A processor without siblings has nothing to turn off.
        if live.starts_with("not") && path.ends_with("/smt/control") {
            continue;
        }
        compared += 1;
        let Wanted { source, value } = wanted;
        // A file separates numbers by blanks, the kernel by tabs.
        if !live.split_whitespace().eq(value.split_whitespace()) {
            differ.push(format!("{} is {live}, {source} says {value}", called(&path)));
        }
    }
    if !differ.is_empty() {
        return Answer::observed(differ.join("; "))
            .advice("decide which is right, and correct the file, the line or the command line");
    }
    // A file that cannot be read may say something else.
    if let Some(gap) = &ask.facts.kept_gap {
        return Err(gap.clone());
    }
    mentioned.extend(other_files(ask));
    let mut notes = Vec::new();
    if !unread.is_empty() {
        notes.push(format!("cannot be read here: {}", unread.join(", ")));
    }
    if !mentioned.is_empty() {
        notes.push(format!("the values after a boot are not known: {}", mentioned.join(", ")));
    }
    let notes: String = notes.into_iter().flat_map(|note| ["; ".to_owned(), note]).collect();
    match (compared, unread.is_empty()) {
        (0, true) => Answer::silent(format!(
            "neither the command line nor sysctl.d contain a setting of the receive path that this host has{notes}"
        )),
        (0, false) => {
            let gap = Gap::Absent(format!("{} cannot be read here", unread.join(", ")));
            Err(denied.unwrap_or(gap))
        }
        (_, _) => Answer::fine(format!("{compared} settings are as they are kept{notes}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_is_found_among_the_others() {
        assert_eq!(in_force("always [madvise] never"), "madvise");
        assert_eq!(in_force("none voluntary (full) lazy"), "full");
        assert_eq!(in_force("tsc"), "tsc");
        assert_eq!(in_force("broken ["), "broken [");
    }

    #[test]
    fn values_that_act_in_another_way_are_not_compared() {
        assert_eq!(acted("nosmt", "").as_deref(), Some("off"));
        assert_eq!(acted("intel_pstate", "disable").as_deref(), Some("off"));
        assert_eq!(acted("intel_pstate", "no_hwp"), None);
        assert_eq!(acted("clocksource", ""), None);
    }
}
