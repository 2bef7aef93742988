//! A client that streams bytes as fast as possible, or by a schedule, in one direction or both.

mod finish;
mod line;
mod worker;

use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::zerocopy;
use crate::pool::Pool;
use crate::tally::Shared;
use crate::tcp::load::begin;
use crate::tcp::load::options::{StreamOptions, StreamSettings};
use crate::tcp::load::session::Session;
use crate::tcp::load::stream::line::Line;
use crate::tcp::preamble::{Kind, Preamble};
use crate::tcp::result::{Interval, StreamResult};
use crate::tcp::roster::Roster;
use crate::tcp::serve::options::ReceiveWay;
use crate::workload::{Finished, Workload};

pub(super) use finish::lost;

/// A streaming client.
#[derive(Debug)]
pub struct Stream {
    options: StreamOptions,
    settings: StreamSettings,
    warnings: Vec<Warning>,
    roster: Arc<Roster>,
    session: Session,
    pool: Pool<worker::Report>,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
}

impl Stream {
    /// Connects and starts the threads, which wait for [`Workload::start`].
    pub fn open(options: StreamOptions) -> Result<Self, LoadError> {
        check(&options)?;
        let common = &options.common;
        let session = begin::session(common)?;
        let pattern = begin::pattern(common)?;
        let order = order(&options, session.run);
        let roster = Arc::new(Roster::default());
        let mut lots: Vec<Vec<Line>> = (0..common.threads.count).map(|_| Vec::new()).collect();
        for index in 0..common.connections {
            let socket = begin::connect(common)?;
            let listed = roster.enter(&socket);
            let line = Line::new((socket, listed), &options, order, &pattern);
            lots[index % common.threads.count].push(line.map_err(|e| LoadError::io("connect", e))?);
        }
        let mut warnings = Vec::new();
        let settings = settle(&options, &session, &lots[0], &mut warnings)?;
        let pool = Pool::new("rx-load", &common.threads);
        let mut stream =
            Self { settings, warnings, roster, session, pool, open: Vec::new(), options };
        for lines in lots {
            let (pattern, options) = (Arc::clone(&pattern), stream.options.clone());
            let plan = worker::Plan { lines, pattern, options };
            stream.pool.start(move |start| worker::run(plan, start))?;
        }
        Ok(stream)
    }
}

fn check(options: &StreamOptions) -> Result<(), LoadError> {
    begin::check(&options.common)?;
    let bad = |what: &str, hint: &str| Err(LoadError::usage(what, hint));
    if options.bitrate_bps.is_some() && options.way.receives() {
        return bad(
            "--bitrate paces only this side; the server sends without a schedule",
            "use --pacing-rate (the kernels of both sides apply it), or --direction send",
        );
    }
    if options.bitrate_bps.is_some_and(|bps| bps < 8) {
        return bad(
            "--bitrate: less than a byte per second",
            "omit it to send as fast as possible",
        );
    }
    if options.way.receives() && options.receive == ReceiveWay::Zerocopy {
        zerocopy::can_map().map_err(|source| LoadError::Unsupported {
            what: "--receive zerocopy (TCP_ZEROCOPY_RECEIVE)".into(),
            source,
        })?;
    }
    if options.common.verify && options.way.receives() && options.receive == ReceiveWay::Trunc {
        return bad("--verify: --receive trunc discards the data to check", "use --receive read");
    }
    Ok(())
}

fn order(options: &StreamOptions, run: u64) -> Preamble {
    Preamble {
        kind: Kind::Stream,
        client_sends: options.way.sends(),
        server_sends: options.way.receives(),
        verify: options.common.verify,
        nodelay: options.common.socket.nodelay,
        send: options.send,
        buffer_bytes: options.common.buffer_bytes as u32,
        run,
        pacing_bytes_per_s: options.common.socket.pacing_bps.map_or(0, |bps| bps / 8),
        ..Preamble::default()
    }
}

fn settle(
    options: &StreamOptions,
    session: &Session,
    lines: &[Line],
    warnings: &mut Vec<Warning>,
) -> Result<StreamSettings, LoadError> {
    let blocking = worker::is_blocking(options);
    Ok(StreamSettings {
        common: begin::settle(&options.common, session, &lines[0].socket, warnings)?,
        direction: options.way,
        send: options.send,
        receive: options.way.receives().then_some(options.receive),
        buffer_bytes: options.common.buffer_bytes,
        target_bps: options.bitrate_bps,
        call: if blocking { "one blocking call after the other" } else { "epoll" }.into(),
    })
}

impl Workload for Stream {
    type Settings = StreamSettings;
    type Result = StreamResult;
    type Interval = Interval;
    const NAME: &'static str = "load-tcp-stream";

    fn settings(&self) -> &StreamSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn shared(&self) -> &Shared {
        &self.pool.shared
    }

    fn interval(&self) -> Interval {
        Interval::of(&self.pool.shared, self.roster.sample())
    }

    fn done(&self) -> u64 {
        let shared = &self.pool.shared;
        shared.sum(|tally| &tally.received_bytes) + shared.sum(|tally| &tally.sent_bytes)
    }

    fn finish(&mut self) -> Result<Finished<StreamResult>, LoadError> {
        finish::finish(self)
    }
}
