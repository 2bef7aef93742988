//! The replies, written once at the start, and queues of them.
//!
//! A queue holds no bytes: equal replies that follow each other are a run, and the bytes of a run are pieces of
//! memory that all connections share. So a connection that pipelines requests or does not read costs two bytes a run.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Bytes of one piece of repeated replies or of a long body.
const BLOCK_BYTES: usize = 64 * 1024;
/// Copies of a reply in its block: as many replies of the usual size go into one write.
const MAX_COPIES: usize = 128;
/// Slices of one gathering write.
pub const MAX_SLICES: usize = 64;

rxpath_core::named! {
    /// A reply.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Kind {
        /// 200 with the body.
        Ok => "200 OK",
        /// 200 to `HEAD`.
        OkHead => "200 OK",
        /// 200 with the body, then close.
        OkClose => "200 OK",
        /// 200 to `HEAD`, then close.
        OkHeadClose => "200 OK",
        /// 200 with the body to HTTP/1.0, kept alive.
        OkOld => "200 OK",
        /// 200 to `HEAD` of HTTP/1.0, kept alive.
        OkHeadOld => "200 OK",
        /// 100: send the body.
        Continue => "100 Continue",
        /// 400: not HTTP, or its framing is ambiguous.
        BadRequest => "400 Bad Request",
        /// 405: a known method that a measuring server has no use for.
        MethodNotAllowed => "405 Method Not Allowed",
        /// 408: the rest of a request did not come in time.
        Timeout => "408 Request Timeout",
        /// 413: the body is longer than allowed.
        ContentTooLarge => "413 Content Too Large",
        /// 417: an expectation other than `100-continue`.
        ExpectationFailed => "417 Expectation Failed",
        /// 431: the head is longer than allowed or has too many fields.
        HeadTooLarge => "431 Request Header Fields Too Large",
        /// 501: an unknown method or transfer coding.
        NotImplemented => "501 Not Implemented",
        /// 505: neither HTTP/1.0 nor HTTP/1.1.
        VersionNotSupported => "505 HTTP Version Not Supported",
    }
    /// Its status code and reason.
    pub fn line(self) -> &'static str
}

/// How many kinds there are.
pub const KINDS: usize = Kind::ALL.len();

/// The status code of each kind: the event loops ask for it.
const STATUS: [u16; KINDS] =
    [200, 200, 200, 200, 200, 200, 100, 400, 405, 408, 413, 417, 431, 501, 505];

impl Kind {
    /// Status code.
    pub fn status(self) -> u16 {
        STATUS[self as usize]
    }

    /// Whether it answers a whole request (100 and 408 do not).
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Continue | Self::Timeout)
    }

    fn has_body(self) -> bool {
        matches!(self, Self::Ok | Self::OkClose | Self::OkOld)
    }

    fn head(self, body_bytes: u64) -> String {
        let line = self.line();
        if self == Self::Continue {
            return format!("HTTP/1.1 {line}\r\n\r\n");
        }
        let length = if self.status() == 200 { body_bytes } else { 0 };
        let more = match self {
            Self::Ok | Self::OkHead => "",
            Self::OkOld | Self::OkHeadOld => "Connection: keep-alive\r\n",
            Self::MethodNotAllowed => "Allow: GET, HEAD, POST\r\nConnection: close\r\n",
            _ => "Connection: close\r\n",
        };
        let kind = if self.status() == 200 { "Content-Type: text/plain\r\n" } else { "" };
        format!("HTTP/1.1 {line}\r\nServer: rxpath\r\n{kind}Content-Length: {length}\r\n{more}\r\n")
    }
}

/// Bytes of all the kinds of replies.
#[derive(Debug)]
pub struct ReplyTable {
    pages: Vec<Page>,
    filler: Arc<[u8]>,
}

/// The bytes of one kind.
#[derive(Debug)]
struct Page {
    /// The reply some times over, or the start of one that is longer than a block.
    block: Arc<[u8]>,
    /// Bytes of one reply.
    len: u64,
    /// Replies in the block; 1 for a longer one.
    copies: u32,
}

impl Page {
    fn new(kind: Kind, body_bytes: u64) -> Self {
        let mut one = kind.head(body_bytes).into_bytes();
        let body = if kind.has_body() { body_bytes } else { 0 };
        let len = one.len() as u64 + body;
        let first = usize::try_from(body).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        one.resize(one.len() + first, b'x');
        let copies = (BLOCK_BYTES / one.len()).clamp(1, MAX_COPIES);
        Self { block: one.repeat(copies).into(), len, copies: copies as u32 }
    }
}

impl ReplyTable {
    /// Replies whose body has this many bytes.
    pub fn new(body_bytes: u64) -> Self {
        let pages = Kind::ALL.iter().map(|kind| Page::new(*kind, body_bytes)).collect();
        Self { pages, filler: vec![b'x'; BLOCK_BYTES].into() }
    }

    /// Bytes of one reply.
    pub fn len(&self, kind: Kind) -> u64 {
        self.pages[kind as usize].len
    }

    /// The memory behind all pieces; the filler of long bodies is last.
    pub fn blocks(&self) -> Vec<Arc<[u8]>> {
        let pages = self.pages.iter().map(|page| &page.block);
        pages.chain([&self.filler]).map(Arc::clone).collect()
    }

    /// What to write next of a run, from this offset in its first reply on: a part of a block, never empty.
    #[inline]
    fn part(&self, run: Run, offset: u64) -> (usize, Range<usize>) {
        let page = &self.pages[run.kind as usize];
        if offset < page.block.len() as u64 {
            let copies = u32::from(run.count).min(page.copies) as usize;
            let end = page.block.len() / page.copies as usize * copies;
            return (run.kind as usize, offset as usize..end);
        }
        let left = usize::try_from(page.len - offset).unwrap_or(usize::MAX);
        (KINDS, 0..left.min(self.filler.len()))
    }

    #[inline]
    fn piece(&self, run: Run, offset: u64) -> &[u8] {
        let (block, range) = self.part(run, offset);
        let block = self.pages.get(block).map_or(&self.filler, |page| &page.block);
        &block[range]
    }
}

/// Equal replies in a row. Two bytes each: a client that asks for replies of two kinds in turn, and reads none, makes a run
/// of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    kind: Kind,
    count: u8,
}

/// Replies that are to be written, in their order.
#[derive(Clone, Debug, Default)]
pub struct ReplyQueue {
    runs: Vec<Run>,
    /// Index of the first run that is not wholly written.
    first: usize,
    /// Bytes of its first reply that are written.
    offset: u64,
    /// Requests that these replies end.
    requests: u64,
}

impl ReplyQueue {
    /// Adds a reply.
    #[inline]
    pub fn push(&mut self, kind: Kind) {
        self.requests += u64::from(kind.is_final());
        self.extend(Run { kind, count: 1 });
    }

    #[inline]
    fn extend(&mut self, run: Run) {
        let last = self.runs[self.first..].last_mut().filter(|last| last.kind == run.kind);
        if let Some((last, count)) =
            last.and_then(|last| last.count.checked_add(run.count).map(|count| (last, count)))
        {
            last.count = count;
        } else {
            self.runs.push(run);
        }
    }

    /// Whether all is written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Requests whose replies were in the queue since it was last empty.
    #[inline]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Memory that the queue holds.
    pub fn held_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }

    /// Runs that are not wholly written.
    pub fn runs(&self) -> usize {
        self.runs.len() - self.first
    }

    /// The replies that are not wholly written, one by one.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.runs[self.first..].iter().flat_map(|run| (0..run.count).map(|_| run.kind))
    }

    /// Whether a request is refused by one of them.
    pub fn has_refusal(&self) -> bool {
        self.runs[self.first..].iter().any(|run| run.kind.status() >= 400)
    }

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.runs.clear();
        (self.first, self.offset, self.requests) = (0, 0, 0);
    }

    /// The next piece to write, and whether nothing follows it.
    #[inline]
    pub fn piece<'b>(&self, reply_table: &'b ReplyTable) -> Option<(&'b [u8], bool)> {
        let run = *self.runs.get(self.first)?;
        let piece = reply_table.piece(run, self.offset);
        let is_all = self.first + 1 == self.runs.len()
            && self.offset + piece.len() as u64 == reply_table.len(run.kind) * u64::from(run.count);
        Some((piece, is_all))
    }

    /// The next piece as a part of one of the reply_table's blocks.
    pub fn part(&self, reply_table: &ReplyTable) -> Option<(usize, Range<usize>)> {
        let run = *self.runs.get(self.first)?;
        Some(reply_table.part(run, self.offset))
    }

    /// Adds the replies of another queue, which is empty afterwards.
    pub fn append(&mut self, other: &mut Self) {
        // What was written makes room, or a queue that is never empty would grow for ever.
        self.runs.drain(..self.first);
        self.first = 0;
        for run in &other.runs[other.first..] {
            self.extend(*run);
        }
        self.requests += other.requests;
        other.clear();
    }

    /// Several pieces for one gathering write; returns how many.
    pub fn pieces<'b>(
        &self,
        reply_table: &'b ReplyTable,
        slices: &mut [IoSlice<'b>; MAX_SLICES],
    ) -> usize {
        let (mut used, mut offset) = (0, self.offset);
        for run in &self.runs[self.first..] {
            let (mut left, len) = (*run, reply_table.len(run.kind));
            while left.count > 0 && used < slices.len() {
                let piece = reply_table.piece(left, offset);
                slices[used] = IoSlice::new(piece);
                used += 1;
                let end = offset + piece.len() as u64;
                left.count -= (end / len) as u8;
                offset = end % len;
            }
        }
        used
    }

    /// Notes that this many bytes were written, and counts the replies that are whole by kind.
    #[inline]
    pub fn advance(&mut self, reply_table: &ReplyTable, mut bytes: u64, done: &mut [u64; KINDS]) {
        while let Some(run) = self.runs.get_mut(self.first) {
            let len = reply_table.len(run.kind);
            let end = self.offset + bytes;
            let whole = (end / len).min(u64::from(run.count));
            done[run.kind as usize] += whole;
            run.count -= whole as u8;
            if run.count > 0 {
                self.offset = end - whole * len;
                return;
            }
            bytes = end - whole * len;
            self.offset = 0;
            self.first += 1;
        }
        self.clear();
    }
}
