//! The next limit, if no other rule claimed: which thread or CPU has the least time left, apart from the limit found.

use std::collections::BTreeSet;

use rxpath_core::PathSide;
use rxpath_record::ledger::LedgerUnit;
use rxpath_record::verdict::Stage;

use crate::stages::{StageWork, info};
use crate::thresholds::FULL_RATIO;
use crate::view::{Lead, View};
use crate::wording::{percent, rate};

/// Less demand than this says nothing about a limit: it is the cost of an idle receiver.
const TOO_LITTLE: f64 = 0.02;

/// Below this demand no rate is predicted: the cost per datagram falls to a third or less as more arrive at a time.
const ENOUGH: f64 = 0.25;

struct Candidate {
    who: String,
    demand: f64,
    pps: f64,
}

/// One sentence: the next limit and its rate, if the cost per datagram stays the same.
pub fn of(view: &View, limit: Stage) -> String {
    let known: Vec<Candidate> = candidates(view, limit);
    let full = known.iter().find(|candidate| candidate.demand >= FULL_RATIO);
    if let Some(Candidate { who, demand, .. }) = full {
        return format!("{who}, which needs {} of the window already", percent(*demand));
    }
    let next = known
        .into_iter()
        .filter(|candidate| candidate.demand >= TOO_LITTLE && candidate.pps > 0.0)
        .max_by(|a, b| a.demand.total_cmp(&b.demand));
    match next {
        // A segment is no unit of work: aggregates of any size count as one.
        Some(Candidate { who, demand, .. }) if view.raw.ledger.unit == LedgerUnit::Segment => {
            format!("{who}: it needs {} of the window", percent(demand))
        }
        Some(Candidate { who, demand, pps }) => {
            let further = if demand >= ENOUGH {
                let full = rate(pps / demand);
                format!("and all of it at about {full}, if the cost per datagram stays the same")
            } else {
                "too little to predict at which rate it would need all of it".into()
            };
            format!("{who}: it needs {} of the window at {}, {further}", percent(demand), rate(pps))
        }
        None => "not known: nothing else on the path needed a significant part of the window, or it was not measured".into(),
    }
}

/// Each is divided by its datagrams: those offered, or those delivered.
fn candidates(view: &View, limit: Stage) -> Vec<Candidate> {
    let mut all = Vec::new();
    let on = |lead: &Lead| lead.at().map_or_else(String::new, |at| format!(" on {at}"));
    let is_limit = |work: StageWork| info(limit).work.contains(&work);
    let [sender, receiver] = match view.raw.ledger.unit {
        LedgerUnit::Datagram => ["sender", "receiver"],
        LedgerUnit::Segment => ["client", "server"],
    };
    let polls = |side: PathSide| view.raw.polling_sides.contains(&side);
    if view.sender.count > 0 && !is_limit(StageWork::Sending) && !polls(PathSide::Tx) {
        let lead = &view.sender.lead;
        let who = format!("the {sender}'s thread{}", on(lead));
        all.push(Candidate { who, demand: lead.demand(), pps: view.offered_pps() });
    }
    // Threads of several processes, or of one with more threads than sockets: their time is not all for UDP.
    let pids: BTreeSet<Option<i32>> =
        view.raw.receiver_threads.iter().map(|thread| thread.pid).collect();
    let known = view.unsure.is_none() && pids.len() == 1;
    if view.reader.count > 0 && !is_limit(StageWork::Reading) && known && !polls(PathSide::Rx) {
        let lead = &view.reader.lead;
        let who = format!("the {receiver}'s thread{}", on(lead));
        all.push(Candidate { who, demand: lead.demand(), pps: view.delivered_pps() });
    }
    let shared = |cpu: u32| view.sender.cpus.contains(&cpu) || view.reader.cpus.contains(&cpu);
    // The softirq's own share: other work of that CPU can move. Ticks cannot measure it: they show 6 % for 97 %.
    let own = |cpu: u32| Some((cpu, view.softirq_measured_ratio(cpu)?));
    let softirqs = view.softirq_cpus.iter().copied().filter(|cpu| !shared(*cpu)).filter_map(own);
    let busiest = softirqs.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let counts = !is_limit(StageWork::Softirq) && view.softirqs_are_of_udp();
    if let Some((cpu, demand)) = busiest.filter(|_| counts) {
        let who = format!("the receive softirq on CPU {cpu}");
        all.push(Candidate { who, demand, pps: view.offered_pps() });
    }
    all
}
