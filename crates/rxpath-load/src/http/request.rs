//! The head of a request: is it whole, and what does it ask for?
//!
//! Reads heads only. Bodies are the matter of [`crate::http::serve`], which skips them.

use std::mem::MaybeUninit;

use crate::http::chunks::ChunkError;
use crate::http::number;
use crate::http::serve::reply::Kind;

/// Most header fields of a request; more are refused with 431.
pub const MAX_FIELDS: usize = 64;

/// A request's head, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the head, the empty line included.
    pub bytes: usize,
    /// The method is `HEAD`: a reply without its body.
    pub is_head: bool,
    /// Spoken in HTTP/1.0.
    pub is_old: bool,
    /// The connection stays open after the reply (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// What follows the head.
    pub body: BodyFraming,
    /// The client waits for `100 Continue` before it sends the body (RFC 9110 section 10.1.1).
    pub expects_continue: bool,
}

/// What follows a head (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// Nothing.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl From<ChunkError> for Kind {
    fn from(error: ChunkError) -> Self {
        match error {
            ChunkError::Malformed => Self::BadRequest,
            ChunkError::TooLarge => Self::ContentTooLarge,
            ChunkError::LineTooLong => Self::HeadTooLarge,
        }
    }
}

/// Reads a head; `Ok(None)` when it is not whole yet, `Err` with the reply that refuses it and ends the connection.
///
/// Empty lines before it are skipped (RFC 9112 section 2.2) and count as part of it.
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Kind> {
    let mut fields = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let len = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Kind::HeadTooLarge),
        Err(httparse::Error::Version) if names_a_version(bytes) => {
            return Err(Kind::VersionNotSupported);
        }
        Err(_) => return Err(Kind::BadRequest),
    };
    let is_old = request.version == Some(0);
    let mut asked = Asked::default();
    for field in request.headers.iter() {
        asked.take(field)?;
    }
    // RFC 9112 section 3.2: exactly one Host in HTTP/1.1, at most one before.
    if asked.hosts > 1 || (asked.hosts == 0 && !is_old) {
        return Err(Kind::BadRequest);
    }
    let is_head = is_head(request.method.unwrap_or_default())?;
    // RFC 9112 section 9.3: `close` wins.
    let keep_alive = !asked.close && (asked.keep || !is_old);
    let body = asked.body(is_old)?;
    let expects_continue = asked.expects_continue && !is_old;
    Ok(Some(Head { bytes: len, is_head, is_old, keep_alive, body, expects_continue }))
}

/// Of a method that is answered, whether it is `HEAD`.
fn is_head(method: &str) -> Result<bool, Kind> {
    match method {
        "HEAD" => Ok(true),
        "GET" | "POST" => Ok(false),
        "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH" => Err(Kind::MethodNotAllowed),
        _ => Err(Kind::NotImplemented),
    }
}

/// Whether the request line goes on with `HTTP/` and a digit: the byte that was refused is there or behind it.
fn names_a_version(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(0);
    let word = bytes[start..].split(|b| *b == b' ').nth(2).unwrap_or_default();
    word.strip_prefix(b"HTTP/").and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
}

/// What the header fields ask for.
#[derive(Debug, Default)]
struct Asked {
    hosts: u32,
    close: bool,
    keep: bool,
    length: Option<u64>,
    is_chunked: bool,
    expects_continue: bool,
}

impl Asked {
    fn take(&mut self, field: &httparse::Header<'_>) -> Result<(), Kind> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => self.hosts += 1,
            6 if is("expect") => {
                if !field.value.trim_ascii().eq_ignore_ascii_case(b"100-continue") {
                    return Err(Kind::ExpectationFailed);
                }
                self.expects_continue = true;
            }
            10 if is("connection") => {
                for option in field.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is("content-length") => {
                // RFC 9112 section 6.3: a second, differing length is an attack or an error.
                let length = number(field.value).ok_or(Kind::BadRequest)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(Kind::BadRequest);
                }
                self.length = Some(length);
            }
            17 if is("transfer-encoding") => {
                if self.is_chunked {
                    return Err(Kind::BadRequest);
                }
                if !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Kind::NotImplemented);
                }
                self.is_chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn body(&self, is_old: bool) -> Result<BodyFraming, Kind> {
        match (self.is_chunked, self.length) {
            // Both, or chunks in a version without them: two readers could see two requests
            // (RFC 9112 section 6.1).
            (true, Some(_)) => Err(Kind::BadRequest),
            (true, None) if is_old => Err(Kind::BadRequest),
            (true, None) => Ok(BodyFraming::Chunked),
            (false, None | Some(0)) => Ok(BodyFraming::None),
            (false, Some(length)) => Ok(BodyFraming::Length(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: 192.168.111.222:80\r\n\r\n";

    fn head(text: &str) -> Head {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    fn refused(text: &str) -> Kind {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_plain_request() {
        let head = parse(PLAIN).unwrap().unwrap();
        assert_eq!(
            head,
            Head {
                bytes: PLAIN.len(),
                is_head: false,
                is_old: false,
                keep_alive: true,
                body: BodyFraming::None,
                expects_continue: false,
            }
        );
    }

    #[test]
    fn keep_alive_follows_version_and_connection() {
        assert!(!head("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
        for close in ["upgrade, CLOSE", "close, keep-alive", "close\r\nConnection: keep-alive"] {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {close}\r\n\r\n");
            assert!(!head(&text).keep_alive, "{close}");
        }
    }

    #[test]
    fn bodies_are_framed_by_their_fields() {
        let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        assert_eq!(head(&post("content-LENGTH: 12")).body, BodyFraming::Length(12));
        assert_eq!(head(&post("Content-Length: 0")).body, BodyFraming::None);
        assert_eq!(
            head(&post("Content-Length: 5\r\nContent-Length: 5")).body,
            BodyFraming::Length(5)
        );
        assert_eq!(head(&post("Transfer-Encoding: Chunked")).body, BodyFraming::Chunked);
        assert!(head(&post("Content-Length: 1\r\nExpect: 100-continue")).expects_continue);
        for bad in [
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: 5, 5",
            "Content-Length: +5",
            "Content-Length: -1",
            "Content-Length: ",
            "Content-Length: 99999999999999999999",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        ] {
            assert_eq!(refused(&post(bad)), Kind::BadRequest, "{bad}");
        }
        assert_eq!(refused(&post("Transfer-Encoding: gzip, chunked")), Kind::NotImplemented);
        assert_eq!(refused(&post("Expect: the-unexpected")), Kind::ExpectationFailed);
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(refused(old), Kind::BadRequest);
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        assert_eq!(refused("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"), Kind::MethodNotAllowed);
        assert_eq!(refused("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), Kind::NotImplemented);
        assert_eq!(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Kind::VersionNotSupported);
        assert_eq!(refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Kind::VersionNotSupported);
        assert_eq!(refused("GET / HTTP/9\r\n\r\n"), Kind::VersionNotSupported);
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET /\r\n\r\n",
            "\x16\x03\x01\x02\x00\x01\x00",
            "GET / HTTP/1.1\r\nHo st: a\r\n\r\n",
            "GET / HTTQ/1.1\r\n\r\n",
        ] {
            assert_eq!(refused(bad), Kind::BadRequest, "{bad:?}");
        }
        let many = "a: b\r\n".repeat(MAX_FIELDS + 1);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Kind::HeadTooLarge);
    }

    #[test]
    fn empty_lines_before_a_request_are_skipped() {
        let text = "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(head(text).bytes, text.len());
        assert_eq!(parse(b"\r\n").unwrap(), None);
    }

    #[test]
    fn no_prefix_is_whole() {
        for end in 0..PLAIN.len() {
            assert_eq!(parse(&PLAIN[..end]).unwrap(), None, "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_decision(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(head)) = parse(&bytes) {
                prop_assert!(head.bytes <= bytes.len());
            }
        }
    }
}
