//! What a result depends on and nobody would think of writing down: the host facts alongside every run.
//!
//! Each probe is ok, absent with its reason, or denied with what it needs. Host names, addresses (MAC, IP),
//! serial numbers, keys and the kernel parameters that no measurement depends on are not collected.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use serde::Serialize;
use serde_json::Value;

use crate::error::fact;
use crate::{HostError, Root, listed};

mod cpu;
mod kernel;
mod network;
mod surroundings;

pub(crate) use kernel::known_parameters;
pub use kernel::matters as is_known_parameter;
pub use surroundings::is_first_netns;
pub(crate) use surroundings::is_known_program;

/// Facts by probe name: `kernel.release`, `cpu.online`, `sysctl.net.core.rmem_max`, `device.eth0`.
pub type EnvironmentFacts = BTreeMap<String, Fact<Value>>;

/// The names of a section of `names.txt`, which says what each is.
fn names(section: &str) -> impl Iterator<Item = &'static str> {
    listed::section(include_str!("environment/names.txt"), section)
}

/// Reads every fact.
///
/// **Cost** about 10 ms; nothing is written and nothing waits.
pub fn collect(root: &Root) -> EnvironmentFacts {
    let mut facts = Facts { root, found: BTreeMap::new() };
    kernel::collect(&mut facts);
    cpu::collect(&mut facts);
    surroundings::collect(&mut facts);
    network::collect(&mut facts);
    facts.found
}

/// The facts found so far.
struct Facts<'a> {
    root: &'a Root,
    found: EnvironmentFacts,
}

impl Facts<'_> {
    /// Adds a fact; what can't be written as JSON would be a defect of this program and is shown as a gap.
    fn put<T: Serialize>(&mut self, name: impl Into<String>, value: Fact<T>) {
        let value = value.and_then(|value| match serde_json::to_value(value) {
            Ok(value) => Fact::ok(value),
            Err(error) => Fact::absent(format!("cannot be written: {error}")),
        });
        self.found.insert(name.into(), value);
    }

    fn result<T: Serialize>(&mut self, name: impl Into<String>, value: Result<T, HostError>) {
        self.put(name, fact(value));
    }

    /// A file's text without the white space around it.
    fn text(&mut self, name: impl Into<String>, path: &str) {
        self.result(name, self.root.value(path));
    }

    /// A fact that only the running host can tell, by a system call.
    fn live<T: Serialize>(
        &mut self,
        name: impl Into<String>,
        ask: impl FnOnce() -> Result<T, HostError>,
    ) {
        if self.root.is_live() {
            self.result(name, ask());
        } else {
            self.put(name, Fact::<T>::absent("not in a captured tree"));
        }
    }
}

/// The value that is in force, in a file's words. Some files show it among the others, in brackets or parentheses:
/// `always [madvise] never`.
pub fn in_force(text: &str) -> &str {
    let rest = text.split_once(['[', '(']).map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split_once([']', ')'])).map_or(text, |(chosen, _)| chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn this_host_is_described_without_naming_it() {
        let facts = collect(&Root::host());
        for name in [
            "kernel.release",
            "kernel.hz",
            "cpu.count",
            "cpu.online",
            "memory.total_bytes",
            "device.lo",
            "cpu.allowed",
        ] {
            assert!(facts[name].value().is_some(), "{name}: {:?}", facts.get(name));
        }
        assert!(
            facts.contains_key("sysctl.net.core.rmem_max")
                && facts.contains_key("sysctl.net.ipv4.udp_mem")
        );
        let text = serde_json::to_string(&facts).unwrap();
        let root = Root::host();
        for device in crate::read::sysfs::device::names(&root).unwrap() {
            let address =
                root.value(&format!("/sys/class/net/{device}/address")).unwrap_or_default();
            assert!(
                address.is_empty() || address == "00:00:00:00:00:00" || !text.contains(&address)
            );
        }
    }

    #[test]
    fn an_empty_tree_is_all_gaps_with_reasons() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        let facts = collect(&Root::tree(dir.path()).unwrap());
        assert!(facts.len() > 40, "{}", facts.len());
        for (name, fact) in &facts {
            let gap = fact.gap();
            assert!(
                gap.is_some_and(|gap| gap.len() > "absent: ".len()),
                "{name} of an empty tree is {fact:?}"
            );
        }
    }

    #[test]
    fn the_chosen_of_a_list_is_found() {
        assert_eq!(in_force("always [madvise] never"), "madvise");
        assert_eq!(in_force("tsc"), "tsc");
    }
}
