//! `serve udp` and `load udp` as programs: results, refusals, signals, orders.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Said, rxpath, said};
use crate::steered::Steered;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// A steered receiver on loopback with its address.
fn receiver(extra: &[&str]) -> (Steered, String) {
    let mut serve = Steered::start(&[&["serve", "udp", "127.0.0.1:0"], extra].concat());
    let addr = serve.next("settings")["addr"].as_str().unwrap().to_owned();
    serve.next("ready");
    (serve, addr)
}

#[test]
fn orders_run_a_whole_trial() {
    let (mut serve, addr) = receiver(&["--interval", "20ms"]);
    let count = ["--count", "3000", "--rate", "30k"];
    let mut load = Steered::start(&[&["load", "udp", &addr], &count[..]].concat());
    let settings = load.next("settings");
    assert_eq!(settings["schema"], "rxpath/load-udp-line/1.0");
    assert_eq!(settings["size_bytes"], 32);
    let ready = load.next("ready");
    assert_eq!(ready["tids"].as_array().unwrap().len(), 1);
    load.order("start 1");
    // By the time since the boot.
    let started = load.next("started");
    let [t_ns, late_ns] = ["t_ns", "late_ns"].map(|key| started[key].as_u64().unwrap());
    assert_eq!(late_ns, t_ns - 1);
    let sent = load.next("result");
    assert_eq!(sent["sent_packets"], 3000);
    assert!(serve.next("interval")["t_ns"].as_u64().unwrap() > 0);
    serve.order("stop");
    let got = serve.next("result");
    let number = |key: &str| got[key].as_u64().unwrap();
    assert_eq!(number("delivered_packets") + number("socket_drops_packets"), 3000);
    assert!(got["cpu_system_s"].is_number() && got["sockets"][0]["rcvbuf_bytes"].is_number());
    for mut workload in [serve, load] {
        workload.order("close");
        assert_eq!(workload.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_start_in_time_is_at_its_instant_or_later_by_what_it_says() {
    let (serve, addr) = receiver(&[]);
    let mut load = Steered::start(&["load", "udp", &addr, "--count", "10", "--rate", "10k"]);
    load.next("ready");
    let at_ns = rxpath_host::read::clock::monotonic_ns() + 200_000_000;
    load.order(&format!("start {at_ns}"));
    let started = load.next("started");
    let [t_ns, late_ns] = ["t_ns", "late_ns"].map(|key| started[key].as_u64().unwrap());
    assert_eq!((t_ns >= at_ns, t_ns - at_ns), (true, late_ns));
    load.stop();
    serve.stop();
}

/// Numbers of the lines of counters before a start, within 3 ms before to 10 ms after it, and later.
fn lines_around_a_start(addr: &str) -> [usize; 3] {
    let mut load = Steered::start(&["load", "udp", addr, "--rate", "1k", "--interval", "1ms"]);
    load.next("ready");
    let at_ns = rxpath_host::read::clock::monotonic_ns() + 100_000_000;
    load.order(&format!("start {at_ns}"));
    let mut counts = [0; 3];
    while counts[2] == 0 {
        let t_ns = load.next("interval")["t_ns"].as_u64().unwrap();
        let is_before = t_ns < at_ns - 3_000_000;
        let is_around = !is_before && t_ns < at_ns + 10_000_000;
        counts[if is_before { 0 } else { 2 - usize::from(is_around) }] += 1;
    }
    load.stop();
    counts
}

#[test]
fn no_line_of_counters_disturbs_a_start() {
    let (serve, addr) = receiver(&[]);
    // A busy machine may wake the program late.
    let all: Vec<[usize; 3]> = (0..20).map(|_| lines_around_a_start(&addr)).collect();
    assert!(all.iter().any(|counts| counts[0] > 0 && counts[1] == 0), "{all:?}");
    serve.stop();
}

#[test]
fn end_of_input_ends_the_workload() {
    let (serve, _) = receiver(&[]);
    let Steered { mut child, orders, lines } = serve;
    drop(orders);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(lines);
}

#[test]
fn a_line_that_is_no_order_is_refused() {
    let (mut serve, _) = receiver(&[]);
    serve.order("begin");
    let ended = Said::from(serve.child.wait_with_output().unwrap());
    assert!(ended.err.starts_with("rxpath: `begin` is not a command"), "{ended:?}");
}

#[test]
fn signals_end_with_the_summary_so_far() {
    use nix::sys::signal::Signal::{SIGINT, SIGTERM};
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
        let (mut serve, _) = receiver(&[]);
        serve.signal(signal);
        assert_eq!(serve.next("result")["delivered_packets"], 0);
        assert_eq!(serve.child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn json_is_one_object_with_settings_first() {
    let (_serve, addr) = receiver(&[]);
    let value = rxpath(&["load", "udp", &addr, "--count", "10", "--json"]).ends(0).json();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["schema", "settings", "result", "warnings"]);
    let result = &value["result"];
    for key in ["target_packets", "offered_packets", "sent_packets"] {
        assert_eq!(result[key], 10, "{key}");
    }
    for key in ["sent_pps", "duration_s", "cpu_user_s", "cpu_system_s", "blocked_s"] {
        assert!(result[key].is_number(), "{key}");
    }
    assert!(result["threads"][0]["tid"].is_number() && result["limit"]["evidence"].is_string());
}

#[test]
fn text_says_who_was_the_limit_and_intervals_are_json_lines() {
    let (_serve, addr) = receiver(&[]);
    let output = rxpath(&["load", "udp", &addr, "--count", "10"]);
    assert!(
        output.out.starts_with("load udp 127.0.0.1:") && output.out.contains("limit"),
        "{output:?}"
    );
    // A second: whoever prints the intervals may have no CPU for a third of it.
    let args =
        ["load", "udp", &addr, "--count", "100", "--rate", "100", "--interval", "50ms", "--json"];
    let lines = rxpath(&args).out;
    let types: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().into())
        .collect();
    assert_eq!((types[0].as_str(), types[1].as_str()), ("settings", "ready"));
    assert!(types.iter().any(|kind| kind == "interval"), "{types:?}");
    assert_eq!(types.last().unwrap(), "result");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let (_serve, addr) = receiver(&[]);
    let mut child = Command::new(RXPATH)
        .args(["load", "udp", &addr, "--rate", "100", "--interval", "20ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ended = Said::from(child.wait_with_output().unwrap()).ends(0);
    assert!(ended.err.is_empty(), "{ended:?}");
}

#[test]
fn an_idle_receiver_ends_by_itself() {
    let value =
        rxpath(&["serve", "udp", "127.0.0.1:0", "--idle-exit", "50ms", "--json"]).ends(0).json();
    assert_eq!(value["schema"], "rxpath/serve-udp/1.0");
    assert_eq!(value["result"]["delivered_packets"], 0);
    assert_eq!(value["result"]["limit"]["evidence"], "nothing came");
}

#[test]
fn a_duration_counts_from_the_first_datagram() {
    let mut serve = Steered::start(&["serve", "udp", "127.0.0.1:0", "--duration", "100ms"]);
    let addr = serve.next("settings")["addr"].as_str().unwrap().to_owned();
    serve.next("ready");
    assert_eq!(rxpath(&["load", "udp", &addr, "--rate", "1k", "--duration", "2s"]).code, Some(0));
    let got = serve.next("result")["delivered_packets"].as_u64().unwrap();
    assert!(got > 0 && got < 2000, "{got}");
}

#[test]
fn a_duration_ends_also_without_a_datagram_unless_it_is_waited_for() {
    for words in [["udp", "200ms"], ["tcp", "200ms"], ["http", "0.2"]] {
        rxpath(&["serve", words[0], "127.0.0.1:0", "-d", words[1], "--json"]).ends(0);
    }
    // A wait of its own outlives the time: what ends it is the silence.
    let words = ["serve", "udp", "127.0.0.1:0", "-d", "1ms", "--wait", "--idle-exit", "300ms"];
    let begun = std::time::Instant::now();
    assert_eq!(rxpath(&words).code, Some(0));
    assert!(begun.elapsed() >= std::time::Duration::from_millis(300));
}

#[test]
fn names_zones_and_units_are_taken() {
    let serve = ["serve", "udp", "localhost:0", "--busy-poll", "0us", "--idle-exit", "1ms"];
    assert_eq!(rxpath(&serve).code, Some(0));
    let serve = ["serve", "http", "[::1%lo]:0", "--epoll-timeout", "10ms", "--idle-exit", "1ms"];
    assert_eq!(rxpath(&serve).code, Some(0));
    let (_serve, addr) = receiver(&[]);
    let to = addr.replace("127.0.0.1", "localhost");
    let value = rxpath(&["load", "udp", &to, "--flood", "-d", "0.05", "--json"]).json();
    assert_eq!(value["settings"]["duration_s"], 0.05, "{value}");
    // A sender without a bound of its own ends like other tools' do.
    let mut load = Steered::start(&["load", "udp", &addr]);
    assert!(load.next("settings")["duration_s"].is_null(), "a parent ends it");
    load.stop();
}

#[test]
fn the_rate_behind_the_warm_up_ends_with_the_last_datagram() {
    const IDLE_S: u64 = 4;
    let idle = format!("{IDLE_S}s");
    let (mut serve, addr) = receiver(&["--warmup", "50ms", "--idle-exit", &idle]);
    rxpath(&["load", "udp", &addr, "--rate", "1k", "--count", "1500"]).ends(0);
    let result = serve.next("result");
    // The seconds without a datagram, after which it ended, are no part of the rate.
    let (rate, got) = (&result["delivered_pps"], &result["delivered_packets"]);
    let most_with_them = got.as_f64().unwrap() / IDLE_S as f64;
    assert!(rate.as_f64().unwrap() > most_with_them, "{rate}/s of {got}");
}

#[test]
fn without_the_privilege_no_buffer_is_forced_and_an_odd_size_is_not_capped() {
    use crate::forbidden::{Capability, without};
    let run = |args: &[&str]| -> Value {
        let mut command = Command::new(RXPATH);
        said(without(Capability::NetAdmin, command.args(args))).json()
    };
    let (_serve, addr) = receiver(&[]);
    for (value, side) in [
        (
            run(&[
                "serve",
                "udp",
                "127.0.0.1:0",
                "--rcvbuf",
                "8193",
                "--idle-exit",
                "1ms",
                "--json",
            ]),
            "rcvbuf",
        ),
        (run(&["load", "udp", &addr, "--sndbuf", "8193", "--count", "1", "--json"]), "sndbuf"),
    ] {
        assert_eq!(value["settings"][format!("{side}_bytes")], 8192, "{value}");
        assert_eq!(value["settings"][format!("{side}_forced")], false, "{value}");
        assert_eq!(value["warnings"].as_array().unwrap().len(), 0, "{value}");
    }
}

#[test]
fn bad_input_has_one_clear_line_a_hint_and_exit_2() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let cases: [(&[&str], &str); 20] = [
        (&["load", "udp", "127.0.0.1:9", "--sise", "3"], "unexpected argument '--sise'"),
        (&["load", "tdp", "127.0.0.1:9"], "unrecognized subcommand 'tdp'"),
        (&["load", "udp", "127.0.0.1", "--flood"], "the port is missing: 127.0.0.1:4321"),
        (&["load", "udp", "127.0.0.1:70000", "--flood"], "`70000` is no port"),
        (&["serve", "udp", "::1:4321"], "[::1]:4321"),
        (&["load", "udp", "127.0.0.1:9"], "use --rate N, or --flood"),
        (&["load", "udp", "127.0.0.1:9", "-d", "1s", "-t", "2"], "use --rate N, or --flood"),
        (&["load", "udp", "127.0.0.1:9", "--rate", "1k", "--flood"], "cannot be used with"),
        (&["load", "udp", "127.0.0.1:9", "--flood", "--size", "70000"], "65507"),
        (&["load", "udp", "127.0.0.1:9", "--duration", "10x"], "unit `x` is not one of"),
        (&["load", "udp", "127.0.0.1:9", "--duration", "0"], "the time must be above 0"),
        (&["load", "udp", "127.0.0.1:9", "--rate", "0"], "--rate 0"),
        (&["load", "udp", "127.0.0.1:9", "--flood", "--batch", "2000"], "1 to 1024"),
        (
            &["load", "udp", "127.0.0.1:9", "--flood", "--cpu", "0", "--threads", "2"],
            "differs from the 1 entries",
        ),
        (&["load", "udp", "127.0.0.1:9", "--flood", "--cpu", "9999"], "not online"),
        (&["serve", "udp", "127.0.0.1:0", "--cpu", "0-99999999"], "no kernel has that many"),
        (&["serve", "udp", "9.9.9.9:0"], "bind 9.9.9.9:0"),
        (&["serve", "udp", &port], &port),
        (&["serve", "udp", "127.0.0.1:0", "--steer", "cpu"], "one socket"),
        (&["serve", "udp", "127.0.0.1:0", "--sleep", "1ms"], "--every"),
    ];
    for (args, says) in cases {
        let output = rxpath(args).ends(2);
        assert!(
            output.err.starts_with("rxpath: ") && output.err.lines().next().unwrap().contains(says),
            "{args:?}: {output:?}"
        );
        assert!(output.out.is_empty());
    }
}

#[test]
fn a_size_over_the_mtu_says_that_it_is_fragmented() {
    // Loopback's MTU is larger than any datagram: the question is put to the refusal of GSO instead.
    let words = ["load", "udp", "127.0.0.1:9", "--flood", "--gso", "2", "--size", "40000"];
    rxpath(&words).ends(2).warns("80000 bytes per send").warns("hint: use --gso 1");
}

#[test]
fn colour_is_off_in_a_pipe_and_on_by_order() {
    let (_serve, addr) = receiver(&[]);
    let run = |when: &str| {
        let args = ["load", "udp", &addr, "--count", "1", "--color", when];
        let output = rxpath(&args);
        output.out + &output.err
    };
    assert!(!run("auto").contains('\x1b'));
}
