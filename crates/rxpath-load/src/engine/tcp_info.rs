//! `TCP_INFO`: what the kernel knows about one connection.
//!
//! Newer kernels have a larger structure; a field that the kernel did not write is `None`.
//! **Source** `tcp_get_info`, net/ipv4/tcp.c; `struct tcp_info`, include/uapi/linux/tcp.h.

use std::io;
use std::os::fd::RawFd;

use crate::engine::socket::read_option;

/// Room for the structure of kernels to come, in words of 8 bytes.
const WORDS: usize = 48;

/// One reading. A field is known by its offset in `libc::tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    words: [u64; WORDS],
    /// Bytes that the kernel wrote.
    len: usize,
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

    macro_rules! at {
        ($field:ident) => {
            std::mem::offset_of!(libc::tcp_info, $field)
        };
    }

    #[test]
    fn a_connection_says_what_went_over_it() {
        let (client, server) = pair();
        client.send_with(&[0; 1000], 0).unwrap();
        assert_eq!(server.recv_discard(2000).unwrap(), 1000);
        let received = TcpInfo::read(server.fd()).unwrap().wide(at!(tcpi_bytes_received));
        assert_eq!(received, Some(1000));
        let info = TcpInfo::read(client.fd()).unwrap();
        assert!(info.u32(at!(tcpi_snd_mss)) > Some(500) && info.amount(at!(tcpi_rtt)).is_some());
        assert!(info.seconds(at!(tcpi_busy_time)).is_some());
        // SYN, the acknowledgement of the SYN-ACK, and data.
        assert!(info.count(at!(tcpi_segs_out)) >= Some(3));
        assert!(info.count(at!(tcpi_segs_in)) >= Some(1));
        // Bytes beyond what a kernel wrote are not read as zeros.
        let old = TcpInfo { len: 104, ..info };
        assert!(old.count(at!(tcpi_total_retrans)).is_some());
        assert!(old.wide(at!(tcpi_bytes_acked)).is_none());
    }
}
