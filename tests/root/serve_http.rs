//! `serve http` over a wire: busy polling acts where the device has NAPI, and the result says so.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::bed::{Bed, RX_IP};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const REPLY_BYTES: usize = 151;

/// The result of a server that polls, after some requests over the pair.
fn serve(napi: bool, engine: &str) -> (Value, Vec<String>) {
    let bed = Bed::new().unwrap();
    let (tx, rx) = bed.pair(1);
    // A veth has NAPI only with GRO at the receiving end, and none of its own segments as aggregates.
    rx.set_features("veth", &[("gro", napi)]).unwrap();
    tx.set_features("veth", &[("tso", !napi), ("gso", !napi)]).unwrap();
    // Interrupts stay off while somebody polls; without this the sender's own softirq would be first.
    rx.set_dev_attr("veth", "napi_defer_hard_irqs", "100").unwrap();
    rx.set_dev_attr("veth", "gro_flush_timeout", "2000000").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["serve", "http", &format!("{RX_IP}:8080"), "--control", "--engine", engine]);
    command.args(["--busy-poll", "1000", "--prefer-busy-poll", "--busy-poll-budget", "16"]);
    command.stdout(Stdio::piped());
    let mut server = rx.spawn(command).unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut warnings = Vec::new();
    let mut next = |kind: &str| {
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["type"] == "warning" {
                warnings.push(line["code"].as_str().unwrap().to_owned());
            }
            if line["type"] == kind {
                return line;
            }
        }
    };
    next("ready");
    tx.run(|_| {
        let mut stream = TcpStream::connect((RX_IP, 8080)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for _ in 0..300 {
            stream.write_all(GET).unwrap();
            stream.read_exact(&mut [0; REPLY_BYTES]).unwrap();
        }
    })
    .unwrap();
    server.stdin.as_mut().unwrap().write_all(b"stop\n").unwrap();
    let result = next("result");
    assert_eq!(result["requests_total"], 300, "{result}");
    (result, warnings)
}

#[test]
fn busy_polling_acts_with_napi_and_is_told_apart_without() {
    if !crate::bed::may_run() {
        return;
    }
    for engine in ["epoll", "uring"] {
        let (result, warnings) = serve(true, engine);
        let seen = &result["busy_poll"];
        assert_eq!(seen["with_napi_count"], 1, "{engine}: {seen}");
        let polled = seen["busy_poll_rx_packets"]["value"].as_u64().unwrap();
        assert!(polled > 0, "{engine}: {result}");
        assert!(!warnings.contains(&"busy-poll-idle".into()), "{warnings:?}");
    }
    let (result, warnings) = serve(false, "epoll");
    assert_eq!(result["busy_poll"]["with_napi_count"], 0, "{result}");
    assert!(warnings.contains(&"busy-poll-idle".into()), "{warnings:?}");
}
