//! TCP clients: streams that write as fast as they may or at a rate, or connections one after the other. Counts bytes
//! written (0), connections made (1) and connections refused or lost (2).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::counts::Counts;
use super::words::Words;

/// `rate=BYTES` a second of each stream, or without it all that goes.
fn stream(words: &Words, to: SocketAddr, counts: Counts) {
    words.pin(0);
    let Ok(mut stream) = TcpStream::connect(to) else {
        counts.add(2, 1);
        return;
    };
    counts.add(1, 1);
    let bytes = vec![7; words.get("chunk", 16_384)];
    let pause = words
        .text("rate")
        .map(|rate| Duration::from_secs_f64(bytes.len() as f64 / rate.parse::<f64>().unwrap()));
    while let Ok(length) = stream.write(&bytes) {
        counts.add(0, length as u64);
        if words.has("echo") && stream.read(&mut [0; 16]).is_err() {
            break;
        }
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
    }
    counts.add(2, 1);
}

/// Connects again and again, `connects=N` a second in all; waits a second at most for each.
fn connect(words: &Words, to: SocketAddr, counts: Counts) {
    words.pin(0);
    let (each, clients) = (words.get("connects", 100.0), words.get("conns", 1.0));
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_millis(words.get("patience", 1_000))) {
            Ok(mut stream) => {
                counts.add(1, 1);
                if words.has("say") {
                    let _ = stream.write_all(b"x");
                }
                if words.has("hold") {
                    std::thread::sleep(words.millis("hold"));
                }
            }
            Err(_) => counts.add(2, 1),
        }
        std::thread::sleep(Duration::from_secs_f64(clients / each));
    }
}

/// `to=IP:PORT`, `conns=N`; `connects=N`: connections a second instead of streams.
pub fn play(words: &Words) {
    let counts = Counts::open();
    let to: SocketAddr = words.get("to", "10.88.0.2:9800".parse().unwrap());
    counts.ready();
    std::thread::scope(|scope| {
        for _ in 0..words.get("conns", 1) {
            scope.spawn(move || {
                if words.has("connects") {
                    connect(words, to, counts);
                } else {
                    stream(words, to, counts);
                }
            });
        }
    });
}
