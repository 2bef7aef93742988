//! A client of transactions: request and response, on persistent connections or with a connection for each.

mod client_thread;
mod crr;
mod finish;
mod persistent;
mod worker;

use std::sync::Arc;

use rxpath_core::Warning;
use rxpath_stats::Histogram;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::live::{LiveTimes, NewTimes};
use crate::pace::{Pacing, Share, describe};
use crate::pool::Pool;
use crate::tcp::load::begin;
use crate::tcp::load::options::{CloseBy, TransactionOptions, TransactionSettings};
use crate::tcp::load::session::Session;
use crate::tcp::open_connections::{Listed, OpenConnections};
use crate::tcp::preamble::{Kind, MAX_MESSAGE, Preamble};
use crate::tcp::result::{Interval, TransactionsResult};
use crate::workload::{WorkloadHandle, from_fields};

/// Request and response on persistent connections.
pub type RequestResponse = Transactions<false>;
/// Connect, request, response, close.
pub type ConnectRequestResponse = Transactions<true>;

/// A client of transactions; `SINGLE`: one per connection.
#[derive(Debug)]
pub struct Transactions<const SINGLE: bool> {
    options: TransactionOptions,
    settings: TransactionSettings,
    warnings: Vec<Warning>,
    open_connections: Arc<OpenConnections>,
    session: Session,
    pool: Pool<worker::Report>,
    /// Response times, per thread.
    live: Arc<Vec<LiveTimes>>,
    new_in_slice: NewTimes,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
}

impl<const SINGLE: bool> Transactions<SINGLE> {
    /// Connects and starts the threads, which wait for [`WorkloadHandle::start`].
    pub fn open(mut options: TransactionOptions) -> Result<Self, LoadError> {
        check(&options)?;
        options.common.socket.nodelay = true;
        options.common.socket.mss_bytes = options.common.mss_bytes;
        let common = &options.common;
        let session = begin::session(common)?;
        let pattern = begin::pattern(common)?;
        let order = order(&options, session.run, SINGLE);
        let open_connections = Arc::new(OpenConnections::default());
        let mut lots: Vec<(Vec<Listed>, Vec<Socket>)> =
            (0..common.threads.count).map(|_| Default::default()).collect();
        let persistent = if SINGLE { 0 } else { common.connections() };
        for index in 0..persistent {
            let socket = begin::connect(common)?;
            let sent = socket.send_with(&order.to_bytes(), 0);
            sent.map_err(|e| LoadError::io("send the preamble", e))?;
            let (listed, sockets) = &mut lots[index % common.threads.count];
            listed.push(open_connections.enter(&socket));
            sockets.push(socket);
        }
        let mut warnings = Vec::new();
        let probe = begin::connect(common)?;
        let settings = settle::<SINGLE>(&options, &session, &probe, &mut warnings)?;
        drop(probe);
        let pool = Pool::new("rx-load", &common.threads);
        let live = (0..common.threads.count).map(|_| LiveTimes::default()).collect();
        let mut client = Self {
            settings,
            warnings,
            open_connections,
            session,
            pool,
            live: Arc::new(live),
            new_in_slice: NewTimes::default(),
            open: Vec::new(),
            options,
        };
        for (index, (listed, sockets)) in lots.into_iter().enumerate() {
            let common = &client.options.common;
            let plan = client_thread::Plan {
                _listed: listed,
                sockets,
                slots: common.threads.share(common.connections() as u64, index) as usize,
                order,
                pattern: Arc::clone(&pattern),
                options: client.options.clone(),
                live: Arc::clone(&client.live),
            };
            client.pool.start(move |start| worker::run(plan, SINGLE, start))?;
        }
        Ok(client)
    }
}

fn check(options: &TransactionOptions) -> Result<(), LoadError> {
    begin::check(&options.common)?;
    for (name, bytes) in
        [("--request", options.request_bytes), ("--response", options.response_bytes)]
    {
        if !(1..=MAX_MESSAGE).contains(&bytes) {
            let what = format!("{name} {bytes}: 1 byte to 1 GiB");
            return Err(LoadError::usage(what, "1 is the default"));
        }
    }
    if options.rate_tps == Some(0) {
        let hint = "omit it to send as fast as responses arrive";
        return Err(LoadError::usage("--rate 0: nothing would be sent", hint));
    }
    Ok(())
}

fn order(options: &TransactionOptions, run: u64, single: bool) -> Preamble {
    Preamble {
        kind: if single { Kind::Single } else { Kind::Transactions },
        verify: options.common.verify,
        server_closes: options.close_by == CloseBy::Server,
        nodelay: true,
        request_bytes: options.request_bytes,
        response_bytes: options.response_bytes,
        run,
        ..Preamble::default()
    }
}

fn settle<const SINGLE: bool>(
    options: &TransactionOptions,
    session: &Session,
    probe: &Socket,
    warnings: &mut Vec<Warning>,
) -> Result<TransactionSettings, LoadError> {
    let common = &options.common;
    let share = Share::of(options.rate_tps.unwrap_or(1), 1, (0, common.threads.count));
    let blocking = common.connections() == common.threads.count;
    Ok(TransactionSettings {
        common: begin::settle(common, session, probe, warnings)?,
        request_bytes: options.request_bytes,
        response_bytes: options.response_bytes,
        target_tps: options.rate_tps,
        pacing: match options.rate_tps {
            Some(_) => describe(Pacing::Auto, share),
            None => "none: each connection sends as fast as its responses arrive".into(),
        },
        close: SINGLE.then_some(options.close_by),
        call: if blocking { "one blocking call after the other" } else { "epoll" }.into(),
    })
}

impl<const SINGLE: bool> WorkloadHandle for Transactions<SINGLE> {
    from_fields!(
        if SINGLE { "load-tcp-crr" } else { "load-tcp-rr" },
        TransactionSettings,
        TransactionsResult
    );

    fn interval(&self) -> Interval {
        Interval { tcp: self.open_connections.sample(), ..Interval::of(&self.pool.shared) }
    }

    fn new_times(&self) -> Option<(&'static str, Histogram)> {
        let name = if self.options.rate_tps.is_some() { "response_time" } else { "service_time" };
        Some((name, self.new_in_slice.read(self.live.iter())))
    }
}
