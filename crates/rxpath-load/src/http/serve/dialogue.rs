//! What a connection says, byte by byte, and what is answered: no socket, no clock, no thread.

use crate::engine::spin;
use crate::http::chunks::Chunks;
use crate::http::request::{self, BodyFraming, Head};
use crate::http::serve::reply::{Kind, ReplyQueue};

#[cfg(test)]
mod tests;

/// Most that one read gives, unless a head may be longer.
const READ_BYTES: usize = 64 * 1024;
/// Longest head that is remembered.
const MAX_KNOWN_BYTES: usize = 2048;
/// First size of a buffer for the start of a head: most heads fit.
const HELD_BYTES: usize = 512;
/// Buffers made at the start.
const FIRST_SPARE: usize = 4;
/// Buffers kept for the next request that comes in pieces.
const MAX_SPARE: usize = 64;

/// What requests may be, the same for all connections.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Longest head.
    pub max_head: usize,
    /// Longest body.
    pub max_body: u64,
    /// Simulated work per request, in steps of the spinner.
    pub work_steps: u64,
}

impl Rules {
    /// Size of the buffer for one read, in bytes.
    pub fn read_bytes(&self) -> usize {
        READ_BYTES.max(self.max_head)
    }
}

/// What the connections of one thread share.
#[derive(Debug)]
pub struct Scratch {
    /// What requests may be.
    pub rules: Rules,
    /// The last request without a body: clients repeat themselves, and equal bytes mean the same.
    known: Vec<u8>,
    known_kind: Kind,
    spare: Vec<Vec<u8>>,
    /// The start of a head and what was read behind it.
    joined: Vec<u8>,
    /// Replies of the connection at hand.
    pub queue: ReplyQueue,
}

impl Scratch {
    /// For these rules.
    pub fn new(rules: Rules) -> Self {
        // A few buffers from the start, so that the first request in pieces costs no more than the others.
        let mut spare = Vec::with_capacity(MAX_SPARE);
        spare.resize_with(FIRST_SPARE, || Vec::with_capacity(HELD_BYTES));
        Self {
            rules,
            known: Vec::with_capacity(MAX_KNOWN_BYTES),
            known_kind: Kind::Ok,
            spare,
            // Whole from the start: the first head in pieces costs no allocation. Pages that nobody writes take no memory.
            joined: Vec::with_capacity(rules.max_head + rules.read_bytes()),
            queue: ReplyQueue::default(),
        }
    }

    #[inline]
    fn is_known(&self, bytes: &[u8]) -> bool {
        !self.known.is_empty() && bytes.starts_with(&self.known)
    }

    fn remember(&mut self, head: &[u8], kind: Kind) {
        if head.len() <= MAX_KNOWN_BYTES {
            self.known.clear();
            self.known.extend_from_slice(head);
            self.known_kind = kind;
        }
    }

    #[inline]
    fn answer(&mut self, kind: Kind) {
        spin::run(self.rules.work_steps);
        self.queue.push(kind);
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        // One that grew is not handed to a connection that holds a few bytes.
        if self.spare.len() < MAX_SPARE && buffer.capacity() <= HELD_BYTES {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before or within a head.
    #[default]
    Head,
    /// This many bytes of a body are to come.
    Length(u64),
    /// Within a chunked body.
    Chunked(Chunks),
    /// The last reply is said.
    Over,
}

/// What is to happen with the connection when the replies are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionAction {
    /// Stay open.
    Open,
    /// Close: it was asked for, and nothing came behind the request.
    Close,
    /// Close in order, reading on for a while: the client may still be sending, and a close with unread data
    /// would reset the connection before it has read the reply (RFC 9112 section 9.6).
    Linger,
}

/// One connection's side of the talk.
#[derive(Debug, Default)]
pub struct Dialogue {
    phase: Phase,
    /// Reply to the request whose body is being skipped.
    kind: Option<Kind>,
    /// The start of a head whose rest has not come.
    held: Option<Vec<u8>>,
}

impl Dialogue {
    /// Whether a request has begun and is not whole.
    pub fn is_within_request(&self) -> bool {
        self.held.is_some() || matches!(self.phase, Phase::Length(_) | Phase::Chunked(_))
    }

    /// Whether the wait is for a body: each piece of it is progress, pieces of a head are not.
    pub fn is_within_body(&self) -> bool {
        matches!(self.phase, Phase::Length(_) | Phase::Chunked(_))
    }

    /// Takes what was read; replies go to the scratch's queue.
    #[inline]
    pub fn feed(&mut self, scratch: &mut Scratch, input: &[u8]) -> ConnectionAction {
        if self.held.is_some() {
            return self.feed_held(scratch, input);
        }
        let (used, next) = self.walk(scratch, input);
        if used < input.len() && next == ConnectionAction::Open {
            let held = scratch.spare.pop();
            let mut held = held.unwrap_or_else(|| Vec::with_capacity(HELD_BYTES));
            held.extend_from_slice(&input[used..]);
            self.held = Some(held);
        }
        next
    }

    /// The same behind the start of a head.
    #[cold]
    fn feed_held(&mut self, scratch: &mut Scratch, input: &[u8]) -> ConnectionAction {
        let Some(mut held) = self.held.take() else { return ConnectionAction::Open };
        // A head ends with a line feed: without one there is nothing new to find, so that a head which comes
        // byte by byte is not parsed anew for each byte.
        if !input.contains(&b'\n') && held.len() + input.len() <= scratch.rules.max_head {
            held.extend_from_slice(input);
            self.held = Some(held);
            return ConnectionAction::Open;
        }
        // Joined in the thread's buffer: a connection holds no room for what it read, only for what is left of it.
        let mut joined = std::mem::take(&mut scratch.joined);
        joined.clear();
        joined.extend_from_slice(&held);
        joined.extend_from_slice(input);
        let (used, next) = self.walk(scratch, &joined);
        if next == ConnectionAction::Open && used < joined.len() {
            held.clear();
            held.extend_from_slice(&joined[used..]);
            self.held = Some(held);
        } else {
            scratch.keep(held);
        }
        scratch.joined = joined;
        next
    }

    /// Answers all requests that are whole; returns the bytes that are dealt with.
    #[inline]
    fn walk(&mut self, scratch: &mut Scratch, input: &[u8]) -> (usize, ConnectionAction) {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            if self.phase == Phase::Head && scratch.is_known(rest) {
                at += scratch.known.len();
                scratch.answer(scratch.known_kind);
                continue;
            }
            match self.step(scratch, rest) {
                Ok(0) => break,
                Ok(used) => at += used,
                Err(refusal) => {
                    scratch.queue.push(refusal);
                    self.phase = Phase::Over;
                    return (input.len(), ConnectionAction::Linger);
                }
            }
            if self.phase == Phase::Over {
                let next = if at < input.len() {
                    ConnectionAction::Linger
                } else {
                    ConnectionAction::Close
                };
                return (input.len(), next);
            }
        }
        (at, ConnectionAction::Open)
    }

    /// One head or one piece of a body; `Ok(0)` when more must come.
    fn step(&mut self, scratch: &mut Scratch, rest: &[u8]) -> Result<usize, Kind> {
        match &mut self.phase {
            Phase::Head => self.head(scratch, rest),
            Phase::Length(left) => {
                let used = (*left).min(rest.len() as u64);
                *left -= used;
                if *left == 0 {
                    self.end_body(scratch);
                }
                Ok(used as usize)
            }
            Phase::Chunked(chunks) => {
                let (used, is_end) = chunks.skip(rest, scratch.rules.max_body)?;
                if is_end {
                    self.end_body(scratch);
                }
                Ok(used)
            }
            Phase::Over => Ok(rest.len()),
        }
    }

    fn head(&mut self, scratch: &mut Scratch, rest: &[u8]) -> Result<usize, Kind> {
        // Never more than the limit, so that the verdict does not depend on how much came at once.
        let window = &rest[..rest.len().min(scratch.rules.max_head)];
        let Some(head) = request::parse(window)? else {
            let is_full = window.len() == scratch.rules.max_head;
            return if is_full { Err(Kind::HeadTooLarge) } else { Ok(0) };
        };
        let kind = kind(head);
        match head.body {
            BodyFraming::None => {
                scratch.answer(kind);
                if head.keep_alive {
                    scratch.remember(&rest[..head.bytes], kind);
                } else {
                    self.phase = Phase::Over;
                }
                return Ok(head.bytes);
            }
            BodyFraming::Length(length) if length > scratch.rules.max_body => {
                return Err(Kind::ContentTooLarge);
            }
            BodyFraming::Length(length) => self.phase = Phase::Length(length),
            BodyFraming::Chunked => self.phase = Phase::Chunked(Chunks::default()),
        }
        self.kind = Some(kind);
        if head.expects_continue && rest.len() == head.bytes {
            scratch.queue.push(Kind::Continue);
        }
        Ok(head.bytes)
    }

    fn end_body(&mut self, scratch: &mut Scratch) {
        let kind = self.kind.take().unwrap_or(Kind::OkClose);
        scratch.answer(kind);
        let is_last = matches!(kind, Kind::OkClose | Kind::OkHeadClose);
        self.phase = if is_last { Phase::Over } else { Phase::Head };
    }
}

fn kind(head: Head) -> Kind {
    match (head.is_head, head.keep_alive, head.is_old) {
        (false, true, false) => Kind::Ok,
        (true, true, false) => Kind::OkHead,
        (false, false, _) => Kind::OkClose,
        (true, false, _) => Kind::OkHeadClose,
        (false, true, true) => Kind::OkOld,
        (true, true, true) => Kind::OkHeadOld,
    }
}

/// What a fuzzer holds: any bytes, in any pieces, get the same replies and never hold more than the limits allow.
///
/// The first byte is the size of the pieces; returns whether all that is so.
pub fn fuzz(bytes: &[u8]) -> bool {
    let Some((size, bytes)) = bytes.split_first() else { return true };
    // A head in pieces is looked at when a line ends: so that both runs see the end of what was said.
    let bytes = [bytes, b"\n\r\n"].concat();
    let rules = Rules { max_head: 256, max_body: 4096, work_steps: 0 };
    let talk = |size: usize| {
        let (mut scratch, mut dialogue) = (Scratch::new(rules), Dialogue::default());
        for piece in bytes.chunks(size.max(1)) {
            let next = dialogue.feed(&mut scratch, piece);
            if dialogue.held.as_ref().is_some_and(|held| held.len() > rules.max_head) {
                return None;
            }
            if next != ConnectionAction::Open {
                break;
            }
        }
        let replies = |kind: &Kind| *kind != Kind::Continue;
        Some(scratch.queue.kinds().filter(replies).collect::<Vec<_>>())
    };
    let whole = talk(bytes.len());
    whole.is_some() && talk(usize::from(*size)) == whole
}
