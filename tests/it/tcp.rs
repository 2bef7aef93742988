//! `serve tcp` and `load tcp` as programs: results; faults and refusals have files of their own.

mod faults;
mod refusals;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal::{SIGINT, SIGKILL};
use serde_json::Value;

use crate::program::{Said, said};
use crate::steered::Steered;

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");

/// A steered server on loopback with its address.
fn server(extra: &[&str]) -> (Steered, String) {
    let mut serve = Steered::start(&[&["serve", "tcp", "127.0.0.1:0"], extra].concat());
    let addr = serve.next("settings")["addr"].as_str().unwrap().to_owned();
    serve.next("ready");
    (serve, addr)
}

fn load(args: &[&str]) -> Said {
    said(Command::new(RXPATH).args(["load", "tcp"]).args(args))
}

/// The whole answer of a run that ended with this status.
fn answer(args: &[&str], code: i32) -> Value {
    load(&[args, &["--json"]].concat()).ends(code).json()
}

/// One clear line and a hint, exit 2.
fn assert_refused(output: &Said, says: &[&str]) {
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.err.starts_with("rxpath: ") && output.out.is_empty(), "{output:?}");
    for word in says {
        assert!(output.err.contains(word), "`{word}` is not in: {output:?}");
    }
}

#[test]
fn a_stream_is_delivered_whole_both_ways_and_checked() {
    let (serve, addr) = server(&["--threads", "2"]);
    for (direction, to_server, to_client) in
        [("send", true, false), ("receive", false, true), ("both", true, true)]
    {
        let args =
            ["stream", &addr, "--direction", direction, "-d", "800ms", "--verify", "-c", "3"];
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
        for send in ["copy", "zerocopy"] {
            let args = ["stream", &addr, "--send", send, "-d", "800ms", "--verify"];
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
        let args = [&[kind, &addr, "-d", "800ms", "-c", connections], &sizes[..]].concat();
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
    assert_eq!(result["target_tps"], 500.0);
    let quantile = |key: &str, q: &str| result[key][q].as_f64().unwrap();
    // One transaction in 20 meets a stall itself, two in five were due in one.
    assert!(quantile("response_time_us", "p90") > 15_000.0, "{result}");
    assert!(quantile("response_time_us", "p90") > quantile("service_time_us", "p90"));
    serve.stop();
}

#[test]
fn what_a_schedule_could_not_send_is_counted_and_told() {
    // 20 ms of work a transaction: a connection completes 50/s of the 1000/s. A calibration of the work that others disturbed
    // makes it shorter, by half at most.
    let (serve, addr) = server(&["--work", "20ms"]);
    for (kind, connections) in [("rr", "1"), ("rr", "2"), ("crr", "1"), ("crr", "2")] {
        let args = [kind, &addr, "--rate", "1k", "-d", "500ms", "-c", connections];
        let value = answer(&args, 0);
        let result = &value["result"];
        let total = |what: &str| result[format!("{what}_transactions_total")].as_u64().unwrap();
        let done = result["transactions_total"].as_u64().unwrap();
        assert_eq!(total("target"), 500, "{kind}: {result}");
        assert!(done <= 100 && total("unsent") >= 390, "{kind}: {result}");
        assert_eq!(done + total("unsent") + total("in_flight") + total("lost"), 500, "{result}");
        let warnings = value["warnings"].as_array().unwrap();
        let told = warnings.iter().find(|warning| warning["code"] == "schedule-not-kept").unwrap();
        let text = told["text"].as_str().unwrap();
        assert!(text.contains(&format!("{} were due but never sent", total("unsent"))), "{text}");
    }
    serve.stop();
}

#[test]
fn a_server_works_before_it_replies() {
    let (serve, addr) = server(&["--work", "10ms"]);
    for (kind, connections) in [("rr", "1"), ("rr", "2"), ("crr", "1")] {
        // For longer than a busy machine keeps the client from its CPU: without a transaction there is no time.
        let args = [kind, &addr, "--rate", "20", "-d", "1500ms", "-c", connections];
        let result = answer(&args, 0)["result"].clone();
        let fastest = result["service_time_us"]["p50"].as_f64().unwrap();
        // Half of it: a calibration of the work that others disturbed makes it shorter. Without work it is 0.05 ms.
        assert!(fastest >= 5_000.0, "{kind} over {connections}: {result}");
    }
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
    assert!(client.next("result")["service_time_us"].is_object());
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

/// A reader with a mark sleeps through what is below it, and still gets every byte.
#[test]
fn below_the_low_water_mark_a_stream_waits_and_nothing_is_lost() {
    let (mut serve, addr) = server(&["--low-water", "300KiB", "--interval", "20ms"]);
    // 2 Mb/s for 0.8 s: 200 kB, which the mark keeps in the socket until the client ends its direction.
    let args = ["stream", &addr, "-d", "800ms", "--bitrate", "2M", "--buffer", "8KiB"];
    let result = answer(&args, 0)["result"].take();
    // Some buffers at least: a client that had no CPU at the end sent no more.
    assert!(result["sent_bytes"].as_u64().unwrap() > 40_000, "{result}");
    assert_eq!(result["sent_bytes"], result["delivered_bytes"]);
    let whole = result["delivered_bytes"].as_u64().unwrap();
    let steps = RefCell::new(BTreeSet::new());
    serve.until(|line| {
        let read = line["delivered_bytes"].as_u64().unwrap();
        steps.borrow_mut().insert(read);
        read == whole
    });
    let mut steps = steps.into_inner();
    steps.remove(&0);
    // What comes with the preamble is read before the mark is set, and a line may fall between the two reads of one
    // wake-up; without a mark some twenty-five buffers would be read one by one.
    assert!(steps.len() <= 3, "it was read in pieces: {steps:?}");
}

#[test]
fn a_low_water_mark_that_the_kernel_cuts_is_said() {
    let args = ["--low-water", "1MiB", "--rcvbuf", "64KiB"];
    let mut serve = Steered::start(&[&["serve", "tcp", "127.0.0.1:0"], &args[..]].concat());
    let taken = serve.next("settings")["low_water_bytes"].as_u64().unwrap();
    assert!((1..1 << 20).contains(&taken), "{taken}");
    let warning = serve.warning("low-water-cut");
    assert!(warning["text"].as_str().unwrap().contains(&taken.to_string()), "{warning}");
}
