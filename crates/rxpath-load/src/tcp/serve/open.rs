//! Opening a server: checks, listeners, options, threads.

use std::net::SocketAddr;
use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::engine::{thread, zerocopy};
use crate::tcp::flow::Source;
use crate::tcp::lanes::Lanes;
use crate::tcp::preamble::{MAX_BUFFER, VERSION};
use crate::tcp::serve::hub::Hub;
use crate::tcp::serve::options::{ReceiveWay, ServeOptions, ServeSettings};
use crate::tcp::serve::{Serve, worker};
use crate::tcp::socket::{bind_error, raise_descriptors};
use crate::udp::serve::options::Sockets;
use crate::workload::{check_cpus, start_worker};

/// Connections that may wait for accept; the kernel cuts it to net.core.somaxconn.
const BACKLOG: i32 = 65_535;
/// Largest send call that clients can ask the server for.
const SEND_BYTES: usize = 1 << 20;

pub(super) fn open(options: ServeOptions) -> Result<Serve, LoadError> {
    check(&options)?;
    check_cpus(&options.cpus)?;
    let descriptors_count = raise_descriptors();
    let mut warnings = Vec::new();
    let listeners = listen(&options)?;
    let settings = settle(&options, &listeners[0], descriptors_count, &mut warnings)?;
    let source = Source::new(options.buffer_bytes.max(SEND_BYTES), true)
        .map_err(|e| LoadError::io("prepare the payload", e))?;
    let lanes = Lanes::new(options.threads);
    let hub = Hub::new(Arc::clone(&lanes)).map_err(|e| LoadError::io("eventfd", e))?;
    let mut serve = Serve {
        options,
        settings,
        warnings,
        lanes,
        hub: Arc::new(hub),
        workers: Vec::new(),
        open: Vec::new(),
        cpu_before: thread::process_cpu_time(),
    };
    start_workers(&mut serve, &listeners, &source)?;
    serve.cpu_before = thread::process_cpu_time();
    Ok(serve)
}

fn check(options: &ServeOptions) -> Result<(), LoadError> {
    if options.threads == 0 {
        return Err(LoadError::usage("--threads 0: no thread would read", "give at least 1"));
    }
    if !(1..=MAX_BUFFER as usize).contains(&options.buffer_bytes) {
        let what = format!("--buffer {}: 1 byte to 64 MiB", options.buffer_bytes);
        return Err(LoadError::usage(what, "128KiB is the default"));
    }
    if options.low_water_bytes.is_some_and(|bytes| !(1..=u64::from(MAX_BUFFER)).contains(&bytes)) {
        let what = "--low-water: 1 byte to 64 MiB";
        return Err(LoadError::usage(what, "omit it to read data as soon as it arrives"));
    }
    if options.receive == ReceiveWay::Zerocopy {
        zerocopy::can_map().map_err(|source| LoadError::Unsupported {
            what: "--receive zerocopy (TCP_ZEROCOPY_RECEIVE)".into(),
            source,
        })?;
    }
    Ok(())
}

fn listen(options: &ServeOptions) -> Result<Vec<Arc<Socket>>, LoadError> {
    let count = if options.sockets == Sockets::Reuseport { options.threads } else { 1 };
    let mut listeners = Vec::with_capacity(count);
    let mut addr = options.addr;
    for _ in 0..count {
        let socket = Socket::tcp(addr).map_err(|e| LoadError::io("socket", e))?;
        // Connections in TIME_WAIT of a server before do not hold the port.
        let set = |name| socket.set(libc::SOL_SOCKET, name, 1);
        set(libc::SO_REUSEADDR).map_err(|e| LoadError::io("SO_REUSEADDR", e))?;
        if options.sockets == Sockets::Reuseport {
            set(libc::SO_REUSEPORT).map_err(|source| LoadError::Unsupported {
                what: "--sockets reuseport (SO_REUSEPORT)".into(),
                source,
            })?;
        }
        options.socket.apply(&socket)?;
        socket.bind(addr).map_err(|e| bind_error(addr, e))?;
        socket.listen(BACKLOG).map_err(|e| bind_error(addr, e))?;
        // With port 0 the first socket's port is that of the group.
        addr = local(&socket)?;
        listeners.push(Arc::new(socket));
    }
    Ok(listeners)
}

fn local(socket: &Socket) -> Result<SocketAddr, LoadError> {
    socket.local().map_err(|e| LoadError::io("getsockname", e))
}

fn settle(
    options: &ServeOptions,
    listener: &Socket,
    descriptors_count: u64,
    warnings: &mut Vec<Warning>,
) -> Result<ServeSettings, LoadError> {
    Ok(ServeSettings {
        addr: local(listener)?,
        preamble_version: VERSION,
        threads_count: options.threads,
        cpus: options.cpus.clone(),
        nice: options.nice,
        sockets: options.sockets,
        buffer_bytes: options.buffer_bytes,
        receive: options.receive,
        low_water_bytes: low_water(options, warnings)?,
        socket: options.socket.settle(listener, warnings)?,
        work_ns: options.work_ns,
        stall: options.stall,
        descriptors_count,
    })
}

/// The mark that connections will get: the kernel cuts it to half the receive buffer, or to half of the largest one
/// that it would tune to (`tcp_set_rcvlowat`, net/ipv4/tcp.c, 6.18). A socket of no connection shows it.
fn low_water(
    options: &ServeOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Option<u64>, LoadError> {
    let Some(asked) = options.low_water_bytes else { return Ok(None) };
    let probe = Socket::tcp(options.addr).map_err(|e| LoadError::io("socket", e))?;
    options.socket.apply(&probe)?;
    let taken = probe.set_low_water(asked).map_err(|e| LoadError::io("SO_RCVLOWAT", e))?;
    if taken < asked {
        let text = format!("--low-water {asked}: the kernel set {taken} bytes");
        let why =
            "the kernel allows at most half the receive buffer, or half the maximum of tcp_rmem";
        warnings.push(Warning::new("low-water-cut", text).because(why));
    }
    Ok(Some(taken))
}

fn start_workers(
    serve: &mut Serve,
    listeners: &[Arc<Socket>],
    source: &Arc<Source>,
) -> Result<(), LoadError> {
    for index in 0..serve.options.threads {
        let plan = worker::Plan {
            index,
            listener: Arc::clone(&listeners[index % listeners.len()]),
            hub: Arc::clone(&serve.hub),
            source: Arc::clone(source),
            options: serve.options.clone(),
        };
        let (name, tally) = (format!("rx-serve-{index}"), &serve.lanes.shared.tallies[index]);
        serve.workers.push(start_worker(&name, tally, move |ready| worker::run(&plan, ready))?);
    }
    Ok(())
}
