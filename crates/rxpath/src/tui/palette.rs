//! The style of each meaning, with and without colours.

use ratatui::style::{Color, Modifier, Style};

use super::mark::Mark;

/// The styles in use.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// With colours or without.
    pub color: bool,
}

impl Palette {
    /// The style of a meaning.
    pub fn style(self, mark: Mark) -> Style {
        let plain = Style::default();
        let in_colour = |style: Style, is: Color| if self.color { style.fg(is) } else { style };
        match mark {
            Mark::Plain => plain,
            Mark::Head => plain.add_modifier(Modifier::BOLD),
            Mark::Selected => plain.add_modifier(Modifier::REVERSED),
            Mark::Dim => plain.add_modifier(Modifier::DIM),
            Mark::Good => in_colour(plain, Color::Green),
            Mark::Warn => in_colour(plain, Color::Yellow),
            Mark::Bad => in_colour(plain, Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}
