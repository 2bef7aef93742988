//! The sender was blocked on its own send buffer: the path set its pace, and nothing was lost.

use crate::rules::prelude::*;

/// Whether the path slowed the sender.
pub fn is_blocked(view: &View) -> bool {
    view.blocked_ratio() >= BLOCKED_RATIO
}

pub fn judge(view: &View) -> Option<Claim> {
    if !is_blocked(view) {
        return None;
    }
    if view.sends_from_elsewhere() {
        return Some(at_its_device(view));
    }
    let blocked = percent(view.blocked_ratio());
    let held = line(
        format!(
            "the sender was blocked on its own send buffer {blocked} of its time: a packet is charged to it until the receiving socket takes it, so the load was a closed loop"
        ),
        "the sender's blocked_s",
    );
    let in_call = matches!(view.raw.softirq, SoftirqPlace::SenderCall);
    let cpu = if in_call { None } else { view.saturated_softirq() };
    let near = cpu.or_else(|| view.softirq_cpu().map(|(cpu, _)| cpu));
    let claim = match cpu {
        Some(cpu) => Claim::new(
            Stage::Softirq,
            Confidence::Strong,
            Part::SENDING,
            format!(
                "receive softirq processing on CPU {cpu} is the limit: CPU {cpu} is {} busy and the sender waited for it {blocked} of its time",
                view.busy_ratio(cpu).map_or_else(String::new, percent)
            ),
        )
        .on(Some(cpu))
        .remedy("spread the flows over more CPUs: a wider rps_cpus mask or more queues (ethtool -L), with at least 16 flows (`load udp --unconnected --flows 16`)")
        .remedy(format!("take work off CPU {cpu}: fewer netfilter rules on the way in, the reader on another CPU (`serve udp --cpu`)")),
        None => Claim::new(
            Stage::Unknown,
            Confidence::Weak,
            Part::SENDING,
            format!("the path set the pace, but the place that held the packets is not known: the sender was blocked {blocked} of its time and no CPU of the receive softirq is full"),
        )
        .remedy("look for a shaper on the sender's device (`tc -s qdisc show dev IF`: backlog, overlimits)")
        .remedy("a larger send buffer (`load udp --sndbuf`) turns the wait into drops, which a counter shows"),
    };
    Some(
        claim
            .because([held])
            .because(cpu_and_others(view, near))
            .because([lossless(view), lead("sender", &view.sender), rates(view)])
            .next(format!("the sender was blocked on its own send buffer {blocked} of its time")),
    )
}

/// Between machines a packet is charged to its sender until its own card has sent it.
fn at_its_device(view: &View) -> Claim {
    let blocked = percent(view.blocked_ratio());
    let sender = view.sender_name();
    let held = line(
        format!(
            "the sender was blocked on its own send buffer {blocked} of its time: a packet is charged to it until its network card has sent it"
        ),
        "the sender's blocked_s",
    );
    let sentence = format!(
        "the {sender} is the limit: its packets waited for its network card, and it was blocked on its send buffer {blocked} of its time"
    );
    Claim::new(
        Stage::Sender,
        Confidence::Fair,
        &[Part::Ledger, Part::Window, Part::Senders],
        sentence,
    )
    .because([held, lossless(view), lead("sender", &view.sender), rates(view)])
    .remedy("compare the offered rate with the speed of its link (`ethtool IF`), and look for a shaper there (`tc -s qdisc show dev IF`)")
    .remedy("look for pause frames at its card (`ethtool -S IF`): with them the network or the receiver sets the pace")
    .remedy("one more sender: a further host with `role = \"sender\"`")
    .next(format!("the {sender} was blocked on its own send buffer {blocked} of its time"))
}
