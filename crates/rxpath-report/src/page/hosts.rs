//! The real hosts of a run: who sends and who receives, by which devices, how well their clocks are known, and what each
//! sent, got and suffered.

mod clocks;
mod topology;

use crate::prelude::*;

/// The section, or nothing where the run was on one machine.
pub(super) fn section(run: &Run) -> Option<Section> {
    let hosts = &run.manifest.hosts;
    let tables = [
        (clocks::of_hosts(run), "Clocks of the hosts"),
        (clocks::of_pairs(run), "Clocks of senders and receivers"),
        (starts(run), "Starts of the senders"),
        (clocks::delays(run), "One-way delays"),
        (pairs(run), "Datagrams by sender and receiver"),
        (rates(run), "Rates by sender and receiver"),
        (losses(run), "Losses by receiver"),
        (grades(run), "Noise grades by host"),
        (costs(run), "Cost of measuring"),
    ];
    (!hosts.is_empty()).then(|| Section {
        id: "hosts",
        title: "Hosts",
        lead: "The hosts of the run. Each reads its own counters and CPU time, on its own clock; instants are brought to \
               one clock, and the error of that is shown.",
        body: html! {
            (topology::figure(run))
            dl.method {
                @for (alias, part) in hosts { dt { (alias) } dd { (part.text()) } }
            }
            @for (rows, label) in &tables {
                @if !rows.rows.is_empty() { h3 { (label) } (table(rows, label)) }
            }
        },
    })
}

fn variants(run: &Run) -> impl Iterator<Item = &str> {
    run.manifest.variants.iter().map(|variant| variant.name.as_str())
}

/// How far apart the senders started, in the counted trial in which it was most.
fn starts(run: &Run) -> Table {
    let mut rows = Table::new("variant | #senders started within");
    for variant in variants(run) {
        let spread = run.manifest.start_spread(variant);
        rows.rows.extend(spread.map(|spread| vec![variant.to_owned(), spread.text()]));
    }
    rows
}

/// What each sender sent to each receiver, over the trials that count.
pub(crate) fn pairs(run: &Run) -> Table {
    let mut rows =
        Table::new("variant | sender | receiver | #offered | #delivered | #lost, of offered");
    for variant in variants(run) {
        rows.rows.extend(run.manifest.pairs(variant).into_iter().map(|pair| {
            let lost = pair.lost_ratio().map(|ratio| number::percent(ratio, 1.0));
            let unknown = || "not known".to_owned();
            vec![
                variant.to_owned(),
                pair.sender,
                pair.receiver,
                number::count(pair.offered_packets),
                pair.delivered_packets.map_or_else(unknown, number::count),
                lost.unwrap_or_else(unknown),
            ]
        }));
    }
    rows
}

/// What each sender got done with each receiver over TCP or HTTP.
pub(crate) fn rates(run: &Run) -> Table {
    let mut rows = Table::new("variant | sender | receiver | #rate | #p99 | #errors");
    for variant in variants(run) {
        rows.rows.extend(run.manifest.pair_rates(variant).into_iter().map(|pair| {
            let p99 = pair.p99_us.map_or_else(|| "–".to_owned(), |us| number::seconds(us / 1e6));
            vec![
                variant.to_owned(),
                pair.sender,
                pair.receiver,
                number::metric(&pair.metric, pair.value),
                p99,
                number::count(pair.errors_count),
            ]
        }));
    }
    rows
}

/// Where the datagrams or segments to each receiver were lost.
fn losses(run: &Run) -> Table {
    let mut rows = Table::new("variant | receiver | place | unit | #lost");
    for variant in variants(run) {
        let unit = run.manifest.ledger_unit(variant).word();
        let all = run.manifest.receiver_losses(variant).into_iter();
        rows.rows.extend(all.map(|((receiver, place), loss)| {
            let place = place.words().short.into();
            vec![variant.to_owned(), receiver, place, unit.to_owned(), loss.text()]
        }));
    }
    rows
}

/// The worst grade of each host.
fn grades(run: &Run) -> Table {
    let mut rows = Table::new("variant | host | worst grade | why");
    for variant in variants(run) {
        let all = run.manifest.host_grades(variant).into_iter();
        rows.rows.extend(
            all.map(|(host, (grade, why))| {
                vec![variant.to_owned(), host, format!("{grade:?}"), why]
            }),
        );
    }
    rows
}

/// What the endpoint of each host cost in the windows.
fn costs(run: &Run) -> Table {
    let mut rows = Table::new("host | #endpoint, of one CPU | its CPUs | #control connection");
    rows.rows.extend(run.manifest.control_costs().into_iter().map(|(host, cost)| {
        let cpu = number::percent(cost.cpu_ratio(), 1.0);
        let cpus = if cost.cpus.is_empty() { "–".to_owned() } else { cost.cpus.to_string() };
        vec![host, cpu, cpus, format!("{}/s", number::bytes(cost.bytes_per_s()))]
    }));
    rows
}
