//! The reading application is busy all the time and still too slow.

use crate::rules::prelude::*;

/// How sure a full reader is the limit: its own time, its CPU and the counter are three witnesses.
///
/// A CPU that softirqs share with the reader takes one away: running time includes them.
pub fn confidence(view: &View) -> Confidence {
    let lead = &view.reader.lead;
    let cpu_full = lead.cpu.and_then(|cpu| view.busy_ratio(cpu)).is_none_or(|b| b >= FULL_RATIO);
    let own_time = view.softirq_on_reader().is_none() && lead.waiting < WAITING_RATIO;
    Confidence::strong_if(lead.running >= FULL_RATIO && cpu_full && own_time)
}

/// The lines that every claim about a full reader shows.
pub fn evidence(view: &View) -> Vec<EvidenceLine> {
    let mut lines = vec![lead("receiver", &view.reader)];
    lines.extend(drops(view, Place::SocketBuffer));
    lines.extend(services(view));
    lines.extend(reader_cost(view));
    lines.extend(queues(view));
    lines.extend(softirq_beside_reader(view));
    lines.extend(cpu_and_others(view, view.reader.lead.cpu));
    lines.push(rates(view));
    lines
}

pub fn claim(view: &View) -> Claim {
    let reader = &view.reader;
    let cpu = reader.lead.cpu;
    let busy = cpu.and_then(|cpu| Some((cpu, view.busy_ratio(cpu)?)));
    let what = match busy {
        Some((cpu, busy)) => format!("CPU {cpu} is {} busy", percent(busy)),
        None => format!("its busiest thread ran {} of the window", percent(reader.lead.running)),
    };
    let with =
        if view.softirq_on_reader().is_some() { " with it and the receive softirq" } else { "" };
    let waits = &reader.lead.waiting;
    let both = if *waits >= WAITING_RATIO {
        format!(
            "; both count: it ran {} of the window and waited for its CPU {}",
            percent(reader.lead.running),
            percent(*waits)
        )
    } else {
        String::new()
    };
    let sentence = format!("the receiving application is the limit: {what}{with}{both}");
    let one_more = view.raw.cpus.len() > reader.count;
    Claim::at_socket(view, Stage::Application, confidence(view), sentence)
        .on(cpu)
        .because(evidence(view))
        .remedies(view.softirq_on_reader().map(|cpu| Remedy::softirq_off_reader(cpu, false)))
        .remedies(one_more.then(|| Remedy::more_readers(reader.count + 1)))
        .remedies((*waits >= WAITING_RATIO).then_some(Remedy::READER_OWN_CPU))
        .remedy(Remedy::LARGER_BATCHES)
        .remedy(Remedy::LESS_WORK)
        .remedy("a larger receive buffer does not help: the queue fills as long as more arrives than is read")
}
