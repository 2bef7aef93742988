//! What comes and goes below a running exporter: devices and their counters, and the exporter itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::UdpSocket;
use std::process::Command;

use rxpath_bpf::cost::programs_in_kernel;
use rxpath_host::lab::netns::Namespace;

use super::export::Running;
use crate::bed::{Bed, RX_IP, TX_IP, send, until, without_types};

const WINDOWS: &str = "rxpath_window_seconds_total";

/// The counters of a page, those of histograms included.
fn counters(page: &str) -> BTreeMap<String, f64> {
    let is_counter = |series: &str| {
        let name = series.split('{').next().unwrap_or_default();
        ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end))
    };
    let lines = page.lines().filter(|line| line.starts_with("rxpath_"));
    let pairs = lines.filter_map(|line| line.rsplit_once(' '));
    pairs
        .filter(|(series, _)| is_counter(series))
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

/// The pages of an exporter, each compared with the one before.
struct Pages {
    running: Running,
    before: BTreeMap<String, f64>,
}

impl Pages {
    /// Looks at pages until this series is above `least`.
    fn until_above(&mut self, what: &str, series: &str, least: f64) {
        until(what, || {
            let now = counters(&self.running.page());
            for (series, then) in &self.before {
                // A series that is gone went to another one.
                let value = now.get(series).copied().unwrap_or(*then);
                assert!(value >= *then, "{series}: {then} to {value} ({what})");
            }
            let is_above = now.get(series).is_some_and(|value| *value > least);
            self.before = now;
            is_above
        });
    }

    /// Looks until a window is over that was not over at the first look.
    fn next_window(&mut self, what: &str) {
        self.until_above(what, WINDOWS, 0.0);
        let windows = self.of(WINDOWS);
        self.until_above(what, WINDOWS, windows);
    }

    fn of(&self, series: &str) -> f64 {
        self.before.get(series).copied().unwrap_or(0.0)
    }
}

fn ip(of: &Namespace, words: &str) {
    let mut command = Command::new("ip");
    let status = command.args(["-n", of.name()]).args(words.split(' ')).status().unwrap();
    assert!(status.success(), "ip -n {} {words}", of.name());
}

/// A device with the same name and counters from 0 again is another device: its packets count, and nothing twice.
#[test]
fn no_counter_falls_or_jumps_while_devices_go_come_and_change_their_names() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4811)).unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name()]);
    let mut pages = Pages { running: Running::of(command), before: BTreeMap::new() };
    let nic = "rxpath_stage_passed_total{stage=\"nic\",unit=\"packets\"}";
    pages.until_above("a first window", WINDOWS, 0.0);
    let mut sent = 0.0;
    for round in 0..3 {
        let before = pages.of(nic);
        send(&tx, 4811, 5_000);
        sent += 5_000.0;
        pages.until_above("packets of this device are counted", nic, before + 2_500.0);
        ip(&rx, "link set veth down");
        ip(&rx, &format!("link set veth name other{round}"));
        ip(&rx, &format!("link set other{round} up"));
        pages.next_window("a window with another name");
        ip(&rx, &format!("link del other{round}"));
        pages.next_window("a window without a device");
        tx.veth_to("veth", &rx, "veth", 1).unwrap();
        for (ns, address) in [(&tx, TX_IP), (&rx, RX_IP)] {
            ns.add_address("veth", address.into(), 24).unwrap();
            ns.set_up("veth", true).unwrap();
        }
        // A device counts from the window on in which it came.
        pages.next_window("a window with the new device");
    }
    let counted = pages.of(nic);
    // With the neighbours' questions and answers.
    assert!(counted <= 1.1 * sent, "{counted} of {sent} packets");
}

/// More kinds of drops than a frame has rows: each port is one.
#[test]
fn drops_at_two_thousand_ports_are_counted() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name()]);
    let mut pages = Pages { running: Running::of(command), before: BTreeMap::new() };
    let dropped = |pages: &Pages| -> f64 {
        let family = "rxpath_dropped_packets_total{";
        pages.before.iter().filter(|(series, _)| series.starts_with(family)).map(|(_, n)| n).sum()
    };
    pages.next_window("a first window");
    // The probe may count only a part of the time, and not that of one burst; the rows of two windows would have a fifth.
    until("most of them are counted", || {
        let before = dropped(&pages);
        tx.run(|_| {
            let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
            for port in (20_000..22_000).chain(20_000..22_000).chain(20_000..22_000) {
                socket.send_to(&[7; 32], (RX_IP, port)).unwrap();
            }
        })
        .unwrap();
        pages.next_window("a window with drops");
        dropped(&pages) - before > 3_000.0
    });
}

#[test]
fn without_the_kernels_types_counters_go_on_and_the_reason_is_said_once() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let output = without_types(&["export", "--once", "--interval", "200ms", "--check-every", "0s"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!((told.matches("counters only").count(), told.contains("BTF")), (1, true), "{told}");
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("\nrxpath_probe_up 0\n"), "{page}");
    assert!(page.contains("\nrxpath_not_read{what=\"BPF probes\"} 1\n"), "{page}");
    assert!(counters(&page)[WINDOWS] >= 0.2, "{page}");
    assert!(!page.contains("rxpath_cpu_stolen_seconds_total{"), "{page}");
    let needs = "\nrxpath_probe_not_loaded{needs=\"kernel\",what=\"BPF probes\"} 1\n";
    assert!(page.contains(needs), "{page}");
}

#[test]
fn without_a_capability_counters_go_on_and_what_is_needed_is_said_once() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_rxpath"), "export"])
        .args(["--once", "--interval", "200ms", "--check-every", "0s"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(told.matches("counters only").count(), 1, "{told}");
    assert!(told.contains("CAP_BPF") && told.contains("start it again"), "{told}");
    let page = String::from_utf8(output.stdout).unwrap();
    let needs = "\nrxpath_probe_not_loaded{needs=\"privilege\",what=\"BPF probes\"} 1\n";
    assert!(page.contains(needs) && counters(&page)[WINDOWS] >= 0.2, "{page}");
}

#[test]
fn a_killed_exporter_leaves_no_program_in_the_kernel() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let running = Running::start(Command::new(env!("CARGO_BIN_EXE_rxpath")));
    running.goes_on();
    let files = fs::read_dir(format!("/proc/{}/fdinfo", running.child.id())).unwrap().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse::<u32>().ok())
    };
    let own: BTreeSet<u32> = texts.filter_map(id).collect();
    assert!(own.len() > 20, "{own:?}");
    let there = || programs_in_kernel().into_iter().filter(|id| own.contains(id)).count();
    assert_eq!(there(), own.len());
    // Dropping it kills it.
    drop(running);
    until("its programs are gone", || there() == 0);
}
