//! What is drawn, letter by letter and style by style: at 80 x 24 and 200 x 50, with colours and without.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use rxpath_core::Fact;
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, EvidenceLine, Stage};
use rxpath_record::watch::{
    CpuRow, DropRow, PathStage, ProbeShare, QueueRow, SocketRow, StageRow, TaskRow, WatchFrame,
    WatchSettings,
};

use super::*;
use crate::tui::input::Command;

/// A host with so many CPUs, whose reader is too slow.
pub fn busy_frame(cpus: u32) -> WatchFrame {
    WatchFrame {
        number: 7,
        at_unix_s: 1_700_000_000.0,
        window_s: 1.0,
        stages: PathStage::ALL.into_iter().map(stage).collect(),
        verdict: Some(DiagnosisVerdict {
            stage: Stage::Application,
            cpu: Some(1),
            confidence: Confidence::Strong,
            sentence: "the receiving application is the limit: CPU 1 is 100 % busy".into(),
            evidence: vec![EvidenceLine {
                text: "the reader ran 99 % of the time".into(),
                source: "schedstat".into(),
            }],
            remedies: vec!["a second reading thread with SO_REUSEPORT".into()],
            check_rules: Vec::new(),
            next: Vec::new(),
            paired_trial: None,
        }),
        cpus: (0..cpus).map(|cpu| self::cpu(cpu, cpus)).collect(),
        queues: vec![QueueRow {
            device: "eth0".into(),
            queue: 0,
            napi_id: Fact::ok(8193),
            irq: Fact::ok(27),
            cpus: Fact::ok("1".into()),
            packets_pps: Fact::ok(401_234.0),
            drops_pps: Fact::ok(0.0),
            interrupts_per_s: Fact::ok(12_300.0),
            packets_per_poll: Fact::ok(32.6),
            exhausted_ratio: Fact::ok(0.01),
        }],
        sockets: vec![socket(4433, 0.97, 91_000.0), socket(53, 0.1, 0.0)],
        sockets_count: 12,
        tasks: vec![task("iperf3", 0.21), task("victim", 0.02)],
        drops: vec![DropRow {
            place: "udp_queue_rcv_one_skb+0x1a".into(),
            reason: "SOCKET_RCVBUFF".into(),
            device: "eth0".into(),
            transport: "udp".into(),
            port: 4433,
            processes: vec!["iperf3 (812)".into()],
            packets_pps: 91_000.0,
            packets_total: 637_000,
            source: "tracepoint skb:kfree_skb".into(),
            ..DropRow::default()
        }],
        gaps: [("BPF probes".to_owned(), "needs CAP_BPF".to_owned())].into(),
        own_cpu_ratio: 0.006,
        probe_cost: Some(ProbeShare {
            cpu_ratio: 0.0031,
            runs_per_s: 12_400.0,
            ns_per_run: 250.0,
            measured_s: 0.1,
            age_s: 4.2,
            map_bytes: 9_542_042,
            ..ProbeShare::default()
        }),
        ..WatchFrame::default()
    }
}

fn stage(stage: PathStage) -> StageRow {
    let drops = if stage == PathStage::Socket { 91_000.0 } else { 0.0 };
    let known = !matches!(stage, PathStage::Gro | PathStage::Ip);
    StageRow {
        stage,
        rate_per_s: if stage == PathStage::Backlog {
            Fact::absent("needs BPF")
        } else {
            Fact::ok(401_234.0)
        },
        unit: "packets".into(),
        rate_source: "a counter".into(),
        drops_pps: Fact::ok(drops),
        drops_source: "another counter".into(),
        cpu_ratio: if known { Fact::ok(0.43) } else { Fact::absent("part of the poll's time") },
        note: String::new(),
    }
}

fn cpu(cpu: u32, of: u32) -> CpuRow {
    let busy = f64::from(cpu % 9) / 8.0;
    CpuRow {
        cpu,
        node: Some(u32::from(cpu >= of.div_ceil(2))),
        idle_ratio: 1.0 - busy,
        softirq_ratio: busy / 2.0,
        net_softirq_ratio: Fact::ok(busy / 2.5),
        processed_pps: 1000.0 * busy,
        busiest_task: if cpu == 1 { "iperf3 (812)".into() } else { "worker (9)".into() },
        ..CpuRow::default()
    }
}

fn socket(port: u16, filled: f64, drops_pps: f64) -> SocketRow {
    SocketRow {
        protocol: "udp".into(),
        local: format!("10.0.0.2:{port}"),
        inode: port.into(),
        queued: 100_000,
        queued_max: (212_992.0 * filled) as u64,
        limit: 212_992,
        drops_pps,
        processes: vec!["iperf3 (812)".into()],
        ..SocketRow::default()
    }
}

fn task(comm: &str, taken: f64) -> TaskRow {
    TaskRow {
        pid: 812,
        comm: comm.into(),
        kind: "task".into(),
        cpus: vec![1],
        on_cpu_ratio: 0.98,
        own_ratio: Fact::ok(0.98 - taken),
        taken_ratio: Fact::ok(taken),
        waiting_ratio: Fact::absent("not measured"),
        taken_by: "eth0 (20.1 %)".into(),
        ..TaskRow::default()
    }
}

fn app(cpus: u32) -> App {
    let settings = WatchSettings {
        host: "db-1".into(),
        kernel: "6.18.0".into(),
        interval_s: 1.0,
        ..WatchSettings::default()
    };
    let mut app = App::new(settings, None);
    app.take(busy_frame(cpus), None);
    app
}

/// The screen.
pub fn drawn(app: &App, (width, height): (u16, u16), color: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|area| draw(area, app, Palette { color })).unwrap();
    terminal.backend().buffer().clone()
}

/// The letters, each line behind a `|`.
pub fn text(buffer: &Buffer) -> String {
    let rows = rows(buffer, |cell| cell.symbol().chars().next().unwrap_or(' '));
    format!("|{}\n", rows.join("\n|"))
}

/// The letters behind a `|`, and below each line what is not plain in it: `r` red, `y` yellow, `g` green, `b` bold, `d`
/// dim, `v` reversed; behind a `-` without colours, behind a `+` with them, behind a `=` where both are alike.
fn look(app: &App, size: (u16, u16)) -> String {
    let (plain, colored) = (drawn(app, size, false), drawn(app, size, true));
    assert_eq!(text(&plain), text(&colored), "colours change no letter");
    let letters = text(&plain);
    let mut out = String::new();
    for ((letters, plain), colored) in
        letters.lines().zip(rows(&plain, style)).zip(rows(&colored, style))
    {
        assert!(!plain.contains(['r', 'y', 'g']), "a colour in {letters}");
        out += &format!("{letters}\n");
        let marks =
            if plain == colored { vec![('=', plain)] } else { vec![('-', plain), ('+', colored)] };
        for (sign, marks) in marks.into_iter().filter(|(_, marks)| !marks.is_empty()) {
            out += &format!("{sign}{marks}\n");
        }
    }
    // The clock is the time zone's.
    regex_lite::Regex::new(r"\d\d:\d\d:\d\d").unwrap().replace_all(&out, "HH:MM:SS").into_owned()
}

/// A letter for each cell, line by line.
fn rows(buffer: &Buffer, letter: fn(&ratatui::buffer::Cell) -> char) -> Vec<String> {
    let area = buffer.area;
    let row = |y| (0..area.width).map(|x| letter(&buffer[(x, y)])).collect::<String>();
    (0..area.height).map(|y| row(y).trim_end().to_owned()).collect()
}

fn style(cell: &ratatui::buffer::Cell) -> char {
    match (cell.fg, cell.modifier) {
        (Color::Red, _) => 'r',
        (Color::Yellow, _) => 'y',
        (Color::Green, _) => 'g',
        (_, modifier) if modifier.contains(Modifier::REVERSED) => 'v',
        (_, modifier) if modifier.contains(Modifier::BOLD) => 'b',
        (_, modifier) if modifier.contains(Modifier::DIM) => 'd',
        _ => ' ',
    }
}

#[test]
fn losses_of_every_size_are_whole_at_80_columns() {
    let mut out = String::new();
    for (lost, shown) in [(4_830.0, "4.83k!"), (12_300.0, "12.3k!"), (123_000.0, "123k!")] {
        let mut app = app(2);
        let mut frame = busy_frame(2);
        frame.stages[5].drops_pps = Fact::ok(lost);
        frame.stages[1].rate_per_s = Fact::ok(1_234_567.0);
        app.take(frame, None);
        let drawn = text(&drawn(&app, (80, 24), false));
        let path: Vec<&str> = drawn.lines().skip(1).take(5).collect();
        assert!(path[2].contains(shown), "{path:?}");
        out += &format!("{}\n", path.join("\n"));
    }
    insta::assert_snapshot!("path-losses-80", out);
}

#[test]
fn a_long_verdict_wraps_and_other_namespaces_are_named() {
    let words = "it lost 57 % of the offered datagrams in bursts or stalls, while the reader had time left ";
    let mut frame = busy_frame(2);
    frame.verdict.as_mut().unwrap().sentence = format!("{}and that is the end", words.repeat(3));
    frame.elsewhere_pps = Some(225_000.0);
    let mut app = app(2);
    app.take(frame, None);
    let shown = |size| {
        let drawn = text(&drawn(&app, size, false));
        drawn.lines().map(|line| line[1..].trim()).collect::<Vec<_>>().join(" ")
    };
    for size in [(120, 40), (80, 40), (200, 50)] {
        let all = shown(size);
        assert!(all.contains("and that is the end (strong evidence)"), "{size:?}: {all}");
        assert!(all.contains("225k packets/s went to other network namespaces"), "{size:?}: {all}");
        assert!(all.contains("1 path"), "{size:?}: {all}");
    }
    // Where there is no room for all of it, rows of the table and the keys stay.
    let small = shown((80, 14));
    assert!(small.contains("it lost 57 %") && small.contains("q quit"), "{small}");
    assert!(!small.contains("and that is the end"), "{small}");
}

#[test]
fn a_screen_that_changes_its_size_is_drawn_anew() {
    let app = app(2);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let mut draw_at = |width, height| {
        terminal.backend_mut().resize(width, height);
        terminal.draw(|area| draw(area, &app, Palette { color: false })).unwrap();
        text(terminal.backend().buffer())
    };
    let small = draw_at(80, 24);
    let large = draw_at(140, 40);
    assert_eq!((small.lines().count(), large.lines().count()), (24, 40));
    assert!(large.contains("Enter details") && !small.contains("Enter details"));
    assert!(draw_at(30, 5).contains("too small"));
    assert_eq!(draw_at(80, 24), small, "nothing of other sizes is left");
}

#[test]
fn the_foot_line_has_the_way_out_at_every_width() {
    let mut app = app(2);
    for replay in [None, Some((1, 2))] {
        app.replay = replay;
        for width in 40..200 {
            let drawn = text(&drawn(&app, (width, 24), false));
            let foot = drawn.lines().last().unwrap();
            let record = if replay.is_some() { "[ ] step" } else { "r record" };
            for key in ["? ", "q quit", record] {
                assert!(foot.contains(key), "{key} at {width}: {foot}");
            }
        }
    }
}

#[test]
fn what_lies_over_the_rows_is_read_to_its_end() {
    let mut app = app(2);
    app.apply(Command::Help);
    let first = text(&drawn(&app, (80, 24), false));
    assert!(
        first.contains("unknown values") && first.contains("BPF probes: needs CAP_BPF"),
        "{first}"
    );
    assert!(first.contains("lines, ↑↓"), "{first}");
    app.apply(Command::Last);
    let last = text(&drawn(&app, (80, 24), false));
    assert!(last.contains("cost of watching for this host"), "{last}");
    let end = app.scrolled.get();
    app.apply(Command::Move(50));
    drawn(&app, (80, 24), false);
    assert_eq!(app.scrolled.get(), end, "it does not go beyond its end");
    app.apply(Command::Move(-1));
    drawn(&app, (80, 24), false);
    assert_eq!(app.scrolled.get(), end - 1, "one key back is one line back");
}

#[test]
fn every_cpu_of_256_is_on_the_screen_at_80_by_24() {
    let mut app = app(256);
    app.apply(Command::Tab(1));
    let drawn = text(&drawn(&app, (80, 24), false));
    let letters = drawn.chars().filter(|letter| "·▁▂▃▄▅▆▇█".contains(*letter)).count();
    let separators = drawn.lines().last().unwrap().matches('·').count();
    assert_eq!(letters - separators, 256, "{drawn}");
}

/// The sizes that are held letter by letter.
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

#[test]
fn every_tab_at_80_by_24_and_200_by_50_with_colours_and_without() {
    for (at, tab) in Tab::ALL.iter().enumerate() {
        let mut app = app(2);
        app.apply(Command::Tab(at));
        for size in SIZES {
            insta::assert_snapshot!(format!("{}-{}", tab.name(), size.0), look(&app, size));
        }
    }
}

#[test]
fn a_strip_of_256_cpus_is_grouped_by_node() {
    let mut app = app(256);
    app.apply(Command::Tab(1));
    for size in SIZES {
        insta::assert_snapshot!(format!("cpus-256-{}", size.0), look(&app, size));
    }
}

#[test]
fn what_lies_over_the_rows_at_both_sizes() {
    for (name, command) in
        [("help", Command::Help), ("detail", Command::Detail), ("explain", Command::Explain)]
    {
        let mut app = app(2);
        app.apply(command);
        for size in SIZES {
            insta::assert_snapshot!(format!("{name}-{}", size.0), look(&app, size));
        }
    }
}

#[test]
fn what_the_probes_cost_is_shown_however_narrow_the_screen() {
    let mut app = app(2);
    let head =
        |app: &App, width| text(&drawn(app, (width, 24), false)).lines().next().unwrap().to_owned();
    assert!(head(&app, 200).contains("own CPU 0.6 %, probes 0.3 %"), "{}", head(&app, 200));
    assert!(head(&app, 80).contains("own CPU 0.6 %, probes 0.3 %"), "{}", head(&app, 80));
    app.replay = Some((10, 100));
    app.paused = true;
    assert!(head(&app, 110).contains("probes 0.3 %  replay 10/100  PAUSED"), "{}", head(&app, 110));
    app.apply(Command::Help);
    app.apply(Command::Last);
    let help = text(&drawn(&app, (80, 24), false));
    for word in ["12.4k/s runs of 250 ns", "measured for 0.10 s, 4 s ago", "maps 9.1 MiB", "lost 0"]
    {
        assert!(help.contains(word), "{word} in {help}");
    }
}

#[test]
fn the_limit_has_a_sign_and_a_word_without_colours() {
    let drawn = text(&drawn(&app(2), (80, 24), false));
    assert!(drawn.contains("▲ LIMIT") && drawn.contains("▶program"), "{drawn}");
}

#[test]
fn any_size_is_drawn_without_panic() {
    for width in (1..=220).step_by(7) {
        for height in (1..=60).step_by(5) {
            for (tab, open) in
                (0..6).zip([Command::Help, Command::Detail, Command::Explain].into_iter().cycle())
            {
                let mut app = app(3);
                app.apply(Command::Tab(tab));
                app.apply(open);
                drawn(&app, (width, height), true);
            }
        }
    }
}

#[test]
fn before_the_first_frame_it_says_so() {
    let app = App::new(WatchSettings { interval_s: 2.0, ..WatchSettings::default() }, None);
    assert!(text(&drawn(&app, (80, 24), false)).contains("the first sample takes 2.0 s"));
}
