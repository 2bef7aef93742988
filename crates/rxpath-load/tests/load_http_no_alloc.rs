//! The load generator's loops allocate nothing per request: a counting allocator watches its threads.

#![allow(clippy::unwrap_used)]

mod counting;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rxpath_load::engine::clock;
use rxpath_load::http::load::Load;
use rxpath_load::http::load::options::{Engine, LoadOptions};
use rxpath_load::values::defaults;
use rxpath_load::workload::WorkloadHandle;

use counting::{allocations, exempt_this_thread, in_quietest};

/// Heads that equal the last one and heads that do not, with and without a length, alone and cut in two.
const REPLIES: [&str; 4] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
];

/// Requests are counted by their empty lines.
fn serve(mut stream: TcpStream, closes: bool) {
    let mut buffer = [0; 4096];
    for round in 0.. {
        let Ok(got @ 1..) = stream.read(&mut buffer) else { return };
        for _ in 0..buffer[..got].windows(4).filter(|at| at == b"\r\n\r\n").count() {
            let reply = REPLIES[round % REPLIES.len()].as_bytes();
            let cut = if round % 5 == 0 { 10 } else { reply.len() };
            if stream.write_all(&reply[..cut]).is_err() || stream.write_all(&reply[cut..]).is_err()
            {
                return;
            }
        }
        if closes {
            return;
        }
    }
}

fn server(closes: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let spawn = |run: Box<dyn FnOnce() + Send>| {
        std::thread::spawn(|| {
            exempt_this_thread();
            run();
        })
    };
    spawn(Box::new(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            if closes {
                // A thread of its own would allocate before it can say whose it is.
                serve(stream, closes);
                continue;
            }
            spawn(Box::new(move || serve(stream, closes)));
        }
    }));
    addr
}

fn until(load: &Load, requests: u64) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while load.interval().requests_total < requests {
        assert!(Instant::now() < deadline, "only {} requests", load.interval().requests_total);
        // why: the pace of looking; the deadline above bounds it.
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn allocations_of(change: impl FnOnce(&mut LoadOptions)) -> u64 {
    let mut options: LoadOptions = defaults("http://h/").unwrap();
    change(&mut options);
    let addr = server(options.no_keepalive);
    options.url = format!("http://{addr}/");
    let mut load = Load::open(options).unwrap();
    load.start(clock::now_ns());
    // Heads that come in pieces make a buffer for each connection, once.
    let mut requests = 1000;
    until(&load, requests);
    in_quietest(|| {
        requests += 4000;
        until(&load, requests);
    })
}

// One test: the other threads of a test binary would count as workers.
#[test]
fn the_loops_allocate_nothing() {
    exempt_this_thread();
    for engine in [Engine::Epoll, Engine::Uring] {
        let closed = |options: &mut LoadOptions| options.engine = Some(engine);
        assert_eq!(allocations_of(closed), 0, "{engine:?}, closed loop");
        let open = |options: &mut LoadOptions| {
            (options.engine, options.rate_rps) = (Some(engine), Some(20_000));
        };
        assert_eq!(allocations_of(open), 0, "{engine:?}, open loop");
        let deep =
            |options: &mut LoadOptions| (options.engine, options.pipeline) = (Some(engine), 4);
        assert_eq!(allocations_of(deep), 0, "{engine:?}, pipelined");
        let short = |options: &mut LoadOptions| {
            (options.engine, options.no_keepalive) = (Some(engine), true);
        };
        assert_eq!(allocations_of(short), 0, "{engine:?}, a connection for each request");
    }
    assert!(allocations() > 0, "the allocator counts");
}
