//! The hosts of an experiment, as the user wrote them into a file.

mod pairs;
mod set;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use self::pairs::ChosenPairs;
use crate::destination::{Destination, Directory};

/// Stands for this machine in `ssh`: a pipe without ssh.
const LOCAL: &str = "local";
/// What would be right where a key is wrong.
const KEYS: &str =
    "a host has ssh, role, dev, addr, netns, sudo and dir; see the reference of hosts";
/// The longest alias.
const ALIAS_LENGTH: usize = 16;

/// The hosts and the network between them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Hosts by alias. The alias is the only name of theirs in a run directory.
    pub hosts: BTreeMap<String, HostEntry>,
    /// The network.
    #[serde(default)]
    pub network: Network,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// How it is reached.
    pub ssh: Reach,
    /// What it does.
    pub role: Role,
    /// Its device towards the other side; by default the one by which the route there leaves.
    pub dev: Option<String>,
    /// Its addresses on that device; by default its only one.
    #[serde(default)]
    pub addr: Vec<IpAddr>,
    /// An existing network namespace in which the experiment runs there.
    pub netns: Option<String>,
    /// Whether its endpoint runs as root.
    #[serde(default)]
    pub sudo: Sudo,
    /// Where the binary goes; by default `~/.cache/rxpath`.
    pub dir: Option<Directory>,
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Reach {
    /// It is this machine.
    Local,
    /// By ssh.
    Ssh(Destination),
}

impl TryFrom<String> for Reach {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == LOCAL { Ok(Self::Local) } else { Destination::try_from(text).map(Self::Ssh) }
    }
}

/// What a host does in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends.
    Sender,
    /// Receives.
    Receiver,
}

/// Whether an endpoint runs as root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sudo {
    /// By `sudo -n` if the experiment needs it.
    #[default]
    IfNeeded,
    /// Never.
    Never,
    /// By `sudo -n`.
    Always,
}

/// The network between the hosts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Routers between a sender and a receiver, plus one, at most.
    pub hops: u8,
    /// Hosts that are connected to at once: sshd and jump hosts drop new connections beyond MaxStartups, ten by default.
    pub connect_at_once: u8,
    /// A command and its arguments, run on this machine, that prints the counters of the network between the hosts.
    pub counters: Vec<String>,
    /// Which sender sends to which receiver.
    pub pairs: ChosenPairs,
}

impl Default for Network {
    fn default() -> Self {
        Self { hops: 1, connect_at_once: 8, counters: Vec::new(), pairs: ChosenPairs::All }
    }
}

/// An inventory that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {wrong}")]
pub struct BadInventory {
    /// The file.
    pub file: String,
    /// What is wrong with it, and where.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Inventory {
    /// Reads an inventory, or the hosts of a scenario, which has a question; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, BadInventory> {
        if toml::from_str::<toml::Table>(text).is_ok_and(|all| all.contains_key("question")) {
            return Self::in_scenario(text, file);
        }
        read::<Self>(text, file)?.checked(file)
    }

    /// Reads the same tables in a scenario, which has others too.
    pub fn in_scenario(text: &str, file: &str) -> Result<Self, BadInventory> {
        let Tables { hosts, network } = read(text, file)?;
        Self { hosts, network }.checked(file)
    }

    /// What it is, if what it says holds together.
    fn checked(self, file: &str) -> Result<Self, BadInventory> {
        let (inventory, bad) = (self, bad(file));
        for (alias, host) in &inventory.hosts {
            if !is_alias(alias) {
                let wrong = format!("hosts.{}: not an alias", alias.escape_debug());
                return Err(bad(wrong, "write at most 16 of a-z, 0-9 and -"));
            }
            for (key, name) in [("dev", &host.dev), ("netns", &host.netns)] {
                if name.as_ref().is_some_and(|name| !is_name(name)) {
                    let wrong = format!("hosts.{alias}.{key}: not a name");
                    return Err(bad(wrong, "write the name as `ip` shows it"));
                }
            }
        }
        for role in [Role::Sender, Role::Receiver] {
            if inventory.of(role).next().is_none() {
                let wrong = format!("no host has role = \"{}\"", role.word());
                return Err(bad(wrong, "an experiment needs a sender and a receiver"));
            }
        }
        if inventory.network.hops == 0 {
            return Err(bad("network.hops: 0".into(), "1 is the same link"));
        }
        if inventory.network.connect_at_once == 0 {
            return Err(bad("network.connect_at_once: 0".into(), "1 is one host after the other"));
        }
        if inventory.network.counters.first().is_some_and(|program| program.trim().is_empty()) {
            let right = "write a command and its arguments: [\"switch-counters\", \"--json\"]";
            return Err(bad("network.counters: the name of the program is empty".into(), right));
        }
        if let Some((wrong, right)) = pairs::fault(&inventory) {
            return Err(bad(wrong, &right));
        }
        Ok(inventory)
    }

    /// An inventory of one sender and one receiver, as ssh takes their names. They are called `sender` and `receiver`.
    pub fn of_two(sender: &str, receiver: &str) -> Result<Self, String> {
        let entry = |text: &str, role| -> Result<HostEntry, String> {
            Ok(HostEntry {
                ssh: text.to_owned().try_into()?,
                role,
                dev: None,
                addr: Vec::new(),
                netns: None,
                sudo: Sudo::default(),
                dir: None,
            })
        };
        let hosts = [("sender", sender, Role::Sender), ("receiver", receiver, Role::Receiver)]
            .into_iter()
            .map(|(alias, text, role)| Ok((alias.to_owned(), entry(text, role)?)));
        Ok(Self { hosts: hosts.collect::<Result<_, String>>()?, network: Network::default() })
    }

    /// The hosts of a role, by alias.
    pub fn of(&self, role: Role) -> impl Iterator<Item = (&String, &HostEntry)> {
        self.hosts.iter().filter(move |(_, host)| host.role == role)
    }
}

impl Role {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// Those of an inventory among other tables.
#[derive(Deserialize)]
struct Tables {
    #[serde(default)]
    hosts: BTreeMap<String, HostEntry>,
    #[serde(default)]
    network: Network,
}

/// Reads a text; `file` is its name for messages.
fn read<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, BadInventory> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map(|span| &text[..span.start.min(text.len())]);
        let line = before.map(|before| before.matches('\n').count() + 1);
        let at = line.map_or_else(String::new, |line| format!("line {line}: "));
        let meant = meant(error.message());
        let right = if error.message().starts_with(pairs::KEY) { pairs::RIGHT } else { KEYS };
        bad(file)(format!("{at}{}", error.message()), meant.as_deref().unwrap_or(right))
    })
}

/// What is wrong in a file and what would be right, as an error.
fn bad(file: &str) -> impl Fn(String, &str) -> BadInventory {
    move |wrong, right| BadInventory { file: file.to_owned(), wrong, right: right.to_owned() }
}

/// `did you mean X?` for an unknown word, of the words that the message lists.
fn meant(message: &str) -> Option<String> {
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = words.next().filter(|_| message.starts_with("unknown "))?;
    let distance = |known: &&str| strsim::damerau_levenshtein(unknown, known);
    let near = words.min_by_key(distance)?;
    let allowed = (unknown.chars().count() / 3).max(1);
    (distance(&near) <= allowed).then(|| format!("did you mean `{near}`?"))
}

/// Whether a host may be called so.
pub fn is_alias(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= ALIAS_LENGTH && text.chars().all(allowed)
}

/// A device or namespace: one path component without anything that a shell or `ip` would take for something else.
fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
    !text.is_empty()
        && !text.starts_with(['-', '.'])
        && text.len() < 64
        && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"
        [hosts.gen1]
        ssh = "gen1.lab"
        role = "sender"
        [hosts.sut]
        ssh = "local"
        role = "receiver"
        dev = "enp3s0f0"
        addr = ["192.0.2.10", "2001:db8::1"]
        netns = "lab"
        sudo = "never"
        dir = "/opt/scratch"
        [network]
        hops = 2
        connect_at_once = 4
        counters = ["switch-counters", "--json"]
        pairs = "all"
    "#;

    #[test]
    fn every_key_is_read() {
        let inventory = Inventory::parse(GOOD, "lab.toml").unwrap();
        let sut = &inventory.hosts["sut"];
        assert_eq!((&sut.ssh, sut.role, sut.sudo), (&Reach::Local, Role::Receiver, Sudo::Never));
        assert_eq!((sut.addr.len(), inventory.network.hops), (2, 2));
        assert_eq!((inventory.network.connect_at_once, Network::default().connect_at_once), (4, 8));
        assert_eq!(inventory.network.counters, ["switch-counters", "--json"]);
        assert_eq!(inventory.of(Role::Sender).count(), 1);
    }

    #[test]
    fn a_wrong_file_is_answered_with_the_place_and_what_would_be_right() {
        let wrong = |from: &str, to: &str| {
            Inventory::parse(&GOOD.replace(from, to), "lab.toml").unwrap_err().to_string()
        };
        assert_eq!(wrong("[hosts.gen1]", "[hosts.Gen1]"), "lab.toml: hosts.Gen1: not an alias");
        assert_eq!(wrong("\"sender\"", "\"receiver\""), "lab.toml: no host has role = \"sender\"");
        assert_eq!(wrong("hops = 2", "hops = 0"), "lab.toml: network.hops: 0");
        let told = wrong("connect_at_once = 4", "connect_at_once = 0");
        assert_eq!(told, "lab.toml: network.connect_at_once: 0");
        let told = wrong("[\"switch-counters\", ", "[\"\", ");
        assert_eq!(told, "lab.toml: network.counters: the name of the program is empty");
        let told = wrong("[\"switch-counters\", \"--json\"]", "\"switch-counters\"");
        assert!(told.starts_with("lab.toml: line 16: ") && told.contains("sequence"), "{told}");
        assert_eq!(wrong("enp3s0f0", "a b"), "lab.toml: hosts.sut.dev: not a name");
        let told = wrong("role = \"sender\"", "rule = \"sender\"");
        assert!(told.starts_with("lab.toml: line 4: unknown field `rule`"), "{told}");
        let told = Inventory::parse("[hosts.a]\nrule = \"sender\"\n", "lab.toml").unwrap_err();
        assert!(told.wrong.starts_with("line 2: "), "a key at the begin of its line: {told}");
        let told = wrong("gen1.lab", "-oProxyCommand=x");
        assert!(told.contains("line 3") && told.contains("no ssh destination"), "{told}");
    }

    #[test]
    fn a_scenario_has_the_same_tables_among_others_and_the_same_errors() {
        let text = format!("question = \"?\"\n[load]\nrate = \"1k\"\n{GOOD}");
        let inventory = Inventory::in_scenario(&text, "s.toml").unwrap();
        assert_eq!(inventory, Inventory::parse(GOOD, "lab.toml").unwrap());
        assert_eq!(inventory, Inventory::parse(&text, "s.toml").unwrap());
        // Without a question it is no scenario, and its other tables are unknown.
        let told = Inventory::parse(&text.replace("question", "qestion"), "s.toml").unwrap_err();
        assert!(told.wrong.contains("unknown field `load`"), "{told}");
        let wrong = |from: &str, to: &str| {
            Inventory::in_scenario(&text.replace(from, to), "s.toml").unwrap_err()
        };
        let told = wrong("role = \"sender\"", "rule = \"sender\"");
        assert!(told.wrong.starts_with("line 7: unknown field `rule`"), "{told}");
        assert_eq!(told.right, "did you mean `role`?");
        let told = wrong("hops = 2", "hops = 0").to_string();
        assert_eq!(told, "s.toml: network.hops: 0");
        let told = Inventory::in_scenario("[network]\nhops = 2\n", "s.toml").unwrap_err();
        assert_eq!(told.to_string(), "s.toml: no host has role = \"sender\"");
    }

    #[test]
    fn several_receivers_are_read_and_a_misspelt_word_is_answered_with_the_right_one() {
        let more = "[hosts.sut2]\nssh = \"sut2.lab\"\nrole = \"receiver\"\n[hosts.sut]";
        let inventory = Inventory::parse(&GOOD.replace("[hosts.sut]", more), "lab.toml").unwrap();
        let receivers: Vec<&String> =
            inventory.of(Role::Receiver).map(|(alias, _)| alias).collect();
        assert_eq!(receivers, ["sut", "sut2"]);
        let right = |from: &str, to: &str| {
            Inventory::parse(&GOOD.replace(from, to), "lab.toml").unwrap_err().right
        };
        assert_eq!(right("\"receiver\"", "\"reciever\""), "did you mean `receiver`?");
        assert_eq!(right("role = \"sender\"", "rule = \"sender\""), "did you mean `role`?");
        assert_eq!(right("hops = 2", "hop = 2"), "did you mean `hops`?");
        assert_eq!(right("counters =", "counter ="), "did you mean `counters`?");
        assert_eq!(right("pairs =", "pair ="), "did you mean `pairs`?");
        let right = right("\"receiver\"", "\"switch\"");
        assert!(right.starts_with("a host has ssh, role"), "{right}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            let _ = Inventory::parse(&text, "f");
        }
    }
}
