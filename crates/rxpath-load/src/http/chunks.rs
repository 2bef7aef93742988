//! The chunked coding of a body, in pieces of any size: read byte by byte where it matters, skipped where it is data.
//!
//! **Source** RFC 9112, section 7.1.

/// Most bytes of a line of a chunk's size, and of all trailer fields.
const MAX_LINE_BYTES: u32 = 8192;

/// Where in a chunked body we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    at: At,
    /// Of the size while it is read, of the data afterwards.
    left: u64,
    /// Bytes of this line, or of the trailer.
    line: u32,
    /// Data so far, the present chunk whole.
    total: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// The first digit of a size.
    #[default]
    First,
    Digits,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// The first byte of a trailer's line.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
}

/// Bytes that are no chunked body, or not one that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkError {
    /// They break the coding.
    Malformed,
    /// More data than allowed.
    TooLarge,
    /// A line, or the trailer, does not end.
    LineTooLong,
}

impl Chunks {
    /// Skips what `bytes` holds of the body, which may have `max` bytes of data. Returns how many bytes belong to the
    /// body, and whether it ends there.
    pub(crate) fn skip(&mut self, bytes: &[u8], max: u64) -> Result<(usize, bool), ChunkError> {
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
            let is_last = self.at == At::EndLf;
            self.at = self.framing(bytes[at], max)?;
            at += 1;
            if is_last {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// One byte outside of the data; what is expected next.
    fn framing(&mut self, byte: u8, max_body: u64) -> Result<At, ChunkError> {
        // Lines end with CR LF, and NUL is no text.
        let is_text = !matches!(byte, b'\n' | 0);
        Ok(match (self.at, byte) {
            (At::First | At::Digits, _) if byte.is_ascii_hexdigit() => self.digit(byte)?,
            (At::Digits | At::Extension, b'\r') => At::SizeLf,
            (At::Digits, b';' | b' ' | b'\t') => At::Extension,
            (At::SizeLf, b'\n') => self.begin_data(max_body)?,
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::First,
            (At::TrailerStart, b'\r') => At::EndLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerLf, b'\n') => At::TrailerStart,
            (At::EndLf, b'\n') => At::First,
            (At::Extension, _) if is_text => self.longer(At::Extension)?,
            (At::TrailerStart | At::Trailer, _) if is_text => self.longer(At::Trailer)?,
            _ => return Err(ChunkError::Malformed),
        })
    }

    fn digit(&mut self, byte: u8) -> Result<At, ChunkError> {
        if self.left >> 60 != 0 {
            return Err(ChunkError::TooLarge);
        }
        self.left = self.left << 4 | u64::from(char::from(byte).to_digit(16).unwrap_or(0));
        self.longer(At::Digits)
    }

    fn longer(&mut self, next: At) -> Result<At, ChunkError> {
        self.line += 1;
        if self.line > MAX_LINE_BYTES { Err(ChunkError::LineTooLong) } else { Ok(next) }
    }

    /// Behind a size's line.
    fn begin_data(&mut self, max_body: u64) -> Result<At, ChunkError> {
        self.line = 0;
        self.total = self.total.saturating_add(self.left);
        if self.total > max_body {
            return Err(ChunkError::TooLarge);
        }
        Ok(if self.left == 0 { At::TrailerStart } else { At::Data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &[u8] = b"5\r\nhello\r\nA;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /";

    fn skip(bytes: &[u8]) -> Result<(usize, bool), ChunkError> {
        Chunks::default().skip(bytes, 1_000)
    }

    #[test]
    fn a_body_ends_where_it_ends() {
        assert_eq!(skip(BODY), Ok((BODY.len() - 5, true)));
        assert_eq!(skip(b"0\r\n\r\n"), Ok((5, true)));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(cuts in proptest::collection::vec(1usize..8, 1..60)) {
            let mut chunks = Chunks::default();
            let (mut at, mut is_end) = (0, false);
            for cut in cuts.into_iter().cycle() {
                let piece = &BODY[at..(at + cut).min(BODY.len())];
                let (bytes, ends) = chunks.skip(piece, 1_000).unwrap();
                at += bytes;
                is_end = ends;
                if is_end { break; }
            }
            prop_assert!(is_end);
            prop_assert_eq!(at, BODY.len() - 5);
        }

        #[test]
        fn any_bytes_end_in_a_decision(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok((skipped, _)) = skip(&bytes) {
                prop_assert!(skipped <= bytes.len());
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for bad in ["\r\n", "x\r\n", "5\nhello", "5\r\nhelloX\r\n", "-1\r\n", "0\r\n\r\r", "1;a\nb"]
        {
            let skipped = skip(bad.as_bytes());
            assert!(skipped == Err(ChunkError::Malformed), "{bad:?}: {skipped:?}");
        }
    }

    #[test]
    fn too_much_is_refused_before_it_comes() {
        assert_eq!(skip(b"3e9\r\n"), Err(ChunkError::TooLarge));
        assert_eq!(skip(b"ffffffffffffffffff\r\n"), Err(ChunkError::TooLarge));
        let extension = format!("1;{}", "a".repeat(9_000));
        assert_eq!(skip(extension.as_bytes()), Err(ChunkError::LineTooLong));
    }
}
