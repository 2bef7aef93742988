//! The cost of networking: what the victim got, what was taken from it and by what, and the cost of the traffic.

use rxpath_core::measured::{TakenBy, TaskKind};
use rxpath_core::number::grouped;
use rxpath_core::{Division, ReportedTime};
use rxpath_record::manifest::VariantSummary;
use rxpath_record::stolen::{StolenCpuTime, VictimRecord};

use crate::page::part::each;
use crate::prelude::*;

/// A variant with the stolen time of its typical trial.
type Row<'r> = (&'r VariantSummary, &'r StolenCpuTime);

/// The section: nothing when nobody asked who paid.
pub(super) fn section(run: &Run) -> Option<Section> {
    let rows = run.shown_with(|trial| trial.stolen.as_ref());
    let (_, first) = rows.first()?;
    Some(Section {
        id: "stolen",
        title: "Who paid",
        lead: "CPU time that networking took from other work, measured between tracepoints; time outside them is \
               estimated and marked as such. Of each variant, the trial nearest to its median is shown.",
        body: html! {
            @let victims = victims(&rows);
            @if !victims.rows.is_empty() {
                h3 { "The victim: what it asked for, what it got, what was taken and by whom" }
                (table(&victims, "Victims"))
            }
            @let costs = costs(&rows);
            @if !costs.rows.is_empty() {
                h3 { "What the traffic cost: medians of all trials" }
                (table(&costs, "Cost of the traffic"))
            }
            h3 { "Each CPU" }
            (table(&cpus(&rows), "CPUs"))
            (fold("Each task", &table(&tasks(&rows), "Tasks")))
            (notes(first))
        },
    })
}

fn seconds(value: f64) -> String {
    if value < 0.0005 { "–".into() } else { format!("{value:.3} s") }
}

/// The victims of the variants that have one, for the page and for Markdown.
pub(crate) fn victims(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(
        "variant | what | #CPU | #asked | #got | #it says itself | #top shows | #taken | \
         #of it estimated | #ksoftirqd and NAPI threads | #other tasks ran | by whom",
    );
    for (variant, stolen) in rows {
        let Some(victim) = &stolen.victim else { continue };
        let share = |part: f64| {
            format!("{} ({})", seconds(part), number::percent(part, victim.row.asked_s))
        };
        let time = &victim.row.time;
        table.rows.push(vec![
            variant.name.clone(),
            what(victim).to_owned(),
            victim.cpu.to_string(),
            seconds(victim.row.asked_s),
            share(victim.got_s()),
            claimed(victim),
            share(time.tick_view_s),
            share(time.taken_s()),
            seconds(time.irq_entry_estimated_s + time.hypervisor_steal_s),
            share(victim.deferred_s),
            share(others(victim)),
            by(&victim.row.taken_by),
        ]);
    }
    table
}

fn what(victim: &VictimRecord) -> &str {
    if victim.command.is_empty() { "known work" } else { &victim.command }
}

/// What the command says of its own CPU time.
fn claimed(victim: &VictimRecord) -> String {
    let one = |claim: &ReportedTime| {
        format!("{} ({})", seconds(claim.got_s), number::percent(claim.got_s, claim.asked_s))
    };
    let said: Vec<String> = victim.row.claims.iter().map(one).collect();
    if said.is_empty() { "–".into() } else { said.join("; ") }
}

/// Time of other tasks on the victim's CPU, without the threads that run softirqs.
fn others(victim: &VictimRecord) -> f64 {
    (victim.row.asked_s - victim.row.time.on_cpu_s - victim.deferred_s).max(0.0)
}

fn by(taken: &[TakenBy]) -> String {
    let one = |by: &TakenBy| {
        format!("{}: {}, {} packets", by.dev, seconds(by.net_s), grouped(by.packets))
    };
    let words: Vec<String> = taken.iter().take(3).map(one).collect();
    if words.is_empty() { "–".into() } else { words.join("; ") }
}

/// Columns of the costs: metric and head.
const COSTS: [(&str, &str); 5] = [
    ("victim_taken_s_per_gbit", "#taken from the victim's CPU per Gb"),
    ("victim_taken_s_per_mpacket", "#per million packets"),
    ("network_cpu_s_per_gbit", "#networking on all CPUs per Gb"),
    ("network_cpu_s_per_mpacket", "#per million packets"),
    ("landed_on_victim_ratio", "#packets landed on the victim's CPU"),
];

fn costs(rows: &[Row<'_>]) -> Table {
    let heads = COSTS.map(|(_, head)| head).join(" | ");
    let mut table = Table::new(&format!("variant | {heads}"));
    for (variant, _) in rows {
        let cells = COSTS.iter().map(|(name, _)| number::median(variant, name));
        if COSTS.iter().any(|(name, _)| variant.metrics.contains_key(*name)) {
            table.rows.push(std::iter::once(variant.name.clone()).chain(cells).collect());
        }
    }
    table
}

const PARTS: &str = "#hard irq | #net rx | #net tx | #other softirq | #mixed | #own softirq | #~irq entry | \
                     #~hypervisor | #top shows";

fn parts(time: &Division) -> impl Iterator<Item = String> {
    [
        time.hardirq_s,
        time.net_rx_s,
        time.net_tx_s,
        time.other_softirq_s,
        time.mixed_softirq_s,
        time.own_softirq_s,
        time.irq_entry_estimated_s,
        time.hypervisor_steal_s,
        time.tick_view_s,
    ]
    .into_iter()
    .map(seconds)
}

fn cpus(rows: &[Row<'_>]) -> Table {
    let heads = "variant | #CPU | #tasks' own | #idle";
    let rows = each(rows, |stolen| &stolen.cpus).map(|(variant, paid)| {
        let cpu = &paid.row;
        let own_s = cpu.time.own_s - cpu.idle_s;
        let mut row = vec![variant, cpu.cpu.to_string(), seconds(own_s), seconds(cpu.idle_s)];
        row.extend(parts(&cpu.time));
        row.push(seconds(cpu.net_on_idle_s));
        row.push(paid.landed_packets.map_or("–".into(), grouped));
        row
    });
    Table::of(&format!("{heads} | {PARTS} | #net on idle | #packets landed"), rows)
}

fn tasks(rows: &[Row<'_>]) -> Table {
    let rows = each(rows, |stolen| &stolen.tasks).map(|(variant, task)| {
        let mut row = vec![
            variant,
            task.comm.clone(),
            if task.kind == TaskKind::Rest { "–".into() } else { task.pid.to_string() },
            seconds(task.time.on_cpu_s),
            seconds(task.time.own_s),
        ];
        row.extend(parts(&task.time));
        row.push(by(&task.taken_by));
        row
    });
    Table::of(&format!("variant | task | #pid | #on CPU | #own | {PARTS} | taken by"), rows)
}

fn notes(first: &StolenCpuTime) -> Markup {
    let cost = &first.interrupt;
    let probe = &first.probe;
    html! {
        p.quiet {
            @if cost.interval_us[1] > 0.0 {
                "An interrupt costs " (number::plain(cost.irq_entry_us)) " µs in addition to the measured time ("
                (number::plain(cost.interval_us[0])) " to " (number::plain(cost.interval_us[1])) " µs, " (cost.source)
                " on this host before the first trial). "
            } @else {
                "Interrupt entry and exit are not estimated: " (cost.source) ". "
            }
            "The probe of the first variant used " (seconds(probe.run_time_s)) " in " (grouped(probe.runs_count))
            " runs, its reader " (seconds(probe.reader_cpu_s)) "; " (grouped(probe.lost_count)) " records were lost."
        }
    }
}
