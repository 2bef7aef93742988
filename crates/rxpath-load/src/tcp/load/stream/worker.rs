//! One thread of a streaming client.
//!
//! With one connection that goes one way it makes one blocking call after the other; otherwise it is an epoll
//! loop. Both end the same direction: this side ends its direction, and reads until the server has ended the other.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::LoadError;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::tcp::is_passing;
use crate::engine::{clock, thread};
use crate::pace::{Pace, Pacing};
use crate::pool::Start;
use crate::tally::Tally;
use crate::tcp::load::options::{StreamDirection, StreamOptions};
use crate::tcp::load::stream::conn::StreamConn;
use crate::tcp::pattern::Pattern;
use crate::tcp::result::ThreadResult;
use crate::usage::UsageMeter;

/// Most events of one wait.
const EVENTS: usize = 256;
/// Calls on one connection in a row.
const STEPS: usize = 16;
/// Longest wait for the server to read what is under way.
const DRAIN_LIMIT_NS: u64 = 10_000_000_000;
/// Longest wait for an event: the stop is looked at in between.
const WAIT_NS: u64 = 500_000_000;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) conns: Vec<StreamConn>,
    pub(super) pattern: Arc<Pattern>,
    pub(super) options: StreamOptions,
}

/// What a worker saw; it holds the connections open.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) conns: Vec<StreamConn>,
    /// The server had not ended all connections when the patience was over.
    pub(super) undrained: usize,
    /// Bytes that the schedule asked for.
    pub(super) target_bytes: Option<u64>,
}

/// Whether threads make blocking calls.
pub(super) fn is_blocking(options: &StreamOptions) -> bool {
    options.direction != StreamDirection::Both
        && options.common.connections() == options.common.threads.count
}

/// Runs until the time or an order ends it.
pub(super) fn run(plan: Plan, start: &Start) -> Result<Report, LoadError> {
    thread::set_exact_timers();
    let mut worker = Worker::new(plan, start);
    // Towards the server alone the order may go ahead; a server that sends would begin before the start.
    let early = worker.plan.options.direction == StreamDirection::Send;
    if early {
        worker.plan.conns.iter_mut().for_each(StreamConn::order);
    }
    let Some(start_ns) = start.ready_and_wait() else {
        return Ok(worker.report(0));
    };
    if !early {
        worker.plan.conns.iter_mut().for_each(StreamConn::order);
    }
    worker.usage.restart();
    worker.go(start_ns).map_err(|e| LoadError::io("wait for sockets", e))?;
    let undrained = worker.drain().map_err(|e| LoadError::io("epoll_wait", e))?;
    Ok(worker.report(undrained))
}

struct Worker<'a> {
    plan: Plan,
    start: &'a Start<'a>,
    tally: &'a Tally,
    usage: UsageMeter,
    buffer: Vec<u8>,
    pace: Option<Pace>,
    end_ns: u64,
    /// The connection that the schedule gave to last.
    turn: usize,
    /// Connections that may wait for something else than before.
    touched: Vec<usize>,
    target_bytes: Option<u64>,
}

impl<'a> Worker<'a> {
    fn new(plan: Plan, start: &'a Start<'a>) -> Self {
        start.tally.connections.add(plan.conns.len() as u64);
        Self {
            buffer: vec![0; plan.options.common.buffer_bytes],
            touched: Vec::with_capacity(EVENTS + plan.conns.len()),
            usage: UsageMeter::new(start.cpu),
            plan,
            start,
            tally: start.tally,
            pace: None,
            end_ns: u64::MAX,
            turn: 0,
            target_bytes: None,
        }
    }

    fn go(&mut self, start_ns: u64) -> io::Result<()> {
        let options = &self.plan.options;
        let duration_ns = options.common.duration_ns;
        self.end_ns = duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        let each = options.common.buffer_bytes;
        let share = |bps: u64| self.start.share((bps / 8).max(1), each);
        self.pace = options.bitrate_bps.map(|bps| Pace::new(start_ns, share(bps), Pacing::Auto));
        if is_blocking(&self.plan.options) {
            self.block()?;
        } else {
            self.poll()?;
        }
        let now_ns = clock::now_ns().min(self.end_ns);
        self.target_bytes = self.pace.map(|pace| pace.due_before(now_ns) * each as u64);
        Ok(())
    }

    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns || self.start.shared.is_stopped()
    }

    /// One connection, one way.
    fn block(&mut self) -> io::Result<()> {
        self.plan.conns[0].socket.0.set_nonblocking(false)?;
        let mut now_ns = clock::now_ns();
        while !self.is_over(now_ns) && !self.plan.conns[0].is_ended {
            if self.plan.conns[0].due_bytes == 0 {
                if let Some(pace) = &self.pace {
                    pace.wait(now_ns, self.end_ns);
                }
                now_ns = clock::now_ns();
                self.allow_due(now_ns);
                continue;
            }
            if self.plan.options.direction == StreamDirection::Send {
                self.push(0);
            } else {
                self.pull(0);
            }
            now_ns = self.tally.last_ns.get().max(now_ns);
            self.allow_due(now_ns);
        }
        self.plan.conns[0].socket.0.set_nonblocking(true)
    }

    /// Lets connections send what is due by now, one after the other in turn.
    fn allow_due(&mut self, now_ns: u64) {
        let Some(pace) = &mut self.pace else { return };
        let buffer_bytes = self.plan.options.common.buffer_bytes as u64;
        while pace.next_ns <= now_ns.min(self.end_ns - 1) {
            pace.advance();
            self.turn = (self.turn + 1) % self.plan.conns.len();
            // One connection alone is touched over and over, and nobody takes it out.
            if self.touched.last() != Some(&self.turn) {
                self.touched.push(self.turn);
            }
            self.plan.conns[self.turn].due_bytes += buffer_bytes;
        }
    }

    /// One send call; true when it moved something.
    #[inline]
    fn push(&mut self, index: usize) -> bool {
        let conn = &mut self.plan.conns[index];
        let Some(feed) = &mut conn.feed else { return false };
        self.tally.calls.add(1);
        let most = usize::try_from(conn.due_bytes).unwrap_or(usize::MAX);
        match feed.push(&conn.socket, most) {
            Ok(sent) => {
                if conn.due_bytes != u64::MAX {
                    conn.due_bytes -= sent as u64;
                }
                self.tally.sent_bytes.add(sent as u64);
                self.usage.progress(self.tally, clock::now_ns());
                true
            }
            Err(error) => {
                if !is_passing(&error) {
                    conn.lose(&error);
                }
                false
            }
        }
    }

    /// One receive call; true when it moved something.
    #[inline]
    fn pull(&mut self, index: usize) -> bool {
        let conn = &mut self.plan.conns[index];
        let Some(sink) = &mut conn.sink else { return self.listen(index) };
        self.tally.calls.add(1);
        match sink.pull(&conn.socket, &mut self.buffer, &self.plan.pattern) {
            Ok(0) => {
                conn.lose(&ErrorKind::UnexpectedEof.into());
                false
            }
            Ok(got) => {
                self.tally.received_bytes.add(got as u64);
                self.usage.progress(self.tally, clock::now_ns());
                got == self.buffer.len()
            }
            Err(error) => {
                if !is_passing(&error) {
                    conn.lose(&error);
                }
                false
            }
        }
    }

    /// A server that only receives says nothing, but ends when it ends.
    fn listen(&mut self, index: usize) -> bool {
        let conn = &mut self.plan.conns[index];
        match conn.socket.recv(&mut self.buffer, 0) {
            // The server ended it before this side did.
            Ok(0) => conn.lose(&ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => conn.lose(&error),
        }
        false
    }

    /// Several connections, or both ways.
    fn poll(&mut self) -> io::Result<()> {
        let epoll = Epoll::new()?;
        let mut wanted = Vec::with_capacity(self.plan.conns.len());
        for (index, conn) in self.plan.conns.iter().enumerate() {
            let flags = wanted_of(conn);
            epoll.add(&conn.socket, flags, index as u64)?;
            wanted.push(flags);
        }
        let mut events = vec![Event::empty(); EVENTS];
        let mut open = wanted.iter().filter(|flags| !flags.is_empty()).count();
        let mut now_ns = clock::now_ns();
        while !self.is_over(now_ns) && open > 0 {
            self.tally.calls.add(1);
            let n = epoll.wait_ns(&mut events, self.patience_ns(now_ns))?;
            for event in &events[..n] {
                self.event(event.data() as usize, event.events());
            }
            now_ns = clock::now_ns();
            self.allow_due(now_ns);
            for index in self.touched.drain(..) {
                let conn = &self.plan.conns[index];
                let flags = wanted_of(conn);
                if wanted[index] != flags {
                    wanted[index] = flags;
                    open -= usize::from(flags.is_empty());
                    self.tally.calls.add(1);
                    epoll.change(&conn.socket, flags, index as u64)?;
                }
            }
        }
        Ok(())
    }

    /// How long nothing can become due.
    fn patience_ns(&self, now_ns: u64) -> u64 {
        let left = self.end_ns.saturating_sub(now_ns).clamp(1, WAIT_NS);
        match &self.pace {
            None => left,
            Some(pace) => {
                pace.nap_until(now_ns, self.end_ns).map_or(0, |until| left.min(until - now_ns))
            }
        }
    }

    fn event(&mut self, index: usize, flags: Flags) {
        self.touched.push(index);
        if flags.contains(Flags::EPOLLERR) {
            self.reap(index);
        }
        let ends = Flags::EPOLLIN | Flags::EPOLLHUP | Flags::EPOLLERR;
        if flags.intersects(ends) {
            for _ in 0..STEPS {
                if self.plan.conns[index].is_ended || !self.pull(index) {
                    break;
                }
            }
        }
        if flags.contains(Flags::EPOLLOUT) {
            for _ in 0..STEPS {
                let conn = &self.plan.conns[index];
                if conn.is_ended || conn.due_bytes == 0 || !self.push(index) {
                    break;
                }
            }
        }
    }

    fn reap(&mut self, index: usize) {
        let conn = &mut self.plan.conns[index];
        if let Some(feed) = &mut conn.feed
            && let Err(error) = feed.reap(&conn.socket)
        {
            conn.lose(&error);
        }
    }

    /// Ends this direction, reads until the server has ended the other; how many it had not ended in time.
    fn drain(&mut self) -> io::Result<usize> {
        let until = clock::now_ns() + DRAIN_LIMIT_NS;
        let epoll = Epoll::new()?;
        for (index, conn) in self.plan.conns.iter().enumerate() {
            if !conn.is_ended {
                let _ = conn.socket.shutdown_write();
                epoll.add(&conn.socket, Flags::EPOLLIN, index as u64)?;
            }
        }
        let mut events = vec![Event::empty(); EVENTS];
        let left = |worker: &Self| worker.plan.conns.iter().filter(|conn| !conn.is_ended).count();
        while left(self) > 0 && clock::now_ns() < until {
            let n = epoll.wait(&mut events, 100)?;
            for event in &events[..n] {
                self.drain_one(event.data() as usize);
                let conn = &self.plan.conns[event.data() as usize];
                if conn.is_ended {
                    // An ended connection stays readable.
                    let _ = epoll.remove(&conn.socket);
                }
            }
        }
        for index in 0..self.plan.conns.len() {
            self.reap(index);
        }
        Ok(left(self))
    }

    fn drain_one(&mut self, index: usize) {
        self.reap(index);
        let failed_before = self.plan.conns[index].error.is_some();
        self.pull(index);
        let conn = &mut self.plan.conns[index];
        // Now the end is what was asked for.
        if !failed_before && conn.error.as_deref() == Some("EOF") {
            conn.error = None;
        }
    }

    fn report(self, undrained: usize) -> Report {
        self.tally.connections.set(0);
        Report {
            thread: ThreadResult::of(self.usage, self.tally),
            conns: self.plan.conns,
            undrained,
            target_bytes: self.target_bytes,
        }
    }
}

/// What a connection waits for.
fn wanted_of(conn: &StreamConn) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::EPOLLIN, !conn.is_ended);
    let sends = conn.feed.is_some() && conn.due_bytes > 0 && !conn.is_ended;
    flags.set(Flags::EPOLLOUT, sends);
    flags
}
