//! A tab as rows and columns before drawing: content, sort order, filter, selection.

mod cpus;
mod drops;
mod path;
mod queues;
mod sockets;
mod tasks;

use rxpath_core::number::{percent, si};
use rxpath_core::{Fact, SortFew};
use rxpath_record::watch::WatchFrame;

use super::mark::Mark;
use crate::output::known as told;

pub use path::name as stage_name;

rxpath_core::named! {
    /// The tabs, from left to right.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Tab {
        Path => "path",
        Cpus => "CPUs",
        Queues => "queues",
        Sockets => "sockets",
        Tasks => "tasks",
        Drops => "drops",
    }
    pub fn name(self) -> &'static str
}

impl Tab {
    /// Its rows.
    pub fn sheet(self, frame: &WatchFrame) -> Sheet {
        match self {
            Self::Path => path::sheet(frame),
            Self::Cpus => cpus::sheet(frame),
            Self::Queues => queues::sheet(frame),
            Self::Sockets => sockets::sheet(frame),
            Self::Tasks => tasks::sheet(frame),
            Self::Drops => drops::sheet(frame),
        }
    }
}

/// A column: its heading and its width in characters; the last one takes the rest.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub width: u16,
    pub right: bool,
}

/// A column of numbers.
const fn number(title: &'static str, width: u16) -> Column {
    Column { title, width, right: true }
}

/// A column of words.
const fn word(title: &'static str, width: u16) -> Column {
    Column { title, width, right: false }
}

/// The sort key of a row in a column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Key {
    /// Gaps are smaller than every number.
    Gap,
    Number(f64),
    Text(String),
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub text: String,
    pub key: Key,
    pub mark: Mark,
}

impl Cell {
    fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key: Key::Text(text.to_lowercase()), text, mark: Mark::Plain }
    }

    fn number(value: f64, text: String) -> Self {
        Self { text, key: Key::Number(value), mark: Mark::Plain }
    }

    /// A rate per second.
    fn rate(value: f64) -> Self {
        Self::number(value, si(value))
    }

    /// A rate of losses: bad if above zero.
    fn loss(value: f64) -> Self {
        let (mark, sign) = if value > 0.0 { (Mark::Bad, "!") } else { (Mark::Plain, "") };
        Self { mark, ..Self::number(value, format!("{}{sign}", si(value))) }
    }

    /// A share in percent.
    fn share(value: f64) -> Self {
        Self::number(value, format!("{:.1}", 100.0 * value))
    }

    /// A share that is marked from `warn` on, and bad from `bad` on.
    fn filled(value: f64, warn: f64, bad: f64) -> Self {
        let (mark, sign) = match value {
            v if v >= bad => (Mark::Bad, "!"),
            v if v >= warn => (Mark::Warn, "+"),
            _ => (Mark::Plain, ""),
        };
        Self { mark, ..Self::number(value, format!("{:.1}{sign}", 100.0 * value)) }
    }

    /// A fact; a gap is a dash here, and the row's details have the reason.
    fn fact<T: Copy>(fact: &Fact<T>, shown: impl FnOnce(T) -> Self) -> Self {
        match fact.value() {
            Some(value) => shown(*value),
            None => Self { text: "-".into(), key: Key::Gap, mark: Mark::Dim },
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct SheetRow {
    /// Its subject: the same in the next frame.
    pub id: String,
    /// Its position among the tab's rows in the frame, whatever the order here.
    pub item: usize,
    pub cells: Vec<Cell>,
    /// All its values, as text with units.
    pub detail: Vec<(&'static str, String)>,
}

/// A tab's content.
#[derive(Clone, Debug)]
pub struct Sheet {
    pub columns: Vec<Column>,
    pub rows: Vec<SheetRow>,
    /// The text if there are no rows.
    pub empty: String,
}

/// The sort column, and whether the largest comes first; `None`: order of the frame, most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub column: Option<usize>,
    pub reversed: bool,
}

/// The columns of a tab, each with the cell of a row.
type Columns<R, const N: usize> = [(Column, fn(&R) -> Cell); N];

/// A row's subject, and its details.
type Told = (String, Vec<(&'static str, String)>);

impl Sheet {
    fn of<R, const N: usize>(
        rows: &[R],
        columns: Columns<R, N>,
        told: fn(&R) -> Told,
        empty: impl Into<String>,
    ) -> Self {
        let row = |(item, row): (usize, &R)| {
            let (id, detail) = told(row);
            let cells = columns.iter().map(|(_, cell)| cell(row)).collect();
            SheetRow { id, item, cells, detail }
        };
        let rows = rows.iter().enumerate().map(row).collect();
        Self { rows, columns: columns.map(|(column, _)| column).into(), empty: empty.into() }
    }

    /// Leaves out rows that do not contain the filter, and sorts the rest.
    #[must_use]
    pub fn arranged(mut self, filter: &str, order: Order) -> Self {
        let lower = filter.to_lowercase();
        if !lower.is_empty() {
            let all = self.rows.len();
            let contains = |cell: &Cell| cell.text.to_lowercase().contains(&lower);
            self.rows.retain(|row| row.cells.iter().any(contains));
            if self.rows.is_empty() && all > 0 {
                self.empty =
                    format!("none of {all} rows contains `{filter}` (Esc clears the filter)");
            }
        }
        if let Some(column) = order.column.filter(|column| *column < self.columns.len()) {
            let key = |row: &SheetRow| row.cells.get(column).map(|cell| cell.key.clone());
            // Numbers: largest first; words: alphabetical.
            let descending = self.columns[column].right;
            self.rows.sort_few_by(|a, b| {
                let order = key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal);
                if descending { order.reverse() } else { order }
            });
        }
        if order.reversed {
            self.rows.reverse();
        }
        self
    }
}

fn per_s(rate: f64, what: &str) -> String {
    format!("{} {what}/s", si(rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sheet(values: &[f64]) -> Sheet {
        let row = |value: &f64| SheetRow {
            id: value.to_string(),
            item: 0,
            cells: vec![Cell::text(format!("name{value}")), Cell::rate(*value)],
            detail: Vec::new(),
        };
        Sheet {
            columns: vec![word("name", 8), number("rate", 6)],
            rows: values.iter().map(row).collect(),
            empty: "nothing".into(),
        }
    }

    #[test]
    fn a_filter_that_fits_nothing_says_so() {
        let found = sheet(&[1.0, 2.0]).arranged("NAME2", Order::default());
        assert_eq!(found.rows.len(), 1);
        let none = sheet(&[1.0, 2.0]).arranged("zzz", Order::default());
        assert!(none.empty.contains("none of 2 rows"), "{}", none.empty);
    }

    #[test]
    fn gaps_are_smaller_than_numbers() {
        assert!(Key::Gap < Key::Number(-1.0));
    }

    proptest! {
        #[test]
        fn sorting_keeps_every_row(values in proptest::collection::vec(0.0f64..1e9, 0..50), reversed: bool) {
            let order = Order { column: Some(1), reversed };
            let sorted = sheet(&values).arranged("", order);
            prop_assert_eq!(sorted.rows.len(), values.len());
            let keys: Vec<f64> = sorted.rows.iter().map(|row| match row.cells[1].key {
                Key::Number(n) => n,
                _ => f64::NAN,
            }).collect();
            let in_order = |two: &[f64]| if reversed { two[0] <= two[1] } else { two[0] >= two[1] };
            prop_assert!(keys.windows(2).all(in_order));
        }
    }
}
