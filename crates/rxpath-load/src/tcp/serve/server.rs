//! State shared by the threads of a server: the runs of its clients, the connections, the handover between threads.
//!
//! Locks are taken when a connection begins or ends, never per read or transaction.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::busy_poll;
use crate::engine::socket::Socket;
use crate::engine::{clock, thread};
use crate::tally::Shared;
use crate::tcp::connection::{ConnectionResult, LISTED, TcpSummary};
use crate::tcp::open_connections::{Listed, OpenConnections, locked};
use crate::tcp::result::{Mismatch, ServerReport, ServerThread};
use crate::tcp::serve::connection::Connection;

/// Runs that are remembered; the oldest goes when a further one comes.
const RUNS: usize = 256;
/// Wrong payloads that are reported one by one.
const MISMATCHES: usize = 16;

/// What one client process did here so far.
#[derive(Debug, Default)]
pub(super) struct Run {
    id: u64,
    connections: AtomicU64,
    delivered_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    transactions: AtomicU64,
    mapped_bytes: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    /// Instant and CPU time of every thread when the first byte came.
    begin: OnceLock<(u64, Vec<u64>)>,
    ended: Mutex<Ended>,
}

#[derive(Debug, Default)]
struct Ended {
    tcp: Option<TcpSummary>,
    mismatches: Vec<Mismatch>,
}

/// What a connection adds to its run, and to the server, at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) delivered_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) transactions: u64,
    pub(super) mapped_bytes: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Run {
    /// A connection of the run begins.
    pub(super) fn joined(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    fn add(&self, moved: Moved) {
        self.delivered_bytes.fetch_add(moved.delivered_bytes, Relaxed);
        self.sent_bytes.fetch_add(moved.sent_bytes, Relaxed);
        self.transactions.fetch_add(moved.transactions, Relaxed);
        self.mapped_bytes.fetch_add(moved.mapped_bytes, Relaxed);
        if moved.first_ns > 0 {
            // 0 means none, so the smallest is looked for among the others.
            let _ = self.first_ns.fetch_update(Relaxed, Relaxed, |first| {
                (first == 0 || moved.first_ns < first).then_some(moved.first_ns)
            });
            self.last_ns.fetch_max(moved.last_ns, Relaxed);
        }
    }
}

/// Events of connections, in addition to the counters of the threads.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) connections_total: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) accept_errors: BTreeMap<String, u64>,
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) mapped_bytes: u64,
    pub(super) tcp: Option<TcpSummary>,
    /// Lasting connections whose NAPI instance the kernel told, and those that have one.
    pub(super) napi: (u64, u64),
    pub(super) listed: Vec<ConnectionResult>,
}

/// Connections handed to a thread but not yet taken, and the eventfd that wakes it.
#[derive(Debug)]
pub(super) struct Inbox {
    waiting: Mutex<Vec<Connection>>,
    pub(super) bell: EventFd,
    /// Long-lived connections that the thread has or will have.
    load: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) shared: Arc<Shared>,
    runs: Mutex<Vec<Arc<Run>>>,
    live: Arc<OpenConnections>,
    past: Mutex<Past>,
    inboxes: Vec<Inbox>,
}

impl ServerState {
    pub(super) fn new(shared: Arc<Shared>) -> std::io::Result<Self> {
        let inboxes = shared.tallies.iter().map(|_| {
            let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
            Ok(Inbox { waiting: Mutex::default(), bell, load: AtomicU64::new(0) })
        });
        let inboxes = inboxes.collect::<std::io::Result<_>>()?;
        let (runs, live, past) = (Mutex::default(), Arc::default(), Mutex::default());
        Ok(Self { shared, runs, live, past, inboxes })
    }

    pub(super) fn past(&self) -> MutexGuard<'_, Past> {
        locked(&self.past)
    }

    /// The run of this number; a new one when it is not known.
    pub(super) fn run(&self, id: u64) -> Arc<Run> {
        let mut runs = locked(&self.runs);
        if let Some(run) = runs.iter().rev().find(|run| run.id == id) {
            return Arc::clone(run);
        }
        if runs.len() >= RUNS {
            runs.remove(0);
        }
        let run = Arc::new(Run { id, ..Run::default() });
        runs.push(Arc::clone(&run));
        run
    }

    /// The first byte of the run may just have come.
    pub(super) fn begun(&self, run: &Run) {
        run.begin.get_or_init(|| {
            let cpu = self.shared.tids().into_iter().map(thread::cpu_clock_ns).collect();
            (clock::now_ns(), cpu)
        });
    }

    /// What the run did so far; connections that are still open count at their end.
    pub(super) fn report(&self, id: u64, maps: bool) -> ServerReport {
        let run = self.run(id);
        let span_ns = run.last_ns.load(Relaxed).saturating_sub(run.first_ns.load(Relaxed));
        let ended = locked(&run.ended);
        ServerReport {
            connections_total: run.connections.load(Relaxed),
            delivered_bytes: run.delivered_bytes.load(Relaxed),
            sent_bytes: run.sent_bytes.load(Relaxed),
            transactions_total: run.transactions.load(Relaxed),
            duration_s: span_ns as f64 / 1e9,
            mapped_bytes: maps.then(|| run.mapped_bytes.load(Relaxed)),
            mismatches: ended.mismatches.clone(),
            threads: self.busy(&run),
            tcp: ended.tcp,
        }
    }

    fn busy(&self, run: &Run) -> Vec<ServerThread> {
        let Some((begin_ns, cpu_ns)) = run.begin.get() else { return Vec::new() };
        // The time between the run's end and the question is idle and belongs to nobody.
        let end_ns = run.last_ns.load(Relaxed).max(begin_ns + 1);
        let tallies = &self.shared.tallies;
        let threads = tallies.iter().zip(cpu_ns).map(|(tally, before)| {
            let used = thread::cpu_clock_ns(tally.tid.load(Relaxed)).saturating_sub(*before);
            let cpu = tally.cpu.load(Relaxed);
            ServerThread {
                cpu: (cpu != u32::MAX).then_some(cpu),
                busy_ratio: (used as f64 / (end_ns - begin_ns) as f64).min(1.0),
            }
        });
        threads.collect()
    }

    /// Lets intervals read a long-lived connection.
    pub(super) fn enter(&self, socket: &Socket) -> Listed {
        self.live.enter(socket)
    }

    /// A connection's end: what it moved, what its socket says.
    pub(super) fn leave(&self, connection: &Connection, thread: usize, error: Option<String>) {
        let moved = connection.moved();
        if let Some(run) = &connection.run {
            run.add(moved);
        }
        let mut past = self.past();
        if let Some(error) = &error {
            *past.errors.entry(error.clone()).or_default() += 1;
        }
        past.mapped_bytes += moved.mapped_bytes;
        if !connection.is_long_lived {
            return;
        }
        let socket = &connection.socket;
        if let Some(placed) = connection.placed {
            self.inboxes[placed].load.fetch_sub(1, SeqCst);
        }
        let tcp = socket.tcp_info().ok().map(|info| TcpSummary::from(&info));
        if let Some(id) = busy_poll::napi_id(socket) {
            past.napi = (past.napi.0 + 1, past.napi.1 + u64::from(id != 0));
        }
        past.tcp = TcpSummary::of(past.tcp.into_iter().chain(tcp));
        let name = crate::tcp::result::name(connection.client(), socket.local().ok());
        if past.listed.len() < LISTED {
            past.listed.push(ConnectionResult {
                name: name.clone(),
                thread: thread as u32,
                sent_bytes: moved.sent_bytes,
                delivered_bytes: moved.delivered_bytes,
                transactions_total: moved.transactions,
                error,
                tcp,
            });
        }
        let wrong =
            connection.mismatch().map(|offset_bytes| Mismatch { connection: name, offset_bytes });
        if let Some(wrong) = &wrong
            && past.mismatches.len() < MISMATCHES
        {
            past.mismatches.push(wrong.clone());
        }
        drop(past);
        if let Some(run) = &connection.run {
            let mut ended = locked(&run.ended);
            ended.tcp = TcpSummary::of(ended.tcp.into_iter().chain(tcp));
            if ended.mismatches.len() < MISMATCHES {
                ended.mismatches.extend(wrong);
            }
        }
    }

    /// `TCP_INFO` of the connections that are open now.
    pub(super) fn sample(&self) -> Option<TcpSummary> {
        self.live.sample()
    }

    /// The thread that has the fewest long-lived connections, `mine` where that is no worse; it counts as taken.
    pub(super) fn place(&self, mine: usize, deal: bool) -> usize {
        let load = |index: usize| self.inboxes[index].load.load(SeqCst);
        let least = (0..self.inboxes.len()).min_by_key(|index| load(*index)).unwrap_or(mine);
        let to = if deal && load(least) < load(mine) { least } else { mine };
        self.inboxes[to].load.fetch_add(1, SeqCst);
        to
    }

    /// Gives a connection to another thread.
    pub(super) fn hand_over(&self, to: usize, connection: Connection) {
        locked(&self.inboxes[to].waiting).push(connection);
        // A full counter rings, too.
        let _ = self.inboxes[to].bell.write(1);
    }

    pub(super) fn inbox(&self, index: usize) -> &Inbox {
        &self.inboxes[index]
    }
}

impl Inbox {
    /// Takes what was handed over.
    pub(super) fn take(&self) -> Vec<Connection> {
        let _ = self.bell.read();
        std::mem::take(&mut *locked(&self.waiting))
    }
}
