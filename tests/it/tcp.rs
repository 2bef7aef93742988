//! `serve tcp` and `load tcp` as programs: results, refusals, faults.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal::{SIGINT, SIGKILL};
use serde_json::Value;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// A workload under `--control`.
struct Steered {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Steered {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(RXPATH)
            .args(args)
            .arg("--control")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, lines }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Reads on to the next line of this type.
    fn next(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no line of type {kind}");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["type"] == kind {
                return value;
            }
        }
    }

    /// Reads on to the next warning of this code.
    fn warning(&mut self, code: &str) -> Value {
        loop {
            let warning = self.next("warning");
            if warning["code"] == code {
                return warning;
            }
        }
    }

    /// Reads intervals until one of them fits.
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let interval = self.next("interval");
            if fits(&interval) {
                return interval;
            }
            assert!(Instant::now() < deadline, "last: {interval}");
        }
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Ends it and gives its result.
    fn stop(mut self) -> Value {
        self.order("stop");
        let result = self.next("result");
        self.order("close");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        result
    }
}

/// A steered server on loopback with its address.
fn server(extra: &[&str]) -> (Steered, String) {
    let mut serve = Steered::start(&[&["serve", "tcp", "127.0.0.1:0"], extra].concat());
    let addr = serve.next("settings")["addr"].as_str().unwrap().to_owned();
    serve.next("ready");
    (serve, addr)
}

fn load(args: &[&str]) -> Output {
    Command::new(RXPATH).args(["load", "tcp"]).args(args).output().unwrap()
}

/// The whole answer of a run that ended with this status.
fn answer(args: &[&str], code: i32) -> Value {
    let output = load(&[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One clear line and a hint, exit 2.
fn assert_refused(output: &Output, says: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("rxpath: ") && output.stdout.is_empty(), "{text}");
    for word in says {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[test]
fn a_stream_is_delivered_whole_both_ways_and_checked() {
    let (serve, addr) = server(&["--threads", "2"]);
    for (direction, to_server, to_client) in
        [("send", true, false), ("receive", false, true), ("both", true, true)]
    {
        let args =
            ["stream", &addr, "--direction", direction, "-d", "200ms", "--verify", "-c", "3"];
        let value = answer(&args, 0);
        assert_eq!(value["schema"], "rxpath/load-tcp-stream/1.0");
        let result = &value["result"];
        assert_eq!(result["to_server"].is_object(), to_server, "{direction}");
        assert_eq!(result["to_client"].is_object(), to_client, "{direction}");
        for way in ["to_server", "to_client"] {
            let way = &result[way];
            if way.is_object() {
                assert!(way["sent_bytes"].as_u64().unwrap() > 0, "{direction}");
                assert_eq!(way["sent_bytes"], way["delivered_bytes"], "{direction}");
                assert!(way["delivered_bps"].as_f64().unwrap() > 0.0, "{direction}");
            }
        }
        assert_eq!(result["verified"], true);
        assert_eq!(result["connections"].as_array().unwrap().len(), 3);
        assert!(result["server"]["tcp"]["rtt_us"].is_number());
        assert!(result["tcp"]["cwnd_packets"].is_number());
        assert!(result["limit"]["evidence"].is_string());
    }
    let got = serve.stop();
    assert_eq!(got["mismatches"].as_array().unwrap().len(), 0);
    // Two threads got connections: they are dealt out, three at a time.
    for thread in got["threads"].as_array().unwrap() {
        assert!(thread["delivered_bytes"].as_u64().unwrap() > 0, "{got}");
    }
}

#[test]
fn every_way_of_sending_and_receiving_keeps_the_data() {
    for receive in ["read", "zerocopy"] {
        let (serve, addr) = server(&["--receive", receive]);
        for send in ["copy", "zerocopy", "splice", "sendfile"] {
            let args = ["stream", &addr, "--send", send, "-d", "100ms", "--verify"];
            let value = answer(&args, 0);
            let way = &value["result"]["to_server"];
            assert!(way["sent_bytes"].as_u64().unwrap() > 0, "{send}");
            assert_eq!(way["sent_bytes"], way["delivered_bytes"], "{send} {receive}");
            if send == "zerocopy" {
                let zerocopy = &value["result"]["zerocopy"];
                assert!(zerocopy["completed_calls_count"].as_u64().unwrap() > 0);
                assert_eq!(zerocopy["copied_ratio"], 1.0, "loopback copies");
            }
        }
        let got = serve.stop();
        assert_eq!(got["mapped_ratio"].is_number(), receive == "zerocopy");
        if receive == "zerocopy" {
            // What was sent with MSG_ZEROCOPY arrives in whole pages over loopback.
            assert!(got["mapped_bytes"].as_u64().unwrap() > 0, "{got}");
        }
    }
}

#[test]
fn discarded_bytes_are_counted_but_cannot_be_checked() {
    let (serve, addr) = server(&["--receive", "trunc"]);
    let value = answer(&["stream", &addr, "-d", "100ms"], 0);
    let way = &value["result"]["to_server"];
    assert_eq!(way["sent_bytes"], way["delivered_bytes"]);
    assert_refused(&load(&["stream", &addr, "--verify"]), &["--receive trunc", "hint: "]);
    serve.stop();
}

#[test]
fn transactions_have_times_and_are_counted_by_both_sides() {
    let (serve, addr) = server(&[]);
    for (kind, connections, schema) in [
        ("rr", "1", "rxpath/load-tcp-rr/1.0"),
        ("rr", "20", "rxpath/load-tcp-rr/1.0"),
        ("crr", "1", "rxpath/load-tcp-crr/1.0"),
        ("crr", "5", "rxpath/load-tcp-crr/1.0"),
    ] {
        let sizes = ["--request", "300", "--response", "70000", "--verify"];
        let args = [&[kind, &addr, "-d", "200ms", "-c", connections], &sizes[..]].concat();
        let value = answer(&args, 0);
        assert_eq!(value["schema"], schema);
        let result = &value["result"];
        let done = result["transactions_total"].as_u64().unwrap();
        assert!(done > 3, "{kind}: {result}");
        assert_eq!(result["service_time_us"]["samples_count"], done);
        assert!(result["response_time_us"].is_null() && result["achieved_tps"].is_number());
        assert_eq!(result["connect_time_us"].is_object(), kind == "crr");
        assert_eq!(result["delivered_bytes"], done * 70_000);
        // What was under way at the end is counted by the server alone.
        let there = result["server"]["transactions_total"].as_u64().unwrap();
        assert!(there >= done && there <= done + 20, "{kind}: {there} {done}");
        assert_eq!(result["errors_total"].as_object().unwrap().len(), 0, "{result}");
    }
    let got = serve.stop();
    assert!(got["transactions_total"].as_u64().unwrap() > 12);
}

#[test]
fn a_schedule_is_kept_and_response_times_count_from_it() {
    // The server stalls 40 ms in each 100 ms: what was due meanwhile waits for it.
    let (serve, addr) = server(&["--sleep", "40ms", "--every", "100ms"]);
    let args = ["rr", &addr, "--rate", "500", "-d", "1s"];
    let result = answer(&args, 0)["result"].clone();
    let done = result["transactions_total"].as_u64().unwrap();
    assert!(done > 0 && done <= 500, "{done}");
    assert_eq!(result["asked_tps"], 500.0);
    let quantile = |key: &str, q: &str| result[key][q].as_f64().unwrap();
    // One transaction in 20 meets a stall itself, two in five were due in one.
    assert!(quantile("response_time_us", "p90") > 15_000.0, "{result}");
    assert!(quantile("response_time_us", "p90") > quantile("service_time_us", "p90"));
    serve.stop();
}

#[test]
fn the_bitrate_is_not_exceeded_and_is_shared_by_all_connections() {
    let (serve, addr) = server(&[]);
    let args = ["stream", &addr, "--bitrate", "80M", "--buffer", "10000", "-d", "1s", "-c", "2"];
    let result = answer(&args, 0)["result"].clone();
    let sent = result["sent_bytes"].as_u64().unwrap();
    assert!(sent > 0 && sent <= 10_000_000, "{sent}");
    let each = |index: usize| result["connections"][index]["sent_bytes"].as_u64().unwrap();
    assert!(each(0).abs_diff(each(1)) < 1_000_000, "{} {}", each(0), each(1));
    serve.stop();
}

#[test]
fn intervals_carry_tcp_info_and_the_control_protocol_works() {
    let (mut serve, addr) = server(&["--interval", "20ms"]);
    let mut client = Steered::start(&["load", "tcp", "rr", &addr, "--interval", "20ms"]);
    assert_eq!(client.next("settings")["request_bytes"], 1);
    assert_eq!(client.next("ready")["tids"].as_array().unwrap().len(), 1);
    client.order("start 1");
    let moving = |interval: &Value| {
        interval["transactions_total"].as_u64().unwrap() > 10
            && interval["tcp"]["rtt_us"].is_number()
    };
    client.until(moving);
    serve.until(moving);
    client.order("stop");
    let histogram = client.next("histogram");
    assert_eq!(histogram["name"], "service_time");
    client.next("result");
    client.order("close");
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    serve.stop();
}

#[test]
fn a_slow_reader_is_named_as_the_limit() {
    let (serve, addr) = server(&["--work", "5ms", "--rcvbuf", "64KiB", "--buffer", "16KiB"]);
    let result = answer(&["stream", &addr, "-d", "500ms"], 0)["result"].clone();
    assert_eq!(result["limit"]["who"], "receiver", "{}", result["limit"]);
    let evidence = result["limit"]["evidence"].as_str().unwrap();
    assert!(evidence.contains("tcpi_rwnd_limited"), "{evidence}");
    serve.stop();
}

#[test]
fn wrong_data_are_found_with_their_offset() {
    use rxpath_load::tcp::pattern::Pattern;
    use rxpath_load::tcp::preamble::{Kind, Preamble};
    let (mut serve, addr) = server(&[]);
    let order = Preamble {
        kind: Kind::Stream,
        client_sends: true,
        verify: true,
        run: 7,
        ..Preamble::default()
    };
    let mut data = Pattern::new(100_000).unwrap().at(0, 100_000).to_vec();
    data[77_777] ^= 1;
    let mut client = TcpStream::connect(&addr).unwrap();
    client.write_all(&order.to_bytes()).unwrap();
    client.write_all(&data).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "the server has read all");
    serve.order("stop");
    let warning = serve.warning("payload-mismatch");
    assert!(warning["text"].as_str().unwrap().contains("offset 77777"), "{warning}");
    assert_eq!(serve.next("result")["mismatches"][0]["offset_bytes"], 77_777);
    serve.order("close");
    assert_eq!(serve.child.wait().unwrap().code(), Some(1), "a negative verdict");
}

#[test]
fn a_killed_server_ends_the_run_with_what_was_measured() {
    for args in [&["stream"][..], &["stream", "-c", "3"], &["rr"], &["rr", "-c", "3"], &["crr"]] {
        let (serve, addr) = server(&["--interval", "10ms"]);
        let mut client = Steered::start(
            &[&["load", "tcp", args[0], &addr, "--interval", "10ms"], &args[1..]].concat(),
        );
        client.next("ready");
        client.order("start 1");
        client.until(|interval| {
            interval["sent_bytes"].as_u64().unwrap() > 100_000
                || interval["transactions_total"].as_u64().unwrap() > 100
        });
        serve.signal(SIGKILL);
        let lost = client.warning("peer-lost");
        assert!(lost["text"].as_str().unwrap().contains("the server was lost"), "{lost}");
        let result = client.next("result");
        assert_eq!(result["peer_lost"], true, "{args:?}");
        assert!(result["server"].is_null() && result["duration_s"].as_f64().unwrap() > 0.0);
        client.order("close");
        assert_eq!(client.child.wait().unwrap().code(), Some(5), "{args:?}");
        let mut serve = serve;
        serve.child.wait().unwrap();
    }
}

#[test]
fn a_server_busy_with_one_client_takes_others() {
    let (mut serve, addr) = server(&["--interval", "10ms"]);
    let mut alone = Steered::start(&["load", "tcp", "rr", &addr, "--verify"]);
    alone.next("ready");
    alone.order("start 1");
    serve.until(|interval| interval["transactions_total"].as_u64().unwrap() > 1000);
    for kind in ["rr", "crr", "stream"] {
        let other = answer(&[kind, &addr, "-d", "50ms", "--verify"], 0);
        assert!(other["result"]["sent_bytes"].as_u64().unwrap() > 0, "{kind}");
    }
    let result = alone.stop();
    assert_eq!(result["errors_total"].as_object().unwrap().len(), 0, "{result}");
    assert!(result["transactions_total"].as_u64().unwrap() > 1000);
    serve.stop();
}

#[test]
fn a_killed_client_leaves_the_server_serving() {
    let (mut serve, addr) = server(&["--interval", "10ms"]);
    let mut client = Steered::start(&["load", "tcp", "rr", &addr, "-c", "10"]);
    client.next("ready");
    client.order("start 1");
    serve.until(|interval| interval["transactions_total"].as_u64().unwrap() > 100);
    client.signal(SIGKILL);
    client.child.wait().unwrap();
    serve.until(|interval| interval["connections_count"] == 0);
    let done = answer(&["rr", &addr, "-d", "100ms"], 0);
    assert!(done["result"]["transactions_total"].as_u64().unwrap() > 0);
    serve.stop();
}

#[test]
fn a_half_closed_client_in_mid_request_is_an_error_and_no_more() {
    use rxpath_load::tcp::preamble::{Kind, Preamble};
    let (serve, addr) = server(&[]);
    let order = Preamble {
        kind: Kind::Transactions,
        request_bytes: 100,
        response_bytes: 10,
        ..Preamble::default()
    };
    let mut client = TcpStream::connect(&addr).unwrap();
    client.write_all(&order.to_bytes()).unwrap();
    client.write_all(&[0; 100]).unwrap();
    let mut response = [0; 10];
    client.read_exact(&mut response).unwrap();
    client.write_all(&[0; 50]).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut response).unwrap(), 0);
    let got = serve.stop();
    assert_eq!(got["transactions_total"], 1);
    assert_eq!(got["connection_errors_total"]["EOF"], 1, "{got}");
}

#[test]
fn interrupts_print_the_result_so_far() {
    let (serve, addr) = server(&["--interval", "10ms"]);
    let (mut serve, addr) = (serve, addr);
    let mut client = Steered::start(&["load", "tcp", "stream", &addr]);
    client.next("ready");
    client.order("start 1");
    serve.until(|interval| interval["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    client.signal(SIGINT);
    let result = client.next("result");
    assert!(result["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!(client.child.wait().unwrap().code(), Some(130));
    serve.signal(SIGINT);
    assert!(serve.next("result")["delivered_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!(serve.child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_server_that_is_not_there_or_not_ours_is_said() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = load(&["stream", &nobody]);
    assert_refused(&refused, &["connect", "refused", "hint: nothing listens there"]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = stranger.local_addr().unwrap().to_string();
    for (answer, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "another protocol"),
        (b"", "closed the connection"),
        (b"rxptcp\x09\x00\x00\x00\x00\x00", "version 9 of the preamble"),
        (b"rxptcp\x01\x00\xff\xff\xff\xff", "too many"),
    ] {
        let listener = stranger.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut preamble = [0; 40];
            peer.read_exact(&mut preamble).unwrap();
            peer.write_all(answer).unwrap();
        });
        assert_refused(&load(&["rr", &addr]), &[says, "hint: "]);
        thread.join().unwrap();
    }
}

#[test]
fn clients_that_are_not_ours_are_refused_in_their_own_words() {
    let (mut serve, addr) = server(&[]);
    let ask = |bytes: &[u8]| {
        let mut stranger = TcpStream::connect(&addr).unwrap();
        stranger.write_all(bytes).unwrap();
        let mut text = Vec::new();
        // The rest of what was sent may be answered by a reset behind the text.
        let _ = stranger.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let http = ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(http.starts_with("HTTP/1.0 400 ") && http.contains("rxpath serve tcp"), "{http}");
    assert!(ask(b"SSH-2.0-x\r\n").starts_with("this is `rxpath serve tcp`"));
    assert!(ask(b"rxptcp\x02\x00").contains("version 2 of the preamble"));
    serve.order("stop");
    let warning = serve.warning("refused");
    assert!(warning["text"].as_str().unwrap().contains("2 stranger, 1 version"), "{warning}");
    assert_eq!(serve.next("result")["refused_total"]["stranger"], 2);
    serve.order("close");
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
}

#[test]
fn bad_input_has_one_clear_line_a_hint_and_exit_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let (serve, addr) = server(&[]);
    let cases: [(&[&str], &str); 14] = [
        (&["serve", "tcp", &port], "is taken by another socket"),
        (&["serve", "tcp", "9.9.9.9:0"], "bind 9.9.9.9:0"),
        (&["serve", "tcp", "127.0.0.1:0", "--congestion", "vegan"], "available: "),
        (&["serve", "tcp", "127.0.0.1:0", "--buffer", "0"], "--buffer 0"),
        (&["serve", "tcp", "127.0.0.1:0", "--sleep", "1ms"], "--every"),
        (&["load", "tcp", "stream", &addr, "--congestion", "vegan"], "available: "),
        (&["load", "tcp", "stream", &addr, "--mss", "9"], "88 to 32767"),
        (&["load", "tcp", "stream", &addr, "-c", "1", "-t", "2"], "not one for each"),
        (
            &["load", "tcp", "stream", &addr, "--bitrate", "1M", "--direction", "both"],
            "--pacing-rate",
        ),
        (&["load", "tcp", "rr", &addr, "--rate", "0"], "--rate 0"),
        (&["load", "tcp", "rr", &addr, "--request", "0"], "--request 0"),
        (&["load", "tcp", "rr", &addr, "-c", "100M"], "descriptors"),
        (&["load", "tcp", "rr", "127.0.0.1:0"], "port 0"),
        (&["load", "tcp", "stream", "255.255.255.255:9"], "connect 255.255.255.255:9"),
    ];
    for (args, says) in cases {
        let output = Command::new(RXPATH).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with("rxpath: ") && text.contains(says), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    serve.stop();
}

#[test]
fn more_connections_than_descriptors_keep_the_server_serving() {
    // The hard limit of the server leaves room for a few connections.
    let mut serve = Command::new("sh")
        .args([
            "-c",
            "ulimit -n 40 && exec \"$0\" serve tcp 127.0.0.1:0 --control --interval 20ms",
            RXPATH,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines();
    let settings: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(settings["descriptors_count"], 40);
    let addr = settings["addr"].as_str().unwrap().to_owned();
    let crowd: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(&addr).unwrap()).collect();
    // It has taken as many as it can when the number stands still.
    let (mut before, mut now) = (0, 0);
    while now == 0 || now != before {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if let Some(count) = line["connections_count"].as_u64() {
            (before, now) = (now, count);
        }
    }
    assert!(now < 40, "{now}");
    drop(crowd);
    let done = answer(&["rr", &addr, "-d", "100ms"], 0);
    assert!(done["result"]["transactions_total"].as_u64().unwrap() > 0);
    let mut orders = serve.stdin.take().unwrap();
    writeln!(orders, "stop").unwrap();
    let result = lines
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|line| line["type"] == "result")
        .unwrap();
    assert!(result["accept_errors_total"]["EMFILE"].as_u64().unwrap() > 0, "{result}");
    writeln!(orders, "close").unwrap();
    assert_eq!(serve.wait().unwrap().code(), Some(0));
}
