//! Opening a server: checks, listeners, options, threads.

use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::engine::{listen, zerocopy};
use crate::pool::Pool;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::{MAX_BUFFER, VERSION};
use crate::tcp::serve::options::{ReceiveMethod, ServeOptions, ServeSettings};
use crate::tcp::serve::server::ServerState;
use crate::tcp::serve::{Serve, worker};
use crate::udp::serve::options::Sockets;

/// Connections that may wait for accept; the kernel cuts it to net.core.somaxconn.
const BACKLOG: u32 = 65_535;
/// Largest send call that clients can ask the server for.
const SEND_BYTES: usize = 1 << 20;

impl Serve {
    /// Opens the listeners and starts the threads; from here on connections are served.
    pub fn open(mut options: ServeOptions) -> Result<Self, LoadError> {
        check(&options)?;
        options.socket.busy_poll = options.busy_poll;
        let descriptors_count = listen::raise_descriptor_limit()?;
        let mut warnings = Vec::new();
        let group = (options.sockets, options.threads.count);
        let listeners = options.socket.listen(options.addr, group, BACKLOG)?;
        let settings = settle(&options, &listeners[0], descriptors_count, &mut warnings)?;
        let pattern = Pattern::new(options.buffer_bytes.max(SEND_BYTES))
            .map_err(|e| LoadError::io("prepare the payload", e))?;
        let pool = Pool::new("rx-serve", &options.threads);
        let server =
            ServerState::new(Arc::clone(&pool.shared)).map_err(|e| LoadError::io("eventfd", e))?;
        let server = Arc::new(server);
        let mut serve = Self { options, settings, warnings, server, pool, open: Vec::new() };
        let listeners: Vec<_> = listeners.into_iter().map(Arc::new).collect();
        let pattern = Arc::new(pattern);
        for index in 0..serve.options.threads.count {
            let plan = worker::Plan {
                listener: Arc::clone(&listeners[index % listeners.len()]),
                server: Arc::clone(&serve.server),
                pattern: Arc::clone(&pattern),
                options: serve.options.clone(),
            };
            serve.pool.start(move |start| worker::run(&plan, start))?;
        }
        serve.pool.shared.count_cpu_time();
        Ok(serve)
    }
}

fn check(options: &ServeOptions) -> Result<(), LoadError> {
    // Its epoll set and its eventfd, and a listener of its own.
    options.threads.check("read", 2 + u64::from(options.sockets == Sockets::Reuseport))?;
    if !(1..=MAX_BUFFER as usize).contains(&options.buffer_bytes) {
        let what = format!("--buffer {}: 1 byte to 64 MiB", options.buffer_bytes);
        return Err(LoadError::usage(what, "128KiB is the default"));
    }
    if options.low_water_bytes.is_some_and(|bytes| !(1..=u64::from(MAX_BUFFER)).contains(&bytes)) {
        let what = "--low-water: 1 byte to 64 MiB";
        return Err(LoadError::usage(what, "omit it to read data as soon as it arrives"));
    }
    if options.receive == ReceiveMethod::Zerocopy {
        zerocopy::can_map()?;
    }
    Ok(())
}

fn settle(
    options: &ServeOptions,
    listener: &Socket,
    descriptors_count: u64,
    warnings: &mut Vec<Warning>,
) -> Result<ServeSettings, LoadError> {
    Ok(ServeSettings {
        addr: listen::local(listener)?,
        preamble_version: VERSION,
        threads: options.threads.clone(),
        sockets: options.sockets,
        call: if options.stall.is_some() {
            "epoll"
        } else {
            "epoll; blocking calls while one connection of transactions has a thread to itself"
        }
        .into(),
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
