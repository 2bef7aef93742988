//! A socket overflows that no thread reads: its program forgot it, was replaced but still has it, or is stuck.

use super::application::evidence;
use crate::rules::prelude::*;

pub fn claim(view: &View) -> Option<Claim> {
    let service = view.services.first()?;
    let unread = service.unread();
    let worst =
        unread.or_else(|| service.sockets.iter().copied().max_by_key(|it| it.drops_packets))?;
    let owners: Vec<String> =
        worst.owners.iter().map(|owner| format!("{} ({})", owner.name, owner.pid)).collect();
    let whose = if owners.is_empty() { "a program".into() } else { owners.join(", ") };
    let of = match service.sockets.len() {
        1 => "its socket".to_owned(),
        many => format!("its socket, one of {} on {}", count(many as u64), service.local),
    };
    // Without the tracepoint: who does not run does not read.
    let how = if unread.is_some() { "read from it" } else { "of it ran" };
    let sentence = format!(
        "the receiving application is the limit: no thread {how} in the window: {whose} has {of}, and lets it overflow"
    );
    let share = line(
        format!(
            "socket {} has {} of the service's drops, and nothing was read from it",
            worst.index,
            percent(worst.drops_packets as f64 / service.drops().max(1) as f64)
        ),
        if unread.is_some() {
            "SO_MEMINFO drops, tracepoint sock:sock_recv_length"
        } else {
            "SO_MEMINFO drops, /proc/PID/task/TID/schedstat"
        },
    );
    let close = (service.sockets.len() > 1).then_some(
        "close a socket of the group that no thread reads (a process that was replaced, a descriptor that a child inherited): its share of the flows then goes to the others",
    );
    Some(
        Claim::at_socket(view, Stage::Application, Confidence::Strong, sentence)
            .on(view.reader.lead.cpu)
            .because([share])
            .because(evidence(view))
            .remedy("find what the program does instead of reading: `cat /proc/PID/task/*/wchan`, `strace -f -p PID`; it may be stuck, or have left the socket open")
            .remedies(close)
            .remedy("a larger receive buffer does not help: nothing empties it"),
    )
}
