//! The stages as rows, with the counters behind their numbers.

use rxpath_core::number::si;
use rxpath_record::watch::{PathStage, StageRow, WatchFrame};

use super::{Cell, Sheet, SheetRow, number, percent, told, word};
use crate::tui::mark::Mark;

/// A stage's name on the path.
pub fn name(stage: PathStage) -> &'static str {
    match stage {
        PathStage::Nic => "NIC/ring",
        PathStage::Irq => "irq/NAPI",
        PathStage::Gro => "GRO",
        PathStage::Backlog => "backlog",
        PathStage::Ip => "filter/IP",
        PathStage::Socket => "socket",
        PathStage::Application => "program",
    }
}

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    Sheet {
        columns: vec![
            word("stage", 10),
            number("rate/s", 8),
            word("of", 14),
            number("drops/s", 8),
            number("CPU %", 7),
            word("note", 24),
        ],
        rows: frame.stages.iter().map(|stage| row(stage, frame)).collect(),
        empty: "the first sample is in progress".into(),
    }
}

fn row(stage: &StageRow, frame: &WatchFrame) -> SheetRow {
    let limits = frame.limit() == Some(stage.stage);
    let shown = if limits { format!("▶{}", name(stage.stage)) } else { name(stage.stage).into() };
    let mut first = Cell::text(shown);
    if limits {
        first.mark = Mark::Bad;
    }
    let mut detail = vec![
        ("rate".into(), told(&stage.rate_per_s, |rate| format!("{} {}/s", si(*rate), stage.unit))),
        ("counted by".into(), stage.rate_source.clone()),
        ("drops".into(), told(&stage.drops_pps, |rate| format!("{} packets/s", si(*rate)))),
        ("counted by".into(), stage.drops_source.clone()),
        (
            "CPU".into(),
            told(&stage.cpu_ratio, |ratio| format!("{} of one CPU", percent(*ratio, 2))),
        ),
    ];
    if limits {
        detail.push(("limit".into(), "this stage limits".into()));
    }
    SheetRow {
        id: name(stage.stage).into(),
        item: 0,
        cells: vec![
            first,
            Cell::fact(&stage.rate_per_s, Cell::rate),
            Cell::text(stage.unit.clone()),
            Cell::fact(&stage.drops_pps, Cell::loss),
            Cell::fact(&stage.cpu_ratio, Cell::share),
            Cell::text(stage.note.clone()),
        ],
        detail,
    }
}
