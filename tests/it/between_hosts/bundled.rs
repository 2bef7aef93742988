//! Every bundled scenario, planned between hosts as it is: what of it runs there, and in which words the rest is refused.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use rxpath_host::Root;
use rxpath_lab::scenario::{HostShape, ScenarioFile, bundled, resolve};
use serde::Deserialize;
use serde_json::Value;

use super::{INVENTORY, inventory, rxpath};
use crate::skip::skip;

/// Scenarios of which no variant runs between hosts, in the order of their names, with the reasons of their variants, each
/// once. A scenario whose command fails would have what the command says.
const REFUSED: &[(&str, &[&str])] = &[("udp-bypass", &[ENGINE]), ("udp-firewall", &[ENGINE])];

const ENGINE: &str = "`load.engine` works on one machine only, in a lab of two namespaces";

/// What a reason ends with if a device has a setting that means the same.
const OFFER: &str = ": --change-hosts sets ";

/// Commands that run at the same time.
const AT_ONCE: usize = 4;

/// What `run --dry-run --json` prints, as far as it is read here.
#[derive(Deserialize)]
struct Answer {
    settings: Scenario,
    result: Plan,
}

#[derive(Deserialize)]
struct Scenario {
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    name: String,
    settings: BTreeMap<String, Value>,
    not_available: Option<String>,
}

#[derive(Deserialize)]
struct Plan {
    trials: Vec<OfVariant>,
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct OfVariant {
    variant: String,
}

#[derive(Deserialize)]
struct Host {
    host: String,
    programs: Vec<OfVariant>,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    variants: Vec<String>,
}

/// What came of all scenarios.
#[derive(Default)]
struct Found {
    /// Scenarios of which nothing runs, with the reasons.
    refused: BTreeMap<String, Vec<String>>,
    /// What is wrong with the others.
    faults: Vec<String>,
}

/// A scenario with what the lab on this machine lacks for it: between hosts that are this machine, no host has it either.
struct Tried<'a> {
    name: &'a str,
    hosts: &'a str,
    lacking: Vec<(String, String)>,
}

impl Answer {
    fn available(&self) -> Vec<&str> {
        let all = self.settings.variants.iter().filter(|it| it.not_available.is_none());
        all.map(|variant| variant.name.as_str()).collect()
    }

    fn refused(&self) -> impl Iterator<Item = (&Variant, &str)> {
        let all = self.settings.variants.iter();
        all.filter_map(|variant| Some((variant, variant.not_available.as_deref()?)))
    }

    /// The variants that would be available with `--change-hosts`, by their reasons.
    fn offered(&self) -> Vec<&str> {
        let all = self.refused().filter(|(_, why)| why.contains(OFFER));
        all.map(|(variant, _)| variant.name.as_str()).collect()
    }

    /// Whether a host changes a setting for a variant.
    fn changes_for(&self, variant: &str) -> bool {
        let mut all = self.result.hosts.iter().flat_map(|host| &host.changes);
        all.any(|change| change.variants.iter().any(|name| name == variant))
    }
}

impl Tried<'_> {
    fn planned(&self, more: &[&str]) -> Result<Answer, String> {
        let words = ["run", self.name, "--hosts", self.hosts, "--dry-run", "--json"];
        let plan = rxpath(&[&words[..], more].concat());
        // As the run would end: 3 with nothing to compare, 5 without some of the variants.
        match plan.code {
            Some(3) if !plan.err.contains(": nothing is left to compare") => {
                Err(format!("exit 3: {}", plan.err))
            }
            Some(0 | 3 | 5) => serde_json::from_str(&plan.out).map_err(|error| error.to_string()),
            code => Err(format!("exit {code:?}: {}", plan.err)),
        }
    }

    /// Reasons that are of hosts, not of this machine: its loopback device has no channels.
    fn reasons<'a>(&self, answer: &'a Answer) -> Vec<(&'a Variant, &'a str)> {
        let is_lacking = |variant: &str, why: &str| {
            let is_in_lab = |(name, reason): &(String, String)| name == variant && reason == why;
            why.starts_with("cannot be set on ") || self.lacking.iter().any(is_in_lab)
        };
        answer.refused().filter(|(variant, why)| !is_lacking(&variant.name, why)).collect()
    }

    /// Plans it as it is, and with `--change-hosts` where a reason offers that.
    fn judge(&self, found: &Mutex<Found>) {
        let mut refused: Vec<String> = Vec::new();
        let mut faults: Vec<String> = Vec::new();
        match self.planned(&[]) {
            Err(said) => refused.push(said),
            Ok(answer) => {
                faults.extend(self.faults(&answer));
                if answer.available().is_empty() {
                    for (_, why) in self.reasons(&answer) {
                        if !refused.iter().any(|known| known == why) {
                            refused.push(why.to_owned());
                        }
                    }
                }
                if !answer.offered().is_empty() {
                    faults.extend(self.faults_of_change(&answer));
                }
            }
        }
        let mut found = found.lock().unwrap();
        if !refused.is_empty() {
            found.refused.insert(self.name.to_owned(), refused);
        }
        found.faults.extend(faults.into_iter().map(|fault| format!("{}: {fault}", self.name)));
    }

    /// Each variant is planned on both hosts, or has a reason that names its key.
    fn faults(&self, answer: &Answer) -> Vec<String> {
        let mut faults = Vec::new();
        for (variant, why) in self.reasons(answer) {
            if !names_a_key(variant, why) {
                faults.push(format!("{}: the reason names no key of it: {why}", variant.name));
            }
        }
        let available = answer.available();
        let trials = &answer.result.trials;
        if let Some(name) =
            available.iter().find(|it| !trials.iter().any(|one| one.variant == **it))
        {
            faults.push(format!("{name}: available, and no trial is planned"));
        }
        let hosts: Vec<&str> = answer.result.hosts.iter().map(|it| it.host.as_str()).collect();
        if hosts != ["gen1", "sut"] {
            faults.push(format!("planned on {hosts:?}"));
        }
        for host in &answer.result.hosts {
            let programs: Vec<&str> = host.programs.iter().map(|it| it.variant.as_str()).collect();
            if programs != available {
                let host = &host.host;
                faults.push(format!("{host} runs {programs:?}, available are {available:?}"));
            }
        }
        faults
    }

    /// What was offered is done: a variant is available then, with a change of a host.
    fn faults_of_change(&self, before: &Answer) -> Vec<String> {
        let answer = match self.planned(&["--change-hosts"]) {
            Ok(answer) => answer,
            Err(said) => return vec![format!("--change-hosts: {said}")],
        };
        let mut faults = self.faults(&answer);
        let offered = before.offered();
        for (variant, why) in self.reasons(&answer) {
            if offered.contains(&variant.name.as_str()) {
                faults.push(format!("{}: offered, and not available: {why}", variant.name));
            }
        }
        let available = answer.available();
        for name in offered {
            if available.contains(&name) && !answer.changes_for(name) {
                faults.push(format!("{name}: available, and no host is changed for it"));
            }
        }
        faults.into_iter().map(|fault| format!("--change-hosts: {fault}")).collect()
    }
}

/// Whether a reason names what stands in a variant's way: a key of the lab's link in which it differs, or an engine.
fn names_a_key(variant: &Variant, why: &str) -> bool {
    let named = why.strip_prefix('`').and_then(|rest| rest.split_once('`'));
    let Some((key, said)) = named else { return false };
    let is_of_link = said.starts_with(" is a setting of the lab's link; between hosts it is");
    let is_of_engine = said.starts_with(" works on one machine only, ");
    is_of_link && variant.settings.contains_key(key) || is_of_engine && key.ends_with(".engine")
}

/// What this machine lacks for the variants of a scenario, by their names.
fn lacking(file: &ScenarioFile, here: &HostShape) -> Vec<(String, String)> {
    let in_lab = resolve(file, &[], here).unwrap();
    let all = in_lab.variants.into_iter();
    all.filter_map(|variant| Some((variant.name, variant.not_available?))).collect()
}

#[test]
fn every_bundled_scenario_runs_between_hosts_or_names_the_key_that_does_not() {
    let here = HostShape::here(&Root::host()).unwrap();
    if here.cpus.iter().filter(|cpu| cpu.allowed).count() < 2 {
        return skip("second_cpu", "one CPU: placements and victims are not available anywhere");
    }
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), INVENTORY);
    let files = bundled().unwrap();
    let all: Vec<Tried<'_>> = files
        .iter()
        .map(|file| Tried { name: &file.name, hosts: &hosts, lacking: lacking(file, &here) })
        .collect();
    let found = Mutex::new(Found::default());
    thread::scope(|scope| {
        let (all, found) = (&all, &found);
        for first in 0..AT_ONCE {
            scope.spawn(move || {
                all.iter().skip(first).step_by(AT_ONCE).for_each(|tried| tried.judge(found));
            });
        }
    });
    let Found { refused, mut faults } = found.into_inner().unwrap();
    faults.sort_unstable();
    let owned = |reasons: &[&str]| reasons.iter().map(|&why| why.to_owned()).collect::<Vec<_>>();
    let listed = REFUSED.iter().map(|(name, reasons)| ((*name).to_owned(), owned(reasons)));
    let listed: BTreeMap<String, Vec<String>> = listed.collect();
    assert!(
        faults.is_empty() && refused == listed,
        "faults: {faults:#?}\nof these nothing runs: {refused:#?}\nREFUSED has: {listed:#?}"
    );
}
