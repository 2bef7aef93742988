//! The tables of `rxpath steal`.

use std::net::SocketAddr;

use rxpath_bpf::ProbeCost;
use rxpath_bpf::steal::probe::StealVictim;
use rxpath_bpf::steal::{Steal, TakenFor, TaskTaken};
use rxpath_core::Division;
use rxpath_core::measured::{CpuBreakdown, TakenBy, TaskKind, TaskTime};
use rxpath_core::number::grouped;

use super::table::Grid;

/// Times in the tables: seconds with three digits, a dash for none.
fn s(seconds: f64) -> String {
    if seconds < 0.0005 { "-".into() } else { format!("{seconds:.3}") }
}

/// Everything.
pub fn text(steal: &Steal, top: usize) -> String {
    let mut out = format!("window {:.3} s; times in s, `~` is estimated\n\n", steal.window_s);
    out += &cpus(&steal.cpus);
    out.push('\n');
    out += &tasks(&steal.tasks, top);
    out.push('\n');
    if let Some(told) = &steal.victim {
        out += &victim(told);
    }
    let k = &steal.calibration;
    let points: Vec<String> = k
        .points
        .iter()
        .map(|p| format!("{:.2} us at {}/s", p.irq_entry_us, grouped(p.rate_per_s.round() as u64)))
        .collect();
    let how = match k.cpu {
        Some(cpu) => format!(", measured on CPU {cpu} ({})", points.join(", ")),
        None => format!(" ({})", k.source),
    };
    out += &format!("interrupt entry and exit: {:.2} us each{how}\n", k.irq_entry_us);
    out + &cost(&steal.probe_cost)
}

/// What the probe cost, in one line.
pub fn cost(cost: &ProbeCost) -> String {
    let time = match &cost.gap {
        Some(gap) => format!("run time not known ({gap})"),
        None => format!(
            "{:.3} s in {} runs ({:.0} ns each; measured for {:.2} s)",
            cost.run_time_s,
            grouped(cost.runs_count),
            cost.ns_per_run,
            cost.measured_s
        ),
    };
    format!(
        "probe: {time}; reader {:.3} s of CPU; maps {:.1} MiB; lost {}\n",
        cost.reader_cpu_s,
        cost.map_bytes as f64 / 1_048_576.0,
        grouped(cost.lost_count)
    )
}

/// Columns of the parts of time.
const PARTS: [(&str, fn(&Division) -> f64); 9] = [
    ("hardirq", |time| time.hardirq_s),
    ("net rx", |time| time.net_rx_s),
    ("net tx", |time| time.net_tx_s),
    ("tcp sirq", |time| time.other_network_s),
    ("other sirq", |time| time.other_softirq_s - time.other_network_s),
    ("mixed", |time| time.mixed_softirq_s),
    ("own sirq", |time| time.own_softirq_s),
    ("~irq entry", |time| time.irq_entry_estimated_s),
    ("~hyp. steal", |time| time.hypervisor_steal_s),
];

fn parts(time: &Division) -> [String; 9] {
    PARTS.map(|(_, part)| s(part(time)))
}

fn cpus(cpus: &[CpuBreakdown]) -> String {
    let mut head = vec!["CPU", "tasks' own"];
    head.extend(PARTS.map(|(name, _)| name));
    head.extend(["idle", "irq/s", "net on idle", "ticks: softirq", "ticks: busy"]);
    let mut table = Grid::new(1, head);
    for cpu in cpus {
        let mut row = vec![cpu.cpu.to_string(), s(cpu.time.own_s - cpu.idle_s)];
        row.extend(parts(&cpu.time));
        row.extend([
            s(cpu.idle_s),
            grouped(cpu.interrupts_per_s.round() as u64),
            s(cpu.net_on_idle_s),
            s(cpu.tick_softirq_s),
            s(cpu.time.tick_view_s),
        ]);
        table.row(row);
    }
    table.shown()
}

fn tasks(tasks: &[TaskTaken], top: usize) -> String {
    let mut head = vec!["pid", "task", "on CPU", "own"];
    head.extend(PARTS.map(|(name, _)| name));
    head.extend(["top shows", "waited", "taken by"]);
    let last = head.len() - 1;
    let mut table = Grid::new(2, head).text(&[last]);
    if tasks.is_empty() {
        return "no rows: the requested tasks did not run, or (--netns) packets of the namespace took time from no task\n"
            .into();
    }
    for TaskTaken { row: task, taken_for, .. } in tasks.iter().take(top) {
        let mut row =
            vec![task.pid.to_string(), named(task), s(task.time.on_cpu_s), s(task.time.own_s)];
        row.extend(parts(&task.time));
        let mut by: Vec<String> = task.taken_by.iter().take(2).map(culprit).collect();
        by.extend(taken_for.first().map(|flow| format!("for {}", addressee(flow))));
        row.extend([s(task.time.tick_view_s), s(task.time.preempted_s), by.join(", ")]);
        table.row(row);
    }
    let rest = tasks.len().saturating_sub(top);
    let more =
        if rest > 0 { format!("{rest} more tasks ran (--top, --json)\n") } else { String::new() };
    table.shown() + &more
}

fn named(task: &TaskTime) -> String {
    let what = match task.kind {
        TaskKind::Vcpu => " (virtual CPU)",
        TaskKind::Vhost => " (guest's packets)",
        TaskKind::Ksoftirqd | TaskKind::Napi => " (deferred softirqs)",
        TaskKind::Idle => " (free time)",
        TaskKind::Task | TaskKind::Kernel | TaskKind::Rest => "",
    };
    format!("{}{what}", task.comm)
}

/// The owner of the polls: the device, and its queue if known.
fn culprit(by: &TakenBy) -> String {
    by.queue.map_or_else(|| by.dev.clone(), |queue| format!("{} rx-{queue}", by.dev))
}

/// The destination of a flow.
fn addressee(flow: &TakenFor) -> String {
    match (&flow.transport, flow.to, flow.port) {
        (None, ..) => "non-IP traffic".into(),
        (Some(transport), None, 0) => transport.clone(),
        (Some(transport), None, port) => format!("{transport} port {port}"),
        (Some(transport), Some(to), 0) => format!("{transport} to {to}"),
        (Some(transport), Some(to), port) => format!("{transport} {}", SocketAddr::new(to, port)),
    }
}

fn victim(victim: &StealVictim) -> String {
    let row = &victim.row;
    let time = &row.time;
    let share = |part: f64| if row.asked_s > 0.0 { 100.0 * part / row.asked_s } else { 0.0 };
    let mut rows = vec![("asked", row.asked_s, String::new())];
    let turns = "turns done times the length of an undisturbed turn";
    rows.extend(row.got_by_work_s.map(|work| ("got, by its work", work, turns.into())));
    rows.push(("own, by the probe", time.own_s + time.own_softirq_s, "own softirqs in it".into()));
    rows.push(("top shows", time.tick_view_s, String::new()));
    let estimated_s = time.irq_entry_estimated_s + time.hypervisor_steal_s;
    rows.push(("taken", time.taken_s(), format!("{estimated_s:.3} s of it estimated")));
    let gaps = "gaps in its loop, minus other tasks' time slices";
    rows.extend(victim.truly_taken_s().map(|truth| ("taken, by its gaps", truth, gaps.into())));
    rows.push(("other tasks ran", (row.asked_s - time.on_cpu_s).max(0.0), "or it slept".into()));
    let mut out = format!("victim: {}\n", victim.what);
    for (what, seconds, note) in rows {
        let note = if note.is_empty() { note } else { format!("  ({note})") };
        out += &format!("  {what:<20} {seconds:>8.3} s  {:>5.1} %{note}\n", share(seconds));
    }
    out += &match (victim.exit_code, victim.ended_by_signal) {
        (_, Some(signal)) => format!("  it was ended by signal {signal}\n"),
        (Some(status @ 1..), _) => format!("  it ended with status {status}\n"),
        _ => String::new(),
    };
    for claim in &row.claims {
        out += &format!(
            "  it says itself: {} asked {:.2} s, had {:.2} s (by times(2), which ticks alias), did {}\n",
            claim.what,
            claim.asked_s,
            claim.got_s,
            grouped(claim.work_count)
        );
    }
    for by in row.taken_by.iter().take(4) {
        let (who, [packets, polls]) = (culprit(by), [by.packets, by.polls_count].map(grouped));
        out += &format!("  by {who}: {:.3} s, {packets} packets in {polls} polls\n", by.net_s);
    }
    out + &receivers(victim) + "\n"
}

/// For whom its time was taken.
fn receivers(victim: &StealVictim) -> String {
    let seen: u64 = victim.taken_for.iter().map(|flow| flow.packets_seen_count).sum();
    let line = |flow: &TakenFor| {
        let percent = 100.0 * flow.packets_seen_count as f64 / seen.max(1) as f64;
        let (to, dev, all) = (addressee(flow), &flow.dev, grouped(seen));
        format!("  for {to} through {dev}: {percent:.1} % of {all} packets looked at\n")
    };
    victim.taken_for.iter().take(4).map(line).collect()
}
