//! Between which hosts an experiment runs: `--hosts`, or `--sender` and `--receiver`.

use std::path::{Path, PathBuf};

use rxpath_lab::hosts::Hosts;
use rxpath_lab::hosts::privilege::RootNeeds;
use rxpath_lab::scenario::spec::Resolved;
use rxpath_remote::Inventory;

use crate::cmd::binary_args::BinaryArgs;
use crate::cmd::run::failure;
use crate::exit::{Exit, Failure};

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
    /// Change settings of the hosts where variants want it (`[tune]`), each undone after its trial
    #[arg(long)]
    change_hosts: bool,
    #[command(flatten)]
    binary: BinaryArgs,
}

impl HostsArgs {
    /// Connects to them, as root where `needs` says so; nothing where none were given.
    pub fn connect(&self, needs: &RootNeeds) -> Result<Option<Hosts>, Failure> {
        let inventory = match (&self.hosts, &self.sender, &self.receiver) {
            (Some(file), ..) => read(file)?,
            (None, Some(sender), Some(receiver)) => {
                Inventory::of_two(sender, receiver).map_err(usage)?
            }
            _ if self.change_hosts || self.binary.are_given() => {
                let option = if self.change_hosts { "--change-hosts" } else { "--binary" };
                return Err(usage(format!("{option} is for --hosts, or --sender and --receiver")));
            }
            _ => return Ok(None),
        };
        connect(&inventory, &self.binary, needs).map(Some)
    }

    /// Whether any host was named.
    pub fn is_given(&self) -> bool {
        self.hosts.is_some() || self.sender.is_some() || self.receiver.is_some()
    }

    /// Whether settings of the hosts may be changed.
    pub fn may_change(&self) -> bool {
        self.change_hosts
    }

    /// Marks the variants whose settings a host does not take.
    ///
    /// # Errors
    /// If settings of hosts would be changed and `--change-hosts` was not given.
    pub fn check_settings(&self, hosts: &Hosts, resolved: &mut Resolved) -> Result<(), Failure> {
        let changes = hosts.changes(resolved);
        if changes.is_empty() {
            return Ok(());
        }
        if !self.change_hosts {
            let text = format!("this run changes settings of hosts: {}", changes.join("; "));
            return Err(
                usage(text).hint("--change-hosts allows it; each is undone after its trial")
            );
        }
        hosts.check_settings(resolved).map_err(failure)
    }

    /// A command line for the record: without names of hosts and paths of files.
    pub fn hidden(&self, words: impl Iterator<Item = String>) -> Vec<String> {
        let file = |path: &Path| {
            let name = path.file_name().unwrap_or(path.as_os_str());
            (path.display().to_string(), name.to_string_lossy().into_owned())
        };
        let known: Vec<(String, String)> = [
            self.hosts.as_deref().map(file),
            self.sender.clone().map(|name| (name, "sender".into())),
            self.receiver.clone().map(|name| (name, "receiver".into())),
        ]
        .into_iter()
        .flatten()
        .chain(self.binary.files().map(file))
        .collect();
        let hide = |word: String| match known.iter().find(|(name, _)| word.contains(name.as_str()))
        {
            Some((name, shown)) => word.replace(name.as_str(), shown),
            None => word,
        };
        words.map(hide).collect()
    }
}

/// The inventory in a file.
pub fn read(file: &Path) -> Result<Inventory, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| usage(format!("cannot read {name}: {error}")))?;
    Inventory::parse(&text, &name).map_err(|bad| usage(bad.to_string()).hint(bad.right))
}

/// Connects to the hosts of an inventory, as root where `needs` says so.
pub fn connect(
    inventory: &Inventory,
    binary: &BinaryArgs,
    needs: &RootNeeds,
) -> Result<Hosts, Failure> {
    let binaries = binary.binaries()?;
    let mut note = |text: &str| crate::note!("rxpath: {text}");
    Hosts::connect(inventory, &binaries, needs, &mut note).map_err(failure)
}

fn usage(text: String) -> Failure {
    Failure::new(Exit::Usage, anyhow::anyhow!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_no_host_and_no_directory() {
        let args = HostsArgs {
            sender: Some("me@gen1.lab".into()),
            receiver: Some("sut".into()),
            ..HostsArgs::default()
        };
        let words = ["rxpath", "run", "x", "--sender=me@gen1.lab", "--receiver", "sut"];
        let hidden = args.hidden(words.into_iter().map(str::to_owned));
        assert_eq!(hidden, ["rxpath", "run", "x", "--sender=sender", "--receiver", "receiver"]);
        let args = HostsArgs { hosts: Some("/home/me/lab.toml".into()), ..HostsArgs::default() };
        let words = ["rxpath", "run", "x", "--hosts", "/home/me/lab.toml"];
        let hidden = args.hidden(words.into_iter().map(str::to_owned));
        assert_eq!(hidden, ["rxpath", "run", "x", "--hosts", "lab.toml"]);
    }
}
