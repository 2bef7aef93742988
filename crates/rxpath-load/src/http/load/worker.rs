//! One thread of a load, from its start to its report.

use std::sync::Arc;

use rxpath_stats::Histogram;

use crate::LoadError;
use crate::engine::{clock, thread};
use crate::http::load::client::{Client, ClientConfig, Remains};
use crate::http::load::epoll::EpollWire;
use crate::http::load::message::Message;
use crate::http::load::meter::{Kind, LiveCounters, Meter};
use crate::http::load::options::{Engine, LoadOptions};
use crate::http::load::result::ThreadResult;
use crate::http::load::sockets::Sockets;
use crate::http::load::uring;
use crate::http::load::wire::Wire;
use crate::pace::Pace;
use crate::pool::Start;
use crate::usage::UsageMeter;

/// A run that only a request count ends gives up after this long, and this many timeouts, with failures only.
const GIVE_UP_NS: u64 = 3_000_000_000;
const GIVE_UP_TIMEOUTS: u64 = 3;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) connections: usize,
    /// Requests to start, at most.
    pub(super) requests: u64,
    pub(super) to: std::net::SocketAddr,
    pub(super) engine: Engine,
    pub(super) options: Arc<LoadOptions>,
    pub(super) message: Arc<Message>,
    pub(super) live: Arc<Vec<LiveCounters>>,
}

/// What a worker saw.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    /// Start of the schedule to the end of the loop.
    pub(super) span_ns: u64,
    /// The end of the loop; `None` when it never began.
    pub(super) ended_ns: Option<u64>,
    pub(super) remains: Remains,
    pub(super) service: Option<Histogram>,
    pub(super) connect: Histogram,
    pub(super) lateness: Histogram,
    pub(super) rates: Histogram,
    pub(super) causes: Vec<(Kind, i32, u64)>,
}

/// Runs until the time, the count or an order ends it.
pub(super) fn run(plan: &Plan, start: &Start) -> Result<Report, LoadError> {
    thread::set_exact_timers();
    let sockets = Sockets::new(plan.to, plan.options.source, plan.connections);
    match plan.engine {
        Engine::Epoll => drive(plan, start, EpollWire::new(sockets)?, Client::run),
        Engine::Uring => {
            let mut ring = uring::ring(plan.connections, &plan.message)?;
            let config = uring::RingWire::new(sockets, &plan.message, plan.options.pipeline);
            drive(plan, start, config, |client| client.run_ring(&mut ring))
        }
    }
}

fn client<'a, W: Wire>(plan: &'a Plan, start: &'a Start, wire: W) -> Client<'a, W> {
    let options = &plan.options;
    let two_times = options.rate_rps.is_some() || options.no_keepalive;
    let config = ClientConfig {
        message: &plan.message,
        shared: start.shared,
        connections: plan.connections,
        pipeline: options.pipeline,
        keepalive: !options.no_keepalive,
        timeout_ns: options.timeout_ns,
        end_ns: u64::MAX,
        requests: plan.requests,
        give_up_ns: GIVE_UP_NS.max(GIVE_UP_TIMEOUTS * options.timeout_ns),
    };
    let (live, usage) = (&plan.live[start.index], UsageMeter::new(start.cpu));
    let meter = Meter::new(start.tally, live, usage, two_times);
    Client::new(wire, meter, config)
}

/// Waits for the start, runs the engine, adds up.
fn drive<'a, W: Wire>(
    plan: &'a Plan,
    start: &'a Start,
    wire: W,
    engine: impl FnOnce(&mut Client<'a, W>) -> Result<(), LoadError>,
) -> Result<Report, LoadError> {
    let options = &plan.options;
    let mut client = client(plan, start, wire);
    let started = start.ready_and_wait();
    if let Some(start_ns) = started {
        let share = |rate_rps| start.share(rate_rps, 1);
        let pace = options.rate_rps.map(|rate| Pace::new(start_ns, share(rate), options.pacing));
        let end_ns = options.duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        client.meter.usage.restart();
        client.start(start_ns, end_ns, pace);
        engine(&mut client)?;
    }
    let remains = client.remains();
    let Meter { tally, usage, service, connect, lateness, rates, causes, .. } = client.meter;
    let (usage, _, runnable_wait_s) = usage.end(tally);
    let thread = ThreadResult {
        usage,
        connections_count: plan.connections,
        requests_total: tally.units.get(),
        system_calls_total: tally.calls.get(),
        runnable_wait_s,
    };
    let ended_ns = started.map(|_| clock::now_ns());
    let span_ns = ended_ns.zip(started).map_or(0, |(end, start)| end.saturating_sub(start));
    Ok(Report { thread, span_ns, ended_ns, remains, service, connect, lateness, rates, causes })
}
