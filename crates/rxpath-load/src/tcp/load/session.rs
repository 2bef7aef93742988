//! The control connection of a client: identifies the server, and gets its report on the run.

use std::hash::{BuildHasher, Hasher};
use std::mem::offset_of;
use std::net::SocketAddr;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::socket::Socket;
use crate::engine::tcp::is_passing;
use crate::engine::tcp_info::TcpInfo;
use crate::tcp::frame::{ASK_REPORT, FrameError, ServerHello, ServerMessage};
use crate::tcp::preamble::{Kind, Preamble};
use crate::tcp::result::ServerReport;
use crate::tcp::socket::connect_error;

/// Longest wait for the connection.
pub(super) const CONNECT_MS: u64 = 5_000;
/// Longest wait for an answer.
const ANSWER_NS: u64 = 5_000_000_000;

/// A control connection.
#[derive(Debug)]
pub(super) struct Session {
    socket: Socket,
    addr: SocketAddr,
    pub(super) run: u64,
    pub(super) hello: ServerHello,
    /// Bytes of an answer that is not whole yet.
    bytes: Vec<u8>,
}

impl Session {
    /// Connects, and checks that an rxpath server of this version is there.
    pub(super) fn open(addr: SocketAddr) -> Result<Self, LoadError> {
        if addr.port() == 0 {
            let what = format!("{addr}: port 0 is not a destination");
            return Err(LoadError::usage(what, "give the server's port"));
        }
        let socket = Socket::tcp(addr).map_err(|e| LoadError::io("socket", e))?;
        socket.connect_within(addr, CONNECT_MS).map_err(|e| connect_error(addr, e))?;
        let run = std::hash::RandomState::new().build_hasher().finish();
        let order = Preamble { kind: Kind::Control, run, nodelay: true, ..Preamble::default() };
        let hello = ServerHello::default();
        let mut session = Self { socket, addr, run, hello, bytes: Vec::new() };
        let sent = session.socket.send_with(&order.to_bytes(), 0);
        sent.map_err(|e| connect_error(addr, e))?;
        match session.answer()? {
            ServerMessage::Hello(hello) => Ok(Self { hello, ..session }),
            ServerMessage::Refused { why } => Err(session.refused(&why)),
            ServerMessage::Report(_) => Err(session.stranger("it sent a report without a request")),
        }
    }

    fn stranger(&self, what: &str) -> LoadError {
        let what = format!("{}: no `rxpath serve tcp` answers there: {what}", self.addr);
        let hint =
            format!("start `rxpath serve tcp {}` there, or give its real address", self.addr);
        LoadError::usage(what, hint)
    }

    fn refused(&self, why: &str) -> LoadError {
        let what = format!("{}: the server refuses: {why}", self.addr);
        LoadError::usage(what, "use the same version of rxpath on both sides")
    }

    fn wrong(&self, error: &FrameError) -> LoadError {
        match error {
            FrameError::Stranger => self.stranger("its answer is another protocol"),
            FrameError::Version(_) => self.refused(&error.to_string()),
            FrameError::Malformed(_) => self.stranger(&error.to_string()),
        }
    }

    /// Reads one answer.
    fn answer(&mut self) -> Result<ServerMessage, LoadError> {
        let until = clock::now_ns() + ANSWER_NS;
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = ServerMessage::read(&self.bytes).map_err(|error| self.wrong(&error))?;
            if let Some((answer, taken)) = read {
                self.bytes.drain(..taken);
                return Ok(answer);
            }
            let left_ms = until.saturating_sub(clock::now_ns()).div_ceil(1_000_000) as i32;
            if left_ms == 0 {
                let what = "it accepted the connection, but did not answer within 5 s";
                return Err(self.stranger(what));
            }
            let failed = |error| connect_error(self.addr, error);
            if self.socket.wait(libc::POLLIN, left_ms).map_err(failed)? {
                match self.socket.recv(&mut chunk, 0) {
                    Ok(0) => {
                        return Err(self.stranger("it closed the connection without an answer"));
                    }
                    Ok(got) => self.bytes.extend_from_slice(&chunk[..got]),
                    Err(error) if is_passing(&error) => {}
                    Err(error) => return Err(connect_error(self.addr, error)),
                }
            }
        }
    }

    /// The server's report on the run; `None` when the server has gone.
    pub(super) fn report(&mut self) -> Option<ServerReport> {
        self.socket.send_with(&[ASK_REPORT], 0).ok()?;
        match self.answer() {
            Ok(ServerMessage::Report(report)) => Some(*report),
            _ => None,
        }
    }

    /// Segment size towards the server.
    pub(super) fn mss_bytes(&self) -> Option<u32> {
        TcpInfo::read(self.socket.fd()).ok()?.u32(offset_of!(libc::tcp_info, tcpi_snd_mss))
    }
}
