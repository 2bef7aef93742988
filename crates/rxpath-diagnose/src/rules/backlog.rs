//! The RPS backlog overflows although its CPU is not filled by softirqs.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.lost_at(Place::Backlog);
    let softirq_has_it = view.saturated_softirq().is_some() && lost >= view.lost_at(Place::Ring);
    if !view.is_loss_at(Place::Backlog, lost) || softirq_has_it {
        return None;
    }
    let cpu = view.softirq_cpu();
    let share = percent(view.share_at(Place::Backlog, lost));
    let busy = cpu.map_or_else(String::new, |(cpu, busy)| {
        format!(", while CPU {cpu}, which empties it, is {} busy", percent(busy))
    });
    let limit = view.raw.backlog_limit_packets.map(|limit| {
        // Each CPU has a backlog of its own: what reaches that one fills it, where it was counted.
        let at = cpu.and_then(|(cpu, _)| Some((cpu, view.arriving_pps(cpu)?)));
        let holds = match at {
            Some((cpu, pps)) => Some(format!(
                ": {} at the {} packets/s that reach CPU {cpu}",
                span(limit as f64 / pps),
                count(pps.round() as u64)
            )),
            None => (view.offered_pps() > 0.0).then(|| {
                format!(": {} at the offered rate", span(limit as f64 / view.offered_pps()))
            }),
        };
        let text = format!(
            "each CPU's backlog holds {} packets (one value for the whole host){}",
            count(limit),
            holds.unwrap_or_default()
        );
        line(text, "sysctl net.core.netdev_max_backlog")
    });
    let sentence = format!(
        "the RPS backlog is the limit: it lost {share} of {}{busy}",
        whose(view, Place::Backlog)
    );
    Some(
        Claim::new(Stage::Backlog, Confidence::strong_if(cpu.is_some()), Part::PATH, sentence)
        .on(cpu.map(|(cpu, _)| cpu))
        .dropped_at(view, Place::Backlog, lost)
        .because(cpu.and_then(|(cpu, _)| cpu_use(view, cpu)))
        .because(limit)
        .because([rates(view)])
        .remedy(Remedy::SPREAD_BACKLOG)
        .remedy("raise net.core.netdev_max_backlog: one value for the whole host, not per namespace; every backlog can then hold that many packets, which cost memory and delay")
        .remedy(Remedy::SMALLER_SEND_BUFFER),
    )
}
