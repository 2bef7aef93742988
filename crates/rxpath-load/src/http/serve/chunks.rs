//! Skipping a chunked body, in pieces of any size (RFC 9112 section 7.1).

use crate::http::request::Reject;

/// Most bytes of a chunk's extensions, and of all trailer fields.
const MAX_LINE_BYTES: u32 = 8192;
/// Hexadecimal digits of a size that fit 64 bits.
const MAX_DIGITS: u32 = 15;

/// Where in a chunked body we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    /// Of the size while it is read, of the data afterwards.
    left: u64,
    /// Digits of the size, bytes of the extension or of the trailer.
    seen: u32,
    /// Data so far, the present chunk whole.
    total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { at: At::Size, left: 0, seen: 0, total: 0 }
    }
}

/// What a piece held of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Bytes that belong to the body.
    pub bytes: usize,
    /// The body ends there.
    pub is_end: bool,
}

impl Chunks {
    /// Skips what `bytes` holds of the body, which may have `max_body` bytes of data.
    pub fn skip(&mut self, bytes: &[u8], max_body: u64) -> Result<Skipped, Reject> {
        let mut at = 0;
        while at < bytes.len() {
            if self.at == At::Data {
                let here = self.left.min((bytes.len() - at) as u64);
                self.left -= here;
                at += here as usize;
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.framing(byte, max_body)? {
                return Ok(Skipped { bytes: at, is_end: true });
            }
        }
        Ok(Skipped { bytes: at, is_end: false })
    }

    /// One byte outside of the data; true at the end of the body.
    fn framing(&mut self, byte: u8, max_body: u64) -> Result<bool, Reject> {
        match (self.at, byte) {
            (At::Size, _) => return self.size(byte).map(|()| false),
            (At::Extension, b'\r') => self.at = At::SizeLf,
            (At::Extension, _) => self.count(byte)?,
            (At::SizeLf, b'\n') => self.begin_data(max_body)?,
            (At::DataCr, b'\r') => self.at = At::DataLf,
            (At::DataLf, b'\n') => (self.at, self.left, self.seen) = (At::Size, 0, 0),
            (At::TrailerStart, b'\r') => self.at = At::EndLf,
            (At::TrailerStart, _) => {
                self.at = At::Trailer;
                self.count(byte)?;
            }
            (At::Trailer, b'\r') => self.at = At::TrailerLf,
            (At::Trailer, _) => self.count(byte)?,
            (At::TrailerLf, b'\n') => self.at = At::TrailerStart,
            (At::EndLf, b'\n') => return Ok(true),
            _ => return Err(Reject::BadRequest),
        }
        Ok(false)
    }

    fn size(&mut self, byte: u8) -> Result<(), Reject> {
        match byte {
            b'\r' if self.seen > 0 => self.at = At::SizeLf,
            b';' | b' ' | b'\t' if self.seen > 0 => (self.at, self.seen) = (At::Extension, 0),
            _ => {
                let digit = char::from(byte).to_digit(16).ok_or(Reject::BadRequest)?;
                if self.seen == MAX_DIGITS {
                    return Err(Reject::ContentTooLarge);
                }
                self.left = self.left * 16 + u64::from(digit);
                self.seen += 1;
            }
        }
        Ok(())
    }

    /// A byte of an extension or a trailer: no bare line feed, no end of them.
    fn count(&mut self, byte: u8) -> Result<(), Reject> {
        self.seen += 1;
        if byte == b'\n' || byte == 0 {
            return Err(Reject::BadRequest);
        }
        if self.seen > MAX_LINE_BYTES {
            return Err(Reject::HeadTooLarge);
        }
        Ok(())
    }

    fn begin_data(&mut self, max_body: u64) -> Result<(), Reject> {
        self.seen = 0;
        if self.left == 0 {
            self.at = At::TrailerStart;
            return Ok(());
        }
        self.total = self.total.saturating_add(self.left);
        if self.total > max_body {
            return Err(Reject::ContentTooLarge);
        }
        self.at = At::Data;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &[u8] = b"5\r\nhello\r\nA;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /";

    fn skip(bytes: &[u8]) -> Result<Skipped, Reject> {
        Chunks::default().skip(bytes, 1_000)
    }

    #[test]
    fn a_body_ends_where_it_ends() {
        let whole = Skipped { bytes: BODY.len() - 5, is_end: true };
        assert_eq!(skip(BODY), Ok(whole));
        assert_eq!(skip(b"0\r\n\r\n"), Ok(Skipped { bytes: 5, is_end: true }));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(cuts in proptest::collection::vec(1usize..8, 1..60)) {
            let mut chunks = Chunks::default();
            let (mut at, mut is_end) = (0, false);
            for cut in cuts.into_iter().cycle() {
                let piece = &BODY[at..(at + cut).min(BODY.len())];
                let skipped = chunks.skip(piece, 1_000).unwrap();
                at += skipped.bytes;
                is_end = skipped.is_end;
                if is_end { break; }
            }
            prop_assert!(is_end);
            prop_assert_eq!(at, BODY.len() - 5);
        }

        #[test]
        fn any_bytes_end_in_a_decision(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(skipped) = skip(&bytes) {
                prop_assert!(skipped.bytes <= bytes.len());
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for bad in ["\r\n", "x\r\n", "5\nhello", "5\r\nhelloX\r\n", "-1\r\n", "0\r\n\r\r", "1;a\nb"]
        {
            assert_eq!(skip(bad.as_bytes()), Err(Reject::BadRequest), "{bad:?}");
        }
    }

    #[test]
    fn too_much_is_refused_before_it_comes() {
        assert_eq!(skip(b"3e9\r\n"), Err(Reject::ContentTooLarge));
        assert_eq!(skip(b"ffffffffffffffffff\r\n"), Err(Reject::ContentTooLarge));
        let extension = format!("1;{}", "a".repeat(9_000));
        assert_eq!(skip(extension.as_bytes()), Err(Reject::HeadTooLarge));
    }
}
