//! From an entry of the inventory to a connected endpoint; sends this program where it is not there yet.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use rxpath_host::nic::losses::CardCounters;
use rxpath_remote::inventory::{HostEntry, Reach};
use rxpath_remote::ssh::{self, StartWords};
use rxpath_remote::{Destination, Sudo, refusal, ship};

use super::ConnectedHost;
use crate::endpoint::client::{Client, NoStart, PROMPT};
use crate::endpoint::programs::locked;
use crate::endpoint::wire::{Ask, DeviceFacts, Hello};
use crate::error::LabError;

/// How long an endpoint may take to start: the connection, the login shell, the hash of the binary.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Hosts that are connected to at once: sshd and jump hosts drop new connections beyond MaxStartups, ten by default.
const AT_ONCE: usize = 8;
/// Attempts where sshd refuses connections because it has too many unauthenticated ones.
const ATTEMPTS: u32 = 3;
/// Between two attempts.
const BACK_OFF: Duration = Duration::from_secs(1);
/// The exit status of ssh for an error of its own.
const OF_SSH: i32 = 255;

/// Whether a host is this machine.
pub fn is_local(entry: &HostEntry) -> bool {
    entry.ssh == Reach::Local
}

/// Starts an endpoint on a host.
pub fn client(
    alias: &str,
    entry: &HostEntry,
    exe: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<Client, LabError> {
    match &entry.ssh {
        Reach::Local => local(alias, entry, exe),
        Reach::Ssh(destination) => over_ssh(alias, destination, entry, exe, note),
    }
}

/// Connects to hosts, some at a time, and gives them in their order.
pub fn connect(
    hosts: &[(&String, &HostEntry)],
    exe: &Path,
    secret: &str,
    note: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<ConnectedHost>, LabError> {
    // Where all hosts are this machine, this process holds its lab lock.
    let shares_lock = hosts.iter().all(|(_, entry)| is_local(entry));
    let note = Mutex::new(note);
    let mut connected = Vec::new();
    for some in hosts.chunks(AT_ONCE) {
        let found: Vec<Result<ConnectedHost, LabError>> = std::thread::scope(|scope| {
            let note = &note;
            let start = |host: &(&'_ String, &'_ HostEntry)| {
                let (alias, entry) = *host;
                let mut say = |text: &str| locked(note)(text);
                one((alias, entry), exe, (shares_lock, secret), &mut say)
            };
            let threads: Vec<_> =
                some.iter().map(|host| scope.spawn(move || start(host))).collect();
            threads.into_iter().map(joined).collect()
        });
        for host in found {
            connected.push(host?);
        }
    }
    Ok(connected)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, LabError>>) -> Result<T, LabError> {
    thread.join().unwrap_or_else(|_| {
        Err(LabError::Internal { what: "connecting to a host panicked".into() })
    })
}

fn one(
    (alias, entry): (&String, &HostEntry),
    exe: &Path,
    (shares_lock, secret): (bool, &str),
    note: &mut dyn FnMut(&str),
) -> Result<ConnectedHost, LabError> {
    let client = client(alias, entry, exe, note)?;
    let lock = !shares_lock && !is_local(entry);
    let hello: Hello = client.ask(Ask::Hello { lock, secret: secret.to_owned() }, PROMPT)?;
    if let Some(why) = &hello.not_locked {
        return Err(LabError::CannotRun {
            what: format!("{alias}: {why}"),
            hint: "let that experiment end, and run this again".into(),
        });
    }
    let clock = client.clock()?;
    Ok(ConnectedHost {
        card: CardCounters::default(),
        client: client.into(),
        hello,
        clock,
        device: DeviceFacts::default(),
        addresses: Vec::new(),
        has_own_namespace: entry.netns.is_some(),
        is_local: is_local(entry),
        machine: usize::MAX,
    })
}

fn local(alias: &str, entry: &HostEntry, exe: &Path) -> Result<Client, LabError> {
    let mut command = Command::new(exe);
    command.arg("endpoint");
    if let Some(netns) = &entry.netns {
        command.args(["--netns", netns]);
    }
    let started = Client::start(alias, command, START_LIMIT)?;
    started.map_err(|no_start| LabError::CannotRun {
        what: format!("{alias}: the endpoint did not start: {}", no_start.last_words),
        hint: String::new(),
    })
}

fn over_ssh(
    alias: &str,
    destination: &Destination,
    entry: &HostEntry,
    exe: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<Client, LabError> {
    let read = |error| LabError::io(format!("read {}", exe.display()), error);
    let hash = ship::hash_of(exe).map_err(read)?;
    let dir = entry.dir.as_ref();
    let words = StartWords {
        hash: &hash,
        dir,
        // Another network namespace is entered by root only.
        as_root: entry.sudo == Sudo::Always || (entry.netns.is_some() && entry.sudo != Sudo::Never),
        netns: entry.netns.as_deref(),
    };
    let mut is_sent = false;
    let mut attempt = 1;
    loop {
        let no_start = match Client::start(alias, ssh::start(destination, &words), START_LIMIT)? {
            Ok(client) => return Ok(client),
            Err(no_start) => no_start,
        };
        match ssh::needs_binary(&no_start.printed) {
            Some(arch) if !is_sent => {
                same_arch(alias, arch)?;
                note(&format!("{alias}: sending rxpath"));
                ship::send(alias, destination, exe, (&hash, dir)).map_err(refused)?;
                is_sent = true;
            }
            None if is_throttled(&no_start) && attempt < ATTEMPTS => {
                attempt += 1;
                // why: sshd drops connections beyond MaxStartups until others have logged in.
                std::thread::sleep(BACK_OFF * attempt);
            }
            _ => return Err(refused(refusal(alias, destination.as_str(), &words_of(&no_start)))),
        }
    }
}

/// Everything that ssh and the shell there said.
fn words_of(no_start: &NoStart) -> String {
    let parts = [no_start.last_words.as_str(), no_start.printed.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

fn is_throttled(no_start: &NoStart) -> bool {
    no_start.status == Some(OF_SSH) && no_start.last_words.contains("kex_exchange_identification")
}

fn same_arch(alias: &str, arch: &str) -> Result<(), LabError> {
    let here = std::env::consts::ARCH;
    if arch == here {
        return Ok(());
    }
    Err(LabError::CannotRun {
        what: format!("{alias} is {arch}, and this rxpath is built for {here}"),
        hint: format!("run the experiment from a host that is {arch}"),
    })
}

fn refused(refusal: rxpath_remote::Refusal) -> LabError {
    LabError::CannotRun { what: refusal.text, hint: refusal.hint }
}
