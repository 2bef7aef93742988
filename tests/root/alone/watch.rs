//! `rxpath watch` with its probes, on traffic of a lab: what arrives and what is lost.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rxpath_bpf::drops::Drops;
use rxpath_bpf::filter::Filter;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::upper::UpperKind;
use serde_json::Value;

use crate::alone::arrived::send_all;
use crate::bed::{Bed, RX_IP, TX_IP, send};
use crate::raw_bpf;
use crate::skip::skip;

/// Watches inside a namespace; the first line is read.
pub fn watch(rx: &Namespace) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new("ip")
        .args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath")])
        .args(["watch", "--json", "--interval", "200ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let head = next(&mut lines);
    assert_eq!(head["probes"], "counters and BPF", "{head}");
    (child, lines)
}

pub fn next(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    assert!(lines.read_line(&mut line).unwrap() > 0, "it ended");
    serde_json::from_str(&line).unwrap()
}

#[test]
fn losses_show_at_their_stage_with_reason_and_socket() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4800)).unwrap()).unwrap();
    let (mut child, mut lines) = watch(&rx);
    send(&tx, 4800, 20_000);
    // Of so many drops at once the tracepoint samples some; the socket counts all.
    let frame = loop {
        let frame = next(&mut lines);
        let dropped = frame["drops"].as_array().unwrap().iter().find(|row| row["port"] == 4800);
        if dropped.is_some_and(|row| row["packets_total"].as_u64() > Some(0)) {
            break frame;
        }
        assert!(frame["number"].as_u64() < Some(200), "{frame}");
        // Drops are counted by turns where others drop much: the first burst may be between two.
        send(&tx, 4800, 1_000);
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let row = frame["drops"].as_array().unwrap().iter().find(|row| row["port"] == 4800).unwrap();
    assert_eq!(row["reason"], "SOCKET_RCVBUFF", "{row}");
    assert_eq!(row["device"], "veth");
    let socket = frame["sockets"]
        .as_array()
        .unwrap()
        .iter()
        .find(|socket| socket["local"].as_str().unwrap().ends_with(":4800"));
    let socket = socket.unwrap_or_else(|| panic!("{frame}"));
    assert!(socket["drops_total"].as_u64() > Some(0), "{socket}");
    assert!(socket["queued_max"].as_u64() > Some(100_000), "{socket}");
    let me = format!("({})", std::process::id());
    assert!(socket["processes"].to_string().contains(&me), "{socket}");
}

/// Where drops are few they are all counted, whatever else comes.
#[test]
fn few_drops_are_all_counted_and_the_socket_and_the_tracepoint_agree() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4804)).unwrap()).unwrap();
    // Fills the socket before anybody watches.
    send_all(&tx, &rx, 4804, 5_000);
    let (mut child, mut lines) = watch(&rx);
    // Others on this machine may drop so much that drops are sampled for a while: then it is said.
    let mut was_sampled = false;
    let mut counted = || {
        let frame = next(&mut lines);
        assert!(frame["number"].as_u64() < Some(200), "{frame}");
        was_sampled |= frame["sampled"].to_string().contains("drops");
        let row = frame["drops"].as_array().unwrap().iter().find(|row| row["port"] == 4804);
        let total = row.map_or(0, |row| row["packets_total"].as_u64().unwrap());
        (total, was_sampled)
    };
    counted();
    for _ in 0..20 {
        send(&tx, 4804, 10);
        counted();
    }
    // Frames wait in the pipe while this thread has no CPU: the next ones may be older than the last drop.
    while matches!(counted(), (0..200, false)) {}
    let (total, was_sampled) = counted();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(total == 200 || was_sampled, "{total}");
}

pub fn stage<'a>(frame: &'a Value, name: &str) -> &'a Value {
    let stages = frame["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["stage"] == name).unwrap()
}

/// The listener's packets are consumed like those that it takes: only its counter tells.
#[test]
fn connections_that_a_full_listener_refuses_are_lost_at_the_socket() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    rx.set_sysctl("net.core.somaxconn", "1").unwrap();
    let _listener = rx.run(|_| TcpListener::bind((RX_IP, 4801)).unwrap()).unwrap();
    let (mut child, mut lines) = watch(&rx);
    let knocking = tx.run(|_| {
        let to = SocketAddr::from((RX_IP, 4801));
        let knock = move || TcpStream::connect_timeout(&to, Duration::from_millis(500)).ok();
        let all: Vec<_> = (0..40).map(|_| std::thread::spawn(knock)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    drop(knocking.unwrap());
    let mut losing = None;
    let row = loop {
        let frame = next(&mut lines);
        let lost = stage(&frame, "socket")["drops_pps"]["value"].as_f64();
        if lost > Some(0.0) {
            losing = Some(frame.clone());
        }
        let drops = frame["drops"].as_array().unwrap();
        let row = drops.iter().find(|row| row["place"] == "TcpExt.ListenDrops");
        if let (Some(row), Some(_)) = (row, &losing) {
            break row.clone();
        }
        assert!(frame["number"].as_u64() < Some(200), "{frame}");
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(row["packets_total"].as_u64() > Some(0), "{row}");
    assert_eq!((&row["reason"], &row["transport"]), (&"listen queue full".into(), &"tcp".into()));
    let losing = losing.unwrap();
    let note = stage(&losing, "socket")["note"].as_str().unwrap();
    assert!(note.starts_with("listen queue full"), "{note}");
}

#[test]
fn a_bridge_does_not_double_what_its_port_received() {
    let Some(bed) = Bed::with_bpf() else { return };
    let mac = [2, 0, 0, 0, 0, 2];
    let tx = Namespace::create(&bed.owner, "tx").unwrap();
    let rx = Namespace::create(&bed.owner, "rx").unwrap();
    tx.disable_ipv6().unwrap();
    rx.disable_ipv6().unwrap();
    tx.veth_to("veth", &rx, "veth", 1).unwrap();
    rx.upper(UpperKind::Bridge, ("br", "veth"), mac).unwrap();
    rx.add_address("br", RX_IP.into(), 24).unwrap();
    tx.add_address("veth", TX_IP.into(), 24).unwrap();
    for (ns, dev) in [(&rx, "br"), (&rx, "veth"), (&tx, "veth")] {
        ns.set_up(dev, true).unwrap();
    }
    tx.add_neighbour("veth", RX_IP.into(), mac).unwrap();
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4802)).unwrap()).unwrap();
    let (mut child, mut lines) = watch(&rx);
    send(&tx, 4802, 20_000);
    // Two rates of the same packets, each times its window: what both saw in the end.
    let (mut device, mut ip) = (0.0, 0.0);
    // Far from all: each is a rate by its own clock.
    while ip < 15_000.0 || device < 15_000.0 {
        let frame = next(&mut lines);
        let window_s = frame["window_s"].as_f64().unwrap();
        let passed =
            |name: &str| stage(&frame, name)["rate_per_s"]["value"].as_f64().unwrap() * window_s;
        device += passed("nic");
        ip += passed("ip");
        assert!(frame["number"].as_u64() < Some(200), "{frame}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(device < 30_000.0, "{device} at the devices, {ip} at IP");
}

#[test]
fn what_the_probes_cost_is_in_every_look() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4803)).unwrap()).unwrap();
    let (mut child, mut lines) = watch(&rx);
    let first = next(&mut lines)["probe_cost"].clone();
    let number =
        |cost: &Value, of: &str| cost[of].as_f64().unwrap_or_else(|| panic!("{of}: {cost}"));
    for of in ["cpu_ratio", "runs_per_s", "ns_per_run", "measured_s", "map_bytes"] {
        assert!(number(&first, of) > 0.0, "{of} in {first}");
    }
    // Each look has its own, with the packets in it.
    send(&tx, 4803, 2_000);
    let again = next(&mut lines)["probe_cost"].clone();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(number(&again, "cpu_ratio") > 0.0 && again.get("gap").is_none(), "{again}");
    let once = ["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath"), "watch", "--once"];
    let output = Command::new("ip").args(once).args(["--interval", "200ms"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.contains("; probes ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("/s runs of ") && !line.contains("maps 0.0 MiB"), "{line}");
}

/// What is divided by a span must have been counted in it: not while the other probes are loaded, not in a pause.
#[test]
fn drops_are_counted_in_the_span_that_their_rates_are_of() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let netns = rx.run(|_| rxpath_host::read::identity::network_namespace().unwrap()).unwrap();
    let filter = Filter { netns: netns as u32, ..Filter::default() };
    let mut drops = Drops::load(&filter).unwrap();
    drops.attach().unwrap();
    // Nobody has this port.
    send_all(&tx, &rx, 4808, 500);
    assert_eq!((drops.packets().unwrap(), drops.counted()), (0, Duration::ZERO));
    let around = Instant::now();
    drops.begin().unwrap();
    send_all(&tx, &rx, 4808, 300);
    drops.pause().unwrap();
    let counted = drops.counted();
    assert!(!counted.is_zero() && counted <= around.elapsed(), "{counted:?}");
    send_all(&tx, &rx, 4808, 200);
    let rows = drops.read().unwrap();
    let of_port: u64 = rows.iter().filter(|row| row.port == 4808).map(|row| row.packets).sum();
    assert_eq!((of_port, drops.counted()), (300, counted));
}

#[test]
fn a_filter_in_front_of_ip_is_a_loss_of_a_stage_and_of_the_verdict() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    // TC_ACT_SHOT at BPF_TCX_INGRESS.
    let hook = rx.run(|ns| {
        let index = ns.route().unwrap().link("veth").unwrap().index;
        let program = raw_bpf::answering(raw_bpf::SCHED_CLS, 2, "rxp_drops")?;
        raw_bpf::attach(&program, index, [46, 0])
    });
    let _hook = match hook.unwrap() {
        Ok(hook) => hook,
        Err(error) => return skip("bpf_programs", &format!("tcx can't be attached: {error}")),
    };
    let (mut child, mut lines) = watch(&rx);
    let of = |frame: &Value| {
        let stages = frame["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["stage"] == "ip").unwrap().clone()
    };
    let frame = loop {
        send(&tx, 4809, 2_000);
        let frame = next(&mut lines);
        if frame["verdict"]["stage"] == "filter" && of(&frame)["note"] != "" {
            break frame;
        }
        assert!(frame["number"].as_u64() < Some(200), "{frame}");
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let stage = of(&frame);
    let row = frame["drops"].as_array().unwrap().iter().find(|row| row["reason"] == "TC_INGRESS");
    let rate = row.unwrap_or_else(|| panic!("{frame}"))["packets_pps"].as_f64().unwrap();
    let lost = stage["drops_pps"].as_f64().or_else(|| stage["drops_pps"]["value"].as_f64());
    assert!(lost >= Some(rate * 0.999) && rate > 0.0, "{stage} beside {rate}");
    let places = frame["losses"].as_array().unwrap();
    let hook = places.iter().find(|row| row["place"] == "ingress-hook");
    let at_hook = hook.and_then(|row| row["packets_pps"].as_f64());
    assert!(at_hook >= Some(rate * 0.999) && at_hook <= lost.map(|lost| lost * 1.001), "{frame}");
    assert!(stage["note"].as_str().unwrap().contains("TC_INGRESS"), "{stage}");
}
