//! Ends a connection, whose work is done or which is lost, and says when the next one begins.

use nix::errno::Errno;

use super::Client;
use crate::http::load::conn::Phase;
use crate::http::load::meter::Kind;
use crate::http::load::wire::Wire;
use crate::http::response::Eof;

impl<W: Wire> Client<'_, W> {
    /// The server ended the connection.
    pub(in crate::http::load) fn ended(&mut self, slot: usize) {
        self.now_ns = self.wire.now_ns();
        let conn = &mut self.conns[slot];
        match conn.reader.eof() {
            Eof::Whole(reply) if conn.outstanding > 0 => {
                self.reply(slot, reply);
                self.renew(slot);
            }
            Eof::Between if conn.outstanding == 0 => {
                let pause = conn.pause_ns();
                self.drop_socket(slot);
                self.later(slot, pause);
            }
            _ => self.fail(slot, Kind::Read, None),
        }
    }

    /// Closes a connection that has done its work, and opens the next; unanswered requests go along.
    pub(super) fn renew(&mut self, slot: usize) {
        self.drop_socket(slot);
        self.conns[slot].again = self.conns[slot].outstanding > 0;
        self.later(slot, 0);
    }

    /// The connection is lost, and with it what was in flight there.
    #[cold]
    pub(in crate::http::load) fn fail(&mut self, slot: usize, kind: Kind, errno: Option<Errno>) {
        let conn = &mut self.conns[slot];
        let lost = std::mem::take(&mut conn.outstanding);
        conn.again = false;
        self.in_flight -= lost as u64;
        let least = usize::from(matches!(kind, Kind::Connect | Kind::Malformed));
        let mut pause = conn.pause_ns();
        if kind == Kind::Connect {
            pause = pause.max(conn.pause_ns());
        }
        // A count is reached by replies or by lost requests. A server that cannot be reached gives neither.
        if self.failing_since_ns == 0 {
            self.failing_since_ns = self.now_ns;
        } else if self.now_ns.saturating_sub(self.failing_since_ns) >= self.config.give_up_ns {
            self.gave_up |= self.config.end_ns == u64::MAX && self.config.requests < u64::MAX;
        }
        self.meter.live.lost.add(lost as u64);
        self.meter.error(kind, lost.max(least) as u64, errno);
        self.drop_socket(slot);
        self.later(slot, pause);
    }

    fn drop_socket(&mut self, slot: usize) {
        let conn = &mut self.conns[slot];
        if conn.phase == Phase::Connecting {
            self.connecting -= 1;
        }
        let (was_open, generation) = (conn.phase != Phase::Closed, conn.generation);
        conn.close();
        if std::mem::take(&mut conn.idle) > 0 {
            self.idle.retain(|idle| idle.slot != slot);
        }
        if was_open {
            self.wire.close(slot, generation);
        }
    }

    fn later(&mut self, slot: usize, pause_ns: u64) {
        if pause_ns == 0 {
            self.make_ready(slot);
        } else {
            let at = self.now_ns + pause_ns;
            self.conns[slot].since_ns = at;
            self.next_timer_ns = self.next_timer_ns.min(at);
        }
    }
}
