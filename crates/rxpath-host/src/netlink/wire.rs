//! Netlink framing: messages in a datagram, attributes in a message, requests to send.
//!
//! Framing comes from `netlink-packet-core`; which attribute means what stands in the modules next to
//! this one. Attribute tables are our own so that one attribute that a newer kernel made longer or
//! shorter costs that attribute and never the whole message.

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NlasIterator,
};

use crate::HostError;

/// The longest device name (`IFNAMSIZ` less the NUL).
pub(crate) const NAME_MAX: usize = 15;

const NLMSG_HEADER: usize = 16;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// One message of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetlinkMessage<'a> {
    /// Message type.
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The request that it answers.
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// What a `NLMSG_ERROR` or `NLMSG_DONE` message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Positive error number; 0 is success.
    pub errno: i32,
    /// The kernel's own words.
    pub extack: Option<String>,
}

impl Verdict {
    /// The kernel's refusal of `op`, where it is no success.
    pub fn refusal(self, op: &str) -> HostError {
        HostError::Kernel { op: op.into(), errno: self.errno, extack: self.extack }
    }
}

fn malformed(why: String) -> HostError {
    HostError::malformed("netlink", 0, why)
}

/// Splits one datagram into its messages.
///
/// **Errors** `Malformed` when a length field points outside the datagram.
pub fn frames(datagram: &[u8]) -> Result<Vec<NetlinkMessage<'_>>, HostError> {
    let mut found = Vec::new();
    let mut rest = datagram;
    while rest.len() >= NLMSG_HEADER {
        let buffer = NetlinkBuffer::new_checked(rest).map_err(|e| malformed(e.to_string()))?;
        let length = buffer.length() as usize;
        found.push(NetlinkMessage {
            kind: buffer.message_type(),
            flags: buffer.flags(),
            sequence: buffer.sequence_number(),
            payload: &rest[NLMSG_HEADER..length],
        });
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    if rest.is_empty() {
        Ok(found)
    } else {
        Err(malformed(format!("{} bytes after the last message", rest.len())))
    }
}

/// Reads the verdict out of an error or done message.
///
/// **Source** `net/netlink/af_netlink.c` `netlink_ack`, `netlink_dump_done`.
pub fn verdict(frame: &NetlinkMessage<'_>) -> Result<Verdict, HostError> {
    let Some(code) = frame.payload.first_chunk::<4>() else {
        // A done message without a code is how old kernels end a dump well.
        return if frame.kind == NLMSG_DONE {
            Ok(Verdict { errno: 0, extack: None })
        } else {
            Err(malformed("an error message without an error number".into()))
        };
    };
    let errno = i32::from_ne_bytes(*code).saturating_neg().max(0);
    let mut at = 4;
    if frame.kind == NLMSG_ERROR {
        let request = frame.payload.get(4..).unwrap_or_default();
        let length = request.first_chunk::<4>().map_or(0, |b| u32::from_ne_bytes(*b) as usize);
        at += if frame.flags & NLM_F_CAPPED != 0 { NLMSG_HEADER } else { length };
        at = at.next_multiple_of(4);
    }
    let extack = (frame.flags & NLM_F_ACK_TLVS != 0)
        .then(|| frame.payload.get(at..))
        .flatten()
        .and_then(|bytes| Attrs::parse(bytes).ok())
        .and_then(|attrs| attrs.text(NLMSGERR_ATTR_MSG));
    Ok(Verdict { errno, extack })
}

/// The attributes of one message or nest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attrs<'a>(Vec<(u16, &'a [u8])>);

impl<'a> Attrs<'a> {
    /// Splits bytes into attributes.
    ///
    /// **Errors** `Malformed` when an attribute's length points outside.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HostError> {
        let mut attrs = Vec::new();
        for attr in NlasIterator::new(bytes) {
            let attr = attr.map_err(|e| malformed(format!("attribute: {e}")))?;
            let (kind, length) = (attr.kind(), attr.length() as usize);
            attrs.push((kind, &attr.into_inner()[4..length]));
        }
        Ok(Self(attrs))
    }

    /// Splits the bytes behind a fixed header of `header` bytes.
    pub fn after(payload: &'a [u8], header: usize) -> Result<Self, HostError> {
        match payload.get(header..) {
            Some(bytes) => Self::parse(bytes),
            None => Err(malformed(format!("{} bytes, {header} expected", payload.len()))),
        }
    }

    /// All attributes in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + '_ {
        self.0.iter().copied()
    }

    /// The first attribute of this kind.
    pub fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.0.iter().find(|(k, _)| *k == kind).map(|(_, value)| *value)
    }

    /// The nest of this kind; an empty set when it is not there.
    pub fn nest(&self, kind: u16) -> Result<Attrs<'a>, HostError> {
        self.get(kind).map_or(Ok(Attrs::default()), Attrs::parse)
    }

    /// A number of one byte.
    pub fn u8(&self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    /// A number of two bytes.
    pub fn u16(&self, kind: u16) -> Option<u16> {
        self.get(kind)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
    }

    /// A number of four bytes.
    pub fn u32(&self, kind: u16) -> Option<u32> {
        self.get(kind)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// A number of eight bytes.
    pub fn u64(&self, kind: u16) -> Option<u64> {
        self.get(kind)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    /// A number of four bytes in network order, as netfilter writes them.
    pub(crate) fn be32(&self, kind: u16) -> Option<u32> {
        self.get(kind)?.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    /// A number of one, two, four or eight bytes: what the kernel's specifications call `uint` is as long as it needs.
    pub(crate) fn uint(&self, kind: u16) -> Option<u64> {
        let bytes = self.get(kind)?;
        match bytes.len() {
            1 => self.u8(kind).map(u64::from),
            2 => self.u16(kind).map(u64::from),
            4 => self.u32(kind).map(u64::from),
            8 => self.u64(kind),
            _ => None,
        }
    }

    /// A text, without its closing NUL; bytes that are not UTF-8 are replaced.
    pub fn text(&self, kind: u16) -> Option<String> {
        self.get(kind).map(text)
    }
}

/// A NUL-terminated text of the kernel.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The `n`th 32-bit number of a plain C structure.
pub(crate) fn word32(bytes: &[u8], n: usize) -> Option<u32> {
    bytes.get(n * 4..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

/// The `n`th 64-bit number of a plain C structure.
pub(crate) fn word64(bytes: &[u8], n: usize) -> Option<u64> {
    bytes.get(n * 8..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// A request in the making: its fixed header, then attributes.
#[derive(Clone, Debug, Default)]
pub struct Body(Vec<u8>);

impl Body {
    /// A body that begins with a fixed header.
    pub fn new(header: &[u8]) -> Self {
        Self(header.to_vec())
    }

    /// Adds an attribute with these bytes.
    #[must_use]
    pub fn raw(mut self, kind: u16, value: &[u8]) -> Self {
        let attr = DefaultNla::new(kind, value.to_vec());
        let start = self.0.len();
        self.0.resize(start + attr.buffer_len(), 0);
        attr.emit(&mut self.0[start..]);
        self
    }

    /// Adds a number of one byte.
    #[must_use]
    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.raw(kind, &[value])
    }

    /// Adds a number of four bytes.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.raw(kind, &value.to_ne_bytes())
    }

    /// Adds a text and its closing NUL.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Self {
        self.raw(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds a nest.
    #[must_use]
    pub fn nest(self, kind: u16, inner: &Body) -> Self {
        self.raw(kind | NLA_F_NESTED, &inner.0)
    }

    /// Adds what `add` adds of a value, where there is one.
    #[must_use]
    pub fn with<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => self,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A whole message: header and body.
pub(crate) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; NLMSG_HEADER];
    bytes.extend_from_slice(body);
    let length = bytes.len() as u32;
    let mut header = NetlinkBuffer::new(&mut bytes);
    header.set_length(length);
    header.set_message_type(kind);
    header.set_flags(flags);
    header.set_sequence_number(sequence);
    header.set_port_number(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_built_is_read_back() {
        let inner = Body::default().u8(1, 7).text(2, "veth");
        let body = Body::new(&[9; 16]).u32(3, 4).nest(18, &inner);
        let attrs = Attrs::after(body.bytes(), 16).unwrap();
        assert_eq!(attrs.u32(3), Some(4));
        let nest = attrs.nest(18).unwrap();
        assert_eq!((nest.u8(1), nest.text(2).as_deref()), (Some(7), Some("veth")));
        assert_eq!(nest.u32(1), None, "one byte is not four");
        assert_eq!(attrs.nest(99).unwrap(), Attrs::default());
    }

    #[test]
    fn a_refusal_carries_the_kernels_words() {
        let request = message(16, 5, 77, &[]);
        let mut payload = (-17i32).to_ne_bytes().to_vec();
        payload.extend_from_slice(&request);
        payload.extend_from_slice(Body::default().text(1, "name taken").bytes());
        let datagram = message(NLMSG_ERROR, NLM_F_ACK_TLVS | NLM_F_CAPPED, 77, &payload);
        let frames = frames(&datagram).unwrap();
        assert_eq!(frames[0].sequence, 77);
        let verdict = verdict(&frames[0]).unwrap();
        assert_eq!(verdict, Verdict { errno: 17, extack: Some("name taken".into()) });
    }

    #[test]
    fn several_messages_in_one_datagram() {
        let mut both = message(16, 2, 1, &[1, 2, 3, 4]);
        both.extend(message(16, 2, 1, &[5]));
        // The last message needs no padding.
        let found = frames(&both).unwrap();
        assert_eq!(found.iter().map(|f| f.payload).collect::<Vec<_>>(), [&[1, 2, 3, 4][..], &[5]]);
    }

    #[test]
    fn a_cut_message_is_malformed() {
        let whole = message(16, 2, 1, &[1, 2, 3, 4]);
        for end in 1..whole.len() {
            assert!(frames(&whole[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(found) = frames(&bytes) {
                for frame in &found {
                    let _ = verdict(frame);
                    let _ = Attrs::parse(frame.payload);
                }
            }
            let _ = Attrs::parse(&bytes);
            let _ = text(&bytes);
            let _ = word64(&bytes, 3);
        }

        #[test]
        fn cut_attributes_never_panic(cut in 0usize..64, bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let body = Body::default().raw(5, &bytes).u32(6, 1);
            let cut = cut.min(body.bytes().len());
            let _ = Attrs::parse(&body.bytes()[..cut]);
        }
    }
}
