//! Settings by the names of `rxpath tune`: of a side, or of one host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, Kind};
use super::on_hosts::OnHosts;

/// Names of `rxpath tune` and values.
pub type Sets = BTreeMap<String, String>;

/// The key that stands for those of single hosts.
pub(super) const OF_HOST: &str = "tune.ALIAS";

/// Any setting of the lab's namespaces and devices, or of hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tune {
    /// Of the receiver's namespace, or of each receiver.
    pub receiver: Sets,
    /// Of the sender's namespace, or of each sender.
    pub sender: Sets,
    /// Of single hosts, by alias. They win over those of the host's side.
    #[serde(flatten)]
    pub hosts: BTreeMap<String, Sets>,
}

/// Its keys.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    Key::new("tune.receiver", Kind::Names, &[], "settings of the receiver's namespace and devices by the names of `rxpath tune`, {dev} for its device: { \"{dev}/features/rx-gro\" = \"off\" }; a variant's names are added to the base's"),
    Key::new("tune.sender", Kind::Names, &[], "the same of the sender's namespace"),
    Key::new(OF_HOST, Kind::Names, &[], "the same of one host, between hosts: tune.gen2 for the host gen2 of the inventory; its values win over those of its side"),
];

impl Tune {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(|(.., sets)| sets.is_empty())
    }

    /// Its settings, with their keys and hosts.
    pub fn parts(&self) -> Vec<(String, OnHosts, &Sets)> {
        let mut all = vec![
            ("tune.receiver".to_owned(), OnHosts::Receivers, &self.receiver),
            ("tune.sender".to_owned(), OnHosts::Senders, &self.sender),
        ];
        all.extend(self.hosts.iter().map(|(alias, sets)| {
            (format!("tune.{alias}"), OnHosts::These(vec![alias.clone()]), sets)
        }));
        all
    }
}
