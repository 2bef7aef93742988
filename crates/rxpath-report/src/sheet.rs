//! A page of tables: an answer that comes from no single run.

use maud::html;

use crate::page::part::{self, Table};
use crate::page::{frame, section};

/// A page: its headline, facts in a line each, and its tables.
#[derive(Clone, Debug)]
pub struct ReportSheet {
    /// The command that made it.
    pub command: String,
    /// The answer, in a sentence.
    pub headline: String,
    /// What else holds for all of it.
    pub facts: Vec<String>,
    /// The tables, in their order; those without rows are left out.
    pub parts: Vec<SheetPart>,
}

/// A table with its title.
#[derive(Clone, Debug)]
pub struct SheetPart {
    /// A word for links to it.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it shows, in a sentence or two.
    pub lead: &'static str,
    table: Table,
}

impl SheetPart {
    /// With these heads, ` | ` between two (`#` marks a column of numbers), and rows of as many cells.
    pub fn new(
        (id, title, lead): (&'static str, &'static str, &'static str),
        heads: &str,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self { id, title, lead, table: Table::of(heads, rows) }
    }
}

/// The page as one HTML file without external parts.
pub fn sheet(sheet: &ReportSheet) -> String {
    let parts = || sheet.parts.iter().filter(|part| !part.table.rows.is_empty());
    let body = html! {
        header {
            p.eyebrow { (sheet.command) }
            h1 { (sheet.headline) }
            @for fact in &sheet.facts { p.meta { (fact) } }
        }
        nav aria-label="Sections" {
            ol { @for part in parts() { li { a href={ "#" (part.id) } { (part.title) } } } }
        }
        main {
            @for part in parts() {
                (section(part.id, part.title, part.lead, &part::table(&part.table, part.title)))
            }
        }
        footer { p { "Made by " code { (sheet.command) } ". It loads nothing and runs no script." } }
    };
    frame(&sheet.command, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_tables_and_escapes_what_it_is_given() {
        let part = |id, rows| SheetPart::new((id, "Kept", "What."), "name | #gain", rows);
        let page = sheet(&ReportSheet {
            command: "rxpath tune auto".into(),
            headline: "kept 1 of <2>".into(),
            facts: vec!["a fact".into()],
            parts: vec![
                part("kept", vec![vec!["<script>".into(), "1.2".into()]]),
                part("empty", Vec::new()),
            ],
        });
        assert!(page.contains("kept 1 of &lt;2&gt;") && page.contains("a fact"));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
        assert!(page.contains("id=\"kept\"") && !page.contains("id=\"empty\""));
    }
}
