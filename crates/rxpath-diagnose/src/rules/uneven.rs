//! One socket of a `SO_REUSEPORT` group gets more than its reader can take while others have time, or may have.

use rxpath_core::number::counted;
use rxpath_record::evidence::SocketUse;

use super::application::{confidence, evidence};
use crate::reader::{OtherReaders, OverloadedSocket};
use crate::rules::prelude::*;

/// More flows help only where each socket is read.
const ASK: &str = "find out whether a thread reads each socket of the group: `rxpath diagnose` as root names the threads that wait for one by a read or epoll; what comes to a socket that no thread reads is lost";

pub fn claim(view: &View, overloaded: OverloadedSocket) -> Claim {
    let OverloadedSocket { index, share, others } = overloaded;
    let sockets = view.sockets.len();
    let on = view.reader.lead.cpu.map_or_else(String::new, |cpu| format!(", on CPU {cpu},"));
    let of_others = match others {
        OtherReaders::HaveTime => " while others have time".to_owned(),
        OtherReaders::Unknown(idle) => {
            format!("; {}, whose readers are not known, got none", counted(idle, "other socket"))
        }
    };
    let sentence = format!(
        "one receiving thread is the limit: socket {index} of {sockets} gets {} of the datagrams, and its reader{on} is full{of_others}",
        percent(share)
    );
    // That somebody reads the others is likely, not known: the gap in the evidence says so too.
    let (sure, spare, ask) = match others {
        OtherReaders::HaveTime => (confidence(view), Some(time_left(view)), None),
        OtherReaders::Unknown(_) => (confidence(view).min(Confidence::Fair), None, Some(ASK)),
    };
    Claim::at_socket(view, Stage::ReuseportImbalance, sure, sentence)
        .on(view.reader.lead.cpu)
        .because([by_socket(view)])
        .because(spare)
        .because(evidence(view))
        .remedies(ask)
        .remedy(Remedy::MORE_FLOWS_OVER_GROUP)
        .remedy(Remedy::STEER_BY_CPU)
}

fn by_socket(view: &View) -> EvidenceLine {
    let of = |s: &&SocketUse| {
        let (read, dropped) = (count(s.delivered_packets), count(s.drops_packets));
        let waiter = s.waiters.iter().flatten().next();
        let waits = waiter.map_or_else(String::new, |tid| format!(", thread {tid} waits for it"));
        format!("{}: {read} read, {dropped} dropped{waits}", s.index)
    };
    let per_socket: Vec<String> = view.sockets.iter().map(of).collect();
    let source = if view.raw.watched {
        "SO_MEMINFO drops, tracepoint sock:sock_recv_length"
    } else {
        "SO_MEMINFO drops and the receiver's counts"
    };
    line(format!("datagrams by socket: {}", per_socket.join("; ")), source)
}

fn time_left(view: &View) -> EvidenceLine {
    let least = percent(view.reader.least_demand);
    let text = format!("the least busy reader needed {least} of the window: it had time for more");
    line(text, "/proc/PID/task/TID/schedstat")
}
