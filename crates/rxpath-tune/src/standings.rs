//! How the changes stand that `rxpath tune` made on this host: the counts of `rxpath tune verify`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rxpath_core::{Envelope, IntoMap};
use rxpath_host::HostError;
use rxpath_host::write::journal::Contents;
use rxpath_host::write::setter::HostSetter;
use serde::de::IgnoredAny;

use crate::store::{Store, StoredJournal};
use crate::verify::{Standing, UNREAD, UNREADABLE, Verified, verify};

/// Where `rxpath-check.service`, which is root, puts the answer of `rxpath tune verify --json`. The folder is root's, and a
/// boot empties it.
pub const SEEN_BY_ROOT: &str = "/run/rxpath-check/tune-verify.json";
/// An older answer is not used: the service runs once a day, at most an hour late.
const MOST_AGE: Duration = Duration::from_secs(26 * 3600);

/// How many changes stand in which way, by the names of all ways. Journals lie in this folder, and only root can read them:
/// for others this file has the counts. Without either a journal counts as a change.
pub fn standings(dir: &Path, seen_by_root: &Path) -> Vec<(&'static str, usize)> {
    let store = Store::at(dir);
    let mut all = words(&store);
    if all.contains(&UNREAD) {
        all = answered(&store, seen_by_root).unwrap_or(all);
    }
    let mut counts: BTreeMap<&'static str, usize> =
        Standing::WORDS.into_iter().map(|word| (word, 0)).into_map();
    for word in all {
        *counts.entry(word).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// The names in an answer of `rxpath tune verify --json`; `None` if it is old, or a journal was written after it.
fn answered(store: &Store, file: &Path) -> Option<Vec<&'static str>> {
    let at = modified(file)?;
    let is_recent = at.elapsed().is_ok_and(|age| age <= MOST_AGE);
    let is_before =
        |one: &StoredJournal| modified(&store.path(one.id)).is_some_and(|written| written < at);
    if !is_recent || !store.list().ok()?.iter().all(is_before) {
        return None;
    }
    let text = fs::read(file).ok()?;
    let answer: Envelope<IgnoredAny, Vec<Verified>> = serde_json::from_slice(&text).ok()?;
    let unread = answer.warnings.iter().filter(|warning| warning.code == UNREADABLE);
    let changes = answer.result.iter().map(|one| one.standing.word());
    Some(changes.chain(unread.map(|_| UNREAD)).collect())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// The name of each change's standing.
fn words(store: &Store) -> Vec<&'static str> {
    // Before the list, as `tune verify` does: a writer that ends in between has recorded its progress.
    let is_held = store.is_held();
    let Ok(listed) = store.list() else { return vec![UNREAD] };
    let open = listed.into_iter().filter(StoredJournal::is_open);
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
    use rxpath_host::Root;
    use rxpath_host::read::identity::{boot_id, network_namespace};
    use serde_json::json;

    use super::*;

    const SETTING: &str = "net.ipv4.udp_rmem_min";

    fn count(dir: &Path, word: &str) -> usize {
        let all = standings(dir, &dir.join("seen"));
        all.iter().find(|(of, _)| *of == word).unwrap().1
    }

    #[test]
    fn each_change_counts_as_it_stands_and_a_journal_that_cannot_be_read_as_unread() {
        let dir = tempfile::tempdir().unwrap();
        let none = standings(&dir.path().join("none"), &dir.path().join("seen"));
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

    fn set_age(path: &Path, hours: u64) {
        let at = SystemTime::now() - Duration::from_secs(hours * 3600);
        fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn what_root_saw_counts_where_a_journal_cannot_be_read_unless_it_is_old_or_from_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, seen) = (Store::at(dir.path()).path(1), dir.path().join("seen"));
        let counts = || ["drifted", "holds", UNREAD].map(|word| count(dir.path(), word));
        let changed = |standing: Standing| Verified {
            target: SETTING.into(),
            asked: "1".into(),
            now: None,
            standing,
        };
        let result = [Standing::Drifted, Standing::Drifted, Standing::Holds].map(changed);
        let warnings =
            [UNREADABLE, "being-applied"].map(|code| rxpath_core::Warning::new(code, ""));
        let answer = Envelope::new("tune-verify", json!({"id": null}), result, warnings.into());
        fs::write(&seen, serde_json::to_string(&answer).unwrap()).unwrap();
        assert_eq!(counts(), [0, 0, 0], "no journal, no change");
        fs::write(&journal, "garbage\n").unwrap();
        for (ages, wanted) in [
            // Hours since the journal was written, and since root looked.
            ((30, 25), [2, 1, 1]),
            ((30, 27), [0, 0, 1]),
            ((2, 3), [0, 0, 1]),
            ((3, 2), [2, 1, 1]),
        ] {
            set_age(&journal, ages.0);
            set_age(&seen, ages.1);
            assert_eq!(counts(), wanted, "{ages:?}");
        }
        fs::write(&seen, "{\"schema\":").unwrap();
        set_age(&seen, 1);
        assert_eq!(counts(), [0, 0, 1], "an answer that is cut off");
        fs::remove_file(&seen).unwrap();
        assert_eq!(counts(), [0, 0, 1], "no answer");
    }
}
