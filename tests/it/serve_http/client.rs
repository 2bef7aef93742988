//! A client that reads replies one by one, without any library that would repair them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

pub const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Nothing here takes as long, unless the server hangs.
const DEADLINE: Duration = Duration::from_secs(30);

pub struct Client {
    pub stream: TcpStream,
    read: BufReader<TcpStream>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Head and body.
    pub bytes: u64,
    pub closes: bool,
}

impl Reply {
    pub fn ok(bytes: u64) -> Self {
        Self { status: 200, bytes, closes: false }
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&addr, DEADLINE).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let read = BufReader::new(stream.try_clone().unwrap());
        Self { stream, read }
    }

    pub fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends while the server takes it; it may close in the middle.
    pub fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    pub fn reply(&mut self) -> Reply {
        self.reply_to(false)
    }

    /// The next reply; one to HEAD has no body.
    pub fn reply_to(&mut self, is_head: bool) -> Reply {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let before = head.len();
            assert!(self.read.read_line(&mut head).unwrap() > 0, "closed within {head:?}");
            let line = &head[before..];
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if is_head { 0 } else { length };
        let read = std::io::copy(&mut (&mut self.read).take(body), &mut std::io::sink()).unwrap();
        assert_eq!(read, body, "a body cut short");
        Reply {
            status,
            bytes: head.len() as u64 + body,
            closes: head.contains("Connection: close"),
        }
    }

    /// Whether the server closed, in order.
    pub fn is_at_end(&mut self) -> bool {
        self.read.fill_buf().unwrap().is_empty()
    }
}
