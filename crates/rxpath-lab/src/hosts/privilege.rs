//! What of an experiment needs root on its hosts, by the keys that want it: `sudo = "if-needed"` runs an endpoint as root
//! only for those.

use std::collections::BTreeSet;

use rxpath_core::{PathSide, SchedClass};
use rxpath_remote::inventory::HostEntry;
use rxpath_remote::{Role, Sudo};

use crate::scenario::spec::{OnHosts, Resolved, Variant};

/// Keys that need root, and on which hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootNeeds(BTreeSet<(String, OnHosts)>);

impl RootNeeds {
    /// What a scenario needs, settings of hosts only where they may be changed.
    pub fn of(resolved: &Resolved, may_change: bool) -> Self {
        let mut needs = Self::default();
        for variant in &resolved.variants {
            needs.0.extend(keys(variant).into_iter().map(|(on, key)| (key.to_owned(), on)));
            let tuned = variant.tune.parts().into_iter().filter(|_| may_change);
            let tuned = tuned.filter(|(.., sets)| !sets.is_empty());
            needs.0.extend(tuned.map(|(key, on, _)| (key, on)));
        }
        needs
    }

    /// The same, and that settings of the hosts are changed whatever the scenario says.
    #[must_use]
    pub fn and_changes(mut self) -> Self {
        self.0.insert(("--change-hosts".into(), OnHosts::All));
        self
    }

    /// What `rxpath hosts cleanup` needs: only root reads the journals of `rxpath tune` and undoes what is on them.
    pub fn of_cleanup() -> Self {
        Self(BTreeSet::from([("undoing changes of killed runs".into(), OnHosts::All)]))
    }

    /// Whether the endpoint of a host runs as root, and why, where a key wants it: `observe.steal needs root`.
    pub(super) fn on(&self, alias: &str, entry: &HostEntry) -> Option<String> {
        let side = if entry.role == Role::Sender { PathSide::Tx } else { PathSide::Rx };
        let keys = self.0.iter().filter(|(_, on)| on.has(side, alias));
        // Variants may want one on different hosts.
        let keys: BTreeSet<&String> = keys.map(|(key, _)| key).collect();
        // Another network namespace is entered by root only.
        let netns = entry.netns.iter().map(|_| format!("hosts.{alias}.netns"));
        let wanted: Vec<String> = netns.chain(keys.into_iter().cloned()).collect();
        match (entry.sudo, wanted.as_slice()) {
            (Sudo::Never, _) | (Sudo::IfNeeded, []) => None,
            (Sudo::Always, []) => Some(String::new()),
            (_, [one]) => Some(format!("{one} needs root")),
            (_, several) => Some(format!("{} need root", several.join(", "))),
        }
    }
}

/// Keys of a variant that need root, and on which hosts; without the settings of hosts.
fn keys(variant: &Variant) -> Vec<(OnHosts, &'static str)> {
    use OnHosts::{All, Receivers, Senders};
    let background = &variant.background;
    let serves_xdp = variant.serve.own().is_some_and(|own| own.options.bypasses_stack());
    let sends_xdp = variant.load.own().is_some_and(|own| own.options.bypasses_stack());
    let is_real_time = matches!(background.sched, SchedClass::Fifo(_) | SchedClass::RoundRobin(_));
    let all = [
        (variant.lab.awake, All, "lab.awake"),
        (background.nice < 0, background.on.clone(), "background.nice"),
        (is_real_time, background.on.clone(), "background.sched"),
        (serves_xdp, Receivers, "serve.engine"),
        (sends_xdp, Senders, "load.engine"),
    ];
    let all = all.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, on, key)| (on, key));
    all.chain(variant.observe.observers()).collect()
}

#[cfg(test)]
mod tests {
    use rxpath_remote::Inventory;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve_between};

    fn needs(scenario: &str, may_change: bool) -> RootNeeds {
        let file = parse(&format!("question = \"q\"\n{scenario}"), "t", "t").unwrap();
        let shape = HostShape::flat(4);
        let resolved = resolve_between(&file, &[], [&shape, &shape], may_change, None).unwrap();
        RootNeeds::of(&resolved, may_change)
    }

    /// Why the sender and the receiver run as root.
    fn why(needs: &RootNeeds, sudo: &str) -> [Option<String>; 2] {
        let text = format!(
            "[hosts.gen1]\nssh = \"a\"\nrole = \"sender\"\nsudo = \"{sudo}\"\n\
             [hosts.sut]\nssh = \"b\"\nrole = \"receiver\"\nsudo = \"{sudo}\"\n"
        );
        let inventory = Inventory::parse(&text, "lab.toml").unwrap();
        ["gen1", "sut"].map(|alias| needs.on(alias, &inventory.hosts[alias]))
    }

    #[test]
    fn a_scenario_that_only_counts_needs_no_root() {
        let plain = needs("[load]\nrate = \"1k\"", true);
        assert_eq!(why(&plain, "if-needed"), [None, None]);
        assert_eq!(why(&plain, "always"), [Some(String::new()), Some(String::new())]);
    }

    #[test]
    fn keys_that_need_root_are_named_on_the_side_that_they_are_for() {
        let receiver = |text: &str| [None, Some(text.to_owned())];
        let both = |text: &str| [Some(text.to_owned()), Some(text.to_owned())];
        let steal = needs("[observe]\nsteal = true", false);
        assert_eq!(why(&steal, "if-needed"), receiver("observe.steal needs root"));
        assert_eq!(why(&steal, "never"), [None, None]);
        let drops = needs("[observe]\ndrops = true", false);
        assert_eq!(why(&drops, "if-needed"), both("observe.drops needs root"));
        let tune = "[tune.receiver]\n\"net.core.somaxconn\" = 4321\n[observe]\ntrace = true";
        let text = "observe.trace, tune.receiver need root";
        assert_eq!(why(&needs(tune, true), "if-needed"), receiver(text));
        // It is refused anyway.
        assert_eq!(why(&needs(tune, false), "if-needed"), receiver("observe.trace needs root"));
        let one = needs("[tune.gen1]\n\"net.core.somaxconn\" = 4321", true);
        assert_eq!(why(&one, "if-needed"), [Some("tune.gen1 needs root".to_owned()), None]);
        let search = RootNeeds::default().and_changes();
        assert_eq!(why(&search, "if-needed"), both("--change-hosts needs root"));
        let cleanup = "undoing changes of killed runs needs root";
        assert_eq!(why(&RootNeeds::of_cleanup(), "if-needed"), both(cleanup));
        assert_eq!(why(&RootNeeds::of_cleanup(), "never"), [None, None]);
    }

    #[test]
    fn a_network_namespace_needs_root_whatever_the_scenario() {
        let text = "[hosts.gen1]\nssh = \"a\"\nrole = \"sender\"\nnetns = \"lab\"\n\
                    [hosts.sut]\nssh = \"b\"\nrole = \"receiver\"\n";
        let inventory = Inventory::parse(text, "lab.toml").unwrap();
        let on = |alias: &str| RootNeeds::default().on(alias, &inventory.hosts[alias]);
        assert_eq!(on("gen1").as_deref(), Some("hosts.gen1.netns needs root"));
        assert_eq!(on("sut"), None);
    }
}
