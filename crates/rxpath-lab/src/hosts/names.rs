//! What names the hosts of an experiment and their users: a run directory knows hosts by their aliases only.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rxpath_core::IntoMap;
use rxpath_host::Root;
use rxpath_host::lab::capture::scrub::{HostNames, Scrubber};
use serde_json::Value;

use super::Hosts;

/// Accounts that every host has.
const OF_ALL: [&str; 2] = ["root", "nobody"];
/// Variables that name the user of an endpoint: a user of a directory service is in no file, and sudo changes the user.
const USER_VARIABLES: [&str; 3] = ["USER", "LOGNAME", "SUDO_USER"];
/// The key that only the record of a third-party program has.
const OF_OTHERS: &str = "stdout";

/// The names of this host and of its users, for its coordinator.
pub fn own() -> HostNames {
    let mut names = HostNames::of(&Root::host());
    let users = USER_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    names.users.extend(users.filter(|name| !OF_ALL.contains(&name.as_str())));
    names
}

impl Hosts {
    /// Replaces names and addresses of the hosts by their aliases, names of their users by `user`, and other addresses as a
    /// capture does.
    pub fn scrubber(&self) -> Scrubber {
        // On one machine both sides have the same: what is printed is mostly where a receiver listens.
        let all = || self.receivers.iter().chain(&self.senders);
        let users = all().flat_map(|host| &host.hello.names.users);
        let mut names: BTreeMap<String, String> =
            users.map(|name| (name.clone(), "user".to_owned())).into_map();
        let mut addresses: BTreeMap<IpAddr, String> = BTreeMap::new();
        for host in all() {
            let alias = host.client.alias();
            for address in &host.addresses {
                addresses.entry(*address).or_insert_with(|| alias.to_owned());
            }
        }
        for host in all() {
            let alias = host.client.alias();
            let of_hello = host.hello.devices.iter().flat_map(|device| &device.addresses);
            for address in of_hello.filter(|address| !address.is_loopback()) {
                addresses.entry(*address).or_insert_with(|| alias.to_owned());
            }
            for name in &host.hello.names.hosts {
                names.entry(name.clone()).or_insert_with(|| alias.to_owned());
            }
        }
        Scrubber::of_known(names, addresses)
    }
}

/// Replaces what names somebody in the record of a program. Names are looked for in words of third-party programs only: a host
/// may be called as a word of this program's own records.
pub fn hide(scrubber: &mut Scrubber, record: &mut Value) {
    hide_in(scrubber, record, false);
}

fn hide_in(scrubber: &mut Scrubber, record: &mut Value, of_others: bool) {
    match record {
        Value::String(text) => *text = hidden(scrubber, text, of_others),
        Value::Array(all) => all.iter_mut().for_each(|one| hide_in(scrubber, one, of_others)),
        Value::Object(all) => {
            let of_others = of_others || all.contains_key(OF_OTHERS);
            let entries = std::mem::take(all).into_iter();
            *all = entries
                .map(|(key, mut value)| {
                    hide_in(scrubber, &mut value, of_others);
                    (hidden(scrubber, &key, of_others), value)
                })
                .collect();
        }
        _ => {}
    }
}

fn hidden(scrubber: &mut Scrubber, text: &str, of_others: bool) -> String {
    if of_others { scrubber.text(text) } else { scrubber.name(text) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scrubber() -> Scrubber {
        let names = [("load", "gen1"), ("granite01", "sut"), ("annabel", "user")];
        let names = names.map(|(name, alias)| (name.to_owned(), alias.to_owned()));
        let addresses = [("192.0.2.10", "sut2"), ("192.0.2.1", "sut")];
        let addresses = addresses.map(|(it, alias)| (it.parse().unwrap(), alias.to_owned()));
        Scrubber::of_known(names.into_iter().into_map(), addresses.into_iter().into_map())
    }

    #[test]
    fn an_address_that_begins_with_another_keeps_its_own_name() {
        let mut printed = json!({ "to": ["192.0.2.10:4321", "192.0.2.1:4321", 7] });
        hide(&mut scrubber(), &mut printed);
        assert_eq!(printed, json!({ "to": ["sut2:4321", "sut:4321", 7] }));
    }

    #[test]
    fn what_a_third_party_program_printed_names_nobody() {
        let printed = r#"{"system_info":"Linux granite01 6.1.0","192.0.2.1":"3c:fd:fe:aa:bb:cc"}"#;
        let mut record = json!({ "result": {
            "stdout": printed, "stderr": "annabel@granite01.lan: 10.9.8.7", "of": { "granite01": 1 },
        } });
        hide(&mut scrubber(), &mut record);
        let told = |pointer: &str| record.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let expected = r#"{"system_info":"Linux sut 6.1.0","sut":"02:00:00:00:00:01"}"#;
        assert_eq!(told("/result/stdout"), expected);
        let unknown = told("/result/stderr");
        assert!(unknown.starts_with("user@sut.lan: 192.0.2.") && !unknown.contains("10.9"));
        assert_eq!(record.pointer("/result/of/sut"), Some(&json!(1)));
    }

    #[test]
    fn a_host_that_is_called_as_a_word_of_this_program_leaves_the_word() {
        let mut record = json!({ "load": { "192.0.2.1": "load" } });
        hide(&mut scrubber(), &mut record);
        assert_eq!(record, json!({ "load": { "sut": "load" } }));
    }
}
