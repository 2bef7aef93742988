//! Every setting that a namespace and a veth have is changed by a plan and undone, and everything reads as before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rxpath_host::journal::{Journal, Undo};
use rxpath_host::pairs::Pairs;
use rxpath_host::setter::{HostSetter, Setter};
use rxpath_host::target::Group;
use rxpath_host::{Outcome, Root, Target};
use rxpath_tune::apply::apply;
use rxpath_tune::plan::make::{Wish, make};
use rxpath_tune::plan::{HostMark, Plan};

use super::place::Place;
use crate::bed::until;

/// Devices whose own sysctls are tried; those of the others are read.
const DEVICES: [&str; 3] = ["all", "default", "veth"];

/// Attributes of a veth that can be written.
const ATTRIBUTES: [(&str, &str); 7] = [
    ("veth/threaded", "1"),
    ("veth/gro_flush_timeout", "20000"),
    ("veth/napi_defer_hard_irqs", "2"),
    ("veth/tx_queue_len", "777"),
    ("veth/queues/rx-0/rps_cpus", "3"),
    ("veth/queues/rx-1/rps_flow_cnt", "512"),
    ("veth/queues/tx-1/xps_cpus", "2"),
];

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Sysctls of the namespace by path.
fn sysctls() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(Path::new("/proc/sys/net"), &mut found);
    found.sort();
    found
}

/// Sysctls, groups of values, attributes, addresses, routes, neighbours' tables and queueing disciplines.
fn everything() -> BTreeMap<String, String> {
    let read = |path: PathBuf| Some((path.display().to_string(), fs::read_to_string(&path).ok()?));
    let mut found: BTreeMap<String, String> = sysctls().into_iter().filter_map(read).collect();
    let mut setter = HostSetter::default();
    for group in Group::all() {
        let target = Target::Group { dev: "veth".into(), group };
        if let Ok(Some(value)) = setter.read(&target) {
            found.insert(target.to_string(), value);
        }
    }
    let mut queues = Vec::new();
    files(Path::new("/sys/class/net/veth/queues/"), &mut queues);
    queues.extend(ATTRIBUTES.map(|(name, _)| Path::new("/sys/class/net").join(name)));
    let settings =
        queues.into_iter().filter(|path| !path.to_string_lossy().contains("/byte_queue"));
    found.extend(settings.filter_map(read));
    for words in [
        "ip -d link",
        "ip -4 address",
        "ip -6 address",
        "ip -4 route show table all",
        "ip -6 route show table all",
        "ip rule",
        "tc qdisc",
    ] {
        let mut split = words.split(' ');
        let output =
            std::process::Command::new(split.next().unwrap()).args(split).output().unwrap();
        found.insert(words.into(), String::from_utf8_lossy(&output.stdout).into_owned());
    }
    found
}

/// Values near the one that is there, in the order in which they are tried.
fn others(now: &str) -> Vec<String> {
    let words: Vec<&str> = now.split_whitespace().collect();
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    match (numbers.as_deref(), now) {
        (Some([]), _) | (_, "") => Vec::new(),
        (Some([one]), _) => [one + 1, one - 1, 1 - one, one * 2].map(|n| n.to_string()).to_vec(),
        (Some(many), _) => {
            let doubled: Vec<String> = many.iter().map(|n| (n * 2).to_string()).collect();
            vec![doubled.join(" ")]
        }
        (None, "on") => vec!["off".into()],
        (None, "off") => vec!["on".into()],
        (None, "cubic") => vec!["reno".into()],
        (None, "reno") => vec!["cubic".into()],
        (None, _) => Vec::new(),
    }
}

/// What is tried: knobs with the values for them.
fn wishes() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for path in sysctls() {
        let Ok(now) = fs::read_to_string(&path) else { continue };
        let key = path.strip_prefix("/proc/sys").unwrap().to_string_lossy().replace('/', ".");
        let parts: Vec<&str> = key.split('.').collect();
        if let ["net", _, "conf" | "neigh", device, ..] = parts.as_slice()
            && !DEVICES.contains(device)
        {
            continue;
        }
        all.push((key, others(now.trim())));
    }
    let mut setter = HostSetter::default();
    for group in Group::all() {
        let target = Target::Group { dev: "veth".into(), group };
        let Ok(Some(value)) = setter.read(&target) else { continue };
        for (name, value) in value.parse::<Pairs>().unwrap_or_default().iter() {
            all.push((format!("{target}/{name}"), others(value)));
        }
    }
    all.extend(ATTRIBUTES.map(|(name, value)| (name.to_owned(), vec![value.to_owned()])));
    all
}

/// A plan of one step for the first value that the setting takes.
fn planned(knob: &str, values: &[String]) -> Option<Plan> {
    values.iter().find_map(|value| {
        let wish = Wish::parse(&format!("{knob}={value}")).ok()?;
        let empty = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
        let plan = make(&mut HostSetter::default(), &|_| None, &[wish], empty);
        (plan.steps.len() == 1).then_some(plan)
    })
}

/// Applies the plan and undoes it; `None` when the kernel refused it.
fn there_and_back(dir: &Path, at: usize, plan: &Plan) -> Option<Vec<Undo>> {
    let mut journal = Journal::open(&dir.join(at.to_string())).unwrap();
    let root = Root::host();
    let mut setter = HostSetter::default();
    let applied = apply(&mut journal, &mut setter, (&plan.steps, &root), &mut |_| Ok(()));
    assert!(applied.stopped.is_none(), "{plan:?}: {:?}", applied.stopped);
    let is_made = matches!(
        applied.changes[0].outcome,
        Outcome::Applied | Outcome::Pending { .. } | Outcome::Rounded
    );
    let undone = journal.undo(&mut setter).unwrap();
    is_made.then_some(undone)
}

#[test]
fn every_setting_comes_back_and_takes_nothing_with_it() {
    let Some(place) = Place::new() else { return };
    place.sysctl("net.ipv6.conf.veth.disable_ipv6", "0");
    place.ip(&["address", "add", "fd77::2/64", "dev", "veth", "nodad"]);
    place.ip(&["route", "add", "198.51.100.0/24", "via", "10.77.0.1"]);
    place.ip(&["link", "add", "link", "veth", "name", "above", "type", "macvlan"]);
    let dir = place.dir.path().to_owned();
    let run = move |_: &mut rxpath_host::Inside| {
        // The link's own address is no setting, and its check for duplicates ends by itself.
        until("no tentative address", || !everything()["ip -6 address"].contains("tentative"));
        let mut before = everything();
        // What moves by itself is no setting.
        let moving: Vec<String> = everything()
            .into_iter()
            .filter(|(name, value)| before.get(name) != Some(value))
            .map(|(name, _)| name)
            .collect();
        let (mut made, mut left) = (Vec::new(), Vec::new());
        for (at, (knob, values)) in wishes().into_iter().enumerate() {
            let Some(plan) = planned(&knob, &values) else { continue };
            let Some(undone) = there_and_back(&dir, at, &plan) else { continue };
            if !undone.iter().all(Undo::is_whole) {
                left.push(format!("{knob}: {undone:?}"));
            }
            let after = everything();
            let names = before.keys().chain(after.keys()).filter(|name| !moving.contains(name));
            let differ: std::collections::BTreeSet<&String> =
                names.filter(|name| before.get(*name) != after.get(*name)).collect();
            for name in differ {
                left.push(format!(
                    "{knob}: {name}: {:?} is {:?}",
                    before.get(name),
                    after.get(name)
                ));
            }
            // What one setting left is not the next one's.
            before = after;
            made.push(knob);
        }
        (made, left)
    };
    let (made, left) = place.ns.run(run).unwrap();
    assert!(left.is_empty(), "{} of {}: {left:#?}", left.len(), made.len());
    for kind in [
        "net.core.",
        "net.ipv4.conf.",
        "net.ipv6.conf.",
        "net.ipv4.tcp_",
        "veth/features",
        "veth/link",
        "veth/channels",
        "veth/queues",
    ] {
        assert!(made.iter().any(|knob| knob.starts_with(kind)), "none of {kind}: {made:?}");
    }
    assert!(made.len() >= 250, "{} settings: {made:?}", made.len());
}
