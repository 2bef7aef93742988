//! Which sender sends to which receiver, as the user wrote it.

use serde::Deserialize;

use super::{Inventory, Role};

/// Stands for every pair.
const ALL: &str = "all";
/// What would be right in the place of something else.
pub(super) const RIGHT: &str = "write \"all\", or a list: [[\"SENDER\", \"RECEIVER\"], ...]";
/// The key, with which each message begins.
pub(super) const KEY: &str = "network.pairs";

/// The pairs of a sender and a receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub enum ChosenPairs {
    /// Each sender with each receiver.
    #[default]
    All,
    /// These: the alias of a sender and that of a receiver.
    These(Vec<[String; 2]>),
}

/// What a file may have there.
#[derive(Deserialize)]
#[serde(untagged, expecting = "network.pairs: neither \"all\" nor a list of pairs of names")]
enum Written {
    Word(String),
    List(Vec<Vec<String>>),
}

impl TryFrom<Written> for ChosenPairs {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let list = match written {
            Written::Word(word) if word == ALL => return Ok(Self::All),
            Written::Word(word) => return Err(format!("{KEY}: {word:?} is not \"all\"")),
            Written::List(list) => list,
        };
        if list.is_empty() {
            return Err(format!("{KEY}: the list is empty"));
        }
        let pair = |names: Vec<String>| {
            <[String; 2]>::try_from(names)
                .map_err(|names| format!("{KEY}: {names:?} is no pair of two names"))
        };
        list.into_iter().map(pair).collect::<Result<_, _>>().map(Self::These)
    }
}

/// What is wrong with the chosen pairs of an inventory, and what would be right.
pub(super) fn fault(inventory: &Inventory) -> Option<(String, String)> {
    let ChosenPairs::These(pairs) = &inventory.network.pairs else { return None };
    let told = |(wrong, right): (String, String)| (format!("{KEY}: {wrong}"), right);
    let of_pair = |(at, pair): (usize, &[String; 2])| fault_of_pair(inventory, pair, &pairs[..at]);
    pairs.iter().enumerate().find_map(of_pair).or_else(|| unpaired(inventory, pairs)).map(told)
}

/// What is wrong with a pair behind others.
fn fault_of_pair(
    inventory: &Inventory,
    pair: &[String; 2],
    before: &[[String; 2]],
) -> Option<(String, String)> {
    for name in pair {
        if !inventory.hosts.contains_key(name) {
            let known: Vec<&str> = inventory.hosts.keys().map(String::as_str).collect();
            let right = format!("its hosts are {}", known.join(", "));
            return Some((format!("the inventory has no host {name:?}"), right));
        }
    }
    for (name, role) in pair.iter().zip([Role::Sender, Role::Receiver]) {
        let own = inventory.hosts.get(name)?.role;
        if own != role {
            let wrong = format!("{pair:?}: {name} is a {}", own.word());
            return Some((wrong, "a pair is [\"SENDER\", \"RECEIVER\"]".to_owned()));
        }
    }
    let is_twice = before.contains(pair);
    is_twice.then(|| (format!("{pair:?} is there twice"), "write each pair once".to_owned()))
}

/// A host that is in no pair.
fn unpaired(inventory: &Inventory, pairs: &[[String; 2]]) -> Option<(String, String)> {
    let mut hosts = inventory.hosts.iter();
    let (alias, host) = hosts.find(|(alias, _)| !pairs.as_flattened().contains(alias))?;
    let pair = match host.role {
        Role::Sender => format!("[\"{alias}\", \"RECEIVER\"]"),
        Role::Receiver => format!("[\"SENDER\", \"{alias}\"]"),
    };
    let wrong = format!("the {} {alias} is in no pair", host.role.word());
    Some((wrong, format!("add {pair}, or take {alias} out of the inventory")))
}

impl Inventory {
    /// Whether a sender sends to a receiver.
    pub fn are_paired(&self, sender: &str, receiver: &str) -> bool {
        match &self.network.pairs {
            ChosenPairs::All => true,
            ChosenPairs::These(pairs) => {
                pairs.iter().any(|[from, to]| from == sender && to == receiver)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::BadInventory;
    use super::*;

    /// An inventory of two senders and two receivers with these pairs.
    fn read(pairs: &str) -> Result<Inventory, BadInventory> {
        let host = |(alias, role): (&str, &str)| {
            format!("[hosts.{alias}]\nssh = \"local\"\nrole = \"{role}\"\n")
        };
        let hosts = [("gen1", "sender"), ("gen2", "sender"), ("a", "receiver"), ("b", "receiver")];
        let hosts: String = hosts.map(host).concat();
        Inventory::parse(&format!("{hosts}[network]\n{pairs}\n"), "lab.toml")
    }

    fn paired(inventory: &Inventory) -> Vec<[&str; 2]> {
        let all = [["gen1", "a"], ["gen1", "b"], ["gen2", "a"], ["gen2", "b"]];
        all.into_iter().filter(|[from, to]| inventory.are_paired(from, to)).collect()
    }

    #[test]
    fn all_are_paired_unless_the_file_chooses() {
        for all in ["", "pairs = \"all\""] {
            assert_eq!(paired(&read(all).unwrap()).len(), 4, "{all}");
        }
        let chosen = read("pairs = [[\"gen2\", \"b\"], [\"gen1\", \"a\"]]").unwrap();
        assert_eq!(paired(&chosen), [["gen1", "a"], ["gen2", "b"]]);
    }

    #[test]
    fn what_is_no_list_of_pairs_is_answered_with_its_line_and_key() {
        for (pairs, wrong) in [
            ("\"each\"", "network.pairs: \"each\" is not \"all\""),
            ("3", "network.pairs: neither \"all\" nor a list of pairs of names"),
            ("[\"gen1\", \"a\"]", "network.pairs: neither \"all\" nor a list of pairs of names"),
            ("[[\"gen1\", 3]]", "network.pairs: neither \"all\" nor a list of pairs of names"),
            ("[]", "network.pairs: the list is empty"),
            ("[[\"gen1\"]]", "network.pairs: [\"gen1\"] is no pair of two names"),
        ] {
            let bad = read(&format!("pairs = {pairs}")).unwrap_err();
            assert_eq!(bad.to_string(), format!("lab.toml: line 14: {wrong}"));
            assert_eq!(bad.right, RIGHT, "{pairs}");
        }
    }

    #[test]
    fn pairs_that_cannot_be_are_answered_with_what_would_be_right() {
        let told = |pairs: &str| {
            let bad = read(&format!("pairs = [{pairs}]")).unwrap_err();
            (bad.to_string(), bad.right)
        };
        let of = |wrong: &str, right: &str| {
            (format!("lab.toml: network.pairs: {wrong}"), right.to_owned())
        };
        let (one, other) = ("[\"gen1\", \"a\"]", "[\"gen2\", \"b\"]");
        let known = "its hosts are a, b, gen1, gen2";
        let unknown = format!("{one}, [\"gen2\", \"c\"]");
        assert_eq!(told(&unknown), of("the inventory has no host \"c\"", known));
        let order = "a pair is [\"SENDER\", \"RECEIVER\"]";
        let swapped = "[\"a\", \"gen1\"]";
        assert_eq!(told(swapped), of(&format!("{swapped}: a is a receiver"), order));
        let senders = "[\"gen1\", \"gen2\"]";
        assert_eq!(told(senders), of(&format!("{senders}: gen2 is a sender"), order));
        let twice = format!("{one}, {other}, {one}");
        assert_eq!(told(&twice), of(&format!("{one} is there twice"), "write each pair once"));
        let right = "add [\"SENDER\", \"b\"], or take b out of the inventory";
        let without = format!("{one}, [\"gen2\", \"a\"]");
        assert_eq!(told(&without), of("the receiver b is in no pair", right));
        let right = "add [\"gen2\", \"RECEIVER\"], or take gen2 out of the inventory";
        let without = format!("{one}, [\"gen1\", \"b\"]");
        assert_eq!(told(&without), of("the sender gen2 is in no pair", right));
    }

    proptest! {
        #[test]
        fn an_inventory_that_is_read_pairs_every_host_and_each_pair_once(
            names in proptest::collection::vec(("gen[12]|a|c", "[ab]|gen1"), 0..6),
        ) {
            let list: Vec<String> =
                names.iter().map(|(from, to)| format!("[\"{from}\", \"{to}\"]")).collect();
            match read(&format!("pairs = [{}]", list.join(", "))) {
                Ok(inventory) => {
                    let paired = paired(&inventory);
                    prop_assert_eq!(paired.len(), names.len());
                    for alias in inventory.hosts.keys() {
                        prop_assert!(paired.iter().flatten().any(|name| name == alias));
                    }
                }
                Err(bad) => {
                    prop_assert!(bad.to_string().contains("network.pairs: "), "{bad}");
                    prop_assert!(!bad.right.is_empty());
                }
            }
        }
    }
}
