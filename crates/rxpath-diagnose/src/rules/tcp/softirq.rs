//! TCP's senders slow down before anything is lost: a CPU that its softirqs fill is the limit all the same.

use crate::lines::tcp::summary;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let tcp = view.raw.tcp.as_ref()?;
    let spread = view.raw.spread.as_ref()?;
    let all = spread.packets.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.packets));
    let most = tcp.received_segments as f64 >= MOST_OF_SOFTIRQ_RATIO * all as f64;
    if view.loses() || all == 0 || !most {
        return None;
    }
    let cpu = view.saturated_softirq()?;
    let here = spread.packets.iter().find(|one| one.cpu == cpu)?;
    let text = format!(
        "CPU {cpu} took {} of the {} packets of all CPUs, and {} rounds of its softirq ended with work left",
        count(here.packets),
        count(all),
        count(here.squeezed_count),
    );
    let sentence = format!(
        "TCP: receive softirq processing on CPU {cpu} is the limit: CPU {cpu} is {} busy, most of it in softirqs, and senders wait for it",
        percent(view.busy_ratio(cpu)?)
    );
    Some(
        Claim::new(Stage::Softirq, Confidence::Fair, &[Part::Window, Part::Cpus], sentence)
            .on(Some(cpu))
            .because([line(text, "/proc/net/softnet_stat processed and time_squeeze")])
            .because(cpu_and_others(view, Some(cpu)))
            .because(summary(view))
            .remedy(Remedy::SPREAD_FLOWS)
            .remedy(Remedy::lighter_softirq(cpu))
            .remedy(Remedy::SHARE_COST)
            .next(format!("TCP: CPU {cpu} is filled by softirqs")),
    )
}
