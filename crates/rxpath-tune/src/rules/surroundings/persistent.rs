//! Compares the settings of the next boot with the current settings: the kernel command line, files of sysctl.d, udev
//! rules, rc.local.

use std::collections::BTreeMap;

use rxpath_host::procfs::sysctl;
use rxpath_host::startup::Sets;
use rxpath_host::sysfs::device::parse_mask;

use crate::prelude::*;

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

/// Settings of sysfs that the receive path depends on, by the beginning of their paths. The numbers of interrupts are
/// others at each boot, so that their affinities are not among them.
const OF_SYSFS: [&str; 7] = [
    "/sys/class/net/",
    "/sys/devices/system/cpu/",
    "/sys/devices/system/clocksource/",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/",
];

const CPU: &str = "/sys/devices/system/cpu";

/// How a file of sysfs shows its value.
#[derive(Clone, Copy)]
enum Shown {
    /// As it is.
    Plain,
    /// Among the others, in brackets or parentheses: `always [madvise] never`.
    Chosen,
}

/// Command line parameters that a running kernel shows and accepts: name, file, form.
///
/// **Source** Documentation/admin-guide/kernel-parameters.txt; parameters of modules are those of
/// `/sys/module/NAME/parameters` with mode 0644.
const PARAMETERS: [(&str, &str, Shown); 12] = [
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", Shown::Chosen),
    (
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        Shown::Plain,
    ),
    ("preempt", "/sys/kernel/debug/sched/preempt", Shown::Chosen),
    ("cpuidle.governor", "/sys/devices/system/cpu/cpuidle/current_governor", Shown::Plain),
    ("intel_pstate", "/sys/devices/system/cpu/intel_pstate/status", Shown::Plain),
    ("amd_pstate", "/sys/devices/system/cpu/amd_pstate/status", Shown::Plain),
    ("pcie_aspm.policy", "/sys/module/pcie_aspm/parameters/policy", Shown::Chosen),
    ("nosmt", "/sys/devices/system/cpu/smt/control", Shown::Plain),
    (
        "haltpoll.guest_halt_poll_ns",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        Shown::Plain,
    ),
    (
        "haltpoll.guest_halt_poll_grow",
        "/sys/module/haltpoll/parameters/guest_halt_poll_grow",
        Shown::Plain,
    ),
    (
        "haltpoll.guest_halt_poll_grow_start",
        "/sys/module/haltpoll/parameters/guest_halt_poll_grow_start",
        Shown::Plain,
    ),
    (
        "haltpoll.guest_halt_poll_shrink",
        "/sys/module/haltpoll/parameters/guest_halt_poll_shrink",
        Shown::Plain,
    ),
];

/// A value that the next boot sets.
struct Wanted {
    /// The source of the value.
    source: String,
    /// The value, as the live file shows it.
    value: String,
    shown: Shown,
}

/// What one file keeps for a setting.
pub(super) struct Claim {
    /// The file; with its line where that is known.
    pub place: String,
    /// The value; `None` if the line does not give it.
    pub value: Option<String>,
}

/// Values that sysctl.d, udev rules and rc.local set, by the file that shows them, in the order in which they apply.
pub(super) fn claims(ask: &Ask<'_>) -> BTreeMap<String, Vec<Claim>> {
    let mut all: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    for (path, line) in ask.facts.kept_in_force().into_iter().filter(|(path, _)| is_ours(ask, path))
    {
        let (place, value) = (line.file.clone(), Some(line.value.clone()));
        all.entry(path).or_default().push(Claim { place, value });
    }
    for step in ask.facts.startup() {
        let Sets::File { path, value } = &step.sets else { continue };
        for path in ask.facts.files_like(path).into_iter().filter(|path| is_ours(ask, path)) {
            let claim = Claim { place: step.place.clone(), value: value.clone() };
            all.entry(path).or_default().push(claim);
        }
    }
    all
}

fn is_ours(ask: &Ask<'_>, path: &str) -> bool {
    if let Some(key) = path.strip_prefix("/proc/sys/") {
        let is_net = key.starts_with("net/") && !ask.facts.scope.is_entered;
        return is_net || BESIDE_NET.contains(&key);
    }
    if path.starts_with("/sys/class/net/") && ask.facts.scope.is_entered {
        return false;
    }
    // What is written to this one is a command.
    OF_SYSFS.iter().any(|start| path.starts_with(start)) && !path.ends_with("/bonding_masters")
}

/// What the kernel command line sets of the sysctls, by path: `sysctl.KEY=VALUE` (fs/proc/proc_sysctl.c
/// `process_sysctl_arg`, 5.8) and the parameters of their own (Documentation/admin-guide/kernel-parameters.txt).
fn booted(words: &[String]) -> BTreeMap<String, (&str, String)> {
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
            all.insert(sysctl::path(key), (word.as_str(), value.to_owned()));
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
    let mut add = |path: String, name: &str, value: &str, shown| {
        let Some(acts) = acted(name, value) else { return };
        let word = if value.is_empty() { name.to_owned() } else { format!("{name}={value}") };
        let source = format!("the command line ({word})");
        all.insert(path, Wanted { source, value: acts, shown });
    };
    for (name, path, shown) in PARAMETERS {
        if let Some(value) = kernel.parameter(name) {
            add(path.to_owned(), name, value, shown);
        }
    }
    let governor = "cpufreq.default_governor";
    if let Some(value) = kernel.parameter(governor) {
        let policies = ask.facts.list(&format!("{CPU}/cpufreq")).into_value().unwrap_or_default();
        for policy in policies.iter().filter(|name| name.starts_with("policy")) {
            let path = format!("{CPU}/cpufreq/{policy}/scaling_governor");
            add(path, governor, value, Shown::Plain);
        }
    }
    all
}

/// Everything that is kept, by the file that shows it now.
fn wanted(ask: &Ask<'_>) -> BTreeMap<String, Wanted> {
    let words = ask.facts.kernel.cmdline.value().cloned().unwrap_or_default();
    let mut all = parameters(ask);
    let sysctls = booted(&words).into_iter().map(|(path, (word, value))| {
        let source = format!("the command line ({word})");
        (path, Wanted { source, value, shown: Shown::Plain })
    });
    all.extend(sysctls.filter(|(path, _)| is_ours(ask, path)));
    // Files are applied after the kernel has started, and the last one wins.
    for (path, claims) in claims(ask) {
        let Some(last) = claims.into_iter().next_back() else { continue };
        let shown = if path.starts_with("/sys/") { Shown::Chosen } else { Shown::Plain };
        match last.value {
            Some(value) => drop(all.insert(path, Wanted { source: last.place, value, shown })),
            // The value after boot cannot be predicted.
            None => drop(all.remove(&path)),
        }
    }
    all
}

/// Numbers compare as numbers: a file separates them by blanks, the kernel by tabs.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Whether two texts are one value: numbers are separated by blanks or tabs, masks of CPUs have zeros before them.
pub(super) fn is_same(path: &str, one: &str, other: &str) -> bool {
    let is_mask = ["/rps_cpus", "/xps_cpus", "/xps_rxqs", "/smp_affinity"];
    if is_mask.iter().any(|name| path.ends_with(name)) {
        let parse = |text: &str| parse_mask(text.trim().trim_start_matches("0x")).ok();
        if let (Some(one), Some(other)) = (parse(one), parse(other)) {
            return one == other;
        }
    }
    words(one) == words(other)
}

/// The value that is in force, in a file's words.
fn in_force(text: &str, shown: Shown) -> &str {
    match shown {
        Shown::Plain => text,
        Shown::Chosen => text
            .split_once(['[', '('])
            .and_then(|(_, rest)| rest.split_once([']', ')']))
            .map_or(text, |(chosen, _)| chosen),
    }
}

/// A setting's name as people write it: sysctls with dots, others by their path.
pub(super) fn called(path: &str) -> String {
    path.strip_prefix("/proc/sys/").map_or_else(|| path.to_owned(), |key| key.replace('/', "."))
}

pub(super) fn kept(ask: &Ask<'_>) -> Checked {
    let (mut compared, mut unread, mut differ, mut denied) = (0, Vec::new(), Vec::new(), None);
    for (path, wanted) in wanted(ask) {
        let live = match ask.facts.text(&path).known() {
            Ok(live) => live,
            Err(gap) => {
                denied = denied.or(Some(gap).filter(|gap| matches!(gap, Gap::Denied(_))));
                unread.push(called(&path));
                continue;
            }
        };
        let live = in_force(&live, wanted.shown);
        // A processor without siblings has nothing to turn off.
        if live.starts_with("not") && path.ends_with("/smt/control") {
            continue;
        }
        compared += 1;
        if !is_same(&path, live, &wanted.value) {
            let Wanted { source, value, .. } = wanted;
            differ.push(format!("{} is {live}, {source} says {value}", called(&path)));
        }
    }
    if !differ.is_empty() {
        let why = "the next boot sets other values";
        return Found::new(differ.join("; "), "the same in both", why)
            .advice("decide which is right, and correct the file, the line or the command line")
            .answer();
    }
    // A file that cannot be read may say something else.
    if let Some(gap) = &ask.facts.kept_gap {
        return Err(gap.clone());
    }
    match (compared, unread.is_empty()) {
        (0, true) => Answer::silent(
            "neither the command line nor sysctl.d, udev rules or rc.local contain a setting of the receive path that \
             this host has",
        ),
        (0, false) => {
            let gap = Gap::Absent(format!("{} cannot be read here", unread.join(", ")));
            Err(denied.unwrap_or(gap))
        }
        (_, true) => Answer::fine(format!("{compared} settings are as they are kept")),
        (_, false) => Answer::fine(format!(
            "{compared} settings are as they are kept; cannot be read here: {}",
            unread.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_is_found_among_the_others() {
        assert_eq!(in_force("always [madvise] never", Shown::Chosen), "madvise");
        assert_eq!(in_force("none voluntary (full) lazy", Shown::Chosen), "full");
        assert_eq!(in_force("tsc", Shown::Plain), "tsc");
        assert_eq!(in_force("broken [", Shown::Chosen), "broken [");
    }

    #[test]
    fn values_that_act_in_another_way_are_not_compared() {
        assert_eq!(acted("nosmt", "").as_deref(), Some("off"));
        assert_eq!(acted("intel_pstate", "disable").as_deref(), Some("off"));
        assert_eq!(acted("intel_pstate", "no_hwp"), None);
        assert_eq!(acted("clocksource", ""), None);
    }
}
