//! Datagrams are dropped at the socket: each cause has its claim, and the first one that the evidence shows is made.

use super::{
    application, descheduled, livelock, nobody_reads, not_run, shared_socket, socket_queue, uneven,
    waits_elsewhere, who_reads,
};
use crate::reader;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    view.loss_at(Place::SocketBuffer)?;
    let side = &view.reader;
    if side.count == 0 {
        // The rule behind all others says what is missing.
        None
    } else if let Some(halted) = side.halted {
        Some(not_run::halted(view, halted))
    } else if let Some(throttled) = side.lead.quota() {
        Some(not_run::throttled(view, throttled))
    } else if let Some((cpu, softirq)) = reader::livelocked(view) {
        Some(livelock::claim(view, cpu, softirq))
    } else if view.unsure.as_ref().is_some_and(|unsure| unsure.differ) {
        Some(who_reads::claim(view))
    } else if reader::is_kept_waiting(view) {
        Some(descheduled::claim(view))
    } else if reader::is_unread(view) {
        nobody_reads::claim(view)
    } else if side.lead.demand() < FULL_RATIO {
        let stays_full = reader::is_always_full(view);
        Some(if stays_full { waits_elsewhere::claim(view) } else { socket_queue::claim(view) })
    } else if let Some(overloaded) = reader::uneven(view) {
        Some(uneven::claim(view, overloaded))
    } else if view.sockets.len() == 1 && side.active > 1 && reader::share_it(view) {
        Some(shared_socket::claim(view))
    } else {
        Some(application::claim(view))
    }
}
