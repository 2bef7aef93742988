//! The style of each meaning, with and without colours.

use ratatui::style::{Color, Modifier, Style};

use super::mark::Mark;

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
