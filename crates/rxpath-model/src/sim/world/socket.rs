//! How packets get into sockets and out of them.

use super::World;
use crate::sim::parameters::Release;
use crate::sim::stage::Packet;
use crate::sim::stream::News;

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
            self.tally.figures.wasted_ns += spent;
            self.lost();
            return;
        }
        socket.rmem += truesize;
        socket.unread += truesize;
        socket.queue.push(now, packet);
        if socket.asleep > 0 {
            self.wake_reader(s);
        }
        self.tell(News::Acknowledged);
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
