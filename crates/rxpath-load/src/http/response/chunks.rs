//! The chunked coding, read byte by byte where it matters and skipped where it is data.
//!
//! **Source** RFC 9112, section 7.1.

use super::{MAX_HEAD_BYTES, Malformed};

/// The longest line of a chunk's size with its extensions.
const MAX_LINE_BYTES: u32 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The first digit of a size.
    #[default]
    First,
    Digits,
    Extension,
    SizeNewline,
    Data,
    DataReturn,
    DataNewline,
    /// The first byte of a trailer's line.
    Trailer,
    TrailerLine,
    LastNewline,
}

/// How far a chunked body was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    state: State,
    /// Of the size while it is read, then what is left of the data.
    left: u64,
    /// Bytes of this line, or of all trailers.
    line: u32,
}

impl Chunks {
    /// Takes bytes; the number of those that belong to the body once its end is among them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Data {
                let taken = self.left.min((bytes.len() - at) as u64);
                self.left -= taken;
                at += taken as usize;
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            let is_last = self.state == State::LastNewline;
            self.step(bytes[at])?;
            at += 1;
            if is_last {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        let broken = |what| Err(Malformed::Chunk(what));
        self.state = match (self.state, byte) {
            (State::First | State::Digits, _) if byte.is_ascii_hexdigit() => self.digit(byte)?,
            (State::First, _) => return broken("a chunk size has no digit"),
            (State::Digits | State::Extension, b'\r') => State::SizeNewline,
            (State::Digits, b';' | b' ' | b'\t') => State::Extension,
            (State::Digits, _) => return broken("a chunk size is not a number"),
            (State::Extension, b'\n') => return broken("a chunk-size line ends without CR"),
            (State::Extension, _) => self.longer(MAX_LINE_BYTES, State::Extension)?,
            (State::SizeNewline, b'\n') => self.begin(),
            (State::DataReturn, b'\r') => State::DataNewline,
            (State::DataNewline, b'\n') => State::First,
            (State::Trailer, b'\r') => State::LastNewline,
            (State::TrailerLine, b'\n') => State::Trailer,
            (State::Trailer | State::TrailerLine, _) => {
                self.longer(MAX_HEAD_BYTES as u32, State::TrailerLine)?
            }
            (State::LastNewline, b'\n') => State::First,
            _ => return broken("a line end is missing"),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<State, Malformed> {
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        if self.left >> 60 != 0 {
            return Err(Malformed::Chunk("a chunk size over 64 bits"));
        }
        self.left = (self.left << 4) | u64::from(digit);
        self.longer(MAX_LINE_BYTES, State::Digits)
    }

    fn longer(&mut self, most: u32, next: State) -> Result<State, Malformed> {
        self.line += 1;
        if self.line > most { Err(Malformed::Chunk("a line does not end")) } else { Ok(next) }
    }

    /// Behind a size's line.
    fn begin(&mut self) -> State {
        self.line = 0;
        if self.left == 0 { State::Trailer } else { State::Data }
    }
}
