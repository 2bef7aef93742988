//! `--set network.KEY=VALUE`: settings of the network from the command line, read and checked as in the file.

use toml::{Table, Value};

use super::pairs::RIGHT;
use super::{BadInventory, Inventory, bad, meant};

/// The section of which keys can be set.
const NETWORK: &str = "network";

impl Inventory {
    /// The same with settings of its network, each `network.KEY=VALUE`, as if the text had them from which it was read.
    ///
    /// # Errors
    /// With the setting in the place of the file.
    pub fn with(self, text: &str, sets: &[String]) -> Result<Self, BadInventory> {
        // It was read before.
        let mut written: Table = toml::from_str(text).unwrap_or_default();
        let mut network = match written.remove(NETWORK) {
            Some(Value::Table(network)) => network,
            _ => Table::new(),
        };
        let mut inventory = self;
        for set in sets {
            inventory = inventory.with_one(&mut network, set)?;
        }
        Ok(inventory)
    }

    fn with_one(mut self, network: &mut Table, set: &str) -> Result<Self, BadInventory> {
        let (path, value) = set.split_once('=').unwrap_or((set, ""));
        let path = path.trim();
        let place = format!("--set {path}");
        if !set.contains('=') {
            let right = "write network.KEY=VALUE such as network.hops=2";
            return Err(bad(&place)("there is no `=`".into(), right));
        }
        let section = path.split_once('.').filter(|(section, _)| *section == NETWORK);
        let key = section.map_or(path, |(_, key)| key);
        network.insert(key.to_owned(), value_of(value));
        let read: Result<_, toml::de::Error> = network.clone().try_into();
        self.network = read.map_err(|error| {
            let right = meant(error.message());
            let other =
                if key == "pairs" { RIGHT } else { "see [network] in the reference of hosts" };
            let right = right.as_deref().unwrap_or(other);
            bad(&place)(without(path, error.message()), right)
        })?;
        let checked = self.checked(&place);
        checked.map_err(|told| BadInventory { wrong: without(path, &told.wrong), ..told })
    }
}

/// A message without the key with which it begins.
fn without(path: &str, message: &str) -> String {
    let rest = message.strip_prefix(path).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(message).to_owned()
}

/// A value as TOML has it, or a text without its quotes.
fn value_of(text: &str) -> Value {
    let text = text.trim();
    let read = toml::from_str::<Table>(&format!("x = {text}")).ok();
    let one = read.filter(|table| table.len() == 1).and_then(|mut table| table.remove("x"));
    one.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "[hosts.gen1]\nssh = \"local\"\nrole = \"sender\"\n\
                        [hosts.sut]\nssh = \"local\"\nrole = \"receiver\"\n\
                        [network]\nhops = 2\nconnect_at_once = 4\n";

    fn with(sets: &[&str]) -> Result<Inventory, BadInventory> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Inventory::parse(TEXT, "lab.toml").unwrap().with(TEXT, &sets)
    }

    #[test]
    fn what_is_set_holds_and_the_rest_is_that_of_the_file() {
        let network = with(&["network.hops=3", "network.counters=[\"c\", \"1\"]"]).unwrap().network;
        assert_eq!((network.hops, network.connect_at_once), (3, 4));
        assert_eq!(network.counters, ["c", "1"]);
        assert_eq!(with(&["network.hops=3", "network.hops = 5"]).unwrap().network.hops, 5);
        let of_two = Inventory::of_two("gen1.lab", "sut.lab").unwrap();
        let network = of_two.with("", &["network.connect_at_once=1".into()]).unwrap().network;
        assert_eq!((network.hops, network.connect_at_once), (1, 1));
    }

    #[test]
    fn what_cannot_be_set_is_answered_as_in_the_file() {
        let told = |set: &str| with(&[set]).unwrap_err();
        let zero = told("network.hops=0");
        assert_eq!(zero.to_string(), "--set network.hops: 0");
        assert_eq!(zero.right, "1 is the same link");
        let unknown = told("network.hop=2");
        assert!(unknown.to_string().starts_with("--set network.hop: unknown field `hop`"));
        assert_eq!(unknown.right, "did you mean `hops`?");
        let text = told("network.hops=many").to_string();
        assert!(text.starts_with("--set network.hops: invalid type: string"), "{text}");
        assert_eq!(told("network.hops").to_string(), "--set network.hops: there is no `=`");
        let empty = "--set network.counters: the name of the program is empty";
        assert_eq!(told("network.counters=[\"\"]").to_string(), empty);
    }

    proptest! {
        #[test]
        fn no_setting_makes_it_panic(set in "(network\\.)?.{0,60}") {
            let _ = with(&[set.as_str()]);
        }
    }
}
