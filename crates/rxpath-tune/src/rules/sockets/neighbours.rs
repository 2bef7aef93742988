//! The neighbour tables, shared by all network namespaces.

use rxpath_core::number::grouped;
use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::neigh::NeighbourTable;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("neighbour-table", Check::Host(tables))];

/// The table's sysctls.
fn key(table: &NeighbourTable) -> Option<&'static str> {
    match table.name.as_str() {
        "arp_cache" => Some("net.ipv4.neigh.default.gc_thresh3"),
        "ndisc_cache" => Some("net.ipv6.neigh.default.gc_thresh3"),
        _ => None,
    }
}

fn tables(ask: &Ask<'_>) -> Checked {
    let tables = (&ask.facts.answers.neighbour_tables).known()?;
    let later = ask.facts.later_answers().and_then(|later| later.neighbour_tables.value());
    let mut told = Vec::new();
    for table in tables {
        let Some(key) = key(table) else { continue };
        let now = later.and_then(|all| all.iter().find(|one| one.name == table.name));
        if let Some(found) = full(ask, (table, now), key) {
            return found;
        }
        let (entries, most) = (now.unwrap_or(table).entries_count, table.most_entries);
        told.push(format!(
            "{}: {} entries, at most {}",
            table.name,
            grouped(entries.into()),
            grouped(most.into())
        ));
    }
    if told.is_empty() {
        return Err(Gap::Absent("neither arp_cache nor ndisc_cache is shown".into()));
    }
    Answer::fine(told.join("; "))
}

fn full(
    ask: &Ask<'_>,
    (table, now): (&NeighbourTable, Option<&NeighbourTable>),
    key: &str,
) -> Option<Checked> {
    let (entries, most) = (now.unwrap_or(table).entries_count, table.most_entries);
    let advice = format!(
        "{key}={} in the first network namespace, and gc_thresh2 to half of it",
        u64::from(most) * 4
    );
    let first = table.table_fulls_total.unwrap_or(0);
    let fulls = Count::of(Width::U64, first, now.and_then(|now| now.table_fulls_total));
    if fulls.evidence() == Evidence::Now {
        let found = Answer::found(
            format!(
                "{}: {}",
                table.name,
                ask.facts.watched.tell(fulls, "new neighbours refused", "boot")
            ),
            "none",
            "nothing can be sent to neighbours that are not in the table",
        );
        return Some(found.advice(advice).severity(Fail).rests_on(fulls, &ask.facts.watched));
    }
    // The count includes permanent entries: near the limit the table may still not be full.
    if u64::from(entries) * 10 < u64::from(most) * 9 {
        return None;
    }
    let found = Answer::found(
        format!("{}: {entries} entries, at most {most}", table.name),
        "less than nine tenths of the limit",
        "a full table refuses new neighbours; permanent entries do not count against the limit",
    );
    Some(found.advice(advice))
}
