//! A simulation in words and a table.

use std::time::Duration;

use rxpath_core::Nanos;
use rxpath_core::number::{grouped, si};
use rxpath_model::sim::Parameters;
use rxpath_model::sim::outcome::CpuSplit;

use super::Simulated;

/// The speed of the simulation.
pub(super) fn speed(packets: u64, cpu: Duration) -> String {
    let seconds = cpu.as_secs_f64().max(1e-9);
    let (all, rate) = (grouped(packets), packets as f64 / seconds / 1e6);
    format!("simulated {all} packets in {seconds:.2} s of CPU time: {rate:.2} M packets/s")
}

/// The whole answer.
pub(super) fn result(p: &Parameters, result: &Simulated) -> String {
    let figures = &result.figures;
    let mut text = format!("{}: simulated, not measured\n", p.name);
    if !p.question.is_empty() {
        text += &format!("  {}\n", p.question);
    }
    text += &format!(
        "\noffered {} packets/s, delivered {} packets/s, lost {:.2} % of {}\n",
        si(figures.offered_pps),
        si(figures.delivered_pps),
        figures.loss_ratio * 100.0,
        grouped(result.ledger.offered_packets),
    );
    if let Some(before) = &result.before {
        text += &format!(
            "without the change: delivered {} packets/s, lost {:.2} %\n",
            si(before.delivered_pps),
            before.loss_ratio * 100.0,
        );
    }
    text += &format!("{}\n\n", result.verdict.sentence);
    text += &stages(result);
    text += "\ntime                                                          mean      p50      p90      p99    p99.9      max\n";
    for times in &figures.times {
        let shown = [times.p50_ns, times.p90_ns, times.p99_ns, times.p999_ns, times.max_ns];
        text += &format!("  {:<57} {:>7}", times.span, Nanos(times.mean_ns as u64).to_string());
        text.extend(shown.map(|ns| format!(" {:>8}", Nanos(ns).to_string())));
        text.push('\n');
    }
    text += &cpus(&figures.cpus);
    let [interrupts, passes, polls] =
        [figures.interrupts_total, figures.passes_total, figures.polls_total].map(grouped);
    let [squeezed, woken, slept] =
        [figures.time_squeeze_total, figures.ksoftirqd_wakeups_total, figures.sleeps_total]
            .map(grouped);
    text += &format!(
        "\n{interrupts} interrupts, {passes} passes, {polls} polls of {:.1} packets, time_squeeze {squeezed}, ksoftirqd woken {woken}, readers slept {slept}\n",
        figures.batch_mean_packets,
    );
    if let Some(run) = &result.run {
        text += &format!("run: {run}\n");
    }
    text
}

fn stages(result: &Simulated) -> String {
    let mut text = String::from("stage        dropped      most      mean   mean time\n");
    for stage in &result.figures.stages {
        text += &format!(
            "  {:<8} {:>9} {:>9} {:>9.2} {:>11}\n",
            stage.stage,
            grouped(stage.dropped_packets),
            grouped(stage.most_packets),
            stage.mean_packets,
            Nanos(stage.mean_ns as u64).to_string(),
        );
    }
    let ledger = &result.ledger;
    text += &format!(
        "  in flight {}, unaccounted {}\n",
        grouped(ledger.in_flight_packets),
        ledger.unaccounted_packets.map_or_else(|| "not known".into(), |left| left.to_string())
    );
    text
}

fn cpus(cpus: &[CpuSplit]) -> String {
    let mut text =
        String::from("\nCPU     irq softirq ksoftirqd    napi  reader background    idle\n");
    for cpu in cpus {
        let parts = [
            (7, cpu.irq_ns),
            (7, cpu.softirq_ns),
            (9, cpu.ksoftirqd_ns),
            (7, cpu.napi_ns),
            (7, cpu.reader_ns),
            (10, cpu.background_ns),
            (7, cpu.idle_ns),
        ];
        let all: u64 = parts.iter().map(|(_, ns)| ns).sum();
        text += &format!("{:>3}", cpu.cpu);
        for (width, ns) in parts {
            let percent = ns as f64 * 100.0 / all.max(1) as f64;
            text += &format!(" {:>width$}", format!("{percent:.1} %"));
        }
        text.push('\n');
    }
    text
}
