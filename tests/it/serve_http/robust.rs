//! Slow, half-open, broken and too many clients.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;

use super::client::{Client, GET, Reply};
use super::server::Server;
use super::{ENGINES, request};

/// What a server may take for a crowd of clients, in KiB.
const BOUNDED_KIB: u64 = 96 * 1024;

#[test]
fn bad_requests_are_refused_and_closed() {
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(2_000_000));
    let fields = "A: b\r\n".repeat(100);
    let cases = [
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (request("POST / HTTP/1.1", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), 400),
        (request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n") + "xyz\r\n", 400),
        (request("DELETE / HTTP/1.1", ""), 405),
        (request("POST / HTTP/1.1", "Content-Length: 1001\r\n"), 413),
        (request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n") + "3e9\r\n", 413),
        (request("POST / HTTP/1.1", "Expect: miracles\r\n"), 417),
        (long, 431),
        (request("GET / HTTP/1.1", &fields), 431),
        (request("BREW / HTTP/1.1", ""), 501),
        (request("POST / HTTP/1.1", "Transfer-Encoding: gzip\r\n"), 501),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
    ];
    for engine in ENGINES {
        let server = Server::start(&[engine, &["--max-body", "1000"]].concat());
        for (text, status) in &cases {
            let mut client = server.connect();
            // The reply arrives although more was sent than was read: no reset overtakes it.
            client.try_send(text.as_bytes());
            let reply = client.reply();
            let start = &text[..text.len().min(60)];
            assert_eq!((reply.status, reply.closes), (*status, true), "{engine:?}: {start:?}");
        }
        let mut client = server.connect();
        client.send(GET);
        assert_eq!(client.reply(), Reply::ok(151));
        let result = server.stop();
        assert_eq!(result["requests_total"], cases.len() as u64 + 1);
    }
}

#[test]
fn slow_and_idle_clients_are_closed() {
    for engine in ENGINES {
        let server = Server::start(&[engine, &["--idle-timeout", "1s"]].concat());
        let (mut idle, mut slow) = (server.connect(), server.connect());
        idle.send(GET);
        assert_eq!(idle.reply().status, 200);
        let begun = Instant::now();
        // A byte now and then does not hold the connection: the head has to come to its end. Its first line takes 1.5 s.
        for byte in GET.as_bytes().chunks(1).cycle() {
            slow.try_send(byte);
            // why: a client that is slow on purpose.
            std::thread::sleep(Duration::from_millis(100));
            if begun.elapsed() > Duration::from_millis(1500) || byte == b"\n" {
                break;
            }
        }
        assert_eq!(slow.reply().status, 408, "{engine:?}");
        assert!(slow.is_at_end() && idle.is_at_end(), "{engine:?}");
        let closed = server.stop()["connections"]["closed_total"].clone();
        assert_eq!(closed["idle"], 1, "{engine:?}: {closed}");
    }
}

#[test]
fn a_half_closed_client_gets_its_reply() {
    for engine in ENGINES {
        let server = Server::start(engine);
        let mut client = server.connect();
        client.send(&GET.repeat(3));
        client.half_close();
        for _ in 0..3 {
            assert_eq!(client.reply(), Reply::ok(151), "{engine:?}");
        }
        assert!(client.is_at_end());
        let mut cut = server.connect();
        cut.send("GET / HT");
        cut.half_close();
        assert!(cut.is_at_end(), "{engine:?}");
        assert_eq!(server.stop()["connections"]["closed_total"]["cut"], 1, "{engine:?}");
    }
}

#[test]
fn a_client_that_does_not_read_costs_nobody_else() {
    for engine in ENGINES {
        let args = ["--body", "1MB", "--idle-timeout", "1s", "--interval", "20ms"];
        let mut server = Server::start(&[engine, &args].concat());
        let mut greedy = server.connect();
        greedy.try_send(GET.repeat(2_000).as_bytes());
        for _ in 0..5 {
            let mut other = server.connect();
            other.send(GET);
            assert_eq!(other.reply().status, 200, "{engine:?}");
        }
        assert!(server.peak_kib() < BOUNDED_KIB, "{engine:?}: {} KiB", server.peak_kib());
        // Its replies are 2 GB; it reads none of them and is given up.
        // Lines from before it came have no connection either.
        server.next_where("interval", |line| line["open_count"] != 0);
        server.next_where("interval", |line| line["open_count"] == 0);
        server.order("stop");
        let result = server.next("result");
        let closed = &result["connections"]["closed_total"];
        assert_eq!(closed["not-reading"], 1, "{engine:?}: {closed}");
    }
}

#[test]
fn a_crowd_that_does_not_read_takes_bounded_memory() {
    const MANY: usize = 500;
    let in_turn = (request("HEAD / HTTP/1.1", "") + GET).repeat(20_000);
    for engine in ENGINES {
        let mut server = Server::start(&[engine, &["--interval", "20ms"]].concat());
        let before_kib = server.peak_kib();
        let crowd: Vec<TcpStream> = (0..MANY)
            .map(|_| {
                let stream = TcpStream::connect(server.addr).unwrap();
                stream.set_nonblocking(true).unwrap();
                // With buffers as large as they come the crowd would take the machine's memory for TCP, and other tests
                // would wait for it.
                setsockopt(&stream, sockopt::SndBuf, &(64 << 10)).unwrap();
                setsockopt(&stream, sockopt::RcvBuf, &(64 << 10)).unwrap();
                stream
            })
            .collect();
        // Each reply is of another kind than the one before, which is what takes most room.
        // A request that is cut in two would be a wrong one, and the end of its connection.
        let mut written = [0; MANY];
        for _ in 0..4 {
            for (mut stream, at) in crowd.iter().zip(&mut written) {
                *at += std::io::Write::write(&mut stream, &in_turn.as_bytes()[*at..]).unwrap_or(0);
            }
        }
        server.next_where("interval", |line| {
            line["open_count"] == MANY && line["received_bytes"].as_u64() > Some(1_000_000)
        });
        let mut other = server.connect();
        other.send(GET);
        assert_eq!(other.reply().status, 200, "{engine:?}");
        // 4 MiB are the receive buffers of the ring.
        let grown_kib = server.peak_kib() - before_kib;
        assert!(grown_kib < 5 * 1024 + 12 * MANY as u64, "{engine:?}: {grown_kib} KiB");
        drop(crowd);
    }
}

#[test]
fn ten_thousand_idle_connections_hold_no_buffers() {
    const MANY: usize = 10_000;
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if hard < MANY as u64 + 100 {
        return crate::skip::skip("idle_connections", "the hard limit of descriptors is too low");
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    for engine in ENGINES {
        let server = Server::start(engine);
        let before_kib = server.peak_kib();
        let crowd: Vec<TcpStream> =
            (0..MANY).map(|_| TcpStream::connect(server.addr).unwrap()).collect();
        // Behind all of them in the queue: once it is answered, they are accepted.
        let mut client = server.connect();
        client.send(GET);
        assert_eq!(client.reply(), Reply::ok(151), "{engine:?}");
        let grown_kib = server.peak_kib() - before_kib;
        assert!(grown_kib < 16 * 1024, "{engine:?}: {grown_kib} KiB for {MANY} connections");
        drop(crowd);
        let result = server.stop();
        let most = result["connections"]["open_max_count"].as_u64().unwrap();
        assert!(most > MANY as u64, "{engine:?}: {most}");
    }
}

#[test]
fn without_descriptors_the_open_connections_are_served() {
    for engine in ENGINES {
        let mut server = Server::start_with_descriptors(engine, Some(64));
        assert_eq!(server.settings["descriptors_limit_count"], 64);
        let mut crowd: Vec<Client> = (0..80).map(|_| server.connect()).collect();
        for client in &mut crowd[..30] {
            client.send(GET);
            assert_eq!(client.reply().status, 200, "{engine:?}");
        }
        // The last one waits in the queue until others leave.
        crowd[79].send(GET);
        crowd.drain(..40);
        assert_eq!(crowd[39].reply().status, 200, "{engine:?}");
        server.order("stop");
        let warning = server.next_where("warning", |line| line["code"] == "descriptors-exhausted");
        assert!(warning["text"].as_str().unwrap().starts_with("EMFILE with "), "{warning}");
        let result = server.next("result");
        assert!(result["connections"]["pauses_total"]["EMFILE"].as_u64() > Some(0), "{engine:?}");
    }
}

#[test]
fn connections_are_capped_when_asked() {
    for engine in ENGINES {
        let mut server = Server::start(&[engine, &["--max-connections", "10"]].concat());
        let mut crowd: Vec<Client> = (0..30).map(|_| server.connect()).collect();
        crowd[0].send(GET);
        assert_eq!(crowd[0].reply().status, 200);
        crowd[29].send(GET);
        while crowd.len() > 1 {
            crowd.remove(0);
        }
        assert_eq!(crowd[0].reply().status, 200, "{engine:?}");
        server.order("stop");
        server.next_where("warning", |line| line["code"] == "connections-capped");
        let most = server.next("result")["connections"]["open_max_count"].as_u64().unwrap();
        // One order to io_uring accepts what waits already.
        assert!(most <= if engine[1] == "uring" { 30 } else { 10 }, "{engine:?}: {most}");
    }
}

#[test]
fn a_flood_of_connections_leaves_it_standing() {
    for engine in ENGINES {
        let mut server = Server::start(&[engine, &["--interval", "50ms"]].concat());
        for round in 0..3_000 {
            let Ok(stream) = TcpStream::connect(server.addr) else { continue };
            if round % 2 == 0 {
                // A reset instead of an end.
                let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
                setsockopt(&stream.as_fd(), sockopt::Linger, &linger).unwrap();
            }
        }
        let mut client = server.connect();
        client.send(GET);
        assert_eq!(client.reply(), Reply::ok(151), "{engine:?}");
        assert!(server.peak_kib() < BOUNDED_KIB, "{engine:?}: {} KiB", server.peak_kib());
        // The last resets may not have been seen yet. In lines before the request the one may be of the flood.
        let after = |line: &Value| line["received_bytes"].as_u64() >= Some(GET.len() as u64);
        server.next_where("interval", |line| line["open_count"] == 1 && after(line));
        let result = server.stop();
        assert_eq!(result["connections"]["open_count"], 1, "{engine:?}: {result}");
    }
}
