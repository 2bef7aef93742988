//! The port of the page: one thread, a bounded number of connections, none of which can hold up another.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::Socket;

use crate::request::{HEAD_BYTES, HttpResponse, RenderedPages, answer, wants_body};
use crate::socket_file::SocketFile;

/// Connections at once; one more closes the oldest.
const CONNECTIONS: usize = 128;
/// A connection lives no longer, whatever it does.
const LIFE: Duration = Duration::from_secs(2);
/// How often the end is looked for.
const LOOK_MS: u16 = 100;
/// How long to wait when descriptors are short: before the next accept, or the next poll.
const REST: Duration = Duration::from_millis(100);

/// Where the page is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
    /// A socket that another program, such as systemd, opened and passed on with this number.
    Inherited(u16),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}/metrics"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(number) => write!(f, "fd:{number}"),
        }
    }
}

/// The pages that are answered with; none before the first window is over.
#[derive(Clone, Debug, Default)]
pub struct Page {
    shown: Arc<Mutex<Option<Arc<RenderedPages>>>>,
    errors: Arc<AtomicU64>,
}

impl Page {
    /// Replaces them.
    pub fn set(&self, shown: RenderedPages) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(shown));
    }

    /// Connections that ended without a whole answer, and requests that were not HTTP.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    fn get(&self) -> Option<Arc<RenderedPages>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection is closed.
    fn closed(&self, is_served: bool) {
        self.errors.fetch_add(u64::from(!is_served), Ordering::Relaxed);
    }
}

/// The running server of the pages; dropping it closes its port.
#[derive(Debug)]
pub struct MetricsServer {
    /// Where it is, with the port that the kernel chose.
    pub address: Address,
    /// The file of a Unix socket that goes with it.
    own_file: Option<SocketFile>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Answers on this socket.
    pub(crate) fn of(
        listener: Socket,
        address: &Address,
        own_file: Option<SocketFile>,
        page: Page,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let tcp = listener.local_addr()?.as_socket();
        let address = tcp.map_or_else(|| address.clone(), Address::Tcp);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("rxp-export".into())
            .spawn(move || Server { listener, page, open: VecDeque::new() }.run(&seen))?;
        Ok(Self { address, own_file, stop, thread: Some(thread) })
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // Before the socket closes: a new exporter may replace a stale file at any time, and its own would be removed.
        if let Some(file) = &self.own_file {
            file.remove();
        }
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection: first its head is read, then its answer is sent.
#[derive(Debug)]
struct Open {
    stream: Socket,
    since: Instant,
    head: Vec<u8>,
    reply: Option<Vec<u8>>,
    /// The request is no HTTP, or too long.
    is_refused: bool,
    sent: usize,
}

impl Open {
    fn new(stream: Socket) -> Self {
        let (since, head) = (Instant::now(), Vec::new());
        Self { stream, since, head, reply: None, is_refused: false, sent: 0 }
    }

    fn wants(&self) -> PollFlags {
        if self.reply.is_some() { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// Whether it had a good request and all of the answer.
    fn is_served(&self) -> bool {
        !self.is_refused && self.reply.as_ref().is_some_and(|reply| self.sent >= reply.len())
    }

    /// Reads and writes until that would block; `false` when it is done.
    fn go_on(&mut self, page: &Page) -> bool {
        match self.step(page) {
            Ok(is_open) => is_open,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    fn step(&mut self, page: &Page) -> io::Result<bool> {
        while self.reply.is_none() {
            let mut bytes = [0; 2048];
            let room = (HEAD_BYTES - self.head.len()).min(bytes.len());
            let count = self.stream.read(&mut bytes[..room])?;
            if count == 0 {
                return Ok(false);
            }
            self.head.extend_from_slice(&bytes[..count]);
            let page = page.get();
            let answer = answer(&self.head);
            self.is_refused = matches!(answer, HttpResponse::Bad | HttpResponse::Long);
            self.reply = answer.bytes(page.as_deref(), wants_body(&self.head));
        }
        let reply = self.reply.as_deref().unwrap_or_default();
        while self.sent < reply.len() {
            self.sent += self.stream.write(&reply[self.sent..])?;
        }
        Ok(false)
    }
}

struct Server {
    listener: Socket,
    page: Page,
    open: VecDeque<Open>,
}

impl Server {
    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let ready = self.wait();
            // The first one is the listener's.
            let mut ready = ready.into_iter();
            let is_new = ready.next().unwrap_or(false);
            let page = &self.page;
            self.open.retain_mut(|open| {
                let is_ready = ready.next().unwrap_or(false);
                let stays = (!is_ready || open.go_on(page)) && open.since.elapsed() < LIFE;
                if !stays {
                    page.closed(open.is_served());
                }
                stays
            });
            if is_new {
                self.accept();
            }
        }
    }

    /// Waits; whether there is something to do for the listener and for each connection.
    fn wait(&self) -> Vec<bool> {
        let listener = PollFd::new(self.listener.as_fd(), PollFlags::POLLIN);
        let connections =
            self.open.iter().map(|open| PollFd::new(open.stream.as_fd(), open.wants()));
        let mut all: Vec<PollFd<'_>> = std::iter::once(listener).chain(connections).collect();
        let polled = poll(&mut all, PollTimeout::from(LOOK_MS));
        ready(polled, &all)
    }

    fn accept(&mut self) {
        // One round takes no more than fit: those that came first are looked at before the rest.
        for _ in 0..CONNECTIONS {
            match self.listener.accept4(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) {
                Ok((stream, _)) => {
                    if self.open.len() >= CONNECTIONS && self.open.pop_front().is_some() {
                        self.page.closed(false);
                    }
                    let mut open = Open::new(stream);
                    // Most have sent their request by now.
                    if open.go_on(&self.page) {
                        self.open.push_back(open);
                    } else {
                        self.page.closed(open.is_served());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // why: without a descriptor the listener stays ready, and the loop would spin.
                    std::thread::sleep(REST);
                    return;
                }
            }
        }
    }
}

/// Which descriptors are ready. After a failed `poll` none is, and the thread pauses. **Source** `do_sys_poll`, fs/select.c:
/// EINVAL for more descriptors than `RLIMIT_NOFILE`, ENOMEM, EINTR.
fn ready(polled: nix::Result<i32>, all: &[PollFd<'_>]) -> Vec<bool> {
    match polled {
        Ok(_) => all.iter().map(|fd| fd.any().unwrap_or(false)).collect(),
        Err(errno) => {
            // After a signal the next one waits.
            if errno != Errno::EINTR {
                // why: the next poll would fail at once too, and the loop would spin.
                std::thread::sleep(REST);
            }
            vec![false; all.len()]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn tcp() -> Address {
        Address::Tcp(([127, 0, 0, 1], 0).into())
    }

    fn shown(metrics: &str) -> RenderedPages {
        RenderedPages { metrics: metrics.to_owned(), status: String::new() }
    }

    fn open(address: &Address, page: Page) -> io::Result<MetricsServer> {
        crate::reserved::Reserved::new(address)?.open(page)
    }

    fn get(port: &MetricsServer, request: &str) -> String {
        let mut text = String::new();
        match &port.address {
            Address::Tcp(address) => {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                stream.read_to_string(&mut text).unwrap();
            }
            Address::Unix(path) => {
                let mut stream = UnixStream::connect(path).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                stream.read_to_string(&mut text).unwrap();
            }
            Address::Inherited(_) => unreachable!(),
        }
        text
    }

    const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";

    #[test]
    fn a_scraper_is_served_while_a_thousand_connections_say_nothing() {
        let page = Page::default();
        let port = open(&tcp(), page.clone()).unwrap();
        assert!(get(&port, METRICS).starts_with("HTTP/1.1 503"));
        page.set(shown("a 1\n"));
        let Address::Tcp(address) = port.address else { unreachable!() };
        let silent: Vec<TcpStream> =
            (0..1000).map(|_| TcpStream::connect(address).unwrap()).collect();
        for _ in 0..20 {
            assert!(get(&port, METRICS).ends_with("\r\n\r\na 1\n"));
        }
        // Those that had to go for others, at least.
        assert!(page.errors() >= (1000 - CONNECTIONS) as u64, "{}", page.errors());
        drop(silent);
    }

    #[test]
    fn a_large_page_arrives_whole() {
        let page = Page::default();
        page.set(shown(&"x".repeat(4 << 20)));
        let port = open(&tcp(), page).unwrap();
        // On a busy machine it may take longer than a connection lives.
        assert!((0..20).any(|_| get(&port, METRICS).len() > 4 << 20));
    }

    #[test]
    fn a_silent_connection_is_closed_after_its_time() {
        let page = Page::default();
        let port = open(&tcp(), page.clone()).unwrap();
        let Address::Tcp(address) = port.address else { unreachable!() };
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metr").unwrap();
        assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
        assert_eq!(page.errors(), 1);
    }

    #[test]
    fn what_is_no_http_is_counted_and_what_is_answered_is_not() {
        let page = Page::default();
        let port = open(&tcp(), page.clone()).unwrap();
        get(&port, "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
        get(&port, METRICS);
        assert_eq!(page.errors(), 0);
        assert!(get(&port, "\u{16}\u{3}\u{1} TLS\r\n\r\n").starts_with("HTTP/1.1 400 "));
        assert_eq!(page.errors(), 1);
    }

    #[test]
    fn a_failed_poll_is_followed_by_a_pause() {
        let input = std::io::stdin();
        let all = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        for errno in [Errno::EINVAL, Errno::ENOMEM] {
            let begun = Instant::now();
            assert_eq!(ready(Err(errno), &all), [false]);
            assert!(begun.elapsed() >= REST, "{errno}: the next poll comes at once");
        }
    }

    #[test]
    fn the_file_of_a_socket_is_removed_while_the_socket_listens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.sock");
        let (socket, file) = SocketFile::bind(&path).unwrap();
        let (address, stop) = (Address::Unix(path.clone()), Arc::default());
        let (say, is_removed) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(20);
            while path.exists() && Instant::now() < deadline {
                // why: the pace of looking; the deadline above ends it.
                std::thread::sleep(Duration::from_millis(1));
            }
            say.send(!path.exists()).unwrap();
            drop(socket);
        });
        drop(MetricsServer { address, own_file: Some(file), stop, thread: Some(thread) });
        assert!(is_removed.recv().unwrap());
    }

    #[test]
    fn a_left_socket_is_replaced_and_another_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export.sock");
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let page = Page::default();
        page.set(shown("a 1\n"));
        let port = open(&address, page.clone()).unwrap();
        assert!(get(&port, METRICS).ends_with("a 1\n"));
        let second = open(&address, page.clone());
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(port);
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        assert!(open(&address, page).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
