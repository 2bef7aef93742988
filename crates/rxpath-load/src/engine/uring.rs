//! An io_uring for sockets: multishot accept and receive into provided buffers, sends from memory it owns.
//!
//! All memory that the kernel reads or writes belongs to the [`Uring`]: receives go into its buffers, sends come from
//! its blocks. A completion returns a token that only completions create and that is consumed when released: a
//! [`Filled`] buffer, which the kernel does not write to meanwhile, and an accepted [`Socket`].

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use io_uring::types::{self, BufRingEntry, CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::LoadError;
use crate::engine::memory::Memory;
use crate::engine::socket::Socket;

/// What completions of [`Uring::accept`] have as their `data`; no other order may have it.
pub const ACCEPT: u64 = u64::MAX;
/// Messages up to this long fit into any empty send buffer (`SOCK_MIN_SNDBUF` is 4608 bytes with its overhead).
pub const SURELY_FITS_BYTES: usize = 2048;
/// The one group of provided buffers.
const GROUP: u16 = 0;
/// Completions that fit before the kernel has to keep them aside.
const COMPLETIONS: u32 = 8192;

/// What is asked of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Submissions that fit.
    pub entries: u32,
    /// Provided buffers; a power of two, at most 32,768.
    pub buffers: u16,
    /// Bytes of each.
    pub buffer_bytes: usize,
}

/// A ring of the calling thread.
pub struct Uring {
    // Dropped first: afterwards the kernel knows nothing of the memory below.
    ring: IoUring,
    buffers: Buffers,
    blocks: Vec<Arc<[u8]>>,
    /// No other ring of this process has this number.
    number: u64,
}

/// Rings that were made so far.
static RINGS: AtomicU64 = AtomicU64::new(0);

/// A buffer that the kernel has filled and does not touch until it is released.
#[derive(Debug)]
pub struct Filled {
    id: u16,
    /// The ring that it is of.
    ring: u64,
}

/// Bytes to send: a part of one of the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index of the block.
    pub block: usize,
    /// Which of its bytes.
    pub range: Range<usize>,
}

/// What the kernel did.
#[derive(Debug)]
pub struct Done {
    /// As given with the order.
    pub data: u64,
    /// Bytes, a descriptor, or a negative errno.
    pub result: i32,
    /// The buffer that was filled.
    pub buffer: Option<Filled>,
    /// The connection that was accepted; it closes when nobody takes it.
    pub accepted: Option<Socket>,
    /// The order stands: more will come of it.
    pub has_more: bool,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("buffers", &self.buffers).finish_non_exhaustive()
    }
}

impl Uring {
    /// A ring for the calling thread, with the memory that it may send.
    ///
    /// **Source** `IORING_SETUP_DEFER_TASKRUN`, io_uring/io_uring.c (6.1): completions are done in the waits of
    /// this thread, not in interrupts of whatever it does.
    pub fn new(shape: Shape, blocks: Vec<Arc<[u8]>>) -> Result<Self, LoadError> {
        let refused = |what: &str| {
            let what = format!("--engine uring ({what})");
            move |source| LoadError::Unsupported { what, source }
        };
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(shape.entries)
            .map_err(refused(
                "io_uring with deferred task work, Linux 6.1; kernel.io_uring_disabled must allow it",
            ))?;
        let buffers = Buffers::new(shape.buffers, shape.buffer_bytes)
            .map_err(|e| LoadError::io("mmap", e))?;
        // SAFETY: the entries are aligned to a page and live until after the ring is gone (the order of the fields).
        unsafe {
            let at = buffers.entries.start() as u64;
            ring.submitter().register_buf_ring_with_flags(at, shape.buffers, GROUP, 0)
        }
        .map_err(refused("provided buffers, Linux 5.19"))?;
        let number = RINGS.fetch_add(1, Ordering::Relaxed);
        let mut uring = Self { ring, buffers, blocks, number };
        for id in 0..shape.buffers {
            uring.buffers.put(id);
        }
        uring.buffers.show();
        Ok(uring)
    }

    /// Whether this process gets a ring: kernel, `kernel.io_uring_disabled`, seccomp and memory limits allow it.
    pub fn is_allowed() -> bool {
        Self::new(Shape { entries: 8, buffers: 8, buffer_bytes: 4096 }, Vec::new()).is_ok()
    }

    /// Lets waits poll the devices of the sockets.
    ///
    /// **Source** `IORING_REGISTER_NAPI`, io_uring/napi.c (6.9).
    pub fn set_busy(&self, usecs: u32, prefer: bool) -> io::Result<()> {
        let mut napi = types::Napi::new().set_busy_poll_timeout(usecs).set_prefer_busy_poll(prefer);
        self.ring.submitter().register_napi(&mut napi)
    }

    /// Puts an order with `data` into the queue.
    fn order(&mut self, entry: squeue::Entry, data: u64) -> io::Result<()> {
        if data == ACCEPT {
            return Err(io::Error::other("this number is that of accepted connections"));
        }
        self.push(&entry.user_data(data))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to belongs to `self` (see the callers) or is no pointer.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Orders to accept every connection; its completions have [`ACCEPT`] as their data.
    pub fn accept(&mut self, listener: &Socket) -> io::Result<()> {
        let order = opcode::AcceptMulti::new(types::Fd(listener.fd())).flags(libc::SOCK_CLOEXEC);
        self.push(&order.build().user_data(ACCEPT))
    }

    /// Orders to receive everything that comes.
    pub fn receive(&mut self, fd: RawFd, data: u64) -> io::Result<()> {
        self.order(opcode::RecvMulti::new(types::Fd(fd), GROUP).build(), data)
    }

    /// Requests a completion when a socket is writable, or broken: the outcome of a connect.
    pub fn writable(&mut self, fd: RawFd, data: u64) -> io::Result<()> {
        self.order(opcode::PollAdd::new(types::Fd(fd), libc::POLLOUT as u32).build(), data)
    }

    /// Orders to send these bytes, all of them, unless an error stops it. Only one at a time per socket.
    pub fn send(&mut self, fd: RawFd, region: Region, data: u64) -> io::Result<()> {
        let order = self.sending(fd, region)?;
        self.order(order, data)
    }

    /// The same without a completion, unless it fails. **Source** `IOSQE_CQE_SKIP_SUCCESS`, Linux 5.17.
    pub fn send_quietly(&mut self, fd: RawFd, region: Region, data: u64) -> io::Result<()> {
        let order = self.sending(fd, region)?.flags(squeue::Flags::SKIP_SUCCESS);
        self.order(order, data)
    }

    fn sending(&self, fd: RawFd, region: Region) -> io::Result<squeue::Entry> {
        let bytes = self
            .blocks
            .get(region.block)
            .and_then(|block| block.get(region.range))
            .ok_or_else(|| io::Error::other("no such bytes to send"))?;
        let order = opcode::Send::new(types::Fd(fd), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        Ok(order.build())
    }

    /// Cancels a request; its last completion has `ECANCELED`.
    pub fn cancel(&mut self, order: u64, data: u64) -> io::Result<()> {
        self.order(opcode::AsyncCancel::new(order).build(), data)
    }

    /// Submits, and waits until `want` completions are there or the time is up.
    ///
    /// **Errors** none for a signal or for the end of the time.
    pub fn wait(&mut self, want: usize, timeout: Duration) -> io::Result<()> {
        let time = Timespec::from(timeout);
        let args = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(want, &args) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Moves the completions into `into`; returns how many there were.
    pub fn reap(&mut self, into: &mut Vec<Done>) -> usize {
        let before = into.len();
        for entry in self.ring.completion() {
            let (data, result) = (entry.user_data(), entry.result());
            let ring = self.number;
            into.push(Done {
                data,
                result,
                buffer: cqueue::buffer_select(entry.flags()).map(|id| Filled { id, ring }),
                // SAFETY: only orders to accept have this data (see `order`), and a result of theirs that is no error
                // is a descriptor that nobody else owns. Each completion is taken from the queue once.
                accepted: (data == ACCEPT && result >= 0)
                    .then(|| Socket::from(unsafe { OwnedFd::from_raw_fd(result) })),
                has_more: cqueue::more(entry.flags()),
            });
        }
        into.len() - before
    }

    /// What was received into a buffer; nothing when it is another ring's.
    pub fn received<'a>(&'a self, buffer: &'a Filled, len: usize) -> &'a [u8] {
        if buffer.ring != self.number {
            return &[];
        }
        // SAFETY: the buffer came with a completion of this ring and was not released, which would have consumed it.
        unsafe { self.buffers.bytes(buffer.id, len) }
    }

    /// Releases a buffer; the kernel sees it after [`Uring::show_buffers`]. A buffer of another ring is ignored.
    // By value: the caller no longer has a released buffer.
    #[expect(clippy::needless_pass_by_value)]
    pub fn give_back(&mut self, buffer: Filled) {
        if buffer.ring == self.number {
            self.buffers.put(buffer.id);
        }
    }

    /// Shows the released buffers to the kernel.
    pub fn show_buffers(&mut self) {
        self.buffers.show();
    }

    /// Cancels all requests and waits until none is left, 1 s at most.
    pub fn cancel_all(&mut self) {
        let second = Timespec::new().sec(1);
        // Nothing to cancel is an error for the kernel and none for us.
        let _ = self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any());
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Closing the ring ends its orders some time later: the kernel must not write to buffers that are gone by then.
        self.cancel_all();
    }
}

impl AsRawFd for Uring {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

/// A ring of provided buffers. **Source** `struct io_uring_buf_ring`, include/uapi/linux/io_uring.h.
#[derive(Debug)]
struct Buffers {
    /// The entries; the kernel pins whole pages.
    entries: Memory,
    data: Memory,
    count: u16,
    size: usize,
    tail: u16,
}

impl Buffers {
    fn new(count: u16, size: usize) -> io::Result<Self> {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        let size = size.clamp(64, 1 << 20);
        let entries = Memory::anonymous(usize::from(count) * size_of::<BufRingEntry>())?;
        let data = Memory::anonymous(usize::from(count) * size)?;
        Ok(Self { entries, data, count, size, tail: 0 })
    }

    fn first_entry(&self) -> *mut BufRingEntry {
        self.entries.start().cast()
    }

    /// The first bytes of a buffer.
    ///
    /// # Safety
    ///
    /// The kernel must not have the buffer for as long as they are borrowed.
    unsafe fn bytes(&self, id: u16, len: usize) -> &[u8] {
        let at = usize::from(id % self.count) * self.size;
        // SAFETY: the buffer lies within `data`, which was zeroed at first, and the caller keeps the kernel away.
        unsafe { std::slice::from_raw_parts(self.data.start().add(at), len.min(self.size)) }
    }

    fn put(&mut self, id: u16) {
        let id = id % self.count;
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: slot and buffer lie within their memory; the kernel reads an entry only behind the tail, which
        // `show` moves. Only address, length and id are written: the tail shares the first entry's last field.
        unsafe {
            let entry = &mut *self.first_entry().add(slot);
            entry.set_addr(self.data.start().add(usize::from(id) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn show(&mut self) {
        // SAFETY: the tail lies in the first entry; the kernel reads it concurrently, hence the atomic store.
        unsafe {
            let tail = BufRingEntry::tail(self.first_entry()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the entries say: address, length and number of each.
    fn entries(buffers: &Buffers) -> Vec<(u64, u32, u16)> {
        let entry = |slot: usize| {
            // SAFETY: the entry lies within its memory, and no kernel knows of it.
            let entry = unsafe { &*buffers.first_entry().add(slot) };
            (entry.addr(), entry.len(), entry.bid())
        };
        (0..usize::from(buffers.count)).map(entry).collect()
    }

    #[test]
    fn buffers_lie_side_by_side_and_come_back_at_the_tail() {
        let mut buffers = Buffers::new(4, 64).unwrap();
        for id in 0..4 {
            buffers.put(id);
        }
        buffers.show();
        let data = buffers.data.start() as u64;
        let all: Vec<_> = (0..4u16).map(|id| (data + 64 * u64::from(id), 64, id)).collect();
        assert_eq!(entries(&buffers), all);
        // Whatever number comes back, it is one of ours.
        buffers.put(6);
        buffers.show();
        assert_eq!((entries(&buffers)[0], buffers.tail), (all[2], 5));
        // SAFETY: no kernel has any of them.
        let bytes = unsafe { buffers.bytes(3, 1000) };
        assert_eq!(bytes, [0; 64]);
    }

    #[test]
    fn a_buffer_of_another_ring_is_neither_read_nor_taken() {
        let shape = Shape { entries: 8, buffers: 2, buffer_bytes: 64 };
        let Ok(mut uring) = Uring::new(shape, Vec::new()) else { return };
        let (number, tail) = (uring.number, uring.buffers.tail);
        let stranger = || Filled { id: 0, ring: number + 1 };
        assert!(uring.received(&stranger(), 64).is_empty());
        uring.give_back(stranger());
        assert_eq!(uring.buffers.tail, tail);
        assert!(uring.receive(-1, ACCEPT).is_err());
    }
}
