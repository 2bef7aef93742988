//! The short form for a terminal, an issue or a commit message.

use std::fmt::Write as _;

use rxpath_record::ledger::Balance;
use rxpath_record::manifest::Manifest;

use crate::prelude::*;

/// Headline, variants, gains and ledger as Markdown tables.
pub fn markdown(run: &Run) -> String {
    let mut out = String::new();
    let manifest = &run.manifest;
    let _ = match manifest.question.as_str() {
        "" => writeln!(out, "# {}\n", text(run.title())),
        question => writeln!(out, "# {}: {}\n", text(run.title()), text(question)),
    };
    problems(run, &mut out);
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
    variants(manifest, &mut out);
    pairs(manifest, &mut out);
    pair_rates(manifest, &mut out);
    gains(manifest, &mut out);
    ledger(run, &mut out);
    stolen(run, &mut out);
    let _ = writeln!(
        out,
        "\nRun {}, {}, started {}, rxpath {}, seed {}. Reproduce: {}",
        text(&manifest.run_id),
        words::status(manifest.status),
        text(&number::instant(&manifest.started)),
        text(&manifest.version),
        manifest.seed,
        code(&crate::page::shell(&manifest.command)),
    );
    out
}

fn problems(run: &Run, out: &mut String) {
    for problem in &run.problems {
        let _ = writeln!(out, "> **Incomplete:** {}\n", text(problem));
    }
}

fn variants(manifest: &Manifest, out: &mut String) {
    if manifest.variants.is_empty() {
        return;
    }
    let main = manifest.main_metric.as_str();
    let heading = match main {
        "delivered_pps" => "delivered, median".to_owned(),
        other => format!("{}, median", words::metric(other)),
    };
    row(out, &["variant", &heading, "95 % interval", "loss, of offered", "trials", "limit"]);
    row(out, &["---", "---:", "---:", "---:", "---:", "---"]);
    for variant in &manifest.variants {
        let metric = |name: &str| {
            variant.metrics.get(name).map_or("–".into(), |m| number::metric(name, m.median))
        };
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
        let interval = match interval {
            Some([low, high]) => {
                format!("{} … {}", number::metric(main, low), number::metric(main, high))
            }
            None => "–".into(),
        };
        let trials = variant.trials_count.to_string();
        let (delivered, loss) = (metric(main), metric("loss_ratio"));
        row(out, &[&variant.name, &delivered, &interval, &loss, &trials, &limit]);
    }
}

/// What each sender sent to each receiver, where there are several.
fn pairs(manifest: &Manifest, out: &mut String) {
    let of = |name: &String| (name.clone(), manifest.pairs(name));
    let all = manifest.variants.iter().map(|variant| of(&variant.name));
    let all: Vec<_> = all.filter(|(_, pairs)| !pairs.is_empty()).collect();
    if all.is_empty() {
        return;
    }
    out.push('\n');
    row(out, &["variant", "sender", "receiver", "offered", "lost, of offered"]);
    row(out, &["---", "---", "---", "---:", "---:"]);
    for (name, pair) in all.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, it))) {
        let lost = pair.lost_ratio();
        let lost = lost.map_or_else(|| "–".into(), |ratio| number::percent(ratio, 1.0));
        let offered = number::count(pair.offered_packets);
        row(out, &[name, &pair.sender, &pair.receiver, &offered, &lost]);
    }
}

/// What each sender got done with each receiver over TCP or HTTP, where there are several.
fn pair_rates(manifest: &Manifest, out: &mut String) {
    let of = |name: &String| (name.clone(), manifest.pair_rates(name));
    let all: Vec<_> = manifest.variants.iter().map(|variant| of(&variant.name)).collect();
    if all.iter().all(|(_, pairs)| pairs.is_empty()) {
        return;
    }
    out.push('\n');
    row(out, &["variant", "sender", "receiver", "rate", "p99"]);
    row(out, &["---", "---", "---", "---:", "---:"]);
    for (name, pair) in all.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, it))) {
        let p99 = pair.p99_us.map_or_else(|| "–".into(), |us| number::seconds(us / 1e6));
        let rate = number::metric(&pair.metric, pair.value);
        row(out, &[name, &pair.sender, &pair.receiver, &rate, &p99]);
    }
}

fn gains(manifest: &Manifest, out: &mut String) {
    if manifest.comparisons.is_empty() {
        return;
    }
    out.push('\n');
    row(out, &["step", "metric", "change", "95 % interval", "outcome", "expected"]);
    row(out, &["---", "---", "---:", "---:", "---", "---"]);
    for comparison in &manifest.comparisons {
        let (metric, effect) = (&comparison.metric, &comparison.effect);
        let [interval, _] = effect.spans(metric);
        row(
            out,
            &[
                &format!("{} → {}", comparison.base, comparison.variant),
                &words::metric(metric),
                &effect.amount(metric),
                &interval.unwrap_or_else(|| "–".into()),
                &effect.verdict("blocks"),
                &words::expected(comparison),
            ],
        );
    }
}

/// The median trial of each variant: where its datagrams went.
fn ledger(run: &Run, out: &mut String) {
    let shown = run.shown();
    if shown.is_empty() {
        return;
    }
    out.push('\n');
    row(out, &["variant (median trial)", "place", run.unit(), "of offered"]);
    row(out, &["---", "---", "---:", "---:"]);
    for (variant, trial) in shown {
        let ledger = &trial.ledger;
        let offered = ledger.offered_packets as f64;
        let name = format!("{} ({})", variant.name, trial.number());
        let mut line = |place: &str, packets: u64, shown: Option<String>| {
            let share = number::percent(packets as f64, offered);
            let shown = shown.unwrap_or_else(|| number::count(packets));
            row(out, &[&name, place, &shown, &share]);
        };
        line("offered", ledger.offered_packets, None);
        for drop in &ledger.drops {
            let range = drop.range();
            if range.most_packets != Some(0) {
                let place = format!("dropped: {} ({})", drop.place.words().short, drop.counter);
                let shown = range.around(drop.packets, ledger.offered_packets);
                line(&place, drop.packets, Some(shown));
            }
        }
        line("in flight", ledger.in_flight_packets, None);
        line("delivered", ledger.delivered_packets, None);
        match ledger.balance() {
            Balance::Closed => line("unaccounted", 0, None),
            Balance::Missing(lost) => line("unaccounted", lost, Some(ledger.unaccounted())),
            Balance::Excess(more) => line("more than were sent", more, None),
            Balance::Within(_) | Balance::Unknown => {
                row(out, &[&name, "unaccounted", &ledger.unaccounted(), "–"]);
            }
        }
    }
}

/// The CPU time that the victims asked for and got.
fn stolen(run: &Run, out: &mut String) {
    let shown = run.shown().into_iter();
    let rows: Vec<_> =
        shown.filter_map(|(variant, trial)| Some((variant, trial.stolen.as_ref()?))).collect();
    let table = crate::page::stolen::victims(&rows);
    if table.rows.is_empty() {
        return;
    }
    out.push('\n');
    let heads: Vec<&str> = table.head.iter().map(|(head, _)| head.as_str()).collect();
    row(out, &heads);
    let rule = |number: &bool| if *number { "---:" } else { "---" };
    row(out, &table.head.iter().map(|(_, number)| rule(number)).collect::<Vec<_>>());
    for cells in &table.rows {
        row(out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// A table of the page as Markdown.
pub(crate) fn table(table: &Table) -> String {
    let mut out = String::new();
    let heads: Vec<&str> = table.head.iter().map(|(head, _)| head.as_str()).collect();
    row(&mut out, &heads);
    row(&mut out, &vec!["---"; heads.len()]);
    for cells in &table.rows {
        row(&mut out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    out
}

fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells
        .iter()
        .map(|cell| if cell.starts_with("---") { (*cell).to_owned() } else { text(cell) })
        .collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
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
    let mut longest = 0;
    let mut current = 0;
    for c in clean.chars() {
        current = if c == '`' { current + 1 } else { 0 };
        longest = longest.max(current);
    }
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
