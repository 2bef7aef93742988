//! `rxpath export` with its probes: what it may do once it has started, and that it goes on measuring.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rxpath_host::read::thread::affinity;

use crate::bed::{Bed, random_id, until};
use crate::exporter::Running;

/// What says that there is no estimate.
const ENTRIES_NOT_READ: &str = "rxpath_not_read{what=\"entry and exit of interrupts\"} 1";

/// A control group of version 2 with a process that is busy; both go with it.
pub(super) struct Group {
    mount: tempfile::TempDir,
    name: String,
    victim: Child,
}

impl Group {
    pub(super) fn of_a_busy_process() -> Self {
        let mount = tempfile::tempdir().unwrap();
        let flags = nix::mount::MsFlags::empty();
        let kind = Some("cgroup2");
        nix::mount::mount(kind, mount.path(), kind, flags, None::<&str>).unwrap();
        let name = format!("rxp-{}.service", random_id());
        let victim = busy_in(&mount.path().join(&name));
        Self { mount, name, victim }
    }

    /// Ends and starts again, as a service does: the kernel gives a new group of the same name another id.
    pub(super) fn restart(&mut self) {
        self.end();
        self.victim = busy_in(&self.dir());
    }

    /// The series of the time that is taken from it in this way.
    pub(super) fn stolen(&self, by: &str) -> String {
        let name = &self.name;
        format!(
            "rxpath_cpu_stolen_seconds_total{{by=\"{by}\",victim=\"{name}\",victim_kind=\"unit\"}}"
        )
    }

    fn dir(&self) -> PathBuf {
        self.mount.path().join(&self.name)
    }

    fn end(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let dir = self.dir();
        until("the group is empty", || fs::remove_dir(&dir).is_ok());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        let _ = nix::mount::umount(self.mount.path());
    }
}

/// A busy process in a new group. On a page that does not escape its name, a line has no number.
fn busy_in(group: &Path) -> Child {
    const SCRIPT: &str = "printf %s \"$0\" >/proc/$$/comm; while :; do :; done";
    fs::create_dir(group).unwrap();
    let victim = Command::new("sh").args(["-c", SCRIPT, "evil \n\"} 2\\"]).spawn().unwrap();
    fs::write(group.join("cgroup.procs"), victim.id().to_string()).unwrap();
    victim
}

/// How close the estimate of the entry of interrupts comes is in `bench/export-steal.sh`.
#[test]
fn the_time_taken_from_a_service_is_its_own_and_all_rows_add_up_with_an_estimate_for_entries() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let group = Group::of_a_busy_process();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--irq-entry", "5us"]);
    let running = Running::of(command);
    for by in ["hardirq", "irq_entry"] {
        let series = group.stolen(by);
        until("timer interrupts take time from it", || running.value(&series) > Some(0.0));
    }
    let page = running.page();
    let cost = running.value("rxpath_irq_entry_estimated_seconds{source=\"given\"}");
    assert!(cost.is_some_and(|cost| (cost - 5e-6).abs() < 1e-9), "{page}");
    assert!(!page.contains(ENTRIES_NOT_READ), "{page}");
    let sum = |family: &str, label: &str| -> f64 {
        let rows = page.lines().filter(|line| line.starts_with(family) && line.contains(label));
        rows.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let victims = sum("rxpath_cpu_stolen_seconds_total{", "");
    let programs = sum("rxpath_task_cpu_stolen_seconds_total{", "");
    assert!((victims - programs).abs() <= 1e-6 + 0.01 * victims, "{victims} {programs}");
    let victims = sum("rxpath_cpu_stolen_seconds_total{", "by=\"network\"");
    let devices = sum("rxpath_device_cpu_stolen_seconds_total{", "");
    assert!((victims - devices).abs() <= 1e-6 + 0.01 * victims, "{victims} {devices}");
    let ports = sum("rxpath_flow_cpu_stolen_seconds_total{", "");
    assert!((victims - ports).abs() <= 1e-6 + 0.01 * victims, "{victims} {ports}");
}

#[test]
fn a_start_measures_what_an_interrupt_costs_or_says_why_not_and_leaves_no_capability() {
    let Some(_bed) = Bed::with_bpf() else { return };
    // A start on CPUs that others keep busy has no estimate; one of several has.
    let mut page = page_of_a_start();
    let can_be_measured = cfg!(target_arch = "x86_64") && affinity(0).unwrap().0.len() > 1;
    let deadline = Instant::now() + Duration::from_secs(180);
    while can_be_measured && page.contains(ENTRIES_NOT_READ) && Instant::now() < deadline {
        page = page_of_a_start();
    }
    let measured = page.lines().filter_map(|line| {
        let source = line.strip_prefix("rxpath_irq_entry_estimated_seconds{source=\"")?;
        let (source, cost) = source.split_once("\"} ")?;
        Some((source, cost.parse::<f64>().unwrap()))
    });
    let measured: Vec<(&str, f64)> = measured.collect();
    if can_be_measured {
        let [(source, cost)] = measured[..] else { panic!("{page}") };
        // Root may create a network namespace.
        assert_eq!(source, "packets", "{page}");
        assert!(cost > 0.0 && cost < 1e-3, "{page}");
        assert!(!page.contains(ENTRIES_NOT_READ), "{page}");
    } else {
        assert!(measured.is_empty() && page.contains(ENTRIES_NOT_READ), "{page}");
    }
}

/// The page of an exporter that has just started, once it has windows with probes. No thread of it has a capability then.
fn page_of_a_start() -> String {
    let running = Running::start(Command::new(env!("CARGO_BIN_EXE_rxpath")));
    assert_no_capability(&running);
    running.goes_on();
    running.page()
}

const NONE: [&str; 4] = [
    "CapAmb:\t0000000000000000",
    "CapEff:\t0000000000000000",
    "CapInh:\t0000000000000000",
    "CapPrm:\t0000000000000000",
];

/// Of all threads.
fn assert_no_capability(running: &Running) {
    let found = running.capabilities();
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), NONE);
}

#[test]
fn nobody_with_two_capabilities_measures_and_keeps_none() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("rxpath");
    crate::stripped::copy(&program);
    for path in [dir.path(), program.as_path()] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    for set in ["inh-caps", "ambient-caps", "bounding-set"] {
        command.arg(format!("--{set}=-all,+bpf,+perfmon"));
    }
    command.arg(&program);
    let running = Running::start(command);
    assert_no_capability(&running);
    running.goes_on();
}
