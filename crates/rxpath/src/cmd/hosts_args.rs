//! Between which hosts an experiment runs: `--hosts`, or `--sender` and `--receiver`, or those of its scenario.

use rxpath_lab::hosts::Hosts;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::hosts::ready::Readiness;
use rxpath_lab::plan::on_hosts;
use rxpath_lab::scenario::ScenarioFile;
use rxpath_lab::scenario::spec::Resolved;
use rxpath_remote::Inventory;
use rxpath_remote::inventory::BadInventory;

use crate::cmd::binary_args::{BinaryArgs, binaries_of};
use crate::cmd::lab_error::failure;
use crate::cmd::prelude::*;

/// The hosts of an experiment.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HostsArgs {
    /// Run between the real hosts of this inventory, senders and receivers, over your own ssh
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sender", "receiver"])]
    hosts: Option<PathBuf>,
    /// Run between two real hosts: the sender, as ssh takes its name
    #[arg(long, value_name = "HOST", requires = "receiver")]
    sender: Option<String>,
    /// The receiver, as ssh takes its name
    #[arg(long, value_name = "HOST", requires = "sender")]
    receiver: Option<String>,
    /// Change settings of the hosts where variants want it (`[tune]`), each undone after its trials
    #[arg(long)]
    pub change_hosts: bool,
    #[command(flatten)]
    binary: BinaryArgs,
    /// Settings of the network between them, from `--set`.
    #[arg(skip)]
    network: Vec<String>,
    /// Those of the scenario, with the text in which they are, where the command names none.
    #[arg(skip)]
    of_scenario: Option<(Inventory, String)>,
}

/// What a setting of the network between hosts begins with.
const NETWORK: &str = "network.";

impl HostsArgs {
    /// Takes the settings of the network between the hosts, and leaves the others.
    pub fn take_network(&mut self, sets: &mut Vec<String>) {
        self.network.extend(sets.extract_if(.., |set| set.trim().starts_with(NETWORK)));
    }

    /// Takes the hosts of the scenario, unless the command names others.
    pub fn take_hosts_of(&mut self, file: &ScenarioFile) {
        if !self.is_given() {
            self.of_scenario.clone_from(&file.hosts);
        }
    }

    /// Connects to them, as root where `needs` says so; nothing where none were given.
    pub fn connect(&self, needs: &RootNeeds) -> Result<Option<Hosts>, Failure> {
        let inventory = match (&self.hosts, &self.sender, &self.receiver) {
            (Some(file), ..) => read(file, &self.network)?,
            (None, Some(sender), Some(receiver)) => {
                let two = Inventory::of_two(sender, receiver).map_err(Failure::usage)?;
                two.with("", &self.network).map_err(unusable)?
            }
            _ => match &self.of_scenario {
                Some((own, text)) => own.clone().with(text, &self.network).map_err(unusable)?,
                None => return self.only_for_hosts().map_or(Ok(None), Err),
            },
        };
        let binaries = binaries_of(&self.binary.given)?;
        Hosts::connect(&inventory, &binaries, needs, &mut note).map(Some).map_err(failure)
    }

    /// What is refused where no host was named.
    fn only_for_hosts(&self) -> Option<Failure> {
        let set = || {
            let set = self.network.first()?;
            Some(format!("--set {}", set.split('=').next().unwrap_or(set).trim()))
        };
        let option = match (self.change_hosts, self.binary.given.is_empty()) {
            (true, _) => "--change-hosts".to_owned(),
            (false, false) => "--binary".to_owned(),
            (false, true) => set()?,
        };
        Some(Failure::usage(format!(
            "{option} is for --hosts, --sender and --receiver, or a scenario with [hosts]"
        )))
    }

    /// Whether any host was named.
    pub fn is_given(&self) -> bool {
        let in_command = self.hosts.is_some() || self.sender.is_some() || self.receiver.is_some();
        in_command || self.of_scenario.is_some()
    }

    /// Leaves out the variants whose settings a host does not take.
    ///
    /// # Errors
    /// If settings of hosts would be changed and `--change-hosts` was not given.
    pub fn check_settings(&self, hosts: &Hosts, resolved: &mut Resolved) -> Result<(), Failure> {
        if !hosts.are_changed(resolved) {
            return Ok(());
        }
        if !self.change_hosts {
            let planned = hosts.planned(resolved, &RootNeeds::default()).map_err(failure)?;
            let changes = on_hosts::changes(&planned).join("; ");
            let text = format!("this run changes settings of hosts: {changes}");
            return Err(Failure::usage(text)
                .hint("--change-hosts allows it; each is undone after its trials"));
        }
        hosts.check_settings(resolved).map_err(failure)
    }
}

/// A command line for the record: without names of hosts and paths of files.
pub fn hidden(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut before = String::new();
    let hide = |word: String| {
        let shown = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                instead(option, value).map(|value| format!("{option}={value}"))
            }
            _ => instead(&before, &word),
        };
        before.clone_from(&word);
        shown.unwrap_or(word)
    };
    words.map(hide).collect()
}

/// What stands for the value of an option in a record; `None` for options that name no host and no file of one.
fn instead(option: &str, value: &str) -> Option<String> {
    let name = |file: &str| {
        let path = Path::new(file);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    match option {
        "--sender" => Some("sender".into()),
        "--receiver" => Some("receiver".into()),
        "--hosts" => Some(name(value)),
        // It may name a switch and how to log in there.
        "--set" => {
            let (key, _) = value.split_once('=')?;
            (key.trim() == "network.counters").then(|| format!("{key}=COMMAND"))
        }
        "--binary" => {
            let (arch, file) = value.split_once('=').unwrap_or(("", value));
            Some(format!("{arch}={}", name(file)))
        }
        _ => None,
    }
}

/// The inventory in a file, with these settings of its network.
pub fn read(file: &Path, network: &[String]) -> Result<Inventory, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).or_usage(|| format!("cannot read {name}"))?;
    let inventory = Inventory::parse(&text, &name);
    inventory.and_then(|inventory| inventory.with(&text, network)).map_err(unusable)
}

fn unusable(bad: BadInventory) -> Failure {
    Failure::usage(bad.to_string()).hint(bad.right)
}

/// Looks at all hosts of an inventory, without root where it is not needed to connect.
pub fn look(inventory: &Inventory, binary: &BinaryArgs) -> Result<Readiness, Failure> {
    let binaries = binaries_of(&binary.given)?;
    Hosts::look(inventory, &binaries, &RootNeeds::default(), &mut note).map_err(failure)
}

/// Shows what connecting does.
pub fn note(text: &str) {
    crate::note!("rxpath: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_no_host_and_no_directory() {
        let hidden = |line: &str| hidden(line.split(' ').map(str::to_owned)).join(" ");
        let of_two = hidden("rxpath run x --sender=me@gen1.lab --receiver sut");
        assert_eq!(of_two, "rxpath run x --sender=sender --receiver receiver");
        // A name that begins another one, and names that are words of the command line.
        let other = hidden("rxpath run x --sender gen --receiver gen.secret.example");
        assert_eq!(other, "rxpath run x --sender sender --receiver receiver");
        let other = hidden("rxpath run run.toml --sender run --receiver x --set load.rate=1k");
        let shown = "rxpath run run.toml --sender sender --receiver receiver --set load.rate=1k";
        assert_eq!(other, shown);
        let files = hidden("rxpath run x --hosts /home/me/lab.toml --binary aarch64=/home/me/f");
        assert_eq!(files, "rxpath run x --hosts lab.toml --binary aarch64=f");
        let files = hidden("rxpath run x --hosts=/home/me/lab.toml --binary=aarch64=/home/me/f");
        assert_eq!(files, "rxpath run x --hosts=lab.toml --binary=aarch64=f");
        let set =
            hidden("rxpath run x --set network.counters=[\"ssh\",\"me@sw1\"] --set=network.hops=2");
        assert_eq!(set, "rxpath run x --set network.counters=COMMAND --set=network.hops=2");
    }
}
