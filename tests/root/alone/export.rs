//! `rxpath export` with its probes: what it may do once it has started, and that it goes on measuring.

use std::fs;
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rxpath_host::read::thread::affinity;

use crate::bed::{Bed, RX_IP, random_id, send, until};
use crate::exporter::{QUICK, Running, SOFTIRQS};

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

/// The path of a namespace is measured by an exporter whose port is where it was started.
#[test]
fn another_namespace_is_measured_and_the_port_stays() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name()]).args(QUICK);
    let running = Running::of(command);
    let passed = "rxpath_stage_passed_total{stage=\"ip\",unit=\"packets\"}";
    until("datagrams arrive there", || {
        send(&tx, 4810, 1_000);
        running.value(passed) > Some(10_000.0)
    });
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
fn an_exporter_measures_what_an_interrupt_costs_or_says_that_it_does_not_know() {
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

/// The page of an exporter that has just started, once it has a window with probes.
fn page_of_a_start() -> String {
    let running = Running::start(Command::new(env!("CARGO_BIN_EXE_rxpath")));
    until("a window with probes", || running.value(SOFTIRQS).is_some());
    running.page()
}

/// Two would cost twice as much and measure each other.
#[test]
fn a_second_exporter_goes_on_with_counters_only_and_says_why() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let program = env!("CARGO_BIN_EXE_rxpath");
    let first = Running::quick();
    let mut command = Command::new(program);
    command.arg("export");
    let (second, told) = Running::told(command);
    assert!(told.contains("another exporter") && told.contains("--no-bpf"), "{told}");
    assert_eq!(told.matches("counters only:").count(), 1, "{told}");
    until("it counts", || second.value("rxpath_window_seconds_total") > Some(0.0));
    assert_eq!(second.value("rxpath_probe_up"), Some(0.0));
    drop(second);
    let mut counters = Command::new(program);
    counters.args(["export", "--no-bpf"]);
    let alongside = Running::of(counters);
    let counted = || alongside.value("rxpath_window_seconds_total") > Some(0.0);
    until("counters alone run alongside", counted);
    first.goes_on();
    // The kernel gives the place back, also after a kill.
    drop(first);
    Running::quick().goes_on();
}

/// Any local user can take the name: that must not switch off the probes.
#[test]
fn a_stranger_with_the_name_does_not_switch_off_the_probes() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let name = SocketAddr::from_abstract_name("rxpath-export").unwrap();
    let _stranger = UnixDatagram::bind_addr(&name).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.arg("export").args(QUICK);
    let (running, told) = Running::told(command);
    assert!(told.contains("@rxpath-export") && !told.contains("counters only"), "{told}");
    running.goes_on();
}

const NONE: [&str; 4] = [
    "CapAmb:\t0000000000000000",
    "CapEff:\t0000000000000000",
    "CapInh:\t0000000000000000",
    "CapPrm:\t0000000000000000",
];

#[test]
fn after_the_start_no_thread_has_a_capability_and_windows_go_on() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let running = Running::start(Command::new(env!("CARGO_BIN_EXE_rxpath")));
    let found = running.capabilities();
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), NONE);
    running.goes_on();
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
    let found = running.capabilities();
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), NONE);
    running.goes_on();
}
