//! AF_XDP sockets: frames in memory that is shared with the kernel, and the rings that hand them over.
//!
//! Each [`Frame`] has one owner: a program that holds its token may write to it, and loses the token with the frame when
//! it hands it to the kernel. Only the kernel's rings give it back. The socket belongs to a descriptor of this process,
//! so that nothing of it stays when the process ends, however it ends.
//!
//! **Source** Documentation/networking/af_xdp.rst, net/xdp/xsk.c; wake-ups on request since Linux 5.4.

mod memory;
mod ring;

use std::io;
use std::mem::zeroed;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::engine::socket::Socket;
use memory::Memory;
use ring::{Places, Ring};

/// Bytes in front of a received frame that the kernel keeps (`XDP_PACKET_HEADROOM`, include/uapi/linux/bpf.h).
pub const HEADROOM: usize = 256;
/// Frames that one `sendto` in copy mode sends, at most. **Source** include/uapi/linux/if_xdp.h, since 6.18; 32 before.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// The kernel frees the queue of a closed socket by a work item (`xp_put_pool`), so that it may be busy a little longer.
const BUSY_PATIENCE: Duration = Duration::from_millis(500);
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has a ring for frames to send.
    Send,
    /// It has a ring for received frames.
    Receive,
}

/// What is asked of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What it is for.
    pub side: Side,
    /// Index of the device.
    pub device: u32,
    /// Queue of the device.
    pub queue: u32,
    /// Frames of its memory.
    pub frames: u32,
    /// Bytes of each: a power of two from 2048 to the size of a page.
    pub frame_bytes: u32,
    /// Entries of the ring for frames to send or received frames; a power of two.
    pub ring: u32,
}

/// How frames get from the shared memory to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// The driver reads and writes them in place.
    None,
    /// The kernel copies them.
    Each,
}

/// Which call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The socket itself.
    Socket,
    /// Registering the memory, whose pages stay in RAM.
    Memory,
    /// The rings.
    Rings,
    /// Binding to the queue of a device.
    Bind,
    /// The first wake-up of the driver.
    Wake,
}

/// A refusal.
#[derive(Debug)]
pub struct Refusal {
    /// Which call.
    pub step: Step,
    /// The kernel's answer.
    pub source: io::Error,
}

impl Refusal {
    /// Whether another socket has the queue.
    pub fn is_busy(&self) -> bool {
        self.step == Step::Bind && self.source.raw_os_error() == Some(libc::EBUSY)
    }
}

impl Step {
    fn refused(self) -> impl Fn(io::Error) -> Refusal {
        move |source| Refusal { step: self, source }
    }
}

/// A frame of the shared memory that the program owns.
#[derive(Debug)]
pub struct Frame(u32);

/// Bytes that a socket received.
#[derive(Debug)]
pub struct Received {
    /// Where they are.
    pub frame: Frame,
    /// The first of them.
    pub offset: usize,
    /// How many.
    pub len: usize,
}

/// Counters of a socket. **Source** `XDP_STATISTICS`, net/xdp/xsk.c `xsk_getsockopt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Received frames that were dropped for want of a frame, or because they were too long for one.
    pub rx_dropped: u64,
    /// Received frames that were dropped because the program had not emptied its ring.
    pub rx_ring_full: u64,
    /// Times that the kernel found no frame to receive into.
    pub fill_ring_empty: u64,
    /// Frames to send that the kernel refused.
    pub tx_invalid: u64,
}

/// A socket that is bound to a queue of a device.
#[derive(Debug)]
pub struct Xsk {
    // Dropped first: afterwards the kernel knows nothing of the memory below.
    socket: Socket,
    /// Frames to send, or received ones.
    ring: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completed: Ring<u64>,
    memory: Memory,
    shape: Shape,
    copying: Copying,
}

impl Xsk {
    /// Opens a socket, and gives all frames of its memory with it.
    ///
    /// **Errors** which step was refused; `EBUSY` of [`Step::Bind`] only after half a second.
    pub fn open(shape: Shape, copying: Copying) -> Result<(Self, Vec<Frame>), Refusal> {
        let until = Instant::now() + BUSY_PATIENCE;
        loop {
            match Self::open_once(shape, copying) {
                Err(refusal) if refusal.is_busy() && Instant::now() < until => {
                    // why: the kernel does not say when its work item has run; the loop ends after `BUSY_PATIENCE`.
                    std::thread::sleep(BUSY_PAUSE);
                }
                other => return other,
            }
        }
    }

    fn open_once(shape: Shape, copying: Copying) -> Result<(Self, Vec<Frame>), Refusal> {
        let socket = socket().map_err(Step::Socket.refused())?;
        let memory = register(&socket, shape).map_err(Step::Memory.refused())?;
        let rings = Rings::open(&socket, shape).map_err(Step::Rings.refused())?;
        bind(&socket, shape, copying).map_err(Step::Bind.refused())?;
        let Rings { ring, fill, completed } = rings;
        let copying = in_force(&socket).map_err(Step::Bind.refused())?;
        let xsk = Self { socket, ring, fill, completed, memory, shape, copying };
        if shape.side == Side::Send {
            // Older kernels keep their 32.
            let budget = shape.ring.max(32);
            let _ = xsk.socket.set(libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, budget as i32);
            if copying == Copying::None {
                // Some drivers have zero copy only while an XDP program runs, and say it here.
                xsk.wake().map_err(Step::Wake.refused())?;
            }
        }
        Ok((xsk, (0..shape.frames).map(Frame).collect()))
    }

    /// The socket, for its options and for waiting.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// How frames get to the driver.
    pub fn copying(&self) -> Copying {
        self.copying
    }

    /// The bytes of a frame.
    #[inline]
    pub fn data(&mut self, frame: &Frame) -> &mut [u8] {
        let (index, bytes) = (frame.0 % self.shape.frames, self.shape.frame_bytes as usize);
        // SAFETY: the frame is in the memory. Its token shows that the kernel does not have it, there is one token for
        // each frame, and the mutable borrow keeps the other frames of this socket from being borrowed meanwhile.
        unsafe {
            let at = self.memory.start().add(index as usize * bytes);
            std::slice::from_raw_parts_mut(at, bytes)
        }
    }

    fn address(&self, frame: &Frame) -> u64 {
        u64::from(frame.0) * u64::from(self.shape.frame_bytes)
    }

    /// The frame of an address that the kernel gave.
    fn frame_at(&self, address: u64) -> Frame {
        Frame((address / u64::from(self.shape.frame_bytes)) as u32 % self.shape.frames)
    }

    /// Frames that can be sent now.
    #[inline]
    pub fn room(&mut self) -> u32 {
        self.ring.room()
    }

    /// Puts `len` bytes of a frame from `offset` on behind those to send; gives the frame back when the ring is full.
    ///
    /// The kernel sees them with the next [`Xsk::show`].
    #[inline]
    pub fn send(&mut self, frame: Frame, offset: usize, len: usize) -> Result<(), Frame> {
        let addr = self.address(&frame) + offset as u64;
        let descriptor = libc::xdp_desc { addr, len: len as u32, options: 0 };
        if self.ring.put(descriptor) { Ok(()) } else { Err(frame) }
    }

    /// Lets the kernel see what is to be sent.
    #[inline]
    pub fn show(&self) {
        self.ring.show();
    }

    /// Frames to send that the kernel has not taken.
    #[inline]
    pub fn waiting(&mut self) -> u32 {
        self.ring.waiting()
    }

    /// Whether the kernel sends only after a [`Xsk::wake`]. In copy mode it always does.
    #[inline]
    pub fn wants_wake(&self) -> bool {
        self.copying == Copying::Each || self.ring.flags() & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Makes the kernel look at the frames to send; in copy mode it sends some of them in this call.
    ///
    /// **Errors** `EAGAIN` when more is to be sent than one call sends, the send buffer is full or the device's queue is
    /// stopped; `EBUSY` when the device dropped a frame, which it has taken and counted; `ENOBUFS`; `ENETDOWN`.
    pub fn wake(&self) -> io::Result<()> {
        let nothing = std::ptr::null();
        // SAFETY: neither data nor an address is passed.
        let done = unsafe {
            libc::sendto(self.socket.fd(), nothing, 0, libc::MSG_DONTWAIT, nothing.cast(), 0)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes the frames back that were sent.
    #[inline]
    pub fn reap(&mut self, into: &mut Vec<Frame>) -> usize {
        let before = into.len();
        while let Some(address) = self.completed.take() {
            let frame = self.frame_at(address);
            into.push(frame);
        }
        self.completed.give_back();
        into.len() - before
    }

    /// Gives frames to receive into; those that find no room stay.
    #[inline]
    pub fn fill(&mut self, frames: &mut Vec<Frame>) {
        while let Some(frame) = frames.pop() {
            if !self.fill.put(self.address(&frame)) {
                frames.push(frame);
                break;
            }
        }
        self.fill.show();
    }

    /// The next frame that was received. Its place in the ring is free only after [`Xsk::give_back`].
    #[inline]
    pub fn receive(&mut self) -> Option<Received> {
        let descriptor = self.ring.take()?;
        let frame = self.frame_at(descriptor.addr);
        let offset = descriptor.addr % u64::from(self.shape.frame_bytes);
        Some(Received { frame, offset: offset as usize, len: descriptor.len as usize })
    }

    /// Frees the places in the ring of the frames that were received.
    #[inline]
    pub fn give_back(&self) {
        self.ring.give_back();
    }

    /// Its counters.
    pub fn statistics(&self) -> io::Result<Statistics> {
        // SAFETY: the struct consists of numbers.
        let found: libc::xdp_statistics = unsafe { option(&self.socket, libc::XDP_STATISTICS) }?;
        Ok(Statistics {
            rx_dropped: found.rx_dropped,
            rx_ring_full: found.rx_ring_full,
            fill_ring_empty: found.rx_fill_ring_empty_descs,
            tx_invalid: found.tx_invalid_descs,
        })
    }
}

/// Sockets that are waited for together.
#[derive(Debug)]
pub struct Arrivals(Vec<libc::pollfd>);

impl Arrivals {
    /// Of these sockets, which have to stay open while it is used.
    pub fn of<'a>(sockets: impl Iterator<Item = &'a Xsk>) -> Self {
        let poll =
            |xsk: &Xsk| libc::pollfd { fd: xsk.socket.fd(), events: libc::POLLIN, revents: 0 };
        Self(sockets.map(poll).collect())
    }

    /// Waits until one of them has received something; `Ok(false)` when the time is up or a signal came.
    pub fn wait(&mut self, timeout_ms: i32) -> io::Result<bool> {
        // SAFETY: the pointer and the number describe the list.
        match unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as _, timeout_ms) } {
            n if n >= 0 => Ok(n > 0),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}

fn socket() -> io::Result<Socket> {
    // SAFETY: takes numbers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, without another owner.
    Ok(Socket::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn register(socket: &Socket, shape: Shape) -> io::Result<Memory> {
    let bytes = shape.frames as usize * shape.frame_bytes as usize;
    let memory = Memory::anonymous(bytes)?;
    let region = libc::xdp_umem_reg {
        addr: memory.start() as u64,
        len: bytes as u64,
        chunk_size: shape.frame_bytes,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    socket.set_raw(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
    Ok(memory)
}

fn bind(socket: &Socket, shape: Shape, copying: Copying) -> io::Result<()> {
    let how = match copying {
        Copying::None => libc::XDP_ZEROCOPY,
        Copying::Each => libc::XDP_COPY,
    };
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

fn in_force(socket: &Socket) -> io::Result<Copying> {
    // SAFETY: the struct consists of numbers.
    let found: libc::xdp_options = unsafe { option(socket, libc::XDP_OPTIONS) }?;
    let is_in_place = found.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
    Ok(if is_in_place { Copying::None } else { Copying::Each })
}

/// An option; what an older kernel does not fill in is zero.
///
/// # Safety
///
/// Any bytes must be a valid `T`.
unsafe fn option<T>(socket: &Socket, name: libc::c_int) -> io::Result<T> {
    // SAFETY: any bytes are valid, says the caller.
    let mut value: T = unsafe { zeroed() };
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, for which any bytes are valid.
    let done = unsafe {
        let value = (&raw mut value).cast();
        libc::getsockopt(socket.fd(), libc::SOL_XDP, name, value, &raw mut len)
    };
    if done == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// The rings of a socket.
struct Rings {
    ring: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completed: Ring<u64>,
}

impl Rings {
    /// The kernel wants a fill and a completion ring of every socket. In the latter all frames find room, so that it
    /// never holds a sender up.
    fn open(socket: &Socket, shape: Shape) -> io::Result<Self> {
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
            ring: map(socket, places(ring_at), shape.ring, ring_page)?,
            fill: map(socket, places(at.fr), all, fill as libc::off_t)?,
            completed: map(socket, places(at.cr), all, completed as libc::off_t)?,
        })
    }
}

fn places(at: libc::xdp_ring_offset) -> Places {
    Places {
        producer: at.producer as usize,
        consumer: at.consumer as usize,
        flags: at.flags as usize,
        entries: at.desc as usize,
    }
}

fn map<T: Copy>(
    socket: &Socket,
    places: Places,
    entries: u32,
    page: libc::off_t,
) -> io::Result<Ring<T>> {
    let memory = Memory::of(socket.fd(), places.bytes::<T>(entries), page)?;
    Ring::new(memory, places, entries)
}
