//! A drop: how many, where, for which port, and the remedy for frequent reasons.

use rxpath_core::number::si;
use rxpath_record::watch::DropRow;

pub(super) fn words(drop: &DropRow) -> Vec<String> {
    let named = [&drop.reason, &drop.place, &drop.source];
    let known = remedies().find(|(word, _)| named.iter().any(|name| name.contains(word)));
    let mut words = vec![counted(drop)];
    words.push(known.map_or_else(
        || "No remedy is known under this name: see the function in the kernel's source for when it drops.".into(),
        |(word, what)| format!("{word}: {what}"),
    ));
    words
}

fn counted(drop: &DropRow) -> String {
    let known = [
        (!drop.reason.is_empty()).then(|| format!(", reason {}", drop.reason)),
        (!drop.device.is_empty()).then(|| format!(", from {}", drop.device)),
        (drop.port != 0).then(|| format!(", for {} port {}", drop.transport, drop.port)),
        (!drop.processes.is_empty()).then(|| format!(", open in {}", drop.processes.join(", "))),
    ];
    format!(
        "{} packets/s, {} since watching began, at {}{}.",
        si(drop.packets_pps),
        drop.packets_total,
        drop.place,
        known.into_iter().flatten().collect::<String>()
    )
}

/// Frequent reasons and counters, each with the remedy: `WORDS: REMEDY`. The first match is shown.
pub fn remedies() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("remedies.txt").lines().filter_map(|line| line.split_once(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_names_a_reason_and_its_remedy() {
        assert_eq!(remedies().count(), include_str!("remedies.txt").lines().count());
        assert!(remedies().all(|(words, remedy)| !words.is_empty() && remedy.ends_with('.')));
    }
}
