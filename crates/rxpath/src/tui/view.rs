//! Draws the state: head line, path, verdict, tabs, rows, foot line.

pub mod path;
mod popup;
mod strip;
mod table;

use ratatui::Frame as Area;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::cost;
use super::mark::Mark;
use super::palette::Palette;
use super::sheet::Tab;
use super::state::{App, Open};

/// A smaller terminal shows only a message.
const LEAST: (u16, u16) = (40, 12);

/// From this width on, the head line always shows the cost of the probes.
const ROOMY: u16 = 110;

/// Head, tabs and foot.
const FRAME_LINES: u16 = 3;

/// Lines of the table that stay visible below the CPU strip.
const TABLE_LEAST: u16 = 3;

/// Draws everything.
pub fn draw(area: &mut Area<'_>, app: &App, palette: Palette) {
    let whole = area.area();
    if whole.width < LEAST.0 || whole.height < LEAST.1 {
        let words = format!(
            "{} x {} is too small: at least {} x {}",
            whole.width, whole.height, LEAST.0, LEAST.1
        );
        area.render_widget(Paragraph::new(words), whole);
        return;
    }
    let judged = app.frame.as_ref().map_or_else(Vec::new, |frame| path::limit(frame, palette));
    // The verdict is shown in full before the table gets long; the table keeps half of the space below the path.
    let most = whole.height.saturating_sub(path::HEIGHT + FRAME_LINES) / 2;
    let limit = path::height(&judged, whole.width).clamp(1, most.max(1));
    let rows = [
        Constraint::Length(1),
        Constraint::Length(path::HEIGHT),
        Constraint::Length(limit),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [head, stages, limit, tabs, body, foot] = Layout::vertical(rows).areas(whole);
    area.render_widget(Paragraph::new(head_line(app, head.width, palette)), head);
    match &app.frame {
        Some(frame) => {
            area.render_widget(Paragraph::new(path::lines(frame, stages.width, palette)), stages);
            area.render_widget(Paragraph::new(judged).wrap(Wrap { trim: true }), limit);
        }
        None => area.render_widget(
            Paragraph::new(format!("the first sample takes {:.1} s", app.settings.interval_s)),
            stages,
        ),
    }
    area.render_widget(Paragraph::new(tab_line(app, palette)), tabs);
    rows_of_tab(area, body, app, palette);
    area.render_widget(Paragraph::new(foot_line(app, foot.width, palette)), foot);
    if app.open != Open::Nothing {
        popup::draw(area, body, app, palette);
    }
}

fn rows_of_tab(area: &mut Area<'_>, body: Rect, app: &App, palette: Palette) {
    let mut below = body;
    if app.shown() == Tab::Cpus
        && let Some(frame) = &app.frame
    {
        let strip = strip::lines(&frame.cpus, body.width, palette);
        // The strip is the only view of all CPUs; the heading and two rows of the table stay.
        let height = (strip.len() as u16).min(body.height.saturating_sub(TABLE_LEAST));
        let [above, rest] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(body);
        area.render_widget(Paragraph::new(strip), above);
        below = rest;
    }
    area.render_widget(Paragraph::new(table::lines(app, below, palette)), below);
}

fn head_line<'a>(app: &App, width: u16, palette: Palette) -> Line<'a> {
    let mut spans = vec![
        Span::styled("rxpath watch", palette.style(Mark::Head)),
        Span::raw(format!("  {}", app.settings.host)),
    ];
    // The cost of watching is always shown; the kernel version never changes and may be left out.
    spans.extend((width >= ROOMY).then(|| Span::raw(format!("  {}", app.settings.kernel))));
    if let Some(frame) = &app.frame {
        let own = 100.0 * frame.own_cpu_ratio;
        spans.push(Span::raw(format!("  {}  {:.1} s", clock(frame.at_unix_s), frame.window_s)));
        spans.push(Span::styled(format!("  own CPU {own:.1} %"), palette.style(Mark::Dim)));
        if let Some(probes) = cost::in_short(frame) {
            let mark = if cost::is_much(frame) { Mark::Warn } else { Mark::Dim };
            spans.push(Span::styled(format!(", {probes}"), palette.style(mark)));
        }
    }
    if let Some((at, all)) = app.replay {
        spans.push(Span::raw(format!("  replay {at}/{all}")));
    }
    if app.paused {
        spans.push(Span::styled("  PAUSED", palette.style(Mark::Warn)));
    }
    if app.recording.is_some() {
        spans.push(Span::styled("  ● REC", palette.style(Mark::Bad)));
    }
    Line::from(spans)
}

/// Time of day, in the time zone of the host that shows it.
fn clock(unix_s: f64) -> String {
    jiff::Timestamp::from_second(unix_s as i64).map_or_else(
        |_| "-".into(),
        |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string(),
    )
}

fn tab_line<'a>(app: &App, palette: Palette) -> Line<'a> {
    let mut spans = Vec::new();
    for (at, tab) in Tab::ALL.iter().enumerate() {
        let text = format!(" {} {} ", at + 1, tab.name());
        let mark = if at == app.tab { Mark::Selected } else { Mark::Plain };
        spans.push(Span::styled(text, palette.style(mark)));
    }
    if !app.filter().is_empty() {
        spans.push(Span::styled(format!("  /{}", app.filter()), palette.style(Mark::Warn)));
    }
    let gaps = app.frame.as_ref().map_or(0, |frame| frame.gaps.len());
    if gaps > 0 {
        spans.push(Span::styled(format!("  {gaps} not known (?)"), palette.style(Mark::Dim)));
    }
    Line::from(spans)
}

fn foot_line<'a>(app: &App, width: u16, palette: Palette) -> Line<'a> {
    if app.typing {
        return Line::from(format!("/{}▏  Enter accepts, Esc clears", app.filter()));
    }
    if let Some(message) = &app.message {
        return Line::styled(message.clone(), palette.style(Mark::Warn));
    }
    let replay = app.replay.is_some();
    let record = if replay { "[ ] step" } else { "r record" };
    let keys = [
        format!(
            "←→ tab · ↑↓ row · Enter details · e explain · / filter · s sort · space pause · {record} · ? keys · q quit"
        ),
        format!("←→tab ↑↓row ⏎all e explain /filter s sort space pause {record} ? help q quit"),
        // How to quit and the key help, whatever the width.
        format!("? help q quit e explain {record}"),
    ];
    let fits = |text: &&String| text.chars().count() <= usize::from(width);
    let keys = keys.iter().find(fits).unwrap_or(&keys[2]).clone();
    Line::styled(keys, palette.style(Mark::Dim))
}

#[cfg(test)]
pub mod tests;
