//! One command on another host: this program is sent there over the user's ssh and runs the same words, and what it
//! prints is printed here.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use nix::sys::signal::Signal;
use rxpath_lab::clock::HostClock;
use rxpath_lab::hosts::client;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::testbed::Started;
use rxpath_remote::inventory::{HostEntry, Reach};
use rxpath_remote::{Given, Role, Sudo};

use crate::cmd::binary_args::binaries_of;
use crate::cmd::hosts_args::note;
use crate::cmd::lab_error::failure;
use crate::cmd::prelude::*;

/// The other host of a command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OnHost {
    /// Run this on another host, as ssh takes its name: rxpath sends itself there
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// As root there, by `sudo -n`
    #[arg(long, requires = "host")]
    host_sudo: bool,
    /// Send this file there if it is of that architecture (x86_64, aarch64): a static build of the same sources
    #[arg(long, value_name = "ARCH=FILE", requires = "host")]
    binary: Vec<Given>,
}

impl OnHost {
    /// Runs the words of this process's command line there, if a host was named.
    pub fn run(&self) -> Option<Outcome> {
        self.host.as_deref().map(|host| self.run_on(host))
    }

    fn run_on(&self, host: &str) -> Outcome {
        let words = remote_words(readable(std::env::args_os().skip(1))?.into_iter());
        let ssh = Reach::try_from(host.to_owned()).map_err(Failure::usage)?;
        let sudo = if self.host_sudo { Sudo::Always } else { Sudo::Never };
        let entry = HostEntry {
            ssh,
            role: Role::Receiver,
            dev: None,
            addr: Vec::new(),
            netns: None,
            sudo,
            dir: None,
        };
        let binaries = binaries_of(&self.binary)?;
        let interrupt = Interrupt::catch()?;
        let needs = RootNeeds::default();
        let client = client(host, &entry, &binaries, &needs, &mut note).map_err(failure)?;
        let client = Arc::new(client);
        let started =
            client.launch(words, (String::new(), 0), HostClock::default()).map_err(failure)?;
        follow(started, host, &interrupt)
    }
}

/// The words as text: the message to the other host is JSON.
fn readable(all: impl Iterator<Item = OsString>) -> Result<Vec<String>, Failure> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            let word = word.to_string_lossy();
            Failure::usage(format!("`{word}`: not UTF-8, which --host cannot pass on"))
                .hint("use words in UTF-8 with --host")
        })
    };
    all.map(text).collect()
}

/// The words without those that name the host.
fn remote_words(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = all.peekable();
    let mut kept = Vec::new();
    while let Some(word) = all.next() {
        match word.as_str() {
            // What follows belongs to a command of the user's.
            "--" => {
                kept.push(word);
                kept.extend(all.by_ref());
            }
            "--host" | "--binary" => drop(all.next()),
            "--host-sudo" => {}
            named if named.starts_with("--host=") || named.starts_with("--binary=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Prints what the program prints until it ends, and ends as it does.
fn follow(mut started: Started, host: &str, interrupt: &Interrupt) -> Outcome {
    let printing = started.stdout.take().map(|from| passed_on(from, io::stdout()));
    let telling = started.stderr.take().map(|from| passed_on(from, io::stderr()));
    let mut is_interrupted = false;
    let ended = loop {
        if let Some(ended) = started.process.try_wait().transpose() {
            break ended;
        }
        if interrupt.caught().is_some() && !is_interrupted {
            is_interrupted = true;
            started.process.signal(Signal::SIGINT);
        }
        // why: looks for the end of a program on another host, and for a signal here.
        std::thread::sleep(Duration::from_millis(20));
    };
    for reader in [printing, telling].into_iter().flatten() {
        let _ = reader.join();
    }
    // An error is a host that was lost.
    let status = ended.map_err(|lost| Failure::new(Exit::Partial, lost))?;
    Ok(match (status.code(), interrupt.caught()) {
        (Some(code), _) => Exit::Command(code as u8),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => {
            let signal = status.signal().unwrap_or_default();
            crate::note!("rxpath: {host}: the command there was ended by signal {signal}");
            Exit::Partial
        }
    })
}

fn passed_on(
    mut from: Box<dyn Read + Send>,
    mut to: impl Write + Send + 'static,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        // A reader here that has closed its pipe wants no more; the program there goes on to its end.
        let _ = io::copy(&mut from, &mut to).and_then(|_| to.flush());
        let _ = io::copy(&mut from, &mut io::sink());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_other_host_are_those_of_this_command_without_its_name() {
        let words = |line: &str| remote_words(line.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(words("check --host sut --json"), "check --json");
        assert_eq!(
            words("--host=sut --host-sudo trace --binary x86_64=a --binary=b -d 5s"),
            "trace -d 5s"
        );
        assert_eq!(words("steal --host sut -- ls --host x"), "steal -- ls --host x");
    }
}
