//! The stages as rows, with the counters behind their numbers.

use rxpath_record::watch::{PathStage, StageRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, per_s, percent, told, word};
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

const COLUMNS: Columns<StageRow, 6> = [
    (word("stage", 10), |it| Cell::text(name(it.stage))),
    (number("rate/s", 8), |it| Cell::fact(&it.rate_per_s, Cell::rate)),
    (word("of", 14), |it| Cell::text(it.unit.clone())),
    (number("drops/s", 8), |it| Cell::fact(&it.drops_pps, Cell::loss)),
    (number("CPU %", 7), |it| Cell::fact(&it.cpu_ratio, Cell::share)),
    (word("note", 24), |it| Cell::text(it.note.clone())),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    let mut sheet = Sheet::of(&frame.stages, COLUMNS, row, "the first sample is in progress");
    let limits = frame.stages.iter().position(|stage| frame.limit() == Some(stage.stage));
    if let Some(row) = limits.and_then(|at| sheet.rows.get_mut(at)) {
        row.cells[0] = Cell { mark: Mark::Bad, ..Cell::text(format!("▶{}", row.id)) };
        row.detail.push(("limit", "this stage limits".into()));
    }
    sheet
}

fn row(stage: &StageRow) -> Told {
    let detail = vec![
        ("rate", told(&stage.rate_per_s, |rate| per_s(*rate, &stage.unit))),
        ("counted by", stage.rate_source.clone()),
        ("drops", told(&stage.drops_pps, |rate| per_s(*rate, "packets"))),
        ("counted by", stage.drops_source.clone()),
        ("CPU", told(&stage.cpu_ratio, |ratio| format!("{} of one CPU", percent(*ratio, 2)))),
    ];
    (name(stage.stage).into(), detail)
}
