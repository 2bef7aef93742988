//! Opening a receiver: checks, sockets, options, threads.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::batch::MAX_BATCH;
use crate::engine::socket::{Buffer, Socket, UDP_GRO};
use crate::engine::{listen, steer};
use crate::pool::Pool;
use crate::udp::serve::options::{ServeEngine, ServeOptions, ServeSettings, Sockets, Steer};
use crate::udp::serve::{Serve, worker, xdp};
use crate::{buffers, busy_poll};

/// Buffers of plain datagrams: an Ethernet frame and some.
const BUFFER_BYTES: usize = 2048;
/// Buffers of aggregates: the most that an IP packet carries.
const GRO_BUFFER_BYTES: usize = 65_535;

impl Serve {
    /// Opens the sockets and starts the threads; from here on datagrams are read and counted.
    pub fn open(options: ServeOptions) -> Result<Self, LoadError> {
        check(&options)?;
        if options.engine != ServeEngine::Socket {
            return xdp::open(options);
        }
        let mut warnings = Vec::new();
        let (sockets, is_forced) = open_sockets(&options, &mut warnings)?;
        let settings = settle(&options, &sockets, is_forced, &mut warnings)?;
        let pool = Pool::new("rx-serve", &options.threads);
        let sockets = sockets.into_iter().map(Arc::new).collect();
        let mut serve = Self { options, settings, warnings, sockets, taken: None, pool };
        for index in 0..serve.options.threads.count {
            let plan = worker::Plan {
                socket: Arc::clone(&serve.sockets[serve.socket_of(index)]),
                alone: serve.sockets.len() == serve.options.threads.count,
                buffer_bytes: serve.settings.buffer_bytes,
                options: serve.options.clone(),
            };
            serve.pool.start(move |start| worker::run(&plan, start))?;
        }
        serve.pool.shared.count_cpu_time();
        Ok(serve)
    }
}

fn check(options: &ServeOptions) -> Result<(), LoadError> {
    let bad = |what: &str, hint: &str| Err(LoadError::usage(what, hint));
    if !(1..=MAX_BATCH).contains(&options.batch) {
        return bad("--batch: 1 to 1024 messages per call", "the kernel accepts at most 1024");
    }
    if options.batch == 1 && (options.gro || options.stamps) {
        let what = "--batch 1 uses plain recv, which cannot return the data of --gro or --stamps";
        return bad(what, "use --batch 2");
    }
    // A socket of its own, or none.
    options.threads.check("read", u64::from(options.sockets == Sockets::Reuseport))?;
    if options.steer == Steer::Cpu && options.sockets == Sockets::Shared {
        return bad("--steer cpu: there is one socket to steer to", "add --sockets reuseport");
    }
    if options.size > 65_507 {
        return bad("--size: a UDP datagram holds at most 65507 bytes", "choose a smaller size");
    }
    xdp::check(options)
}

/// The sockets, and whether their receive buffers were forced.
fn open_sockets(
    options: &ServeOptions,
    warnings: &mut Vec<Warning>,
) -> Result<(Vec<Socket>, bool), LoadError> {
    let mut is_forced = options.rcvbuf.is_some();
    let reuseport = options.sockets == Sockets::Reuseport;
    let sockets = listen::bind_group((options.addr, options.threads.count), reuseport, |addr| {
        let socket = Socket::udp(addr).map_err(|e| LoadError::io("socket", e))?;
        configure(&socket, options)?;
        if let Some(asked) = options.rcvbuf {
            is_forced &= buffers::set(&socket, Buffer::Receive, asked)?;
            let memory = socket.meminfo().map_err(|e| LoadError::io("SO_MEMINFO", e))?;
            let capped = buffers::capped(Buffer::Receive, asked, memory.rcvbuf.into());
            // One for all of the group.
            warnings.extend(capped.filter(|new| warnings.iter().all(|old| old.code != new.code)));
        }
        Ok(socket)
    })?;
    if options.steer == Steer::Cpu {
        steer::by_cpu(&sockets[0], &options.threads.cpus, sockets.len())
            .map_err(LoadError::unsupported("--steer cpu (SO_ATTACH_REUSEPORT_CBPF)"))?;
    }
    Ok((sockets, is_forced))
}

fn configure(socket: &Socket, options: &ServeOptions) -> Result<(), LoadError> {
    if options.gro {
        socket.set(libc::SOL_UDP, UDP_GRO, 1).map_err(LoadError::of_option("--gro (UDP_GRO)"))?;
    }
    if options.stamps {
        let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        socket
            .set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
            .map_err(LoadError::of_option("--stamps (SO_TIMESTAMPING)"))?;
    }
    options.busy_poll.map_or(Ok(()), |poll| busy_poll::set(socket, poll))
}

fn settle(
    options: &ServeOptions,
    sockets: &[Socket],
    rcvbuf_forced: bool,
    warnings: &mut Vec<Warning>,
) -> Result<ServeSettings, LoadError> {
    let memory = sockets[0].meminfo().map_err(|e| LoadError::io("SO_MEMINFO", e))?;
    let truesize = probe_truesize(options.addr, options.size).ok().filter(|size| *size > 0);
    if options.sockets == Sockets::Shared && options.threads.count > 1 {
        warnings.push(
            Warning::new("sequence-per-thread", "each thread counts reordering for itself")
                .because(
                    "several threads read one socket, so the order of their reads is undefined",
                )
                .cure("use --sockets reuseport to count reordering within a flow"),
        );
    }
    let buffer_bytes = if options.gro { GRO_BUFFER_BYTES } else { options.size.max(BUFFER_BYTES) };
    Ok(ServeSettings {
        call: if options.batch == 1 { "recv" } else { "recvmmsg(MSG_WAITFORONE)" }.into(),
        steer: (sockets.len() > 1).then_some(options.steer),
        gro: options.gro,
        busy_poll: options.busy_poll,
        rcvbuf_asked_bytes: options.rcvbuf,
        rcvbuf_bytes: memory.rcvbuf.into(),
        rcvbuf_forced,
        truesize_probe_bytes: truesize,
        capacity_packets: truesize.map(|size| u64::from(memory.rcvbuf) / size),
        buffer_bytes,
        nap_ns: options.nap_ns,
        stamps: options.stamps,
        ..xdp::settle(options, listen::local(&sockets[0])?)
    })
}

/// Memory that a datagram of this size takes in a receive queue: some sent over loopback to a socket that
/// nobody reads. A device's driver may lay its packets out otherwise; local senders do not.
fn probe_truesize(like: SocketAddr, size: usize) -> io::Result<u64> {
    const COUNT: u64 = 8;
    let lo: IpAddr =
        if like.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let receiver = Socket::udp(like)?;
    receiver.bind(SocketAddr::new(lo, 0))?;
    let sender = Socket::udp(like)?;
    sender.connect(receiver.local()?)?;
    let payload = vec![0; size];
    for _ in 0..COUNT {
        sender.send_with(&payload, libc::MSG_DONTWAIT)?;
    }
    // Loopback delivers inside of the send call.
    let queued = u64::from(receiver.meminfo()?.rmem);
    Ok(if queued % COUNT == 0 { queued / COUNT } else { 0 })
}
