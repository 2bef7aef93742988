//! The loop of the live view: only it uses the terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};
use rxpath_record::watch::{WatchFrame, WatchSettings};

use super::palette::Palette;
use super::recorder::Recorder;
use super::source::FrameSource;
use super::state::{App, ViewAction};
use super::{input, view};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;

/// Why a full screen can't be shown here, if it can't.
pub fn missing() -> Option<&'static str> {
    if !std::io::stdout().is_terminal() {
        Some("standard output is no terminal")
    } else if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        Some("this terminal shows no full screen (TERM=dumb)")
    } else {
        None
    }
}

/// A signal is noticed within this time.
const PATIENCE: Duration = Duration::from_millis(200);

/// Shows the frames of a source on this terminal until the user or a signal ends it.
pub fn show(
    mut source: Box<dyn FrameSource>,
    mut recorder: Option<Recorder>,
    interrupt: &Interrupt,
    color: bool,
) -> Outcome {
    let mut terminal = ratatui::try_init().map_err(|error| {
        Failure::new(Exit::Cannot, error).hint("--once prints one sample as text")
    })?;
    let done = drive(&mut terminal, &mut *source, &mut recorder, interrupt, color);
    ratatui::restore();
    if let Some(recorder) = recorder {
        crate::note!("{}", recorder.finish());
    }
    done
}

fn drive(
    terminal: &mut ratatui::DefaultTerminal,
    source: &mut dyn FrameSource,
    recorder: &mut Option<Recorder>,
    interrupt: &Interrupt,
    color: bool,
) -> Outcome {
    let palette = Palette { color };
    let mut app = App::new(source.settings().clone(), source.position());
    app.recording = recorder.as_ref().map(Recorder::name);
    // Drawing costs more than sampling: only changes are drawn.
    let mut stale = true;
    loop {
        if stale {
            terminal.draw(|area| view::draw(area, &app, palette))?;
            stale = false;
        }
        if let Some(signal) = interrupt.caught() {
            return Ok(Exit::Signal(signal));
        }
        let wait = source.due().saturating_duration_since(Instant::now()).min(PATIENCE);
        if event::poll(wait)? {
            stale = true;
            if handle(&event::read()?, &mut app, source, recorder) == ViewAction::Quit {
                return Ok(Exit::Done);
            }
            continue;
        }
        if app.paused && source.position().is_some() {
            source.hold();
        }
        if let Some(frame) = source.advance()? {
            keep(recorder, &frame, &mut app);
            app.take(frame, source.position());
            stale = true;
        }
        if source.ends_view() {
            return Ok(Exit::Done);
        }
        if !app.over
            && let Some(words) = source.last_words()
        {
            (app.over, app.message, stale) = (true, Some(words), true);
        }
    }
}

/// Writes a frame into the recording; a full disk ends the recording, not the view.
fn keep(recorder: &mut Option<Recorder>, frame: &WatchFrame, app: &mut App) {
    let Some(open) = recorder else { return };
    if let Err(error) = open.write(frame) {
        app.message = Some(format!("recording stopped: {error}"));
        app.recording = None;
        *recorder = None;
    }
}

fn handle(
    event: &Event,
    app: &mut App,
    source: &mut dyn FrameSource,
    recorder: &mut Option<Recorder>,
) -> ViewAction {
    let Event::Key(key) = event else { return ViewAction::None };
    let Some(command) = input::command(*key, app.typing) else { return ViewAction::None };
    let effect = app.apply(command);
    match effect {
        ViewAction::Record => toggle(app, recorder, source.settings()),
        ViewAction::Step(by) => {
            if let Some(frame) = source.step(by) {
                app.paused = true;
                app.take(frame, source.position());
            }
        }
        ViewAction::None | ViewAction::Quit => {}
    }
    effect
}

fn toggle(app: &mut App, recorder: &mut Option<Recorder>, settings: &WatchSettings) {
    if app.replay.is_some() {
        app.message = Some("this is a recording already".into());
        return;
    }
    if let Some(open) = recorder.take() {
        app.recording = None;
        app.message = Some(open.finish());
        return;
    }
    match Recorder::named_by_time(settings) {
        Ok(open) => {
            app.recording = Some(open.name());
            *recorder = Some(open);
        }
        Err(error) => app.message = Some(format!("cannot record: {error:#}")),
    }
}
