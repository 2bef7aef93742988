//! Several threads are full on one socket: they take turns at its queue's lock.

use super::application::{confidence, evidence};
use crate::reader::lock_wait;
use crate::rules::prelude::*;

pub fn claim(view: &View) -> Claim {
    let reader = &view.reader;
    let (stage, sure, sentence, share) = match lock_wait(view) {
        Some((lock, waited)) => (
            Stage::SocketLock,
            confidence(view),
            format!(
                "the lock of one socket is the limit: {} share it, and a reader waits for {} {} of the window",
                threads(reader.active),
                lock.lock,
                percent(waited)
            ),
            line(
                format!(
                    "{} waits for {} of the socket on port {}, {} of the window in all; waiting for it counts as running",
                    count(lock.waits_count),
                    lock.lock,
                    lock.port,
                    percent(lock.waited_ratio)
                ),
                "lock:contention_begin and contention_end",
            ),
        ),
        // That the lock costs them their time is likely, not measured.
        None => (
            Stage::Application,
            confidence(view).min(Confidence::Fair),
            format!(
                "the receiving application is the limit: {} share one socket, are full on {} and still too slow",
                threads(reader.active),
                cpus(&reader.cpus)
            ),
            line(
                format!(
                    "{} read one socket; the time they spend on its lock (sk_receive_queue.lock, udp_sk reader_queue) counts as running and is not measured here",
                    threads(reader.active)
                ),
                "the receiver's sockets and threads",
            ),
        ),
    };
    Claim::at_socket(view, stage, sure, sentence)
        .on(reader.lead.cpu)
        .because([share])
        .because(evidence(view))
        .remedy(Remedy::socket_each(reader.active))
        .remedy(Remedy::ONE_READER)
}
