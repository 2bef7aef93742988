//! The system calls that make an AF_XDP socket: its memory, its rings and its queue.

use std::io;
use std::mem::zeroed;

use socket2::{Domain, Type};

use super::ring::{self, Ring};
use super::{Shape, Side};
use crate::engine::memory::Memory;
use crate::engine::socket::{Socket, read_option};

pub(super) fn socket() -> io::Result<Socket> {
    Ok(Socket(socket2::Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None)?))
}

pub(super) fn register(socket: &Socket, shape: Shape) -> io::Result<Memory> {
    let bytes = shape.frames as usize * shape.frame_bytes as usize;
    let memory = Memory::anonymous(bytes)?;
    let (addr, len, chunk_size) = (memory.start() as u64, bytes as u64, shape.frame_bytes);
    let region =
        libc::xdp_umem_reg { addr, len, chunk_size, headroom: 0, flags: 0, tx_metadata_len: 0 };
    socket.set_raw(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
    Ok(memory)
}

pub(super) fn bind(socket: &Socket, shape: Shape, copies: bool) -> io::Result<()> {
    let how = if copies { libc::XDP_COPY } else { libc::XDP_ZEROCOPY };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: how | libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: shape.device,
        sxdp_queue_id: shape.queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    let done = unsafe { libc::bind(socket.fd(), (&raw const address).cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn is_copying(socket: &Socket) -> io::Result<bool> {
    // SAFETY: the struct consists of numbers.
    let found: libc::xdp_options = unsafe { option(socket, libc::XDP_OPTIONS) }?;
    Ok(found.flags & libc::XDP_OPTIONS_ZEROCOPY == 0)
}

/// An option; what an older kernel does not fill in is zero.
///
/// # Safety
///
/// Any bytes must be a valid `T`.
pub(super) unsafe fn option<T>(socket: &Socket, name: libc::c_int) -> io::Result<T> {
    // SAFETY: any bytes are valid, says the caller.
    let mut value: T = unsafe { zeroed() };
    // SAFETY: the same.
    unsafe { read_option(socket.fd(), (libc::SOL_XDP, name), &mut value) }.map(|_| value)
}

/// The rings of a socket.
#[derive(Debug)]
pub(super) struct Rings {
    /// Frames to send, or received ones.
    pub(super) ring: Ring<libc::xdp_desc>,
    /// Frames to receive into.
    pub(super) fill: Ring<u64>,
    /// Frames that were sent.
    pub(super) completed: Ring<u64>,
}

impl Rings {
    /// The kernel wants a fill and a completion ring of every socket. In the latter all frames find room, so that it
    /// never holds a sender up.
    pub(super) fn open(socket: &Socket, shape: Shape) -> io::Result<Self> {
        let all = shape.frames.next_power_of_two();
        let own = match shape.side {
            Side::Send => libc::XDP_TX_RING,
            Side::Receive => libc::XDP_RX_RING,
        };
        for (name, entries) in [
            (own, shape.ring),
            (libc::XDP_UMEM_FILL_RING, all),
            (libc::XDP_UMEM_COMPLETION_RING, all),
        ] {
            socket.set(libc::SOL_XDP, name, entries as i32)?;
        }
        // SAFETY: the struct consists of numbers.
        let at: libc::xdp_mmap_offsets = unsafe { option(socket, libc::XDP_MMAP_OFFSETS) }?;
        let (ring_at, ring_page) = match shape.side {
            Side::Send => (at.tx, libc::XDP_PGOFF_TX_RING),
            Side::Receive => (at.rx, libc::XDP_PGOFF_RX_RING),
        };
        let (fill, completed) =
            (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        Ok(Self {
            ring: map(socket, ring_at, shape.ring, ring_page)?,
            fill: map(socket, at.fr, all, fill as libc::off_t)?,
            completed: map(socket, at.cr, all, completed as libc::off_t)?,
        })
    }
}

fn map<T: Copy>(
    socket: &Socket,
    places: libc::xdp_ring_offset,
    entries: u32,
    page: libc::off_t,
) -> io::Result<Ring<T>> {
    let memory = Memory::of(socket.fd(), ring::bytes::<T>(places, entries), page)?;
    Ring::new(memory, places, entries)
}
