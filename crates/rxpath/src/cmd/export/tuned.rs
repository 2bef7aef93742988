//! How the changes stand that `rxpath tune` made on this host: the counts of `rxpath tune verify`.

use std::collections::BTreeMap;
use std::path::Path;

use rxpath_core::IntoMap;
use rxpath_host::HostError;
use rxpath_host::journal::Contents;
use rxpath_host::setter::HostSetter;
use rxpath_tune::store::{Listed, Store};
use rxpath_tune::verify::{Standing, UNREAD, verify};

/// How many changes stand in which way, by the names of all ways. Journals lie in this folder; one that can't be read, which
/// only root can, counts as a change.
pub(super) fn standings(dir: &Path) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<&'static str, usize> =
        Standing::WORDS.into_iter().map(|word| (word, 0)).into_map();
    for word in words(&Store::at(dir)) {
        *counts.entry(word).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// The name of each change's standing.
fn words(store: &Store) -> Vec<&'static str> {
    // Before the list, as `tune verify` does: a writer that ends in between has recorded its progress.
    let is_held = store.is_held();
    let Ok(listed) = store.list() else { return vec![UNREAD] };
    let open = listed.into_iter().filter(Listed::is_open);
    open.flat_map(|one| of(one.contents, is_held).unwrap_or_else(|_| vec![UNREAD])).collect()
}

/// Those of one journal; none of another boot or network namespace.
fn of(
    contents: Result<Contents, HostError>,
    is_held: bool,
) -> Result<Vec<&'static str>, HostError> {
    let contents = contents?;
    let contents = if is_held { contents.being_written() } else { contents };
    if contents.elsewhere()?.is_some() {
        return Ok(Vec::new());
    }
    let all = verify(&mut HostSetter::default(), &contents);
    Ok(all.iter().map(|one| one.standing.word()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rxpath_host::Root;
    use rxpath_host::identity::network_namespace;
    use rxpath_host::owner::boot_id;

    use super::*;

    const SETTING: &str = "net.ipv4.udp_rmem_min";

    fn count(dir: &Path, word: &str) -> usize {
        standings(dir).iter().find(|(of, _)| *of == word).unwrap().1
    }

    #[test]
    fn each_change_counts_as_it_stands_and_a_journal_that_cannot_be_read_as_unread() {
        let dir = tempfile::tempdir().unwrap();
        let none = standings(&dir.path().join("none"));
        assert_eq!(none.len(), Standing::WORDS.len());
        assert!(none.iter().all(|(_, count)| *count == 0), "{none:?}");
        let boot_id = boot_id().unwrap();
        let netns = network_namespace().unwrap();
        let now = Root::host().value("/proc/sys/net/ipv4/udp_rmem_min").unwrap();
        let write = |id: u32, asked: &str| {
            let head = format!(
                "{{\"step\":\"head\",\"v\":1,\"boot_id\":\"{boot_id}\",\"netns\":{netns}}}\n"
            );
            let begin = format!(
                "{{\"step\":\"begin\",\"n\":0,\"target\":\"{SETTING}\",\"before\":\"1\",\"asked\":\"{asked}\"}}\n"
            );
            fs::write(Store::at(dir.path()).path(id), head + &begin).unwrap();
        };
        write(1, &now);
        write(2, "123457");
        assert_eq!((count(dir.path(), "holds"), count(dir.path(), "drifted")), (1, 1));
        fs::write(Store::at(dir.path()).path(3), "garbage\n").unwrap();
        assert_eq!(count(dir.path(), UNREAD), 1);
    }
}
