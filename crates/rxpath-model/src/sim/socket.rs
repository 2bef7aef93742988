//! Sockets: which packets are admitted, and when memory is freed.
//!
//! **Source** `__udp_enqueue_schedule_skb`, `udp_rmem_release`, `__skb_recv_udp` (net/ipv4/udp.c): the reader splices
//! the receive queue into a queue of its own; memory of read datagrams is freed when a quarter of the buffer has
//! accumulated or its own queue is empty.

use super::parameters::{Parameters, Release};
use super::stage::{Fifo, Packet};
use super::world::World;

/// A receiving socket.
#[derive(Debug, Default)]
pub(super) struct Socket {
    pub queue: Fifo,
    /// Packets at the head of the queue that the reader has spliced.
    readers_own: u64,
    /// Memory of queued packets, and of read packets not yet freed.
    pub rmem: u64,
    deficit: u64,
    /// Memory of what is queued alone.
    pub unread: u64,
    pub drops: u64,
    pub readers: Vec<usize>,
    /// Readers that sleep and have not been woken.
    pub asleep: u64,
}

impl Socket {
    pub(super) fn new(p: &Parameters, socket: usize) -> Self {
        Self {
            queue: Fifo::new(p.places()),
            readers: (0..p.readers).filter(|reader| reader % p.sockets == socket).collect(),
            ..Self::default()
        }
    }

    #[inline]
    fn admits(&self, p: &Parameters, truesize: u64) -> bool {
        if p.old_admission {
            self.rmem <= p.rcvbuf
        } else {
            self.rmem + truesize <= p.rcvbuf || self.rmem == 0
        }
    }

    /// Frees the memory of read packets, as `udp_rmem_release` does.
    #[inline]
    fn give_back(&mut self, p: &Parameters, truesize: u64) {
        self.deficit += truesize;
        if self.deficit >= p.rcvbuf / 4 || self.readers_own == 0 {
            self.rmem -= self.deficit;
            self.deficit = 0;
        }
    }
}

impl World<'_> {
    /// A packet reaches its socket after `spent` ns of softirq time.
    #[inline]
    pub(super) fn queue_at_socket(&mut self, packet: Packet, spent: u64) {
        let now = self.now;
        let s = usize::from(self.steering.of(packet.flow).socket);
        let truesize = u64::from(packet.truesize);
        let socket = &mut self.sockets[s];
        if !socket.admits(self.p, truesize) {
            socket.drops += 1;
            self.tally.wasted_ns += spent;
            self.lost();
            return;
        }
        socket.rmem += truesize;
        socket.unread += truesize;
        socket.queue.push(now, packet);
        let asleep = socket.asleep > 0;
        if asleep {
            self.wake_reader(s);
        }
        if let Some(stream) = self.source.stream() {
            stream.queued(now);
            self.listen();
        }
    }

    /// The reader takes a packet.
    #[inline]
    pub(super) fn take_from_socket(&mut self, s: usize) -> Option<Packet> {
        let socket = &mut self.sockets[s];
        if socket.readers_own == 0 {
            socket.readers_own = socket.queue.len();
        }
        let packet = socket.queue.pop(self.now)?;
        socket.readers_own -= 1;
        let truesize = u64::from(packet.truesize);
        socket.unread -= truesize;
        match self.p.release {
            Release::Lazy => socket.give_back(self.p, truesize),
            Release::Read => socket.rmem -= truesize,
            Release::Done => {}
        }
        Some(packet)
    }

    /// The reader is done with a packet.
    #[inline]
    pub(super) fn done_with(&mut self, s: usize, packet: &Packet) {
        if self.p.release == Release::Done {
            self.sockets[s].rmem -= u64::from(packet.truesize);
        }
    }
}
