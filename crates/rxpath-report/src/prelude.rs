//! What every section and figure needs: markup, the run, the parts of a page, numbers and words.

pub use maud::{Markup, html};
pub use rxpath_record::run::RunReader as Run;

pub(crate) use crate::page::part::{Figure, Key, Panel, Section, Table, cut, fold, table};
pub(crate) use crate::{number, words};
