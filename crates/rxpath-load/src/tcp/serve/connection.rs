//! One connection of a server: from its first byte to its end. It moves bytes when it can and never waits.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use crate::engine::epoll::Flags;
use crate::engine::socket::Socket;
use crate::engine::spin;
use crate::tcp::flow::{Feed, Sink};
use crate::tcp::frame::{ASK_REPORT, ServerHello, ServerMessage};
use crate::tcp::open_connections::Listed;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::{Kind, PREAMBLE_BYTES, Preamble, Refusal, SendMethod};
use crate::tcp::serve::options::ReceiveMethod;
use crate::tcp::serve::runs::{Moved, Run, Runs};

/// Bytes that a control connection may leave unread by its client before it is closed.
const CONTROL_BACKLOG: usize = 4 << 20;

/// What it is busy with.
#[derive(Debug)]
enum Phase {
    /// Waits for the rest of the preamble.
    Preamble { bytes: [u8; PREAMBLE_BYTES], have: usize },
    /// Moves bytes, one method or both.
    Stream,
    /// Reads requests and owes responses.
    Transactions {
        /// Bytes of the request that are still to come.
        need: u32,
        /// Bytes of the response that are still to be sent.
        owed: u32,
    },
    /// Answers questions.
    Control { unsent: Vec<u8> },
    /// Has said all and waits for the client's end.
    Ending,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    /// While intervals read it.
    listed: Option<Listed>,
    pub(super) socket: Socket,
    /// Its `TCP_INFO` counts, and intervals read it.
    pub(super) is_long_lived: bool,
    phase: Phase,
    order: Preamble,
    pub(super) run: Option<Arc<Run>>,
    pub(super) sink: Sink,
    feed: Option<Feed>,
    transactions: u64,
    first_ns: u64,
    last_ns: u64,
    pub(super) born_ns: u64,
    /// What epoll waits for; `None` = it does not know the connection.
    pub(super) interest: Option<Flags>,
    /// The thread among whose long-lived connections it counts.
    pub(super) placed: Option<usize>,
}

/// What a step means for the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing more to do now.
    Idle,
    /// Moved something; there may be more.
    Moved,
    /// The preamble has come: it is a long-lived connection that may go to another thread.
    Settled,
    /// The client has ended it, as it should.
    Ended,
    /// Refused, and why.
    Refused(&'static str),
}

/// What a thread lends to its connections.
pub(super) struct Lent<'a> {
    pub(super) runs: &'a Runs,
    pub(super) pattern: &'a Arc<Pattern>,
    pub(super) buffer: &'a mut [u8],
    pub(super) receive: ReceiveMethod,
    pub(super) low_water_bytes: Option<u64>,
    pub(super) now_ns: u64,
    pub(super) calls: u64,
    pub(super) delivered: u64,
    pub(super) sent: u64,
    pub(super) transactions: u64,
    /// Simulated work of a read or a transaction, in steps of the spinner.
    pub(super) work_steps: u64,
}

impl Connection {
    pub(super) fn new(socket: Socket, now_ns: u64) -> Self {
        Self {
            listed: None,
            socket,
            is_long_lived: false,
            phase: Phase::Preamble { bytes: [0; PREAMBLE_BYTES], have: 0 },
            order: Preamble::default(),
            run: None,
            sink: Sink::default(),
            feed: None,
            transactions: 0,
            first_ns: 0,
            last_ns: 0,
            born_ns: now_ns,
            interest: None,
            placed: None,
        }
    }

    /// A lasting connection of transactions that owes no response.
    pub(super) fn is_between_transactions(&self) -> bool {
        matches!(self.phase, Phase::Transactions { owed: 0, .. }) && self.is_long_lived
    }

    pub(super) fn is_waiting_for_preamble(&self) -> bool {
        matches!(self.phase, Phase::Preamble { .. })
    }

    pub(super) fn moved(&self) -> Moved {
        Moved {
            delivered_bytes: self.sink.offset,
            sent_bytes: self.feed.as_ref().map_or(0, |feed| feed.offset),
            transactions: self.transactions,
            mapped_bytes: self.sink.mapped_bytes,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        }
    }

    /// What to wait for from now on.
    pub(super) fn wanted(&self, stopping: bool) -> Flags {
        let write = match &self.phase {
            Phase::Stream => self.order.server_sends && !stopping,
            Phase::Transactions { owed, .. } => *owed > 0,
            Phase::Control { unsent } => !unsent.is_empty(),
            Phase::Preamble { .. } | Phase::Ending => false,
        };
        // A request that comes before the response to the one before went out waits in the kernel.
        let read = !matches!(self.phase, Phase::Transactions { owed, .. } if owed > 0);
        let mut wanted = Flags::empty();
        wanted.set(Flags::EPOLLIN, read);
        wanted.set(Flags::EPOLLOUT, write);
        wanted
    }

    /// Reads once.
    ///
    /// **Errors** `EAGAIN`: nothing was there; `UnexpectedEof`: the client ended it in the middle of a request.
    pub(super) fn readable(&mut self, lent: &mut Lent) -> io::Result<Step> {
        lent.calls += 1;
        match &mut self.phase {
            Phase::Preamble { .. } => self.read_preamble(lent),
            Phase::Stream => {
                let got = self.sink.pull(&self.socket, lent.buffer, lent.pattern)?;
                if got == 0 {
                    return Ok(Step::Ended);
                }
                self.delivered(got, lent);
                spin::run(lent.work_steps);
                Ok(Step::Moved)
            }
            Phase::Transactions { need, .. } => {
                let most = (*need as usize).min(lent.buffer.len());
                let got = self.socket.recv(&mut lent.buffer[..most], 0)?;
                match got {
                    0 if *need < self.order.request_bytes => Err(ErrorKind::UnexpectedEof.into()),
                    0 => Ok(Step::Ended),
                    _ => self.request_bytes(got, 0, lent),
                }
            }
            Phase::Control { .. } => self.read_control(lent),
            Phase::Ending => match self.socket.recv(lent.buffer, 0) {
                Ok(0) => Ok(Step::Ended),
                Ok(_) => Ok(Step::Moved),
                // A client may close by a reset: it has what it wanted.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Step::Ended),
                Err(error) => Err(error),
            },
        }
    }

    /// Sends what is owed.
    pub(super) fn writable(&mut self, lent: &mut Lent) -> io::Result<Step> {
        match &mut self.phase {
            Phase::Stream => {
                let Some(feed) = &mut self.feed else { return Ok(Step::Idle) };
                lent.calls += 1;
                let sent = feed.push(&self.socket, usize::MAX)?;
                self.note(lent);
                lent.sent += sent as u64;
                Ok(Step::Moved)
            }
            Phase::Transactions { .. } => self.respond(lent),
            Phase::Control { unsent } => {
                let sent = self.socket.send_with(unsent, 0)?;
                unsent.drain(..sent);
                Ok(Step::Moved)
            }
            Phase::Preamble { .. } | Phase::Ending => Ok(Step::Idle),
        }
    }

    /// Wakes us for any byte from now on: what is below the mark must be read before the end.
    pub(super) fn lower_water(&self) -> io::Result<()> {
        match self.phase {
            Phase::Stream => self.socket.set_low_water(1).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Reads the completions of zero-copy sends, which epoll reports as errors.
    pub(super) fn reap(&mut self) -> io::Result<()> {
        self.feed.as_mut().map_or(Ok(()), |feed| feed.reap(&self.socket))
    }

    fn note(&mut self, lent: &Lent) {
        if self.first_ns == 0 {
            self.first_ns = lent.now_ns;
            if let Some(run) = &self.run {
                lent.runs.begun(run);
            }
        }
        self.last_ns = lent.now_ns;
    }

    fn delivered(&mut self, bytes: usize, lent: &mut Lent) {
        self.note(lent);
        lent.delivered += bytes as u64;
    }

    fn read_preamble(&mut self, lent: &mut Lent) -> io::Result<Step> {
        let Phase::Preamble { bytes, have } = &mut self.phase else { return Ok(Step::Idle) };
        let got = self.socket.recv(lent.buffer, 0)?;
        if got == 0 {
            // A port scan, or a client that gave up before it said anything.
            return if *have == 0 { Ok(Step::Ended) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        let taken = got.min(PREAMBLE_BYTES - *have);
        bytes[*have..*have + taken].copy_from_slice(&lent.buffer[..taken]);
        *have += taken;
        match Preamble::read(&bytes[..*have]) {
            Ok(None) => Ok(Step::Moved),
            Ok(Some(order)) => self.begin(order, taken..got, lent),
            Err(refusal) => Ok(self.refuse(refusal, &lent.buffer[..got])),
        }
    }

    /// Says why not, in the language that the client seems to speak.
    fn refuse(&self, refusal: Refusal, told: &[u8]) -> Step {
        let refused = || ServerMessage::Refused { why: refusal.to_string() }.to_bytes();
        let (code, text) = match refusal {
            Refusal::Stranger => {
                let text = "this is `rxpath serve tcp`; it serves only `rxpath load tcp`\n";
                let http = [&b"GET "[..], b"POST ", b"HEAD ", b"PUT "];
                let head = if http.iter().any(|method| told.starts_with(method)) {
                    "HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\n\r\n"
                } else {
                    ""
                };
                ("stranger", format!("{head}{text}").into_bytes())
            }
            Refusal::Version(_) => ("version", refused()),
            Refusal::Malformed(_) => ("malformed", refused()),
        };
        // A client that does not listen either is not waited for.
        let _ = self.socket.send_with(&text, libc::MSG_DONTWAIT);
        let _ = self.socket.shutdown_write();
        Step::Refused(code)
    }

    /// Takes up its work; `rest` of the thread's buffer came behind the preamble.
    fn begin(&mut self, order: Preamble, rest: Range<usize>, lent: &mut Lent) -> io::Result<Step> {
        self.order = order;
        let run = lent.runs.run(order.run);
        if order.nodelay {
            self.socket.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        }
        match order.kind {
            Kind::Control => {
                let hello = ServerMessage::Hello(ServerHello {
                    program: env!("CARGO_PKG_VERSION").into(),
                    receive: lent.receive,
                    threads_count: lent.runs.shared.tallies.len(),
                });
                self.phase = Phase::Control { unsent: hello.to_bytes() };
                return Ok(Step::Moved);
            }
            Kind::Stream => {
                self.phase = Phase::Stream;
                self.begin_stream(lent)?;
            }
            Kind::Transactions | Kind::Single => {
                self.phase = Phase::Transactions { need: order.request_bytes, owed: 0 };
                let (pattern, method) = (Arc::clone(lent.pattern), SendMethod::Copy);
                self.feed = Some(Feed::new(pattern, method, usize::MAX, order.verify));
                self.sink = Sink::new(&self.socket, ReceiveMethod::Read, order.verify)?;
            }
        }
        run.joined();
        self.run = Some(run);
        if order.kind != Kind::Single {
            self.is_long_lived = true;
            self.listed = Some(lent.runs.live.enter(&self.socket));
        }
        let began = if rest.is_empty() { Step::Moved } else { self.begin_with(rest, lent)? };
        Ok(if order.kind == Kind::Single { began } else { Step::Settled })
    }

    fn begin_stream(&mut self, lent: &Lent) -> io::Result<()> {
        let order = self.order;
        self.sink = Sink::new(&self.socket, lent.receive, order.verify)?;
        if order.server_sends {
            let size = order.buffer_bytes as usize;
            let feed = Feed::new(Arc::clone(lent.pattern), order.send, size, order.verify);
            feed.prepare(&self.socket)?;
            self.feed = Some(feed);
        }
        if let Some(bytes) = lent.low_water_bytes {
            self.socket.set_low_water(bytes)?;
        }
        if order.pacing_bytes_per_s > 0 {
            self.socket.set_pacing(order.pacing_bytes_per_s)?;
        }
        Ok(())
    }

    /// Payload that came together with the preamble.
    fn begin_with(&mut self, rest: Range<usize>, lent: &mut Lent) -> io::Result<Step> {
        if matches!(self.phase, Phase::Transactions { .. }) {
            return self.request_bytes(rest.len(), rest.start, lent);
        }
        self.sink.took(&lent.buffer[rest.clone()], lent.pattern);
        self.delivered(rest.len(), lent);
        spin::run(lent.work_steps);
        Ok(Step::Moved)
    }

    /// Bytes of a request lie in the buffer from `from` on.
    fn request_bytes(&mut self, got: usize, from: usize, lent: &mut Lent) -> io::Result<Step> {
        let Phase::Transactions { need, owed } = &mut self.phase else { return Ok(Step::Idle) };
        // More than one request at a time is not in the protocol.
        if got > *need as usize {
            return Err(ErrorKind::InvalidData.into());
        }
        *need -= got as u32;
        if *need == 0 {
            (*need, *owed) = (self.order.request_bytes, self.order.response_bytes);
        }
        let complete = *owed > 0;
        self.sink.took(&lent.buffer[from..from + got], lent.pattern);
        self.delivered(got, lent);
        if !complete {
            return Ok(Step::Moved);
        }
        // Before the response, as a server would: the client waits for it.
        spin::run(lent.work_steps);
        self.respond(lent)
    }

    /// Sends the response, as far as the socket takes it.
    fn respond(&mut self, lent: &mut Lent) -> io::Result<Step> {
        let (Phase::Transactions { owed, .. }, Some(feed)) = (&mut self.phase, &mut self.feed)
        else {
            return Ok(Step::Idle);
        };
        while *owed > 0 {
            lent.calls += 1;
            match feed.push(&self.socket, *owed as usize) {
                Ok(sent) => {
                    *owed -= sent as u32;
                    lent.sent += sent as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Idle),
                Err(error) => return Err(error),
            }
        }
        self.transactions += 1;
        lent.transactions += 1;
        if self.order.kind == Kind::Single {
            if self.order.server_closes {
                return Ok(Step::Ended);
            }
            self.phase = Phase::Ending;
        }
        Ok(Step::Moved)
    }

    fn read_control(&mut self, lent: &mut Lent) -> io::Result<Step> {
        let got = self.socket.recv(lent.buffer, 0)?;
        if got == 0 {
            return Ok(Step::Ended);
        }
        let maps = lent.receive == ReceiveMethod::Zerocopy;
        for byte in &lent.buffer[..got] {
            let Phase::Control { unsent } = &mut self.phase else { break };
            if *byte != ASK_REPORT || unsent.len() > CONTROL_BACKLOG {
                return Err(ErrorKind::InvalidData.into());
            }
            let report = lent.runs.report(self.order.run, maps);
            unsent.extend(ServerMessage::Report(Box::new(report)).to_bytes());
        }
        Ok(Step::Moved)
    }
}
