//! One thread of transactions: what all its loops have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::engine::thread;
use crate::pace::{Pace, Pacing, Share};
use crate::pool::Start;
use crate::tcp::connection::{ConnectionResult, LISTED, TcpSummary};
use crate::tcp::load::options::TransactionOptions;
use crate::tcp::load::transactions::desk::{Desk, Fate, Times};
use crate::tcp::load::transactions::lasting::Lasting;
use crate::tcp::load::transactions::single::{Single, Singles};
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::Preamble;
use crate::tcp::result::ThreadResult;
use crate::tcp::roster::Listed;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    /// While intervals read the connections; dropped before they are.
    pub(super) listed: Vec<Listed>,
    /// Lasting connections.
    pub(super) sockets: Vec<Socket>,
    /// Connections at a time.
    pub(super) slots: usize,
    pub(super) order: Preamble,
    pub(super) pattern: Arc<Pattern>,
    pub(super) options: TransactionOptions,
}

/// What a worker saw; it holds the connections open.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) times: Times,
    pub(super) fate: Fate,
    pub(super) errors: BTreeMap<(&'static str, String), u64>,
    pub(super) mismatches: Vec<(String, u64)>,
    pub(super) is_peer_lost: bool,
    pub(super) tcp: Option<TcpSummary>,
    pub(super) listed: Vec<ConnectionResult>,
    pub(super) _listed: Vec<Listed>,
    pub(super) _open: Vec<Socket>,
}

/// Runs until the time or an order ends it.
pub(super) fn run(plan: Plan, single: bool, start: &Start) -> Result<Report, LoadError> {
    thread::set_exact_timers();
    let tally = start.tally;
    let common = plan.options.common.clone();
    let mut desk = Desk::new(start);
    tally.connections.set(plan.sockets.len() as u64);
    let blocking = plan.slots == 1 && common.connections == common.threads.count;
    let rate_tps = plan.options.rate_tps;
    let mut lasting =
        Lasting::new(&plan, start.index).map_err(|e| LoadError::io("prepare a thread", e))?;
    let mut fate = Fate::default();
    if let Some(start_ns) = start.ready_and_wait() {
        desk.end_ns = common.duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        desk.pace = rate_tps.map(|rate_per_s| {
            let (thread, threads) = (start.index as u64, common.threads.count as u64);
            let share = Share { rate_per_s, each: 1, thread, threads };
            Pace::new(start_ns, share, Pacing::Auto)
        });
        desk.usage.restart();
        let ended = match (single, blocking) {
            (false, true) => lasting.block(&mut desk),
            (false, false) => lasting.poll(&mut desk),
            (true, true) => {
                Single::new(&plan).block(&plan, &mut desk);
                Ok(())
            }
            (true, false) => Singles::new(&plan).poll(&plan, &mut desk),
        };
        ended.map_err(|e| LoadError::io("wait for sockets", e))?;
        fate = desk.fate();
        lasting.end(&mut desk).map_err(|e| LoadError::io("end connections", e))?;
    }
    let (tcp, listed) = (lasting.tcp(), lasting.results().into_iter().take(LISTED).collect());
    drop(lasting);
    tally.connections.set(0);
    Ok(Report {
        fate,
        times: desk.times,
        errors: desk.errors,
        mismatches: desk.mismatches,
        is_peer_lost: desk.is_peer_lost,
        thread: ThreadResult::of(desk.usage, tally),
        tcp,
        listed,
        _listed: plan.listed,
        _open: plan.sockets,
    })
}
