//! The load generator is the limit: its threads have no time left, and the receive path is not in it.

use rxpath_record::verdict::{Confidence, Stage};

use super::blocked::is_blocked;
use super::nothing::reached;
use crate::claim::{Claim, Part};
use crate::lines::{cpu_use, lead, lossless, others_on, rates};
use crate::thresholds::FULL_RATIO;
use crate::view::View;
use crate::wording::{percent, rate, threads};

pub fn judge(view: &View) -> Option<Claim> {
    let sender = &view.sender;
    if sender.count == 0 || !sender.lead.is_full() || reached(view) || is_blocked(view) {
        return None;
    }
    if !view.loses() && view.softirq_on_sender() {
        return None;
    }
    let cpu = sender.lead.cpu;
    let cpu_busy = cpu.and_then(|cpu| view.busy_ratio(cpu));
    let what = match (cpu, cpu_busy) {
        (Some(cpu), Some(busy)) => format!("CPU {cpu} is {} busy", percent(busy)),
        _ => format!("its busiest thread ran {} of the window", percent(sender.lead.running)),
    };
    let sure = sender.lead.running >= FULL_RATIO && cpu_busy.is_none_or(|b| b >= FULL_RATIO);
    let mut claim = Claim::new(
        Stage::Sender,
        if sure { Confidence::Strong } else { Confidence::Fair },
        &[Part::Ledger, Part::Window, Part::Cpus, Part::Senders],
        format!("the sender is the limit: {what} and everything it offered was delivered"),
    )
    .on(cpu)
    .because([lossless(view), lead("sender", sender)])
    .because(cpu.and_then(|cpu| cpu_use(view, cpu)))
    .because(others_on(view, cpu));
    if view.reader.count > 0 {
        claim = claim.because([lead("receiver", &view.reader)]);
    }
    claim = claim.because([rates(view)]);
    if view.raw.segments_per_send.unwrap_or(1) <= 1 {
        claim = claim.remedy("more datagrams per system call: `load udp --gso 20` (UDP_SEGMENT)");
    }
    if view.raw.cpus.len() > sender.count {
        claim = claim.remedy(format!(
            "more sending threads on CPUs of their own: `load udp --threads {} --cpu LIST`",
            sender.count + 1
        ));
    }
    Some(
        claim
            .remedy("the receiver's own limit is not shown by this trial: it is at least the delivered rate")
            .next(format!(
                "the sender: {} full, so no more than {} can be offered",
                threads(sender.count),
                rate(view.offered_pps())
            )),
    )
}
