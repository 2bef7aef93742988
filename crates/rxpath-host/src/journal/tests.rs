use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Settings in memory; the journal file is checked to name each write before it happens.
struct Fake {
    values: BTreeMap<Target, String>,
    journal: PathBuf,
}

fn target(key: &str) -> Target {
    Target::Sysctl { key: key.into() }
}

impl Fake {
    fn new(journal: &Path) -> Self {
        let values = [("a", "1"), ("b", "2")].map(|(k, v)| (target(k), v.to_owned()));
        Self { values: values.into(), journal: journal.into() }
    }
}

impl Setter for Fake {
    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError> {
        Ok(self.values.get(target).cloned())
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<Change, HostError> {
        let text = fs::read_to_string(&self.journal).unwrap();
        assert!(
            text.contains(&format!("\"{target}\"")),
            "{target} must be on disk before it changes"
        );
        let before = self.values.insert(target.clone(), value.into());
        Ok(Change::judge(target.clone(), before, value, Some(value.into())))
    }
}

#[test]
fn undo_restores_in_reverse_order_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut fake = Fake::new(&path);
    let mut journal = Journal::open(&path).unwrap();
    for (key, value) in [("a", "10"), ("b", "20"), ("a", "11")] {
        journal.change(&mut fake, &target(key), value).unwrap();
    }
    drop(journal);
    let mut journal = Journal::open(&path).unwrap();
    assert_eq!(journal.entries().len(), 3);
    assert_eq!(journal.entries()[2].end.as_ref().unwrap().1, Outcome::Applied);
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!(undone.iter().map(|undo| undo.n).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!(fake.values, Fake::new(&path).values);
    assert!(journal.undo(&mut fake).unwrap().is_empty());
    assert!(Journal::open(&path).unwrap().undo(&mut fake).unwrap().is_empty());
    journal.remove().unwrap();
    assert!(!path.exists());
}

/// A crash at any byte: what was written up to there restores everything that can have changed.
#[test]
fn a_journal_cut_at_any_byte_still_undoes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut fake = Fake::new(&path);
    let mut journal = Journal::open(&path).unwrap();
    journal.change(&mut fake, &target("a"), "10").unwrap();
    journal.change(&mut fake, &target("b"), "20").unwrap();
    let whole = fs::read(&path).unwrap();
    let begins: Vec<usize> = (0..whole.len())
        .filter(|end| whole[..*end].ends_with(b"\n"))
        .map(|end| {
            whole[..end]
                .split(|b| *b == b'\n')
                .filter(|l| l.windows(7).any(|w| w == b"\"begin\""))
                .count()
        })
        .collect();
    assert_eq!(begins, [0, 1, 1, 2], "head, begin, end, begin (and the last end)");
    for end in 0..=whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let mut cut = Journal::open(&path).unwrap();
        // What is in force after a crash here: each change whose `begin` is whole may be.
        let mut fake = Fake::new(&path);
        for entry in cut.entries() {
            fake.values.insert(entry.target.clone(), entry.asked.clone());
        }
        assert!(cut.undo(&mut fake).unwrap().iter().all(|undo| undo.result.is_ok()));
        assert_eq!(fake.values, Fake::new(&path).values, "cut at {end}");
        // And the journal goes on after the cut.
        cut.change(&mut fake, &target("a"), "3").unwrap();
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.entries().last().unwrap().asked, "3");
    }
}

#[test]
fn an_earlier_boot_is_not_undone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fs::write(&path, "{\"step\":\"head\",\"v\":1,\"boot_id\":\"another\"}\n").unwrap();
    let error = Journal::open(&path).unwrap().undo(&mut Fake::new(&path)).unwrap_err();
    assert!(error.to_string().contains("restart"), "{error}");
}

#[test]
fn broken_and_newer_journals_are_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    for (text, words) in [
        ("{\"step\":\"head\",\"v\":2,\"boot_id\":\"x\"}\n", "newer rxpath"),
        ("hello\n", "not a journal"),
        ("{\"step\":\"head\",\"v\":1,\"boot_id\":\"x\"}\nnonsense\n{}\n", ":2:"),
        (
            "{\"step\":\"head\",\"v\":1,\"boot_id\":\"x\"}\n{\"step\":\"undone\",\"n\":4}\n",
            "never begun",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "a refused journal is not touched");
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(Path::new("x"), &bytes);
    }
}
