//! The path as a pipeline, left to right: a column for each stage, the limiting one marked by sign and word.

use ratatui::text::{Line, Span};
use rxpath_core::Fact;
use rxpath_core::units::si;
use rxpath_record::watch::{Frame, PathStage, StageRow};

use crate::tui::palette::{Mark, Palette};
use crate::tui::sheet::stage_name;

/// Name, rate, drops, CPU, mark.
pub const HEIGHT: u16 = 5;

/// The columns, in this width.
pub fn lines<'a>(frame: &Frame, width: u16, palette: Palette) -> Vec<Line<'a>> {
    let each = usize::from(width) / PathStage::ALL.len();
    let limit = frame.limit();
    let row = |cell: &dyn Fn(&StageRow) -> (String, Mark)| {
        let spans = frame.stages.iter().map(|stage| {
            let (text, mark) = cell(stage);
            Span::styled(fit(&text, each), palette.style(mark))
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    vec![
        row(&|stage| {
            let first = stage.stage == PathStage::Nic;
            let text = format!("{}{}", if first { "" } else { "→" }, stage_name(stage.stage));
            (text, if limit == Some(stage.stage) { Mark::Bad } else { Mark::Head })
        }),
        row(&|stage| shown(&stage.rate_per_s, |rate| (format!(" {}/s", si(rate)), Mark::Plain))),
        row(&|stage| {
            shown(&stage.drops_pps, |rate| match rate {
                rate if rate > 0.0 => (format!(" lost {}!", si(rate)), Mark::Bad),
                _ => (" lost 0".into(), Mark::Plain),
            })
        }),
        row(&|stage| {
            shown(&stage.cpu_ratio, |ratio| (format!(" cpu {:.0} %", 100.0 * ratio), Mark::Plain))
        }),
        row(&|stage| {
            if limit == Some(stage.stage) {
                ("▲ LIMIT".into(), Mark::Bad)
            } else {
                (String::new(), Mark::Plain)
            }
        }),
    ]
}

fn shown(fact: &Fact<f64>, shown: impl FnOnce(f64) -> (String, Mark)) -> (String, Mark) {
    fact.value().map_or_else(|| (" -".into(), Mark::Dim), |value| shown(*value))
}

/// A text in exactly this many letters, one of them a gap.
fn fit(text: &str, width: usize) -> String {
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept:<width$}")
}

/// The verdict in a line.
pub fn limit<'a>(frame: &Frame, palette: Palette) -> Line<'a> {
    match &frame.verdict {
        Some(verdict) => {
            let sure = format!("{:?}", verdict.confidence).to_lowercase();
            let mark = if frame.limit().is_some() { Mark::Bad } else { Mark::Plain };
            Line::styled(format!("{} ({sure} evidence)", verdict.sentence), palette.style(mark))
        }
        None => Line::styled("no UDP datagram arrived in this window", palette.style(Mark::Dim)),
    }
}
