//! The server's loops allocate nothing per request: a counting allocator watches its threads.

#![allow(clippy::unwrap_used)]

mod counting;

use std::io::{Read, Write};
use std::net::TcpStream;

use rxpath_load::http::serve::Serve;
use rxpath_load::http::serve::options::{Engine, ServeOptions, Trigger};
use rxpath_load::values::defaults;
use rxpath_load::workload::WorkloadHandle;

use counting::{allocations, exempt_this_thread, in_quietest};

/// What clients say: alone, pipelined, another one, with bodies.
const TALK: [&str; 4] = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
];
const REPLY_BYTES: usize = 151;

/// With `pieces`, each third round says its text in two: the server has to hold the start of a head.
fn talk(streams: &mut [TcpStream], rounds: usize, pieces: bool) {
    let mut buffer = [0; 4096];
    for round in 0..rounds {
        for stream in streams.iter_mut() {
            let text = TALK[round % TALK.len()];
            let cut = if pieces && round % 3 == 0 { 10 } else { text.len() };
            stream.write_all(&text.as_bytes()[..cut]).unwrap();
            stream.write_all(&text.as_bytes()[cut..]).unwrap();
            let mut left = REPLY_BYTES * text.matches("HTTP/1.1").count();
            while left > 0 {
                let got = stream.read(&mut buffer).unwrap();
                assert!(got > 0, "closed");
                left -= got;
            }
        }
    }
}

fn allocations_of(change: impl FnOnce(&mut ServeOptions)) -> u64 {
    let mut options: ServeOptions = defaults("127.0.0.1:0").unwrap();
    change(&mut options);
    let serve = Serve::open(options).unwrap();
    let mut streams: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(serve.settings().addr).unwrap()).collect();
    for stream in &streams {
        stream.set_nodelay(true).unwrap();
    }
    // The first requests make the buffers that are used again and again.
    talk(&mut streams, 60, false);
    in_quietest(|| talk(&mut streams, 600, true))
}

// One test: the other threads of a test binary would count as workers.
#[test]
fn the_loops_allocate_nothing() {
    exempt_this_thread();
    let triggered = |trigger| allocations_of(|options| options.trigger = Some(trigger));
    assert_eq!(triggered(Trigger::Edge), 0, "epoll, edge");
    assert_eq!(triggered(Trigger::Level), 0, "epoll, level");
    assert_eq!(allocations_of(|options| options.engine = Some(Engine::Uring)), 0, "io_uring");
    assert!(allocations() > 0, "the allocator counts");
}
