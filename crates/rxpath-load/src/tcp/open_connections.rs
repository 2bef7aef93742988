//! The open connections, so that another thread can read their `TCP_INFO` while their threads use them.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::socket::Socket;
use crate::tcp::connection::TcpSummary;

/// Connections that a reading takes in: it shall cost less than a millisecond.
const SAMPLED: usize = 256;

/// A lock whose holder panicked: nothing that is locked here can be half-written.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Descriptors of open connections.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(Mutex<Vec<RawFd>>);

/// A slot in the list; dropping it frees the slot. The owner of the socket also owns this, in a field before the
/// socket, so that no descriptor is read that is closed or reused for another file.
#[derive(Debug)]
pub(crate) struct Listed {
    open_connections: Arc<OpenConnections>,
    fd: RawFd,
}

impl Drop for Listed {
    fn drop(&mut self) {
        locked(&self.open_connections.0).retain(|fd| *fd != self.fd);
    }
}

impl OpenConnections {
    /// Lets readings take this connection in, for as long as the place is kept.
    #[must_use]
    pub(crate) fn enter(self: &Arc<Self>, socket: &Socket) -> Listed {
        locked(&self.0).push(socket.fd());
        Listed { open_connections: Arc::clone(self), fd: socket.fd() }
    }

    /// `TCP_INFO` of the first 256; `None` of none.
    pub(crate) fn sample(&self) -> Option<TcpSummary> {
        // The lock keeps the descriptors open meanwhile.
        let open = locked(&self.0);
        TcpSummary::of(open.iter().take(SAMPLED).filter_map(|fd| TcpSummary::read(*fd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection as its owners hold it.
    struct Owner {
        _listed: Listed,
        socket: Socket,
    }

    #[test]
    fn a_place_ends_with_its_connection() {
        let addr = "127.0.0.1:0".parse().unwrap();
        let open_connections = Arc::new(OpenConnections::default());
        let enter = || {
            let socket = Socket::tcp(addr).unwrap();
            Owner { _listed: open_connections.enter(&socket), socket }
        };
        let (one, other) = (enter(), enter());
        assert!(open_connections.sample().is_some());
        // However its owner ends, an error or a panic among it.
        drop(one);
        assert_eq!(*locked(&open_connections.0), [other.socket.fd()]);
        drop(other);
        assert!(open_connections.sample().is_none());
    }
}
