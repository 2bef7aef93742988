//! A run between hosts as text: how well their clocks are known, the cost of measuring, one-way delays, and where the packets
//! of each variant went.

use std::collections::BTreeMap;

use rxpath_core::ntp::NtpState;
use rxpath_core::number::grouped;
use rxpath_record::hosts::{ControlCost, PairClocks};
use rxpath_record::ledger::{Balances, Ledger, PacketBounds, Place};
use rxpath_record::manifest::{Manifest, VariantSummary};

use super::between;

/// Pairs and hosts that are listed; of more, the pair whose clocks are known worst, and the host whose endpoint took most.
const LISTED: usize = 16;

/// The lines of the clocks; none where the run was on one machine.
pub fn clocks(manifest: &Manifest) -> String {
    let pairs = manifest.pair_clocks();
    let Some(worst) = pairs.iter().max_by_key(|pair| pair.error_ns) else { return String::new() };
    let known = if pairs.len() > LISTED {
        format!("of {} pairs the worst: {}", pairs.len(), worst.text())
    } else {
        pairs.iter().map(PairClocks::text).collect::<Vec<_>>().join("; ")
    };
    let ntp = ntp(manifest).map_or_else(String::new, |words| format!("; NTP: {words}"));
    format!("clocks: {known}{ntp}\n")
}

/// The line of the cost of measuring on each host in the windows; of many hosts the one whose endpoint took most CPU time. None
/// where the run was on one machine.
pub fn control(manifest: &Manifest) -> String {
    let costs = manifest.control_costs();
    let cost = |(alias, cost): (&String, &ControlCost)| format!("{alias} {}", cost.text());
    let most = costs.iter().max_by(|a, b| a.1.cpu_ratio().total_cmp(&b.1.cpu_ratio()));
    let Some(most) = most else { return String::new() };
    let shown = if costs.len() > LISTED {
        format!("of {} hosts the most on {}", costs.len(), cost(most))
    } else {
        costs.iter().map(cost).collect::<Vec<_>>().join("; ")
    };
    format!("endpoints in the windows (CPU time, control connection): {shown}\n")
}

/// Which programs correct the hosts' clocks: `chronyd on gen1 and sut, none on gen2`.
fn ntp(manifest: &Manifest) -> Option<String> {
    if manifest.hosts.values().all(|part| part.ntp.is_none()) {
        return None;
    }
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (alias, part) in &manifest.hosts {
        let alias = alias.as_str();
        let state = part.ntp.as_ref().map_or_else(|| "not known".to_owned(), NtpState::short);
        match groups.iter_mut().find(|(of, _)| *of == state) {
            Some((_, hosts)) => hosts.push(alias),
            None => groups.push((state, vec![alias])),
        }
    }
    let words = |(state, hosts): (String, Vec<&str>)| match hosts.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{state} on {} and {last}", others.join(", "))
        }
        _ => format!("{state} on {}", hosts.concat()),
    };
    Some(groups.into_iter().map(words).collect::<Vec<_>>().join(", "))
}

/// The lines of a variant: how far apart its senders started at most, one-way delays with their bound, and the sum of its ledgers.
pub fn of_variant(manifest: &Manifest, variant: &VariantSummary) -> String {
    if manifest.hosts.is_empty() {
        return String::new();
    }
    let starts = manifest.start_spread(&variant.name);
    let starts = starts.map(|spread| format!("senders started within {}", spread.text()));
    let delays = variant.delays().map(|delays| delays.text());
    let lines = starts.into_iter().chain(delays).chain(ledger(manifest, &variant.name));
    lines.map(|line| format!("{}: {line}\n", variant.name)).collect::<Vec<_>>().concat()
}

/// `ledger: 12,000 datagrams offered in 5 trials together = 11,000 delivered + 1,000 at device ring (NAPI) [rx/ring]; 0
/// unaccounted`, and other traffic in the same counters.
fn ledger(manifest: &Manifest, variant: &str) -> Option<String> {
    let trials = manifest.counted(variant);
    let unit = trials.first()?.ledger.unit.word();
    let ledgers: Vec<&Ledger> = trials.iter().map(|trial| &trial.ledger).collect();
    let sum = |of: fn(&Ledger) -> u64| ledgers.iter().map(|one| of(one)).sum::<u64>();
    let mut terms = vec![format!("{} delivered", grouped(sum(|one| one.delivered_packets)))];
    let all_offered = sum(|one| one.offered_packets);
    terms.extend(lost(&ledgers, all_offered));
    let in_flight = sum(|one| one.in_flight_packets);
    terms.extend((in_flight > 0).then(|| format!("{} in flight", grouped(in_flight))));
    let rest = remainder(&Balances::of(ledgers.iter().copied()));
    let foreign = sum(|one| one.foreign_packets);
    let foreign = (foreign > 0).then(|| format!("; {} packets of other traffic", grouped(foreign)));
    let (offered, terms) = (grouped(all_offered), terms.join(" + "));
    let foreign = foreign.unwrap_or_default();
    let together = between::together(manifest, variant);
    Some(format!("ledger: {offered} {unit} offered {together} = {terms}; {rest}{foreign}"))
}

/// `0 (at most 41) unaccounted`, more than were sent, and trials of which nothing is known.
fn remainder(all: &Balances) -> String {
    let is_shown = all.closed > 0 || all.missing_packets > 0;
    let known = is_shown.then(|| format!("{} unaccounted", all.unaccounted()));
    let unknown = (all.unknown > 0).then(|| {
        format!("the remainder of {} of {} trials is not known", all.unknown, all.ledgers)
    });
    let excess = grouped(all.excess_packets);
    let excess = (all.excess_packets > 0).then(|| format!("{excess} more arrived than were sent"));
    [known, excess, unknown].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Losses by place, with their counters.
fn lost(ledgers: &[&Ledger], offered: u64) -> Vec<String> {
    let mut places: BTreeMap<Place, (u64, PacketBounds, &str)> = BTreeMap::new();
    for drop in ledgers.iter().flat_map(|ledger| &ledger.drops) {
        let none = PacketBounds { least_packets: 0, most_packets: Some(0) };
        let place = places.entry(drop.place).or_insert((0, none, drop.counter.as_str()));
        place.0 += drop.packets;
        place.1 = place.1.plus(drop.range());
    }
    let is_shown = |(place, (packets, bounds, _)): &(Place, (u64, PacketBounds, &str))| {
        // Between hosts it is worth saying that nothing was lost there.
        *packets > 0 || bounds.most_packets != Some(0) || *place == Place::Network
    };
    let words = |(place, (packets, bounds, counter)): (Place, (u64, PacketBounds, &str))| {
        let lost = bounds.around(packets, offered);
        format!("{lost} at {} [{counter}]", place.words().short)
    };
    places.into_iter().filter(is_shown).map(words).collect()
}

#[cfg(test)]
mod tests {
    use rxpath_core::{CpuList, PathSide};
    use rxpath_record::hosts::{HostStart, HostTrial};
    use rxpath_record::ledger::{Drop, RemainderBounds};
    use rxpath_record::manifest::{HostPart, Trial};

    use super::*;

    fn part(side: PathSide, is_synchronised: Option<bool>) -> HostPart {
        HostPart {
            clock_error_ns: 40_000,
            ntp: is_synchronised
                .map(|is_synchronised| NtpState { is_synchronised, ..NtpState::default() }),
            ..HostPart::of(side)
        }
    }

    fn manifest(senders: usize) -> Manifest {
        let sender = |at: usize| (format!("gen{at}"), part(PathSide::Tx, Some(at == 1)));
        let mut hosts: BTreeMap<_, _> = (1..=senders).map(sender).collect();
        hosts.insert("sut".into(), part(PathSide::Rx, None));
        Manifest { hosts, ..Manifest::default() }
    }

    #[test]
    fn clocks_and_what_ntp_says_of_them_are_one_line() {
        let wanted = "clocks: gen1 -> sut known to +-80us at the start; gen2 -> sut known to +-80us at the start; NTP: synchronised on gen1, \
                      not synchronised on gen2, not known on sut\n";
        assert_eq!(clocks(&manifest(2)), wanted);
        let mut seen = manifest(2);
        for (alias, daemons) in [("gen1", vec!["chronyd".to_owned()]), ("gen2", Vec::new())] {
            let ntp = seen.hosts.get_mut(alias).and_then(|part| part.ntp.as_mut()).unwrap();
            ntp.daemons = Some(daemons);
        }
        let of_gen1 = seen.hosts["gen1"].ntp.clone();
        seen.hosts.get_mut("sut").unwrap().ntp = of_gen1;
        let text = clocks(&seen);
        assert!(text.ends_with("; NTP: chronyd on gen1 and sut, none on gen2\n"), "{text}");
        let many = clocks(&manifest(20));
        assert!(many.starts_with("clocks: of 20 pairs the worst: gen"), "{many}");
        assert_eq!(clocks(&Manifest::default()), "");
    }

    #[test]
    fn what_measuring_cost_each_host_is_one_line() {
        let of = |hosts: usize| {
            let cost = |at: usize| {
                let cpu_ns = 1_000_000 * at as u64;
                let cpus = if at == 1 { CpuList(vec![3]) } else { CpuList::default() };
                ControlCost { span_ns: 1_000_000_000, cpu_ns, control_bytes: 120, cpus }
            };
            let host =
                |at| HostTrial { endpoint_cost: Some(cost(at)), ..HostTrial::of(PathSide::Tx) };
            let hosts = (1..=hosts).map(|at| (format!("gen{at}"), host(at))).collect();
            let trials = vec![Trial { hosts, ..Trial::default() }];
            control(&Manifest { trials, ..Manifest::default() })
        };
        let wanted = "endpoints in the windows (CPU time, control connection): \
                      gen1 0.1 % of a CPU (CPU 3), 120B/s; gen2 0.2 % of a CPU, 120B/s\n";
        assert_eq!(of(2), wanted);
        assert!(of(17).ends_with("of 17 hosts the most on gen17 1.7 % of a CPU, 120B/s\n"));
        assert_eq!(of(0), "");
    }

    fn lost_at(place: Place, packets: u64, exact: bool) -> Drop {
        let counter = format!("rx/{}", place.words().part);
        Drop {
            place,
            counter,
            packets,
            derived: false,
            exact,
            bounds: None,
            cross_checks: Vec::new(),
        }
    }

    #[test]
    fn the_ledger_of_a_variant_is_a_sum_with_its_counters() {
        let ledger = Ledger {
            offered_packets: 6_000,
            delivered_packets: 5_490,
            drops: vec![
                lost_at(Place::Network, 0, true),
                lost_at(Place::Ring, 500, true),
                lost_at(Place::Ip, 0, true),
                lost_at(Place::SocketBuffer, 10, false),
            ],
            ..Ledger::default()
        };
        let trial = || Trial {
            variant: "base".into(),
            block: 1,
            ledger: ledger.clone(),
            ..Trial::default()
        };
        let of_hosts = Manifest { trials: vec![trial(), trial()], ..manifest(1) };
        let variant = VariantSummary { name: "base".into(), ..VariantSummary::default() };
        let wanted = "base: ledger: 12,000 datagrams offered in 2 trials together = 10,980 delivered + 0 at network [rx/network] + \
                      1,000 at device ring (NAPI) [rx/device] + at least 20 at socket receive buffer [rx/socket]; 0 unaccounted\n";
        assert_eq!(of_variant(&of_hosts, &variant), wanted);
        let started = |at_ns| HostTrial {
            start: Some(HostStart { at_ns, error_ns: 25_000, late_ns: 0 }),
            ..HostTrial::of(PathSide::Tx)
        };
        let hosts = [("gen1".to_owned(), started(0)), ("gen2".to_owned(), started(310_000))];
        let of_two = Trial { hosts: hosts.into(), ..trial() };
        let text = of_variant(&Manifest { trials: vec![of_two], ..manifest(1) }, &variant);
        assert!(
            text.starts_with("base: senders started within 0.31ms +-0.05ms\nbase: ledger: "),
            "{text}"
        );
        let mut shared = ledger.clone();
        shared.drops[1] = Drop {
            bounds: Some(PacketBounds { least_packets: 400, most_packets: Some(600) }),
            ..lost_at(Place::Ring, 500, false)
        };
        shared.foreign_packets = 3_000;
        shared.unaccounted_packets = None;
        shared.unaccounted_bounds = Some(RemainderBounds { least_packets: -90, most_packets: 10 });
        let of_shared = Trial { ledger: shared, ..trial() };
        let of_hosts = Manifest { trials: vec![of_shared], ..manifest(1) };
        let text = of_variant(&of_hosts, &variant);
        assert!(text.contains("500 (between 400 and 600) at device ring (NAPI)"), "{text}");
        assert!(
            text.ends_with("; 0 (at most 10) unaccounted; 3,000 packets of other traffic\n"),
            "{text}"
        );
        // The bounds of one trial are not those of another whose remainder is not known.
        let of_unknown = Ledger { unaccounted_packets: None, ..ledger.clone() };
        let unknown = Trial { ledger: of_unknown, ..trial() };
        let of_hosts =
            Manifest { trials: vec![of_hosts.trials[0].clone(), unknown], ..manifest(1) };
        let text = of_variant(&of_hosts, &variant);
        let rest =
            "; 0 (at most 10) unaccounted; the remainder of 1 of 2 trials is not known; 3,000";
        assert!(text.contains(rest), "{text}");
        let on_one_machine = Manifest { trials: vec![trial()], ..Manifest::default() };
        assert_eq!(of_variant(&on_one_machine, &variant), "");
    }
}
