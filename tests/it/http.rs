//! `load http` as a program, against servers that behave well and badly.

mod server;

use std::cell::Cell;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};
use serde_json::Value;
use server::Server;

use crate::program::{Said, said};

const RXPATH: &str = env!("CARGO_BIN_EXE_rxpath");
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

thread_local! {
    /// The engine under test.
    static ENGINE: Cell<&'static str> = const { Cell::new("epoll") };
}

fn load_http() -> Command {
    let mut command = Command::new(RXPATH);
    command.args(["load", "http", "--engine", ENGINE.get()]);
    command
}

fn rxpath(args: &[&str]) -> Said {
    said(load_http().args(args))
}

/// These tests once more with the other engine.
macro_rules! with_io_uring_too {
    ($($name:ident)*) => {
        mod uring {
            $(#[test]
            fn $name() {
                super::ENGINE.set("uring");
                super::$name();
            })*
        }
    };
}

with_io_uring_too! {
    a_count_of_requests_is_answered_and_counted_on_both_sides
    every_framing_is_counted_also_when_replies_change_in_mid_stream
    chunked_replies_are_read_when_every_byte_comes_alone
    replies_without_length_end_with_their_connection
    without_keepalive_each_request_has_its_connection
    pipelined_requests_are_answered_in_order_and_asked_again_after_a_close
    method_headers_and_body_arrive_as_they_were_asked_for
    a_body_larger_than_every_buffer_is_sent
}

mod faults;
mod schedule;

/// The whole answer of a load that ends by itself.
fn answer(url: &str, args: &[&str]) -> Value {
    let value = rxpath(&[&[url, "--json"], args].concat()).ends(0).json();
    conserved(&value["result"]);
    value
}

fn result(url: &str, args: &[&str]) -> Value {
    answer(url, args)["result"].take()
}

fn number(result: &Value, key: &str) -> u64 {
    result[key].as_u64().unwrap_or_else(|| panic!("{key}: {result}"))
}

fn errors(result: &Value, kind: &str) -> u64 {
    number(&result["errors_total"], kind)
}

/// Every request that was sent is answered, lost or on its way.
fn conserved(result: &Value) {
    let all = number(result, "requests_total")
        + number(result, "lost_requests_total")
        + number(result, "in_flight_requests_total");
    let sent = number(result, "sent_requests_total");
    // Requests whose connection never came about were begun and not sent.
    assert!(
        sent <= all
            && all <= sent + errors(result, "connect") + number(result, "in_flight_requests_total"),
        "{result}"
    );
}

fn codes(answer: &Value) -> Vec<&str> {
    let warnings = answer["warnings"].as_array().unwrap();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

pub fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < deadline, "no {what} within a minute");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_count_of_requests_is_answered_and_counted_on_both_sides() {
    let server = Server::always(OK);
    let answer = answer(&server.url(), &["-n", "2000", "-c", "8", "-t", "2"]);
    assert_eq!(answer["schema"], "rxpath/load-http/1.0");
    let result = &answer["result"];
    assert_eq!(number(result, "requests_total"), 2000);
    assert_eq!(server.requests(), 2000);
    assert_eq!(number(result, "connections_opened_total"), 8);
    assert_eq!(number(result, "received_bytes"), 2000 * OK.len() as u64);
    assert_eq!(number(result, "sent_bytes"), 2000 * number(&answer["settings"], "request_bytes"));
    for times in ["service_time_us", "response_time_us"] {
        let of = |key: &str| result[times][key].as_f64().unwrap();
        assert_eq!(of("samples_count") as u64, 2000);
        let steps = ["p50", "p90", "p99", "p999", "p9999", "max"].map(of);
        assert!(steps.is_sorted() && of("mean") > 0.0 && of("stdev") >= 0.0, "{times}: {steps:?}");
    }
    for key in ["achieved_rps", "duration_s", "cpu_user_s", "cpu_system_s"] {
        assert!(result[key].is_number(), "{key}");
    }
    assert!(result["target_rps"].is_null() && answer["settings"]["loop"] == "closed");
    assert_eq!(result["threads"].as_array().unwrap().len(), 2);
    // epoll needs two calls a request and its waits; io_uring many fewer, but some.
    let least = if ENGINE.get() == "epoll" { 4000 } else { 10 };
    assert!(number(result, "system_calls_total") > least, "{result}");
    assert!(result["limit"]["evidence"].is_string());
}

#[test]
fn every_framing_is_counted_also_when_replies_change_in_mid_stream() {
    let bodies = [
        OK.to_owned(),
        OK.to_owned(),
        OK.replace("hello", "HELLO"),
        OK.replace(": 5", ": 7").replace("hello", "goodbye"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nT: u\r\n\r\n".into(),
        "HTTP/1.1 204 No Content\r\n\r\n".into(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(),
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n".into(),
    ];
    let bytes: usize = bodies.iter().map(String::len).sum();
    let server = Server::start(move |mut peer| {
        while let Some((n, _)) = peer.request() {
            let reply = bodies[n as usize % bodies.len()].as_bytes();
            // Whole, and cut at a place that moves.
            let (head, tail) = reply.split_at(n as usize / 8 % reply.len());
            if !peer.say(head) || !peer.say(tail) {
                return;
            }
        }
    });
    let result = result(&server.url(), &["-n", "1600", "-c", "1"]);
    assert_eq!(number(&result, "requests_total"), 1600);
    assert_eq!(number(&result, "received_bytes"), 200 * bytes as u64);
    assert_eq!(number(&result, "connections_opened_total"), 1);
    assert_eq!(number(&result, "lost_requests_total"), 0);
}

#[test]
fn chunked_replies_are_read_when_every_byte_comes_alone() {
    let reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let server = Server::start(move |mut peer| {
        while peer.request().is_some() {
            for byte in reply {
                if !peer.say([*byte]) {
                    return;
                }
            }
        }
    });
    let result = result(&server.url(), &["-n", "50", "-c", "2"]);
    assert_eq!(number(&result, "requests_total"), 50);
    assert_eq!(number(&result, "received_bytes"), 50 * reply.len() as u64);
}

#[test]
fn replies_without_length_end_with_their_connection() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.say("HTTP/1.0 200 OK\r\n\r\nuntil the end");
        }
    });
    let result = result(&server.url(), &["-n", "100", "-c", "4"]);
    assert_eq!(number(&result, "requests_total"), 100);
    // The last request may find the other three connections being opened already.
    assert!((100..=103).contains(&number(&result, "connections_opened_total")), "{result}");
    assert_eq!(number(&result, "lost_requests_total"), 0);
}

#[test]
fn without_keepalive_each_request_has_its_connection() {
    let server = Server::start(|mut peer| {
        if let Some((_, head)) = peer.request() {
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
            peer.say(OK);
        }
    });
    for rate in [None, Some("500")] {
        let rate: Vec<&str> = rate.map_or(vec![], |rate| vec!["--rate", rate]);
        let args = [&["-n", "200", "-c", "4", "--no-keepalive"][..], &rate].concat();
        let result = result(&server.url(), &args);
        assert_eq!(number(&result, "requests_total"), 200, "{args:?}");
        assert_eq!(number(&result, "connections_opened_total"), 200);
        let of = |times: &str| result[times]["mean"].as_f64().unwrap();
        assert!(of("response_time_us") > of("service_time_us"), "the connection is in it");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_and_asked_again_after_a_close() {
    let server = Server::start(|mut peer| {
        for _ in 0..10 {
            if peer.request().is_none() || !peer.say(OK) {
                return;
            }
        }
        if peer.request().is_some() {
            peer.say(OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
            // A socket that is closed with requests unread resets the connection, and the replies are gone.
            peer.stream.shutdown(std::net::Shutdown::Write).unwrap();
            while peer.request().is_some() {}
        }
    });
    let result = result(&server.url(), &["-n", "1100", "-c", "1", "--pipeline", "8"]);
    assert_eq!(number(&result, "requests_total"), 1100);
    assert_eq!(number(&result, "sent_requests_total"), 1100);
    assert_eq!(number(&result, "lost_requests_total"), 0);
    // 11 replies a connection; what was on its way behind the last of them is sent once more.
    assert_eq!(number(&result, "connections_opened_total"), 100);
    assert!(number(&result, "resent_requests_total") > 0);
}

#[test]
fn method_headers_and_body_arrive_as_they_were_asked_for() {
    let server = Server::start(|mut peer| {
        while let Some((_, head)) = peer.request() {
            let wanted = head.starts_with("PUT /path?x=y HTTP/1.1\r\n")
                && head.contains("\r\nHost: example.org\r\n")
                && head.contains("\r\nX-Test: a:b\r\n")
                && head.contains("\r\nContent-Length: 3\r\n");
            let status = if wanted { "200 OK" } else { "400 Bad" };
            if !peer.say(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")) {
                return;
            }
        }
    });
    let url = format!("{}path?x=y", server.url());
    let headers = ["-H", "Host: example.org", "--header", "X-Test: a:b"];
    let args = [&["-n", "5", "-c", "1", "-X", "PUT", "--body", "abc"][..], &headers].concat();
    let good = result(&url, &args);
    assert_eq!((number(&good, "requests_total"), errors(&good, "status")), (5, 0));
    // The same request without them is refused by the server, and counted so.
    let bad = answer(&url, &["-n", "5", "-c", "1"]);
    assert_eq!(number(&bad["result"], "requests_total"), 5);
    assert_eq!(errors(&bad["result"], "status"), 5);
    assert!(codes(&bad).contains(&"errors"), "{bad}");
}

#[test]
fn a_body_larger_than_every_buffer_is_sent() {
    let server = Server::always(OK);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![b'x'; 8 << 20]).unwrap();
    let path = file.path().to_str().unwrap();
    let answer =
        answer(&server.url(), &["-n", "6", "-c", "2", "--body-file", path, "--timeout", "60s"]);
    assert_eq!(number(&answer["result"], "requests_total"), 6);
    assert_eq!(server.requests(), 6);
    assert!(answer["settings"]["request"].as_str().unwrap().starts_with("POST "));
    assert!(number(&answer["result"], "sent_bytes") > 6 << 23);
}

#[test]
fn replies_to_head_have_no_body() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    let result = result(&server.url(), &["-n", "50", "-c", "2", "--method", "HEAD"]);
    assert_eq!(number(&result, "requests_total"), 50);
}

/// It refuses connections, and while it is open no other test gets its port.
pub(crate) fn bound_and_not_listening() -> (std::os::fd::OwnedFd, SockaddrIn) {
    let socket =
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let address = getsockname(socket.as_raw_fd()).unwrap();
    (socket, address)
}

#[test]
fn what_cannot_be_loaded_has_one_clear_line_a_hint_and_exit_2() {
    let (_bound, closed) = bound_and_not_listening();
    let closed = format!("http://{closed}/");
    let server = Server::always(OK);
    let url = server.url();
    let url = url.as_str();
    let cases: [(&[&str], &str); 16] = [
        (&["https://127.0.0.1/"], "TLS is not supported"),
        (&["127.0.0.1:80"], "no scheme"),
        (&["http://127.0.0.1:99999/"], "malformed"),
        (&[&closed], "Connection refused"),
        (&["http://no-such-host.invalid/"], "resolve no-such-host.invalid"),
        (&["http://255.255.255.255/"], "connect 255.255.255.255:80"),
        (&[url, "-c", "1", "-t", "2"], "fewer connections than threads"),
        (&[url, "-c", "100000000"], "file descriptors, this process may open"),
        (&[url, "-d", "10x"], "unit `x` is not one of"),
        (&[url, "--rate", "0"], "--rate 0"),
        (&[url, "--pipeline", "0"], "1 to 1024"),
        (&[url, "--pipeline", "2", "--no-keepalive"], "it excludes --no-keepalive"),
        (&[url, "-H", "nonsense"], "no colon"),
        (&[url, "--body-file", "/no/such/file"], "/no/such/file"),
        (&[url, "--source", "192.0.2.99"], "Cannot assign requested address"),
        (&[url, "--source", "::1"], "address of this family"),
    ];
    for (args, says) in cases {
        let output = rxpath(args).ends(2);
        let first = output.err.lines().next().unwrap();
        assert!(first.starts_with("rxpath: ") && first.contains(says), "{args:?}: {output:?}");
        assert!(output.err.lines().skip(1).all(|line| line.starts_with("hint: ")), "{output:?}");
        assert!(output.out.is_empty());
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn names_and_both_families_are_resolved() {
    let six = Server::at("[::1]:0", |mut peer| while peer.request().is_some() && peer.say(OK) {});
    assert_eq!(number(&result(&six.url(), &["-n", "10", "-c", "1"]), "requests_total"), 10);
    let four = Server::always(OK);
    let url = format!("http://localhost:{}/", four.addr.port());
    let answer = answer(&url, &["-n", "10", "-c", "1", "--source", "127.0.0.9"]);
    assert_eq!(answer["settings"]["to"], four.addr.to_string());
    assert_eq!(number(&answer["result"], "requests_total"), 10);
}

#[test]
fn the_limit_of_descriptors_is_raised_to_the_hard_one() {
    let server = Server::always(OK);
    let script =
        format!("ulimit -Sn 40; exec {RXPATH} load http {} -c 60 -n 120 --json", server.url());
    let value = said(Command::new("sh").args(["-c", &script])).json();
    assert_eq!(number(&value["result"], "requests_total"), 120);
    assert!(number(&value["settings"], "descriptors_limit") > 60);
}

#[test]
fn intervals_are_lines_with_the_percentiles_of_their_time() {
    let server = Server::always(OK);
    let output = rxpath(&[&server.url(), "-d", "1s", "-c", "2", "--interval", "50ms", "--json"]);
    let lines: Vec<Value> =
        output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("settings").len(), of("ready").len(), of("result").len()), (1, 1, 1));
    let intervals = of("interval");
    assert!(!intervals.is_empty(), "{output:?}");
    let (mut samples, mut before) = (0, 0);
    for line in intervals {
        let requests = number(line, "requests_total");
        samples += line["response_time_us"]["samples_count"].as_u64().unwrap_or(0);
        // The histogram is read before the totals, which only grow; a reply is recorded and then counted.
        assert!(before <= samples && samples <= requests + 1, "{before} {samples} {requests}");
        before = requests;
    }
    assert!(samples > 0, "{output:?}");
}

#[test]
fn a_parent_gets_the_histograms() {
    use std::io::Write;
    let server = Server::always(OK);
    let mut child = Command::new(RXPATH)
        .args(["load", "http", &server.url(), "-n", "100", "--control"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = child.stdin.take().unwrap();
    writeln!(orders, "start 1").unwrap();
    let text = std::thread::spawn(move || {
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    });
    until("requests", || server.requests() == 100);
    writeln!(orders, "close").unwrap();
    drop(orders);
    let text = text.join().unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "histogram")
        .map(|line| line["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["service_time", "response_time", "connect_time"]);
    let result = lines.iter().find(|line| line["type"] == "result").unwrap();
    assert!(names.iter().all(|name| result[format!("{name}_us")].is_object()), "{result}");
}
