//! Changes that no plan may hold, whatever else it does.

use std::collections::BTreeMap;

use rxpath_core::CpuList;
use rxpath_host::read::sysfs::device::parse_mask;
use rxpath_host::{Group, Knob, Target};
use rxpath_tune::{Finding, Goal, Set};

use super::card::{Card, Kind};
use super::tree::Host;

/// What would be harmful among the changes of these findings, each with the rule that asks for it.
pub fn harms(host: &Host, goal: Option<Goal>, findings: &[Finding]) -> Vec<String> {
    let sets: Vec<(&str, &Set)> = findings
        .iter()
        .flat_map(|finding| finding.changes.iter().map(|set| (finding.id.as_str(), set)))
        .collect();
    let mut all: Vec<String> = sets
        .iter()
        .flat_map(|(rule, set)| {
            one(host, set).into_iter().map(move |harm| format!("{rule} {harm}"))
        })
        .collect();
    all.extend(together(&sets));
    all.extend(
        host.cards.iter().enumerate().filter_map(|(at, card)| stacked(host, (at, card), &sets)),
    );
    if goal == Some(Goal::Latency) {
        all.extend(host.cards.iter().filter_map(|card| left_waiting(card, &sets)));
    }
    all.sort();
    all.dedup();
    all
}

/// Whether adaptive moderation would go off and leave the delay that it happened to have.
fn left_waiting(card: &Card, sets: &[(&str, &Set)]) -> Option<String> {
    let usecs = card.answers.coalesce.value()?.rx_usecs?;
    let is_set = |wanted: &str| {
        let knob = Knob::part(&card.name, Group::Coalesce, wanted);
        sets.iter().any(|(_, set)| set.knob == knob)
    };
    let is_left = usecs > 8 && is_set("adaptive-rx") && !is_set("rx-usecs");
    is_left.then(|| "the plan turns adaptive moderation off and leaves a long delay".into())
}

/// A change that is harmful by itself.
fn one(host: &Host, set: &Set) -> Vec<String> {
    let (target, text) = (&set.knob.target, &set.value);
    let card = target.device().and_then(|dev| host.cards.iter().find(|card| card.name == dev));
    let part = set.knob.part.as_deref().unwrap_or_default();
    match target {
        Target::Sysctl { key } if key.contains("forward") && text == "0" => {
            vec!["stops forwarding".into()]
        }
        Target::Sysctl { key } if key == "net.ipv4.tcp_rmem" => {
            let start = text.split(' ').nth(1).and_then(|it| it.parse::<u32>().ok()).unwrap();
            let is_small = start < 16_384;
            is_small.then(|| "keeps TCP's first window small".into()).into_iter().collect()
        }
        Target::Irq { irq } => {
            let (_, card) = card_of_irq(host, *irq);
            wrong_cpus(host, Some(card), &text.parse().unwrap(), "an interrupt")
        }
        Target::Attr { attr, .. } if attr.ends_with("/rps_cpus") => rps(host, card, text),
        Target::Group { group: Group::Channels, .. } => channels(card.unwrap(), part, text),
        Target::Group { group: Group::Rings, .. } => {
            let most = card.and_then(|card| card.answers.rings.value()?.rx.max).unwrap_or(0);
            let is_much = text.parse::<u32>().unwrap() > most;
            is_much.then(|| "makes a ring larger than it can be".into()).into_iter().collect()
        }
        Target::Group { group: Group::Features, .. } => {
            let features = card.and_then(|card| card.answers.features.value());
            let is_fixed = !features.and_then(|all| all.get(part)).is_some_and(|it| it.changeable);
            is_fixed.then(|| format!("switches {part}, which is fixed")).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn card_of_irq(host: &Host, irq: u32) -> (usize, &Card) {
    let at = (irq / 1000 - 1) as usize;
    (at, &host.cards[at])
}

fn wrong_cpus(host: &Host, card: Option<&Card>, cpus: &CpuList, what: &str) -> Vec<String> {
    let (online, kept) = (host.online(), host.housekeeping());
    let node = card.and_then(|card| u32::try_from(card.node).ok()).filter(|_| host.nodes > 1);
    let is_any = |bad: &dyn Fn(u32) -> bool| cpus.as_slice().iter().any(|cpu| bad(*cpu));
    let mut wrong = Vec::new();
    if is_any(&|cpu| !online.as_slice().contains(&cpu)) {
        wrong.push(format!("sends {what} to a CPU that is offline"));
    } else if is_any(&|cpu| !kept.contains(&cpu)) {
        wrong.push(format!("sends {what} to an isolated CPU"));
    }
    if is_any(&|cpu| node.is_some_and(|node| host.node_of(cpu) != node)) {
        wrong.push(format!("sends {what} to another node"));
    }
    wrong
}

fn rps(host: &Host, card: Option<&Card>, mask: &str) -> Vec<String> {
    let cpus = parse_mask(mask).unwrap();
    if cpus.is_empty() {
        return Vec::new();
    }
    let mut wrong = wrong_cpus(host, card, &cpus, "packets by RPS");
    if card.is_some_and(|card| card.queues * 2 >= host.cpus) {
        wrong.push("turns RPS on in addition to full RSS".into());
    }
    wrong
}

fn channels(card: &Card, which: &str, count: &str) -> Vec<String> {
    let has = match card.kind {
        Kind::Combined => which == "combined",
        Kind::Split => which != "combined",
        Kind::Untold => false,
    };
    if !has {
        return vec![format!("sets {which} channels, which the driver does not have")];
    }
    let is_much = count.parse::<u32>().unwrap() > card.queues_max;
    is_much.then(|| "sets more channels than there can be".into()).into_iter().collect()
}

/// Changes that are harmful together.
fn together(sets: &[(&str, &Set)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for (_, set) in sets {
        let (knob, value) = (set.knob.to_string(), set.value.clone());
        if values.insert(knob.clone(), value.clone()).is_some_and(|other| other != value) {
            let kind = knob.rsplit('/').next().unwrap_or_default();
            wrong.push(format!("the plan wants two values of {kind}"));
        }
    }
    let devices = sets.iter().filter_map(|(_, set)| set.knob.target.device());
    for dev in devices {
        let own = || sets.iter().filter(|(_, set)| set.knob.target.device() == Some(dev));
        let is_channels =
            |target: &Target| matches!(target, Target::Group { group: Group::Channels, .. });
        let grows = own().any(|(_, set)| is_channels(&set.knob.target));
        let steers = own().any(|(_, set)| {
            matches!(&set.knob.target, Target::Attr { attr, .. } if attr.ends_with("/rps_cpus"))
                && set.value.bytes().any(|digit| digit.is_ascii_hexdigit() && digit != b'0')
        });
        if grows && steers {
            wrong.push("the plan sets channels and turns RPS on".into());
        }
        let on = |feature: &str| {
            values.get(&format!("{dev}/features/{feature}")).is_some_and(|it| it == "on")
        };
        if on("rx-gro-list") && on("rx-udp-gro-forwarding") {
            wrong.push("the plan turns GRO lists and forwarding of UDP GRO on".into());
        }
    }
    wrong
}

/// Whether interrupts of a card would share a CPU while others of its node have none.
fn stacked(host: &Host, (at, card): (usize, &Card), sets: &[(&str, &Set)]) -> Option<String> {
    let mut moved = BTreeMap::new();
    for (_, set) in sets {
        let Target::Irq { irq } = set.knob.target else { continue };
        moved.insert(irq, set.value.parse::<CpuList>().unwrap());
    }
    let first = Host::first_irq(at);
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut is_moved = false;
    for (vector, (_, queue)) in card.vectors().into_iter().enumerate() {
        let Some(queue) = queue else { continue };
        let to = moved.get(&(first + vector as u32));
        is_moved |= to.is_some();
        let cpu = to.map_or(card.cpu_of(queue), |cpus| cpus.as_slice()[0]);
        *taken.entry(cpu).or_default() += 1;
    }
    let near = |cpu: &u32| u32::try_from(card.node).is_ok_and(|node| host.node_of(*cpu) == node);
    let all = host.housekeeping();
    let usable = all.iter().filter(|cpu| near(cpu)).count();
    let usable = if usable == 0 { all.len() } else { usable };
    let fair = card.queues.div_ceil(usable as u32);
    let is_stacked = is_moved && taken.values().any(|count| *count > fair);
    is_stacked.then(|| "the plan stacks interrupts while CPUs have none".into())
}
