//! Transactions on lasting connections: one blocking call after the other, or many connections in an epoll loop.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::engine::clock;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::listen::errno_name;
use crate::engine::socket::Socket;
use crate::tcp::connection::{ConnectionResult, TcpSummary};
use crate::tcp::flow::{Feed, Sink};
use crate::tcp::load::transactions::desk::{Desk, Ticket, is_passing};
use crate::tcp::load::transactions::worker::Plan;
use crate::tcp::preamble::SendWay;
use crate::tcp::serve::options::ReceiveWay;

/// Most events of one wait.
const EVENTS: usize = 256;
/// Longest wait for the server's end.
const DRAIN_LIMIT_NS: u64 = 2_000_000_000;

/// The connections of one thread.
pub(super) struct Lasting<'p> {
    plan: &'p Plan,
    thread: usize,
    epoll: Epoll,
    lines: Vec<Line>,
    buffer: Vec<u8>,
    /// Connections without a transaction, the one that rested longest first; never more than there are.
    idle: VecDeque<u32>,
}

/// One connection.
struct Line {
    feed: Feed,
    sink: Sink,
    /// Bytes of the request that are still to be sent.
    owed: u32,
    /// Bytes of the response that are still to come; 0 with `owed` 0 = idle.
    need: u32,
    ticket: Ticket,
    transactions: u64,
    error: Option<String>,
    waits_to_send: bool,
    name: String,
}

impl Line {
    fn new(plan: &Plan, socket: &Socket) -> io::Result<Self> {
        let (pattern, verify) = (Arc::clone(&plan.pattern), plan.options.common.verify);
        Ok(Self {
            feed: Feed::new(pattern, SendWay::Copy, usize::MAX, verify),
            sink: Sink::new(socket, ReceiveWay::Read, verify)?,
            owed: 0,
            need: 0,
            ticket: Ticket::default(),
            transactions: 0,
            error: None,
            waits_to_send: false,
            name: name(socket),
        })
    }

    fn begin(&mut self, plan: &Plan, ticket: Ticket) {
        self.owed = plan.options.request_bytes;
        self.need = plan.options.response_bytes;
        self.ticket = ticket;
    }

    /// One send call.
    #[inline]
    fn send(&mut self, socket: &Socket, desk: &mut Desk) -> io::Result<()> {
        desk.tally.calls.add(1);
        let sent = self.feed.push(socket, self.owed as usize)?;
        self.owed -= sent as u32;
        desk.sent(sent);
        Ok(())
    }

    /// One receive call; true when the response is complete.
    #[inline]
    fn receive(
        &mut self,
        socket: &Socket,
        plan: &Plan,
        buffer: &mut [u8],
        desk: &mut Desk,
    ) -> io::Result<bool> {
        desk.tally.calls.add(1);
        let most = (self.need as usize).min(buffer.len()).max(1);
        let got = socket.recv(&mut buffer[..most], 0)?;
        if got == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if got > self.need as usize {
            return Err(ErrorKind::InvalidData.into());
        }
        self.sink.took(&buffer[..got], &plan.pattern);
        self.need -= got as u32;
        Ok(self.need == 0)
    }

    fn lose(&mut self, step: &'static str, error: &io::Error, desk: &mut Desk) {
        self.error = Some(match error.kind() {
            ErrorKind::UnexpectedEof => "EOF".into(),
            _ => errno_name(error),
        });
        if self.owed > 0 || self.need > 0 {
            desk.lost();
        }
        (self.owed, self.need) = (0, 0);
        desk.failed(step, error);
        desk.tally.connections.set(desk.tally.connections.get().saturating_sub(1));
    }
}

impl<'p> Lasting<'p> {
    pub(super) fn new(plan: &'p Plan, thread: usize) -> io::Result<Self> {
        let lines = plan.sockets.iter().map(|socket| Line::new(plan, socket));
        Ok(Self {
            plan,
            thread,
            epoll: Epoll::new()?,
            lines: lines.collect::<io::Result<_>>()?,
            buffer: vec![0; plan.options.common.buffer_bytes],
            idle: VecDeque::with_capacity(plan.sockets.len()),
        })
    }

    /// One connection: send, receive, send, receive.
    pub(super) fn block(&mut self, desk: &mut Desk) -> io::Result<()> {
        let plan = self.plan;
        let socket = &plan.sockets[0];
        socket.set_nonblocking(false)?;
        let line = &mut self.lines[0];
        let mut now_ns = clock::now_ns();
        while !desk.is_over(now_ns) && line.error.is_none() {
            let Some(ticket) = desk.next(now_ns) else {
                desk.wait(now_ns);
                now_ns = clock::now_ns();
                continue;
            };
            desk.begun(now_ns);
            line.begin(plan, ticket);
            while line.owed > 0 {
                if let Err(error) = line.send(socket, desk) {
                    if !is_passing(&error) {
                        line.lose("send", &error, desk);
                    } else if !desk.shared.is_stopped() {
                        continue;
                    }
                    break;
                }
            }
            while line.need > 0 && line.owed == 0 {
                match line.receive(socket, plan, &mut self.buffer, desk) {
                    Ok(true) => {
                        now_ns = clock::now_ns();
                        line.transactions += 1;
                        desk.completed(line.ticket, now_ns, plan.options.response_bytes);
                    }
                    Ok(false) => {}
                    Err(error) if is_passing(&error) && !desk.shared.is_stopped() => {}
                    Err(error) if is_passing(&error) => break,
                    Err(error) => line.lose("receive", &error, desk),
                }
            }
        }
        socket.set_nonblocking(true)
    }

    /// Many connections.
    pub(super) fn poll(&mut self, desk: &mut Desk) -> io::Result<()> {
        for (index, socket) in self.plan.sockets.iter().enumerate() {
            self.epoll.add(socket, Flags::EPOLLIN, index as u64)?;
            self.idle.push_back(index as u32);
        }
        let mut events = vec![Event::empty(); EVENTS];
        let mut now_ns = clock::now_ns();
        while !desk.is_over(now_ns) {
            self.begin_due(desk, now_ns)?;
            if self.lines.iter().all(|line| line.error.is_some()) {
                break;
            }
            let patience_ns = desk.patience_ns(now_ns, !self.idle.is_empty());
            desk.tally.calls.add(1);
            let n = self.epoll.wait_ns(&mut events, patience_ns)?;
            now_ns = clock::now_ns();
            for event in &events[..n] {
                self.event(event, desk)?;
            }
            if n > 0 {
                now_ns = clock::now_ns();
            }
        }
        Ok(())
    }

    /// Gives due transactions to idle connections.
    fn begin_due(&mut self, desk: &mut Desk, now_ns: u64) -> io::Result<()> {
        while !self.idle.is_empty() {
            let Some(ticket) = desk.next(now_ns) else { break };
            let Some(index) = self.idle.pop_front() else { break };
            self.begin(index as usize, ticket, desk)?;
        }
        Ok(())
    }

    fn begin(&mut self, index: usize, ticket: Ticket, desk: &mut Desk) -> io::Result<()> {
        desk.begun(ticket.begun_ns);
        self.lines[index].begin(self.plan, ticket);
        self.send(index, desk)
    }

    /// Sends what the socket takes, and waits for room when it takes no more.
    fn send(&mut self, index: usize, desk: &mut Desk) -> io::Result<()> {
        let (line, socket) = (&mut self.lines[index], &self.plan.sockets[index]);
        while line.owed > 0 {
            match line.send(socket, desk) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    line.lose("send", &error, desk);
                    return self.epoll.remove(socket);
                }
            }
        }
        let waits = line.owed > 0;
        if line.waits_to_send != waits {
            line.waits_to_send = waits;
            let flags = if waits { Flags::EPOLLOUT } else { Flags::EPOLLIN };
            self.epoll.change(socket, flags, index as u64)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, desk: &mut Desk) -> io::Result<()> {
        let plan = self.plan;
        let index = event.data() as usize;
        let (line, socket) = (&mut self.lines[index], &self.plan.sockets[index]);
        if line.error.is_some() {
            return Ok(());
        }
        if line.owed > 0 && event.events().contains(Flags::EPOLLOUT) {
            return self.send(index, desk);
        }
        match line.receive(socket, plan, &mut self.buffer, desk) {
            Ok(true) => {
                let now_ns = clock::now_ns();
                line.transactions += 1;
                desk.completed(line.ticket, now_ns, plan.options.response_bytes);
                let next = if desk.is_over(now_ns) { None } else { desk.next(now_ns) };
                match next {
                    Some(ticket) => self.begin(index, ticket, desk)?,
                    None => self.idle.push_back(index as u32),
                }
            }
            Ok(false) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                line.lose("receive", &error, desk);
                self.idle.retain(|idle| *idle as usize != index);
                self.epoll.remove(socket)?;
            }
        }
        Ok(())
    }

    /// Ends this side's direction, and waits until the server has counted all.
    pub(super) fn end(&mut self, desk: &mut Desk) -> io::Result<()> {
        let until = clock::now_ns() + DRAIN_LIMIT_NS;
        for (line, socket) in self.lines.iter().zip(&self.plan.sockets) {
            if line.error.is_none() {
                let _ = socket.shutdown_write();
            }
        }
        for (line, socket) in self.lines.iter_mut().zip(&self.plan.sockets) {
            while line.error.is_none() && clock::now_ns() < until {
                match socket.recv(&mut self.buffer, 0) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        socket.wait(libc::POLLIN, 20)?;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            if let Some(offset) = line.sink.mismatch {
                desk.mismatches.push((line.name.clone(), offset));
            }
        }
        // All connections lost: so is the server.
        desk.is_peer_lost |=
            !self.lines.is_empty() && self.lines.iter().all(|line| line.error.is_some());
        Ok(())
    }

    pub(super) fn tcp(&self) -> Option<TcpSummary> {
        let infos = self.plan.sockets.iter().filter_map(|socket| socket.tcp_info().ok());
        TcpSummary::of(infos.map(|info| TcpSummary::from(&info)))
    }

    pub(super) fn results(&self) -> Vec<ConnectionResult> {
        let thread = self.thread as u32;
        let each =
            self.lines.iter().zip(&self.plan.sockets).map(|(line, socket)| ConnectionResult {
                name: line.name.clone(),
                thread,
                sent_bytes: line.feed.offset,
                delivered_bytes: line.sink.offset,
                transactions_total: line.transactions,
                error: line.error.clone(),
                tcp: socket.tcp_info().ok().map(|info| TcpSummary::from(&info)),
            });
        each.collect()
    }
}

pub(super) fn name(socket: &Socket) -> String {
    crate::tcp::result::name(socket.local().ok(), socket.peer().ok())
}
