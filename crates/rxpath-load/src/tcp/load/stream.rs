//! A client that streams bytes as fast as possible, or by a schedule, in one direction or both.

mod finish;
mod line;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::thread::{CpuTime, process_cpu_time};
use crate::engine::zerocopy;
use crate::tcp::flow::Source;
use crate::tcp::lanes::Lanes;
use crate::tcp::load::begin;
use crate::tcp::load::options::{StreamOptions, StreamSettings};
use crate::tcp::load::session::Session;
use crate::tcp::load::stream::line::Line;
use crate::tcp::preamble::{Kind, Preamble, SendWay};
use crate::tcp::result::{Interval, StreamResult};
use crate::tcp::roster::Roster;
use crate::tcp::serve::options::ReceiveWay;
use crate::workload::{Finished, Worker, Workload, wake_until_done};

pub(super) use finish::lost;

/// A streaming client.
#[derive(Debug)]
pub struct Stream {
    options: StreamOptions,
    settings: StreamSettings,
    warnings: Vec<Warning>,
    lanes: Arc<Lanes>,
    roster: Arc<Roster>,
    session: Session,
    workers: Vec<Worker<worker::Report>>,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
    cpu_before: CpuTime,
}

impl Stream {
    /// Connects and starts the threads, which wait for [`Workload::start`].
    pub fn open(options: StreamOptions) -> Result<Self, LoadError> {
        check(&options)?;
        let common = &options.common;
        let session = begin::session(common)?;
        let file = matches!(options.send, SendWay::Splice | SendWay::Sendfile);
        let source = Source::new(common.buffer_bytes, file && options.way.sends())
            .map_err(|e| LoadError::io("prepare the payload", e))?;
        let order = order(&options, session.run);
        let roster = Arc::new(Roster::default());
        let mut lots: Vec<Vec<Line>> = (0..common.threads).map(|_| Vec::new()).collect();
        for index in 0..common.connections {
            let socket = begin::connect(common)?;
            let listed = roster.enter(&socket);
            let line = Line::new((socket, listed), &options, order, &source);
            lots[index % common.threads].push(line.map_err(|e| LoadError::io("connect", e))?);
        }
        let mut warnings = Vec::new();
        let settings = settle(&options, &session, &lots[0], &mut warnings)?;
        let lanes = Lanes::new(common.threads);
        let mut stream = Self {
            settings,
            warnings,
            lanes: Arc::clone(&lanes),
            roster,
            session,
            workers: Vec::new(),
            open: Vec::new(),
            cpu_before: process_cpu_time(),
            options,
        };
        for (index, lines) in lots.into_iter().enumerate() {
            let plan = worker::Plan {
                index,
                lines,
                lanes: Arc::clone(&lanes),
                source: Arc::clone(&source),
                options: stream.options.clone(),
            };
            stream.workers.push(begin::spawn(index, &lanes, |ready| worker::run(plan, ready))?);
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

    fn tids(&self) -> Vec<i32> {
        self.lanes.tids()
    }

    fn start(&mut self, t_ns: u64) {
        self.cpu_before = process_cpu_time();
        self.lanes.shared.start_ns.store(t_ns.max(1), SeqCst);
    }

    fn interval(&self) -> Interval {
        Interval { tcp: self.roster.sample(), ..self.lanes.interval() }
    }

    fn done(&self) -> u64 {
        self.lanes.sum(|lane| &lane.delivered_bytes) + self.lanes.sum(|lane| &lane.sent_bytes)
    }

    fn first_ns(&self) -> Option<u64> {
        self.lanes.shared.first_ns()
    }

    fn last_ns(&self) -> Option<u64> {
        self.lanes.shared.last_ns()
    }

    fn stop(&self) {
        self.lanes.shared.stop.store(true, SeqCst);
    }

    fn is_done(&self) -> bool {
        self.lanes.shared.all_done()
    }

    fn finish(&mut self) -> Result<Finished<StreamResult>, LoadError> {
        self.stop();
        wake_until_done(&self.lanes.shared);
        finish::finish(self)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop();
        wake_until_done(&self.lanes.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
