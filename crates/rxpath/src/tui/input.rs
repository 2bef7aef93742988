//! Keys as people expect them: arrows and hjkl, Enter, `/`, `s`, space, `?`, `q`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// End.
    Quit,
    /// The tab to the right.
    NextTab,
    /// The tab to the left.
    PreviousTab,
    /// This tab, from 0.
    Tab(usize),
    /// The selection by so many rows.
    Move(i32),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Everything about the selected row.
    Detail,
    /// What the selected row means and what to do.
    Explain,
    /// Begin to type a filter.
    Filter,
    /// Sort by the next column.
    Sort,
    /// Sort the other way round.
    Reverse,
    /// Stand still, or go on.
    Pause,
    /// Begin or end a recording.
    Record,
    /// The keys.
    Help,
    /// Close what is open, or drop the filter.
    Escape,
    /// So many frames of a recording.
    Step(i64),
    /// A letter of the filter.
    Letter(char),
    /// Takes the last letter away.
    Erase,
    /// The filter stands.
    Accept,
}

/// Rows of a page.
const PAGE: i32 = 10;

/// The command of a key; `typing`: letters belong to the filter.
pub fn command(key: KeyEvent, typing: bool) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Some(Command::Quit),
            _ => None,
        };
    }
    if typing { letter(key.code) } else { order(key.code) }
}

fn letter(code: KeyCode) -> Option<Command> {
    match code {
        KeyCode::Char(letter) => Some(Command::Letter(letter)),
        KeyCode::Backspace => Some(Command::Erase),
        KeyCode::Enter => Some(Command::Accept),
        KeyCode::Esc => Some(Command::Escape),
        _ => None,
    }
}

fn order(code: KeyCode) -> Option<Command> {
    Some(match code {
        KeyCode::Char('q') => Command::Quit,
        KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') => Command::NextTab,
        KeyCode::Left | KeyCode::BackTab | KeyCode::Char('h') => Command::PreviousTab,
        KeyCode::Char(digit @ '1'..='6') => Command::Tab(digit as usize - '1' as usize),
        KeyCode::Down | KeyCode::Char('j') => Command::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Command::Move(-1),
        KeyCode::PageDown => Command::Move(PAGE),
        KeyCode::PageUp => Command::Move(-PAGE),
        KeyCode::Home | KeyCode::Char('g') => Command::First,
        KeyCode::End | KeyCode::Char('G') => Command::Last,
        KeyCode::Enter => Command::Detail,
        KeyCode::Char('e') => Command::Explain,
        KeyCode::Char('/') => Command::Filter,
        KeyCode::Char('s') => Command::Sort,
        KeyCode::Char('S') => Command::Reverse,
        KeyCode::Char(' ') => Command::Pause,
        KeyCode::Char('r') => Command::Record,
        KeyCode::Char('?') => Command::Help,
        KeyCode::Esc => Command::Escape,
        KeyCode::Char('[') => Command::Step(-1),
        KeyCode::Char(']') => Command::Step(1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn letters_are_orders_unless_a_filter_is_typed() {
        assert_eq!(command(press(KeyCode::Char('q')), false), Some(Command::Quit));
        assert_eq!(command(press(KeyCode::Char('q')), true), Some(Command::Letter('q')));
        assert_eq!(command(press(KeyCode::Char('3')), false), Some(Command::Tab(2)));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(command(interrupt, true), Some(Command::Quit));
        assert_eq!(command(press(KeyCode::F(9)), false), None);
    }
}
