//! The device ring overflows although its softirq's CPU is not filled by softirqs.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.lost_at(Place::Ring);
    let softirq_has_it = view.saturated_softirq().is_some() && lost > view.lost_at(Place::Backlog);
    if !view.is_loss_at(Place::Ring, lost) || softirq_has_it {
        return None;
    }
    let cpu = view.softirq_cpu();
    let share = percent(view.share_at(Place::Ring, lost));
    let starved = cpu.is_some_and(|(_, busy)| busy >= FULL_RATIO);
    let why = match cpu {
        Some((cpu, _)) if starved => {
            format!("CPU {cpu} is busy with other work and the poll comes too late")
        }
        Some((cpu, busy)) => {
            format!("bursts overflow it while CPU {cpu} is only {} busy", percent(busy))
        }
        None => "it was not emptied in time".into(),
    };
    let poll = match view.raw.softirq {
        SoftirqPlace::NapiThread { .. } => Some(
            "give the NAPI thread (`napi/IF-N`) a CPU of its own (taskset) or a better priority than other tasks on its CPU (chrt, renice)".into(),
        ),
        _ => starved.then_some(Remedy::OTHER_WORK_OFF),
    };
    let sentence = format!(
        "the device ring is the limit: it lost {share} of {}; {why}",
        whose(view, Place::Ring)
    );
    Some(
        Claim::new(Stage::Ring, Confidence::strong_if(cpu.is_some()), Part::PATH, sentence)
            .on(cpu.map(|(cpu, _)| cpu))
            .dropped_at(view, Place::Ring, lost)
            .because(cpu_and_others(view, cpu.map(|(cpu, _)| cpu)))
            .because([rates(view)])
            .remedies(poll)
            .remedy("a longer ring where the device has one (`ethtool -G IF rx N`); a veth's ring is 256, fixed")
            .remedy("more queues, so that several CPUs poll (`ethtool -L IF rx N`)"),
    )
}
