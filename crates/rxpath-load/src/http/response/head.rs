//! One reply's head: status, length of the body, whether the connection lives on.

use std::mem::MaybeUninit;

use super::{MAX_HEAD_BYTES, Malformed, Reply, State};
use crate::http::chunks::Chunks;
use crate::http::number;

/// The most headers of a reply.
const MAX_HEADERS: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) reply: Reply,
    /// Its body; another head behind an interim reply.
    pub(super) next: State,
}

/// What the headers say.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    length: Option<u64>,
    coded: bool,
    chunked: bool,
    close: bool,
    keep: bool,
}

/// The head at the front of `bytes` and its length; `None` while its end is not there.
pub(super) fn parse(bytes: &[u8], bodiless: bool) -> Result<Option<(usize, Head)>, Malformed> {
    if bytes.first().is_some_and(|first| *first != b'H') {
        return Err(Malformed);
    }
    let mut headers = [MaybeUninit::<httparse::Header>::uninit(); MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let len = match parsed {
        Ok(httparse::Status::Complete(len)) if len <= MAX_HEAD_BYTES => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        _ => return Err(Malformed),
    };
    let status = response.code.unwrap_or(0);
    let mut said = Said::default();
    for header in response.headers.iter() {
        said.hear(header)?;
    }
    let close = said.close || (response.version == Some(0) && !said.keep);
    let next = match status {
        101 => return Err(Malformed),
        100..200 => State::Head,
        _ => said.body(bodiless || status == 204 || status == 304),
    };
    let close = close || next == State::UntilClose;
    Ok(Some((len, Head { reply: Reply { status, close }, next })))
}

impl Said {
    fn hear(&mut self, header: &httparse::Header) -> Result<(), Malformed> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            14 if is("content-length") => self.hear_length(header.value),
            17 if is("transfer-encoding") => {
                self.coded = true;
                // Only the last coding frames the body.
                self.chunked = words(header.value)
                    .next_back()
                    .is_some_and(|word| word.eq_ignore_ascii_case(b"chunked"));
                Ok(())
            }
            10 if is("connection") => {
                for word in words(header.value) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep |= word.eq_ignore_ascii_case(b"keep-alive");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A number; the same number several times counts once (RFC 9110, section 8.6).
    fn hear_length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        for word in value.split(|byte| *byte == b',') {
            let length = number(word).ok_or(Malformed)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Malformed);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn body(self, none: bool) -> State {
        match self.length {
            _ if none => State::Counted(0),
            _ if self.chunked => State::Chunked(Chunks::default()),
            _ if self.coded => State::UntilClose,
            Some(length) => State::Counted(length),
            None => State::UntilClose,
        }
    }
}

fn words(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// The end of the head, searched from `from` on: behind the first empty line.
pub(super) fn find_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(newline) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        at += newline + 1;
        match &bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}
