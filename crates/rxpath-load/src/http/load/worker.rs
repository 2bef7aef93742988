//! One thread of a load, from its start to its report.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rxpath_stats::Histogram;

use crate::LoadError;
use crate::engine::{clock, thread};
use crate::http::load::client::{Client, Orders, Remains};
use crate::http::load::epoll::Epoll;
use crate::http::load::message::Message;
use crate::http::load::meter::{Desk, Kind, Meter};
use crate::http::load::options::{Engine, LoadOptions};
use crate::http::load::result::ThreadResult;
use crate::http::load::sockets::Sockets;
use crate::http::load::uring;
use crate::http::load::wire::Wire;
use crate::pace::{Pace, Share, wait_for_start};
use crate::workload::{DoneGuard, Ready, place};

/// A run that only a request count ends gives up after this long, and this many timeouts, with failures only.
const GIVE_UP_NS: u64 = 3_000_000_000;
const GIVE_UP_TIMEOUTS: u64 = 3;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) index: usize,
    pub(super) connections: usize,
    /// Requests to start, at most.
    pub(super) requests: u64,
    pub(super) to: std::net::SocketAddr,
    pub(super) options: Arc<LoadOptions>,
    pub(super) message: Arc<Message>,
    pub(super) desk: Arc<Desk>,
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
pub(super) fn run(plan: &Plan, ready: &Ready) -> Result<Report, LoadError> {
    let tally = &plan.desk.shared.tallies[plan.index];
    let _done = DoneGuard(tally);
    let cpu = plan.options.cpus.get(plan.index).copied();
    let placed = place(cpu, plan.options.nice);
    thread::set_exact_timers();
    tally.tid.store(thread::id(), Relaxed);
    let told = |refused: LoadError| {
        let _ = ready.send(Err(refused));
        Err(LoadError::io("start a thread", io::Error::other("refused")))
    };
    if let Err(error) = placed {
        return told(error);
    }
    let sockets = Sockets::new(plan.to, plan.options.source, plan.connections);
    match plan.options.engine {
        Engine::Epoll => match Epoll::new(sockets) {
            Ok(epoll) => drive(plan, ready, epoll, Client::run),
            Err(error) => told(error),
        },
        Engine::Uring => match uring::ring(plan.connections, &plan.message) {
            Ok(mut ring) => {
                let orders = uring::Orders::new(sockets, &plan.message, plan.options.pipeline);
                drive(plan, ready, orders, |client| client.run_ring(&mut ring))
            }
            Err(error) => told(error),
        },
    }
}

fn client<W: Wire>(plan: &Plan, wire: W) -> Client<'_, W> {
    let options = &plan.options;
    let two_times = options.rate_rps.is_some() || !options.keepalive;
    let orders = Orders {
        message: &plan.message,
        shared: &plan.desk.shared,
        connections: plan.connections,
        pipeline: options.pipeline,
        keepalive: options.keepalive,
        timeout_ns: options.timeout_ns,
        end_ns: u64::MAX,
        requests: plan.requests,
        give_up_ns: GIVE_UP_NS.max(GIVE_UP_TIMEOUTS * options.timeout_ns),
    };
    let meter = Meter::new(&plan.desk, plan.index, two_times);
    Client::new(wire, meter, orders)
}

/// Waits for the start, runs the engine, adds up.
fn drive<'a, W: Wire>(
    plan: &'a Plan,
    ready: &Ready,
    wire: W,
    engine: impl FnOnce(&mut Client<'a, W>) -> Result<(), LoadError>,
) -> Result<Report, LoadError> {
    let options = &plan.options;
    let client = &mut client(plan, wire);
    let _ = ready.send(Ok(()));
    let mut report_of = (thread::cpu_time(), None, 0);
    if let Some(start_ns) = wait_for_start(&plan.desk.shared) {
        let share = Share {
            rate_per_s: options.rate_rps.unwrap_or(0),
            each: 1,
            thread: plan.index as u64,
            threads: options.threads as u64,
        };
        let pace = options.rate_rps.map(|_| Pace::new(start_ns, share, options.pacing));
        let end_ns = options.duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        report_of = (thread::cpu_time(), thread::run_and_wait_ns(), start_ns);
        client.start(start_ns, end_ns, pace);
        engine(client)?;
    }
    let (cpu_before, sched_before, start_ns) = report_of;
    let used = thread::cpu_time().since(cpu_before);
    let waited = sched_before.zip(thread::run_and_wait_ns()).map(|(a, b)| b.1.saturating_sub(a.1));
    let remains = client.remains();
    let tally = client.meter.tally;
    let thread = ThreadResult {
        tid: thread::id(),
        asked_cpu: options.cpus.get(plan.index).copied(),
        seen_cpus: remains.seen_cpus.clone(),
        connections_count: plan.connections,
        requests_total: tally.packets.get(),
        system_calls_total: tally.calls.get(),
        cpu_user_s: used.user_ns as f64 / 1e9,
        cpu_system_s: used.system_ns as f64 / 1e9,
        runnable_wait_s: waited.map(|ns| ns as f64 / 1e9),
    };
    let ended_ns = (start_ns > 0).then(clock::now_ns);
    let span_ns = ended_ns.map_or(0, |ended_ns| ended_ns.saturating_sub(start_ns));
    let meter = &client.meter;
    Ok(Report {
        thread,
        span_ns,
        ended_ns,
        remains,
        service: meter.service.clone(),
        connect: meter.connect.clone(),
        lateness: meter.lateness.clone(),
        rates: meter.rates.clone(),
        causes: meter.causes().to_vec(),
    })
}
