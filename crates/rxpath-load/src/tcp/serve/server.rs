//! State shared by the threads of a server: the runs of its clients, the connections, the handover between threads.
//!
//! Locks are taken when a connection begins or ends, never per read or transaction.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::busy_poll;
use crate::tally::Shared;
use crate::tcp::connection::{ConnectionResult, LISTED, TcpSummary};
use crate::tcp::open_connections::locked;
use crate::tcp::result::{ServeResult, name};
use crate::tcp::serve::connection::Connection;
use crate::tcp::serve::runs::{MISMATCHES, Runs};

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
    pub(super) runs: Runs,
    /// Events of connections, in addition to the counters of the threads.
    past: Mutex<ServeResult>,
    /// Lasting connections without and with a NAPI instance, of those whose kernel reports it.
    pub(super) napi: [AtomicU64; 2],
    pub(super) inboxes: Vec<Inbox>,
}

impl ServerState {
    pub(super) fn new(shared: Arc<Shared>) -> std::io::Result<Self> {
        let inboxes = shared.tallies.iter().map(|_| {
            let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
            Ok(Inbox { waiting: Mutex::default(), bell, load: AtomicU64::new(0) })
        });
        let inboxes = inboxes.collect::<std::io::Result<_>>()?;
        let napi = <[AtomicU64; 2]>::default();
        Ok(Self { runs: Runs::new(shared), past: Mutex::default(), napi, inboxes })
    }

    pub(super) fn past(&self) -> MutexGuard<'_, ServeResult> {
        locked(&self.past)
    }

    /// A connection's end: what it moved, what its socket says.
    pub(super) fn leave(&self, connection: &Connection, thread: usize, error: Option<String>) {
        let moved = connection.moved();
        if let Some(run) = &connection.run {
            run.add(moved);
        }
        let mut past = self.past();
        if let Some(error) = &error {
            *past.connection_errors_total.entry(error.clone()).or_default() += 1;
        }
        *past.mapped_bytes.get_or_insert_default() += moved.mapped_bytes;
        if !connection.is_long_lived {
            return;
        }
        let socket = &connection.socket;
        if let Some(placed) = connection.placed {
            self.inboxes[placed].load.fetch_sub(1, SeqCst);
        }
        let tcp = TcpSummary::read(socket.fd());
        if let Some(id) = busy_poll::napi_id(socket) {
            self.napi[usize::from(id != 0)].fetch_add(1, SeqCst);
        }
        past.tcp = TcpSummary::of(past.tcp.into_iter().chain(tcp));
        let name = name(socket.peer(), socket.local());
        let wrong = connection.sink.wrong(&name);
        if past.connections.len() < LISTED {
            past.connections.push(ConnectionResult {
                name,
                thread: thread as u32,
                sent_bytes: moved.sent_bytes,
                delivered_bytes: moved.delivered_bytes,
                transactions_total: moved.transactions,
                error,
                tcp,
            });
        }
        if past.mismatches.len() < MISMATCHES {
            past.mismatches.extend(wrong.clone());
        }
        drop(past);
        if let Some(run) = &connection.run {
            run.end(tcp, wrong);
        }
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
}

impl Inbox {
    /// Takes what was handed over.
    pub(super) fn take(&self) -> Vec<Connection> {
        let _ = self.bell.read();
        std::mem::take(&mut *locked(&self.waiting))
    }
}
