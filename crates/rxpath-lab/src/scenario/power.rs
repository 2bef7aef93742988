//! What a host's power management is switched to, as far as an experiment may depend on it.
//!
//! Turbo and SMT are switches of the whole machine. A run says what it needs and never touches them: it runs what the
//! host is switched to, and names the rest as not available with the switch to use.

use rxpath_host::Root;
use serde::{Deserialize, Serialize};

const CPUS: &str = "/sys/devices/system/cpu";

/// The switches of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// Frequencies above the nominal one.
    pub turbo: Switch,
    /// Several hardware threads per core.
    pub smt: Switch,
}

/// One switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// It is on; how it is switched off.
    On(String),
    /// It is off; how it is switched on, or why it can't be.
    Off(String),
    /// There is none, or it could not be read.
    Absent(String),
}

impl Default for Switch {
    fn default() -> Self {
        Self::Absent("the host's power management was not read".into())
    }
}

impl Switch {
    /// Why what an experiment wants is not there; `None` when it is.
    pub fn lacks(&self, wanted_on: bool) -> Option<String> {
        match (self, wanted_on) {
            (Self::On(_), true) | (Self::Off(_), false) => None,
            (Self::On(other) | Self::Off(other) | Self::Absent(other), _) => Some(other.clone()),
        }
    }
}

impl Power {
    /// Reads the switches of a host.
    ///
    /// **Source** sysfs: `intel_pstate/no_turbo`, `cpufreq/boost`, `smt/control`
    /// (Documentation/admin-guide/pm).
    pub fn read(root: &Root) -> Self {
        Self { turbo: turbo(root), smt: smt(root) }
    }
}

fn switched(what: &str, state: &str, value: &str, path: &str) -> String {
    format!(
        "{what} is {state} and a run does not switch it for the whole machine: echo {value} > {path}"
    )
}

fn turbo(root: &Root) -> Switch {
    // intel_pstate turns its meaning round.
    for (file, on, off) in [("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")] {
        let path = format!("{CPUS}/{file}");
        let Ok(text) = root.text(&path) else { continue };
        let hint = |state: &str, value: &str| switched("turbo", state, value, &path);
        return if text.trim() == on {
            Switch::On(hint("on", off))
        } else {
            Switch::Off(hint("off", on))
        };
    }
    Switch::Absent(
        "this host has no switch for turbo: neither intel_pstate/no_turbo nor cpufreq/boost".into(),
    )
}

fn smt(root: &Root) -> Switch {
    let path = format!("{CPUS}/smt/control");
    let Ok(text) = root.text(&path) else {
        return Switch::Absent("this kernel does not report SMT: no smt/control".into());
    };
    let hint = |state: &str, value: &str| switched("SMT", state, value, &path);
    match text.trim() {
        "on" => Switch::On(hint("on", "off")),
        "off" => Switch::Off(hint("off", "on")),
        "forceoff" => Switch::Off("SMT is off until the next boot (smt/control: forceoff)".into()),
        "notsupported" => Switch::Off("the CPUs of this host have no SMT".into()),
        other => Switch::Absent(format!("the state of SMT is not known (smt/control: {other})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    /// A tree with these files below the directory of the CPUs.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sys")).unwrap();
        for (name, text) in files {
            let path = dir.path().join(format!("{}/{name}", &CPUS[1..]));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        (dir, root)
    }

    fn read(files: &[(&str, &str)]) -> Power {
        let (_dir, root) = tree(files);
        Power::read(&root)
    }

    #[test]
    fn turbo_of_both_drivers_is_read_the_right_way_round() {
        for (file, value, on) in [
            ("intel_pstate/no_turbo", "0\n", true),
            ("intel_pstate/no_turbo", "1\n", false),
            ("cpufreq/boost", "1\n", true),
            ("cpufreq/boost", "0\n", false),
        ] {
            let turbo = read(&[(file, value)]).turbo;
            assert_eq!(turbo.lacks(on), None, "{file} {value}");
            let why = turbo.lacks(!on).unwrap();
            let other = if value.starts_with('0') { "1" } else { "0" };
            assert!(why.ends_with(&format!("echo {other} > {CPUS}/{file}")), "{why}");
        }
    }

    #[test]
    fn a_host_without_switches_lacks_both_positions() {
        let power = read(&[]);
        for switch in [&power.turbo, &power.smt] {
            assert!(switch.lacks(true).is_some() && switch.lacks(false).is_some());
        }
    }

    #[test]
    fn a_cpu_without_smt_is_one_with_smt_off() {
        let smt = read(&[("smt/control", "notsupported\n")]).smt;
        assert_eq!(smt.lacks(false), None);
        assert_eq!(smt.lacks(true).unwrap(), "the CPUs of this host have no SMT");
        assert_eq!(read(&[("smt/control", "on\n")]).smt.lacks(true), None);
    }

    #[test]
    fn a_variant_is_not_available_where_the_host_is_switched_otherwise() {
        let text = "question = \"?\"\n[[variant]]\nname = \"on\"\nlab.turbo = true\n\
                    [[variant]]\nname = \"off\"\nlab.turbo = false\n";
        let file = parse(text, "t", "t").unwrap();
        let power = read(&[("cpufreq/boost", "0\n")]);
        let host = HostShape { power, ..HostShape::flat(2) };
        let resolved = resolve(&file, &[], &host).unwrap();
        let why: Vec<_> = resolved.variants.iter().map(|v| v.not_available.as_deref()).collect();
        let [Some(why), None] = why[..] else { panic!("{why:?}") };
        assert!(why.starts_with("turbo is off"), "{why}");
    }
}
