//! Values of BPF maps as numbers and text: every field is read by its place, no memory is reinterpreted.

use std::net::{IpAddr, Ipv6Addr};

/// Reads the fields of one map value in order. Past the end every number is 0 and every text empty: the sizes of
/// values are fixed when the programs are compiled, and a test of each reader holds them.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a value.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (now, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        now
    }

    /// A 64-bit number in the machine's byte order.
    pub fn u64(&mut self) -> u64 {
        self.take(8).try_into().map_or(0, u64::from_ne_bytes)
    }

    /// A 32-bit number in the machine's byte order.
    pub fn u32(&mut self) -> u32 {
        self.take(4).try_into().map_or(0, u32::from_ne_bytes)
    }

    /// A 16-bit number in the machine's byte order.
    pub fn u16(&mut self) -> u16 {
        self.take(2).try_into().map_or(0, u16::from_ne_bytes)
    }

    /// `N` 64-bit numbers.
    pub fn array<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.u64())
    }

    /// Text in a field of `count` bytes, up to its first zero byte; bytes that are not UTF-8 are replaced.
    pub fn text(&mut self, count: usize) -> String {
        let bytes = self.take(count);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// An address of 16 bytes, IPv4 in the form `::ffff:a.b.c.d`; none where all are 0.
    pub fn address(&mut self) -> Option<IpAddr> {
        let bytes: [u8; 16] = self.take(16).try_into().unwrap_or_default();
        (bytes != [0; 16]).then(|| Ipv6Addr::from(bytes).to_canonical())
    }

    /// Leaves out `count` bytes of padding.
    pub fn skip(&mut self, count: usize) {
        self.take(count);
    }

    /// Bytes that were not read.
    pub fn left(&self) -> usize {
        self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_in_order() {
        let mut bytes = 7u64.to_ne_bytes().to_vec();
        bytes.extend(9u32.to_ne_bytes());
        bytes.extend(b"eth0\0zzz");
        let mut fields = Fields::of(&bytes);
        assert_eq!((fields.u64(), fields.u32()), (7, 9));
        assert_eq!(fields.text(8), "eth0");
        assert_eq!((fields.left(), fields.u64()), (0, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), at in 0usize..80) {
            let mut fields = Fields::of(&bytes);
            fields.skip(at);
            let _ = (fields.u64(), fields.text(16), fields.array::<3>(), fields.u16());
        }
    }
}
