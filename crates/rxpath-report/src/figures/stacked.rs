//! Bars of parts one after the other, one bar for each CPU or socket.

use super::per_variant::names;
use crate::plot::{Axis, Chart, Curve};
use crate::prelude::*;

/// A row of the picture and of its table.
pub(super) struct Bar {
    pub name: String,
    /// From the left, each with its colour.
    pub parts: Vec<(f64, &'static str)>,
    pub cells: Vec<String>,
}

/// The bars as a picture, cut at the end of the axis.
pub(super) fn panel(id: &str, alt: &str, bars: &[Bar], x: &Axis) -> Panel {
    let mut curves = Vec::new();
    for (at, bar) in bars.iter().enumerate() {
        let mut from = 0.0;
        for &(part, colour) in &bar.parts {
            let to = (from + part.max(0.0)).min(x.range.1);
            if to > from {
                curves.push(Curve::bar((from, to), (bars.len() - at) as f64, colour, 12.0));
            }
            from = to;
        }
    }
    Panel::by_width(id, |size| {
        let names = names(bars.iter().map(|bar| bar.name.as_str()), size.1);
        let curves = curves.clone();
        Chart { curves, ..Chart::of_rows(size, alt, names, 24.0, x.clone()) }
    })
}

/// The numbers of the bars, under these heads.
pub(super) fn table(heads: &str, bars: &[Bar]) -> Table {
    Table::of(heads, bars.iter().map(|bar| bar.cells.clone()))
}
