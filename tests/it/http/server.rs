//! A server for one test: a thread per connection, which plays a script.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A connection as the script sees it.
pub struct Peer {
    pub stream: TcpStream,
    /// Which request of this server comes next, from 0.
    requests: Arc<AtomicU64>,
    buffer: Vec<u8>,
}

impl Peer {
    /// The next request's head with its number; `None` when the client is gone.
    pub fn request(&mut self) -> Option<(u64, String)> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|at| at == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "))
                    .map_or(0, |length| length.parse().unwrap());
                while self.buffer.len() < length {
                    self.fill()?;
                }
                self.buffer.drain(..length);
                return Some((self.requests.fetch_add(1, SeqCst), head));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Option<()> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) | Err(_) => None,
            Ok(n) => {
                self.buffer.extend_from_slice(&chunk[..n]);
                Some(())
            }
        }
    }

    /// Writes; whether the client is still there.
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Resets the connection instead of ending it.
    pub fn reset(self) {
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&self.stream, nix::sys::socket::sockopt::Linger, &linger)
            .unwrap();
    }
}

/// A running server; it ends with the test.
pub struct Server {
    pub addr: SocketAddr,
    requests: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Plays `script` on every connection.
    pub fn start(script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", script)
    }

    /// The same on this address.
    pub fn at(addr: &str, script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(addr).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = Self {
            addr: listener.local_addr().unwrap(),
            requests: Arc::default(),
            stop: Arc::default(),
        };
        let (requests, stop) = (Arc::clone(&server.requests), Arc::clone(&server.stop));
        let script = Arc::new(script);
        std::thread::spawn(move || {
            while !stop.load(SeqCst) {
                let Ok((stream, _)) = listener.accept() else {
                    // why: nobody has connected yet; the accept does not block, so that the flag is seen.
                    std::thread::sleep(Duration::from_micros(200));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                stream.set_nodelay(true).unwrap();
                let requests = Arc::clone(&requests);
                let script = Arc::clone(&script);
                std::thread::spawn(move || {
                    script(Peer { stream, requests, buffer: Vec::new() });
                });
            }
        });
        server
    }

    /// Answers every request with this.
    pub fn always(reply: &'static str) -> Self {
        Self::start(move |mut peer| while peer.request().is_some() && peer.say(reply) {})
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }

    /// Stops listening; open connections go on.
    pub fn stop_listening(&self) {
        self.stop.store(true, SeqCst);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_listening();
    }
}
