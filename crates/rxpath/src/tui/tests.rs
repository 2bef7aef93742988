//! A recording of another host on this one's screen: that host's rows, and nothing of this one.

use rxpath_record::watch::{Recorded, parse};

use super::input::Command;
use super::sheet::Tab;
use super::source::{FrameSource, Replay};
use super::state::App;
use super::view::tests::{drawn, text};

const EDGE: &[u8] = include_bytes!("../../../../testdata/recordings/edge-6.jsonl");

/// The state after the last frame, as the terminal's loop comes to it.
fn played(recorded: Recorded) -> (App, Replay) {
    let mut replay = Replay::new(recorded);
    let mut app = App::new(replay.settings().clone(), replay.position());
    let first = replay.advance().unwrap().unwrap();
    app.take(first, replay.position());
    while !replay.is_over() {
        let frame = replay.step(1).unwrap();
        app.take(frame, replay.position());
    }
    (app, replay)
}

fn screen(app: &mut App, tab: Tab) -> String {
    let at = Tab::ALL.iter().position(|one| *one == tab).unwrap();
    app.apply(Command::Tab(at));
    text(&drawn(app, (200, 50), false))
}

#[test]
fn another_hosts_rows_are_on_every_tab_and_nothing_of_this_one() {
    let recorded = parse(EDGE).unwrap();
    assert_eq!((recorded.frames.len(), &recorded.cut), (3, &None));
    let last = recorded.frames[2].clone();
    let (mut app, replay) = played(recorded);
    assert_eq!(replay.last_words().as_deref(), Some("the recording ends here"));
    let head = screen(&mut app, Tab::Path).lines().next().unwrap().to_owned();
    assert!(head.contains("edge-6  6.18.44") && head.contains("replay 3/3"), "{head}");
    for (tab, rows) in [
        (Tab::Path, 7),
        (Tab::Cpus, 6),
        (Tab::Queues, 4),
        (Tab::Sockets, 1),
        (Tab::Tasks, last.tasks.len()),
        (Tab::Drops, last.drops.len()),
    ] {
        let shown = screen(&mut app, tab);
        let sheet = app.sheet();
        assert_eq!(sheet.rows.len(), rows, "{tab:?}");
        assert_eq!(sheet.rows.len(), tab.sheet(&last).rows.len(), "{tab:?}");
        for row in &sheet.rows {
            let first = row.cells[0].text.trim_start_matches('▶');
            assert!(shown.contains(first), "{first} of {tab:?} in {shown}");
        }
    }
    let cpus: Vec<String> = {
        screen(&mut app, Tab::Cpus);
        app.sheet().rows.iter().map(|row| row.id.clone()).collect()
    };
    assert_eq!(cpus, ["CPU 0", "CPU 1", "CPU 2", "CPU 3", "CPU 4", "CPU 5"]);
    assert!(screen(&mut app, Tab::Queues).contains("ens1f0"));
    assert!(screen(&mut app, Tab::Sockets).contains("10.20.0.2:5140"));
    app.apply(Command::Explain);
    let told = text(&drawn(&app, (200, 50), false));
    assert!(told.contains("collector"), "{told}");
}

#[test]
fn cut_in_mid_line_it_is_shown_up_to_the_cut() {
    let lines: Vec<&[u8]> = EDGE.split_inclusive(|byte| *byte == b'\n').collect();
    let whole: usize = lines[..3].iter().map(|line| line.len()).sum();
    // One byte of the third frame, half of it, all but its last brace.
    for more in [1, lines[3].len() / 2, lines[3].len() - 2] {
        let recorded = parse(&EDGE[..whole + more]).unwrap();
        assert_eq!(recorded.frames.len(), 2, "{more} bytes of the third");
        let last = recorded.frames[1].clone();
        let (mut app, replay) = played(recorded);
        assert!(app.frame.as_ref() == Some(&last), "not the second frame");
        assert!(screen(&mut app, Tab::Cpus).contains("replay 2/2"));
        assert_eq!(app.sheet().rows.len(), 6);
        let words = replay.last_words().unwrap();
        assert!(words.starts_with("the recording is cut at line 4"), "{words}");
    }
}
