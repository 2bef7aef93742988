//! The load generator is the limit: its threads have no time left, and the receive path is not in it.

use super::blocked::is_blocked;
use super::nothing::reached;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let sender = &view.sender;
    if sender.count == 0 || !sender.lead.is_full() || reached(view) || is_blocked(view) {
        return None;
    }
    if !view.loses() && view.softirq_on_sender() {
        return None;
    }
    let at = sender.lead.at();
    let cpu_busy = at.and_then(|at| view.busy_ratio(at));
    let what = match (sender.lead.cpu, cpu_busy) {
        (Some(cpu), Some(busy)) => format!("CPU {cpu} is {} busy", percent(busy)),
        _ => format!("its busiest thread ran {} of the window", percent(sender.lead.running)),
    };
    let sure = sender.lead.running >= FULL_RATIO && cpu_busy.is_none_or(|b| b >= FULL_RATIO);
    let loss = if view.possible_losses().is_empty() {
        "everything it offered was delivered"
    } else {
        "no significant loss is sure"
    };
    let sentence = format!("the {} is the limit: {what} and {loss}", view.sender_name());
    let gso = (view.raw.segments_per_send.unwrap_or(1) <= 1)
        .then_some("more datagrams per system call: `load udp --gso 20` (UDP_SEGMENT)");
    let own = view.raw.sender_threads.iter().filter(|it| it.host == sender.lead.host).count();
    let more_threads = (view.cpus_of(sender.lead.host).len() > own).then(|| {
        format!(
            "more sending threads on CPUs of their own: `load udp --threads {} --cpu LIST`",
            own + 1
        )
    });
    let one_more = "one more sender: a further host with `role = \"sender\"`";
    Some(
        Claim::new(Stage::Sender, Confidence::strong_if(sure), Part::SENDING, sentence)
            .on(sender.lead.cpu_here())
            .because([lossless(view), lead("sender", sender)])
            .because(cpu_and_others(view, at))
            .because((view.reader.count > 0).then(|| lead("receiver", &view.reader)))
            .because([rates(view)])
            .remedies(gso)
            .remedies(more_threads)
            .remedies(view.sends_from_elsewhere().then_some(one_more))
            .remedy("the receiver's own limit is not shown by this trial: it is at least the delivered rate")
            .next(format!(
                "the sender: {} full, so no more than {} can be offered",
                threads(sender.count),
                rate(view.offered_pps())
            )),
    )
}
