//! The environment of the kernel: memory, hypervisor, container, namespaces, daemons that change settings.

use rxpath_core::Fact;
use serde_json::{Value, json};

use super::{Facts, names};
use crate::parse::{self, ParseError};
use crate::read::procfs::{self, task};
use crate::{HostError, Root};

/// Kernel threads of the receive path, by the beginning of their `comm`.
const THREADS: [&str; 4] = ["ksoftirqd/", "irq/", "napi/", "backlog_napi/"];

/// Whether a program or kernel thread matters to the receive path.
pub(crate) fn is_known_program(comm: &str) -> bool {
    names("[daemons]").any(|name| name == comm)
        || THREADS.iter().any(|thread| comm.starts_with(thread))
}

/// Inode numbers of the first namespaces (include/uapi/linux/nsfs.h, formerly `include/linux/proc_ns.h`).
const FIRST_NAMESPACES: [(&str, &str); 4] = [
    ("uts", "uts:[4026531838]"),
    ("user", "user:[4026531837]"),
    ("pid", procfs::FIRST_PID_NAMESPACE),
    ("cgroup", "cgroup:[4026531835]"),
];

pub(super) fn collect(facts: &mut Facts<'_>) {
    for (name, field) in
        [("memory.total_bytes", "MemTotal"), ("memory.available_bytes", "MemAvailable")]
    {
        facts.result(name, facts.root.parsed("/proc/meminfo", |text| meminfo(text, field)));
    }
    facts.text("load.average", "/proc/loadavg");
    facts.text("virtualization.hypervisor", "/sys/hypervisor/type");
    facts.text("virtualization.vendor", "/sys/class/dmi/id/sys_vendor");
    facts.text("virtualization.product", "/sys/class/dmi/id/product_name");
    facts.put("container.hints", container(facts.root));
    namespaces(facts);
    facts.result("process.capabilities", capabilities(facts.root));
    facts.result("cgroup.cpu_max", cpu_max(facts.root));
    facts.put("daemons.running", daemons(facts.root));
}

fn meminfo(text: &str, field: &str) -> Result<u64, ParseError> {
    for (at, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix(field).and_then(|rest| rest.strip_prefix(':')) {
            let kib: u64 = parse::number(at + 1, field, rest.split_ascii_whitespace().next())?;
            return Ok(kib.saturating_mul(1024));
        }
    }
    Err(ParseError::new(0, format!("no line {field}")))
}

fn container(root: &Root) -> Fact<Vec<&'static str>> {
    let hints = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/systemd/container", "systemd"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ];
    let found: Vec<_> =
        hints.iter().filter(|(path, _)| root.exists(path)).map(|(_, name)| *name).collect();
    Fact::of((!found.is_empty()).then_some(found), "none of the usual signs of a container")
}

/// Of the thread that asks: a process may have moved only that one.
const OWN_NETNS: &str = "/proc/thread-self/ns/net";

/// Whether this network namespace is the first one; `None` where that is not known: without the right to see init's, in a
/// container, whose init is another one.
pub fn is_first_netns(root: &Root) -> Option<bool> {
    let own = root.link(OWN_NETNS).or_else(|_| root.link("/proc/self/ns/net")).ok()?;
    let is_of_init = own == root.link("/proc/1/ns/net").ok()?;
    let is_init_first = || {
        let own = root.link("/proc/self/ns/pid");
        own.is_ok_and(|own| own.as_os_str() == procfs::FIRST_PID_NAMESPACE)
    };
    if is_of_init { is_init_first().then_some(true) } else { Some(false) }
}

/// Whether this process is in the first namespace of each kind, where that is known.
fn namespaces(facts: &mut Facts<'_>) {
    for (kind, first) in FIRST_NAMESPACES {
        let link = facts.root.link(&format!("/proc/self/ns/{kind}"));
        facts.result(format!("namespace.{kind}.first"), link.map(|link| link.as_os_str() == first));
    }
    // The number of the first network namespace is fixed only in newer kernels: init's is compared instead.
    let own = facts.root.link(OWN_NETNS);
    let first = own.and_then(|own| Ok(own == facts.root.link("/proc/1/ns/net")?));
    facts.result("namespace.net.same_as_init", first);
}

fn capabilities(root: &Root) -> Result<String, HostError> {
    root.parsed("/proc/self/status", |text| {
        let field = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
        field.map(|mask| mask.trim().to_owned()).ok_or_else(|| ParseError::new(0, "no line CapEff"))
    })
}

/// The CPU limit of this process's control group (version 2): `max 100000` is none.
fn cpu_max(root: &Root) -> Result<String, HostError> {
    let group = root.parsed("/proc/self/cgroup", |text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"));
        path.map(str::to_owned).ok_or_else(|| ParseError::new(0, "no version 2 group (`0::`)"))
    })?;
    let group = group.trim_end_matches('/');
    root.value(&format!("/sys/fs/cgroup{group}/cpu.max"))
}

fn daemons(root: &Root) -> Fact<Value> {
    let pids = match task::processes(root) {
        Ok(pids) if pids.is_empty() => return Fact::absent("no process is visible in /proc"),
        Ok(pids) => pids,
        Err(error) => return error.into_gap(),
    };
    let searched: Vec<&str> = names("[daemons]").collect();
    let found = task::named(root, &pids, &searched);
    Fact::ok(json!({"found": found, "searched": searched, "processes_seen_count": pids.len()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(meminfo("MemTotal:  2 kB\nMemAvailable: 1 kB\n", "MemAvailable").unwrap(), 1024);
        assert!(meminfo("MemTotal:  2 kB\n", "MemAvailable").is_err());
        assert!(meminfo("MemTotal: x kB\n", "MemTotal").is_err());
    }

    #[test]
    fn no_section_of_names_that_is_read_is_empty() {
        for section in ["[options]", "[parameters]", "[sysctls]", "[core]", "[daemons]"] {
            assert!(names(section).next().is_some(), "{section}");
        }
    }

    #[test]
    fn comm_names_fit_in_comm() {
        assert!(names("[daemons]").all(|name| name.len() <= crate::read::thread::MAX_NAME_BYTES));
    }
}
