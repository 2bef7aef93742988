//! Opening a sender: checks, sockets, options, threads.

use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;

use rxpath_core::Warning;

use crate::LoadError;
use crate::buffers;
use crate::engine::socket::{Buffer, Socket};
use crate::engine::{clock, listen};
use crate::pace;
use crate::pool::{Pool, Start};
use crate::udp::header::{HEADER_BYTES, first_stream};
use crate::udp::load::options::{Engine, LoadOptions, LoadSettings, Pacing};
use crate::udp::load::transmit::Flow;
use crate::udp::load::transmit::raw::RawSockets;
use crate::udp::load::transmit::socket::UdpSockets;
use crate::udp::load::transmit::xsk::XskSockets;
use crate::udp::load::worker::{Plan, Report};
use crate::udp::load::{Load, check, live_frames, worker};

/// Messages that the default send buffer holds.
const SNDBUF_MESSAGES: u64 = 2000;
/// Least default send buffer.
const SNDBUF_LEAST: u64 = 4 << 20;

impl Load {
    /// Opens the sockets of the engine that the options want and starts the threads, which wait for
    /// [`WorkloadHandle::start`](crate::workload::WorkloadHandle::start).
    pub fn open(options: LoadOptions) -> Result<Self, LoadError> {
        match options.engine {
            Engine::Socket => open_with(options, worker::run::<UdpSockets>),
            Engine::RawBadChecksum => open_with(options, worker::run::<RawSockets>),
            Engine::Xdp => open_with(options, worker::run::<XskSockets>),
            Engine::XdpFrames => open_with(options, live_frames::run),
        }
    }
}

/// What a thread does with its flows.
type Run<F> = fn(Plan<F>, &Start<'_>) -> Result<Report, LoadError>;

fn open_with<F: Flow>(mut options: LoadOptions, run: Run<F>) -> Result<Load, LoadError> {
    check::check(&options)?;
    let targets = options.to.len();
    let flows_each = options.flows.unwrap_or_else(|| options.threads.count.div_ceil(targets));
    options.flows = Some(flows_each);
    let mut warnings = Vec::new();
    let mut flows = Vec::with_capacity(targets * flows_each);
    let mut is_forced = true;
    for index in 0..flows_each {
        for to in &options.to {
            let (flow, forced) = open_flow::<F>(&options, *to, index as u16)?;
            flows.push(flow);
            is_forced &= forced;
        }
    }
    let settings = settle(&options, &flows, is_forced, &mut warnings)?;
    let pool = Pool::new("rx-load", &options.threads);
    let mut load = Load { options, settings, warnings, pool };
    start_workers(&mut load, flows, run)?;
    Ok(load)
}

/// A flow, and whether its send buffer was forced.
fn open_flow<F: Flow>(
    options: &LoadOptions,
    to: SocketAddr,
    index: u16,
) -> Result<(F, bool), LoadError> {
    let socket = Socket::udp(to).map_err(|e| LoadError::io("socket", e))?;
    if options.source.is_some() || options.source_port.is_some() {
        bind(&socket, options, to, index)?;
    }
    let flow = F::open(socket, to, options)?;
    let bytes = options.sndbuf.unwrap_or_else(|| default_sndbuf(options));
    let buffer = flow.send_buffer();
    let is_forced = buffer.map_or(Ok(false), |socket| buffers::set(socket, Buffer::Send, bytes))?;
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
        socket.0.set_reuse_address(true).map_err(|e| LoadError::io("SO_REUSEADDR", e))?;
    }
    socket.bind(from).map_err(|e| listen::refusal("bind", from, e))
}

/// Enough for 2000 messages: an skb's truesize is its data, the shared info and head (under 1 KiB) and
/// what its allocator rounds up.
pub(super) fn default_sndbuf(options: &LoadOptions) -> u64 {
    let message = (options.size * options.segments()) as u64;
    (SNDBUF_MESSAGES * (message + message / 4 + 1024)).clamp(SNDBUF_LEAST, 1 << 30)
}

fn settle<F: Flow>(
    options: &LoadOptions,
    flows: &[F],
    sndbuf_forced: bool,
    warnings: &mut Vec<Warning>,
) -> Result<LoadSettings, LoadError> {
    let asked = options.sndbuf.unwrap_or_else(|| default_sndbuf(options));
    let memory = flows[0].send_buffer().map(Socket::meminfo).transpose();
    let memory = memory.map_err(|e| LoadError::io("SO_MEMINFO", e))?;
    let sndbuf_bytes = memory.map(|memory| u64::from(memory.sndbuf));
    warnings.extend(sndbuf_bytes.and_then(|got| buffers::capped(Buffer::Send, asked, got)));
    let (mtu, fragments) = check::mtu(options, warnings)?;
    let rate_pps = options.rate_pps.unwrap_or(1);
    let share = pace::Share::of(rate_pps, options.segments(), (0, options.threads.count));
    let bypasses_udp = options.engine.bypasses_udp();
    Ok(LoadSettings {
        to: options.to.clone(),
        from: flows.iter().take(64).filter_map(|flow| flow.source().ok()).collect(),
        flows_count: flows.len(),
        size_bytes: options.size,
        header: if options.size < HEADER_BYTES {
            "none: a header needs 16 bytes, so the receiver cannot detect loss"
        } else {
            "stream, sequence number, send time"
        }
        .into(),
        threads: options.threads.clone(),
        batch: options.batch,
        call: options.engine.call(options.batch).into(),
        gso_segments: options.gso,
        connected: !options.unconnected && !bypasses_udp,
        engine: options.engine,
        xdp: None,
        corrupt_checksum: options.engine == Engine::RawBadChecksum,
        target_pps: options.rate_pps,
        pacing: match options.rate_pps {
            Some(_) if options.engine == Engine::XdpFrames => pace::describe(Pacing::Spin, share),
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

/// The number of this sender among those of its experiment; 0 where it is alone.
fn sender_number() -> u16 {
    std::env::var(clock::SENDER).ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn start_workers<F: Flow>(load: &mut Load, flows: Vec<F>, run: Run<F>) -> Result<(), LoadError> {
    let options = &load.options;
    let threads = options.threads.count;
    let random = std::hash::RandomState::new().build_hasher().finish() as u16;
    let first = first_stream(random, sender_number());
    let all = flows.len();
    // Flows go to one destination after the other: a thread takes one of each, as far as there are enough.
    let each = if all / options.to.len().max(1) >= threads { options.to.len().max(1) } else { 1 };
    let thread_of = |flow: usize| flow / each % threads;
    let mut shares: Vec<Vec<F>> = Vec::new();
    shares.resize_with(threads, Vec::new);
    for (index, flow) in flows.into_iter().enumerate() {
        shares[thread_of(index)].push(flow);
    }
    F::share(&mut shares, options, &mut load.settings)?;
    for (index, flows) in shares.into_iter().enumerate() {
        let own = (0..all).filter(|flow| thread_of(*flow) == index);
        let streams = own.map(|number| (first | number as u32, 0)).collect();
        let messages = options.count.map_or(u64::MAX, |count| {
            options.threads.share(count / options.segments() as u64, index)
        });
        let plan = Plan { flows, streams, options: options.clone(), messages };
        load.pool.start(move |start| run(plan, start))?;
    }
    Ok(())
}
