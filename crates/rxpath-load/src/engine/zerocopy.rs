//! Sending without copying (`MSG_ZEROCOPY`) and receiving by mapping pages (`TCP_ZEROCOPY_RECEIVE`).
//!
//! **Source** Documentation/networking/msg_zerocopy.rst; `tcp_zerocopy_receive`, net/ipv4/tcp.c.

use std::io;

use crate::LoadError;
use crate::engine::memory::Memory;
use crate::engine::socket::{Socket, read_option};

/// `SO_ZEROCOPY` (include/uapi/asm-generic/socket.h).
const SO_ZEROCOPY: libc::c_int = 60;
/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` (include/uapi/linux/errqueue.h).
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;
/// `TCP_ZEROCOPY_RECEIVE` (include/uapi/linux/tcp.h).
const TCP_ZEROCOPY_RECEIVE: libc::c_int = 35;

/// Calls whose memory the kernel has done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// How many calls.
    pub calls: u32,
    /// The kernel copied after all (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: bool,
}

impl Socket {
    /// Allows `MSG_ZEROCOPY`.
    pub fn allow_zerocopy(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, SO_ZEROCOPY, 1)
    }

    /// Sends without copying: `data` must not change until its [`Completion`] came.
    ///
    /// **Errors** `ENOBUFS`: completions wait to be read, or `optmem_max` or the locked memory is used up.
    #[inline]
    pub fn send_zerocopy(&self, data: &[u8]) -> io::Result<usize> {
        self.send_with(data, libc::MSG_ZEROCOPY)
    }

    /// Reads one completion from the error queue; `None` when there is none.
    pub fn completion(&self) -> io::Result<Option<Completion>> {
        let mut control = [0u64; 16];
        // SAFETY: all zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header describes `control`, which outlives the call.
        let got = unsafe {
            libc::recvmsg(self.fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        Ok(extended_error(&header)
            .filter(|e| e.ee_origin == ORIGIN_ZEROCOPY && e.ee_errno == 0)
            .map(|e| {
                // ee_info..=ee_data is the range of calls, counted modulo 2^32.
                let calls = e.ee_data.wrapping_sub(e.ee_info).wrapping_add(1);
                Completion { calls, copied: e.ee_code & CODE_COPIED != 0 }
            }))
    }
}

/// The error that a message from the error queue carries, among what else may come with it (time stamps).
fn extended_error(header: &libc::msghdr) -> Option<libc::sock_extended_err> {
    const BYTES: usize = size_of::<libc::sock_extended_err>();
    // SAFETY: the kernel filled the control buffer up to msg_controllen, and the CMSG functions stay inside of it. A
    // message of these two types that is long enough begins with a sock_extended_err, which may lie unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let kind = ((*message).cmsg_level, (*message).cmsg_type);
            let is_error = matches!(
                kind,
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            );
            if is_error && (*message).cmsg_len as usize >= libc::CMSG_LEN(BYTES as u32) as usize {
                let data = libc::CMSG_DATA(message);
                return Some(data.cast::<libc::sock_extended_err>().read_unaligned());
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}

/// `struct tcp_zerocopy_receive` (include/uapi/linux/tcp.h), up to the fields of Linux 5.18.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Request {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
    copybuf_address: u64,
    copybuf_len: i32,
    flags: u32,
    msg_control: u64,
    msg_controllen: u64,
    msg_flags: u32,
    reserved: u32,
}

/// What one receive call gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Bytes that are mapped now.
    pub mapped: usize,
    /// Bytes that cannot be mapped and come next: read them.
    pub skip: usize,
}

/// Address space of one connection into which its receive queue is mapped.
#[derive(Debug)]
pub struct Mapping {
    memory: Memory,
    /// Bytes that the last call mapped.
    mapped: usize,
}

impl Mapping {
    /// Reserves `len` bytes, rounded down to pages.
    pub fn new(socket: &Socket, len: usize) -> io::Result<Self> {
        // SAFETY: no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize;
        let len = (len / page).max(1) * page;
        Ok(Self { memory: Memory::readable(socket.fd(), len)?, mapped: 0 })
    }

    /// Maps what is queued and can be mapped; the pages of the call before are gone then.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<Mapped> {
        let (address, most) = (self.memory.start() as u64, self.memory.bytes());
        let mut request = Request { address, length: most as u32, ..Request::default() };
        let option = (libc::IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE);
        self.mapped = 0;
        // SAFETY: `request` consists of integers; the kernel replaces pages only inside of the
        // mapping that `self` owns, and no borrow of them is alive while `self` is borrowed mutably.
        unsafe { read_option(socket.fd(), option, &mut request) }?;
        self.mapped = (request.length as usize).min(most);
        Ok(Mapped { mapped: self.mapped, skip: request.recv_skip_hint as usize })
    }

    /// The bytes that the last call mapped.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the kernel mapped that many bytes, and they stay until the next call, which needs
        // `self` mutably.
        unsafe { std::slice::from_raw_parts(self.memory.start(), self.mapped) }
    }
}

/// Whether the kernel can map receive queues at all: one that cannot refuses the mapping.
pub(crate) fn can_map() -> Result<(), LoadError> {
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let mapping = Socket::tcp(any).and_then(|socket| Mapping::new(&socket, 4096));
    mapping.map(drop).map_err(LoadError::unsupported("--receive zerocopy (TCP_ZEROCOPY_RECEIVE)"))
}

/// Anonymous pages of their own: what is sent from them without copying is page-aligned.
#[derive(Debug)]
pub struct Pages(Memory);

// SAFETY: written only while it is borrowed mutably; shared borrows only read.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes of zeros.
    ///
    /// **Errors** `EINVAL`: a `len` of 0.
    pub fn new(len: usize) -> io::Result<Self> {
        Memory::anonymous(len).map(Self)
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has that many readable bytes while `self` lives.
        unsafe { std::slice::from_raw_parts(self.0.start(), self.0.bytes()) }
    }

    /// The bytes, to fill them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.start(), self.0.bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tcp::tests::pair;

    #[test]
    fn completions_are_counted_and_loopback_copies() {
        let (client, server) = pair();
        client.allow_zerocopy().unwrap();
        let pages = Pages::new(65_536).unwrap();
        for _ in 0..3 {
            assert_eq!(client.send_zerocopy(pages.bytes()).unwrap(), 65_536);
        }
        let mut left = 3 * 65_536;
        while left > 0 {
            left -= server.recv_discard(left).unwrap();
        }
        let (mut calls, mut copied) = (0, 0);
        while calls < 3 {
            // POLLERR is always reported.
            assert!(client.wait(0, 10_000).unwrap(), "{calls} completions");
            while let Some(done) = client.completion().unwrap() {
                calls += done.calls;
                copied += if done.copied { done.calls } else { 0 };
            }
        }
        assert_eq!((calls, copied), (3, 3));
        assert_eq!(client.completion().unwrap(), None);
    }

    #[test]
    fn mapped_and_skipped_bytes_are_all_that_was_sent() {
        let (client, server) = pair();
        client.allow_zerocopy().unwrap();
        let mut pages = Pages::new(4096 * 4).unwrap();
        for (index, byte) in pages.bytes_mut().iter_mut().enumerate() {
            *byte = (index % 251) as u8;
        }
        assert_eq!(client.send_zerocopy(pages.bytes()).unwrap(), 4096 * 4);
        let mut mapping = Mapping::new(&server, 65_536).unwrap();
        let mut got: Vec<u8> = Vec::new();
        while got.len() < 4096 * 4 {
            assert!(server.wait(libc::POLLIN, 10_000).unwrap());
            let part = mapping.receive(&server).unwrap();
            got.extend_from_slice(mapping.bytes());
            let mut buffer = vec![0; part.skip];
            if part.skip > 0 {
                let n = server.recv(&mut buffer, 0).unwrap();
                got.extend_from_slice(&buffer[..n]);
            }
        }
        assert_eq!(got, pages.bytes());
    }

    #[test]
    fn only_a_message_of_the_error_queue_is_read_as_an_error() {
        let mut control = [0u64; 16];
        // SAFETY: all zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: two messages of 16 bytes each fit the buffer, which outlives the header.
        unsafe {
            header.msg_controllen = (2 * libc::CMSG_SPACE(16)) as _;
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            for (level, kind) in
                [(libc::SOL_SOCKET, libc::SO_TIMESTAMPING), (libc::SOL_IP, libc::IP_RECVERR)]
            {
                (*message).cmsg_level = level;
                (*message).cmsg_type = kind;
                (*message).cmsg_len = libc::CMSG_LEN(16) as _;
                let is_error = u8::from(kind == libc::IP_RECVERR);
                libc::CMSG_DATA(message).add(4).write(is_error * ORIGIN_ZEROCOPY);
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        }
        assert_eq!(extended_error(&header).map(|error| error.ee_origin), Some(ORIGIN_ZEROCOPY));
        // The first alone, and nothing at all.
        // SAFETY: no pointers.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(16) } as _;
        assert!(extended_error(&header).is_none());
        header.msg_controllen = 0;
        assert!(extended_error(&header).is_none());
    }
}
