//! From a run directory to a readable report: one self-contained HTML page, or a short Markdown text.
//!
//! The report needs only the run directory, so it can be made again on another machine in ten years.
//! It must not touch a host, the network or the clock: equal run directories give equal bytes.
//! Every string of a run may come from a hostile host and is escaped; the page allows no script at all.

mod book;
mod figures;
mod markdown;
mod number;
mod page;
mod plot;
mod prelude;
mod series;
mod sheet;
#[cfg(test)]
mod tests;
mod words;

pub use book::{Chapter, book, book_markdown};
pub use markdown::markdown;
pub use page::html;
pub use sheet::{ReportSheet, SheetPart, sheet};
