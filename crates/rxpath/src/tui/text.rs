//! One sample as text: the path, the verdict, and the first rows of each tab.

use rxpath_core::Nanos;
use rxpath_core::number::{grouped, si};
use rxpath_record::watch::{WatchFrame, WatchSettings};

use super::cost;
use super::sheet::{Order, Sheet, Tab, stage_name};
use crate::output::table::{Grid, sentences};

/// Only recordings by older versions have frames without a verdict.
pub const QUIET: &str = "no traffic in this window";

/// Traffic of other namespaces.
pub fn elsewhere(frame: &WatchFrame) -> Option<String> {
    let pps = si(frame.elsewhere_pps?.round());
    Some(format!("{pps} packets/s went to other network namespaces (--netns NAME, --pid PID)"))
}

/// Everything: the whole path, and this many rows of each table.
pub fn text(frame: &WatchFrame, settings: &WatchSettings, rows: usize) -> String {
    let mut out = sentences(&format!(
        "{}  {}  window {:.2} s  {}\n{}\n{}\n",
        settings.host,
        settings.kernel,
        frame.window_s,
        settings.probes,
        cost::words(frame),
        cost::sampled(frame).map_or_else(String::new, |said| said + "\n")
    ));
    for tab in Tab::ALL {
        let sheet = tab.sheet(frame).arranged("", Order::default());
        out += &section(tab, &sheet, if tab == Tab::Path { usize::MAX } else { rows });
        if tab == Tab::Path {
            out += &sentences(&verdict(frame));
            if let Some(elsewhere) = elsewhere(frame) {
                out += &sentences(&format!("{elsewhere}\n\n"));
            }
        }
    }
    for latency in &frame.latency {
        let line = match latency.count {
            0 => format!("latency {}: no packet passed in this window\n", latency.stage),
            count => format!(
                "latency {}: {} measured, p50 up to {}, p99 up to {}\n",
                latency.stage,
                grouped(count),
                Nanos(latency.p50_ns),
                Nanos(latency.p99_ns)
            ),
        };
        out += &sentences(&line);
    }
    let gaps = frame.gaps.iter();
    out.extend(gaps.map(|(what, why)| sentences(&format!("not known: {what}: {why}\n"))));
    out
}

fn verdict(frame: &WatchFrame) -> String {
    match &frame.verdict {
        Some(verdict) => {
            let place = frame
                .limit()
                .map_or_else(String::new, |stage| format!("limit at {}: ", stage_name(stage)));
            format!("{place}{}\n\n", verdict.headline())
        }
        None => format!("{QUIET}\n\n"),
    }
}

/// How many of a tab's first columns name a row.
fn names(tab: Tab) -> usize {
    match tab {
        Tab::Path | Tab::Cpus => 1,
        Tab::Queues | Tab::Sockets | Tab::Tasks => 2,
        Tab::Drops => 3,
    }
}

fn section(tab: Tab, sheet: &Sheet, rows: usize) -> String {
    if sheet.rows.is_empty() {
        return sentences(&format!("{}: {}\n\n", tab.name(), sheet.empty));
    }
    let columns = &sheet.columns;
    let texts: Vec<usize> = (0..columns.len()).filter(|at| !columns[*at].right).collect();
    let titles = columns.iter().map(|column| column.title);
    let mut grid = Grid::new(0, titles).named_by(names(tab)).text(&texts);
    for row in sheet.rows.iter().take(rows) {
        grid.row(row.cells.iter().map(|cell| cell.text.as_str()));
    }
    let mut out = format!("{}\n{}", tab.name(), grid.shown());
    if let Some(more) = sheet.rows.len().checked_sub(rows).filter(|more| *more > 0) {
        out += &format!("{more} more (--json)\n");
    }
    out + "\n"
}
