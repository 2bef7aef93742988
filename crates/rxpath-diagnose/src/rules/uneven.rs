//! One socket of a `SO_REUSEPORT` group gets more than its reader can take while others have time.

use super::application::{confidence, evidence};
use crate::reader::uneven;
use crate::rules::prelude::*;

pub fn claim(view: &View) -> Option<Claim> {
    let lost = view.lost_at(Place::SocketBuffer);
    let (socket, share) = uneven(view)?;
    let sockets = view.sockets.len();
    let per_socket: Vec<String> = view
        .sockets
        .iter()
        .map(|s| {
            let (read, dropped) = (count(s.delivered_packets), count(s.drops_packets));
            let waiter = s.waiters.iter().flatten().next();
            let waits =
                waiter.map_or_else(String::new, |tid| format!(", thread {tid} waits for it"));
            format!("{}: {read} read, {dropped} dropped{waits}", s.index)
        })
        .collect();
    let idle_reader = format!(
        "the least busy reader needed {} of the window: it had time for more",
        percent(view.reader.least_demand)
    );
    let on = view.reader.lead.cpu.map_or_else(String::new, |cpu| format!(", on CPU {cpu},"));
    let sentence = format!(
        "one receiving thread is the limit: socket {socket} of {sockets} gets {} of the datagrams, and its reader{on} is full while others have time",
        percent(share)
    );
    Some(
        Claim::new(Stage::ReuseportImbalance, confidence(view), Part::READING, sentence)
            .on(view.reader.lead.cpu)
            .losing_at(view, Place::SocketBuffer, lost)
            .because([
                line(
                    format!("datagrams by socket: {}", per_socket.join("; ")),
                    if view.raw.watched {
                        "SO_MEMINFO drops, tracepoint sock:sock_recv_length"
                    } else {
                        "SO_MEMINFO drops and the receiver's counts"
                    },
                ),
                line(idle_reader, "/proc/PID/task/TID/schedstat"),
            ])
            .because(evidence(view))
            .remedy(Remedy::MORE_FLOWS_OVER_GROUP)
            .remedy(Remedy::STEER_BY_CPU),
    )
}
