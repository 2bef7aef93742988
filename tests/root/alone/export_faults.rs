//! What comes and goes below a running exporter: devices, services, namespaces, descriptors, and the exporter itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::lab::netns::{Inside, Namespace};

use super::export::Group;
use crate::bed::{Bed, RX_IP, TX_IP, send, until};
use crate::counters::{counters, raise};
use crate::exporter::{QUICK, Running};

const WINDOWS: &str = "rxpath_window_seconds_total";
const NIC: &str = "rxpath_stage_passed_total{stage=\"nic\",unit=\"packets\"}";
const UNWRITTEN: &str = "rxpath_collect_errors_total{source=\"textfile\"}";
/// A port without a socket.
const CLOSED: u16 = 4812;

/// The pages of an exporter, each compared with all before it.
struct Pages {
    running: Running,
    /// The highest value that each counter had.
    highest: BTreeMap<String, f64>,
}

impl Pages {
    /// Of an exporter that measures this namespace.
    fn new(rx: &Namespace, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(["export", "--netns", rx.name()]).args(options);
        Self { running: Running::of(command), highest: BTreeMap::new() }
    }

    /// Looks at pages until this series is above `least`.
    fn until_above(&mut self, what: &str, series: &str, least: f64) {
        until(what, || {
            let now = counters(&self.running.page());
            raise(&mut self.highest, &now, what);
            now.get(series).is_some_and(|value| *value > least)
        });
    }

    /// Looks until this series is above what it was at the last look.
    fn until_more(&mut self, what: &str, series: &str) {
        let before = self.of(series);
        self.until_above(what, series, before);
    }

    /// Looks until a window is over that was not over at the first look.
    fn next_window(&mut self, what: &str) {
        self.until_above(what, WINDOWS, 0.0);
        self.until_more(what, WINDOWS);
    }

    fn of(&self, series: &str) -> f64 {
        self.highest.get(series).copied().unwrap_or(0.0)
    }
}

fn ip(of: &Namespace, words: &str) {
    let mut command = Command::new("ip");
    let status = command.args(["-n", of.name()]).args(words.split(' ')).status().unwrap();
    assert!(status.success(), "ip -n {} {words}", of.name());
}

/// The receiver's device gets this name and goes; one with its first name and counters from 0 comes.
fn replace_device(pages: &mut Pages, (tx, rx): (&Namespace, &Namespace), name: &str) {
    ip(rx, "link set veth down");
    ip(rx, &format!("link set veth name {name}"));
    ip(rx, &format!("link set {name} up"));
    pages.next_window("a window with another name");
    ip(rx, &format!("link del {name}"));
    pages.next_window("a window without a device");
    tx.veth_to("veth", rx, "veth", 1).unwrap();
    for (ns, address) in [(tx, TX_IP), (rx, RX_IP)] {
        ns.add_address("veth", address.into(), 24).unwrap();
        ns.set_up("veth", true).unwrap();
    }
    // A device counts from the window on in which it came.
    pages.next_window("a window with the new device");
}

/// A device with the same name and counters from 0 again is another device: its packets count, and nothing twice.
#[test]
fn no_counter_falls_or_jumps_while_devices_go_come_and_change_their_names() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4811)).unwrap()).unwrap();
    let mut pages = Pages::new(&rx, &["--irq-entry", "5us"]);
    pages.until_above("a first window", WINDOWS, 0.0);
    let mut sent = 0.0;
    for round in 0..3 {
        let before = pages.of(NIC);
        send(&tx, 4811, 5_000);
        sent += 5_000.0;
        pages.until_above("packets of this device are counted", NIC, before + 2_500.0);
        replace_device(&mut pages, (&tx, &rx), &format!("other{round}"));
    }
    let counted = pages.of(NIC);
    // With the neighbours' questions and answers.
    assert!(counted <= 1.1 * sent, "{counted} of {sent} packets");
}

/// Datagrams to 2,000 ports without a socket, three to each.
fn send_to_two_thousand_ports(tx: &Namespace) {
    tx.run(|_| {
        let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
        for port in (20_000..22_000).chain(20_000..22_000).chain(20_000..22_000) {
            socket.send_to(&[7; 32], (RX_IP, port)).unwrap();
        }
    })
    .unwrap();
}

/// More kinds of drops than a frame has rows: each port is one.
#[test]
fn drops_at_two_thousand_ports_are_counted() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let mut pages = Pages::new(&rx, &QUICK);
    let dropped = |pages: &Pages| -> f64 {
        let family = "rxpath_dropped_packets_total{";
        pages.highest.iter().filter(|(series, _)| series.starts_with(family)).map(|(_, n)| n).sum()
    };
    pages.next_window("a first window");
    // The probe may count only a part of the time, and not that of one burst; the rows of two windows would have a fifth.
    until("most of them are counted", || {
        let before = dropped(&pages);
        send_to_two_thousand_ports(&tx);
        pages.next_window("a window with drops");
        dropped(&pages) - before > 3_000.0
    });
}

/// A service starts again, a flood comes to ports without a socket, a device and another namespace come and go.
fn plant_around(pages: &mut Pages, bed: &Bed, (tx, rx): (&Namespace, &Namespace)) {
    let mut service = Group::of_a_busy_process();
    let stolen = service.stolen("hardirq");
    pages.until_above("time is taken from a service", &stolen, 0.0);
    service.restart();
    pages.next_window("a window in which the service ended");
    pages.until_more("time is taken from the service that started again", &stolen);
    send_to_two_thousand_ports(tx);
    pages.until_more("a flood is counted", NIC);
    replace_device(pages, (tx, rx), "other");
    send(tx, CLOSED, 500);
    pages.until_more("packets of the new device are counted", NIC);
    let other = Namespace::create(&bed.owner, "other").unwrap();
    let refused = |_: &mut Inside| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for _ in 0..500 {
            socket.send_to(&[7; 32], (Ipv4Addr::LOCALHOST, CLOSED)).unwrap();
        }
    };
    other.run(refused).unwrap();
    drop(other);
    pages.next_window("a window with drops in a namespace that ended");
}

/// What happens to the exporter itself: its file, its port, its descriptors, its CPU.
fn plant_inside(pages: &mut Pages, rx: &Namespace, dir: &Path) {
    // It has no capability that would pass over the mode.
    fs::set_permissions(dir, PermissionsExt::from_mode(0o500)).unwrap();
    pages.until_more("the file cannot be written", UNWRITTEN);
    fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    let mut client = TcpStream::connect(pages.running.target()).unwrap();
    client.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    pages.until_more("a client that is no HTTP", "rxpath_collect_errors_total{source=\"http\"}");
    let mut second = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    second.args(["export", "--netns", rx.name()]);
    let (second, told) = Running::told(second);
    assert!(told.contains("another exporter"), "{told}");
    pages.next_window("a window with a second exporter");
    drop(second);
    let pid = Pid::from_raw(pages.running.child.id() as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    // why: a window is late after three seconds; nothing runs that could be waited for.
    sleep(Duration::from_secs(4));
    kill(pid, Signal::SIGCONT).unwrap();
    pages.until_more("a late window", "rxpath_windows_discarded_total{why=\"late\"}");
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let allow = |descriptors: u64| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--pid={pid}")).arg(format!("--nofile={descriptors}:"));
        assert!(command.status().unwrap().success(), "prlimit to {descriptors}");
    };
    let before = pages.of(UNWRITTEN);
    until("windows end while no descriptor is left", || {
        allow(3);
        // why: some windows long; the page needs a descriptor too, so none of them can be waited for.
        sleep(Duration::from_millis(500));
        allow(limit);
        pages.next_window("a window after that");
        pages.of(UNWRITTEN) > before
    });
}

/// The faults of `docs/reference/export.md` that can be planted below a running exporter, one after the other.
///
/// Not here: what is a fault from the start on (no types, no capability, a budget that is too small), another kernel, a CPU that goes
/// and a kernel without lists of sockets (`tests/rig`). The wall clock has no namespace, and nobody else can detach a program from
/// its tracepoint. 20,000 sockets, full maps and thousands of pods take longer than this test.
#[test]
fn no_counter_falls_over_any_fault_that_one_machine_can_have() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rxpath.prom");
    let options = ["--budget", "100%", "--irq-entry", "5us", "--textfile", file.to_str().unwrap()];
    let mut pages = Pages::new(&rx, &options);
    pages.next_window("a first window");
    plant_around(&mut pages, &bed, (&tx, &rx));
    plant_inside(&mut pages, &rx, dir.path());
    // Counters of another process begin at 0, and its start says so.
    let started = "rxpath_agent_start_time_seconds";
    let before = pages.running.value(started);
    drop(pages);
    let mut pages = Pages::new(&rx, &options);
    pages.next_window("a window of another process");
    assert_ne!(pages.running.value(started), before);
    drop((tx, rx));
    pages.next_window("a window in a namespace without a name");
}
