//! The one format of all tables: plain columns, one line per row, fitted to the terminal.
//!
//! In a pipe each row is one line, whatever its length. In a terminal, long texts and headings wrap. Columns that still
//! do not fit follow in a second block that repeats the first columns. Empty columns are left out.

/// Between two columns.
const GAP: usize = 2;
/// A text column is not made narrower than this, unless its text is narrower.
const NARROW: usize = 12;

/// A table.
#[derive(Debug)]
pub struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Text columns, left-aligned; the rest are numbers, right-aligned.
    texts: Vec<usize>,
    /// The first columns, which name the row.
    keys: usize,
}

impl Grid {
    /// A table with this head, whose first `keys` columns name the row and are text.
    pub fn new<S: Into<String>>(keys: usize, head: impl IntoIterator<Item = S>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { head, rows: Vec::new(), texts: (0..keys).collect(), keys }
    }

    /// So many of the first columns name the row, be they text or not.
    #[must_use]
    pub fn named_by(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// These columns are text too; they wrap.
    #[must_use]
    pub fn text(mut self, columns: &[usize]) -> Self {
        self.texts.extend(columns);
        self
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }

    /// The table for standard output, with the end of its last line.
    pub fn shown(&self) -> String {
        self.fitted(super::width())
    }

    /// The table in this width; without a width, each row is one line.
    pub fn fitted(&self, width: Option<usize>) -> String {
        let says = |at: &usize| {
            *at < self.keys || self.rows.iter().any(|row| !matches!(row[*at].as_str(), "" | "-"))
        };
        let columns: Vec<usize> = (0..self.head.len()).filter(says).collect();
        let natural: Vec<usize> = columns.iter().map(|at| self.natural(*at)).collect();
        let Some(width) = width.filter(|width| total(&natural) > *width) else {
            return self.block(&columns, &natural);
        };
        let blocks = self.blocks(&columns, width);
        let drawn: Vec<String> = blocks
            .iter()
            .map(|columns| self.block(columns, &self.widths(columns, width)))
            .collect();
        drawn.join("\n")
    }

    /// Columns that fit next to each other; each block begins with the columns that name the row.
    fn blocks(&self, columns: &[usize], width: usize) -> Vec<Vec<usize>> {
        let (keys, rest) = columns.split_at(self.keys.min(columns.len()));
        let mut blocks = vec![keys.to_vec()];
        for column in rest {
            let Some(last) = blocks.last_mut() else { continue };
            let needed: Vec<usize> =
                last.iter().chain([column]).map(|column| self.least(*column)).collect();
            if total(&needed) > width && last.len() > keys.len() {
                blocks.push([keys, &[*column]].concat());
            } else {
                last.push(*column);
            }
        }
        blocks
    }

    /// The smallest widths, and the rest for texts that need more, then for headings.
    fn widths(&self, columns: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = columns.iter().map(|column| self.least(*column)).collect();
        let mut left = width.saturating_sub(total(&widths));
        let is_text = |at: &usize| self.texts.contains(&columns[*at]);
        let (texts, numbers): (Vec<usize>, Vec<usize>) = (0..columns.len()).partition(is_text);
        for at in texts.into_iter().chain(numbers) {
            let more = self.natural(columns[at]).saturating_sub(widths[at]).min(left);
            widths[at] += more;
            left -= more;
        }
        widths
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[column].as_str())
    }

    fn natural(&self, column: usize) -> usize {
        self.cells(column).chain([self.head[column].as_str()]).map(length).max().unwrap_or(0)
    }

    /// Numbers are never broken; words are broken if they are longer than a narrow column.
    fn least(&self, column: usize) -> usize {
        let head = self.head[column].split(' ').map(length).max().unwrap_or(0);
        let cells = if self.texts.contains(&column) {
            let words = self.cells(column).flat_map(|cell| cell.split(' '));
            words.map(length).max().unwrap_or(0).min(NARROW.max(self.shortest(column)))
        } else {
            self.cells(column).map(length).max().unwrap_or(0)
        };
        head.max(cells)
    }

    /// Wrapping a column of short texts gains nothing.
    fn shortest(&self, column: usize) -> usize {
        self.cells(column).map(length).max().filter(|longest| *longest <= NARROW + 6).unwrap_or(0)
    }

    fn block(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut out = String::new();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            self.line(&mut out, columns, widths, row);
        }
        out
    }

    /// A row with as many lines as its longest cell; headings are aligned to the bottom.
    fn line(&self, out: &mut String, columns: &[usize], widths: &[usize], cells: &[String]) {
        let head = std::ptr::eq(cells, self.head.as_slice());
        let wrapped: Vec<Vec<String>> =
            columns.iter().zip(widths).map(|(at, width)| wrap(&cells[*at], *width)).collect();
        let lines = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            let mut text = String::new();
            for ((column, width), cell) in columns.iter().zip(widths).zip(&wrapped) {
                let at = if head { (line + cell.len()).checked_sub(lines) } else { Some(line) };
                let part = at.and_then(|at| cell.get(at)).map_or("", String::as_str);
                let pad = " ".repeat(width.saturating_sub(length(part)));
                if !text.is_empty() || *column != columns[0] {
                    text += &" ".repeat(GAP);
                }
                text += &if self.texts.contains(column) {
                    format!("{part}{pad}")
                } else {
                    format!("{pad}{part}")
                };
            }
            *out += text.trim_end();
            out.push('\n');
        }
    }
}

/// A text after its name, in lines of at most `width` characters; further lines are indented to the first line's text.
pub fn hanging(name: &str, indent: usize, text: &str, width: Option<usize>) -> String {
    let first = format!("{name}{}", " ".repeat(indent.saturating_sub(length(name))));
    let Some(room) = width.map(|width| width.saturating_sub(indent)).filter(|room| *room > NARROW)
    else {
        return format!("{first}{text}\n");
    };
    let lines = wrap(text, room);
    first + &lines.join(&format!("\n{}", " ".repeat(indent))) + "\n"
}

/// Lines for standard output: what a terminal's line has no room for goes on below, indented by two more.
pub fn sentences(text: &str) -> String {
    folded(text, super::width())
}

fn folded(text: &str, width: Option<usize>) -> String {
    let line = |line: &str| {
        let Some(width) = width.filter(|width| length(line) > *width) else {
            return format!("{line}\n");
        };
        let indent = line.len() - line.trim_start_matches(' ').len();
        let room = width.saturating_sub(indent + 2).max(NARROW);
        let below = format!("\n{}", " ".repeat(indent + 2));
        format!("{}{}\n", &line[..indent], wrap(&line[indent..], room).join(&below))
    };
    text.lines().map(line).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The text in lines of at most this many characters, broken at spaces; a longer word is broken inside.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_after(text, width, width)
}

/// Like [`wrap`], with another width of the first line, in which something stands before the text.
pub fn wrap_after(text: &str, first: usize, others: usize) -> Vec<String> {
    if length(text) <= first {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let width = if lines.len() == 1 { first } else { others };
            let Some(line) = lines.last_mut() else { break };
            let used = length(line) + usize::from(!line.is_empty());
            if used + rest.len() <= width {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.extend(rest.drain(..));
            } else if line.is_empty() {
                line.extend(rest.drain(..width.max(1).min(rest.len())));
                if !rest.is_empty() {
                    lines.push(String::new());
                }
            } else {
                lines.push(String::new());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> Grid {
        let head = ["pid", "task", "on CPU", "own", "net rx", "net tx", "~hyp. steal", "taken by"];
        let mut grid = Grid::new(2, head).text(&[7]);
        grid.row(["22282", "python3", "0.293", "0.291", "0.001", "-", "-", "-"]);
        let by = "eth0 rx-3, for udp 192.0.2.1:4321 and a few more";
        grid.row(["7", "a much longer name", "10.293", "1.000", "9.001", "-", "-", by]);
        grid
    }

    #[test]
    fn in_a_pipe_each_row_is_a_line_and_empty_columns_are_gone() {
        let text = grid().fitted(None);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains("net tx") && !text.contains("steal"), "{text}");
        assert!(text.starts_with("pid    task                on CPU    own  net rx  taken by\n"));
        assert!(text.contains("7      a much longer name  10.293  1.000   9.001  eth0 rx-3, for"));
    }

    #[test]
    fn in_a_terminal_long_texts_wrap_and_numbers_do_not() {
        let text = grid().fitted(Some(70));
        assert!(text.lines().all(|line| length(line) <= 70), "{text}");
        assert!(text.contains("10.293  1.000  9.001"), "{text}");
        assert!(text.lines().count() > 3 && text.contains("eth0 rx-3,"), "{text}");
    }

    #[test]
    fn columns_without_a_place_follow_with_the_names_of_their_rows() {
        let text = grid().fitted(Some(40));
        assert!(text.lines().all(|line| length(line) <= 40), "{text}");
        assert_eq!(text.matches("22282").count(), text.matches("pid").count(), "{text}");
        assert!(text.matches("22282").count() > 1, "{text}");
    }

    #[test]
    fn a_text_hangs_behind_its_name() {
        let text = "one two three four five six";
        assert_eq!(
            hanging("name", 6, text, Some(21)),
            "name  one two three\n      four five six\n"
        );
        assert_eq!(hanging("name", 6, text, None), format!("name  {text}\n"));
    }

    #[test]
    fn a_sentence_goes_on_below_in_a_terminal() {
        let text = "one two three four\n  five six seven eight\n\nfits in 16 chars\n";
        let narrow = "one two three\n  four\n  five six\n    seven eight\n\nfits in 16 chars\n";
        assert_eq!(folded(text, Some(16)), narrow);
        assert_eq!(folded(text, None), text);
    }

    #[test]
    fn a_text_goes_on_below_its_begin() {
        assert_eq!(wrap_after("one two three", 5, 7), ["one", "two", "three"]);
        assert_eq!(wrap_after("one two three", 20, 20), ["one two three"]);
        assert_eq!(wrap_after("abcdefgh", 3, 3), ["abc", "def", "gh"]);
        assert_eq!(wrap_after("", 3, 3), [""]);
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_line_too_long(
            words in proptest::collection::vec("[a-z]{1,12}", 0..30), first in 1usize..60, others in 1usize..60,
        ) {
            let lines = wrap_after(&words.join(" "), first, others);
            prop_assert!(length(&lines[0]) <= first, "{:?}", lines);
            prop_assert!(lines[1..].iter().all(|line| length(line) <= others), "{:?}", lines);
            prop_assert_eq!(lines.join("").replace(' ', ""), words.join(""));
        }

        #[test]
        fn nothing_is_lost_and_nothing_sticks_out(
            rows in proptest::collection::vec(proptest::collection::vec("[a-z]{1,9}( [a-z]{1,30}){0,5}", 3), 1..6),
            width in 40usize..140,
        ) {
            let mut grid = Grid::new(1, ["a", "b", "c"]).text(&[1, 2]);
            for row in &rows {
                grid.row(row.clone());
            }
            let text = grid.fitted(Some(width));
            prop_assert!(text.lines().all(|line| length(line) <= width), "{}", text);
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
            let heads = text.matches('\n').count();
            let all: usize = rows.iter().flatten().map(|cell| letters(cell)).sum();
            prop_assert!(letters(&text) >= all + 3 && heads > rows.len(), "{}", text);
        }
    }
}
