//! A connection for each transaction: connect, request, response, close.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::engine::clock;
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::engine::socket::Socket;
use crate::engine::tcp::is_passing;
use crate::tcp::flow::{Feed, Sink};
use crate::tcp::load::options::CloseBy;
use crate::tcp::load::transactions::client_thread::{ClientThread, Plan, Transaction, is_local};
use crate::tcp::preamble::{PREAMBLE_BYTES, SendMethod};
use crate::tcp::result::name;
use crate::tcp::socket::SocketOptions;

/// Most events of one wait.
const EVENTS: usize = 256;
/// Bytes of a request that go out together with the preamble.
const HEAD_BYTES: usize = 16 << 10;
/// Pause after an error of this host (no port, no descriptor): trying again at once would only spin.
const PAUSE_NS: u64 = 1_000_000;
/// Wrong payloads that are reported one by one.
const MISMATCHES: usize = 16;

/// What every connection of a thread shares.
struct Shared<'p> {
    plan: &'p Plan,
    /// The preamble and the beginning of the request.
    head: Vec<u8>,
    buffer: Vec<u8>,
    /// The defaults cost no call.
    options: SocketOptions,
}

impl<'p> Shared<'p> {
    fn new(plan: &'p Plan) -> Self {
        let first =
            (plan.options.request_bytes as usize).min(HEAD_BYTES).min(plan.pattern.buffer_bytes);
        let mut head = plan.order.to_bytes().to_vec();
        head.extend_from_slice(plan.pattern.at(0, first));
        let mut options = plan.options.common.socket.clone();
        // TCP_NODELAY changes nothing for a request that is sent at once.
        options.nodelay = plan.options.request_bytes as usize > HEAD_BYTES;
        Self { plan, head, buffer: vec![0; plan.options.common.buffer_bytes], options }
    }

    fn configure(&self, socket: &Socket) -> io::Result<()> {
        self.options.apply(socket).map_err(io::Error::other)
    }

    fn head_payload(&self) -> usize {
        self.head.len() - PREAMBLE_BYTES
    }
}

/// Where one transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// Bytes of the head that are sent.
    Head(usize),
    /// Bytes of the request that are still to be sent behind the head.
    Rest(u32),
    /// Bytes of the response that are still to come.
    Response(u32),
    /// The response is complete: the transaction is whole, however its connection ends.
    End,
}

/// One transaction in flight.
struct PendingTransaction {
    socket: Socket,
    stage: Stage,
    transaction: Transaction,
    feed: Option<Feed>,
    sink: Sink,
}

impl PendingTransaction {
    fn begin(socket: Socket, transaction: Transaction, shared: &Shared<'_>) -> io::Result<Self> {
        let plan = shared.plan;
        let rest = plan.options.request_bytes as usize - shared.head_payload();
        let verify = plan.options.common.verify;
        let feed = (rest > 0).then(|| {
            let pattern = Arc::clone(&plan.pattern);
            let mut feed = Feed::new(pattern, SendMethod::Copy, usize::MAX, verify);
            feed.offset = shared.head_payload() as u64;
            feed
        });
        let method = crate::tcp::serve::options::ReceiveMethod::Read;
        let sink = Sink::new(&socket, method, verify)?;
        Ok(Self { socket, stage: Stage::Connecting, transaction, feed, sink })
    }

    fn step_name(&self) -> &'static str {
        match self.stage {
            Stage::Connecting => "connect",
            Stage::Head(_) | Stage::Rest(_) => "send",
            Stage::Response(_) | Stage::End => "receive",
        }
    }

    /// The connection is there.
    fn connected(&mut self, client_thread: &mut ClientThread) {
        let now_ns = clock::now_ns();
        client_thread.seen.connect.record(now_ns.saturating_sub(self.transaction.begun_ns));
        self.stage = Stage::Head(0);
    }

    /// One call of whatever comes next; true when the connection may be closed.
    #[inline]
    fn step(
        &mut self,
        shared: &mut Shared<'_>,
        client_thread: &mut ClientThread,
    ) -> io::Result<bool> {
        let plan = shared.plan;
        let sent_all = Stage::Response(plan.options.response_bytes);
        client_thread.tally.calls.add(1);
        match self.stage {
            Stage::Connecting => {
                self.socket.connected()?;
                self.connected(client_thread);
            }
            Stage::Head(from) => {
                let sent = from + self.socket.send_with(&shared.head[from..], 0)?;
                self.stage = if sent < shared.head.len() {
                    Stage::Head(sent)
                } else {
                    client_thread.tally.sent_bytes.add(shared.head_payload() as u64);
                    let rest = plan.options.request_bytes - shared.head_payload() as u32;
                    if rest > 0 { Stage::Rest(rest) } else { sent_all }
                };
            }
            Stage::Rest(left) => {
                let Some(feed) = &mut self.feed else { return Err(ErrorKind::InvalidData.into()) };
                let sent = feed.push(&self.socket, left as usize)?;
                client_thread.tally.sent_bytes.add(sent as u64);
                let left = left - sent as u32;
                self.stage = if left > 0 { Stage::Rest(left) } else { sent_all };
            }
            Stage::Response(need) => return self.receive(need, shared, client_thread),
            Stage::End => {
                return match self.socket.recv(&mut shared.buffer, 0)? {
                    0 => Ok(true),
                    _ => Err(ErrorKind::InvalidData.into()),
                };
            }
        }
        Ok(false)
    }

    fn receive(
        &mut self,
        need: u32,
        shared: &mut Shared<'_>,
        client_thread: &mut ClientThread,
    ) -> io::Result<bool> {
        let plan = shared.plan;
        let most = (need as usize).min(shared.buffer.len());
        let got = self.socket.recv(&mut shared.buffer[..most], 0)?;
        if got == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.sink.took(&shared.buffer[..got], &plan.pattern);
        let left = need - got as u32;
        if left > 0 {
            self.stage = Stage::Response(left);
            return Ok(false);
        }
        self.stage = Stage::End;
        client_thread.completed(self.transaction, clock::now_ns(), plan.options.response_bytes);
        if self.sink.mismatch.is_some() && client_thread.seen.mismatches.len() < MISMATCHES {
            let name = name(self.socket.local(), self.socket.peer());
            client_thread.seen.mismatches.extend(self.sink.wrong(&name));
        }
        match plan.options.close_by {
            CloseBy::Server => Ok(false),
            CloseBy::Client => Ok(true),
            CloseBy::Reset => self.socket.reset_on_close().map(|()| true),
        }
    }

    /// Whether it waits for room, not for bytes.
    fn waits_to_send(&self) -> bool {
        !matches!(self.stage, Stage::Response(_) | Stage::End)
    }
}

/// One transaction after the other, in blocking calls.
pub(super) fn block(plan: &Plan, client_thread: &mut ClientThread) {
    let mut shared = Shared::new(plan);
    let mut now_ns = clock::now_ns();
    while !client_thread.is_over(now_ns) {
        let Some(transaction) = client_thread.next(now_ns) else {
            client_thread.wait(now_ns);
            now_ns = clock::now_ns();
            continue;
        };
        client_thread.begun(now_ns);
        client_thread.tally.connections.set(1);
        if let Err((step, error)) = transact(transaction, &mut shared, client_thread)
            && !(is_passing(&error) && client_thread.shared.is_stopped())
        {
            client_thread.seen.lost += 1;
            client_thread.failed(step, &error);
            if is_local(&error) {
                clock::sleep_until(clock::now_ns() + PAUSE_NS);
            }
        }
        now_ns = clock::now_ns();
    }
}

fn transact(
    transaction: Transaction,
    shared: &mut Shared<'_>,
    client_thread: &mut ClientThread,
) -> Result<(), (&'static str, io::Error)> {
    let to = shared.plan.options.common.addr;
    let connecting = |error| ("connect", error);
    client_thread.tally.calls.add(2);
    let socket = Socket::tcp_blocking(to).map_err(connecting)?;
    shared.configure(&socket).map_err(connecting)?;
    let mut this = PendingTransaction::begin(socket, transaction, shared)
        .map_err(|error| ("prepare", error))?;
    this.socket.connect(to).map_err(connecting)?;
    this.connected(client_thread);
    loop {
        match this.step(shared, client_thread) {
            Ok(false) => {}
            Ok(true) => {
                client_thread.tally.calls.add(1);
                return Ok(());
            }
            Err(error) if is_passing(&error) && !client_thread.shared.is_stopped() => {}
            Err(_) if this.stage == Stage::End => return Ok(()),
            Err(error) => return Err((this.step_name(), error)),
        }
    }
}

/// Many transactions at a time, each on a connection of its own.
pub(super) struct CrrPool<'p> {
    shared: Shared<'p>,
    pending: Vec<Option<PendingTransaction>>,
    /// Places without a transaction; never more than there are.
    idle: Vec<u32>,
    /// No new connections before: this host has run out of something.
    paused_until_ns: u64,
}

impl<'p> CrrPool<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let pending = (0..plan.slots).map(|_| None).collect();
        let idle = (0..plan.slots as u32).rev().collect();
        Self { shared: Shared::new(plan), pending, idle, paused_until_ns: 0 }
    }

    pub(super) fn poll(&mut self, client_thread: &mut ClientThread) -> io::Result<()> {
        let epoll = Epoll::new()?;
        let mut events = vec![Event::empty(); EVENTS];
        let mut now_ns = clock::now_ns();
        while !client_thread.is_over(now_ns) {
            while now_ns >= self.paused_until_ns && !self.idle.is_empty() {
                let Some(transaction) = client_thread.next(now_ns) else { break };
                self.begin(transaction, client_thread, &epoll)?;
            }
            let mut patience_ns = client_thread.patience_ns(now_ns, !self.idle.is_empty());
            if self.paused_until_ns > now_ns {
                patience_ns = patience_ns.min(self.paused_until_ns - now_ns).max(1);
            }
            client_thread.tally.calls.add(1);
            let n = epoll.wait_ns(&mut events, patience_ns)?;
            for event in &events[..n] {
                self.go_on(event.data() as usize, client_thread, &epoll)?;
            }
            now_ns = clock::now_ns();
        }
        Ok(())
    }

    fn begin(
        &mut self,
        transaction: Transaction,
        client_thread: &mut ClientThread,
        epoll: &Epoll,
    ) -> io::Result<()> {
        let to = self.shared.plan.options.common.addr;
        client_thread.begun(transaction.begun_ns);
        client_thread.tally.calls.add(3);
        let begun = Socket::tcp(to).and_then(|socket| {
            self.shared.configure(&socket)?;
            let this = PendingTransaction::begin(socket, transaction, &self.shared)?;
            this.socket.begin_connect(to)?;
            Ok(this)
        });
        match begun {
            Ok(this) => {
                let Some(index) = self.idle.pop() else { return Ok(()) };
                epoll.add(&this.socket, Flags::EPOLLOUT, u64::from(index))?;
                self.pending[index as usize] = Some(this);
                self.count(client_thread);
            }
            Err(error) => {
                client_thread.seen.lost += 1;
                client_thread.failed("connect", &error);
                self.paused_until_ns = clock::now_ns() + PAUSE_NS;
            }
        }
        Ok(())
    }

    fn count(&self, client_thread: &ClientThread) {
        client_thread.tally.connections.set((self.pending.len() - self.idle.len()) as u64);
    }

    /// Does what can be done without waiting.
    fn go_on(
        &mut self,
        index: usize,
        client_thread: &mut ClientThread,
        epoll: &Epoll,
    ) -> io::Result<()> {
        let Some(this) = &mut self.pending[index] else { return Ok(()) };
        let waited_to_send = this.waits_to_send();
        let over = loop {
            match this.step(&mut self.shared, client_thread) {
                // Behind the request comes the wait for the response: asking now would be too early.
                Ok(false) if waited_to_send && !this.waits_to_send() => break false,
                Ok(false) => {}
                Ok(true) => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                Err(_) if this.stage == Stage::End => break true,
                Err(error) => {
                    let step = this.step_name();
                    client_thread.seen.lost += 1;
                    client_thread.failed(step, &error);
                    if is_local(&error) {
                        self.paused_until_ns = clock::now_ns() + PAUSE_NS;
                    }
                    break true;
                }
            }
        };
        if over {
            client_thread.tally.calls.add(1);
            self.pending[index] = None;
            self.idle.push(index as u32);
            self.count(client_thread);
        } else if waited_to_send && !this.waits_to_send() {
            client_thread.tally.calls.add(1);
            epoll.change(&this.socket, Flags::EPOLLIN, index as u64)?;
        }
        Ok(())
    }
}
