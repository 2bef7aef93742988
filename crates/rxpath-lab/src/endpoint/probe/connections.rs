//! Answers connections that begin with the secret, all of them at once: a stranger that says nothing keeps no probe waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{ANSWER_LIMIT, CONNECT_LIMIT, GLANCE, HeardProbe};

/// Connections that are open at the same time. A further one closes the oldest that was not answered.
const MOST_OPEN: usize = 64;

/// A connection that is open here.
struct OpenConnection {
    connection: TcpStream,
    /// What it began with.
    said: Vec<u8>,
    is_answered: bool,
    /// It is closed then.
    until: Instant,
}

/// Answers at a listener that does not block, until the order to end.
pub(super) fn answer_connections(
    listener: &TcpListener,
    nonce: &[u8],
    stop: &AtomicBool,
) -> Vec<HeardProbe> {
    let mut open: Vec<OpenConnection> = Vec::new();
    let mut heard = Vec::new();
    // The other end closes first: the address that waits for late packets is then not this port.
    while !stop.load(Ordering::Relaxed) || open.iter().any(|one| one.is_answered) {
        wait(listener, &open);
        if accept(listener, &mut open).is_err() {
            break;
        }
        let now = Instant::now();
        open.retain_mut(|one| {
            let was_answered = one.is_answered;
            let goes_on = one.goes_on(nonce, now);
            if one.is_answered && !was_answered {
                heard.push(HeardProbe { bytes: nonce.len() as u32, ..HeardProbe::default() });
            }
            goes_on
        });
    }
    heard
}

/// Waits until one of them has something to read, for [`GLANCE`] at most.
fn wait(listener: &TcpListener, open: &[OpenConnection]) {
    let connections = open.iter().map(|one| one.connection.as_fd());
    let all = std::iter::once(listener.as_fd()).chain(connections);
    let mut all: Vec<PollFd> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    // After a signal, the next wait goes on.
    let _ = poll(&mut all, PollTimeout::from(GLANCE.as_millis() as u16));
}

/// Takes connections that came.
fn accept(listener: &TcpListener, open: &mut Vec<OpenConnection>) -> io::Result<()> {
    for _ in 0..MOST_OPEN {
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(true)?;
                if open.len() >= MOST_OPEN {
                    open.remove(open.iter().position(|one| !one.is_answered).unwrap_or(0));
                }
                let (said, until) = (Vec::new(), Instant::now() + CONNECT_LIMIT);
                open.push(OpenConnection { connection, said, is_answered: false, until });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // Of this connection alone.
            Err(error) if is_passing(&error) || error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl OpenConnection {
    /// Reads on and answers the secret; whether it stays open. A wrong secret is known only as a whole: an earlier end would
    /// show a stranger which part of it was right.
    fn goes_on(&mut self, nonce: &[u8], now: Instant) -> bool {
        let mut bytes = [0; 64];
        let read = match self.connection.read(&mut bytes) {
            Ok(read) => read,
            Err(error) => return is_passing(&error) && now < self.until,
        };
        // The end of the connection, or more than the secret.
        if read == 0 || self.is_answered {
            return false;
        }
        self.said.extend_from_slice(&bytes[..read]);
        if self.said.starts_with(nonce) {
            self.is_answered = self.connection.write_all(nonce).is_ok();
            self.until = now + ANSWER_LIMIT;
            return self.is_answered;
        }
        self.said.len() < nonce.len() && now < self.until
    }
}
