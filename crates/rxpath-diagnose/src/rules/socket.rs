//! Datagrams are dropped at the socket: each cause has its claim.

use super::{
    application, descheduled, livelock, nobody_reads, not_run, shared_socket, socket_queue, uneven,
    waits_elsewhere, who_reads,
};
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    match cause(view)? {
        // The rule behind all others says what is missing.
        Cause::NotMeasured => None,
        Cause::Halted(halted) => Some(not_run::halted(view, halted)),
        Cause::Throttled => not_run::throttled(view),
        Cause::WhoReads => Some(who_reads::claim(view)),
        Cause::Livelock { cpu } => livelock::claim(view, cpu),
        Cause::Descheduled => Some(descheduled::claim(view)),
        Cause::NobodyReads => nobody_reads::claim(view),
        Cause::Uneven => uneven::claim(view),
        Cause::SharedSocket => Some(shared_socket::claim(view)),
        Cause::Full => Some(application::claim(view)),
        Cause::WaitsElsewhere => Some(waits_elsewhere::claim(view)),
        Cause::HasTime => Some(socket_queue::claim(view)),
    }
}
