//! The path is fine, but a task outside the path loses CPU time: softirqs run on its time.

use rxpath_record::evidence::ProbedTask;

use super::nothing::reached;
use crate::rules::prelude::*;

/// Share of a task's time on its CPU that network softirqs took.
fn taken(task: &ProbedTask) -> f64 {
    let on_cpu = sound_ratio(task.on_cpu_ratio);
    if on_cpu > 0.0 { sound_ratio(sound_ratio(task.taken_ratio) / on_cpu) } else { 0.0 }
}

fn worst<'a>(view: &View<'a>) -> Option<&'a ProbedTask> {
    let tasks = view.raw.probed.iter().flat_map(|probed| &probed.tasks);
    let wants = |task: &&ProbedTask| {
        let demand = sound_ratio(task.on_cpu_ratio) + sound_ratio(task.waiting_ratio);
        !task.part_of_path && demand >= WANTS_CPU_RATIO && taken(task) >= VICTIM_RATIO
    };
    tasks.filter(wants).max_by(|a, b| {
        (sound_ratio(a.taken_ratio).total_cmp(&sound_ratio(b.taken_ratio)))
            .then(b.tid.cmp(&a.tid))
            .then(b.cpu.cmp(&a.cpu))
    })
}

pub fn judge(view: &View) -> Option<Claim> {
    if view.loses() || !reached(view) {
        return None;
    }
    let task = worst(view)?;
    let (cpu, share) = (task.cpu, percent(taken(task)));
    let whose = line(
        format!(
            "{} ({}) was on CPU {cpu} {} of the window, and network softirqs that others raised took {} of it; the cost of entering and leaving an interrupt is not included",
            task.name,
            task.tid,
            percent(task.on_cpu_ratio),
            share,
        ),
        "sched:sched_switch, irq:softirq_entry and softirq_exit",
    );
    let sentence = format!(
        "nothing is lost, and {} ({}) pays: network softirqs take {share} of its time on CPU {cpu}",
        task.name, task.tid
    );
    Some(
        Claim::new(Stage::Victim, Confidence::Strong, &[Part::Ledger, Part::Window, Part::Places], sentence)
            .on(Some(cpu))
            .because([whose])
            .because(cpu_use(view, cpu))
            .because(traffic(view))
            .remedy(format!("take the receive work off CPU {cpu}: its queue's interrupt (smp_affinity), its bit in rps_cpus"))
            .remedy(format!("or the task: another CPU than {cpu} (taskset, cpuset)"))
            .remedy("NAPI threads (`echo 1 > /sys/class/net/IF/threaded`) share the CPU with it by the scheduler's rules"),
    )
}
