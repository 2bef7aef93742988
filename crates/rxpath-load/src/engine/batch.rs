//! Batches of messages for `sendmmsg` and `recvmmsg`: all memory is laid out once.

use std::io;

use socket2::SockAddr;

use crate::engine::socket::{Socket, UDP_GRO, UDP_SEGMENT};

/// Most messages the kernel takes in one call. **Source** `UIO_MAXIOV`, `__sys_sendmmsg`, net/socket.c.
pub const MAX_BATCH: usize = 1024;

/// Bytes between two buffers: whole cache lines, and an odd number of them, so that buffers do not
/// fall into the same sets of the caches.
fn stride(size: usize) -> usize {
    let lines = size.max(1).div_ceil(64);
    64 * (lines | 1)
}

/// Buffers with the headers that point to them. The vectors never grow, so their addresses stay.
#[derive(Debug)]
struct Memory {
    data: Vec<u8>,
    size: usize,
    stride: usize,
    headers: Vec<libc::mmsghdr>,
    control_words: usize,
    /// Keeps what the headers point to.
    _pointed_to: (Vec<libc::iovec>, Vec<u64>),
}

// SAFETY: the raw pointers in the headers point into vectors that this struct owns and never resizes,
// so it may move to another thread as a whole.
unsafe impl Send for Memory {}

impl Memory {
    fn new(batch: usize, size: usize, stride: usize, control_words: usize) -> Self {
        let mut data = vec![0u8; stride * batch + 64];
        let mut control = vec![0u64; control_words * batch];
        let base = data.as_mut_ptr();
        // SAFETY: every index stays inside of `data`.
        let at = |i: usize| unsafe { base.add(i * stride) };
        let mut vectors: Vec<libc::iovec> =
            (0..batch).map(|i| libc::iovec { iov_base: at(i).cast(), iov_len: size }).collect();
        let (iov, ctl) = (vectors.as_mut_ptr(), control.as_mut_ptr());
        let headers = (0..batch)
            .map(|i| {
                // SAFETY: all zero is a valid mmsghdr; the indices stay inside of their vectors.
                unsafe {
                    let mut header: libc::mmsghdr = std::mem::zeroed();
                    header.msg_hdr.msg_iov = iov.add(i);
                    header.msg_hdr.msg_iovlen = 1;
                    if control_words > 0 {
                        header.msg_hdr.msg_control = ctl.add(i * control_words).cast();
                        header.msg_hdr.msg_controllen = (control_words * 8) as _;
                    }
                    header
                }
            })
            .collect();
        Self { data, size, stride, headers, control_words, _pointed_to: (vectors, control) }
    }
}

/// Metadata of a receive call, in addition to the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ancillary {
    /// Size of the segments of an aggregate (`UDP_GRO`); 0 = one datagram.
    pub segment_bytes: usize,
    /// Software receive stamp, `CLOCK_REALTIME`; 0 = none.
    pub stamp_ns: u64,
}

/// Buffers for receiving.
#[derive(Debug)]
pub struct RecvBatch {
    memory: Memory,
}

impl RecvBatch {
    /// `batch` buffers of `size` bytes; `ancillary` makes room for control messages.
    pub fn new(batch: usize, size: usize, ancillary: bool) -> Self {
        // Room for UDP_GRO (int) and SCM_TIMESTAMPING (three timespecs), with their headers.
        Self { memory: Memory::new(batch, size, stride(size), if ancillary { 16 } else { 0 }) }
    }

    /// One `recvmmsg`; `block` waits for the first datagram (`MSG_WAITFORONE`).
    ///
    /// **Errors** `EAGAIN`: nothing there; `EINTR`: a signal came first.
    #[inline]
    pub fn receive(&mut self, socket: &Socket, block: bool) -> io::Result<usize> {
        // MSG_TRUNC: the length is that of the datagram, also when the buffer was smaller.
        let wait = if block { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: the headers describe memory that lives as long as `self`.
        let got = unsafe {
            libc::recvmmsg(
                socket.fd(),
                self.memory.headers.as_mut_ptr(),
                self.memory.headers.len() as libc::c_uint,
                (wait | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// One plain `recv` into the first buffer: the receiver without batching.
    #[inline]
    pub fn receive_one(&mut self, socket: &Socket, block: bool) -> io::Result<usize> {
        let wait = if block { 0 } else { libc::MSG_DONTWAIT };
        let memory = &mut self.memory;
        // SAFETY: pointer and length describe the first buffer.
        let got = unsafe {
            libc::recv(
                socket.fd(),
                memory.data.as_mut_ptr().cast(),
                memory.size,
                wait | libc::MSG_TRUNC,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        memory.headers[0].msg_len = got as u32;
        Ok(1)
    }

    /// Length of datagram `i` on the wire; more than the buffer when it was cut.
    #[inline]
    pub fn len(&self, i: usize) -> usize {
        self.memory.headers[i].msg_len as usize
    }

    /// The bytes of datagram `i` that fitted.
    #[inline]
    pub fn data(&self, i: usize) -> &[u8] {
        let memory = &self.memory;
        let len = self.len(i).min(memory.size);
        &memory.data[i * memory.stride..i * memory.stride + len]
    }

    /// Reads the control messages of datagram `i` and makes its header ready for the next call.
    pub fn ancillary(&mut self, i: usize) -> Ancillary {
        let mut found = Ancillary::default();
        let header = &mut self.memory.headers[i].msg_hdr;
        // SAFETY: the kernel filled the control buffer up to msg_controllen, and the CMSG functions
        // stay inside of it; payloads are read unaligned.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while !message.is_null() {
                let data = libc::CMSG_DATA(message);
                let holds = |bytes: usize| {
                    (*message).cmsg_len as usize >= libc::CMSG_LEN(bytes as u32) as usize
                };
                match ((*message).cmsg_level, (*message).cmsg_type) {
                    (libc::SOL_UDP, UDP_GRO) if holds(size_of::<libc::c_int>()) => {
                        let size = data.cast::<libc::c_int>().read_unaligned();
                        found.segment_bytes = usize::try_from(size).unwrap_or(0);
                    }
                    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING)
                        if holds(size_of::<libc::timespec>()) =>
                    {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        found.stamp_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        header.msg_controllen = (self.memory.control_words * 8) as _;
        found
    }
}

/// Buffers for sending.
#[derive(Debug)]
pub struct SendBatch {
    memory: Memory,
    /// Pointed to by the headers; replaced only together with forgetting the aim.
    destinations: Vec<SockAddr>,
    aimed: Option<usize>,
}

impl SendBatch {
    /// `batch` buffers of `size` bytes without gaps of more than a cache line.
    ///
    /// `segment_bytes` > 0 asks the kernel to cut each buffer into datagrams of that size (`UDP_SEGMENT`).
    pub fn new(batch: usize, size: usize, segment_bytes: u16) -> Self {
        let control_words = if segment_bytes > 0 { 3 } else { 0 };
        let step = size.max(1).div_ceil(16) * 16;
        let mut memory = Memory::new(batch, size, step, control_words);
        if segment_bytes > 0 {
            for header in &mut memory.headers {
                // SAFETY: three words hold one control message with two bytes (CMSG_SPACE(2) = 24).
                unsafe {
                    let message = libc::CMSG_FIRSTHDR(&raw const header.msg_hdr);
                    (*message).cmsg_level = libc::SOL_UDP;
                    (*message).cmsg_type = UDP_SEGMENT;
                    (*message).cmsg_len = libc::CMSG_LEN(2) as _;
                    libc::CMSG_DATA(message).cast::<u16>().write_unaligned(segment_bytes);
                }
            }
        }
        Self { memory, destinations: Vec::new(), aimed: None }
    }

    /// Gives the addresses that [`SendBatch::aim`] chooses from.
    pub fn set_destinations(&mut self, destinations: Vec<SockAddr>) {
        self.destinations = destinations;
        self.aimed = None;
    }

    /// Lets all messages go to this destination (for sockets that are not connected).
    #[inline]
    pub fn aim(&mut self, destination: usize) {
        if self.aimed != Some(destination) {
            let name = &self.destinations[destination];
            for header in &mut self.memory.headers {
                header.msg_hdr.msg_name = name.as_ptr().cast_mut().cast();
                header.msg_hdr.msg_namelen = name.len();
            }
            self.aimed = Some(destination);
        }
    }

    /// The bytes of message `i`.
    #[inline]
    pub fn data(&mut self, i: usize) -> &mut [u8] {
        let memory = &mut self.memory;
        &mut memory.data[i * memory.stride..i * memory.stride + memory.size]
    }

    /// One `sendmmsg` of messages `from..to`, without waiting; returns how many were taken.
    ///
    /// **Errors** those of the first message; an error behind it only shortens the count.
    #[inline]
    pub fn send(&mut self, socket: &Socket, from: usize, to: usize) -> io::Result<usize> {
        let headers = &mut self.memory.headers[from..to];
        // SAFETY: the headers describe memory that lives as long as `self`.
        let sent = unsafe {
            libc::sendmmsg(
                socket.fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// One `sendmsg` or `send` of message `i`, without waiting: the sender without batching.
    #[inline]
    pub fn send_one(&mut self, socket: &Socket, i: usize) -> io::Result<usize> {
        let plain = {
            let header = &self.memory.headers[i].msg_hdr;
            header.msg_name.is_null() && header.msg_control.is_null()
        };
        if plain {
            return socket.send_with(self.data(i), libc::MSG_DONTWAIT).map(|_| 1);
        }
        // SAFETY: the header describes memory that lives as long as `self`.
        let sent = unsafe {
            let header = &raw const self.memory.headers[i].msg_hdr;
            libc::sendmsg(socket.fd(), header, libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) }
    }
}
