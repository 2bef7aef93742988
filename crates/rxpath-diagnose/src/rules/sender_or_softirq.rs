//! The sender's CPU is full, and the receive softirq runs on its time: ticks cannot distinguish the two.

use rxpath_record::verdict::PairedTrial;

use super::blocked::is_blocked;
use super::nothing::reached;
use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let full = view.sender.count > 0 && view.sender.lead.is_full();
    if view.loses() || reached(view) || is_blocked(view) || !full || !view.softirq_on_sender() {
        return None;
    }
    let cpu = view.sender.lead.cpu;
    let on = cpus(&view.sender.cpus);
    let where_it_runs = match view.raw.softirq {
        SoftirqPlace::SenderCall => {
            "the receive softirq runs inside the sender's send calls: one CPU does both, and its ticks cannot show whose time it was"
        }
        _ => {
            "the receive softirq may run on the sender's CPU: a part of the sender's time is receive work, and ticks cannot show how much"
        }
    };
    let alone = view.raw.cpus.len() < 2;
    let paired = match view.raw.softirq {
        _ if alone => None,
        SoftirqPlace::Napi { .. } => Some(PairedTrial::NapiThread),
        _ => Some(PairedTrial::Rps),
    };
    let decide = match paired {
        None => {
            "no trial on this machine can decide: it has one CPU, and the receive softirq cannot run elsewhere"
        }
        Some(PairedTrial::Rps) => {
            "decide by a paired trial with the receive softirq on another CPU by RPS (write the mask of that CPU to /sys/class/net/IF/queues/rx-0/rps_cpus)"
        }
        Some(PairedTrial::NapiThread) => {
            "decide by a paired trial with the receive softirq in a NAPI thread on another CPU (`echo 1 > /sys/class/net/IF/threaded`)"
        }
    };
    let sentence = format!(
        "the sender or the receive softirq is the limit: both run on {on}, {} busy; only a paired trial shows which",
        percent(cpu.and_then(|cpu| view.busy_ratio(cpu)).unwrap_or(view.sender.lead.running))
    );
    let cheaper = (view.raw.segments_per_send.unwrap_or(1) <= 1).then_some(
        "GSO makes both cheaper: `load udp --gso`, with `serve udp --gro` for the receive side",
    );
    Some(
        Claim::new(Stage::SenderOrSoftirq, Confidence::Weak, Part::SENDING, sentence)
            .on(cpu)
            .because([
                lossless(view),
                lead("sender", &view.sender),
                line(where_it_runs, "where the receive softirq runs in this topology"),
            ])
            .because(cpu_and_others(view, cpu))
            .because((view.reader.count > 0).then(|| lead("receiver", &view.reader)))
            .because([rates(view)])
            .decided_by(paired)
            .remedy(decide)
            .remedies(cheaper),
    )
}
