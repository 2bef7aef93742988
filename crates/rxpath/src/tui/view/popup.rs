//! What lies over the rows: the keys, everything about a row, what it means.

use ratatui::Frame as Area;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use crate::tui::explain::explain;
use crate::tui::palette::{Mark, Palette};
use crate::tui::state::{App, Open};

const KEYS: [(&str, &str); 12] = [
    ("← → h l Tab 1-6", "another tab"),
    ("↑ ↓ j k PgUp PgDn g G", "another row"),
    ("Enter", "everything about the row, with the reasons of its dashes"),
    ("e", "what it means and what to do"),
    ("/", "show only rows with this text"),
    ("s S", "sort by the next column; the other way round"),
    ("space", "stand still, or go on (a recording goes on being written)"),
    ("r", "begin or end a recording in this directory"),
    ("[ ]", "one frame back or on, in a replay"),
    ("Esc", "close, or drop the filter"),
    ("q Ctrl-C", "end"),
    ("?", "these keys, and what is not known here"),
];

/// Draws what is open, over `body`.
pub fn draw(area: &mut Area<'_>, body: Rect, app: &App, palette: Palette) {
    let (title, lines) = match app.open {
        Open::Nothing => return,
        Open::Help => ("keys", help(app, palette)),
        Open::Detail => detail(app, palette),
        Open::Explain => ("what it means", meaning(app)),
    };
    let block = Block::bordered().title(format!(" {title} · Esc closes "));
    let text = Paragraph::new(lines).block(block).wrap(Wrap { trim: false });
    area.render_widget(Clear, body);
    area.render_widget(text, body);
}

fn help<'a>(app: &App, palette: Palette) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> =
        KEYS.iter().map(|(key, what)| Line::from(format!("{key:<22}{what}"))).collect();
    let gaps = app.frame.iter().flat_map(|frame| &frame.gaps);
    let gaps = gaps.map(|(what, why)| Line::from(format!("{what}: {why}")));
    lines.push(Line::styled("not known here", palette.style(Mark::Head)));
    let before = lines.len();
    lines.extend(gaps);
    if lines.len() == before {
        lines.push(Line::from("nothing: every source was read"));
    }
    lines
}

fn detail<'a>(app: &App, palette: Palette) -> (&'static str, Vec<Line<'a>>) {
    let sheet = app.sheet();
    let Some(row) = sheet.rows.get(app.selection(&sheet)) else {
        return ("nothing is selected", Vec::new());
    };
    let mut lines = vec![Line::styled(row.id.clone(), palette.style(Mark::Head))];
    let told = row.detail.iter().filter(|(_, value)| !value.is_empty());
    lines.extend(told.map(|(name, value)| {
        Line::from(vec![
            Span::styled(format!("{name:<28}"), palette.style(Mark::Dim)),
            Span::raw(value.clone()),
        ])
    }));
    ("all of it", lines)
}

fn meaning<'a>(app: &App) -> Vec<Line<'a>> {
    let frame = app.frame.clone().unwrap_or_default();
    let sheet = app.sheet();
    let row = sheet.rows.get(app.selection(&sheet));
    explain(app.shown(), row, &frame).into_iter().map(Line::from).collect()
}
