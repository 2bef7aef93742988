//! The receive side in the window: softirqs, polls with their packets, latency from stage to stage.

use rxpath_core::number::grouped;
use rxpath_core::{CpuList, Log2, Nanos};
use rxpath_record::manifest::VariantSummary;
use rxpath_record::traced::{NapiTraced, Traced};

use crate::page::part::each;
use crate::prelude::*;

/// A variant with what was traced of its typical trial.
type Row<'r> = (&'r VariantSummary, &'r Traced);

/// NAPI instances that are shown of a variant.
const MOST_NAPIS: usize = 12;

/// The section: nothing when nothing was traced.
pub(super) fn section(run: &Run) -> Option<Section> {
    let rows = run.shown_with(|trial| trial.traced.as_ref());
    let (_, first) = rows.first()?;
    Some(Section {
        id: "traced",
        title: "Softirqs, polls and stages",
        lead: "Counts of the kernel's tracepoints in the measured window, for each variant from the trial nearest to its \
               median. CPUs and polls cover the whole machine, stages only the receiver's namespace.",
        body: html! {
            (table(&cpus(&rows), "CPUs"))
            @let devices = devices(&rows);
            @if !devices.rows.is_empty() { h3 { "Devices" } (table(&devices, "Polls of devices")) }
            @let lines = interrupts(&rows);
            @if !lines.rows.is_empty() { (fold("Interrupts of devices", &table(&lines, "Interrupts"))) }
            h3 { "Packets of a poll" }
            (table(&polls(&rows), "Packets of a poll"))
            h3 { "From stage to stage" }
            p.quiet { "Quantiles are upper bucket bounds, one bucket per power of two." }
            (table(&stages(&rows), "Latency of stages"))
            @let outliers = outliers(&rows);
            @if !outliers.rows.is_empty() { (fold("The longest, one by one", &table(&outliers, "Outliers"))) }
            p.quiet {
                "The probes of the first variant used " (number::seconds(first.probe.run_time_s)) " in "
                (grouped(first.probe.runs_count)) " runs; " (grouped(first.probe.lost_count)) " records were lost."
            }
        },
    })
}

fn cpus(rows: &[Row<'_>]) -> Table {
    let heads = "variant | #CPU | #device irqs | #other irqs | #NET_RX runs | #time in them | \
                 #longest | #in ksoftirqd | #polls | #packets | #budget used up | #squeezed";
    let rows = each(rows, |traced| &traced.cpus).map(|(variant, cpu)| {
        vec![
            variant,
            cpu.cpu.to_string(),
            grouped(cpu.device_interrupts_count),
            grouped(cpu.other_interrupts_count),
            grouped(cpu.net_rx_runs_count),
            number::seconds(cpu.net_rx_s),
            Nanos(cpu.longest_net_rx_ns).to_string(),
            number::percent(cpu.ksoftirqd_s, cpu.net_rx_s),
            grouped(cpu.polls_count),
            grouped(cpu.packets),
            grouped(cpu.exhausted_count),
            cpu.time_squeeze_count.map_or_else(|| "–".into(), grouped),
        ]
    });
    Table::of(heads, rows)
}

/// The device with the side that it belongs to.
fn named(dev: &str, side: &str) -> String {
    if side.is_empty() { dev.into() } else { format!("{dev} ({side})") }
}

fn devices(rows: &[Row<'_>]) -> Table {
    let rows = each(rows, |traced| &traced.devices).map(|(variant, device)| {
        vec![
            variant,
            named(&device.dev, &device.side),
            grouped(device.napis_count),
            CpuList(device.cpus.clone()).to_string(),
            grouped(device.polls_count),
            grouped(device.packets),
            grouped(device.exhausted_count),
            number::seconds(device.poll_s),
        ]
    });
    Table::of(
        "variant | device | #NAPIs | CPUs | #polls | #packets | #budget used up | #time in them",
        rows,
    )
}

fn interrupts(rows: &[Row<'_>]) -> Table {
    let rows = each(rows, |traced| &traced.irqs).map(|(variant, irq)| {
        vec![
            variant,
            irq.irq.to_string(),
            irq.name.clone(),
            irq.cpu.to_string(),
            grouped(irq.interrupts_count),
            at(&irq.interval_ns, 0.5),
            at(&irq.interval_ns, 0.99),
        ]
    });
    Table::of("variant | #irq | handler | #CPU | #interrupts | #interval p50 | #p99", rows)
}

/// The upper end of the bucket in which a quantile lies.
fn at(histogram: &Log2, q: f64) -> String {
    histogram.quantile(q).map_or_else(|| "–".into(), |(_, high)| Nanos(high).to_string())
}

/// Each NAPI with the histogram of its polls.
fn polls(rows: &[Row<'_>]) -> Table {
    let all = || rows.iter().flat_map(|(_, traced)| traced.napis.iter().take(MOST_NAPIS));
    let most = all().map(|napi| napi.row.packets_per_poll.buckets.len()).max().unwrap_or(0);
    let range = |bucket: usize| match Log2::default().range(bucket) {
        (low, high) if low == high => format!(" | #{low}"),
        (low, high) => format!(" | #{low} to {high}"),
    };
    let ranges: String = (0..most).map(range).collect();
    let mut table = Table::new(&format!("variant | device | #CPU | #polls | #packets{ranges}"));
    for (variant, traced) in rows {
        for NapiTraced { row: napi, side } in traced.napis.iter().take(MOST_NAPIS) {
            let mut row = vec![
                variant.name.clone(),
                named(&napi.dev, side),
                napi.cpu.to_string(),
                grouped(napi.polls_count),
                grouped(napi.packets),
            ];
            let count = |at| napi.packets_per_poll.buckets.get(at).copied().unwrap_or(0);
            row.extend((0..most).map(|at| grouped(count(at))));
            table.rows.push(row);
        }
    }
    table
}

fn stages(rows: &[Row<'_>]) -> Table {
    let rows = each(rows, |traced| &traced.stages).map(|(variant, stage)| {
        vec![
            variant,
            stage.stage.title().into(),
            grouped(stage.latencies_count),
            grouped(stage.untimed_count + stage.unread_count),
            Nanos(stage.mean_ns as u64).to_string(),
            at(&stage.latency_ns, 0.5),
            at(&stage.latency_ns, 0.99),
            at(&stage.latency_ns, 0.999),
            Nanos(stage.max_ns).to_string(),
        ]
    });
    Table::of(
        "variant | latency | #packets | #not timed | #mean | #p50 | #p99 | #p99.9 | #longest",
        rows,
    )
}

fn outliers(rows: &[Row<'_>]) -> Table {
    let rows = each(rows, |traced| &traced.stages).flat_map(|(variant, stage)| {
        stage.outliers.iter().map(move |outlier| {
            vec![
                variant.clone(),
                stage.stage.title().into(),
                Nanos(outlier.latency_ns).to_string(),
                outlier.cpu.to_string(),
                outlier.port.to_string(),
                outlier.task.clone(),
            ]
        })
    });
    Table::of("variant | latency | #took | #CPU | #port | task", rows)
}
