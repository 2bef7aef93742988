//! A tab's rows: the columns that fit, the sort column marked, the selected row visible.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::mark::Mark;
use crate::tui::palette::Palette;
use crate::tui::sheet::{Column, Sheet};
use crate::tui::state::App;

/// The lines for this space.
pub fn lines<'a>(app: &App, room: Rect, palette: Palette) -> Vec<Line<'a>> {
    let sheet = app.sheet();
    let widths = widths(&sheet.columns, room.width);
    let mut lines = vec![heading(app, &sheet, &widths, palette)];
    if sheet.rows.is_empty() {
        lines.push(Line::styled(sheet.empty.clone(), palette.style(Mark::Dim)));
        return lines;
    }
    let selected = app.selection(&sheet);
    let height = usize::from(room.height.saturating_sub(1)).max(1);
    let first = selected.saturating_sub(height - 1);
    for (at, row) in sheet.rows.iter().enumerate().skip(first).take(height) {
        let cells = row.cells.iter().zip(&sheet.columns).zip(&widths);
        let spans: Vec<Span<'a>> = cells
            .map(|((cell, column), width)| {
                let mark = if at == selected { Mark::Selected } else { cell.mark };
                Span::styled(fit(&cell.text, *column, *width), palette.style(mark))
            })
            .collect();
        lines.push(Line::from(spans));
    }
    lines
}

fn heading<'a>(app: &App, sheet: &Sheet, widths: &[usize], palette: Palette) -> Line<'a> {
    let order = app.order();
    let spans = sheet.columns.iter().enumerate().zip(widths).map(|((at, column), width)| {
        let sign = match (order.column == Some(at), column.right == order.reversed) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        };
        let title = format!("{}{sign}", column.title);
        Span::styled(fit(&title, *column, *width), palette.style(Mark::Head))
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// The last column is drawn only from this width on.
const LEAST: usize = 8;

/// The width of each column: as requested; the last one takes the rest; columns on the right are left out (0) if they
/// do not fit.
fn widths(columns: &[Column], room: u16) -> Vec<usize> {
    let mut left = usize::from(room);
    let last = columns.len().saturating_sub(1);
    columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            // One character between two columns.
            let wanted = usize::from(column.width) + 1;
            let width = if at == last && left >= LEAST.min(wanted) { left } else { wanted };
            if width > left {
                left = 0;
                return 0;
            }
            left -= width;
            width
        })
        .collect()
}

/// A cell in exactly this many characters.
fn fit(cell: &str, column: Column, width: usize) -> String {
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let long = cell.chars().count() > room;
    let mut text: String =
        cell.chars().take(if long { room.saturating_sub(1) } else { room }).collect();
    if long {
        text.push('…');
    }
    if column.right { format!("{text:>room$} ") } else { format!("{text:<room$} ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(width: u16) -> Column {
        Column { title: "a", width, right: false }
    }

    #[test]
    fn the_last_column_takes_what_is_left_and_none_is_drawn_over_the_edge() {
        assert_eq!(widths(&[column(4), column(4)], 30), [5, 25]);
        assert_eq!(widths(&[column(10), column(10), column(10)], 24), [11, 11, 0]);
        assert_eq!(widths(&[column(10), column(20)], 20), [11, 9], "shorter than asked");
        assert_eq!(widths(&[column(10)], 3), [0]);
    }

    #[test]
    fn what_is_too_long_ends_with_a_sign() {
        assert_eq!(fit("abcdefgh", column(4), 5), "abc… ");
        assert_eq!(fit("abcdefgh", column(4), 0), "");
    }
}
