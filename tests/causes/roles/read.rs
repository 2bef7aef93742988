//! A UDP reader with a configured slowness: one datagram per call.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use nix::time::{ClockId, clock_gettime};

use super::counts::Counts;
use super::words::Words;

/// Works for so much time on a CPU: time that other programs have does not count.
pub fn work(time: Duration) {
    if time.is_zero() {
        return;
    }
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let begun = now();
    while now().saturating_sub(begun) < time {
        std::hint::spin_loop();
    }
}

/// `at=IP:PORT`, `rcvbuf=BYTES`, `group` (SO_REUSEPORT), `gro`, `filter=KEPT` (one of KEPT datagrams passes),
/// `device=IF`, `join=GROUP`, `v6only`, `from=IP:PORT` (connected).
pub fn open(words: &Words) -> UdpSocket {
    let at: SocketAddr = words.get("at", "10.88.0.2:9700".parse().unwrap());
    let family = if at.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let fd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).unwrap();
    if words.has("group") {
        setsockopt(&fd, sockopt::ReusePort, &true).unwrap();
    }
    if words.has("reuse") {
        setsockopt(&fd, sockopt::ReuseAddr, &true).unwrap();
    }
    if words.has("v6only") {
        setsockopt(&fd, sockopt::Ipv6V6Only, &true).unwrap();
    }
    if words.has("rcvbuf") {
        setsockopt(&fd, sockopt::RcvBufForce, &words.get("rcvbuf", 0)).unwrap();
    }
    if words.has("gro") {
        setsockopt(&fd, sockopt::UdpGroSegment, &true).unwrap();
    }
    if let Some(device) = words.text("device") {
        setsockopt(&fd, sockopt::BindToDevice, &device.into()).unwrap();
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(at)).unwrap();
    if words.has("filter") {
        filter(&fd, words.get("filter", 4));
    }
    let socket = UdpSocket::from(fd);
    if let Some(group) = words.text("join") {
        socket.join_multicast_v4(&group.parse().unwrap(), &"10.88.0.2".parse().unwrap()).unwrap();
    }
    if let Some(from) = words.text("from") {
        socket.connect(from).unwrap();
    }
    socket
}

/// SO_ATTACH_FILTER: the kernel's random number, modulo `keep`, has to be zero.
fn filter(fd: &impl AsRawFd, keep: u32) {
    use nix::libc;
    let line = |code: u16, jf: u8, k: u32| libc::sock_filter { code, jt: 0, jf, k };
    // ld random; mod keep; jeq 0, or drop; ret all; ret none. SKF_AD_OFF + SKF_AD_RANDOM is where the number is.
    let mut lines = [
        line(0x20, 0, (-0x1000i32 + 56) as u32),
        line(0x94, 0, keep),
        line(0x15, 1, 0),
        line(0x06, 0, 0xffff),
        line(0x06, 0, 0),
    ];
    let program = libc::sock_fprog { len: lines.len() as u16, filter: lines.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which outlives the call.
    let set = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&program).cast(),
            size_of_val(&program) as u32,
        )
    };
    assert_eq!(set, 0, "SO_ATTACH_FILTER");
}

/// How one thread goes about it.
#[derive(Clone)]
struct Pace {
    work: Duration,
    nap: Duration,
    /// Sleeps for so long of each `every`.
    stall: Duration,
    every: Duration,
    /// It computes instead of sleeping.
    burn: bool,
    fsync: Option<String>,
    /// Bytes of one datagram; 0: not known.
    segment: usize,
    /// Takes each datagram over, when it has time.
    logger: Option<SyncSender<()>>,
}

impl Pace {
    fn of(words: &Words, thread: usize) -> Self {
        let slow = words.has("slow") && words.get("slow", 0) == thread;
        Self {
            work: words.micros(if slow { "slow-work" } else { "work" }),
            nap: words.micros("nap"),
            stall: words.millis("stall"),
            every: words.millis("every"),
            burn: words.has("burn"),
            fsync: words.text("fsync").map(str::to_owned),
            segment: words.get("segment", 0),
            logger: words.has("logger").then(|| logger(words.millis("logger"))),
        }
    }

    fn go_on(&self, socket: &UdpSocket, counts: Counts) {
        let mut file = self.fsync.as_ref().map(|path| File::create(path).unwrap());
        let mut bytes = vec![0; 65_536];
        let mut pause = Instant::now();
        loop {
            if !self.stall.is_zero() && pause.elapsed() + self.stall >= self.every {
                if self.burn {
                    work(self.stall);
                } else {
                    std::thread::sleep(self.stall);
                }
                pause = Instant::now();
            }
            let Ok(length) = socket.recv(&mut bytes) else { continue };
            let datagrams = if self.segment == 0 { 1 } else { length.div_ceil(self.segment) };
            counts.add(0, datagrams as u64);
            work(self.work * datagrams as u32);
            if let Some(file) = &mut file {
                file.write_all(&bytes[..16]).unwrap();
                file.sync_all().unwrap();
            }
            if let Some(logger) = &self.logger {
                logger.send(()).unwrap();
            }
            if !self.nap.is_zero() {
                std::thread::sleep(self.nap);
            }
        }
    }
}

/// A thread that needs so long for each datagram that it is handed, and lets who hands it over wait.
fn logger(time: Duration) -> SyncSender<()> {
    let (hand, take) = sync_channel(0);
    std::thread::spawn(move || {
        while take.recv().is_ok() {
            std::thread::sleep(time);
        }
    });
    hand
}

/// Opens and closes the socket in turns.
fn reopen(words: &Words, counts: Counts) {
    let (open_for, closed_for) = (words.millis("open"), words.millis("closed"));
    loop {
        let (socket, begun) = (open(words), Instant::now());
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        while begun.elapsed() < open_for {
            if socket.recv(&mut [0; 2048]).is_ok() {
                counts.add(0, 1);
                work(words.micros("work"));
            }
        }
        drop(socket);
        std::thread::sleep(closed_for);
    }
}

/// `threads=N` on one socket, or each on one of a `group`; `idle`: has sockets and does not read; `ports=N` sockets,
/// one each thread.
pub fn play(words: &Words) {
    let counts = Counts::open();
    super::hog::priority(words);
    if words.has("open") {
        counts.ready();
        words.pin(1);
        return reopen(words, counts);
    }
    let threads: usize = words.get("threads", 1);
    let shared = Arc::new(open(words));
    let sockets: Vec<Arc<UdpSocket>> = (0..threads)
        .map(|at| if words.has("group") && at > 0 { Arc::new(open(words)) } else { shared.clone() })
        .collect();
    std::thread::scope(|scope| {
        for (at, socket) in sockets.iter().enumerate().skip(1) {
            scope.spawn(move || {
                words.pin(1);
                Pace::of(words, at).go_on(socket, counts);
            });
        }
        words.pin(1);
        counts.ready();
        while words.has("idle") {
            std::thread::park();
        }
        Pace::of(words, 0).go_on(&shared, counts);
    });
}
