//! A client that streams bytes as fast as possible, or by a schedule, in one direction or both.

mod conn;
mod finish;
mod worker;

use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::zerocopy;
use crate::pool::Pool;
use crate::tcp::load::begin;
use crate::tcp::load::options::{StreamOptions, StreamSettings};
use crate::tcp::load::session::Session;
use crate::tcp::load::stream::conn::StreamConn;
use crate::tcp::open_connections::OpenConnections;
use crate::tcp::preamble::{Kind, Preamble};
use crate::tcp::result::{Interval, StreamResult};
use crate::tcp::serve::options::ReceiveMethod;
use crate::workload::{WorkloadHandle, from_fields};

pub(super) use finish::{lost, no_report};

/// A streaming client.
#[derive(Debug)]
pub struct StreamClient {
    options: StreamOptions,
    settings: StreamSettings,
    warnings: Vec<Warning>,
    open_connections: Arc<OpenConnections>,
    session: Session,
    pool: Pool<worker::Report>,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
}

impl StreamClient {
    /// Connects and starts the threads, which wait for [`WorkloadHandle::start`].
    pub fn open(mut options: StreamOptions) -> Result<Self, LoadError> {
        check(&options)?;
        let socket = &mut options.common.socket;
        (socket.pacing_bps, socket.nodelay) = (options.pacing_bps, options.nodelay);
        socket.notsent_lowat_bytes = options.notsent_lowat_bytes;
        socket.mss_bytes = options.common.mss_bytes;
        let common = &options.common;
        let session = begin::session(common)?;
        let pattern = begin::pattern(common)?;
        let order = order(&options, session.run);
        let open_connections = Arc::new(OpenConnections::default());
        let mut lots: Vec<Vec<StreamConn>> =
            (0..common.threads.count).map(|_| Vec::new()).collect();
        for index in 0..common.connections() {
            let socket = begin::connect(common)?;
            let listed = open_connections.enter(&socket);
            let conn = StreamConn::new((socket, listed), &options, order, &pattern);
            lots[index % common.threads.count].push(conn.map_err(|e| LoadError::io("connect", e))?);
        }
        let mut warnings = Vec::new();
        let settings = settle(&options, &session, &lots[0], &mut warnings)?;
        let pool = Pool::new("rx-load", &common.threads);
        let mut stream =
            Self { settings, warnings, open_connections, session, pool, open: Vec::new(), options };
        for conns in lots {
            let (pattern, options) = (Arc::clone(&pattern), stream.options.clone());
            let plan = worker::Plan { conns, pattern, options };
            stream.pool.start(move |start| worker::run(plan, start))?;
        }
        Ok(stream)
    }
}

fn check(options: &StreamOptions) -> Result<(), LoadError> {
    begin::check(&options.common)?;
    let bad = |what: &str, hint: &str| Err(LoadError::usage(what, hint));
    if options.bitrate_bps.is_some() && options.direction.receives() {
        let what = "--bitrate paces only this side; the server sends without a schedule";
        let hint = "use --pacing-rate (the kernels of both sides apply it), or --direction send";
        return bad(what, hint);
    }
    if options.bitrate_bps.is_some_and(|bps| bps < 8) {
        let hint = "omit it to send as fast as possible";
        return bad("--bitrate: less than a byte per second", hint);
    }
    if options.direction.receives() && options.receive == ReceiveMethod::Zerocopy {
        zerocopy::can_map()?;
    }
    if options.common.verify
        && options.direction.receives()
        && options.receive == ReceiveMethod::Trunc
    {
        return bad("--verify: --receive trunc discards the data to check", "use --receive read");
    }
    Ok(())
}

fn order(options: &StreamOptions, run: u64) -> Preamble {
    Preamble {
        kind: Kind::Stream,
        client_sends: options.direction.sends(),
        server_sends: options.direction.receives(),
        verify: options.common.verify,
        nodelay: options.nodelay,
        send: options.send,
        buffer_bytes: options.common.buffer_bytes as u32,
        run,
        pacing_bytes_per_s: options.pacing_bps.map_or(0, |bps| bps / 8),
        ..Preamble::default()
    }
}

fn settle(
    options: &StreamOptions,
    session: &Session,
    conns: &[StreamConn],
    warnings: &mut Vec<Warning>,
) -> Result<StreamSettings, LoadError> {
    let blocking = worker::is_blocking(options);
    Ok(StreamSettings {
        common: begin::settle(&options.common, session, &conns[0].socket, warnings)?,
        direction: options.direction,
        send: options.send,
        receive: options.direction.receives().then_some(options.receive),
        buffer_bytes: options.common.buffer_bytes,
        target_bps: options.bitrate_bps,
        call: if blocking { "one blocking call after the other" } else { "epoll" }.into(),
    })
}

impl WorkloadHandle for StreamClient {
    from_fields!("load-tcp-stream", StreamSettings, StreamResult);

    fn interval(&self) -> Interval {
        Interval { tcp: self.open_connections.sample(), ..Interval::of(&self.pool.shared) }
    }

    fn done(&self) -> u64 {
        let shared = &self.pool.shared;
        shared.sum(|tally| &tally.received_bytes) + shared.sum(|tally| &tally.sent_bytes)
    }
}
