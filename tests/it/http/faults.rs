//! `load http` against servers that die, lie or say nothing, and under signals.

use super::*;

with_io_uring_too! {
    malformed_replies_are_counted_and_the_connection_is_given_up
    a_reply_of_a_gibibyte_takes_no_memory
    an_interrupt_prints_the_summary_so_far
    a_server_that_dies_in_mid_run_is_told_and_not_waited_for
    a_count_that_cannot_be_reached_is_given_up
    half_closed_connections_are_finished_or_counted
    requests_without_a_reply_time_out
    a_server_that_is_silent_or_never_ends_its_reply_does_not_hold_the_end_up
}

#[test]
fn malformed_replies_are_counted_and_the_connection_is_given_up() {
    for reply in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        let server = Server::always(reply);
        let result = result(&server.url(), &["-n", "10", "-c", "2"]);
        assert_eq!(errors(&result, "malformed"), 10, "{reply:?}: {result}");
        assert_eq!(number(&result, "requests_total"), 0);
        assert_eq!(number(&result, "lost_requests_total"), 10);
    }
    // Bytes that nobody asked for.
    let server =
        Server::always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n");
    let result = result(&server.url(), &["-n", "10", "-c", "1"]);
    assert!(errors(&result, "malformed") > 0, "{result}");
}

#[test]
fn a_reply_of_a_gibibyte_takes_no_memory() {
    const PIECES: u64 = 16_384;
    let server = Server::start(|mut peer| {
        let piece = vec![b'x'; 65_536];
        if peer.request().is_some() {
            peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PIECES * 65_536));
            for _ in 0..PIECES {
                if !peer.say(&piece) {
                    return;
                }
            }
        }
    });
    let mut child = started(&server.url(), &["-n", "1", "-c", "1", "--timeout", "60s", "--json"]);
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    until("end", || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kib) = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()) {
            peak_kib = kib;
        }
        child.try_wait().unwrap().is_some()
    });
    let value = Said::from(child.wait_with_output().unwrap()).json();
    assert_eq!(number(&value["result"], "requests_total"), 1);
    assert!(number(&value["result"], "received_bytes") > PIECES * 65_536);
    assert!(peak_kib > 0 && peak_kib < 64 * 1024u64, "{peak_kib} KiB at most");
}

fn started(url: &str, args: &[&str]) -> Child {
    load_http().arg(url).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_interrupt_prints_the_summary_so_far() {
    let server = Server::always(OK);
    for json in [true, false] {
        let before = server.requests();
        let child =
            started(&server.url(), if json { &["--json", "-d", "60s"] } else { &["-d", "60s"] });
        // The server counts a request before its answer is read: one on each of ten connections may be on its way.
        until("requests", || server.requests() > before + 200);
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let text = Said::from(child.wait_with_output().unwrap()).ends(130).out;
        if json {
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(number(&value["result"], "requests_total") >= 100);
            conserved(&value["result"]);
        } else {
            for wanted in [
                "Thread Stats   Avg      Stdev     Max   +/- Stdev",
                "Requests/sec:",
                "Transfer/sec:",
                "p99.99",
            ] {
                assert!(text.contains(wanted), "{wanted}: {text}");
            }
        }
    }
}

#[test]
fn a_server_that_dies_in_mid_run_is_told_and_not_waited_for() {
    let server = Server::start(|mut peer| {
        for _ in 0..50 {
            if peer.request().is_none() || !peer.say(OK) {
                return;
            }
        }
        peer.request();
        peer.reset();
    });
    let child = started(&server.url(), &["-c", "4", "-d", "5s", "--json"]);
    until("requests", || server.requests() > 60);
    server.stop_listening();
    let value = Said::from(child.wait_with_output().unwrap()).ends(0).json();
    let result = &value["result"];
    conserved(result);
    assert!(number(result, "requests_total") >= 50);
    assert!(errors(result, "read") > 0 && errors(result, "connect") > 0, "{result}");
    assert!(number(&result["error_causes_total"], "read ECONNRESET") > 0, "{result}");
    assert!(number(&result["error_causes_total"], "connect ECONNREFUSED") > 0, "{result}");
    // The pauses between attempts grow: 4 connections would try a million times otherwise.
    assert!(errors(result, "connect") < 6000, "{result}");
    assert!(codes(&value).contains(&"errors"));
}

#[test]
fn a_count_that_cannot_be_reached_is_given_up() {
    // One that answers nothing any more, and one that is gone.
    for goes in [false, true] {
        let server = Server::start(move |mut peer| {
            while let Some((n, _)) = peer.request() {
                if n > 20 && goes {
                    return peer.reset();
                }
                if n <= 20 && !peer.say(OK) {
                    return;
                }
            }
        });
        let count = ["-n", "100M", "-c", "2", "--timeout", "100ms", "--json"];
        let child = started(&server.url(), &count);
        until("requests", || server.requests() > 20);
        if goes {
            server.stop_listening();
        }
        let output = Said::from(child.wait_with_output().unwrap());
        let value = output.json();
        assert_eq!(output.code, Some(5), "{value}");
        assert_eq!(value["result"]["gave_up"], true, "{value}");
        assert!(codes(&value).contains(&"gave-up"), "{value}");
        conserved(&value["result"]);
    }
}

#[test]
fn half_closed_connections_are_finished_or_counted() {
    use std::net::Shutdown;
    // The reply is whole, and its sender says nothing more: the connection is renewed.
    let polite = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.say(OK);
            peer.stream.shutdown(Shutdown::Write).unwrap();
            peer.request();
        }
    });
    let result_polite = result(&polite.url(), &["-n", "40", "-c", "2"]);
    assert_eq!(
        number(&result_polite, "requests_total")
            + errors(&result_polite, "read")
            + errors(&result_polite, "write"),
        40
    );
    assert!(number(&result_polite, "requests_total") > 0);
    // The reply is cut.
    let rude = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.say(&OK[..OK.len() - 2]);
            peer.stream.shutdown(Shutdown::Write).unwrap();
            peer.request();
        }
    });
    let result = result(&rude.url(), &["-n", "10", "-c", "2"]);
    assert_eq!((errors(&result, "read"), number(&result, "requests_total")), (10, 0));
}

#[test]
fn requests_without_a_reply_time_out() {
    let server = Server::start(|mut peer| {
        // One reply in two.
        while let Some((n, _)) = peer.request() {
            if n % 2 == 0 && !peer.say(OK) {
                return;
            }
        }
    });
    let result = result(&server.url(), &["-n", "20", "-c", "2", "--timeout", "50ms"]);
    assert_eq!(number(&result, "requests_total") + errors(&result, "timeout"), 20, "{result}");
    assert!(errors(&result, "timeout") > 0);
}

/// Answers the first request with `head`, and goes on with `piece` until the client is gone.
fn drip(mut peer: server::Peer, head: &str, piece: &str) {
    if peer.request().is_none() || !peer.say(head) {
        return;
    }
    while peer.say(piece) {
        // why: a reply that is always under way and never whole; the client's close ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The output of a load that has to end by itself.
fn ended(mut child: Child, what: &str) -> Said {
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() >= deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: no end by itself within 20 s");
        }
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_server_that_is_silent_or_never_ends_its_reply_does_not_hold_the_end_up() {
    const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    for (what, server) in [
        ("no reply", Server::start(|mut peer| while peer.request().is_some() {})),
        ("an endless head", Server::start(|peer| drip(peer, "HTTP/1.1 200 OK\r\n", "A: b\r\n"))),
        ("an endless body", Server::start(|peer| drip(peer, SIZED, "x"))),
    ] {
        let args = ["-d", "1s", "--timeout", "100ms", "-c", "2", "--json"];
        let value = ended(started(&server.url(), &args), what).ends(0).json();
        let result = &value["result"];
        conserved(result);
        assert_eq!(number(result, "requests_total"), 0, "{what}: {result}");
        let unanswered =
            number(result, "lost_requests_total") + number(result, "in_flight_requests_total");
        assert!(unanswered > 0, "{what}: {result}");
    }
}
