//! AF_XDP sockets: whole frames from memory that is shared with the kernel.
//!
//! In copy mode the kernel sends inside of the call that wakes it, so that what it took is known when the call is over:
//! only that counts as sent, and the rest of the messages stays in the ring until the next call. A driver without copies
//! takes frames when it likes: there a frame in the ring counts as sent, and what was never taken is taken from the
//! count in the end.

use std::io::{self, ErrorKind};

use crate::LoadError;
use crate::engine::clock;
use crate::engine::xsk::{Frame, Xsk};
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::Transmit;
use crate::udp::load::transmit::frames::FrameFlow;
use crate::udp::result::XdpLedger;

/// Between two looks at a device that takes nothing or gives no frame back.
const PAUSE_NS: u64 = 50_000;
/// How long the device may take for the last frames.
const PATIENCE_NS: u64 = 2_000_000_000;

/// The engine.
#[derive(Debug)]
pub(in crate::udp::load) struct XskSockets {
    flows: Vec<FrameFlow>,
    socket: Xsk,
    /// The frame of each message.
    slots: Vec<Frame>,
    /// Frames that are neither a message's nor the kernel's.
    free: Vec<Frame>,
    /// Where payloads begin.
    payload_at: usize,
    size: usize,
    /// Messages in the ring that the kernel has not taken and that no call has counted; in copy mode only.
    queued: usize,
    pushed: u64,
    counted: u64,
    completed: u64,
    wakeups: u64,
}

impl Transmit for XskSockets {
    type Flow = FrameFlow;
    const HIDES_ERRORS: bool = false;

    fn new(mut flows: Vec<FrameFlow>, options: &LoadOptions) -> Result<Self, LoadError> {
        let socket = flows.first_mut().and_then(|flow| flow.xsk.take());
        let no_socket = || LoadError::io("--engine xdp", io::Error::other("no socket was opened"));
        let (mut socket, mut free) = socket.ok_or_else(no_socket)?;
        let heads = flows.iter().map(|flow| flow.frames.head_bytes);
        let payload_at = heads.max().unwrap_or(0);
        // All but the head and the first bytes of the payload is the same in every frame of every flow.
        for frame in &free {
            if let Some(flow) = flows.first() {
                let whole = &flow.frames.frame;
                let from = payload_at - flow.frames.head_bytes;
                socket.data(frame)[from..from + whole.len()].copy_from_slice(whole);
            }
        }
        let slots = free.split_off(free.len().saturating_sub(options.batch));
        Ok(Self {
            flows,
            socket,
            slots,
            free,
            payload_at,
            size: options.size,
            queued: 0,
            pushed: 0,
            counted: 0,
            completed: 0,
            wakeups: 0,
        })
    }

    #[inline]
    fn payload(&mut self, i: usize) -> &mut [u8] {
        &mut self.socket.data(&self.slots[i])[self.payload_at..self.payload_at + self.size]
    }

    #[inline]
    fn address(&mut self, flow: usize, messages: usize) {
        let frames = &self.flows[flow].frames;
        let from = self.payload_at - frames.head_bytes;
        for slot in &self.slots[..messages] {
            frames.write_head(&mut self.socket.data(slot)[from..self.payload_at + self.size]);
        }
    }

    #[inline]
    fn send(&mut self, flow: usize, from: usize, to: usize) -> io::Result<usize> {
        self.reap();
        let pushed = self.push(flow, from + self.queued, to);
        let taken = if self.socket.is_copying {
            self.queued += pushed;
            self.hand_over()?;
            let left = self.socket.waiting() as usize;
            std::mem::replace(&mut self.queued, left) - left
        } else {
            if self.socket.wants_wake() {
                self.wake()?;
            }
            pushed
        };
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.counted += taken as u64;
        Ok(taken)
    }

    /// Nothing tells when frames come back; the next [`Transmit::send`] wakes the kernel and looks.
    fn wait_for_room(&self, _flow: usize) -> io::Result<bool> {
        clock::sleep_until(clock::now_ns() + PAUSE_NS);
        Ok(true)
    }

    fn finish(&mut self) -> (i64, Option<XdpLedger>) {
        let until = clock::now_ns() + PATIENCE_NS;
        loop {
            let ended = self.hand_over().is_err();
            self.reap();
            let left = u64::from(self.socket.waiting());
            let is_done = left == 0 && self.completed == self.pushed;
            if is_done || ended || clock::now_ns() > until {
                break;
            }
            clock::sleep_until(clock::now_ns() + PAUSE_NS);
        }
        let invalid = self.socket.statistics().map_or(0, |found| found.tx_invalid);
        let handed_over = self.pushed - u64::from(self.socket.waiting());
        let ledger = XdpLedger {
            handed_over_packets: handed_over,
            completed_packets: self.completed,
            invalid_packets: invalid,
            wakeups_count: self.wakeups,
        };
        (handed_over.saturating_sub(invalid) as i64 - self.counted as i64, Some(ledger))
    }
}

impl XskSockets {
    /// Puts the messages `from..to` into the ring, as far as there is room and a fresh frame for each; returns how many.
    #[inline]
    fn push(&mut self, flow: usize, from: usize, to: usize) -> usize {
        let frames = &self.flows[flow].frames;
        let (offset, len) = (self.payload_at - frames.head_bytes, frames.frame.len());
        let mut next = from;
        while next < to && self.socket.room() > 0 {
            let Some(fresh) = self.free.pop() else { break };
            let frame = std::mem::replace(&mut self.slots[next], fresh);
            if let Err(frame) = self.socket.send(frame, offset, len) {
                // There was room.
                self.free.push(frame);
                break;
            }
            next += 1;
        }
        self.socket.show();
        self.pushed += (next - from) as u64;
        next - from
    }

    #[inline]
    fn reap(&mut self) {
        self.completed += self.socket.reap(&mut self.free) as u64;
    }

    /// Wakes the kernel until it has taken all or takes nothing more.
    fn hand_over(&mut self) -> io::Result<()> {
        let mut left = self.socket.waiting();
        while left > 0 && self.socket.wants_wake() {
            let has_dropped = self.wake()?;
            let now = self.socket.waiting();
            // What the device drops first in a call shows as taken only in the next one (`__xsk_generic_xmit`).
            if now == left && !has_dropped {
                break;
            }
            left = now;
        }
        Ok(())
    }

    /// Wakes the kernel; whether the device has dropped a frame then.
    #[inline]
    fn wake(&mut self) -> io::Result<bool> {
        self.wakeups += 1;
        let Err(error) = self.socket.wake() else { return Ok(false) };
        match error.raw_os_error() {
            Some(libc::EBUSY) => Ok(true),
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(false),
            Some(libc::ENETDOWN) => Err(io::Error::other("the device went down")),
            Some(libc::ENXIO | libc::ENODEV) => Err(io::Error::other("the device is gone")),
            _ => Err(error),
        }
    }
}
