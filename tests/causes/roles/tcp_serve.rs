//! A TCP service that accepts and reads as it is told, a thread for each connection. It counts bytes read (0) and
//! connections accepted (1).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket,
    sockopt,
};

use super::counts::Counts;
use super::words::Words;

/// `at=IP:PORT`, `rcvbuf=BYTES` (of the listener, so of each connection), `backlog=N`.
fn listener(words: &Words) -> TcpListener {
    let at: SocketAddr = words.get("at", "10.88.0.2:9800".parse().unwrap());
    let family = if at.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let fd = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&fd, sockopt::ReuseAddr, &true).unwrap();
    if words.has("rcvbuf") {
        setsockopt(&fd, sockopt::RcvBuf, &words.get("rcvbuf", 0)).unwrap();
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(at)).unwrap();
    listen(&fd, Backlog::new(words.get("backlog", 1024)).unwrap()).unwrap();
    TcpListener::from(fd)
}

/// `read=never`, or `chunk=BYTES` a call with `work=US` and `nap=US` after each; `echo` answers a byte; `close` at once.
fn serve(words: &Words, mut stream: TcpStream, counts: Counts) {
    if words.has("close") {
        return;
    }
    while words.text("read") == Some("never") {
        std::thread::park();
    }
    words.pin(1);
    let mut bytes = vec![0; words.get("chunk", 65_536)];
    while let Ok(length @ 1..) = stream.read(&mut bytes) {
        counts.add(0, length as u64);
        super::read::work(words.micros("work"));
        if words.has("echo") && stream.write_all(&[1]).is_err() {
            return;
        }
        if words.has("nap") {
            std::thread::sleep(words.micros("nap"));
        }
    }
}

/// `accept=MS` between two, or `accept=never`.
pub fn play(words: &Words) {
    let counts = Counts::open();
    let listener = listener(words);
    counts.ready();
    while words.text("accept") == Some("never") {
        std::thread::park();
    }
    words.pin(1);
    std::thread::scope(|scope| {
        loop {
            std::thread::sleep(words.millis("accept"));
            let Ok((stream, _)) = listener.accept() else { continue };
            counts.add(1, 1);
            scope.spawn(move || serve(words, stream, counts));
        }
    });
}
