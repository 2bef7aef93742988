//! The loop over an epoll set.
//!
//! The common request costs one `recv` and one `send`: the buffer belongs to the thread, the replies are prepared, and
//! a read that did not fill the buffer is not repeated just to get EAGAIN.

use std::io::{self, ErrorKind, IoSlice};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recv, send, sendmsg, shutdown};

use crate::LoadError;
use crate::engine::clock;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::listen::{errno_name, is_exhaustion};
use crate::http::serve::connection::{Conn, End, Pending, Token};
use crate::http::serve::count::{CloseReason, Counts};
use crate::http::serve::dialogue::ConnectionAction;
use crate::http::serve::options::Trigger;
use crate::http::serve::reply::{Kind, MAX_SLICES, ReplyQueue, ReplyTable};
use crate::http::serve::worker_state::{Overdue, WorkerState};

/// The listener's token: no connection has this number.
const LISTENER: Token = u64::MAX;
/// Most connections accepted after one event.
const MAX_ACCEPTS: u32 = 64;

/// Most writes to one connection before the others have their turn.
const MAX_WRITES: u32 = 8;

const READ: MsgFlags = MsgFlags::MSG_DONTWAIT;
const WRITE: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// A thread that serves by epoll.
#[derive(Debug)]
pub(super) struct EpollLoop {
    state: WorkerState,
    epoll: Epoll,
    events: Vec<Event>,
    buffer: Box<[u8]>,
    is_edge: bool,
    /// Connections that may have more to read or to write although no event will say so.
    again: Vec<Token>,
    /// The same list while it is worked through.
    todo: Vec<Token>,
    overdue: Vec<(Token, Overdue)>,
    accepts: u32,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote {
    /// All.
    All,
    /// The socket takes no more.
    Full,
    /// The others shall have their turn.
    Enough,
}

impl EpollLoop {
    pub(super) fn new(state: WorkerState, epoll: Epoll) -> Result<Self, LoadError> {
        let options = &state.plan.options;
        let engine = Self {
            epoll,
            events: vec![Event::empty(); options.events.max(1)],
            buffer: vec![0; state.scratch.rules.read_bytes()].into(),
            is_edge: options.trigger != Some(Trigger::Level),
            again: Vec::with_capacity(1024),
            todo: Vec::with_capacity(1024),
            overdue: Vec::new(),
            accepts: 1,
            state,
        };
        engine.watch_listener().map_err(|e| LoadError::io("epoll_ctl", e))?;
        Ok(engine)
    }

    /// Each connection wakes one thread, also where several share the listener.
    fn watch_listener(&self) -> io::Result<()> {
        let flags = Flags::EPOLLIN | Flags::EPOLLEXCLUSIVE;
        self.epoll.add(&*self.state.plan.listener, flags, LISTENER)
    }

    /// What a connection is watched for. An edge-triggered one is watched for everything once: the kernel tells
    /// of room to write only to those who ran out of it (`sk_stream_write_space`).
    fn interest(&self, is_full: bool) -> Flags {
        let either = Flags::EPOLLRDHUP;
        match (self.is_edge, is_full) {
            (true, _) => either | Flags::EPOLLIN | Flags::EPOLLOUT | Flags::EPOLLET,
            (false, false) => either | Flags::EPOLLIN,
            (false, true) => Flags::EPOLLOUT,
        }
    }

    pub(super) fn run(mut self) -> Result<WorkerState, LoadError> {
        while !self.state.shared.is_stopped() {
            self.turn().map_err(|e| LoadError::io("epoll_wait", e))?;
        }
        Ok(self.state)
    }

    /// One wait and all that it gave.
    fn turn(&mut self) -> io::Result<()> {
        let timeout_ms = if self.again.is_empty() { self.state.timeout_ms() } else { 0 };
        let before_ns = self.state.now_ns;
        let got = self.epoll.wait(&mut self.events, timeout_ms)?;
        self.state.now_ns = clock::now_ns();
        self.state.counts.waited(before_ns, self.state.now_ns, got);
        for index in 0..got {
            let event = self.events[index];
            if event.data() == LISTENER {
                self.accept();
            } else {
                self.event(event.data(), event.events());
            }
        }
        if !self.again.is_empty() {
            self.go_on();
        }
        self.state.overdue(&mut self.overdue);
        if !self.overdue.is_empty() {
            self.end_overdue();
        }
        if self.state.pause_is_over() {
            self.state.paused_until_ns = None;
            self.state.counts.calls += 1;
            self.watch_listener()?;
        }
        self.state.publish();
        Ok(())
    }

    /// Accepts some: one, and more the more there were the last times.
    fn accept(&mut self) {
        for _ in 0..self.accepts {
            if !self.state.has_room() {
                return self.pause("max-connections");
            }
            self.state.counts.calls += 1;
            match self.state.plan.listener.accept() {
                Ok(socket) => self.welcome(Conn::new(socket, self.state.now_ns)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accepts = (self.accepts / 2).max(1);
                    return;
                }
                Err(error) => {
                    let name = errno_name(&error);
                    if is_exhaustion(&error) {
                        return self.pause(&name);
                    }
                    *self.state.counts.accept_errors.entry(name).or_default() += 1;
                }
            }
        }
        self.accepts = (self.accepts * 2).min(MAX_ACCEPTS);
    }

    fn welcome(&mut self, conn: Conn) {
        let flags = self.interest(false);
        let token = self.state.welcome(conn);
        let Some(conn) = self.state.connections.get_mut(token) else { return };
        let watched = self.epoll.add(&conn.socket, flags, token);
        self.state.counts.calls += 1;
        if let Err(error) = watched {
            let name = format!("epoll_ctl: {}", errno_name(&error));
            *self.state.counts.accept_errors.entry(name).or_default() += 1;
            self.state.dismiss(token, CloseReason::Error);
        }
    }

    #[cold]
    fn pause(&mut self, why: &str) {
        // A level-triggered listener that is not served would wake this thread repeatedly.
        let _ = self.epoll.remove(&*self.state.plan.listener);
        self.state.counts.calls += 1;
        self.state.pause(why);
    }

    #[inline]
    fn event(&mut self, token: Token, flags: Flags) {
        let Some(conn) = self.state.connections.get_mut(token) else { return };
        if conn.pending.is_some() {
            let is_writable = Flags::EPOLLOUT | Flags::EPOLLERR | Flags::EPOLLHUP;
            if !flags.intersects(is_writable) || !self.write_pending(token) {
                return;
            }
        }
        self.read(token, flags.intersects(Flags::EPOLLRDHUP | Flags::EPOLLHUP | Flags::EPOLLERR));
    }

    /// Reads once and answers. `is_ending` says that the end, or an error, waits behind the data.
    #[inline]
    fn read(&mut self, token: Token, is_ending: bool) {
        let state = &mut self.state;
        let Some(conn) = state.connections.get_mut(token) else { return };
        state.counts.calls += 1;
        let got = match recv(conn.socket.fd(), &mut self.buffer, READ) {
            Ok(0) => {
                let why = conn.why_ended();
                return state.dismiss(token, why);
            }
            Ok(got) => got,
            Err(Errno::EAGAIN) => return,
            Err(Errno::EINTR) => return self.again.push(token),
            Err(_) => return state.dismiss(token, CloseReason::Error),
        };
        state.counts.received_bytes += got as u64;
        let next = if conn.end == End::Open {
            conn.dialogue.feed(&mut state.scratch, &self.buffer[..got])
        } else {
            ConnectionAction::Open
        };
        if state.scratch.queue.is_empty() {
            // Part of a request. A body's piece is progress; a head's is not, or a byte a minute would hold us.
            if conn.dialogue.is_within_body() {
                conn.since_ns = state.now_ns;
            }
        } else if !self.answer(token, next) {
            return;
        }
        if got == self.buffer.len() || (is_ending && self.is_edge) {
            self.again.push(token);
        }
    }

    /// Writes what the scratch has for this connection; false when it is gone or must wait for room.
    #[inline]
    fn answer(&mut self, token: Token, next: ConnectionAction) -> bool {
        let state = &mut self.state;
        let read_ns = state.now_ns;
        let Some(conn) = state.connections.get_mut(token) else { return false };
        let requests = state.scratch.queue.requests();
        if next != ConnectionAction::Open {
            conn.end = WorkerState::end(next, state.scratch.queue.has_refusal());
        }
        let wrote =
            write(&mut state.scratch.queue, conn, &state.plan.reply_table, &mut state.counts);
        state.now_ns = clock::now_ns();
        match wrote {
            Ok(Wrote::All) => {
                conn.since_ns = state.now_ns;
                state.counts.answered(requests, read_ns, state.now_ns);
                conn.end == End::Open || self.finish(token)
            }
            Ok(part) => {
                conn.since_ns = state.now_ns;
                let queue = std::mem::take(&mut state.scratch.queue);
                conn.pending = Some(Box::new(Pending { queue, read_ns }));
                self.change_interest(token, true);
                if part == Wrote::Enough {
                    self.again.push(token);
                }
                false
            }
            Err(_) => {
                state.scratch.queue.clear();
                state.dismiss(token, CloseReason::Error);
                false
            }
        }
    }

    /// Goes on writing; true when all is out and the connection stays.
    fn write_pending(&mut self, token: Token) -> bool {
        let state = &mut self.state;
        let Some(conn) = state.connections.get_mut(token) else { return false };
        let Some(mut pending) = conn.pending.take() else { return true };
        let (requests, sent) = (pending.queue.requests(), state.counts.sent_bytes);
        let wrote = write(&mut pending.queue, conn, &state.plan.reply_table, &mut state.counts);
        state.now_ns = clock::now_ns();
        if state.counts.sent_bytes > sent {
            conn.since_ns = state.now_ns;
        }
        match wrote {
            Ok(Wrote::All) => {
                state.counts.answered(requests, pending.read_ns, state.now_ns);
                let stays = conn.end == End::Open || self.finish(token);
                if stays {
                    self.change_interest(token, false);
                }
                stays
            }
            Ok(part) => {
                conn.pending = Some(pending);
                if part == Wrote::Enough {
                    self.again.push(token);
                }
                false
            }
            Err(_) => {
                state.dismiss(token, CloseReason::Error);
                false
            }
        }
    }

    /// Level-triggered only: asks for room instead of data, or the other way.
    fn change_interest(&mut self, token: Token, is_full: bool) {
        let flags = self.interest(is_full);
        if self.is_edge {
            return;
        }
        let Some(conn) = self.state.connections.get_mut(token) else { return };
        let changed = self.epoll.change(&conn.socket, flags, token);
        self.state.counts.calls += 1;
        if changed.is_err() {
            self.state.dismiss(token, CloseReason::Error);
        }
    }

    /// All replies are out and the connection is to end; true while it lingers.
    #[cold]
    fn finish(&mut self, token: Token) -> bool {
        let Some(conn) = self.state.connections.get_mut(token) else { return false };
        match conn.end {
            End::Close(why) => {
                self.state.dismiss(token, why);
                false
            }
            End::Linger(why) => {
                conn.end = End::Lingering(why);
                let _ = shutdown(conn.socket.fd(), Shutdown::Write);
                self.state.counts.calls += 1;
                // The edge-triggered set does not report again the data that arrived meanwhile.
                true
            }
            End::Open | End::Lingering(_) => true,
        }
    }

    /// Goes on where a turn ended early: once each, so that one busy client does not hold the others up.
    #[cold]
    fn go_on(&mut self) {
        std::mem::swap(&mut self.again, &mut self.todo);
        while let Some(token) = self.todo.pop() {
            let Some(conn) = self.state.connections.get_mut(token) else { continue };
            if conn.pending.is_none() || self.write_pending(token) {
                self.read(token, true);
            }
        }
    }

    #[cold]
    fn end_overdue(&mut self) {
        while let Some((token, overdue)) = self.overdue.pop() {
            match overdue {
                Overdue::Close(why) => self.state.dismiss(token, why),
                Overdue::Tell => {
                    self.state.scratch.queue.push(Kind::Timeout);
                    if let Some(conn) = self.state.connections.get_mut(token) {
                        conn.end = End::Linger(CloseReason::Slow);
                    }
                    self.answer(token, ConnectionAction::Open);
                }
            }
        }
    }
}

/// Writes as much of the queue as the socket takes.
#[inline]
fn write(
    queue: &mut ReplyQueue,
    conn: &Conn,
    reply_table: &ReplyTable,
    counts: &mut Counts,
) -> Result<Wrote, Errno> {
    for _ in 0..MAX_WRITES {
        let Some((piece, is_all)) = queue.piece(reply_table) else { return Ok(Wrote::All) };
        counts.calls += 1;
        let sent = if is_all {
            send(conn.socket.fd(), piece, WRITE)
        } else {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = queue.pieces(reply_table, &mut slices);
            sendmsg::<()>(conn.socket.fd(), &slices[..used], &[], WRITE, None)
        };
        match sent {
            Ok(sent) => {
                counts.sent_bytes += sent as u64;
                queue.advance(reply_table, sent as u64, &mut counts.done);
            }
            Err(Errno::EAGAIN) => return Ok(Wrote::Full),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(if queue.is_empty() { Wrote::All } else { Wrote::Enough })
}
