//! Transactions on persistent connections: one blocking call after the other, or many connections in an epoll loop.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::engine::clock;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::listen::errno_name;
use crate::engine::socket::Socket;
use crate::engine::tcp::is_passing;
use crate::tcp::connection::{ConnectionResult, LISTED, TcpSummary};
use crate::tcp::flow::{Feed, Sink};
use crate::tcp::load::transactions::client_thread::{ClientThread, Plan, Transaction};
use crate::tcp::preamble::SendMethod;
use crate::tcp::result::name;
use crate::tcp::serve::options::ReceiveMethod;

/// Most events of one wait.
const EVENTS: usize = 256;
/// Longest wait for the server's end.
const DRAIN_LIMIT_NS: u64 = 2_000_000_000;

/// The connections of one thread.
pub(super) struct Persistent<'p> {
    plan: &'p Plan,
    epoll: Epoll,
    conns: Vec<PersistentConn>,
    buffer: Vec<u8>,
    /// Connections without a transaction, the one that rested longest first; never more than there are.
    idle: VecDeque<u32>,
}

/// One connection.
struct PersistentConn {
    feed: Feed,
    sink: Sink,
    /// Bytes of the request that are still to be sent.
    owed: u32,
    /// Bytes of the response that are still to come; 0 with `owed` 0 = idle.
    need: u32,
    transaction: Transaction,
    transactions: u64,
    error: Option<String>,
    waits_to_send: bool,
    name: String,
}

impl PersistentConn {
    fn new(plan: &Plan, socket: &Socket) -> io::Result<Self> {
        let (pattern, verify) = (Arc::clone(&plan.pattern), plan.options.common.verify);
        Ok(Self {
            feed: Feed::new(pattern, SendMethod::Copy, usize::MAX, verify),
            sink: Sink::new(socket, ReceiveMethod::Read, verify)?,
            owed: 0,
            need: 0,
            transaction: Transaction::default(),
            transactions: 0,
            error: None,
            waits_to_send: false,
            name: name(socket.local(), socket.peer()),
        })
    }

    fn begin(&mut self, plan: &Plan, transaction: Transaction) {
        self.owed = plan.options.request_bytes;
        self.need = plan.options.response_bytes;
        self.transaction = transaction;
    }

    /// One send call.
    #[inline]
    fn send(&mut self, socket: &Socket, client_thread: &mut ClientThread) -> io::Result<()> {
        client_thread.tally.calls.add(1);
        let sent = self.feed.push(socket, self.owed as usize)?;
        self.owed -= sent as u32;
        client_thread.tally.sent_bytes.add(sent as u64);
        Ok(())
    }

    /// One receive call; true when the response is complete.
    #[inline]
    fn receive(
        &mut self,
        socket: &Socket,
        plan: &Plan,
        buffer: &mut [u8],
        client_thread: &mut ClientThread,
    ) -> io::Result<bool> {
        client_thread.tally.calls.add(1);
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
        if self.need > 0 {
            return Ok(false);
        }
        self.transactions += 1;
        client_thread.completed(self.transaction, clock::now_ns(), plan.options.response_bytes);
        Ok(true)
    }

    fn lose(&mut self, step: &'static str, error: &io::Error, client_thread: &mut ClientThread) {
        self.error = Some(errno_name(error));
        if self.owed > 0 || self.need > 0 {
            client_thread.seen.lost += 1;
        }
        (self.owed, self.need) = (0, 0);
        client_thread.failed(step, error);
        let open = &client_thread.tally.connections;
        open.set(open.get().saturating_sub(1));
    }
}

impl<'p> Persistent<'p> {
    pub(super) fn new(plan: &'p Plan) -> io::Result<Self> {
        let conns = plan.sockets.iter().map(|socket| PersistentConn::new(plan, socket));
        Ok(Self {
            plan,
            epoll: Epoll::new()?,
            conns: conns.collect::<io::Result<_>>()?,
            buffer: vec![0; plan.options.common.buffer_bytes],
            idle: VecDeque::with_capacity(plan.sockets.len()),
        })
    }

    /// One connection: send, receive, send, receive.
    pub(super) fn block(&mut self, client_thread: &mut ClientThread) -> io::Result<()> {
        let plan = self.plan;
        let socket = &plan.sockets[0];
        socket.0.set_nonblocking(false)?;
        let conn = &mut self.conns[0];
        let mut now_ns = clock::now_ns();
        while !client_thread.is_over(now_ns) && conn.error.is_none() {
            let Some(transaction) = client_thread.next(now_ns) else {
                client_thread.wait(now_ns);
                now_ns = clock::now_ns();
                continue;
            };
            client_thread.begun(now_ns);
            conn.begin(plan, transaction);
            while conn.owed > 0 {
                if let Err(error) = conn.send(socket, client_thread) {
                    if !is_passing(&error) {
                        conn.lose("send", &error, client_thread);
                    } else if !client_thread.shared.is_stopped() {
                        continue;
                    }
                    break;
                }
            }
            while conn.need > 0 && conn.owed == 0 {
                match conn.receive(socket, plan, &mut self.buffer, client_thread) {
                    // The clock was read when it completed.
                    Ok(true) => now_ns = client_thread.tally.last_ns.get(),
                    Ok(false) => {}
                    Err(error) if is_passing(&error) && !client_thread.shared.is_stopped() => {}
                    Err(error) if is_passing(&error) => break,
                    Err(error) => conn.lose("receive", &error, client_thread),
                }
            }
        }
        socket.0.set_nonblocking(true)
    }

    /// Many connections.
    pub(super) fn poll(&mut self, client_thread: &mut ClientThread) -> io::Result<()> {
        for (index, socket) in self.plan.sockets.iter().enumerate() {
            self.epoll.add(socket, Flags::EPOLLIN, index as u64)?;
            self.idle.push_back(index as u32);
        }
        let mut events = vec![Event::empty(); EVENTS];
        let mut now_ns = clock::now_ns();
        while !client_thread.is_over(now_ns) {
            self.begin_due(client_thread, now_ns)?;
            if self.conns.iter().all(|conn| conn.error.is_some()) {
                break;
            }
            let patience_ns = client_thread.patience_ns(now_ns, !self.idle.is_empty());
            client_thread.tally.calls.add(1);
            let n = self.epoll.wait_ns(&mut events, patience_ns)?;
            now_ns = clock::now_ns();
            for event in &events[..n] {
                self.event(event, client_thread)?;
            }
            if n > 0 {
                now_ns = clock::now_ns();
            }
        }
        Ok(())
    }

    /// Gives due transactions to idle connections.
    fn begin_due(&mut self, client_thread: &mut ClientThread, now_ns: u64) -> io::Result<()> {
        while !self.idle.is_empty() {
            let Some(transaction) = client_thread.next(now_ns) else { break };
            let Some(index) = self.idle.pop_front() else { break };
            self.begin(index as usize, transaction, client_thread)?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        index: usize,
        transaction: Transaction,
        client_thread: &mut ClientThread,
    ) -> io::Result<()> {
        client_thread.begun(transaction.begun_ns);
        self.conns[index].begin(self.plan, transaction);
        self.send(index, client_thread)
    }

    /// Sends what the socket takes, and waits for room when it takes no more.
    fn send(&mut self, index: usize, client_thread: &mut ClientThread) -> io::Result<()> {
        let (conn, socket) = (&mut self.conns[index], &self.plan.sockets[index]);
        while conn.owed > 0 {
            match conn.send(socket, client_thread) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    conn.lose("send", &error, client_thread);
                    return self.epoll.remove(socket);
                }
            }
        }
        let waits = conn.owed > 0;
        if conn.waits_to_send != waits {
            conn.waits_to_send = waits;
            let flags = if waits { Flags::EPOLLOUT } else { Flags::EPOLLIN };
            self.epoll.change(socket, flags, index as u64)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, client_thread: &mut ClientThread) -> io::Result<()> {
        let plan = self.plan;
        let index = event.data() as usize;
        let (conn, socket) = (&mut self.conns[index], &self.plan.sockets[index]);
        if conn.error.is_some() {
            return Ok(());
        }
        if conn.owed > 0 && event.events().contains(Flags::EPOLLOUT) {
            return self.send(index, client_thread);
        }
        match conn.receive(socket, plan, &mut self.buffer, client_thread) {
            Ok(true) => {
                // The clock was read when it completed.
                let now_ns = client_thread.tally.last_ns.get();
                let next =
                    if client_thread.is_over(now_ns) { None } else { client_thread.next(now_ns) };
                match next {
                    Some(transaction) => self.begin(index, transaction, client_thread)?,
                    None => self.idle.push_back(index as u32),
                }
            }
            Ok(false) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                conn.lose("receive", &error, client_thread);
                self.idle.retain(|idle| *idle as usize != index);
                self.epoll.remove(socket)?;
            }
        }
        Ok(())
    }

    /// Ends this side's direction, and waits until the server has counted all.
    pub(super) fn end(&mut self, client_thread: &mut ClientThread) -> io::Result<()> {
        let until = clock::now_ns() + DRAIN_LIMIT_NS;
        for (conn, socket) in self.conns.iter().zip(&self.plan.sockets) {
            if conn.error.is_none() {
                let _ = socket.shutdown_write();
            }
        }
        for (conn, socket) in self.conns.iter_mut().zip(&self.plan.sockets) {
            while conn.error.is_none() && clock::now_ns() < until {
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
            client_thread.seen.mismatches.extend(conn.sink.wrong(&conn.name));
        }
        // All connections lost: so is the server.
        client_thread.seen.is_peer_lost |=
            !self.conns.is_empty() && self.conns.iter().all(|conn| conn.error.is_some());
        Ok(())
    }

    /// Of the connections of this thread, at most [`LISTED`].
    pub(super) fn results(&self, thread: usize) -> Vec<ConnectionResult> {
        let each =
            self.conns.iter().zip(&self.plan.sockets).map(|(conn, socket)| ConnectionResult {
                name: conn.name.clone(),
                thread: thread as u32,
                sent_bytes: conn.feed.offset,
                delivered_bytes: conn.sink.offset,
                transactions_total: conn.transactions,
                error: conn.error.clone(),
                tcp: TcpSummary::read(socket.fd()),
            });
        each.take(LISTED).collect()
    }
}
