//! The real hosts of a run: who sends and who receives, by which devices, how well their clocks are known, and what each
//! sent, got and suffered.

mod clocks;
mod topology;

use rxpath_record::manifest::Manifest;

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

/// What `of` finds for each variant, a row each that begins with its name.
fn by_variant<T, I: IntoIterator<Item = T>>(
    run: &Run,
    heads: &str,
    of: fn(&Manifest, &str) -> I,
    row: impl Fn(String, T) -> Vec<String>,
) -> Table {
    let mut table = Table::new(heads);
    for variant in &run.manifest.variants {
        let found = of(&run.manifest, &variant.name).into_iter();
        table.rows.extend(found.map(|it| row(variant.name.clone(), it)));
    }
    table
}

/// How far apart the senders started, in the counted trial in which it was most.
fn starts(run: &Run) -> Table {
    let heads = "variant | #senders started within";
    by_variant(run, heads, Manifest::start_spread, |variant, spread| vec![variant, spread.text()])
}

/// What each sender sent to each receiver, over the trials that count.
pub(crate) fn pairs(run: &Run) -> Table {
    let heads = "variant | sender | receiver | #offered | #delivered | #lost, of offered";
    by_variant(run, heads, Manifest::pairs, |variant, pair| {
        let lost = pair.lost_ratio().map(|ratio| number::percent(ratio, 1.0));
        let unknown = || "not known".to_owned();
        vec![
            variant,
            pair.sender,
            pair.receiver,
            number::count(pair.offered_packets),
            pair.delivered_packets.map_or_else(unknown, number::count),
            lost.unwrap_or_else(unknown),
        ]
    })
}

/// What each sender got done with each receiver over TCP or HTTP.
pub(crate) fn rates(run: &Run) -> Table {
    let heads = "variant | sender | receiver | #rate | #p99 | #errors";
    by_variant(run, heads, Manifest::pair_rates, |variant, pair| {
        let p99 = pair.p99_us.map_or_else(|| "–".to_owned(), |us| number::seconds(us / 1e6));
        vec![
            variant,
            pair.sender,
            pair.receiver,
            number::metric(&pair.metric, pair.value),
            p99,
            number::count(pair.errors_count),
        ]
    })
}

/// Where the datagrams or segments to each receiver were lost.
fn losses(run: &Run) -> Table {
    let heads = "variant | receiver | place | unit | #lost";
    by_variant(run, heads, Manifest::receiver_losses, |variant, ((receiver, place), loss)| {
        let unit = run.manifest.ledger_unit(&variant).word().to_owned();
        vec![variant, receiver, place.words().short.into(), unit, loss.text()]
    })
}

/// The worst grade of each host.
fn grades(run: &Run) -> Table {
    let heads = "variant | host | worst grade | why";
    by_variant(run, heads, Manifest::host_grades, |variant, (host, (grade, why))| {
        vec![variant, host, format!("{grade:?}"), why]
    })
}

/// What the endpoint of each host cost in the windows.
fn costs(run: &Run) -> Table {
    let rows = run.manifest.control_costs().into_iter().map(|(host, cost)| {
        let cpu = number::percent(cost.cpu_ratio(), 1.0);
        let cpus = if cost.cpus.is_empty() { "–".to_owned() } else { cost.cpus.to_string() };
        vec![host, cpu, cpus, format!("{}/s", number::bytes(cost.bytes_per_s()))]
    });
    Table::of("host | #endpoint, of one CPU | its CPUs | #control connection", rows)
}
