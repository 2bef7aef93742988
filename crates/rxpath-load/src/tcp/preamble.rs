//! The first bytes of every connection: the client states the purpose of the connection.
//!
//! The client sends 40 bytes, all numbers little-endian, and for a stream or for transactions waits for no
//! answer, so that a short connection pays no round trip for it:
//!
//! ```text
//! bytes  0.. 6  "rxptcp"
//!        6.. 8  version, 1
//!        8      kind: 0 control, 1 stream, 2 request/response, 3 connect/request/response/close
//!        9      flags: 1 client sends, 2 server sends, 4 payloads follow the pattern and are checked,
//!               8 the server closes after its response, 16 TCP_NODELAY
//!       10      how the server sends: 0 copy, 1 zerocopy
//!       11      0
//!       12..16  bytes of a request
//!       16..20  bytes of a response
//!       20..24  bytes of one send call of the server
//!       24..32  run: a number drawn by the client process, the same on all of its connections
//!       32..40  SO_MAX_PACING_RATE of the server's side in bytes/s; 0 = none
//! ```
//!
//! A server that cannot serve it answers with a [frame](crate::tcp::frame) that says why, and closes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a preamble.
pub const PREAMBLE_BYTES: usize = 40;
/// The version that this program speaks.
pub const VERSION: u16 = 1;
/// What preambles and frames begin with.
pub const MAGIC: [u8; 6] = *b"rxptcp";
/// Largest request or response.
pub const MAX_MESSAGE: u32 = 1 << 30;
/// Largest buffer of a call.
pub const MAX_BUFFER: u32 = 64 << 20;

const CLIENT_SENDS: u8 = 1;
const SERVER_SENDS: u8 = 2;
const VERIFY: u8 = 4;
const SERVER_CLOSES: u8 = 8;
const NODELAY: u8 = 16;

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Questions about the server and about the run.
    #[default]
    Control,
    /// Bytes as fast as they go, one way or both.
    Stream,
    /// A request, its response, the next request.
    Transactions,
    /// One request and its response.
    Single,
}

/// All kinds, each at its number in a preamble.
const KINDS: [Kind; 4] = [Kind::Control, Kind::Stream, Kind::Transactions, Kind::Single];

/// How bytes are handed to the kernel; in a preamble by the number of the variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum SendMethod {
    /// `send`: copied from user memory.
    #[default]
    Copy,
    /// `send` with `MSG_ZEROCOPY`.
    Zerocopy,
}

/// A client's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// What the connection is for.
    pub kind: Kind,
    /// The client sends (stream).
    pub client_sends: bool,
    /// The server sends (stream).
    pub server_sends: bool,
    /// Payloads follow the pattern, and the receiver checks them.
    pub verify: bool,
    /// The server closes after its response (connect/request/response/close).
    pub server_closes: bool,
    /// `TCP_NODELAY` at the server.
    pub nodelay: bool,
    /// How the server sends a stream.
    pub send: SendMethod,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// Bytes of one send call of the server.
    pub buffer_bytes: u32,
    /// Number of the run.
    pub run: u64,
    /// `SO_MAX_PACING_RATE` of the server's side; 0 = none.
    pub pacing_bytes_per_s: u64,
}

/// Bytes that are no preamble of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not from rxpath.
    #[error("these bytes are not from `rxpath load tcp`")]
    Stranger,
    /// From another version.
    #[error("the client speaks version {0} of the preamble, this server version {VERSION}")]
    Version(u16),
    /// From rxpath, but not possible.
    #[error("malformed preamble: {0}")]
    Malformed(&'static str),
}

impl Preamble {
    /// The bytes.
    pub fn to_bytes(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        let flag = |on, bit| if on { bit } else { 0 };
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[6..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8] = self.kind as u8;
        bytes[9] = flag(self.client_sends, CLIENT_SENDS)
            | flag(self.server_sends, SERVER_SENDS)
            | flag(self.verify, VERIFY)
            | flag(self.server_closes, SERVER_CLOSES)
            | flag(self.nodelay, NODELAY);
        bytes[10] = self.send as u8;
        bytes[12..16].copy_from_slice(&self.request_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.response_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.buffer_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.run.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.pacing_bytes_per_s.to_le_bytes());
        bytes
    }

    /// Reads a preamble; `Ok(None)`: so far it may become one, more bytes are needed.
    ///
    /// **Errors** as soon as the bytes cannot become a preamble of this version.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(Refusal::Stranger);
        }
        let u16_at = |at| chunk::<2>(bytes, at).map(u16::from_le_bytes);
        let u32_at = |at| chunk::<4>(bytes, at).map_or(0, u32::from_le_bytes);
        let u64_at = |at| chunk::<8>(bytes, at).map_or(0, u64::from_le_bytes);
        if let Some(version) = u16_at(6)
            && version != VERSION
        {
            return Err(Refusal::Version(version));
        }
        if bytes.len() < PREAMBLE_BYTES {
            return Ok(None);
        }
        let flags = bytes[9];
        let preamble = Self {
            kind: *KINDS.get(usize::from(bytes[8])).ok_or(Refusal::Malformed("unknown kind"))?,
            client_sends: flags & CLIENT_SENDS != 0,
            server_sends: flags & SERVER_SENDS != 0,
            verify: flags & VERIFY != 0,
            server_closes: flags & SERVER_CLOSES != 0,
            nodelay: flags & NODELAY != 0,
            send: match bytes[10] {
                0 => SendMethod::Copy,
                1 => SendMethod::Zerocopy,
                _ => return Err(Refusal::Malformed("unknown send method")),
            },
            request_bytes: u32_at(12),
            response_bytes: u32_at(16),
            buffer_bytes: u32_at(20),
            run: u64_at(24),
            pacing_bytes_per_s: u64_at(32),
        };
        preamble.check().map(|()| Some(preamble))
    }

    fn check(&self) -> Result<(), Refusal> {
        let one_to = |n: u32, most: u32| (1..=most).contains(&n);
        match self.kind {
            Kind::Stream if !self.client_sends && !self.server_sends => {
                Err(Refusal::Malformed("a stream without direction"))
            }
            Kind::Stream if self.server_sends && !one_to(self.buffer_bytes, MAX_BUFFER) => {
                Err(Refusal::Malformed("a send buffer of 0 bytes or more than 64 MiB"))
            }
            Kind::Transactions | Kind::Single
                if !one_to(self.request_bytes, MAX_MESSAGE)
                    || !one_to(self.response_bytes, MAX_MESSAGE) =>
            {
                Err(Refusal::Malformed("a message of 0 bytes or more than 1 GiB"))
            }
            _ => Ok(()),
        }
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_preamble() -> impl Strategy<Value = Preamble> {
        let kind = prop_oneof![
            Just(Kind::Control),
            Just(Kind::Stream),
            Just(Kind::Transactions),
            Just(Kind::Single)
        ];
        let send = prop_oneof![Just(SendMethod::Copy), Just(SendMethod::Zerocopy)];
        let sizes = (1..=MAX_MESSAGE, 1..=MAX_MESSAGE, 1..=MAX_BUFFER);
        (kind, send, sizes, any::<[bool; 4]>(), any::<(u64, u64)>()).prop_map(
            |(kind, send, (request_bytes, response_bytes, buffer_bytes), flags, (run, pacing))| {
                Preamble {
                    kind,
                    client_sends: flags[0],
                    server_sends: !flags[0] || flags[1],
                    verify: flags[1],
                    server_closes: flags[2],
                    nodelay: flags[3],
                    send,
                    request_bytes,
                    response_bytes,
                    buffer_bytes,
                    run,
                    pacing_bytes_per_s: pacing,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(preamble in any_preamble(), cut in 0..PREAMBLE_BYTES) {
            let bytes = preamble.to_bytes();
            prop_assert_eq!(Preamble::read(&bytes), Ok(Some(preamble)));
            // Each beginning may become a preamble.
            prop_assert_eq!(Preamble::read(&bytes[..cut]), Ok(None));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Preamble::read(&bytes);
        }
    }

    #[test]
    fn strangers_are_known_by_their_first_byte() {
        assert_eq!(Preamble::read(b"G"), Err(Refusal::Stranger));
        assert_eq!(Preamble::read(b"rxptcP"), Err(Refusal::Stranger));
        assert_eq!(Preamble::read(b""), Ok(None));
    }

    #[test]
    fn another_version_is_known_before_the_rest_came() {
        assert_eq!(Preamble::read(b"rxptcp\x02\x00"), Err(Refusal::Version(2)));
    }

    #[test]
    fn impossible_orders_are_refused() {
        let stream = Preamble { kind: Kind::Stream, ..Preamble::default() };
        let empty = Preamble { kind: Kind::Transactions, response_bytes: 1, ..stream };
        let endless = Preamble { kind: Kind::Stream, server_sends: true, ..Preamble::default() };
        for preamble in [stream, empty, endless] {
            let read = Preamble::read(&preamble.to_bytes());
            assert!(matches!(read, Err(Refusal::Malformed(_))), "{read:?}");
        }
        let mut unknown = Preamble::default().to_bytes();
        unknown[8] = 9;
        assert_eq!(Preamble::read(&unknown), Err(Refusal::Malformed("unknown kind")));
    }
}
