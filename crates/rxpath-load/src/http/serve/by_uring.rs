//! The loop over an io_uring: one system call submits all replies and waits for the next requests.
//!
//! Requests come by one order per connection (multishot receive) into buffers that the thread provides, so that
//! 10,000 idle connections hold none.

use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};

use crate::LoadError;
use crate::engine::clock;
use crate::engine::listen::{errno_name, is_exhaustion};
use crate::engine::uring::{self, Done, Region, Shape, Uring};
use crate::http::serve::connection::{Conn, End, Pending, Token};
use crate::http::serve::count::CloseReason;
use crate::http::serve::dialogue::ConnectionAction;
use crate::http::serve::reply::Kind;
use crate::http::serve::worker_state::{Overdue, WorkerState};

/// Submissions, buffers and their bytes: a request fits one buffer, and a burst of 1000 fits all of them.
const SHAPE: Shape = Shape { entries: 2048, buffers: 1024, buffer_bytes: 4096 };
/// The orders' own byte of the token; accepting has a number of its own.
const ACCEPT: u64 = uring::ACCEPT & ORDER;
const RECEIVE: u64 = 2 << 56;
const SEND: u64 = 3 << 56;
const CANCEL: u64 = 4 << 56;
const ORDER: u64 = 0xff << 56;
/// Requests that may wait behind one send before the connection is read no further.
const MAX_PENDING: u64 = 4096;
/// Memory that their replies may take before the connection is closed: taking the order to receive back takes a while.
const MAX_HELD_BYTES: usize = 64 * 1024;
/// Spare memory for replies in flight.
const MAX_SPARE: usize = 1024;
/// Longest wait that counts on short sends to be done at once. Longer than a tick: a timer that is due before the tick is
/// programmed into the hardware in each wait, which traps in a virtual machine.
const SHORT: Duration = Duration::from_millis(20);

/// A thread that serves by io_uring.
#[derive(Debug)]
pub(super) struct UringLoop {
    ring: Uring,
    state: WorkerState,
    done: Vec<Done>,
    // They move between here and the connections as they are.
    #[expect(clippy::vec_box)]
    spare: Vec<Box<Pending>>,
    overdue: Vec<(Token, Overdue)>,
    /// Sends since the last wait that fit any empty send buffer.
    short_sends: usize,
    is_accepting: bool,
}

impl UringLoop {
    pub(super) fn new(state: WorkerState) -> Result<Self, LoadError> {
        let ring = Uring::new(SHAPE, state.plan.reply_table.blocks())?;
        if let Some(poll) = state.plan.options.busy_poll {
            let what = "--busy-poll with --engine uring (IORING_REGISTER_NAPI, Linux 6.9)";
            ring.set_busy(poll.poll_us, poll.prefer).map_err(LoadError::unsupported(what))?;
        }
        let mut engine = Self {
            ring,
            done: Vec::with_capacity(8192),
            spare: Vec::with_capacity(MAX_SPARE),
            overdue: Vec::new(),
            short_sends: 0,
            is_accepting: false,
            state,
        };
        engine.order_accept().map_err(|e| LoadError::io("io_uring_enter", e))?;
        Ok(engine)
    }

    pub(super) fn run(mut self) -> Result<WorkerState, LoadError> {
        let mut ended = Ok(());
        while ended.is_ok() && !self.state.shared.is_stopped() {
            ended = self.turn();
        }
        self.ring.cancel_all();
        // Connections that came with the end are closed here.
        self.ring.reap(&mut self.done);
        self.done.clear();
        ended.map_err(|e| LoadError::io("io_uring_enter", e))?;
        Ok(self.state)
    }

    /// One wait and all that it gave.
    fn turn(&mut self) -> std::io::Result<()> {
        let timeout = Duration::from_millis(self.state.timeout_ms().into());
        let sends = std::mem::take(&mut self.short_sends);
        let before_ns = self.state.now_ns;
        // Short sends are done within the call unless their client does not read. Waiting for one completion more than
        // these saves a second call; should one have to wait for room, the time bounds what it holds up.
        match (timeout.is_zero(), sends) {
            (true, _) => self.ring.wait(0, timeout)?,
            (false, 0) => self.ring.wait(1, timeout)?,
            (false, sends) => self.ring.wait(sends + 1, timeout.min(SHORT))?,
        }
        self.state.now_ns = clock::now_ns();
        let mut done = std::mem::take(&mut self.done);
        self.ring.reap(&mut done);
        let events = done.iter().filter(|done| done.data & ORDER != SEND).count();
        self.state.counts.waited(before_ns, self.state.now_ns, events);
        for one in done.drain(..) {
            self.completed(one)?;
        }
        self.done = done;
        self.ring.show_buffers();
        self.state.overdue(&mut self.overdue);
        if !self.overdue.is_empty() {
            self.end_overdue()?;
        }
        if self.state.pause_is_over() && !self.is_accepting {
            self.state.paused_until_ns = None;
            self.order_accept()?;
        }
        self.state.publish();
        Ok(())
    }

    #[inline]
    fn completed(&mut self, done: Done) -> std::io::Result<()> {
        match done.data & ORDER {
            RECEIVE => self.received(done),
            SEND => self.sent(&done),
            ACCEPT => self.accepted(done),
            _ => Ok(()),
        }
    }

    fn order_accept(&mut self) -> std::io::Result<()> {
        self.is_accepting = true;
        self.ring.accept(&self.state.plan.listener)
    }

    fn order_receive(&mut self, token: Token) -> std::io::Result<()> {
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        conn.is_receiving = true;
        self.ring.receive(conn.socket.fd(), RECEIVE | token)
    }

    fn accepted(&mut self, done: Done) -> std::io::Result<()> {
        if !done.has_more {
            self.is_accepting = false;
        }
        if let Some(socket) = done.accepted {
            let token = self.state.welcome(Conn::new(socket, self.state.now_ns));
            self.order_receive(token)?;
            if !self.state.has_room() && self.state.paused_until_ns.is_none() {
                self.state.pause("max-connections");
                self.ring.cancel(uring::ACCEPT, CANCEL)?;
            }
        } else {
            let error = std::io::Error::from_raw_os_error(-done.result);
            if is_exhaustion(&error) {
                self.state.pause(&errno_name(&error));
            } else if done.result != -libc::ECANCELED {
                *self.state.counts.accept_errors.entry(errno_name(&error)).or_default() += 1;
            }
        }
        if !self.is_accepting && self.state.paused_until_ns.is_none() {
            self.order_accept()?;
        }
        Ok(())
    }

    fn received(&mut self, done: Done) -> std::io::Result<()> {
        let token = done.data & !ORDER;
        let next = self.take(token, &done);
        if let Some(buffer) = done.buffer {
            self.ring.give_back(buffer);
        }
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        if !done.has_more {
            conn.is_receiving = false;
        }
        if done.result <= 0 {
            return self.not_received(token, done.result);
        }
        if next != ConnectionAction::Open {
            conn.end = WorkerState::end(next, self.state.scratch.queue.has_refusal());
        }
        if !self.state.scratch.queue.is_empty() {
            self.answer(token)?;
        }
        self.go_on_receiving(token)
    }

    /// Lets the dialogue have what was received.
    #[inline]
    fn take(&mut self, token: Token, done: &Done) -> ConnectionAction {
        let (Some(conn), Some(buffer)) = (self.state.connections.get_mut(token), &done.buffer)
        else {
            return ConnectionAction::Open;
        };
        let Ok(len) = usize::try_from(done.result) else { return ConnectionAction::Open };
        self.state.counts.received_bytes += len as u64;
        if conn.end != End::Open {
            return ConnectionAction::Open;
        }
        let next = conn.dialogue.feed(&mut self.state.scratch, self.ring.received(buffer, len));
        if conn.dialogue.is_within_body() {
            conn.since_ns = self.state.now_ns;
        }
        next
    }

    /// The end of the stream, or why nothing came.
    #[cold]
    fn not_received(&mut self, token: Token, result: i32) -> std::io::Result<()> {
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        match -result {
            // The replies to what came before the end are still owed.
            0 if conn.pending.is_some() => {
                if conn.end == End::Open {
                    conn.end = End::Close(CloseReason::Peer);
                }
            }
            0 => {
                let why = conn.why_ended();
                self.dismiss(token, why);
            }
            // No buffer was free, or we took the order back: it is given again when there is room.
            libc::ENOBUFS | libc::ECANCELED => return self.go_on_receiving(token),
            _ => self.dismiss(token, CloseReason::Error),
        }
        Ok(())
    }

    /// Rearms the receive when it ended, or cancels it when too much waits to be sent.
    #[inline]
    fn go_on_receiving(&mut self, token: Token) -> std::io::Result<()> {
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        let waiting = conn.pending.as_ref().map_or((0, 0), |pending| {
            (pending.queue.requests().max(pending.queue.runs() as u64), pending.queue.held_bytes())
        });
        if waiting.1 > MAX_HELD_BYTES {
            self.dismiss(token, CloseReason::NotReading);
            return Ok(());
        }
        match (conn.is_receiving, waiting.0 > MAX_PENDING) {
            (false, false) => self.order_receive(token),
            (true, true) => self.ring.cancel(RECEIVE | token, CANCEL),
            _ => Ok(()),
        }
    }

    /// Queues the prepared replies behind those in flight, or sends them.
    #[inline]
    fn answer(&mut self, token: Token) -> std::io::Result<()> {
        let read_ns = self.state.now_ns;
        let Some(conn) = self.state.connections.get_mut(token) else {
            self.state.scratch.queue.clear();
            return Ok(());
        };
        if let Some(pending) = &mut conn.pending {
            pending.queue.append(&mut self.state.scratch.queue);
            return Ok(());
        }
        let mut pending = self.spare.pop().unwrap_or_default();
        pending.read_ns = read_ns;
        std::mem::swap(&mut pending.queue, &mut self.state.scratch.queue);
        conn.pending = Some(pending);
        self.order_send(token)
    }

    #[inline]
    fn order_send(&mut self, token: Token) -> std::io::Result<()> {
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        let Some(pending) = &conn.pending else { return Ok(()) };
        let Some((block, range)) = pending.queue.part(&self.state.plan.reply_table) else {
            return Ok(());
        };
        self.short_sends += usize::from(range.len() <= uring::SURELY_FITS_BYTES);
        self.ring.send(conn.socket.fd(), Region { block, range }, SEND | token)
    }

    #[inline]
    fn sent(&mut self, done: &Done) -> std::io::Result<()> {
        let token = done.data & !ORDER;
        let state = &mut self.state;
        let Some(conn) = state.connections.get_mut(token) else { return Ok(()) };
        let Some(mut pending) = conn.pending.take() else { return Ok(()) };
        let Ok(sent) = u64::try_from(done.result) else {
            self.dismiss(token, CloseReason::Error);
            return Ok(());
        };
        conn.since_ns = state.now_ns;
        state.counts.sent_bytes += sent;
        let requests = pending.queue.requests();
        pending.queue.advance(&state.plan.reply_table, sent, &mut state.counts.done);
        if !pending.queue.is_empty() {
            conn.pending = Some(pending);
            return self.order_send(token);
        }
        state.counts.answered(requests, pending.read_ns, state.now_ns);
        if self.spare.len() < MAX_SPARE {
            self.spare.push(pending);
        }
        if conn.end == End::Open {
            return if conn.is_receiving { Ok(()) } else { self.order_receive(token) };
        }
        self.finish(token)
    }

    /// All replies are out and the connection is to end.
    #[cold]
    fn finish(&mut self, token: Token) -> std::io::Result<()> {
        let Some(conn) = self.state.connections.get_mut(token) else { return Ok(()) };
        match conn.end {
            End::Close(why) => self.dismiss(token, why),
            End::Linger(why) => {
                conn.end = End::Lingering(why);
                let _ = shutdown(conn.socket.fd(), Shutdown::Write);
                self.state.counts.calls += 1;
                if !conn.is_receiving {
                    return self.order_receive(token);
                }
            }
            End::Open | End::Lingering(_) => {}
        }
        Ok(())
    }

    /// Closes a connection. An order to receive would keep it open: shutting down ends the order.
    fn dismiss(&mut self, token: Token, why: CloseReason) {
        let Some(conn) = self.state.connections.get_mut(token) else { return };
        if conn.is_receiving || conn.pending.is_some() {
            let _ = shutdown(conn.socket.fd(), Shutdown::Both);
            self.state.counts.calls += 1;
        }
        self.state.dismiss(token, why);
    }

    #[cold]
    fn end_overdue(&mut self) -> std::io::Result<()> {
        while let Some((token, overdue)) = self.overdue.pop() {
            match overdue {
                Overdue::Close(why) => self.dismiss(token, why),
                Overdue::Tell => {
                    self.state.scratch.queue.push(Kind::Timeout);
                    if let Some(conn) = self.state.connections.get_mut(token) {
                        conn.end = End::Linger(CloseReason::Slow);
                    }
                    self.answer(token)?;
                }
            }
        }
        Ok(())
    }
}
