//! One thread of a server: an epoll loop over the listener, the inbox and its connections.

mod blocking;
mod steps;

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::listen::{errno_name, is_exhaustion};
use crate::engine::socket::Socket;
use crate::engine::spin;
use crate::pool::Start;
use crate::slab::Slab;
use crate::stall::Stalls;
use crate::tally::Tally;
use crate::tcp::pattern::Pattern;
use crate::tcp::result::ThreadResult;
use crate::tcp::serve::connection::{Connection, Lent, Step};
use crate::tcp::serve::options::ServeOptions;
use crate::tcp::serve::server::ServerState;
use crate::tcp::serve::worker::blocking::OnlyConnection;
use crate::udp::serve::options::Sockets;
use crate::usage::UsageMeter;

/// Most events of one wait.
const EVENTS: usize = 256;
/// Connections accepted in a row before the others have their turn.
const ACCEPTS: usize = 64;
/// Draining ends here even when bytes keep coming: clients that do not stop must not hold us.
const DRAIN_LIMIT_NS: u64 = 2_000_000_000;
/// A client that says nothing for this long is not waited for.
const SILENCE_NS: u64 = 10_000_000_000;
/// How often slow matters are looked after.
const SWEEP_NS: u64 = 500_000_000;
/// A listener that found no descriptor rests this long.
const REST_NS: u64 = 100_000_000;
/// Event data that are no connection.
const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) listener: Arc<Socket>,
    pub(super) server: Arc<ServerState>,
    pub(super) pattern: Arc<Pattern>,
    pub(super) options: ServeOptions,
}

/// What a worker leaves: its result, and its connections, which stay open until the server is dropped.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) _open: Slab<Connection>,
}

/// Runs until told to stop, then drains.
pub(super) fn run(plan: &Plan, start: &Start) -> Result<Report, LoadError> {
    let worker = Worker::new(plan, start);
    let mut worker = worker.map_err(|e| LoadError::io("prepare a thread", e))?;
    start.ready();
    worker.serve().and_then(|()| worker.drain()).map_err(|e| LoadError::io("epoll_wait", e))?;
    Ok(worker.report())
}

struct Worker<'a> {
    plan: &'a Plan,
    start: &'a Start<'a>,
    tally: &'a Tally,
    epoll: Epoll,
    connections: Slab<Connection>,
    buffer: Vec<u8>,
    usage: UsageMeter,
    work_steps: u64,
    next_sweep_ns: u64,
    /// When the listener is looked at again; 0 = it is being looked at.
    resting_until_ns: u64,
    stalls: Stalls,
    only: OnlyConnection,
}

impl<'a> Worker<'a> {
    fn new(plan: &'a Plan, start: &'a Start<'a>) -> io::Result<Self> {
        let mut worker = Self {
            plan,
            start,
            tally: start.tally,
            epoll: Epoll::new()?,
            connections: Slab::default(),
            buffer: vec![0; plan.options.buffer_bytes],
            work_steps: spin::steps_of(plan.options.work_ns),
            usage: UsageMeter::new(start.cpu),
            next_sweep_ns: 0,
            resting_until_ns: 0,
            stalls: Stalls::new(plan.options.stall),
            only: OnlyConnection::default(),
        };
        worker.listen(true)?;
        let bell = &plan.server.inboxes[start.index].bell;
        worker.epoll.add(bell, Flags::EPOLLIN, BELL)?;
        worker.usage.restart();
        Ok(worker)
    }

    /// Looks at the listener, or rests from it.
    fn listen(&mut self, on: bool) -> io::Result<()> {
        if on {
            // One of the threads that share a listener is woken for a connection, not all.
            let flags = Flags::EPOLLIN | Flags::EPOLLEXCLUSIVE;
            self.epoll.add(&*self.plan.listener, flags, LISTENER)?;
            self.resting_until_ns = 0;
        } else {
            self.epoll.remove(&*self.plan.listener)?;
            self.resting_until_ns = clock::now_ns() + REST_NS;
        }
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = vec![Event::empty(); EVENTS];
        while !self.start.shared.is_stopped() {
            let timeout: u16 = if self.resting_until_ns > 0 { 100 } else { 500 };
            self.tally.calls.add(1);
            let n = self.epoll.wait(&mut events, timeout)?;
            let now_ns = clock::now_ns();
            for event in &events[..n] {
                match event.data() {
                    LISTENER => self.accept()?,
                    BELL => {
                        for connection in self.plan.server.inboxes[self.start.index].take() {
                            self.adopt(connection, now_ns)?;
                        }
                    }
                    key => self.event(key, event.events(), false, clock::now_ns())?,
                }
            }
            self.serve_by_blocking(&events[..n])?;
            self.stalls.sleep(self.start.shared);
            if now_ns >= self.next_sweep_ns {
                self.sweep(now_ns)?;
            }
        }
        Ok(())
    }

    /// Reads what is queued; sends no more streams.
    fn drain(&mut self) -> io::Result<()> {
        let until = clock::now_ns() + DRAIN_LIMIT_NS;
        let mut events = vec![Event::empty(); EVENTS];
        for index in 0..self.connections.slots() {
            let Some((key, connection)) = self.connections.at(index) else { continue };
            if self.plan.options.low_water_bytes.is_some() {
                // A connection that is broken ends by its next event.
                let _ = connection.lower_water();
            }
            self.watch(key, true)?;
        }
        while clock::now_ns() < until {
            // Without a timeout no signal ends the wait (`ep_poll`, fs/eventpoll.c): no event means that none is left.
            let n = self.epoll.wait(&mut events, 0)?;
            let mut connections = 0;
            for event in &events[..n] {
                if event.data() < BELL {
                    connections += 1;
                    self.event(event.data(), event.events(), true, clock::now_ns())?;
                }
            }
            if connections == 0 {
                break;
            }
        }
        for index in 0..self.connections.slots() {
            if let Some((_, connection)) = self.connections.at(index) {
                self.plan.server.leave(connection, self.start.index, None);
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            self.tally.calls.add(1);
            match self.plan.listener.accept() {
                Ok(socket) => {
                    let now_ns = clock::now_ns();
                    self.adopt(Connection::new(socket, now_ns), now_ns)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    let name = errno_name(&error);
                    *self.plan.server.past().accept_errors_total.entry(name).or_default() += 1;
                    // Without a descriptor the listener would wake us for ever.
                    if is_exhaustion(&error) {
                        return self.listen(false);
                    }
                }
            }
        }
        Ok(())
    }

    /// A connection joins this thread's.
    fn adopt(&mut self, connection: Connection, now_ns: u64) -> io::Result<()> {
        let fresh = connection.is_waiting_for_preamble();
        let key = self.connections.insert(connection);
        self.tally.connections.add(1);
        if fresh {
            self.plan.server.past().connections_total += 1;
            // The first bytes are often there already, and asking costs less than a round of epoll; a
            // connection that is done with them never enters it.
            return self.event(key, Flags::EPOLLIN, false, now_ns);
        }
        self.watch(key, false)
    }

    /// Lets a connection do what it can; when stopping, it sends nothing more.
    fn event(&mut self, key: u64, flags: Flags, stopping: bool, now_ns: u64) -> io::Result<()> {
        let flags = if stopping { flags.difference(Flags::EPOLLOUT) } else { flags };
        self.turn(key, stopping, now_ns, |connection, lent| steps::run(flags, connection, lent))
    }

    /// Gives a connection its turn, counts what it did, and follows what it came to.
    fn turn(
        &mut self,
        key: u64,
        stopping: bool,
        now_ns: u64,
        act: impl FnOnce(&mut Connection, &mut Lent) -> io::Result<Step>,
    ) -> io::Result<()> {
        let mut lent = Lent {
            runs: &self.plan.server.runs,
            pattern: &self.plan.pattern,
            buffer: &mut self.buffer,
            receive: self.plan.options.receive,
            low_water_bytes: self.plan.options.low_water_bytes,
            now_ns,
            calls: 0,
            delivered: 0,
            sent: 0,
            transactions: 0,
            work_steps: self.work_steps,
        };
        // A slot may have got another connection since the wait: its key differs, too.
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        let ended = act(connection, &mut lent);
        let moved = lent.delivered + lent.sent + lent.transactions > 0;
        self.tally.received_bytes.add(lent.delivered);
        self.tally.sent_bytes.add(lent.sent);
        self.tally.units.add(lent.transactions);
        self.tally.calls.add(lent.calls);
        if moved {
            self.usage.progress(self.tally, now_ns);
        }
        match ended {
            Ok(Step::Idle | Step::Moved) => return self.watch(key, stopping),
            Ok(Step::Settled) => return self.settle(key),
            Ok(Step::Ended) => self.close(key, None),
            Ok(Step::Refused(why)) => {
                *self.plan.server.past().refused_total.entry(why.into()).or_default() += 1;
                self.close(key, None);
            }
            Err(error) => self.close(key, Some(&error)),
        }
        Ok(())
    }

    /// Tells epoll when the wanted events changed.
    fn watch(&mut self, key: u64, stopping: bool) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        let wanted = connection.wanted(stopping);
        let before = connection.interest.replace(wanted);
        if before == Some(wanted) {
            return Ok(());
        }
        self.tally.calls.add(1);
        match before {
            None => self.epoll.add(&connection.socket, wanted, key),
            Some(_) => self.epoll.change(&connection.socket, wanted, key),
        }
    }

    /// A long-lived connection has said what it is: the thread with the fewest of them takes it.
    fn settle(&mut self, key: u64) -> io::Result<()> {
        let deal = self.plan.options.sockets == Sockets::Shared;
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        let to = self.plan.server.place(self.start.index, deal);
        connection.placed = Some(to);
        if to == self.start.index {
            return self.watch(key, false);
        }
        let Some(mut connection) = self.connections.remove(key) else { return Ok(()) };
        if connection.interest.take().is_some() {
            self.epoll.remove(&connection.socket)?;
        }
        self.tally.connections.set(self.tally.connections.get().saturating_sub(1));
        self.plan.server.hand_over(to, connection);
        Ok(())
    }

    fn close(&mut self, key: u64, error: Option<&io::Error>) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.plan.server.leave(&connection, self.start.index, error.map(errno_name));
        self.tally.connections.set(self.tally.connections.get().saturating_sub(1));
        // Dropped here: closing the last descriptor takes it out of epoll.
    }

    /// Looks after what is slow: silent clients, a resting listener.
    fn sweep(&mut self, now_ns: u64) -> io::Result<()> {
        self.next_sweep_ns = now_ns + SWEEP_NS;
        if self.resting_until_ns > 0 {
            self.next_sweep_ns = now_ns + REST_NS;
            if now_ns >= self.resting_until_ns {
                self.listen(true)?;
            }
        }
        for index in 0..self.connections.slots() {
            let Some((key, connection)) = self.connections.at(index) else { continue };
            if connection.is_waiting_for_preamble() && now_ns > connection.born_ns + SILENCE_NS {
                *self.plan.server.past().refused_total.entry("silent".into()).or_default() += 1;
                self.close(key, None);
            }
        }
        Ok(())
    }

    fn report(self) -> Report {
        let longest_away_us = self.stalls.longest_ns as f64 / 1e3;
        let thread = ThreadResult { longest_away_us, ..ThreadResult::of(self.usage, self.tally) };
        Report { thread, _open: self.connections }
    }
}
