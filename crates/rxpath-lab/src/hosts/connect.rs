//! From an entry of the inventory to a connected endpoint; sends a build of this program where it is not there yet.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rxpath_host::read::nic::losses::CardCounters;
use rxpath_remote::inventory::{HostEntry, Reach};
use rxpath_remote::ship::Shipment;
use rxpath_remote::ssh::{self, StartWords};
use rxpath_remote::{
    ARCHITECTURES, Binaries, Binary, Destination, Directory, HostRefusal, RefusingHost,
    known_refusal, passes, refusal,
};

use super::privilege::RootNeeds;
use super::{ConnectedHost, devices};
use crate::endpoint::client::{Client, NoStart, Supply};
use crate::endpoint::clock::ClockBounds;
use crate::endpoint::wire::{DeviceFacts, Hello, HostAsk};
use crate::error::{LabError, cannot};
use crate::shared::locked;

/// How long a step of an endpoint's start may take: the connection, the login shell, the hash of the binary. While the binary
/// is sent, some of it must go on in each such time.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a host may take to say who it is: it undoes what a killed run left, and a link may have to come up for that.
const SETTLED: Duration = Duration::from_secs(60);
/// Attempts where sshd refuses connections because it has too many unauthenticated ones.
const ATTEMPTS: u32 = 3;
/// Between two attempts.
const BACK_OFF: Duration = Duration::from_secs(1);
/// A program with its debug information is larger.
const LARGE_BYTES: u64 = 40_000_000;

/// What an experiment wants of all its hosts.
#[derive(Clone, Copy)]
pub struct HostTerms<'a> {
    /// By which hosts on one machine see each other.
    pub secret: &'a str,
    /// Hops that packets may take.
    pub hops: u8,
    /// What of it needs root.
    pub needs: &'a RootNeeds,
}

/// Whether a host is this machine.
pub fn is_local(entry: &HostEntry) -> bool {
    entry.ssh == Reach::Local
}

/// Starts an endpoint on a host, as root if `needs` or the inventory says so.
pub fn client(
    alias: &str,
    entry: &HostEntry,
    binaries: &Binaries,
    needs: &RootNeeds,
    note: &mut dyn FnMut(&str),
) -> Result<Client, LabError> {
    match &entry.ssh {
        Reach::Local => local(alias, entry, binaries),
        Reach::Ssh(destination) => {
            over_ssh((alias, entry), destination, binaries, needs.on(alias, entry).as_deref(), note)
        }
    }
}

/// Connects to hosts, `at_once` at a time, and gives them, or why they cannot be used, in their order.
pub fn connect(
    (hosts, at_once): (&[(&String, &HostEntry)], usize),
    binaries: &Binaries,
    terms: HostTerms<'_>,
    note: &mut (dyn FnMut(&str) + Send),
) -> Vec<Result<ConnectedHost, LabError>> {
    // Where all hosts are this machine, this process holds its lab lock.
    let shares_lock = hosts.iter().all(|(_, entry)| is_local(entry));
    each_at_once((hosts, at_once), note, |host, note| {
        one(host, binaries, (shares_lock, terms), note)
    })
}

/// Deals with hosts, `at_once` at a time, each in a thread of its own, and gives what came of each in their order.
pub fn each_at_once<T: Send>(
    (hosts, at_once): (&[(&String, &HostEntry)], usize),
    note: &mut (dyn FnMut(&str) + Send),
    deal: impl Fn((&String, &HostEntry), &mut dyn FnMut(&str)) -> Result<T, LabError> + Sync,
) -> Vec<Result<T, LabError>> {
    let note = Mutex::new(note);
    let mut all = Vec::new();
    for some in hosts.chunks(at_once.max(1)) {
        let found: Vec<_> = std::thread::scope(|scope| {
            let (note, deal) = (&note, &deal);
            let start = move |host: &(&'_ String, &'_ HostEntry)| {
                let mut say = |text: &str| locked(note)(text);
                deal(*host, &mut say)
            };
            let threads: Vec<_> =
                some.iter().map(|host| scope.spawn(move || start(host))).collect();
            threads.into_iter().map(|thread| joined(thread.join())).collect()
        });
        all.extend(found);
    }
    all
}

/// What a thread found that dealt with one host or pair.
pub(super) fn joined<T>(found: thread::Result<Result<T, LabError>>) -> Result<T, LabError> {
    found.unwrap_or_else(|_| Err(LabError::internal("a thread that dealt with a host panicked")))
}

fn one(
    (alias, entry): (&String, &HostEntry),
    binaries: &Binaries,
    (shares_lock, terms): (bool, HostTerms<'_>),
    note: &mut dyn FnMut(&str),
) -> Result<ConnectedHost, LabError> {
    let client = client(alias, entry, binaries, terms.needs, note)?;
    let lock = !shares_lock && !is_local(entry);
    let (secret, hops) = (terms.secret.to_owned(), Some(terms.hops));
    let hello = HostAsk::Hello { lock, secret, hops };
    let hello: Hello = client.ask(hello, SETTLED)?;
    if let Some(why) = &hello.not_locked {
        let hint = "let that experiment end, and run this again";
        return Err(cannot(format!("{alias}: {why}"), hint));
    }
    for journal in &hello.left.undone {
        note(&format!("{alias}: undid journal {journal} of a killed run"));
    }
    if let Some(unread) = &hello.left.unread {
        note(&format!("{alias}: {}", unread.text()));
    }
    if let Some([what, hint]) = &hello.left.refused {
        return Err(cannot(format!("{alias}: {what}"), hint));
    }
    devices::check_named(alias, entry, &hello.devices)?;
    Ok(ConnectedHost {
        card: CardCounters::default(),
        speeds: Vec::new(),
        client: client.into(),
        entry: entry.clone(),
        hello,
        clock: ClockBounds::default(),
        device: DeviceFacts::default(),
        addresses: Vec::new(),
        has_own_namespace: entry.netns.is_some(),
        is_local: is_local(entry),
        doctor: doctor(entry, terms.needs.on(alias, entry).is_some()),
        machine: usize::MAX,
    })
}

/// The command that says what can be measured on a host, as root or not.
fn doctor(entry: &HostEntry, as_root: bool) -> String {
    let sudo = if as_root { " --host-sudo" } else { "" };
    match &entry.ssh {
        Reach::Local => "rxpath doctor".into(),
        Reach::Ssh(destination) => format!("rxpath doctor --host {}{sudo}", destination.as_str()),
    }
}

fn local(alias: &str, entry: &HostEntry, binaries: &Binaries) -> Result<Client, LabError> {
    let mut command = Command::new(&binaries.own);
    command.arg("endpoint");
    if let Some(netns) = &entry.netns {
        command.args(["--netns", netns]);
    }
    let started = Client::start(alias, command, START_LIMIT)?;
    started.map_err(|no_start| {
        let host = RefusingHost { alias, ..RefusingHost::default() };
        let text = || format!("{alias}: the endpoint did not start: {}", no_start.last_words);
        known_refusal(&host, &no_start.words()).map_or_else(|| cannot(text(), ""), refused)
    })
}

fn over_ssh(
    (alias, entry): (&str, &HostEntry),
    destination: &Destination,
    binaries: &Binaries,
    root: Option<&str>,
    note: &mut dyn FnMut(&str),
) -> Result<Client, LabError> {
    let dir = entry.dir.as_ref();
    let start = |hash: &str| {
        let (as_root, netns, build) = (root.is_some(), entry.netns.as_deref(), &binaries.build);
        ssh::start(destination, &StartWords { hash, dir, as_root, netns, build })
    };
    // Most hosts are like this one. Another one says what it is, and then it gets what is for it.
    let binary = found(alias, std::env::consts::ARCH, binaries, note)?;
    let mut supply = HostSupply { alias, binaries, binary, bytes: 0, note };
    let mut attempt = 1;
    loop {
        let transport = start(&supply.binary.hash);
        let started = Client::start_or_send(alias, transport, START_LIMIT, &mut supply);
        match started.map_err(|error| without_ssh(alias, error))? {
            Ok(mut client) => {
                client.starts_again_by(&start(&supply.binary.hash));
                return Ok(client);
            }
            Err(no_start) if is_throttled(&no_start) && attempt < ATTEMPTS => {
                attempt += 1;
                // why: sshd drops connections beyond MaxStartups until others have logged in.
                thread::sleep(BACK_OFF * attempt);
            }
            Err(no_start) => {
                let place = ssh::not_stored(&no_start.printed);
                let host = RefusingHost {
                    alias,
                    ssh: destination.as_str(),
                    dir: place.or(dir.map(Directory::as_str)),
                    needs_root: root.unwrap_or_default(),
                    waited_s: no_start.is_late.then_some(START_LIMIT.as_secs()),
                };
                return Err(refused(refusal(&host, &no_start.words())));
            }
        }
    }
}

/// The binary for hosts of an architecture; or what to do where there is none.
fn found(
    alias: &str,
    arch: &str,
    binaries: &Binaries,
    note: &mut dyn FnMut(&str),
) -> Result<Binary, LabError> {
    binaries.of(arch, note).map_err(|why| {
        let hint = if ARCHITECTURES.contains(&arch) {
            format!("make static on a machine that is {arch}, and --binary {arch}=FILE here")
        } else {
            format!("rxpath runs on {}", ARCHITECTURES.join(" and "))
        };
        cannot(format!("{alias} is {arch}, and {why}"), hint)
    })
}

/// The binary for a host, and what is said when it is sent there: which, how large it is, and how much of it was sent.
struct HostSupply<'a> {
    alias: &'a str,
    binaries: &'a Binaries,
    binary: Binary,
    bytes: u64,
    note: &'a mut dyn FnMut(&str),
}

impl Supply for HostSupply<'_> {
    fn program(&mut self, arch: &str) -> Result<Option<Shipment>, LabError> {
        if arch != self.binary.arch {
            self.binary = found(self.alias, arch, self.binaries, self.note)?;
        }
        let Binary { path, hash, .. } = &self.binary;
        let shipment =
            Shipment::of(path, hash).map_err(|why| cannot(format!("{}: {why}", self.alias), ""))?;
        self.bytes = shipment.bytes;
        Ok(Some(shipment))
    }

    fn begins(&mut self, printed: &str) {
        if let Some(other) = ssh::passed_over(printed, &self.binaries.build) {
            (self.note)(&format!("{}: {other}; a copy of this one is used", self.alias));
        }
        let is_own = self.binary.path == self.binaries.own;
        let other = (!is_own).then_some(self.binary.path.as_path());
        (self.note)(&sending(self.alias, other, self.bytes));
    }

    fn sent(&mut self, bytes: u64) {
        (self.note)(&format!("{}: {} of {} sent", self.alias, mb(bytes), mb(self.bytes)));
    }
}

/// What is sent: this program, or which other file.
fn sending(alias: &str, other: Option<&Path>, bytes: u64) -> String {
    let size = mb(bytes);
    match other {
        Some(path) => format!("{alias}: sending rxpath ({}), {size}", path.display()),
        None if bytes > LARGE_BYTES => format!(
            "{alias}: sending rxpath, {size}: `make static` makes a file of at most 16 MB, \
             which is sent instead; `strip` makes this one smaller"
        ),
        None => format!("{alias}: sending rxpath, {size}"),
    }
}

fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn is_throttled(no_start: &NoStart) -> bool {
    no_start.is_of_ssh() && passes(&no_start.last_words)
}

/// Why ssh was not started; a machine without it is named so.
fn without_ssh(alias: &str, error: LabError) -> LabError {
    match error {
        LabError::Start { source, .. } if source.kind() == ErrorKind::NotFound => cannot(
            format!("{alias}: there is no ssh on this machine"),
            "install OpenSSH's client (openssh-client, openssh-clients)",
        ),
        other => other,
    }
}

fn refused(refusal: HostRefusal) -> LabError {
    cannot(refusal.text, refusal.hint)
}

#[cfg(test)]
mod tests {
    use rxpath_remote::{Inventory, ship};

    use super::*;

    #[test]
    fn a_large_file_is_sent_with_a_word_on_how_to_make_it_smaller() {
        let given = sending("sut", Some(Path::new("/opt/rxpath-x86_64")), 15_480_000);
        assert_eq!(given, "sut: sending rxpath (/opt/rxpath-x86_64), 15.5 MB");
        assert_eq!(sending("sut", None, 15_480_000), "sut: sending rxpath, 15.5 MB");
        let large = sending("sut", None, 152_000_000);
        assert!(large.starts_with("sut: sending rxpath, 152.0 MB: `make static`"), "{large}");
    }

    #[test]
    fn a_host_of_another_architecture_is_offered_the_file_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let [own, given] = ["rxpath", "given"].map(|name| dir.path().join(name));
        let another = ARCHITECTURES.into_iter().find(|arch| *arch != std::env::consts::ARCH);
        let another = another.unwrap();
        // The head of a program (elf(5)): its machine is at 18.
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(18, 0);
        program.extend([if another == "aarch64" { 183 } else { 62 }, 0]);
        program.extend(b"@@rxpath-build 0.1.0-0123456789ab@@");
        std::fs::write(&own, "this program").unwrap();
        std::fs::write(&given, &program).unwrap();
        let words = format!("{another}={}", given.display()).parse().unwrap();
        let binaries = Binaries::new(own.clone(), "0.1.0-0123456789ab", &[words]).unwrap();
        let mut said = Vec::new();
        let mut note = |text: &str| said.push(text.to_owned());
        let arch = std::env::consts::ARCH.to_owned();
        let binary = Binary { arch, path: own, hash: String::new() };
        let (alias, bytes) = ("sut", 0);
        let mut supply = HostSupply { alias, binaries: &binaries, binary, bytes, note: &mut note };
        let offer = supply.program(another).unwrap().unwrap().offer();
        assert_eq!(offer, format!("{} {}\n", program.len(), ship::hash(&program)));
        assert!(supply.program("riscv64").is_err());
        supply.begins("@@rxpath-passed-over - /usr/bin/rxpath\n");
        supply.sent(20_000_000);
        let path = given.display();
        assert_eq!(
            said,
            [
                "sut: /usr/bin/rxpath says no build id, this is 0.1.0-0123456789ab; \
                 a copy of this one is used"
                    .to_owned(),
                format!("sut: sending rxpath ({path}), 0.0 MB"),
                "sut: 20.0 MB of 0.0 MB sent".to_owned(),
            ]
        );
    }

    #[test]
    fn what_a_host_lacks_is_asked_by_its_name_for_ssh() {
        let inventory = Inventory::of_two("me@gen1.lab", "local").unwrap();
        let [sender, receiver] = ["sender", "receiver"].map(|alias| &inventory.hosts[alias]);
        assert_eq!(doctor(sender, false), "rxpath doctor --host me@gen1.lab");
        assert_eq!(doctor(sender, true), "rxpath doctor --host me@gen1.lab --host-sudo");
        assert_eq!(doctor(receiver, false), "rxpath doctor");
    }
}
