//! The user's choices: tab, selection, order, filter, open windows. It never draws and never reads the host.

use std::cell::Cell;

use rxpath_record::watch::{WatchFrame, WatchSettings};

use super::input::Command;
use super::sheet::{Order, Sheet, Tab};

/// The window over the tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// Nothing.
    #[default]
    Nothing,
    /// The keys.
    Help,
    /// All values of the selected row.
    Detail,
    /// The meaning of the selected row.
    Explain,
}

/// The actions for the terminal's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAction {
    /// Draw again.
    None,
    /// End the view.
    Quit,
    /// Start or stop a recording.
    Record,
    /// Go this many frames on in a recording.
    Step(i64),
}

/// The whole state of the view.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// The host or recording being watched.
    pub settings: WatchSettings,
    /// The frame shown.
    pub frame: Option<WatchFrame>,
    /// Index into [`Tab::ALL`].
    pub tab: usize,
    /// The window over the tab.
    pub open: Open,
    /// Its first visible line. Only the view knows the number of lines, so the view corrects values that are too large.
    pub scrolled: Cell<usize>,
    /// The frame shown is paused.
    pub paused: bool,
    /// The recording being written.
    pub recording: Option<String>,
    /// Number of the current frame and of all frames, in a recording.
    pub replay: Option<(usize, usize)>,
    /// No more frames will follow.
    pub over: bool,
    /// The message line, until the next key.
    pub message: Option<String>,
    /// Whether letters belong to the filter.
    pub typing: bool,
    filters: [String; Tab::ALL.len()],
    selected: [Option<String>; Tab::ALL.len()],
    orders: [Order; Tab::ALL.len()],
}

impl App {
    /// Before the first frame.
    pub fn new(settings: WatchSettings, replay: Option<(usize, usize)>) -> Self {
        Self { settings, replay, ..Self::default() }
    }

    /// The filter of the tab shown; each tab has its own, because words for a socket match no stage of the path.
    pub fn filter(&self) -> &str {
        &self.filters[self.tab]
    }

    /// A new frame; while the view is paused, the old frame stays.
    pub fn take(&mut self, frame: WatchFrame, position: Option<(usize, usize)>) {
        if self.paused && self.frame.is_some() && position.is_none() {
            return;
        }
        self.frame = Some(frame);
        self.replay = position;
    }

    /// The tab shown.
    pub fn shown(&self) -> Tab {
        Tab::ALL[self.tab]
    }

    /// The order of the tab shown.
    pub fn order(&self) -> Order {
        self.orders[self.tab]
    }

    /// The tab's rows, filtered and sorted.
    pub fn sheet(&self) -> Sheet {
        let none = WatchFrame::default();
        let frame = self.frame.as_ref().unwrap_or(&none);
        self.shown().sheet(frame).arranged(self.filter(), self.order())
    }

    /// Index of the selected row: the previous row if it still exists, else the first.
    pub fn selection(&self, sheet: &Sheet) -> usize {
        let wanted = self.selected[self.tab].as_ref();
        wanted.and_then(|id| sheet.rows.iter().position(|row| row.id == *id)).unwrap_or(0)
    }

    /// Runs the command of a key.
    pub fn apply(&mut self, command: Command) -> ViewAction {
        self.message = None;
        match command {
            Command::Quit => return ViewAction::Quit,
            Command::Record => return ViewAction::Record,
            Command::Step(by) if self.replay.is_some() => return ViewAction::Step(by),
            Command::Step(_) => {
                self.message = Some("only a recording can step through frames".into());
            }
            Command::NextTab => self.go_to((self.tab + 1) % Tab::ALL.len()),
            Command::PreviousTab => self.go_to((self.tab + Tab::ALL.len() - 1) % Tab::ALL.len()),
            Command::Tab(tab) => self.go_to(tab.min(Tab::ALL.len() - 1)),
            Command::Move(_) | Command::First | Command::Last if self.open != Open::Nothing => {
                self.scroll(command);
            }
            Command::Move(by) => {
                self.select(|at, rows| at.saturating_add_signed(by as isize).min(rows - 1));
            }
            Command::First => self.select(|_, _| 0),
            Command::Last => self.select(|_, rows| rows - 1),
            Command::Detail => self.toggle(Open::Detail),
            Command::Explain => self.toggle(Open::Explain),
            Command::Help => self.toggle(Open::Help),
            Command::Pause => self.paused = !self.paused,
            Command::Sort => self.sort_by_next(),
            Command::Reverse => self.orders[self.tab].reversed = !self.order().reversed,
            Command::Filter => (self.typing, self.open) = (true, Open::Nothing),
            Command::Letter(letter) => self.filters[self.tab].push(letter),
            Command::Erase => drop(self.filters[self.tab].pop()),
            Command::Accept => self.typing = false,
            Command::Escape => self.escape(),
        }
        ViewAction::None
    }

    fn go_to(&mut self, tab: usize) {
        (self.tab, self.open) = (tab, Open::Nothing);
    }

    fn toggle(&mut self, what: Open) {
        self.scrolled.set(0);
        self.open = if self.open == what { Open::Nothing } else { what };
    }

    fn scroll(&self, command: Command) {
        self.scrolled.set(match command {
            Command::Move(by) => self.scrolled.get().saturating_add_signed(by as isize),
            Command::Last => usize::MAX,
            _ => 0,
        });
    }

    fn select(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let sheet = self.sheet();
        if sheet.rows.is_empty() {
            return;
        }
        let at = to(self.selection(&sheet), sheet.rows.len());
        self.selected[self.tab] = sheet.rows.get(at).map(|row| row.id.clone());
    }

    /// Cycles through: the frame's order, each column, the frame's order.
    fn sort_by_next(&mut self) {
        let columns = self.sheet().columns.len();
        let order = &mut self.orders[self.tab];
        let next = order.column.map_or(0, |column| column + 1);
        *order = Order { column: (next < columns).then_some(next), reversed: false };
    }

    /// Closes the innermost window.
    fn escape(&mut self) {
        if self.typing || self.open == Open::Nothing {
            self.typing = false;
            self.filters[self.tab].clear();
        } else {
            self.open = Open::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::view::tests::busy_frame;

    fn app() -> App {
        let mut app = App::new(WatchSettings::default(), None);
        app.take(busy_frame(4), None);
        app
    }

    fn selected(app: &App) -> String {
        let sheet = app.sheet();
        sheet.rows[app.selection(&sheet)].id.clone()
    }

    #[test]
    fn the_selection_follows_its_row_and_not_its_place() {
        let mut app = app();
        app.apply(Command::Tab(1));
        app.apply(Command::Move(2));
        assert_eq!(selected(&app), "CPU 2");
        app.apply(Command::Reverse);
        assert_eq!(selected(&app), "CPU 2");
        app.apply(Command::Last);
        assert_eq!(selected(&app), "CPU 0");
        app.apply(Command::Move(-100));
        assert_eq!(selected(&app), "CPU 3");
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let mut app = app();
        app.apply(Command::Tab(1));
        app.apply(Command::Filter);
        assert!(app.typing);
        for letter in "iperf".chars() {
            app.apply(Command::Letter(letter));
        }
        app.apply(Command::Accept);
        assert!(!app.typing);
        assert!(app.sheet().rows.len() < 4);
        app.apply(Command::Escape);
        assert_eq!(app.sheet().rows.len(), 4);
    }

    #[test]
    fn each_tab_has_its_own_filter() {
        let mut app = app();
        app.apply(Command::Tab(3));
        app.apply(Command::Filter);
        for letter in "4433".chars() {
            app.apply(Command::Letter(letter));
        }
        app.apply(Command::Accept);
        assert_eq!((app.filter(), app.sheet().rows.len()), ("4433", 1));
        app.apply(Command::Tab(0));
        assert_eq!((app.filter(), app.sheet().rows.len()), ("", 7));
        app.apply(Command::Escape);
        app.apply(Command::Tab(3));
        assert_eq!(app.filter(), "4433", "Esc elsewhere leaves it");
    }

    #[test]
    fn what_lies_over_the_rows_is_scrolled_by_their_keys() {
        let mut app = app();
        app.apply(Command::Tab(1));
        app.apply(Command::Help);
        app.apply(Command::Move(3));
        app.apply(Command::Move(-1));
        assert_eq!((app.scrolled.get(), selected(&app).as_str()), (2, "CPU 0"));
        app.apply(Command::Last);
        app.apply(Command::First);
        assert_eq!(app.scrolled.get(), 0);
        app.apply(Command::Move(5));
        app.apply(Command::Detail);
        assert_eq!(app.scrolled.get(), 0, "another text begins at its begin");
        app.apply(Command::Escape);
        app.apply(Command::Move(1));
        assert_eq!(selected(&app), "CPU 1");
    }

    #[test]
    fn two_drops_of_one_place_are_two_rows() {
        let mut frame = busy_frame(1);
        let drop = frame.drops[0].clone();
        let ipv6 = rxpath_record::watch::DropRow { protocol: "ipv6".into(), ..drop.clone() };
        let socket = rxpath_record::watch::DropRow { socket_inode: 9, ..drop.clone() };
        frame.drops = vec![drop, ipv6, socket];
        let mut app = App::new(WatchSettings::default(), None);
        app.take(frame, None);
        app.apply(Command::Tab(5));
        for at in 1..3 {
            app.apply(Command::Move(1));
            assert_eq!(app.selection(&app.sheet()), at, "the cursor stuck");
        }
    }

    #[test]
    fn a_pause_keeps_the_frame_of_a_live_view() {
        let mut app = app();
        app.apply(Command::Pause);
        app.take(WatchFrame { number: 99, ..WatchFrame::default() }, None);
        assert_ne!(app.frame.as_ref().unwrap().number, 99);
        app.apply(Command::Pause);
        app.take(WatchFrame { number: 99, ..WatchFrame::default() }, None);
        assert_eq!(app.frame.as_ref().unwrap().number, 99);
    }

    #[test]
    fn sorting_goes_through_every_column_and_back() {
        let mut app = app();
        app.apply(Command::Tab(1));
        let columns = app.sheet().columns.len();
        for column in 0..columns {
            app.apply(Command::Sort);
            assert_eq!(app.order().column, Some(column));
        }
        app.apply(Command::Sort);
        assert_eq!(app.order().column, None);
    }

    #[test]
    fn only_recordings_are_stepped() {
        let mut app = app();
        assert_eq!(app.apply(Command::Step(1)), ViewAction::None);
        assert!(app.message.is_some());
        app.replay = Some((1, 2));
        assert_eq!(app.apply(Command::Step(1)), ViewAction::Step(1));
    }

    #[test]
    fn an_empty_tab_takes_every_key() {
        let mut app = App::new(WatchSettings::default(), None);
        for tab in 0..Tab::ALL.len() {
            app.apply(Command::Tab(tab));
            for command in [Command::Move(1), Command::Last, Command::Sort, Command::Detail] {
                app.apply(command);
            }
        }
    }
}
