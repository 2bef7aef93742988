//! Starts the two programs of a trial: ours with their options, or anybody else's command.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rxpath_core::Side;

use super::conduct::{Job, whole};
use super::external::{External, Starter};
use super::peer::Peer;
use super::program::Program;
use crate::bed::Bed;
use crate::error::LabError;
use crate::scenario::spec::Workload;

/// Interval lines of our workloads: twenty a second is enough for a settle test of half a second.
const INTERVAL: &str = "50ms";

/// Stands for the seconds that a foreign generator is to send.
const DURATION: &str = "{duration_s}";

/// Starts the sending side. A foreign generator only starts at the order to start.
pub fn load<'a>(job: &'a Job<'a>, bed: &'a dyn Bed) -> Result<Box<dyn Peer + 'a>, LabError> {
    match &job.variant.load {
        Workload::Udp { options, port, .. } => {
            let mut words = vec!["load".to_owned(), "udp".into()];
            words.extend(
                bed.addresses().iter().map(|addr| SocketAddr::new(*addr, *port).to_string()),
            );
            words.extend(options.iter().cloned());
            Ok(Box::new(steered("load", job.exe, &words, (bed, Side::Tx))?))
        }
        Workload::External { parser, command, .. } => {
            let bounded = command.iter().any(|word| word.contains(DURATION));
            let starter = foreign(job, bed, Side::Tx);
            Ok(Box::new(External::generator("load", parser.clone(), bounded, starter)))
        }
    }
}

/// Starts the receiving side; `None` when nobody is to listen.
pub fn serve<'a>(
    job: &'a Job<'a>,
    bed: &'a dyn Bed,
) -> Result<Option<Box<dyn Peer + 'a>>, LabError> {
    match &job.variant.serve {
        Workload::Udp { absent: true, .. } => Ok(None),
        Workload::Udp { options, port, .. } => {
            let any = if job.variant.lab.ipv6 {
                format!("[::]:{port}")
            } else {
                format!("0.0.0.0:{port}")
            };
            let mut words = vec!["serve".to_owned(), "udp".into(), any];
            words.extend(options.iter().cloned());
            Ok(Some(Box::new(steered("serve", job.exe, &words, (bed, Side::Rx))?)))
        }
        Workload::External { parser, ready, .. } => {
            let starter = foreign(job, bed, Side::Rx);
            Ok(Some(Box::new(External::server("serve", ready.clone(), parser.clone(), starter))))
        }
    }
}

fn steered(
    name: &'static str,
    exe: &Path,
    words: &[String],
    (bed, side): (&dyn Bed, Side),
) -> Result<Program, LabError> {
    let mut command = Command::new(exe);
    command.args(words).args(["--control", "--json", "--interval", INTERVAL]);
    piped(&mut command);
    Program::adopt(name, bed.spawn(side, command)?)
}

fn foreign<'a>(job: &'a Job<'a>, bed: &'a dyn Bed, side: Side) -> Starter<'a> {
    Box::new(move || {
        let workload = if side == Side::Tx { &job.variant.load } else { &job.variant.serve };
        let Workload::External { command: words, cpus, port, .. } = workload else {
            return Err(LabError::Internal { what: "a foreign program without a command".into() });
        };
        let addr = bed.addresses().first().map(ToString::to_string).unwrap_or_default();
        let seconds = format!("{:.0}", whole(job.trials).as_secs_f64().ceil());
        let fill = |word: &String| {
            word.replace("{addr}", &addr)
                .replace("{port}", &port.to_string())
                .replace(DURATION, &seconds)
        };
        let mut words: Vec<String> = words.iter().map(fill).collect();
        if !cpus.is_empty() {
            // util-linux is on every distribution; a program of somebody else's can't be asked to pin itself.
            words.splice(0..0, ["taskset".to_owned(), "-c".into(), cpus.to_string()]);
        }
        let Some((program, arguments)) = words.split_first() else {
            return Err(LabError::Internal {
                what: "a foreign program with an empty command".into(),
            });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        piped(&mut command);
        bed.spawn(side, command)
    })
}

fn piped(command: &mut Command) {
    // A group of its own: Ctrl-C reaches the runner only, which then ends its programs in order.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}
