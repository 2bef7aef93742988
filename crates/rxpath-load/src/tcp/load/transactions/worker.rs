//! One thread of transactions: what all its loops have in common.

use std::sync::Arc;

use crate::LoadError;
use crate::engine::thread;
use crate::pace::{Pace, Pacing};
use crate::pool::Start;
use crate::tcp::connection::{ConnectionResult, TcpSummary};
use crate::tcp::load::transactions::client_thread::{ClientThread, Plan, Seen};
use crate::tcp::load::transactions::crr::{self, CrrPool};
use crate::tcp::load::transactions::persistent::Persistent;
use crate::tcp::result::ThreadResult;

/// What a worker saw; it holds the connections open.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) seen: Seen,
    pub(super) tcp: Option<TcpSummary>,
    pub(super) listed: Vec<ConnectionResult>,
    pub(super) _plan: Plan,
}

/// Runs until the time or an order ends it.
pub(super) fn run(plan: Plan, single: bool, start: &Start) -> Result<Report, LoadError> {
    thread::set_exact_timers();
    let tally = start.tally;
    let common = plan.options.common.clone();
    let live = Arc::clone(&plan.live);
    let mut client_thread = ClientThread::new(start, &live[start.index]);
    tally.connections.set(plan.sockets.len() as u64);
    let blocking = plan.slots == 1 && common.connections() == common.threads.count;
    let rate_tps = plan.options.rate_tps;
    let mut persistent =
        Persistent::new(&plan).map_err(|e| LoadError::io("prepare a thread", e))?;
    if let Some(start_ns) = start.ready_and_wait() {
        client_thread.end_ns =
            common.duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        client_thread.pace =
            rate_tps.map(|rate| Pace::new(start_ns, start.share(rate, 1), Pacing::Auto));
        client_thread.usage.restart();
        let ended = match (single, blocking) {
            (false, true) => persistent.block(&mut client_thread),
            (false, false) => persistent.poll(&mut client_thread),
            (true, true) => {
                crr::block(&plan, &mut client_thread);
                Ok(())
            }
            (true, false) => CrrPool::new(&plan).poll(&mut client_thread),
        };
        ended.map_err(|e| LoadError::io("wait for sockets", e))?;
        client_thread.end();
        persistent.end(&mut client_thread).map_err(|e| LoadError::io("end connections", e))?;
    }
    let infos = plan.sockets.iter().filter_map(|socket| TcpSummary::read(socket.fd()));
    let (tcp, listed) = (TcpSummary::of(infos), persistent.results(start.index));
    drop(persistent);
    tally.connections.set(0);
    Ok(Report {
        seen: client_thread.seen,
        thread: ThreadResult::of(client_thread.usage, tally),
        tcp,
        listed,
        _plan: plan,
    })
}
