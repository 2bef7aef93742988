//! Opening a sender: checks, sockets, options, threads.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use rxpath_core::Warning;

use crate::LoadError;
use crate::buffers;
use crate::engine::listen;
use crate::engine::raw::Ends;
use crate::engine::socket::{Buffer, Socket};
use crate::pace;
use crate::pool::Pool;
use crate::udp::header::HEADER_BYTES;
use crate::udp::load::fill::Layout;
use crate::udp::load::options::{LoadOptions, LoadSettings};
use crate::udp::load::worker::{Flow, Plan};
use crate::udp::load::{Load, check, worker};

/// Messages that the default send buffer holds.
const SNDBUF_MESSAGES: u64 = 2000;
/// Least default send buffer.
const SNDBUF_LEAST: u64 = 4 << 20;

pub(super) fn open(mut options: LoadOptions) -> Result<Load, LoadError> {
    check::check(&options)?;
    let targets = options.to.len();
    let flows_each = options.flows.unwrap_or_else(|| options.threads.count.div_ceil(targets));
    options.flows = Some(flows_each);
    let mut warnings = Vec::new();
    let tag = (std::hash::RandomState::new().build_hasher().finish() as u32) << 16;
    let mut flows = Vec::with_capacity(targets * flows_each);
    let mut is_forced = true;
    for index in 0..flows_each {
        for to in &options.to {
            let number = flows.len() as u32;
            let (flow, forced) = open_flow(&options, *to, index as u16, tag | number)?;
            flows.push(flow);
            is_forced &= forced;
        }
    }
    let settings = settle(&options, &flows, is_forced, &mut warnings)?;
    let pool = Pool::new("rx-load", &options.threads);
    let mut load = Load { settings, warnings, pool, options };
    start_workers(&mut load, flows)?;
    Ok(load)
}

/// A flow, and whether its send buffer was forced.
fn open_flow(
    options: &LoadOptions,
    to: SocketAddr,
    index: u16,
    stream: u32,
) -> Result<(Flow, bool), LoadError> {
    let socket = Socket::udp(to).map_err(|e| LoadError::io("socket", e))?;
    if options.source.is_some() || options.source_port.is_some() {
        bind(&socket, options, to, index)?;
    }
    let connect = |socket: &Socket| socket.connect(to).map_err(|e| connect_error(to, e));
    let bytes = options.sndbuf.unwrap_or_else(|| default_sndbuf(options));
    let mut flow = Flow { socket, stream, sequence: 0, aim: None, raw: None };
    if options.corrupt_checksum {
        connect(&flow.socket)?;
        let from = flow.socket.local().map_err(|e| LoadError::io("getsockname", e))?;
        let raw = Socket::raw(to).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => LoadError::Denied {
                what: "--corrupt checksum (a raw socket)".into(),
                needs: "CAP_NET_RAW",
            },
            _ => LoadError::io("raw socket", source),
        })?;
        // A raw socket takes no port.
        flow.aim = Some(SocketAddr::new(to.ip(), 0).into());
        flow.raw = Some((Ends { from, to }, std::mem::replace(&mut flow.socket, raw)));
    } else if options.unconnected {
        flow.aim = Some(to.into());
    } else {
        connect(&flow.socket)?;
    }
    let is_forced = buffers::set(&flow.socket, Buffer::Send, bytes)?;
    Ok((flow, is_forced))
}

fn bind(
    socket: &Socket,
    options: &LoadOptions,
    to: SocketAddr,
    index: u16,
) -> Result<(), LoadError> {
    let any: std::net::IpAddr =
        if to.is_ipv4() { [0, 0, 0, 0].into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    let port = options.source_port.map_or(0, |port| port + index);
    let from = SocketAddr::new(options.source.unwrap_or(any), port);
    if options.to.len() > 1 {
        // One source port towards several destinations: as many sockets on it.
        socket.reuse_address().map_err(|e| LoadError::io("SO_REUSEADDR", e))?;
    }
    socket.bind(from).map_err(|e| listen::refusal("bind", from, e))
}

fn connect_error(to: SocketAddr, source: io::Error) -> LoadError {
    let hint = match source.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            format!("this host has no route to {}; check with `ip route get {}`", to.ip(), to.ip())
        }
        Some(libc::EACCES) => "broadcast addresses are not supported".into(),
        Some(libc::EINVAL) if to.is_ipv6() => {
            "link-local addresses need their interface: [fe80::1%2]:9".into()
        }
        _ => String::new(),
    };
    LoadError::Address { op: "connect", addr: to.to_string(), source, hint }
}

/// Enough for 2000 messages: an skb's truesize is its data, the shared info and head (under 1 KiB) and
/// what its allocator rounds up.
fn default_sndbuf(options: &LoadOptions) -> u64 {
    let message = (options.size * options.segments()) as u64;
    (SNDBUF_MESSAGES * (message + message / 4 + 1024)).clamp(SNDBUF_LEAST, 1 << 30)
}

fn settle(
    options: &LoadOptions,
    flows: &[Flow],
    sndbuf_forced: bool,
    warnings: &mut Vec<Warning>,
) -> Result<LoadSettings, LoadError> {
    let asked = options.sndbuf.unwrap_or_else(|| default_sndbuf(options));
    let sndbuf_bytes =
        flows[0].socket.meminfo().map_err(|e| LoadError::io("SO_MEMINFO", e))?.sndbuf_bytes;
    warnings.extend(buffers::capped(Buffer::Send, asked, sndbuf_bytes));
    let (mtu, fragments) = check::mtu(options, warnings)?;
    let share = pace::Share {
        rate_per_s: options.rate_pps.unwrap_or(1),
        each: options.segments() as u64,
        thread: 0,
        threads: options.threads.count as u64,
    };
    let from = |flow: &Flow| flow.raw.as_ref().map_or(&flow.socket, |(_, port)| port).local();
    Ok(LoadSettings {
        to: options.to.clone(),
        from: flows.iter().take(64).filter_map(|flow| from(flow).ok()).collect(),
        flows_count: flows.len(),
        size_bytes: options.size,
        header: if options.size < HEADER_BYTES {
            "none: a header needs 16 bytes, so the receiver cannot detect loss"
        } else {
            "stream, sequence number, send time"
        }
        .into(),
        threads_count: options.threads.count,
        cpus: options.threads.cpus.clone(),
        nice: options.threads.nice,
        batch: options.batch,
        call: if options.batch == 1 { "send" } else { "sendmmsg" }.into(),
        gso_segments: options.gso,
        connected: !options.unconnected && !options.corrupt_checksum,
        corrupt_checksum: options.corrupt_checksum,
        target_pps: options.rate_pps,
        pacing: match options.rate_pps {
            Some(_) => pace::describe(options.pacing, share),
            None => "none: as fast as possible".into(),
        },
        sndbuf_bytes,
        sndbuf_forced,
        mtu_bytes: mtu,
        fragments_per_datagram: fragments,
        count: options.count,
        duration_s: options.duration_ns.map(|ns| ns as f64 / 1e9),
    })
}

fn start_workers(load: &mut Load, flows: Vec<Flow>) -> Result<(), LoadError> {
    let options = &load.options;
    let threads = options.threads.count;
    let front = flows[0].raw.as_ref().map_or(0, |(ends, _)| ends.header_bytes());
    let layout = Layout { size: options.size, segments: options.segments(), front };
    let mut shares: Vec<Vec<Flow>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, flow) in flows.into_iter().enumerate() {
        shares[index % threads].push(flow);
    }
    for (index, flows) in shares.into_iter().enumerate() {
        let plan = Plan {
            flows,
            layout,
            options: options.clone(),
            messages: options.count.map_or(u64::MAX, |count| {
                options.threads.share(count / options.segments() as u64, index)
            }),
        };
        load.pool.start(move |start| worker::run(plan, start))?;
    }
    Ok(())
}
