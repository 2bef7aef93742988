//! Arrivals from a file: lines of `ns,bytes,flow`, or a capture in the classic pcap format.
//!
//! A file is read during the simulation, so its length costs no memory. Errors are reported with their position: time
//! that goes backwards, a packet of 0 bytes, a truncated record.
//!
//! **Source** the pcap format: draft-ietf-opsawg-pcap. **Caveat** pcapng is another format and is refused by name.

use std::io::{self, BufRead, Read};

use thiserror::Error;

/// The longest line that is read.
const LONGEST_LINE: u64 = 256;
/// The longest packet of a capture that is believed.
const LONGEST_PACKET: u32 = 1 << 20;
/// The largest payload of a datagram.
const LARGEST: u64 = 65_507;
/// Bytes in front of all packets of a capture, and in front of each.
const FILE_HEAD_BYTES: usize = 24;
const HEAD_BYTES: usize = 16;

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in ns since the start.
    pub at: u64,
    /// Payload.
    pub bytes: u32,
    /// Flow.
    pub flow: u32,
}

/// A trace that cannot be followed.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// A place in it is wrong.
    #[error("{place}: {why}")]
    Malformed {
        /// `line 3`, `packet 17`, `file header`.
        place: String,
        /// What is wrong and what would be right.
        why: String,
    },
}

impl TraceError {
    fn at(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Malformed { place: place.into(), why: why.into() }
    }
}

/// How a capture is written.
#[derive(Clone, Copy, Debug)]
struct Pcap {
    big_endian: bool,
    nanoseconds: bool,
    link: u32,
}

/// A trace being read; its times begin at 0.
pub struct TraceReader<R> {
    from: R,
    /// None for lines.
    pcap: Option<Pcap>,
    /// Lines or packets so far.
    count: u64,
    first: Option<u64>,
    last: u64,
    ended: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Looks at the beginning to tell the format.
    pub fn new(mut from: R) -> Result<Self, TraceError> {
        let head = from.fill_buf()?;
        let magic: [u8; 4] =
            head.get(..4).and_then(|head| head.try_into().ok()).unwrap_or_default();
        let pcap = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                return Err(TraceError::at(
                    "file header",
                    "this is pcapng; convert it: editcap -F pcap IN OUT",
                ));
            }
            [0xd4, 0xc3, 0xb2, 0xa1] => Some(header(&mut from, false, false)?),
            [0xa1, 0xb2, 0xc3, 0xd4] => Some(header(&mut from, true, false)?),
            [0x4d, 0x3c, 0xb2, 0xa1] => Some(header(&mut from, false, true)?),
            [0xa1, 0xb2, 0x3c, 0x4d] => Some(header(&mut from, true, true)?),
            _ => None,
        };
        Ok(Self { from, pcap, count: 0, first: None, last: 0, ended: false })
    }

    fn read(&mut self) -> Result<Option<Arrival>, TraceError> {
        let (place, got) = match self.pcap {
            None => ("line", self.line()?),
            Some(pcap) => ("packet", self.packet(pcap)?),
        };
        let Some((at, bytes, flow)) = got else { return Ok(None) };
        let here = || format!("{place} {}", self.count);
        let first = *self.first.get_or_insert(at);
        if at < self.last {
            let why = format!("time goes backwards by {} ns; sort the trace", self.last - at);
            return Err(TraceError::at(here(), why));
        }
        self.last = at;
        Ok(Some(Arrival { at: at - first, bytes, flow }))
    }

    /// The next line that is neither empty nor a comment.
    fn line(&mut self) -> Result<Option<(u64, u32, u32)>, TraceError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            self.count += 1;
            let got = self.from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text)?;
            if got == 0 {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&text);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = || format!("line {}", self.count);
            let cut = got as u64 == LONGEST_LINE && text.last() != Some(&b'\n');
            return match fields(line).filter(|_| !cut) {
                Some((_, 0, _)) => Err(TraceError::at(place(), "a packet of 0 bytes; remove it")),
                // What is left of a number reads as a smaller one.
                Some(_) if text.last() != Some(&b'\n') => Err(TraceError::at(
                    place(),
                    "the file ends inside this line; a complete file ends with a line end",
                )),
                Some(fields) => Ok(Some(fields)),
                None => {
                    let shown: String = line.escape_debug().take(40).collect();
                    let why = format!(
                        "`{shown}` is not `ns,bytes,flow` with at most {LARGEST} bytes, for example 1500,1472,3"
                    );
                    Err(TraceError::at(place(), why))
                }
            };
        }
    }

    fn packet(&mut self, pcap: Pcap) -> Result<Option<(u64, u32, u32)>, TraceError> {
        self.count += 1;
        let head = up_to(&mut self.from, HEAD_BYTES)?;
        if head.is_empty() {
            return Ok(None);
        }
        let place = || format!("packet {}", self.count);
        let cut = || TraceError::at(place(), "the file ends inside it: it was truncated");
        if head.len() < HEAD_BYTES {
            return Err(cut());
        }
        let [seconds, fraction, kept, whole] = [0, 4, 8, 12].map(|at| pcap.number(&head[at..]));
        let parts = if pcap.nanoseconds { 1_000_000_000 } else { 1_000_000 };
        if fraction >= parts || kept > LONGEST_PACKET || whole < kept {
            return Err(TraceError::at(place(), "its header is invalid; the file is damaged"));
        }
        if whole == 0 {
            return Err(TraceError::at(place(), "a packet of 0 bytes"));
        }
        let data = up_to(&mut self.from, kept as usize)?;
        if data.len() < kept as usize {
            return Err(cut());
        }
        let at = u64::from(seconds) * 1_000_000_000
            + u64::from(fraction) * if pcap.nanoseconds { 1 } else { 1000 };
        let (bytes, flow) = inside(pcap.link, &data, whole);
        Ok(Some((at, bytes, flow)))
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<Arrival, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn fields(line: &str) -> Option<(u64, u32, u32)> {
    let mut parts = line.split(',').map(str::trim);
    let at = parts.next()?.parse().ok()?;
    let bytes: u64 = parts.next()?.parse().ok()?;
    let flow = match parts.next() {
        Some(flow) => flow.parse().ok()?,
        None => 0,
    };
    (parts.next().is_none() && bytes <= LARGEST).then_some((at, bytes as u32, flow))
}

/// The next bytes; fewer where the file ends.
fn up_to(from: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut got = Vec::with_capacity(bytes);
    from.by_ref().take(bytes as u64).read_to_end(&mut got)?;
    Ok(got)
}

fn header(from: &mut impl Read, big_endian: bool, nanoseconds: bool) -> Result<Pcap, TraceError> {
    let head = up_to(from, FILE_HEAD_BYTES)?;
    if head.len() < FILE_HEAD_BYTES {
        return Err(TraceError::at("file header", "the file ends inside it"));
    }
    let mut pcap = Pcap { big_endian, nanoseconds, link: 0 };
    // The upper bits of the field say whether a frame check sequence is kept.
    pcap.link = pcap.number(&head[20..]) & 0x0fff_ffff;
    Ok(pcap)
}

impl Pcap {
    fn number(self, bytes: &[u8]) -> u32 {
        let four = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }
}

/// Payload and flow of a captured packet; what is not UDP over IP counts whole, its flow from its first bytes.
fn inside(link: u32, data: &[u8], whole: u32) -> (u32, u32) {
    let network = match link {
        1 => ethernet(data),
        101 | 12 | 228 | 229 => Some(data),
        113 => data.get(16..),
        276 => data.get(20..),
        _ => None,
    };
    let told = network.and_then(datagram);
    let (bytes, flow) =
        told.unwrap_or_else(|| (whole, mix(data.get(..14.min(data.len())).unwrap_or(data))));
    (bytes.min(LARGEST as u32), flow)
}

fn ethernet(data: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    // VLAN tags.
    while matches!(data.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    data.get(at + 2..)
}

/// UDP's payload and the flow's hash over addresses and ports.
fn datagram(packet: &[u8]) -> Option<(u32, u32)> {
    let (header, protocol, addresses) = match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 15) * 4, *packet.get(9)?, packet.get(12..20)?),
        6 => (40, *packet.get(6)?, packet.get(8..40)?),
        _ => return None,
    };
    let flow = mix(&[addresses, packet.get(header..header + 4)?].concat());
    if protocol != 17 {
        return None;
    }
    let length = packet.get(header + 4..header + 6)?;
    let length = u32::from(u16::from_be_bytes([length[0], length[1]]));
    Some((length.saturating_sub(8), flow))
}

/// FNV-1a, folded: spreads flows over the table.
fn mix(bytes: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in bytes {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests;
