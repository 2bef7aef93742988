//! Sockets: which packets are admitted, and when memory is freed.
//!
//! **Source** `__udp_enqueue_schedule_skb`, `udp_rmem_release`, `__skb_recv_udp` (net/ipv4/udp.c): the reader splices
//! the receive queue into a queue of its own; memory of read datagrams is freed when a quarter of the buffer has
//! accumulated or its own queue is empty.

use super::parameters::Parameters;
use super::stage::Fifo;

/// A receiving socket.
#[derive(Debug, Default)]
pub(super) struct Socket {
    pub queue: Fifo,
    /// Packets at the head of the queue that the reader has spliced.
    pub readers_own: u64,
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
    pub(super) fn admits(&self, p: &Parameters, truesize: u64) -> bool {
        if p.old_admission {
            self.rmem <= p.rcvbuf
        } else {
            self.rmem + truesize <= p.rcvbuf || self.rmem == 0
        }
    }

    /// Frees the memory of read packets, as `udp_rmem_release` does.
    #[inline]
    pub(super) fn give_back(&mut self, p: &Parameters, truesize: u64) {
        self.deficit += truesize;
        if self.deficit >= p.rcvbuf / 4 || self.readers_own == 0 {
            self.rmem -= self.deficit;
            self.deficit = 0;
        }
    }
}
