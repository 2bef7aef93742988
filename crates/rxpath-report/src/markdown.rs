//! The short form for a terminal, an issue or a commit message.

use std::fmt::Write as _;

use rxpath_record::ledger::Balance;
use rxpath_record::manifest::Manifest;
use rxpath_record::metric::loss_text;

use crate::page::{hosts, stolen};
use crate::prelude::*;

/// Headline, variants, gains and ledger as Markdown tables.
pub fn markdown(run: &Run) -> String {
    let mut out = String::new();
    let manifest = &run.manifest;
    let _ = match manifest.question.as_str() {
        "" => writeln!(out, "# {}\n", text(&run.title())),
        question => writeln!(out, "# {}: {}\n", text(&run.title()), text(question)),
    };
    for fault in run.faults() {
        let _ = writeln!(out, "> **Incomplete:** {}\n", text(&fault));
    }
    if !manifest.headline.is_empty() {
        let _ = writeln!(out, "**{}**\n", text(&manifest.headline));
    }
    for warning in &manifest.warnings {
        let _ = writeln!(out, "- warning: {}", text(&warning.to_string()));
    }
    for (alias, part) in &manifest.hosts {
        let _ = writeln!(out, "- {}: {}", text(alias), text(&part.text()));
    }
    if !manifest.warnings.is_empty() || !manifest.hosts.is_empty() {
        out.push('\n');
    }
    let tables = [
        variants(manifest),
        hosts::pairs(run),
        hosts::rates(run),
        gains(manifest),
        ledger(run),
        stolen::victims(&run.shown_with(|trial| trial.stolen.as_ref())),
    ];
    let tables: Vec<String> = tables.iter().filter(|it| !it.rows.is_empty()).map(table).collect();
    out += &tables.join("\n");
    let _ = writeln!(
        out,
        "\nRun {}, {}, started {}, rxpath {}, seed {}. Reproduce: {}",
        text(&manifest.run_id),
        words::status(manifest.status),
        text(&number::instant(&manifest.started)),
        text(&manifest.version),
        manifest.seed,
        code(&rxpath_core::shell::line(&manifest.command)),
    );
    out
}

fn variants(manifest: &Manifest) -> Table {
    let main = manifest.main_metric.as_str();
    let heading = match main {
        "delivered_pps" => "delivered".to_owned(),
        other => words::metric(other),
    };
    let mut table = Table::new(&format!(
        "variant | #{heading}, median | #95 % interval | #loss, of offered, median | #trials | limit"
    ));
    for variant in &manifest.variants {
        let loss = |ratio| number::metric("loss_ratio", ratio);
        let loss = loss_text(|name| variant.median(name), loss).unwrap_or_else(|| "–".into());
        let delivered = number::median(variant, main);
        let interval = variant.metrics.get(main).and_then(|m| m.interval);
        let limit = match (&variant.not_available, &variant.verdict) {
            (Some(why), _) => format!("not available: {why}"),
            (None, Some(verdict)) => {
                let stage = words::stage(verdict.stage, verdict.cpu);
                let share =
                    variant.agreement.as_ref().map(|trials| format!(" ({})", trials.text()));
                stage + &share.unwrap_or_default()
            }
            (None, None) => "–".into(),
        };
        let interval = interval.map_or_else(|| "–".into(), |ends| number::between(main, ends));
        let trials = variant.trials_count.to_string();
        table.rows.push(vec![variant.name.clone(), delivered, interval, loss, trials, limit]);
    }
    table
}

fn gains(manifest: &Manifest) -> Table {
    let rows = manifest.comparisons.iter().map(|comparison| {
        let (metric, effect) = (&comparison.metric, &comparison.effect);
        let [interval, _] = effect.spans(metric);
        vec![
            format!("{} → {}", comparison.base, comparison.variant),
            words::metric(metric),
            effect.amount(metric),
            interval.unwrap_or_else(|| "–".into()),
            effect.verdict("blocks"),
            words::expected(comparison),
        ]
    });
    Table::of("step | metric | #change | #95 % interval | outcome | expected", rows)
}

/// The median trial of each variant: where its datagrams went.
fn ledger(run: &Run) -> Table {
    let unit = run.unit();
    let mut table = Table::new(&format!("variant (median trial) | place | #{unit} | #of offered"));
    for (variant, trial) in run.shown() {
        let ledger = &trial.ledger;
        let offered = ledger.offered_packets as f64;
        let name = format!("{} ({})", variant.name, trial.number());
        let share = |packets: u64| number::percent(packets as f64, offered);
        let exact = |packets: u64| (number::count(packets), share(packets));
        let mut line = |place: &str, (packets, share): (String, String)| {
            table.rows.push(vec![name.clone(), place.to_owned(), packets, share]);
        };
        line("offered", exact(ledger.offered_packets));
        for drop in ledger.drops.iter().filter(|drop| drop.range().most_packets != Some(0)) {
            let place = format!("dropped: {} ({})", drop.place.words().short, drop.counter);
            line(&place, number::loss(drop, ledger.offered_packets));
        }
        line("in flight", exact(ledger.in_flight_packets));
        line("delivered", exact(ledger.delivered_packets));
        let left = ledger.unaccounted();
        match (ledger.balance(), ledger.unaccounted_packets) {
            (Balance::Closed, _) => line("unaccounted", exact(0)),
            (Balance::Missing(lost), Some(_)) => line("unaccounted", (left, share(lost))),
            (Balance::Excess(more), _) => line("more than were sent", exact(more)),
            _ => line("unaccounted", (left, "–".into())),
        }
    }
    table
}

/// A table of the page as Markdown.
pub(crate) fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |(_, number): &(String, bool)| String::from(if *number { "---:" } else { "---" });
    let mut out = line(table.head.iter().map(|(head, _)| text(head)).collect());
    out += &line(table.head.iter().map(rule).collect());
    out.extend(table.rows.iter().map(|cells| line(cells.iter().map(|cell| text(cell)).collect())));
    out
}

/// Text in which nothing is Markdown or HTML.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// An inline code span that no backtick inside can end.
fn code(raw: &str) -> String {
    let clean: String = raw.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let longest = clean.split(|c: char| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{clean}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(text("a|b*c*<img>\n# x"), "a\\|b\\*c\\*&lt;img&gt; \\# x");
        assert_eq!(code("a `b` c"), "`` a `b` c ``");
    }
}
