//! Which hosts are namespaces or logins of one machine: what one of them runs is no foreign load to the others.

use std::collections::BTreeMap;

use rxpath_core::Warning;

use super::{ConnectedHost, Hosts};
use crate::endpoint::client::PROMPT;
use crate::endpoint::token::is_seen;
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;

/// Numbers the machines of the hosts, and gives that of this process, if a host is on it.
///
/// # Errors
/// Of a host that no longer answers.
pub fn tell_apart(hosts: &mut [ConnectedHost], secret: &str) -> Result<Option<usize>, LabError> {
    let mut count = 0;
    for at in 0..hosts.len() {
        let (before, rest) = hosts.split_at_mut(at);
        let host = &mut rest[0];
        let mut known = None;
        // Others cannot be its machine; the secret decides of those that may.
        for other in before.iter().filter(|other| other.hello.boot_id == host.hello.boot_id) {
            let (pid, secret) = (other.hello.pid, secret.to_owned());
            let ask = HostAsk::IsOnMachineOf { pid, secret };
            if known.is_none() && host.client.ask::<bool>(ask, PROMPT)? {
                known = Some(other.machine);
            }
        }
        host.machine = known.unwrap_or(count);
        count += usize::from(known.is_none());
    }
    Ok(hosts.iter().find(|host| is_seen(host.hello.pid, secret)).map(|host| host.machine))
}

impl Hosts {
    /// A warning where hosts have one boot id and do not see each other: clones of a virtual machine, each with its own clock.
    pub(super) fn one_boot(&self) -> Option<Warning> {
        let all = self.all();
        one_boot(all.map(|host| (host.client.alias(), host.hello.boot_id.as_str(), host.machine)))
    }
}

/// The same for hosts with their boot ids and the numbers of their machines.
fn one_boot<'a>(hosts: impl Iterator<Item = (&'a str, &'a str, usize)>) -> Option<Warning> {
    // Of each boot the first host of each machine.
    let mut boots: BTreeMap<&str, BTreeMap<usize, &str>> = BTreeMap::new();
    for (alias, boot_id, machine) in hosts {
        boots.entry(boot_id).or_default().entry(machine).or_insert(alias);
    }
    let words = |machines: &BTreeMap<usize, &str>| {
        let mut names: Vec<&str> = machines.values().copied().collect();
        let last = names.pop().filter(|_| !names.is_empty())?;
        let clocks = if names.len() == 1 { "two".to_owned() } else { machines.len().to_string() };
        let first = names.join(", ");
        Some(format!("{first} and {last} have one boot id: taken for {clocks} clocks"))
    };
    let found: Vec<String> = boots.values().filter_map(words).collect();
    (!found.is_empty()).then(|| {
        Warning::new("one-boot-id", found.join("; "))
            .because("clones of a virtual machine have one; no process of one host is visible on the other")
            .cure("nothing for clones and containers; for two logins of one machine: the same `sudo` for both")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_boot_that_do_not_see_each_other_are_named_once_for_each_machine() {
        let of = |hosts: &[(&'static str, &'static str, usize)]| {
            one_boot(hosts.iter().copied()).map(|warning| warning.text)
        };
        let two = [("gen1", "a", 0), ("gen2", "a", 1), ("sut", "b", 2)];
        let text = "gen1 and gen2 have one boot id: taken for two clocks";
        assert_eq!(of(&two).as_deref(), Some(text));
        // Two namespaces of one machine.
        assert_eq!(of(&[("gen1", "a", 0), ("sut", "a", 0)]), None);
        let three = [("gen1", "a", 0), ("gen2", "a", 0), ("sut", "a", 1), ("sut2", "a", 2)];
        let text = "gen1, sut and sut2 have one boot id: taken for 3 clocks";
        assert_eq!(of(&three).as_deref(), Some(text));
    }
}
