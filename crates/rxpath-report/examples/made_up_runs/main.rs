//! Writes the made-up run directories under `testdata/runs`: `cargo run -p rxpath-report --example made_up_runs`.
//!
//! The numbers are invented in the shape of real ones; they exercise the report and are no measurement.
//! The generator is here so that a change of the record's types is a compile error and one command away.

mod manifest;
mod story;
mod trial;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rxpath_core::{Fact, PathSide};
use rxpath_record::environment::Environment;
use rxpath_record::event::{RunEvent, What};
use rxpath_record::manifest::{Grade, Manifest, Status, Trial};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::manifest::manifest;
use crate::story::{Kind, story};
use crate::trial::trial_of;

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs");
    let story = story();
    write(&root.join("million-pps"), &run("million-pps", &story, 6))?;
    write(&root.join("one-variant"), &run("one-variant", &story[5..], 1))?;
    let mut partial = run("partial", &story[..3], 2);
    // The manifest is replaced after each trial: it knows the first four.
    let known = partial.0.trials[..4].to_vec();
    partial.0 = manifest("partial", "million-pps", &story[..3], known);
    partial.0.status = Status::Running;
    partial.0.ended = None;
    partial.0.headline.clear();
    partial.1.retain(|event| !matches!(event.what, What::RunEnded { .. }));
    write(&root.join("partial"), &partial)?;
    let events = root.join("partial/events.jsonl");
    let text = fs::read_to_string(&events)?;
    // Killed in the middle of a line.
    fs::write(&events, &text[..text.len() * 2 / 3])?;
    Ok(())
}

/// A small generator of reproducible scatter (xorshift64*), uniform in -1..1.
struct Scatter(u64);

impl Scatter {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

type Whole = (Manifest, Vec<RunEvent>, Environment);

fn run(id: &str, kinds: &[Kind], blocks: u32) -> Whole {
    let mut scatter = Scatter(0x9E37_79B9_7F4A_7C15);
    let mut trials = Vec::new();
    let mut events = Vec::new();
    let mut now = 812_000_000_000_i64;
    let scenario = if kinds.len() > 1 { "million-pps" } else { "udp-batching" };
    events.push(RunEvent {
        t_ns: now,
        what: What::RunStarted { run_id: id.into(), scenario: scenario.into() },
    });
    for block in 0..=blocks {
        for (at, kind) in order(kinds, block) {
            let trial = trials.len() as u32;
            let mut made = trial_of(&kind, (trial, block), now, &mut scatter);
            if trial == 9 {
                made.void =
                    Some("CPU 1: 6.1 % of the window went to a thread of another program".into());
                made.grade = Grade::D;
            }
            note(&mut events, &made, &kind, at);
            now = made.window_ns[1] + 900_000_000;
            trials.push(made);
        }
    }
    let how = "complete".into();
    events.push(RunEvent { t_ns: now, what: What::RunEnded { how } });
    (manifest(id, scenario, kinds, trials), events, environment())
}

/// Block 0 is the A/A block; later blocks rotate the variants.
fn order(kinds: &[Kind], block: u32) -> Vec<(usize, Kind)> {
    if block == 0 {
        return vec![(0, kinds[0]), (0, kinds[0])];
    }
    let mut all: Vec<(usize, Kind)> = kinds.iter().copied().enumerate().collect();
    all.rotate_left((block as usize * 5 + 2) % kinds.len());
    if block.is_multiple_of(2) {
        all.reverse();
    }
    all
}

/// The events of one trial: cumulative counters and queue gauges every 100 ms.
fn note(events: &mut Vec<RunEvent>, trial: &Trial, kind: &Kind, at: usize) {
    let id = trial.trial;
    let start = trial.window_ns[0] - 400_000_000;
    let mut push = |t_ns: i64, what| events.push(RunEvent { t_ns, what });
    push(
        start - 3_000_000,
        What::SettingChanged {
            side: PathSide::Rx,
            setting: kind.setting.0.into(),
            old: "default".into(),
            new: kind.setting.1.into(),
            since_trial: None,
        },
    );
    let variant = kind.name.to_owned();
    push(start - 2_000_000, What::TrialStarted { trial: id, block: trial.block, variant });
    let mut scatter = Scatter(0xABCD_EF01 + u64::from(id) * 7919);
    let (mut offered, mut delivered) = (0.0, 0.0);
    for tick in 0..=16_i64 {
        let active = if tick < 2 {
            0.4
        } else if tick > 14 {
            0.0
        } else {
            1.0
        };
        if tick > 0 {
            offered += trial.evidence.offered_pps * 0.1 * active * (1.0 + 0.01 * scatter.next());
            delivered +=
                trial.evidence.delivered_pps * 0.1 * active * (1.0 + 0.03 * scatter.next());
        }
        let t = start + tick * 100_000_000;
        push(t, sample(id, PathSide::Tx, [("offered_packets/thread0".into(), offered.round())]));
        let mut values = vec![("delivered_packets/thread0".to_owned(), delivered.round())];
        for socket in &trial.evidence.sockets {
            let swing = 0.06 * (1.0 + scatter.next()) + 0.01 * at as f64;
            let queue = socket.queue_max_bytes as f64 * active * (1.0 - swing);
            values.push((format!("rmem_bytes/socket{}", socket.index), queue.round()));
        }
        push(t, sample(id, PathSide::Rx, values));
    }
    push(
        trial.window_ns[1] + 300_000_000,
        What::TrialEnded { trial: id, void: trial.void.clone() },
    );
}

fn sample(trial: u32, side: PathSide, values: impl IntoIterator<Item = (String, f64)>) -> What {
    What::Sample { trial, side, values: values.into_iter().collect() }
}

fn environment() -> Environment {
    let ok = |value: serde_json::Value| Fact::ok(value);
    let facts = [
        ("kernel.release", ok(json!("6.18.5-made-up"))),
        ("kernel.config.irq_time_accounting", ok(json!(false))),
        ("kernel.cmdline", Fact::denied("CAP_SYSLOG")),
        ("cpu.model", ok(json!("Made-up CPU @ 2.50GHz"))),
        ("cpu.online", ok(json!("0-1"))),
        ("cpu.frequency_governor", Fact::absent("no cpufreq driver in this guest")),
        ("cpu.smt", ok(json!("off"))),
        ("memory.total_bytes", ok(json!(16_777_216_000_u64))),
        ("clock.source", ok(json!("kvm-clock"))),
        ("virtualization", ok(json!("kvm"))),
        ("sysctl.net.core.rmem_max", ok(json!(212_992))),
        ("sysctl.net.core.netdev_max_backlog", ok(json!(1000))),
        ("sysctl.net.ipv4.udp_mem", ok(json!("190491 253988 380982"))),
    ];
    let facts = facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
    Environment {
        schema: "rxpath/environment/1.0".into(),
        hosts: [("local".to_owned(), facts)].into(),
    }
}

fn write(dir: &Path, (manifest, events, environment): &Whole) -> Done {
    fs::create_dir_all(dir)?;
    let lines: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
    let events = lines?.join("\n") + "\n";
    let environment = serde_json::to_string_pretty(environment)? + "\n";
    let mut manifest = manifest.clone();
    if manifest.status == Status::Complete {
        for (name, text) in [("events.jsonl", &events), ("environment.json", &environment)] {
            let sum = Sha256::digest(text.as_bytes());
            let mut hex = String::new();
            for byte in sum {
                write!(hex, "{byte:02x}")?;
            }
            manifest.files.insert(name.into(), hex);
        }
    }
    fs::write(dir.join("events.jsonl"), events)?;
    fs::write(dir.join("environment.json"), environment)?;
    fs::write(dir.join("manifest.json"), serde_json::to_string(&manifest)? + "\n")?;
    Ok(())
}
