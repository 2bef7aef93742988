//! Counters of the network between the hosts, as a command of the user shows them: switches, routers.
//!
//! A note of the ledger shows them, and they are no term: a switch counts the frames of everybody.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rxpath_host::lab::netns;
use rxpath_record::counters::{Snapshot, name};
use serde_json::Value;

use super::Hosts;
use crate::trial::unreaped::signal_group;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The most that it may print. **Unit** bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The longest name of a counter.
const LONGEST_NAME: usize = 100;
/// Time between two looks for its end.
const GLANCE: Duration = Duration::from_millis(10);

impl Hosts {
    /// Reads the network's counters into a reading of the hosts'. If the command fails, they are a gap.
    ///
    /// **Cost** that of the command, 10 s at most.
    pub fn read_network_counters(&self, into: &mut Snapshot) {
        read(&self.network_counters, LIMIT, into);
    }

    /// The command and when it runs, for people; nothing without one.
    pub fn network_command(&self) -> Option<String> {
        let command = &self.network_counters;
        (!command.is_empty()).then(|| {
            format!(
                "counters of the network, read here before and after each trial: {}",
                command.join(" ")
            )
        })
    }
}

fn read(command: &[String], limit: Duration, into: &mut Snapshot) {
    let Some((program, words)) = command.split_first() else { return };
    let found = run(program, words, limit).and_then(|printed| parse(&printed));
    // Without its path: that is the user's.
    into.put(name::OF_NETWORK.into(), found.map_err(|why| format!("network.counters {why}")));
}

/// What a command prints, or what was wrong with it. Its errors are not kept: they may name machines.
fn run(program: &str, words: &[String], limit: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    // A group of its own: Ctrl-C is for the run.
    command.args(words).process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    netns::die_with_parent(&mut command);
    let mut child = command.spawn().map_err(|error| format!("did not start: {error}"))?;
    let printed = printed(&mut child, limit);
    if printed.is_err() {
        signal_group(child.id(), Signal::SIGKILL);
    }
    let status = child.wait().map_err(|error| format!("cannot be waited for: {error}"))?;
    let printed = printed?;
    if status.success() { Ok(printed) } else { Err(format!("failed ({status})")) }
}

/// What it prints until it ends.
fn printed(child: &mut Child, limit: Duration) -> Result<String, String> {
    let deadline = Instant::now() + limit;
    let late = || format!("did not end within {limit:?}");
    let (say, said) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.map_or(Ok(0), |out| out.take(MOST_BYTES + 1).read_to_end(&mut text));
        // Nobody listens any more after the limit.
        let _ = say.send(read.map(|_| text));
    });
    let text = said.recv_timeout(limit).map_err(|_| late())?;
    let text = text.map_err(|error| format!("printed what cannot be read: {error}"))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("printed more than {MOST_BYTES} bytes"));
    }
    let text = String::from_utf8(text).map_err(|_| "did not print UTF-8".to_owned())?;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return Err(late());
        }
        // why: its output is closed, and it ends soon.
        std::thread::sleep(GLANCE);
    }
    Ok(text)
}

/// The counters in what it printed: a JSON object of names and whole numbers.
///
/// **Errors** in words that go on after the name of the command's key.
pub fn parse(printed: &str) -> Result<BTreeMap<String, u64>, String> {
    let wanted = "a JSON object of names and whole numbers";
    let Ok(Value::Object(all)) = serde_json::from_str(printed) else {
        return Err(format!("did not print {wanted}"));
    };
    all.iter()
        .map(|(counter, value)| {
            let is_name = !counter.is_empty()
                && counter.len() <= LONGEST_NAME
                && counter.chars().all(|c| c.is_ascii_graphic());
            let value = value.as_u64().filter(|_| is_name);
            let shown = counter.escape_debug();
            let value =
                value.ok_or_else(|| format!("did not print {wanted}: look at `{shown}`"))?;
            Ok((format!("{}{counter}", name::OF_NETWORK), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(script: &str, limit: Duration) -> Snapshot {
        let command = ["sh", "-c", script].map(str::to_owned);
        let mut counters = Snapshot::default();
        read(&command, limit, &mut counters);
        counters
    }

    #[test]
    fn what_the_command_prints_are_counters_of_the_network() {
        let counters = of(r#"echo '{"sw1.eth4.drops": 812, "sw1.eth4.tx": 5}'"#, LIMIT);
        assert_eq!(counters.values["network/sw1.eth4.drops"], 812);
        assert_eq!((counters.values.len(), counters.gaps.len()), (2, 0));
        let mut none = Snapshot::default();
        read(&[], LIMIT, &mut none);
        assert_eq!(none, Snapshot::default());
    }

    #[test]
    fn a_command_that_fails_is_a_gap_with_its_reason() {
        let within = |script: &str, limit| {
            let counters = of(script, limit);
            assert!(counters.values.is_empty(), "{counters:?}");
            counters.gaps["network/"].clone()
        };
        let why = |script| within(script, LIMIT);
        let soon = |script| within(script, Duration::from_millis(300));
        assert_eq!(why("exit 3"), "network.counters failed (exit status: 3)");
        assert_eq!(soon("exec sleep 60"), "network.counters did not end within 300ms");
        assert_eq!(soon("exec >&-; exec sleep 60"), "network.counters did not end within 300ms");
        let wanted = "network.counters did not print a JSON object of names and whole numbers";
        assert_eq!(why("echo '[1]'"), wanted);
        assert_eq!(why("true"), wanted);
        assert_eq!(why(r#"echo '{"a": 1, "b": -1}'"#), format!("{wanted}: look at `b`"));
        assert_eq!(why(r#"echo '{"a b": 1}'"#), format!("{wanted}: look at `a b`"));
        let long = why("head -c 2000000 /dev/zero | tr '\\0' 1");
        assert_eq!(long, "network.counters printed more than 1048576 bytes");
        let mut counters = Snapshot::default();
        read(&["/nonexistent/counters".into()], LIMIT, &mut counters);
        assert!(counters.gaps["network/"].contains("did not start: No such file"), "{counters:?}");
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
