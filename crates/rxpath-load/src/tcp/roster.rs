//! The connections that are open, for whoever reads their `TCP_INFO` while their threads use them.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::socket::Socket;
use crate::engine::tcp_info::TcpInfo;
use crate::tcp::connection::TcpSummary;

/// Connections that a reading takes in: it shall cost less than a millisecond.
const SAMPLED: usize = 256;

/// A lock whose holder panicked: nothing that is locked here can be half-written.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Descriptors of open connections: each leaves before it is closed.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Vec<RawFd>>);

impl Roster {
    pub(crate) fn enter(&self, socket: &Socket) {
        locked(&self.0).push(socket.fd());
    }

    pub(crate) fn leave(&self, socket: &Socket) {
        locked(&self.0).retain(|fd| *fd != socket.fd());
    }

    /// `TCP_INFO` of the first 256; `None` of none.
    pub(crate) fn sample(&self) -> Option<TcpSummary> {
        // The lock keeps the descriptors open meanwhile.
        let open = locked(&self.0);
        let infos = open.iter().take(SAMPLED).filter_map(|fd| TcpInfo::read(*fd).ok());
        TcpSummary::of(infos.map(|info| TcpSummary::from(&info)))
    }
}
