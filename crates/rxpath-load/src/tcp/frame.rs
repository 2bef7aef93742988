//! Messages of a server: on a control connection, or when it refuses a connection.
//!
//! 12 bytes (`"rxptcp"`, version of 16 bits, length of 32 bits, little-endian) and that many bytes of JSON.
//! On a control connection the server begins with [`ServerMessage::Hello`]; for each byte `R` from the client it sends
//! [`ServerMessage::Report`] on the client's run so far.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::tcp::preamble::{MAGIC, VERSION};
use crate::tcp::result::ServerReport;
use crate::tcp::serve::options::ReceiveMethod;

/// Bytes before the JSON.
pub const HEADER_BYTES: usize = 12;
/// Largest JSON.
pub const MAX_BYTES: usize = 1 << 20;
/// The byte that asks for a report.
pub const ASK_REPORT: u8 = b'R';

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ServerMessage {
    /// Here is an rxpath server of this version.
    Hello(ServerHello),
    /// What the run did at the server.
    Report(Box<ServerReport>),
    /// It does not serve this connection.
    Refused {
        /// Why, in one line.
        why: String,
    },
}

/// What a client must know of a server before it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHello {
    /// Version of the server's program.
    pub program: String,
    /// How it receives: what it discards it cannot check.
    pub receive: ReceiveMethod,
    /// Its worker threads.
    pub threads_count: usize,
}

/// Bytes that are not a valid answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Not from an rxpath server.
    #[error("the answer does not come from `rxpath serve tcp`")]
    Stranger,
    /// From another version.
    #[error("the server speaks version {0} of the preamble, this client version {VERSION}")]
    Version(u16),
    /// From rxpath, but not readable.
    #[error("malformed answer from the server: {0}")]
    Malformed(String),
}

impl ServerMessage {
    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // These types have no maps with keys that JSON cannot hold, so nothing can fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        let len = (json.len() as u32).to_le_bytes();
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &len, &json].concat()
    }

    /// Reads an answer and the bytes it took; `Ok(None)`: more bytes are needed.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(FrameError::Stranger);
        }
        let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok(None) };
        let version = u16::from_le_bytes([header[6], header[7]]);
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        if len > MAX_BYTES {
            return Err(FrameError::Malformed(format!("{len} bytes are too many")));
        }
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let Some(json) = rest.get(..len) else { return Ok(None) };
        let answer =
            serde_json::from_slice(json).map_err(|e| FrameError::Malformed(e.to_string()))?;
        Ok(Some((answer, HEADER_BYTES + len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_read_back_and_wait_for_their_end() {
        let hello = ServerHello {
            program: "0.1.0".into(),
            receive: ReceiveMethod::Trunc,
            threads_count: 2,
        };
        for answer in [
            ServerMessage::Hello(hello),
            ServerMessage::Report(Box::default()),
            ServerMessage::Refused { why: "no".into() },
        ] {
            let bytes = answer.to_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(ServerMessage::read(&bytes[..cut]), Ok(None), "{cut}");
            }
            assert_eq!(ServerMessage::read(&bytes), Ok(Some((answer, bytes.len()))));
        }
    }

    #[test]
    fn others_are_told_apart() {
        assert_eq!(ServerMessage::read(b"HTTP/1.1 400"), Err(FrameError::Stranger));
        assert_eq!(ServerMessage::read(b"rxptcp\x07\0\0\0\0\0"), Err(FrameError::Version(7)));
        let long = b"rxptcp\x01\0\xff\xff\xff\xff";
        assert!(matches!(ServerMessage::read(long), Err(FrameError::Malformed(_))));
        let torn = b"rxptcp\x01\0\x02\0\0\0{x";
        assert!(matches!(ServerMessage::read(torn), Err(FrameError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = ServerMessage::read(&bytes);
            let mut framed = ServerMessage::Refused { why: String::new() }.to_bytes();
            framed.truncate(HEADER_BYTES);
            framed.extend(bytes);
            let _ = ServerMessage::read(&framed);
        }
    }
}
