//! Windows over the rows: the keys, all values of a row, its meaning.

use ratatui::Frame as Area;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use rxpath_record::watch::WatchFrame;

use crate::output::table::wrap_after;
use crate::tui::cost;
use crate::tui::explain::explain;
use crate::tui::input::{KEYS, as_shown};
use crate::tui::mark::Mark;
use crate::tui::palette::Palette;
use crate::tui::state::{App, Open};

/// Draws the open window over `body`, from the scroll position on, for as many lines as exist.
pub fn draw(area: &mut Area<'_>, body: Rect, app: &App, palette: Palette) {
    let (title, lines) = match app.open {
        Open::Nothing => return,
        Open::Help => ("keys", help(app)),
        Open::Detail => detail(app),
        Open::Explain => ("meaning", meaning(app)),
    };
    let room = body.inner(Margin::new(1, 1));
    let wrapped: Vec<Line<'_>> =
        lines.iter().flat_map(|line| line.wrapped(usize::from(room.width), palette)).collect();
    let (all, height) = (wrapped.len(), usize::from(room.height));
    let first = app.scrolled.get().min(all.saturating_sub(height));
    app.scrolled.set(first);
    let part = if all > height {
        format!(" · {}-{} of {all} lines, ↑↓", first + 1, (first + height).min(all))
    } else {
        String::new()
    };
    let block = Block::bordered().title(format!(" {title}{part} · Esc closes "));
    let shown: Vec<Line<'_>> = wrapped.into_iter().skip(first).take(height).collect();
    area.render_widget(Clear, body);
    area.render_widget(Paragraph::new(shown).block(block), body);
}

/// A name and its text; either may be empty. Text that does not fit in a line continues below, indented.
struct Told {
    name: String,
    /// Column at which the text begins.
    indent: usize,
    text: String,
    /// Mark of the name.
    mark: Mark,
}

impl Told {
    fn new(name: impl Into<String>, indent: usize, text: impl Into<String>, mark: Mark) -> Self {
        Self { name: name.into(), indent, text: text.into(), mark }
    }

    fn head(name: impl Into<String>) -> Self {
        Self::new(name, 0, "", Mark::Head)
    }

    fn text(text: impl Into<String>) -> Self {
        Self::new("", 0, text, Mark::Plain)
    }

    fn wrapped<'a>(&self, width: usize, palette: Palette) -> Vec<Line<'a>> {
        if self.text.is_empty() {
            return vec![Line::styled(self.name.clone(), palette.style(self.mark))];
        }
        // A narrow screen has no space for an indent.
        let indent = if width >= self.indent + 20 { self.indent } else { 0 };
        let name = format!("{:<indent$}", self.name);
        let head = if indent == 0 && !self.name.is_empty() { format!("{name} ") } else { name };
        let [first, others] =
            [head.chars().count(), indent].map(|taken| width.saturating_sub(taken).max(1));
        let lines = wrap_after(&self.text, first, others);
        let spans = lines.into_iter().enumerate().map(|(at, line)| {
            let before = if at == 0 { head.clone() } else { " ".repeat(indent) };
            Line::from(vec![Span::styled(before, palette.style(self.mark)), Span::raw(line)])
        });
        spans.collect()
    }
}

/// Unknown values come first, if there are any: the line of tabs refers here for them. The cost of watching comes last.
fn help(app: &App) -> Vec<Told> {
    let gaps = app.frame.iter().flat_map(|frame| &frame.gaps);
    let mut lines: Vec<Told> =
        gaps.map(|(what, why)| Told::text(format!("{what}: {why}"))).collect();
    if lines.is_empty() {
        lines.push(Told::text("every source was read: all values are known"));
    } else {
        lines.insert(0, Told::head("unknown values"));
    }
    lines.push(Told::head("keys"));
    lines.extend(KEYS.map(|(key, what)| Told::new(as_shown(key), 22, what, Mark::Plain)));
    if let Some(frame) = &app.frame {
        lines.push(Told::head("cost of watching for this host"));
        lines.push(Told::text(cost::words(frame)));
        lines.extend(cost::sampled(frame).map(Told::text));
    }
    lines
}

fn detail(app: &App) -> (&'static str, Vec<Told>) {
    let sheet = app.sheet();
    let Some(row) = sheet.rows.get(app.selection(&sheet)) else {
        return ("nothing is selected", Vec::new());
    };
    let mut lines = vec![Told::head(row.id.clone())];
    let told = row.detail.iter().filter(|(_, value)| !value.is_empty());
    lines.extend(told.map(|(name, value)| Told::new(*name, 30, value, Mark::Dim)));
    ("details", lines)
}

fn meaning(app: &App) -> Vec<Told> {
    let none = WatchFrame::default();
    let frame = app.frame.as_ref().unwrap_or(&none);
    let sheet = app.sheet();
    let item = sheet.rows.get(app.selection(&sheet)).map(|row| row.item);
    explain(app.shown(), item, frame).into_iter().map(Told::text).collect()
}
