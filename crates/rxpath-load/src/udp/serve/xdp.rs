//! Receivers that bypass the stack: an XDP program takes the datagrams from the device, and hands them to AF_XDP sockets
//! or drops them.
//!
//! A UDP socket holds the port, so that nobody else takes it and datagrams that the program leaves to the stack are not
//! answered with an ICMP error. It is never read.

mod read;

use std::net::SocketAddr;
use std::sync::Arc;

use nix::sys::socket::{MsgFlags, recv};
use rxpath_bpf::xdp_receive::{Prepared, XdpAction, XdpCounts, XdpFilter, XdpReceive};
use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::NetworkLink;

use crate::LoadError;
use crate::engine::frame::LONGEST_HEAD;
use crate::engine::socket::Socket;
use crate::engine::xsk::{Frame, HEADROOM, Side, Xsk};
use crate::engine::{clock, listen};
use crate::pool::Pool;
use crate::udp::result::XdpReceiveLedger;
use crate::udp::serve::Serve;
use crate::udp::serve::options::{
    ServeEngine, ServeOptions, ServeSettings, Sockets, Steer, XdpProgramSettings,
};
use crate::udp::serve::worker::Report;
use crate::udp::xdp::{self, XdpSettings, refused_by_host};

/// Ethernet header and a tag.
const LINK_BYTES: usize = 18;

/// More datagrams than a socket's buffer holds.
const MOST_UNREAD: usize = 1 << 22;

/// The program, and the socket that holds the port.
#[derive(Debug)]
pub(super) struct Taken {
    program: Arc<XdpReceive>,
    port: Socket,
}

/// What an XDP receiver cannot have, and what only one has.
pub(super) fn check(options: &ServeOptions) -> Result<(), LoadError> {
    let engine = options.engine.option();
    options.xdp.check(engine, options.engine == ServeEngine::Xdp, options.batch)?;
    if options.engine == ServeEngine::Socket {
        if options.device.is_some() {
            return Err(LoadError::usage("--dev is for --engine xdp and xdp-drop", ""));
        }
        return Ok(());
    }
    let refused = [
        ("--sockets reuseport", options.sockets != Sockets::Shared),
        ("--steer cpu", options.steer != Steer::Hash),
        ("--gro", options.gro),
        ("--busy-poll", options.busy_poll.is_some()),
        ("--rcvbuf", options.rcvbuf.is_some()),
        ("--nap", options.nap_ns.is_some()),
        ("--stamps", options.stamps),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_set)| *is_set) {
        let what = format!("{engine} reads no socket of the kernel's UDP: it excludes {option}");
        return Err(LoadError::usage(what, ""));
    }
    if options.engine == ServeEngine::XdpDrop {
        let of_readers = [
            ("--threads", options.threads.count != 1),
            ("--work", options.work_ns > 0),
            ("--sleep", options.stall.is_some()),
        ];
        if let Some((option, _)) = of_readers.iter().find(|(_, is_set)| *is_set) {
            let what = "--engine xdp-drop reads nothing: one thread looks at the counters";
            return Err(LoadError::usage(what, format!("omit {option}")));
        }
    }
    Ok(())
}

pub(super) fn open(options: ServeOptions) -> Result<Serve, LoadError> {
    let engine = options.engine.option();
    let port = Socket::udp(options.addr).map_err(|e| LoadError::io("socket", e))?;
    port.bind(options.addr).map_err(|e| listen::refusal("bind", options.addr, e))?;
    let addr = listen::local(&port)?;
    let (device, vlan_id) = device(&options)?;
    let is_read = options.engine == ServeEngine::Xdp;
    let action = if is_read { XdpAction::Redirect } else { XdpAction::Drop };
    let wanted = XdpFilter { to: addr, vlan_id };
    // Frames of a queue that nobody knows of would be left out.
    let queues = xdp::queue_count(&device, Side::Receive).max(device.rx_queues);
    let refused = |error| refused_by_host(engine, error);
    let prepared = Prepared::load(&device, queues, wanted, action).map_err(refused)?;
    let mut settings = settle(&options, addr);
    let mut shares = Vec::new();
    if is_read {
        let (sockets, of_sockets) = sockets(&options, &device, &prepared)?;
        settings.xdp = Some(of_sockets);
        shares = sockets;
    }
    // Last: from here on datagrams are taken.
    let program = prepared.attach().map_err(refused)?;
    settings.xdp_program = Some(XdpProgramSettings {
        device: device.name.clone(),
        program_id: program.program_id,
        mode: program.mode,
        vlan_id,
    });
    let program = Arc::new(program);
    let pool = Pool::new("rx-serve", &options.threads);
    let taken = Some(Taken { program: Arc::clone(&program), port });
    let (warnings, sockets) = (Vec::new(), Vec::new());
    let mut serve = Serve { options, settings, warnings, sockets, taken, pool };
    for sockets in shares {
        let options = serve.options.clone();
        serve.pool.start(move |start| read::run(sockets, &options, start))?;
    }
    if !is_read {
        serve.pool.start(move |start| read::watch(&program, start))?;
    }
    serve.pool.shared.count_cpu_time();
    Ok(serve)
}

type Sharing = Vec<Vec<(Xsk, Vec<Frame>)>>;

/// The sockets of each thread, one for each queue, which the program knows from its first frame on.
fn sockets(
    options: &ServeOptions,
    device: &NetworkLink,
    program: &Prepared,
) -> Result<(Sharing, XdpSettings), LoadError> {
    let threads = options.threads.count;
    // All queues are read, unless somebody chooses some.
    let all = xdp::queue_count(device, Side::Receive) as usize;
    let count = if options.xdp.queue.is_some() { threads } else { all.max(threads) };
    // Where the MTU is that of jumbo frames or more, the socket drops and counts what is longer than asked for.
    let (most, asked) =
        (HEADROOM + LINK_BYTES + device.mtu as usize, HEADROOM + LONGEST_HEAD + options.size);
    let longest = most.min(asked.max(xdp::MOST_FRAME_BYTES));
    let (opened, settings) = xdp::open(device, Side::Receive, &options.xdp, count, longest)?;
    let mut shares: Sharing = Vec::new();
    shares.resize_with(threads, Vec::new);
    for (index, ((mut xsk, mut frames), queue)) in
        opened.into_iter().zip(&settings.queues).enumerate()
    {
        xsk.fill(&mut frames);
        program
            .set_socket(*queue, xsk.socket().fd())
            .map_err(|error| refused_by_host(options.engine.option(), error))?;
        shares[index % threads].push((xsk, frames));
    }
    Ok((shares, settings))
}

/// The device that the datagrams come in by, and the tag of their frames.
fn device(options: &ServeOptions) -> Result<(NetworkLink, Option<u16>), LoadError> {
    let engine = options.engine.option();
    let ip = options.addr.ip();
    let refused = |error: HostError| refused_by_host(engine, error);
    let mut netlink = Netlink::route().map_err(refused)?;
    let link = match &options.device {
        Some(name) => netlink.link(name).map_err(refused)?,
        None if ip.is_unspecified() => {
            let what = format!("{engine} takes datagrams from one device, and {ip} is on all");
            return Err(LoadError::usage(what, "give it: --dev NAME, or one address"));
        }
        None => {
            let all = netlink.addresses().map_err(refused)?;
            let found = all.iter().find(|address| address.ip == ip);
            let found = found.ok_or_else(|| {
                LoadError::usage(format!("{engine}: no device has {ip}"), "give it: --dev NAME")
            })?;
            netlink.link_at(found.index).map_err(refused)?
        }
    };
    if link.vlan_id.is_none() {
        return Ok((link, None));
    }
    // The program sees frames before their tag is taken off.
    let below = netlink.other_end(&link).map_err(refused)?;
    Ok((below, link.vlan_id))
}

/// What is in force without a socket of the kernel's UDP; one that has sockets says what differs.
pub(super) fn settle(options: &ServeOptions, addr: SocketAddr) -> ServeSettings {
    let is_read = options.engine == ServeEngine::Xdp;
    ServeSettings {
        addr,
        threads: options.threads.clone(),
        batch: options.batch,
        call: if is_read { "poll of AF_XDP sockets" } else { "none: the program only counts" }
            .into(),
        sockets: options.sockets,
        steer: None,
        gro: false,
        busy_poll: None,
        rcvbuf_asked_bytes: None,
        rcvbuf_bytes: 0,
        rcvbuf_forced: false,
        size_bytes: options.size,
        truesize_probe_bytes: None,
        capacity_packets: None,
        buffer_bytes: 0,
        work_ns: options.work_ns,
        nap_ns: None,
        stall: options.stall,
        stamps: false,
        one_way_delay: one_way_delay(options),
        engine: options.engine,
        xdp_program: None,
        xdp: None,
    }
}

/// When one-way delay is given.
fn one_way_delay(options: &ServeOptions) -> String {
    if !options.sender_clocks.is_empty() {
        "given for senders whose clocks the experiment compared"
    } else if clock::identity() == 0 {
        "not given: this clock's identity cannot be read"
    } else {
        "given for datagrams whose sender has the same clock identity (boot id and time namespace)"
    }
    .into()
}

impl Taken {
    /// What became of the frames, once the readers have ended.
    pub(super) fn ledger(&self, reports: &[Report]) -> Result<XdpReceiveLedger, LoadError> {
        let counts = self.program.counts().map_err(|e| refused_by_host("--engine xdp", e))?;
        let XdpCounts { matched, redirected, dropped, passed, others } = counts;
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum();
        Ok(XdpReceiveLedger {
            matched_packets: matched,
            redirected_packets: redirected,
            dropped_packets: dropped,
            passed_packets: passed,
            other_packets: others,
            unread_packets: unread(&self.port),
            socket_dropped_packets: sum(|report| report.xdp.rx_dropped),
            ring_full_packets: sum(|report| report.xdp.rx_ring_full),
            fill_ring_empty_count: sum(|report| report.xdp.fill_ring_empty),
        })
    }
}

/// Empties the socket that holds the port.
fn unread(port: &Socket) -> u64 {
    let next = || recv(port.fd(), &mut [0], MsgFlags::MSG_DONTWAIT);
    // More may come meanwhile.
    std::iter::from_fn(|| next().ok()).take(MOST_UNREAD).count() as u64
}

/// That datagrams went to the stack, where nobody reads them.
pub(super) fn left_to_the_stack(ledger: XdpReceiveLedger) -> Option<Warning> {
    let XdpReceiveLedger { passed_packets: passed, unread_packets: unread, .. } = ledger;
    let warning = |count: u64| {
        let count = grouped(count);
        let text = format!("{count} datagrams were left to the stack, where nobody reads them");
        Warning::new("left-to-the-stack", text)
    };
    if passed > 0 {
        let why = "they came in by queues without an AF_XDP socket";
        return Some(warning(passed).because(why).cure("read all queues: omit --xdp-queue"));
    }
    let why = "they came in fragments, with IP options, or by another device";
    let cure = "send datagrams that fit the MTU to an address of this device";
    (unread > 0).then(|| warning(unread).because(why).cure(cure))
}
