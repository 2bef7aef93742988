//! Receive livelock: softirqs fill the reader's CPU, and the packets they deliver are dropped at the socket.

use crate::rules::prelude::*;

pub fn claim(view: &View, cpu: u32, softirq: f64) -> Claim {
    // What the backlog refuses, the same softirqs on the same CPU refuse: they have no time for it either.
    let backlog = view.lost_at(Place::Backlog);
    let lost = view.lost_at(Place::SocketBuffer).saturating_add(backlog);
    let sure = softirq >= SOFTIRQ_MOST_RATIO;
    let own = line(
        format!(
            "the running time of a thread includes the softirqs on top of it, so the reader's {} is not its own",
            percent(view.reader.lead.running)
        ),
        "/proc/PID/task/TID/schedstat",
    );
    let sentence = format!(
        "receive livelock: softirqs take {} of CPU {cpu}, the reader's, which reads {} of the {} offered",
        percent(softirq),
        rate(view.delivered_pps()),
        rate(view.offered_pps()),
    );
    Claim::new(Stage::Livelock, Confidence::strong_if(sure), Part::READING, sentence)
        .on(Some(cpu))
        .dropped_at(view, Place::SocketBuffer, lost)
        .because(services(view))
        .because(drops(view, Place::Backlog))
        .because(softirq_beside_reader(view))
        .because(cpu_use(view, cpu))
        .because([lead("receiver", &view.reader), own, rates(view)])
        .remedy(Remedy::softirq_off_reader(cpu, true))
        .remedy("a NAPI thread (`echo 1 > /sys/class/net/IF/threaded`) shares the CPU with the reader by scheduling instead of interrupting it")
        .remedy(Remedy::KEEP_AGGREGATES)
        .remedy(Remedy::OFFER_LESS)
}
