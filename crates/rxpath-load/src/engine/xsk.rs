//! AF_XDP sockets: frames in memory that is shared with the kernel, and the rings that hand them over.
//!
//! Each [`Frame`] has one owner: a program that holds its token may write to it, and loses the token with the frame when
//! it hands it to the kernel. Only the kernel's rings give it back. A token knows its socket: another socket does not
//! take it. The socket belongs to a descriptor of this process, so that nothing of it stays when the process ends,
//! however it ends.
//!
//! **Source** Documentation/networking/af_xdp.rst, net/xdp/xsk.c; wake-ups on request since Linux 5.4.

mod arrivals;
mod calls;
mod ring;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::memory::Memory;
use crate::engine::socket::Socket;
pub use arrivals::Arrivals;
use calls::{Rings, bind, is_copying, option, register, socket};
use ring::Ring;

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

/// Sockets that were made so far.
static SOCKETS: AtomicU64 = AtomicU64::new(0);

/// A frame of the shared memory that the program owns.
#[derive(Debug)]
pub struct Frame {
    index: u32,
    /// The socket that it is of.
    socket: u64,
}

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
    /// The kernel copies frames between the shared memory and the driver, which otherwise reads and writes them in place.
    pub(crate) is_copying: bool,
    /// No other socket of this process has this number.
    number: u64,
}

impl Xsk {
    /// Opens a socket, and gives all frames of its memory with it; `copies`: the kernel shall copy frames.
    ///
    /// **Errors** which step was refused; `EBUSY` of [`Step::Bind`] only after half a second.
    pub fn open(shape: Shape, copies: bool) -> Result<(Self, Vec<Frame>), Refusal> {
        let until = Instant::now() + BUSY_PATIENCE;
        loop {
            match Self::open_once(shape, copies) {
                Err(refusal) if refusal.is_busy() && Instant::now() < until => {
                    // why: the kernel does not say when its work item has run; the loop ends after `BUSY_PATIENCE`.
                    std::thread::sleep(BUSY_PAUSE);
                }
                other => return other,
            }
        }
    }

    fn open_once(shape: Shape, copies: bool) -> Result<(Self, Vec<Frame>), Refusal> {
        let refused = |step| move |source| Refusal { step, source };
        let socket = socket().map_err(refused(Step::Socket))?;
        let memory = register(&socket, shape).map_err(refused(Step::Memory))?;
        let rings = Rings::open(&socket, shape).map_err(refused(Step::Rings))?;
        bind(&socket, shape, copies).map_err(refused(Step::Bind))?;
        let is_copying = is_copying(&socket).map_err(refused(Step::Bind))?;
        let (xsk, frames) = Self::of(socket, rings, memory, shape, is_copying);
        if shape.side == Side::Send {
            // Older kernels keep their 32.
            let budget = shape.ring.max(32);
            let _ = xsk.socket.set(libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, budget as i32);
            if !is_copying {
                // Some drivers have zero copy only while an XDP program runs, and say it here.
                xsk.wake().map_err(refused(Step::Wake))?;
            }
        }
        Ok((xsk, frames))
    }

    /// The socket of these parts, with the only tokens of its frames.
    fn of(
        socket: Socket,
        rings: Rings,
        memory: Memory,
        shape: Shape,
        is_copying: bool,
    ) -> (Self, Vec<Frame>) {
        let Rings { ring, fill, completed } = rings;
        let number = SOCKETS.fetch_add(1, Ordering::Relaxed);
        let xsk = Self { socket, ring, fill, completed, memory, shape, is_copying, number };
        let frames = (0..shape.frames).map(|index| Frame { index, socket: number }).collect();
        (xsk, frames)
    }

    /// The socket, for its options and for waiting.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether the ring is that of frames to send: a producer's calls are for this one, a consumer's for the other.
    fn is_sender(&self) -> bool {
        self.shape.side == Side::Send
    }

    /// The bytes of a frame; none when it is another socket's.
    #[inline]
    pub fn data(&mut self, frame: &Frame) -> &mut [u8] {
        if frame.socket != self.number {
            return &mut [];
        }
        let (index, bytes) = (frame.index % self.shape.frames, self.shape.frame_bytes as usize);
        // SAFETY: the frame is in the memory of this socket. Its token shows that the kernel does not have it, there is
        // one token for each frame, and the mutable borrow keeps the other frames of this socket from being borrowed
        // meanwhile.
        unsafe {
            let at = self.memory.start().add(index as usize * bytes);
            std::slice::from_raw_parts_mut(at, bytes)
        }
    }

    fn address(&self, frame: &Frame) -> u64 {
        u64::from(frame.index) * u64::from(self.shape.frame_bytes)
    }

    /// The frame of an address that the kernel gave.
    fn frame_at(&self, address: u64) -> Frame {
        let index = (address / u64::from(self.shape.frame_bytes)) as u32 % self.shape.frames;
        Frame { index, socket: self.number }
    }

    /// Frames that can be sent now; none by a receiver.
    #[inline]
    pub fn room(&mut self) -> u32 {
        if self.is_sender() { self.ring.room() } else { 0 }
    }

    /// Puts `len` bytes of a frame from `offset` on behind those to send. The frame comes back when the ring is full,
    /// when it is another socket's, when the bytes are not all in it, and when this socket is a receiver.
    ///
    /// The kernel sees them with the next [`Xsk::show`].
    #[inline]
    pub fn send(&mut self, frame: Frame, offset: usize, len: usize) -> Result<(), Frame> {
        let bytes = self.shape.frame_bytes as usize;
        // The kernel gives the frame back by its address: with an offset behind it that would be another frame's.
        let is_inside = offset < bytes && len <= bytes - offset;
        if frame.socket != self.number || !is_inside || !self.is_sender() {
            return Err(frame);
        }
        let addr = self.address(&frame) + offset as u64;
        let descriptor = libc::xdp_desc { addr, len: len as u32, options: 0 };
        if self.ring.put(descriptor) { Ok(()) } else { Err(frame) }
    }

    /// Lets the kernel see what is to be sent.
    #[inline]
    pub fn show(&self) {
        if self.is_sender() {
            self.ring.show();
        }
    }

    /// Frames to send that the kernel has not taken.
    #[inline]
    pub fn waiting(&mut self) -> u32 {
        if self.is_sender() { self.ring.waiting() } else { 0 }
    }

    /// Whether the kernel sends only after a [`Xsk::wake`]. In copy mode it always does.
    #[inline]
    pub fn wants_wake(&self) -> bool {
        self.is_copying || self.ring.flags() & libc::XDP_RING_NEED_WAKEUP != 0
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

    /// Gives frames to receive into; those that find no room stay. A frame of another socket is ignored.
    #[inline]
    pub fn fill(&mut self, frames: &mut Vec<Frame>) {
        while let Some(frame) = frames.pop() {
            if frame.socket == self.number && !self.fill.put(self.address(&frame)) {
                frames.push(frame);
                break;
            }
        }
        self.fill.show();
    }

    /// The next frame that was received. Its place in the ring is free only after [`Xsk::give_back`].
    #[inline]
    pub fn receive(&mut self) -> Option<Received> {
        if self.is_sender() {
            return None;
        }
        let descriptor = self.ring.take()?;
        let frame = self.frame_at(descriptor.addr);
        let offset = descriptor.addr % u64::from(self.shape.frame_bytes);
        Some(Received { frame, offset: offset as usize, len: descriptor.len as usize })
    }

    /// Frees the places in the ring of the frames that were received.
    #[inline]
    pub fn give_back(&self) {
        if !self.is_sender() {
            self.ring.give_back();
        }
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

#[cfg(test)]
mod tests {
    use super::ring::bytes;
    use super::*;

    const FRAME_BYTES: u32 = 2048;

    fn ring<T: Copy>() -> Ring<T> {
        let places = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };
        Ring::new(Memory::anonymous(bytes::<T>(places, 4)).unwrap(), places, 4).unwrap()
    }

    /// The memory and the rings of a socket, without a kernel behind them.
    fn xsk(side: Side) -> (Xsk, Vec<Frame>) {
        let shape =
            Shape { side, device: 0, queue: 0, frames: 2, frame_bytes: FRAME_BYTES, ring: 4 };
        let socket = Socket::udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let memory = Memory::anonymous(2 * FRAME_BYTES as usize).unwrap();
        let rings = Rings { ring: ring(), fill: ring(), completed: ring() };
        Xsk::of(socket, rings, memory, shape, true)
    }

    #[test]
    fn a_frame_of_another_socket_is_neither_written_to_nor_handed_over() {
        let (mut one, mut own) = xsk(Side::Send);
        let (_other, mut foreign) = xsk(Side::Send);
        let (frame, stranger) = (own.pop().unwrap(), foreign.pop().unwrap());
        assert_eq!(one.data(&frame).len(), FRAME_BYTES as usize);
        assert!(one.data(&stranger).is_empty());
        assert!(one.send(stranger, 0, 64).is_err());
        assert_eq!(one.waiting(), 0);
        one.fill(&mut foreign);
        assert_eq!(one.fill.waiting(), 0);
        one.fill(&mut vec![frame]);
        assert_eq!(one.fill.waiting(), 1);
    }

    #[test]
    fn bytes_beyond_the_frame_are_not_sent_and_the_frame_comes_back() {
        let (mut xsk, mut frames) = xsk(Side::Send);
        let mut frame = frames.pop().unwrap();
        for (offset, len) in [(2048, 64), (2048, 0), (2047, 2), (0, 2049), (1, usize::MAX)] {
            frame = xsk.send(frame, offset, len).unwrap_err();
            assert_eq!(xsk.waiting(), 0, "{len} bytes from {offset} on");
        }
        xsk.send(frame, 2047, 1).unwrap();
        assert_eq!(xsk.waiting(), 1);
    }

    #[test]
    fn a_receiver_sends_nothing_and_a_sender_receives_nothing() {
        let (mut receiver, mut frames) = xsk(Side::Receive);
        assert!(receiver.send(frames.pop().unwrap(), 0, 64).is_err());
        receiver.show();
        assert_eq!((receiver.room(), receiver.waiting()), (0, 0));
        assert!(receiver.receive().is_none());
        let (mut sender, mut frames) = xsk(Side::Send);
        sender.send(frames.pop().unwrap(), 0, 64).unwrap();
        sender.show();
        assert!(sender.receive().is_none(), "it would make a second token of the frame");
        sender.give_back();
        assert_eq!(sender.waiting(), 1);
    }
}
