//! Which hosts of an inventory are ready for an experiment, and what is wrong with the others: all of it at once, so that
//! nobody finds the faults of 32 hosts one at a time.

use rand::RngExt;
use rxpath_core::Warning;
use rxpath_remote::{Binaries, Inventory, Role};

use super::connect::{self, HostTerms};
use super::pairs::Pairs;
use super::privilege::RootNeeds;
use super::{ConnectedHost, Hosts, check_counts, machines, path};
use crate::endpoint::client::PROMPT;
use crate::endpoint::wire::Ask;
use crate::error::{LabError, with_hint};

/// What is wrong with a host.
#[derive(Debug)]
pub struct HostFault {
    /// The host that is not ready; empty if the inventory contradicts itself.
    pub host: String,
    error: LabError,
}

/// What was found of the hosts of an inventory.
pub struct Readiness {
    /// Those without a fault; nothing if no sender has a receiver among them.
    pub hosts: Option<Hosts>,
    /// What is wrong with the others, in the order in which it was found.
    pub faults: Vec<HostFault>,
}

impl HostFault {
    pub(super) fn of(host: &str, error: LabError) -> Self {
        Self { host: host.to_owned(), error }
    }

    /// A line for people: the host, what is wrong, what to do about it.
    pub fn text(&self) -> String {
        with_hint(self.named(), self.error.hint())
    }

    /// For a result that programs read.
    pub fn warning(&self) -> Warning {
        let warning = Warning::new("host-not-ready", self.named());
        match self.error.hint() {
            "" => warning,
            hint => warning.cure(hint),
        }
    }

    /// What is wrong, with the host's name.
    fn named(&self) -> String {
        let text = self.error.to_string();
        // `sut: no answer`, `sut has no route`.
        let rest = text.strip_prefix(&self.host);
        let is_named = self.host.is_empty() || rest.is_some_and(|it| it.starts_with([':', ' ']));
        if is_named { text } else { format!("{}: {text}", self.host) }
    }
}

/// Refuses to begin with any fault; names all.
///
/// # Errors
/// The fault itself if there is one; [`LabError::CannotRun`] with a line for each of several.
pub(super) fn refuse(mut faults: Vec<HostFault>) -> Result<(), LabError> {
    if faults.len() > 1 {
        let lines: Vec<String> = faults.iter().map(HostFault::text).collect();
        let (count, lines) = (lines.len(), lines.join("\n  "));
        return Err(LabError::CannotRun {
            what: format!("{count} faults of hosts, and nothing was started:\n  {lines}"),
            hint: "rxpath hosts check FILE looks at all hosts of an inventory, and starts nothing"
                .into(),
        });
    }
    faults.pop().map_or(Ok(()), |fault| Err(fault.error))
}

impl Hosts {
    /// Looks at all hosts of an inventory, as [`Hosts::connect`] does, and goes on after a fault.
    ///
    /// # Errors
    /// If the inventory has more hosts than an experiment.
    pub fn look(
        inventory: &Inventory,
        binaries: &Binaries,
        needs: &RootNeeds,
        note: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Readiness, LabError> {
        check_counts(inventory)?;
        let all: Vec<_> = inventory.of(Role::Sender).chain(inventory.of(Role::Receiver)).collect();
        let secret = format!("{:016x}", rand::rng().random::<u64>());
        let at_once = usize::from(inventory.network.connect_at_once);
        let terms = HostTerms { secret: &secret, hops: inventory.network.hops, needs };
        let found = connect::connect((&all, at_once), binaries, terms, note);
        let aliases = all.iter().map(|(alias, _)| alias.as_str());
        let mut faults = Vec::new();
        let connected = sound(aliases.zip(found), &mut faults);
        let hosts = ready(connected, inventory, &secret, &mut faults);
        Ok(Readiness { hosts, faults })
    }
}

/// Those without an error; the errors of the others become faults.
fn sound<'a, T>(
    found: impl Iterator<Item = (&'a str, Result<T, LabError>)>,
    faults: &mut Vec<HostFault>,
) -> Vec<T> {
    let mut sound = Vec::new();
    for (alias, one) in found {
        match one {
            Ok(one) => sound.push(one),
            Err(error) => faults.push(HostFault::of(alias, error)),
        }
    }
    sound
}

/// Connected hosts with their paths and devices.
fn ready(
    mut connected: Vec<ConnectedHost>,
    inventory: &Inventory,
    secret: &str,
    faults: &mut Vec<HostFault>,
) -> Option<Hosts> {
    let coordinator = match machines::tell_apart(&mut connected, secret) {
        Ok(coordinator) => coordinator,
        Err(error) => {
            faults.push(HostFault::of("", error));
            return None;
        }
    };
    let sends = |host: &ConnectedHost| {
        inventory.hosts.get(host.client.alias()).is_some_and(|it| it.role == Role::Sender)
    };
    let (senders, receivers) = connected.into_iter().partition(sends);
    let hosts = path::between(senders, receivers, inventory, faults)?;
    let senders = with_cards(hosts.senders, faults);
    let receivers = with_cards(hosts.receivers, faults);
    let pairs = Pairs::of(senders.len(), receivers.len(), |sender, receiver| {
        let [from, to] = [&senders[sender], &receivers[receiver]].map(|host| host.client.alias());
        inventory.are_paired(from, to)
    });
    (pairs.count() > 0).then_some(Hosts { coordinator, senders, receivers, pairs, ..hosts })
}

/// Asks each host what its device counts and how fast it runs.
fn with_cards(hosts: Vec<ConnectedHost>, faults: &mut Vec<HostFault>) -> Vec<ConnectedHost> {
    let mut known = Vec::new();
    for mut host in hosts {
        match ask_card(&mut host) {
            Ok(()) => known.push(host),
            Err(error) => faults.push(HostFault::of(host.client.alias(), error)),
        }
    }
    known
}

fn ask_card(host: &mut ConnectedHost) -> Result<(), LabError> {
    let (device, driver) = (host.device.name.clone(), host.device.driver.clone());
    host.card = host.client.ask(Ask::Card { device, driver }, PROMPT)?;
    let device = host.device.name.clone();
    host.speeds = host.client.ask(Ask::LinkSpeeds { device }, PROMPT)?;
    host.hello.shape.card_node = card_node(host);
    Ok(())
}

/// The NUMA node of a host's device, or of the first one below it that has one.
fn card_node(host: &ConnectedHost) -> Option<u32> {
    let of = |name: &str| {
        let mut all = host.hello.devices.iter();
        all.find(|device| device.name == name).and_then(|device| device.numa_node)
    };
    of(&host.device.name).or_else(|| host.speeds.iter().find_map(|link| of(&link.device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cannot(what: &str, hint: &str) -> LabError {
        LabError::CannotRun { what: what.into(), hint: hint.into() }
    }

    #[test]
    fn a_fault_is_one_line_that_begins_with_its_host() {
        let fault = HostFault::of("gen1", cannot("gen1: ssh wants a password", "set up a key"));
        assert_eq!(fault.text(), "gen1: ssh wants a password; set up a key");
        assert_eq!(fault.warning().text, "gen1: ssh wants a password");
        assert_eq!(fault.warning().cure.as_deref(), Some("set up a key"));
        let fault = HostFault::of("sut", LabError::Internal { what: "a thread".into() });
        assert_eq!(fault.text(), "sut: internal: a thread");
        let of = |host: &str, what: &str| HostFault::of(host, cannot(what, "")).text();
        assert_eq!(of("a", "no answer to ssh"), "a: no answer to ssh", "a letter is no name");
        assert_eq!(of("sut", "sut2 is one machine with it"), "sut: sut2 is one machine with it");
        assert_eq!(of("sut", "sut has no route to 10.0.0.1"), "sut has no route to 10.0.0.1");
        assert_eq!(of("", "the inventory is odd"), "the inventory is odd");
    }

    #[test]
    fn a_run_is_refused_with_every_fault() {
        assert!(refuse(Vec::new()).is_ok());
        let one = || HostFault::of("gen1", cannot("gen1: no", "yes"));
        let only = refuse(vec![one()]).unwrap_err();
        assert!(matches!(&only, LabError::CannotRun { hint, .. } if hint == "yes"), "{only}");
        let lost =
            LabError::OnHost { host: "sut".into(), text: "busy".into(), hint: "wait".into() };
        let both = refuse(vec![one(), HostFault::of("sut", lost)]).unwrap_err().to_string();
        let all = "2 faults of hosts, and nothing was started:\n  gen1: no; yes\n  sut: busy; wait";
        assert_eq!(both, all);
    }

    #[test]
    fn those_without_an_error_stay_in_their_order() {
        let mut faults = Vec::new();
        let found = [("a", Ok(1)), ("b", Err(cannot("b: no", ""))), ("c", Ok(3))];
        assert_eq!(sound(found.into_iter(), &mut faults), [1, 3]);
        assert_eq!(faults.iter().map(HostFault::text).collect::<Vec<_>>(), ["b: no"]);
    }
}
