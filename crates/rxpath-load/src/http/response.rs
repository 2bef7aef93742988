//! Where a reply ends: the framing of HTTP/1.1 replies, fed in pieces of any size.
//!
//! The question is only how long a reply is, which status it has and whether its connection lives on. Bodies are
//! counted and thrown away, so that a reply of any size takes no memory.
//!
//! **Source** RFC 9112, section 6.3 (message body length) and section 7.1 (chunked).

mod head;
mod known;

use crate::http::chunks::Chunks;
use head::Head;
pub use known::Known;

/// The longest head that is taken. **Source** ours; nginx sends at most 32 KiB by default, Apache 64 KiB.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// Room for a head that comes in pieces, taken beforehand; longer ones grow it.
const USUAL_HEAD_BYTES: usize = 512;

/// A reply that was read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Whether the server will close the connection behind it.
    pub close: bool,
}

/// What was read is no HTTP/1 reply: its head does not parse or does not end, its length is no number or says two things, its
/// body is not chunked as the head says, or it switches protocols without having been asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The bytes after which a reply ended, and what it was; `None`: all bytes were taken, and the reply goes on.
pub type Fed = Option<(usize, Reply)>;

/// What the end of the connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// It came between replies.
    Between,
    /// It ends a reply that had no length.
    Whole(Reply),
    /// It cut a reply.
    Cut,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// This many bytes of a body.
    Counted(u64),
    Chunked(Chunks),
    UntilClose,
}

/// Reads the replies of one connection.
#[derive(Clone, Debug)]
pub struct ResponseReader {
    state: State,
    reply: Reply,
    /// Whether replies have no body whatever their head says (`HEAD`).
    bodiless: bool,
    /// An interim reply (1xx) came before the one that is awaited.
    interim: bool,
    /// A head that came in pieces.
    head: Vec<u8>,
}

impl ResponseReader {
    /// For replies to `HEAD` (`bodiless`) or to any other method.
    pub fn new(bodiless: bool) -> Self {
        let (reply, head) = (Reply::default(), Vec::with_capacity(USUAL_HEAD_BYTES));
        Self { state: State::Head, reply, bodiless, interim: false, head }
    }

    /// Forgets what was read: a new connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.interim = false;
        self.head.clear();
    }

    /// Takes bytes of the connection, up to the end of one reply.
    ///
    /// `known` makes a head that equals the last one cost a comparison instead of a parse.
    /// **Errors** the bytes are no reply; the connection is lost.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], known: &mut Known) -> Result<Fed, Malformed> {
        if self.state == State::Head
            && self.head.is_empty()
            && let Some((len, reply)) = known.find(bytes)
        {
            self.interim = false;
            if bytes.len() as u64 >= len {
                return Ok(Some((len as usize, reply)));
            }
            self.reply = reply;
            self.state = State::Counted(len - bytes.len() as u64);
            return Ok(None);
        }
        self.feed_slowly(bytes, known)
    }

    fn feed_slowly(&mut self, bytes: &[u8], known: &mut Known) -> Result<Fed, Malformed> {
        let (mut at, mut start) = (0, None);
        loop {
            let rest = &bytes[at..];
            let used = match &mut self.state {
                State::Head => {
                    let whole = self.head.is_empty();
                    let Some((len, head)) = self.take_head(rest)? else { return Ok(None) };
                    start = whole.then_some(at);
                    if whole
                        && let State::Counted(body) = head.next
                        && let Some(all) = body.checked_add(len as u64)
                    {
                        known.learn(&rest[..len], all, head.reply);
                    }
                    (self.reply, self.state) = (head.reply, head.next);
                    self.interim = self.state == State::Head;
                    at += len;
                    if self.state == State::Head || self.state == State::Counted(0) {
                        0
                    } else {
                        continue;
                    }
                }
                State::Counted(left) => {
                    let taken = (*left).min(rest.len() as u64);
                    *left -= taken;
                    if *left > 0 {
                        return Ok(None);
                    }
                    taken as usize
                }
                State::Chunked(chunks) => {
                    let (used, is_end) = chunks.skip(rest, u64::MAX).map_err(|_| Malformed)?;
                    if !is_end {
                        return Ok(None);
                    }
                    if let Some(start) = start {
                        let whole = &bytes[start..at + used];
                        known.learn(whole, whole.len() as u64, self.reply);
                    }
                    used
                }
                State::UntilClose => return Ok(None),
            };
            at += used;
            if self.state == State::Head {
                // An interim reply: the one that is awaited follows.
                if at == bytes.len() {
                    return Ok(None);
                }
                continue;
            }
            self.state = State::Head;
            self.interim = false;
            return Ok(Some((at, self.reply)));
        }
    }

    /// The head at the front of `rest` and its length there; `None` when it is not whole yet.
    fn take_head(&mut self, rest: &[u8]) -> Result<Option<(usize, Head)>, Malformed> {
        if self.head.is_empty() {
            if let Some((len, head)) = head::parse(rest, self.bodiless)? {
                return Ok(Some((len, head)));
            }
            if rest.len() > MAX_HEAD_BYTES {
                return Err(Malformed);
            }
            self.head.extend_from_slice(rest);
            return Ok(None);
        }
        let before = self.head.len();
        let taken = rest.len().min(MAX_HEAD_BYTES + 1 - before);
        self.head.extend_from_slice(&rest[..taken]);
        let Some(end) = head::find_end(&self.head, before.saturating_sub(3)) else {
            return if self.head.len() > MAX_HEAD_BYTES { Err(Malformed) } else { Ok(None) };
        };
        let parsed = head::parse(&self.head[..end], self.bodiless)?;
        self.head.clear();
        match parsed {
            Some((len, head)) if len == end => Ok(Some((end - before, head))),
            _ => Err(Malformed),
        }
    }

    /// The connection ended.
    pub fn eof(&mut self) -> Eof {
        let end = match self.state {
            State::Head if self.head.is_empty() && !self.interim => Eof::Between,
            State::UntilClose => Eof::Whole(self.reply),
            _ => Eof::Cut,
        };
        self.reset();
        end
    }
}

#[cfg(test)]
mod tests;
