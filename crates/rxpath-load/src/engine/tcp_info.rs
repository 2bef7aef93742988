//! `TCP_INFO`: what the kernel knows about one connection.
//!
//! Newer kernels have a larger structure; a field that the kernel did not write is `None`.
//! **Source** `tcp_get_info`, net/ipv4/tcp.c; `struct tcp_info`, include/uapi/linux/tcp.h.

use std::io;
use std::os::fd::RawFd;

use crate::engine::socket::Socket;

/// Room for the structure of kernels to come, in words of 8 bytes.
const WORDS: usize = 48;

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    words: [u64; WORDS],
    /// Bytes that the kernel wrote.
    len: usize,
}

/// Offsets in bytes.
mod at {
    pub(super) const SND_MSS: usize = 16;
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const REORDERING: usize = 88;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const BYTES_RECEIVED: usize = 128;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DELIVERY_RATE: usize = 160;
    pub(super) const BUSY_TIME: usize = 168;
    pub(super) const RWND_LIMITED: usize = 176;
    pub(super) const SNDBUF_LIMITED: usize = 184;
    pub(super) const REORD_SEEN: usize = 220;
    pub(super) const RCV_OOOPACK: usize = 224;
    pub(super) const SND_WND: usize = 228;
    pub(super) const RCV_WND: usize = 232;
}

impl Socket {
    /// Reads `TCP_INFO`. **Cost** one system call that takes the socket's lock.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        TcpInfo::read(self.fd())
    }
}

impl TcpInfo {
    /// Reads it by the number of a descriptor that the caller keeps open.
    pub fn read(fd: RawFd) -> io::Result<Self> {
        let mut info = Self { words: [0; WORDS], len: 0 };
        let mut len = size_of_val(&info.words) as libc::socklen_t;
        // SAFETY: pointer and length describe `words`; integers take any bytes.
        let done = unsafe {
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.words.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        info.len = len as usize;
        Ok(info)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        (at + 8 <= self.len).then(|| self.words[at / 8])
    }

    fn u32(&self, at: usize) -> Option<u32> {
        if at + 4 > self.len {
            return None;
        }
        let bytes = self.words[at / 8].to_ne_bytes();
        bytes[at % 8..].first_chunk().map(|four| u32::from_ne_bytes(*four))
    }

    fn seconds(&self, at: usize) -> Option<f64> {
        self.u64(at).map(|us| us as f64 / 1e6)
    }

    /// `tcpi_rtt`: smoothed round trip. **Unit** us.
    pub fn rtt_us(&self) -> Option<u32> {
        self.u32(at::RTT)
    }

    /// `tcpi_rttvar`. **Unit** us.
    pub fn rttvar_us(&self) -> Option<u32> {
        self.u32(at::RTTVAR)
    }

    /// `tcpi_min_rtt`; `None` also before the first measurement. **Unit** us.
    pub fn min_rtt_us(&self) -> Option<u32> {
        self.u32(at::MIN_RTT).filter(|us| *us != u32::MAX)
    }

    /// `tcpi_snd_mss`.
    pub fn mss_bytes(&self) -> Option<u32> {
        self.u32(at::SND_MSS)
    }

    /// `tcpi_snd_cwnd`, in segments.
    pub fn cwnd_packets(&self) -> Option<u32> {
        self.u32(at::SND_CWND)
    }

    /// `tcpi_reordering`: the distance of reordering that is taken for loss.
    pub fn reordering_packets(&self) -> Option<u32> {
        self.u32(at::REORDERING)
    }

    /// `tcpi_reord_seen` (5.0): times that reordering was seen.
    pub fn reordering_total(&self) -> Option<u32> {
        self.u32(at::REORD_SEEN)
    }

    /// `tcpi_total_retrans`: segments sent again.
    pub fn retransmits_total(&self) -> Option<u32> {
        self.u32(at::TOTAL_RETRANS)
    }

    /// `tcpi_bytes_acked`.
    pub fn acked_bytes(&self) -> Option<u64> {
        self.u64(at::BYTES_ACKED)
    }

    /// `tcpi_bytes_received`.
    pub fn received_bytes(&self) -> Option<u64> {
        self.u64(at::BYTES_RECEIVED)
    }

    /// `tcpi_delivery_rate`, the most recent sample. **Unit** bits per second.
    pub fn delivery_rate_bps(&self) -> Option<u64> {
        self.u64(at::DELIVERY_RATE).map(|bytes| bytes.saturating_mul(8))
    }

    /// `tcpi_busy_time`: had data that was not acknowledged. **Unit** s.
    pub fn busy_s(&self) -> Option<f64> {
        self.seconds(at::BUSY_TIME)
    }

    /// `tcpi_rwnd_limited`: of the busy time, waited for the peer's receive window. **Unit** s.
    pub fn rwnd_limited_s(&self) -> Option<f64> {
        self.seconds(at::RWND_LIMITED)
    }

    /// `tcpi_sndbuf_limited`: of the busy time, waited for room in the send buffer. **Unit** s.
    pub fn sndbuf_limited_s(&self) -> Option<f64> {
        self.seconds(at::SNDBUF_LIMITED)
    }

    /// `tcpi_rcv_ooopack` (5.4): segments that came out of order.
    pub fn ooo_packets(&self) -> Option<u32> {
        self.u32(at::RCV_OOOPACK)
    }

    /// `tcpi_snd_wnd` (5.4): the window that the peer announced last.
    pub fn peer_window_bytes(&self) -> Option<u32> {
        self.u32(at::SND_WND)
    }

    /// `tcpi_rcv_wnd` (6.2): the window that this side announced last.
    pub fn receive_window_bytes(&self) -> Option<u32> {
        self.u32(at::RCV_WND)
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
        assert_eq!(server.recv_discard(2000, 0).unwrap(), 1000);
        assert_eq!(server.tcp_info().unwrap().received_bytes(), Some(1000));
        let info = client.tcp_info().unwrap();
        assert!(info.mss_bytes() > Some(500) && info.rtt_us().is_some() && info.busy_s().is_some());
        // Bytes beyond what a kernel wrote are not read as zeros.
        let old = TcpInfo { len: 104, ..info };
        assert!(old.retransmits_total().is_some() && old.acked_bytes().is_none());
    }
}
