//! `TCP_INFO`: what the kernel knows about one connection.
//!
//! Newer kernels have a larger structure; a field that the kernel did not write is `None`.
//! **Source** `tcp_get_info`, net/ipv4/tcp.c; `struct tcp_info`, include/uapi/linux/tcp.h.

use std::io;
use std::os::fd::RawFd;

use crate::engine::socket::read_option;

/// Room for the structure of kernels to come, in words of 8 bytes.
const WORDS: usize = 48;

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    words: [u64; WORDS],
    /// Bytes that the kernel wrote.
    len: usize,
}

/// Offsets of its fields in bytes; behind the newer ones the kernel that brought them.
pub(crate) mod at {
    pub(crate) const SND_MSS: usize = 16;
    pub(crate) const RTT: usize = 68;
    pub(crate) const RTTVAR: usize = 72;
    pub(crate) const SND_CWND: usize = 80;
    pub(crate) const REORDERING: usize = 88;
    pub(crate) const TOTAL_RETRANS: usize = 100;
    pub(crate) const BYTES_ACKED: usize = 120;
    pub(crate) const BYTES_RECEIVED: usize = 128;
    pub(crate) const SEGS_OUT: usize = 136;
    pub(crate) const SEGS_IN: usize = 140;
    pub(crate) const MIN_RTT: usize = 148;
    pub(crate) const DELIVERY_RATE: usize = 160;
    pub(crate) const BUSY_TIME: usize = 168;
    pub(crate) const RWND_LIMITED: usize = 176;
    pub(crate) const SNDBUF_LIMITED: usize = 184;
    pub(crate) const REORD_SEEN: usize = 220; // 5.0
    pub(crate) const RCV_OOOPACK: usize = 224; // 5.4
    pub(crate) const SND_WND: usize = 228; // 5.4
    pub(crate) const RCV_WND: usize = 232; // 6.2
}

impl TcpInfo {
    /// Reads it by the number of a descriptor that the caller keeps open. **Cost** one system call that takes the socket's lock.
    pub fn read(fd: RawFd) -> io::Result<Self> {
        let mut info = Self { words: [0; WORDS], len: 0 };
        let option = (libc::IPPROTO_TCP, libc::TCP_INFO);
        // SAFETY: integers take any bytes.
        info.len = unsafe { read_option(fd, option, &mut info.words) }?;
        Ok(info)
    }

    /// A field of 8 bytes.
    pub(crate) fn wide(&self, at: usize) -> Option<u64> {
        (at + 8 <= self.len).then(|| self.words[at / 8])
    }

    /// A field of 4 bytes.
    pub(crate) fn u32(&self, at: usize) -> Option<u32> {
        if at + 4 > self.len {
            return None;
        }
        let bytes = self.words[at / 8].to_ne_bytes();
        bytes[at % 8..].first_chunk().map(|four| u32::from_ne_bytes(*four))
    }

    /// A field of 4 bytes that counts.
    pub(crate) fn count(&self, at: usize) -> Option<u64> {
        self.u32(at).map(u64::from)
    }

    /// A field of 4 bytes of which means are made.
    pub(crate) fn amount(&self, at: usize) -> Option<f64> {
        self.u32(at).map(f64::from)
    }

    /// The same; `None` also before the first measurement.
    pub(crate) fn measured(&self, at: usize) -> Option<f64> {
        self.u32(at).filter(|us| *us != u32::MAX).map(f64::from)
    }

    /// Bytes per second, the most recent sample. **Unit** bits per second.
    pub(crate) fn bits(&self, at: usize) -> Option<f64> {
        self.wide(at).map(|bytes| bytes.saturating_mul(8) as f64)
    }

    /// A time of 8 bytes. **Unit** s.
    pub(crate) fn seconds(&self, at: usize) -> Option<f64> {
        self.wide(at).map(|us| us as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tcp::tests::pair;

    #[test]
    fn offsets_are_those_of_the_c_structure() {
        use std::mem::offset_of;
        type C = libc::tcp_info;
        assert_eq!(at::SND_MSS, offset_of!(C, tcpi_snd_mss));
        assert_eq!(at::RTT, offset_of!(C, tcpi_rtt));
        assert_eq!(at::RTTVAR, offset_of!(C, tcpi_rttvar));
        assert_eq!(at::SND_CWND, offset_of!(C, tcpi_snd_cwnd));
        assert_eq!(at::REORDERING, offset_of!(C, tcpi_reordering));
        assert_eq!(at::TOTAL_RETRANS, offset_of!(C, tcpi_total_retrans));
        assert_eq!(at::BYTES_ACKED, offset_of!(C, tcpi_bytes_acked));
        assert_eq!(at::BYTES_RECEIVED, offset_of!(C, tcpi_bytes_received));
        assert_eq!(at::SEGS_OUT, offset_of!(C, tcpi_segs_out));
        assert_eq!(at::SEGS_IN, offset_of!(C, tcpi_segs_in));
        assert_eq!(at::MIN_RTT, offset_of!(C, tcpi_min_rtt));
        assert_eq!(at::DELIVERY_RATE, offset_of!(C, tcpi_delivery_rate));
        assert_eq!(at::BUSY_TIME, offset_of!(C, tcpi_busy_time));
        assert_eq!(at::RWND_LIMITED, offset_of!(C, tcpi_rwnd_limited));
        assert_eq!(at::SNDBUF_LIMITED, offset_of!(C, tcpi_sndbuf_limited));
        assert_eq!(at::REORD_SEEN, offset_of!(C, tcpi_delivered) + 28);
    }

    #[test]
    fn a_connection_says_what_went_over_it() {
        let (client, server) = pair();
        client.send_with(&[0; 1000], 0).unwrap();
        assert_eq!(server.recv_discard(2000).unwrap(), 1000);
        assert_eq!(TcpInfo::read(server.fd()).unwrap().wide(at::BYTES_RECEIVED), Some(1000));
        let info = TcpInfo::read(client.fd()).unwrap();
        assert!(info.u32(at::SND_MSS) > Some(500) && info.amount(at::RTT).is_some());
        assert!(info.seconds(at::BUSY_TIME).is_some());
        // SYN, the acknowledgement of the SYN-ACK, and data.
        assert!(info.count(at::SEGS_OUT) >= Some(3) && info.count(at::SEGS_IN) >= Some(1));
        // Bytes beyond what a kernel wrote are not read as zeros.
        let old = TcpInfo { len: 104, ..info };
        assert!(old.count(at::TOTAL_RETRANS).is_some() && old.wide(at::BYTES_ACKED).is_none());
    }
}
