//! Keys as people expect them: arrows and hjkl, Enter, `/`, `s`, space, `?`, `q`. [`KEYS`] names all of them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::sheet::Tab;

/// The commands of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// End the view.
    Quit,
    /// Next tab to the right.
    NextTab,
    /// Next tab to the left.
    PreviousTab,
    /// This tab, from 0.
    Tab(usize),
    /// Move the selection by this many rows.
    Move(i32),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Show all values of the selected row.
    Detail,
    /// Show what the selected row means and what to do.
    Explain,
    /// Start typing a filter.
    Filter,
    /// Sort by the next column.
    Sort,
    /// Reverse the sort order.
    Reverse,
    /// Pause, or continue.
    Pause,
    /// Start or stop a recording.
    Record,
    /// Show the keys.
    Help,
    /// Close the open window, or clear the filter.
    Escape,
    /// Go this many frames on in a recording.
    Step(i64),
    /// A letter of the filter.
    Letter(char),
    /// Delete the last character.
    Erase,
    /// Accept the filter.
    Accept,
}

/// Every key with its action, as the key help shows it; keys on one line are separated by a space.
pub const KEYS: [(&str, &str); 13] = [
    ("← → h l Tab ⇧Tab 1-N", "another tab"),
    ("↑ ↓ j k PgUp PgDn", "another row; in a text window another line"),
    ("g G Home End", "the first row or line, the last one"),
    ("Enter", "all values of the row, with the reason for each dash"),
    ("e", "what the row means and what to do"),
    ("/", "show only rows with this text, in this tab"),
    ("s S", "sort by the next column; reverse the order"),
    ("space", "pause, or continue (an active recording continues)"),
    ("r", "start or stop a recording in this directory"),
    ("[ ]", "one frame back or forward, in a replay"),
    ("Esc", "close, or clear the filter"),
    ("q Ctrl-C Ctrl-D", "quit"),
    ("?", "these keys, unknown values, and the cost of watching"),
];

/// A line of [`KEYS`] as it is shown: `1-N` has a digit for each tab.
pub fn as_shown(keys: &str) -> String {
    keys.replace("1-N", &format!("1-{LAST}"))
}

/// Rows per page.
const PAGE: i32 = 10;
/// The digit of the last tab.
const LAST: char = (b'0' + Tab::ALL.len() as u8) as char;

/// The command of a key; while `typing`, letters belong to the filter.
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
        KeyCode::Char(digit @ '1'..=LAST) => Command::Tab(digit as usize - '1' as usize),
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
    use std::collections::BTreeSet;

    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    /// Every key by its name, with its command.
    fn table() -> Vec<(&'static str, KeyEvent, Command)> {
        let letter = |name: &'static str| press(KeyCode::Char(name.chars().next().unwrap()));
        let held = |name| KeyEvent::new(KeyCode::Char(name), KeyModifiers::CONTROL);
        let mut all: Vec<(&str, KeyEvent, Command)> = vec![
            ("←", press(KeyCode::Left), Command::PreviousTab),
            ("→", press(KeyCode::Right), Command::NextTab),
            ("Tab", press(KeyCode::Tab), Command::NextTab),
            ("⇧Tab", press(KeyCode::BackTab), Command::PreviousTab),
            ("↑", press(KeyCode::Up), Command::Move(-1)),
            ("↓", press(KeyCode::Down), Command::Move(1)),
            ("PgUp", press(KeyCode::PageUp), Command::Move(-10)),
            ("PgDn", press(KeyCode::PageDown), Command::Move(10)),
            ("Home", press(KeyCode::Home), Command::First),
            ("End", press(KeyCode::End), Command::Last),
            ("Enter", press(KeyCode::Enter), Command::Detail),
            ("space", press(KeyCode::Char(' ')), Command::Pause),
            ("Esc", press(KeyCode::Esc), Command::Escape),
            ("Ctrl-C", held('c'), Command::Quit),
            ("Ctrl-D", held('d'), Command::Quit),
        ];
        let letters = [
            ("h", Command::PreviousTab),
            ("l", Command::NextTab),
            ("j", Command::Move(1)),
            ("k", Command::Move(-1)),
            ("g", Command::First),
            ("G", Command::Last),
            ("e", Command::Explain),
            ("/", Command::Filter),
            ("s", Command::Sort),
            ("S", Command::Reverse),
            ("r", Command::Record),
            ("[", Command::Step(-1)),
            ("]", Command::Step(1)),
            ("q", Command::Quit),
            ("?", Command::Help),
        ];
        let digits = (0..Tab::ALL.len()).map(|at| (DIGITS[at], Command::Tab(at)));
        let letters = letters.into_iter().chain(digits);
        all.extend(letters.map(|(name, command)| (name, letter(name), command)));
        all
    }

    const DIGITS: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];

    /// The names in a text of keys: `1-6` is six of them.
    fn names(text: &str) -> BTreeSet<&str> {
        let names = text.split_whitespace().flat_map(|name| match name.strip_prefix("1-") {
            Some(last) => DIGITS[..last.parse::<usize>().unwrap()].to_vec(),
            None => vec![name],
        });
        names.collect()
    }

    #[test]
    fn every_key_has_its_command() {
        for (name, key, wanted) in table() {
            assert_eq!(command(key, false), Some(wanted), "{name}");
            let release = KeyEvent { kind: KeyEventKind::Release, ..key };
            assert_eq!(command(release, false), None, "{name} let go");
        }
    }

    #[test]
    fn the_list_of_keys_and_the_docs_name_exactly_these_and_each_tab() {
        let known: BTreeSet<&str> = table().iter().map(|(name, ..)| *name).collect();
        let listed = KEYS.map(|(keys, _)| as_shown(keys)).join(" ");
        assert_eq!(known, names(&listed), "the list of keys");
        let docs = include_str!("../../../../docs/reference/watch.md");
        let rows = docs.split_once("| keys | what |").unwrap().1.lines().skip(2);
        let rows = rows.map_while(|row| row.strip_prefix("| ")?.split_once(" | "));
        let quoted = rows.map(|(keys, _)| keys.replace('`', " ")).collect::<Vec<_>>().join(" ");
        assert_eq!(known, names(&quoted), "docs/reference/watch.md");
        let has = |tab: Tab| docs.contains(&format!("\n| {} | ", tab.name()));
        assert!(Tab::ALL.into_iter().all(has), "docs/reference/watch.md: its tabs");
    }

    #[test]
    fn no_other_key_does_anything() {
        let plain = table().into_iter().filter(|(_, key, _)| key.modifiers.is_empty());
        let known: Vec<KeyCode> = plain.map(|(_, key, _)| key.code).collect();
        let letters = (' '..='~').map(KeyCode::Char).chain((1..=12).map(KeyCode::F));
        let rest = [KeyCode::Backspace, KeyCode::Delete, KeyCode::Insert];
        for code in letters.chain(rest).filter(|code| !known.contains(code)) {
            assert_eq!(command(press(code), false), None, "{code:?}");
        }
    }

    #[test]
    fn while_a_filter_is_typed_letters_are_its_own() {
        for letter in ' '..='~' {
            let typed = command(press(KeyCode::Char(letter)), true);
            assert_eq!(typed, Some(Command::Letter(letter)));
        }
        for (code, wanted) in [
            (KeyCode::Backspace, Some(Command::Erase)),
            (KeyCode::Enter, Some(Command::Accept)),
            (KeyCode::Esc, Some(Command::Escape)),
            (KeyCode::Left, None),
            (KeyCode::Tab, None),
            (KeyCode::F(9), None),
        ] {
            assert_eq!(command(press(code), true), wanted, "{code:?}");
        }
        let held = |name| KeyEvent::new(KeyCode::Char(name), KeyModifiers::CONTROL);
        assert_eq!(command(held('c'), true), Some(Command::Quit));
        assert_eq!(command(held('x'), true), None);
    }
}
