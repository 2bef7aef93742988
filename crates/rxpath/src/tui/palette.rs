//! The style of each meaning, with and without colours. No meaning depends on colour alone: each mark also has a sign
//! or a word.

use ratatui::style::{Color, Modifier, Style};

/// What a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading.
    Head,
    /// In order.
    Good,
    /// Needs attention.
    Warn,
    /// Bad.
    Bad,
    /// Unknown, or less important.
    Dim,
    /// Selected.
    Selected,
}

/// The styles in use.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    color: bool,
}

impl Palette {
    /// With colours or without.
    pub fn new(color: bool) -> Self {
        Self { color }
    }

    /// The style of a meaning.
    pub fn style(self, mark: Mark) -> Style {
        let plain = Style::default();
        match mark {
            Mark::Plain => plain,
            Mark::Head => plain.add_modifier(Modifier::BOLD),
            Mark::Selected => plain.add_modifier(Modifier::REVERSED),
            Mark::Dim => plain.add_modifier(Modifier::DIM),
            Mark::Good if self.color => plain.fg(Color::Green),
            Mark::Warn if self.color => plain.fg(Color::Yellow),
            Mark::Bad if self.color => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            Mark::Good | Mark::Warn => plain,
            Mark::Bad => plain.add_modifier(Modifier::BOLD),
        }
    }
}
