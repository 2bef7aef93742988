//! `serve http` as a program: what it answers, with each engine, and what bad clients cannot do to it.

mod client;
mod robust;
mod server;

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::Value;

use client::{Client, GET, Reply};
use server::{RXPATH, Server};

use crate::program::rxpath;

/// The request of the published experiment: 44 bytes.
const PUBLISHED: &str = "GET / HTTP/1.1\r\nHost: 192.168.111.222:80\r\n\r\n";

/// The ways to move bytes.
const ENGINES: [&[&str]; 3] =
    [&["--trigger", "edge"], &["--trigger", "level"], &["--engine", "uring"]];

/// A request with these header fields.
fn request(line: &str, fields: &str) -> String {
    format!("{line}\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn the_default_reply_has_151_bytes() {
    assert_eq!(PUBLISHED.len(), 44);
    for engine in ENGINES {
        let server = Server::start(engine);
        assert_eq!(server.settings["reply_bytes"], 151);
        let mut client = server.connect();
        client.send(PUBLISHED);
        assert_eq!(client.reply().bytes, 151, "{engine:?}");
        drop(client);
        let result = server.stop();
        assert_eq!((&result["sent_bytes"], &result["received_bytes"]), (&151.into(), &44.into()));
    }
}

#[test]
fn a_connection_serves_many_requests() {
    for engine in ENGINES {
        let server = Server::start(engine);
        let mut client = server.connect();
        for _ in 0..100 {
            client.send(GET);
            assert_eq!(client.reply(), Reply::ok(151));
        }
        let result = server.stop();
        assert_eq!(result["requests_total"], 100);
        assert_eq!(result["connections"]["accepted_total"], 1);
        assert_eq!(result["read_to_reply_us"]["samples_count"], 100);
        assert!(result["achieved_rps"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn pipelined_requests_are_answered_in_one_write() {
    for engine in ENGINES {
        let server = Server::start(engine);
        let mut client = server.connect();
        client.send(&GET.repeat(100));
        for _ in 0..100 {
            assert_eq!(client.reply(), Reply::ok(151), "{engine:?}");
        }
        let result = server.stop();
        let calls = result["calls_total"].as_u64().unwrap();
        assert!(calls < 50, "{engine:?}: {calls} calls for 100 requests in one piece");
    }
}

#[test]
fn replies_keep_the_order_of_their_requests() {
    for engine in ENGINES {
        let server = Server::start(engine);
        let mut client = server.connect();
        let head = request("HEAD / HTTP/1.1", "");
        let post = request("POST / HTTP/1.1", "Content-Length: 3\r\n") + "abc";
        client.send(&format!("{GET}{head}{post}{head}{GET}"));
        let heads: Vec<bool> =
            (0..5).map(|index| client.reply_to(index == 1 || index == 3).bytes < 151).collect();
        assert_eq!(heads, [false, true, false, true, false], "{engine:?}");
    }
}

#[test]
fn bodies_are_read_whatever_their_framing_and_pieces() {
    let chunked = request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n")
        + "5;a=b\r\nhello\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n";
    let sized = request("POST / HTTP/1.1", "Content-Length: 10\r\n") + "0123456789";
    for engine in ENGINES {
        let server = Server::start(engine);
        let mut client = server.connect();
        for text in [&chunked, &sized] {
            for piece in text.as_bytes().chunks(7) {
                client.send_bytes(piece);
            }
            assert_eq!(client.reply(), Reply::ok(151), "{engine:?}");
        }
        // A megabyte, and the next request behind it.
        client.send(&request("POST / HTTP/1.1", "Content-Length: 1000000\r\n"));
        client.send(&"x".repeat(1_000_000));
        client.send(GET);
        assert_eq!((client.reply(), client.reply()), (Reply::ok(151), Reply::ok(151)));
        assert_eq!(server.stop()["requests_total"], 4);
    }
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send(&request("POST / HTTP/1.1", "Content-Length: 2\r\nExpect: 100-continue\r\n"));
    assert_eq!(client.reply().status, 100);
    client.send("ab");
    assert_eq!(client.reply().status, 200);
    let result = server.stop();
    assert_eq!(
        (&result["replies_total"]["100"], &result["requests_total"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn closing_is_honoured() {
    for engine in ENGINES {
        let server = Server::start(engine);
        for (text, is_head) in [
            (request("GET / HTTP/1.1", "Connection: close\r\n"), false),
            (request("HEAD / HTTP/1.1", "Connection: close\r\n"), true),
            ("GET / HTTP/1.0\r\n\r\n".to_owned(), false),
        ] {
            let mut client = server.connect();
            client.send(&text);
            let reply = client.reply_to(is_head);
            assert!(reply.status == 200 && reply.closes, "{engine:?}: {reply:?}");
            assert!(client.is_at_end(), "{engine:?}: {text}");
        }
        let mut client = server.connect();
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert!(!client.reply().closes);
        client.send(GET);
        assert_eq!(client.reply().status, 200);
        drop(client);
        assert_eq!(server.stop()["connections"]["closed_total"]["asked"], 3, "{engine:?}");
    }
}

#[test]
fn a_body_of_any_size_comes_whole() {
    for engine in ENGINES {
        for body in ["0", "1", "100000", "5MB"] {
            let server = Server::start(&[engine, &["--body", body]].concat());
            let mut client = server.connect();
            let reply = server.settings["reply_bytes"].as_u64().unwrap();
            client.send(&GET.repeat(3));
            for _ in 0..3 {
                assert_eq!(client.reply(), Reply::ok(reply), "{engine:?} {body}");
            }
            assert_eq!(server.stop()["sent_bytes"], 3 * reply);
        }
    }
}

#[test]
fn the_rate_behind_the_warm_up_ends_with_the_last_request() {
    const IDLE_S: u64 = 4;
    let idle = format!("{IDLE_S}s");
    for engine in ENGINES {
        let words = [engine, &["--warmup", "50ms", "--idle-exit", &idle]].concat();
        let mut server = Server::start(&words);
        let mut client = server.connect();
        let (begun, mut later) = (Instant::now(), 0);
        // However long this thread has no CPU, there are requests behind the warm-up.
        while later < 20 {
            client.send(GET);
            assert_eq!(client.reply().status, 200);
            later += u32::from(begun.elapsed() > Duration::from_millis(200));
        }
        drop(client);
        let result = server.next("result");
        // The seconds without a request, after which it ended, are no part of the rate.
        let (rate, got) = (&result["achieved_rps"], &result["requests_total"]);
        let most_with_them = got.as_f64().unwrap() / IDLE_S as f64;
        assert!(rate.as_f64().unwrap() > most_with_them, "{engine:?}: {rate}/s of {got}");
    }
}

#[test]
fn threads_share_a_listener_or_have_one_each() {
    for sockets in ["shared", "reuseport"] {
        for engine in ENGINES {
            let server =
                Server::start(&[engine, &["--threads", "2", "--sockets", sockets]].concat());
            let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
            for client in &mut clients {
                client.send(GET);
                assert_eq!(client.reply().status, 200);
            }
            let result = server.stop();
            let threads = result["threads"].as_array().unwrap();
            let of = |key: &str| threads.iter().map(|t| t[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!((of("requests_total"), of("accepted_total")), (40, 40));
            if sockets == "reuseport" {
                assert!(threads.iter().all(|thread| thread["accepted_total"] != 0), "{threads:?}");
            }
        }
    }
}

#[test]
fn a_thread_that_never_sleeps_says_so() {
    let server = Server::start(&["--epoll-timeout", "0"]);
    let mut client = server.connect();
    client.send(GET);
    client.reply();
    // A tenth of a second of CPU time: a thread that sleeps never gets there.
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.cpu_ticks() < 10 {
        assert!(Instant::now() < deadline, "{} ticks", server.cpu_ticks());
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(2));
    }
    client.send(GET);
    client.reply();
    let result = server.stop();
    let thread = &result["threads"][0];
    assert!(thread["empty_waits_total"].as_u64() > Some(100), "{thread}");
    assert!(
        result["limit"]["evidence"].as_str().unwrap().contains("polling is always busy"),
        "{result}"
    );
}

#[test]
fn work_takes_its_time_and_shows_as_the_limit() {
    let server = Server::start(&["--work", "200us"]);
    let mut client = server.connect();
    let stolen_before_s = stolen_s();
    // All at once: between the first and the last it has nothing to wait for.
    client.send(&GET.repeat(1000));
    for _ in 0..1000 {
        assert_eq!(client.reply().status, 200);
    }
    let result = server.stop();
    // 200 ms were asked; without any, a thousand requests in one piece take less than one.
    assert!(result["cpu_user_s"].as_f64() > Some(0.02), "{result}");
    // What a hypervisor took stands in no account of the thread, and may be all that is missing.
    let span_s = result["duration_s"].as_f64().unwrap();
    let stolen_s = stolen_s() - stolen_before_s;
    assert!(
        result["limit"]["who"] == "server" || stolen_s > 0.05 * span_s,
        "{}; {stolen_s} s stolen of {span_s}",
        result["limit"]
    );
}

/// Time that a hypervisor took from all CPUs since the start (`/proc/stat`, column steal, hundredths of a second).
fn stolen_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: f64 =
        stat.lines().next().unwrap().split_whitespace().nth(8).unwrap().parse().unwrap();
    ticks / 100.0
}

#[test]
fn the_answer_has_its_schema() {
    let schema = rxpath(&["schema", "serve-http"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut child = std::process::Command::new(RXPATH)
        .args(["serve", "http", "127.0.0.1:0", "--json", "--idle-exit", "100ms"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let answer: Value = serde_json::from_str(&text).unwrap();
    let errors: Vec<String> = validator.iter_errors(&answer).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(answer["schema"], "rxpath/serve-http/1.0");
    assert_eq!(answer["result"]["limit"]["evidence"], "no request arrived");
}

#[test]
fn the_engine_is_io_uring_where_it_is_allowed_and_nothing_is_about_epoll() {
    let engine = |args: &[&str]| {
        let all = ["serve", "http", "127.0.0.1:0", "--json", "--idle-exit", "100ms"];
        let output = rxpath(&[&all, args].concat());
        let answer = serde_json::from_str::<Value>(&output.out).unwrap_or_default();
        answer["settings"]["engine"].as_str().map(str::to_owned)
    };
    let allowed = engine(&["--engine", "uring"]).unwrap_or_else(|| "epoll".into());
    assert_eq!(engine(&[]), Some(allowed));
    for about_epoll in [
        ["--trigger", "level"],
        ["--epoll-timeout", "0"],
        ["--busy-poll", "50us"],
        ["--engine", "epoll"],
    ] {
        assert_eq!(engine(&about_epoll).as_deref(), Some("epoll"), "{about_epoll:?}");
    }
}

#[test]
fn times_come_as_a_histogram_under_control() {
    let mut server = Server::start(&["--interval", "20ms"]);
    let mut client = server.connect();
    client.send(GET);
    client.reply();
    assert!(server.next("interval")["open_count"].is_number());
    server.order("stop");
    let histogram = server.next("histogram");
    assert_eq!(histogram["name"], "read_to_reply");
    assert!(histogram["hdr_v2_base64"].as_str().unwrap().len() > 20);
    assert!(server.next("result")["read_to_reply_us"].is_object());
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let server = Server::start(&[]);
    let taken = server.addr.to_string();
    for (args, code, says) in [
        (vec![taken.as_str()], 2, "bind 127.0.0.1"),
        (vec!["198.51.100.1:80"], 2, "bind 198.51.100.1:80"),
        (vec!["127.0.0.1:0", "--threads", "2", "--cpu", "0"], 2, "differs"),
        (vec!["127.0.0.1:0", "--cpu", "4000"], 2, "not online"),
        (vec!["127.0.0.1:0", "--events", "0"], 2, "--events 0"),
        (vec!["127.0.0.1:0", "--max-request", "10"], 2, "--max-request 10"),
        (vec!["localhost"], 2, "invalid value"),
        (vec!["127.0.0.1:0", "--prefer-busy-poll"], 2, "--busy-poll"),
    ] {
        rxpath(&[&["serve", "http"], args.as_slice()].concat()).ends(code).refuses("", says);
    }
}

/// Without the privilege the kernel refuses; with it, loopback has nothing to poll and the result says so.
#[test]
fn busy_polling_that_cannot_act_is_told() {
    let probe =
        rxpath(&["serve", "http", "127.0.0.1:0", "--busy-poll", "50", "--idle-exit", "1ms"]);
    if !nix::unistd::geteuid().is_root() {
        assert_eq!(probe.code, Some(3), "{probe:?}");
        assert!(probe.err.contains("CAP_NET_ADMIN"), "{probe:?}");
        return;
    }
    let mut server = Server::start(&["--busy-poll", "50", "--busy-poll-budget", "16"]);
    let poll = &server.settings["busy_poll"];
    assert_eq!(
        (&poll["socket"]["poll_us"], &poll["socket"]["budget_packets"]),
        (&50.into(), &16.into())
    );
    assert!(matches!(poll["waits"]["state"].as_str(), Some("ok" | "absent")), "{poll}");
    let mut client = server.connect();
    client.send(GET);
    client.reply();
    server.order("stop");
    let warning = server.next_where("warning", |line| line["code"] == "busy-poll-idle");
    assert!(warning["cause"].as_str().unwrap().contains("SO_INCOMING_NAPI_ID is 0"));
    let result = server.next("result");
    let seen = &result["busy_poll"];
    assert_eq!((&seen["looked_at_count"], &seen["with_napi_count"]), (&1.into(), &0.into()));
}

#[test]
fn a_signal_ends_with_the_summary_so_far() {
    use nix::sys::signal::Signal::SIGINT;
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    client.send(GET);
    client.reply();
    server.signal(SIGINT);
    assert_eq!(server.next("result")["requests_total"], 1);
    assert_eq!(server.wait(), Some(130));
}

#[test]
fn a_closed_pipe_does_not_kill_the_server() {
    // A client that goes away while replies are on their way: no SIGPIPE, the next one is served.
    for engine in ENGINES {
        let server = Server::start(&[engine, &["--body", "1MB"]].concat());
        for _ in 0..20 {
            let mut client = server.connect();
            client.send(&GET.repeat(10));
            client.stream.flush().unwrap();
            drop(client);
        }
        let mut client = server.connect();
        client.send(GET);
        assert_eq!(client.reply().status, 200, "{engine:?}");
    }
}
