//! `rxpath watch` without a terminal and without root: frames, recordings, and what is refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Said, rxpath, said};

fn lines(output: &Said) -> Vec<Value> {
    output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(&rxpath(&["schema", "watch"]).json()).unwrap()
}

#[test]
fn one_look_is_text_or_an_object_of_its_schema() {
    let look =
        rxpath(&["watch", "--once", "--no-bpf", "--interval", "200ms", "--json"]).ends(0).json();
    let errors: Vec<String> = schema().iter_errors(&look).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let stages: Vec<&str> = look["result"]["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["nic", "irq", "gro", "backlog", "ip", "socket", "application"]);
    assert!(look["result"]["gaps"]["BPF probes"].as_str().unwrap().contains("not asked for"));
    let window = look["result"]["window_s"].as_f64().unwrap();
    assert!(window >= 0.2, "{window}");
    let text = rxpath(&["watch", "--once", "--no-bpf", "--interval", "200ms"]);
    for word in ["NIC/ring", "filter/IP", "CPUs", "tasks", "not known: BPF probes"] {
        assert!(text.out.contains(word), "{word} in {text:?}");
    }
}

#[test]
fn what_is_recorded_is_what_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl.gz");
    let path = file.to_str().unwrap();
    let words =
        ["watch", "--json", "--no-bpf", "--interval", "100ms", "-d", "1s", "--record", path];
    let recorded = rxpath(&words).ends(0).warns("frames in");
    let shown = lines(&recorded);
    let again = rxpath(&["watch", "--replay", path, "--json"]).ends(0);
    let kept = lines(&again);
    assert_eq!(kept.len(), shown.len());
    kept.iter().zip(&shown).for_each(|(kept, shown)| assert_near(kept, shown));
    assert_eq!(kept[0]["type"], "settings");
    assert_eq!(kept[0]["schema"], "rxpath/watch-line/1.0");
    let numbers: Vec<u64> =
        kept[1..].iter().map(|frame| frame["number"].as_u64().unwrap()).collect();
    assert!(!numbers.is_empty() && numbers.iter().zip(1..).all(|(n, at)| *n == at), "{numbers:?}");
    rxpath(&["watch", "--replay", path, "--once"]).prints("NIC/ring");
    let again = rxpath(&words);
    assert_eq!(again.code, Some(2), "a recording is not written over");
    assert!(again.err.contains("exists"), "{again:?}");
}

/// The same but for shares and rates, of which a recording keeps four digits.
fn assert_near(kept: &Value, shown: &Value) {
    match (kept, shown) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{kept} {shown}");
            a.values().zip(b.values()).for_each(|(a, b)| assert_near(a, b));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{kept} {shown}");
            a.iter().zip(b).for_each(|(a, b)| assert_near(a, b));
        }
        (Value::Number(a), Value::Number(b)) if b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-3 * b.abs() + 1e-5, "{a} {b}");
        }
        _ => assert_eq!(kept, shown),
    }
}

/// A host of six CPUs, recorded elsewhere.
const EDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/recordings/edge-6.jsonl");

/// The lines of a recording. What is replayed says so where an older one lacks a part of a task.
fn kept(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tasks = lines.iter_mut().filter_map(|line| line.get_mut("tasks")?.as_array_mut()).flatten();
    for task in tasks {
        let why = json!({"state": "absent", "why": "not recorded"});
        task.as_object_mut().unwrap().entry("irq_entry_ratio").or_insert(why);
    }
    lines
}

/// A recorded line as the answer of one look has it.
fn without_type(line: &Value) -> Value {
    let mut frame = line.clone();
    frame.as_object_mut().unwrap().remove("type");
    frame
}

#[test]
fn a_recording_of_another_host_shows_that_host_and_nothing_of_this_one() {
    let recorded = kept(EDGE);
    let look = rxpath(&["watch", "--replay", EDGE, "--once", "--json"]).ends(0).json();
    let errors: Vec<String> = schema().iter_errors(&look).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(look["result"], without_type(recorded.last().unwrap()));
    assert_eq!(
        (&look["settings"]["host"], &look["settings"]["kernel"]),
        (&"edge-6".into(), &"6.18.44".into())
    );
    let replayed = lines(&rxpath(&["watch", "--replay", EDGE, "--json"]));
    assert_eq!(replayed[1..], recorded[1..]);
    // Made before lines had a schema of their own; read all the same.
    assert_eq!(recorded[0]["schema"], "rxpath/watch/1.0");
    assert_eq!(replayed[0]["schema"], "rxpath/watch-line/1.0");
    let text = rxpath(&["watch", "--replay", EDGE, "--once"]).out;
    assert!(text.starts_with("edge-6  6.18.44  "), "{text}");
    let section = |name: &str| {
        let rows = text.lines().skip_while(|line| *line != name).skip(2);
        let rows = rows.take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(section("CPUs"), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(section("queues"), ["ens1f0"; 4]);
    assert_eq!(section("sockets"), ["udp"]);
    for word in ["10.20.0.2:5140", "collector (", "SOCKET_RCVBUFF", "limit at program", "; probes "]
    {
        assert!(text.contains(word), "{word} in {text}");
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(!text.split_whitespace().any(|word| word == host.trim()), "{host} in {text}");
}

#[test]
fn a_recording_that_is_cut_in_mid_line_replays_up_to_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.jsonl");
    let whole = fs::read_to_string(EDGE).unwrap();
    let third = whole.match_indices('\n').nth(2).unwrap().0 + 1;
    fs::write(&file, &whole[..third + (whole.len() - third) / 2]).unwrap();
    let path = file.to_str().unwrap();
    let look = rxpath(&["watch", "--replay", path, "--once", "--json"])
        .ends(5)
        .warns("is cut at line 4")
        .json();
    let recorded = kept(EDGE);
    assert_eq!(look["result"], without_type(&recorded[2]));
    let replayed = lines(&rxpath(&["watch", "--replay", path, "--json"]));
    assert_eq!(replayed[1..], recorded[1..3]);
    let text = rxpath(&["watch", "--replay", path, "--once"]).ends(5);
    assert!(text.out.starts_with("edge-6  6.18.44  "));
}

/// Frames of before what the probes cost was in them.
#[test]
fn a_recording_of_an_older_version_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("older.jsonl");
    let older = kept(EDGE).into_iter().map(|mut line| {
        line.as_object_mut().unwrap().remove("probe_cost");
        format!("{line}\n")
    });
    fs::write(&file, older.collect::<String>()).unwrap();
    let output = rxpath(&["watch", "--replay", file.to_str().unwrap(), "--once"])
        .ends(0)
        .prints("of this window\n");
    assert!(!output.out.contains("probes 0"), "{output:?}");
}

/// Frames that a recording holds so far.
fn recorded_frames(file: &Path) -> usize {
    let bytes = fs::read(file).unwrap_or_default();
    rxpath_record::watch::parse(&bytes).map_or(0, |read| read.frames.len())
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_saw() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jsonl.gz");
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["watch", "--no-bpf", "--interval", "100ms", "--record", file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while recorded_frames(&file) < 3 {
        assert!(Instant::now() < deadline, "no frames within 30 s");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed in the middle of a frame, or a disk that was full.
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"half");
    fs::write(&file, &bytes).unwrap();
    let replayed = rxpath(&["watch", "--replay", file.to_str().unwrap(), "--json"]).ends(5);
    assert!(lines(&replayed).len() >= 3);
    assert!(replayed.err.contains("is cut at line"), "{replayed:?}");
}

#[test]
fn what_cannot_be_shown_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let foreign = write("foreign", "{\"type\":\"settings\",\"schema\":\"rxpath/trace/1.0\"}\n");
    let newer = write("newer", "{\"type\":\"settings\",\"schema\":\"rxpath/watch/2.0\"}\n");
    let empty = write("empty", "");
    let head = write("head", "{\"type\":\"settings\",\"schema\":\"rxpath/watch/1.0\"}\n");
    let missing = dir.path().join("missing").to_str().unwrap().to_owned();
    let large = write("large", "");
    fs::OpenOptions::new().write(true).open(&large).unwrap().set_len((4 << 30) + 1).unwrap();
    let no_file = "no regular file\nhint: name a file that `rxpath watch --record` wrote";
    let too_large = "at most 4,294,967,296 can be read\nhint: record a shorter time";
    for (words, told_word) in [
        (vec!["watch"], "no terminal"),
        (vec!["watch", "--interval", "1ms", "--once"], "--interval 1ms"),
        (vec!["watch", "--replay", &foreign, "--json"], "rxpath/trace/1.0"),
        (vec!["watch", "--replay", &newer, "--json"], "rxpath/watch/2.0"),
        (vec!["watch", "--replay", &empty, "--json"], "no recording"),
        (vec!["watch", "--replay", &head, "--json"], "no whole frame"),
        (vec!["watch", "--replay", &missing, "--json"], "No such file"),
        (vec!["watch", "--replay", dir.path().to_str().unwrap(), "--json"], no_file),
        (vec!["watch", "--replay", &large, "--json"], too_large),
        (vec!["watch", "--replay", &head, "--record", "x"], "--record"),
    ] {
        let output = rxpath(&words).ends(2).warns(told_word);
        assert!(output.err.lines().count() <= 3, "{output:?}");
    }
}

/// The viewer on a pseudo terminal, in a directory of its own.
struct Screen {
    dir: tempfile::TempDir,
    child: std::process::Child,
    shown: std::sync::mpsc::Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Screen {
    /// `script` (util-linux) makes the terminal, `stty` its size.
    fn start(rows: u32, columns: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let command = format!(
            "stty rows {rows} cols {columns}; tty >tty; exec '{}' watch --no-bpf --interval 100ms",
            env!("CARGO_BIN_EXE_rxpath")
        );
        let mut child = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .current_dir(dir.path())
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, shown) = std::sync::mpsc::channel();
        let mut out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = std::io::Read::read(&mut out, &mut bytes) {
                if tell.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { dir, child, shown, seen: Vec::new() }
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        std::io::Write::write_all(stdin, keys.as_bytes()).unwrap();
    }

    /// Waits until this was drawn since the last such text.
    fn until(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|part| part == text.as_bytes())
            {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(why) => {
                    panic!("no `{text}` ({why}) in {}", String::from_utf8_lossy(&self.seen))
                }
            }
        }
    }

    fn resize(&self, rows: u32, columns: u32) {
        let tty = fs::read_to_string(self.dir.path().join("tty")).unwrap();
        let (rows, columns) = (rows.to_string(), columns.to_string());
        let words = ["-F", tty.trim(), "rows", &rows, "cols", &columns];
        assert!(Command::new("stty").args(words).status().unwrap().success());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_view_follows_its_terminal_and_records_on_a_key() {
    let mut screen = Screen::start(24, 80);
    screen.until("q quit");
    screen.resize(40, 140);
    screen.until("Enter details");
    screen.resize(5, 30);
    screen.until("small");
    screen.resize(24, 80);
    screen.until("r record");
    screen.press("r");
    screen.until("REC");
    let recording = || {
        let names = fs::read_dir(screen.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect::<Vec<_>>()
    };
    let files = recording();
    assert_eq!(files.len(), 1, "{files:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while recorded_frames(&files[0]) < 2 {
        assert!(Instant::now() < deadline, "no two frames within 60 s");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(10));
    }
    screen.press("r");
    screen.until("frames in");
    let whole = fs::read(&files[0]).unwrap();
    screen.press("q");
    assert!(screen.child.wait().unwrap().success());
    assert_eq!(fs::read(&files[0]).unwrap(), whole, "it had ended");
    let replayed = rxpath(&["watch", "--replay", files[0].to_str().unwrap(), "--json"]).ends(0);
    assert!(lines(&replayed).len() >= 3);
}

#[test]
fn the_path_is_whole_whatever_top_says() {
    let words = ["watch", "--once", "--no-bpf", "--interval", "100ms", "--top", "1"];
    let text = rxpath(&words).out;
    for stage in ["NIC/ring", "irq/NAPI", "GRO", "backlog", "filter/IP", "socket", "program"] {
        assert!(text.lines().any(|line| line.trim_start_matches('▶').starts_with(stage)), "{text}");
    }
}

#[test]
fn a_dumb_terminal_gets_no_full_screen() {
    // The master of a new pseudoterminal is a terminal too.
    let terminal = fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["watch", "--no-bpf"]).env("TERM", "dumb");
    said(command.stdout(terminal).stderr(Stdio::piped()))
        .ends(2)
        .warns("TERM=dumb")
        .warns("--once prints one sample");
}
