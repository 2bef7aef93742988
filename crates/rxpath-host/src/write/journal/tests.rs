mod foreign;

use std::collections::BTreeMap;

use proptest::prelude::*;

use std::time::Duration;

use super::*;
use crate::any_bytes::takes_any_bytes;
use crate::pairs::Pairs;
use crate::write::setter::LinkAway;

/// Settings in memory; the journal file is checked to name each write before it happens.
struct Fake {
    values: BTreeMap<Target, String>,
    journal: PathBuf,
    /// Devices by index.
    devices: BTreeMap<u32, String>,
    /// Writes to this target fail.
    broken: Option<Target>,
    /// Reads of this target fail with this number.
    unreadable: Option<(Target, i32)>,
    /// A write to a device takes its link away, and the driver sets this back while it comes again.
    bounces: Option<(Target, String)>,
    /// A write to the first makes the second this.
    takes_along: Option<(Target, Target, String)>,
    /// Takes effect later: when.
    later: Option<&'static str>,
}

fn target(key: &str) -> Target {
    Target::Sysctl { key: format!("net.core.{key}") }
}

impl Fake {
    fn new(journal: &Path) -> Self {
        let values = [("a", "1"), ("b", "2")].map(|(k, v)| (target(k), v.to_owned()));
        let devices = [(7, "eth0".to_owned())].into();
        Self {
            values: values.into(),
            journal: journal.into(),
            devices,
            broken: None,
            unreadable: None,
            bounces: None,
            takes_along: None,
            later: None,
        }
    }
}

impl Setter for Fake {
    fn identify(&mut self, target: &Target) -> Result<Option<Identity>, HostError> {
        let Some(dev) = target.device() else { return Ok(None) };
        let index = self.devices.iter().find(|(_, name)| *name == dev).map(|(index, _)| *index);
        Ok(index.map(|index| Identity::Device { index }))
    }

    fn locate(&mut self, target: &Target, was: &Identity) -> Result<Option<Target>, HostError> {
        let Identity::Device { index } = was else { return Ok(None) };
        Ok(self.devices.get(index).map(|name| target.clone().on_device(name)))
    }

    fn pending(&mut self, _target: &Target, _value: &str) -> Option<String> {
        self.later.map(str::to_owned)
    }

    fn has_carrier(&mut self, target: &Target) -> bool {
        target.device().is_some()
    }

    fn await_carrier(&mut self, _target: &Target) -> Option<LinkAway> {
        let (target, value) = self.bounces.clone()?;
        self.values.insert(target, value);
        Some(LinkAway { waited: Duration::from_millis(700), is_back: true })
    }

    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError> {
        match &self.unreadable {
            Some((of, errno)) if of == target => Err(HostError::kernel("read", *errno)),
            _ => Ok(self.values.get(target).cloned()),
        }
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        let text = fs::read_to_string(&self.journal).unwrap();
        let known = target.clone().on_device("eth0");
        assert!(
            text.contains(&format!("\"{known}\"")),
            "{target} must be on disk before it changes"
        );
        if self.broken.as_ref() == Some(target) {
            return Err(HostError::kernel("set", libc::EBUSY));
        }
        let before = self.values.get(target).cloned().unwrap_or_default();
        let now = before.parse::<Pairs>().unwrap_or_default();
        if target.has_parts() {
            let asked: Pairs = value.parse().unwrap();
            let word =
                |(name, old): (&str, &str)| format!("{name}={}", asked.get(name).unwrap_or(old));
            let words: Vec<String> = now.iter().map(word).collect();
            self.values.insert(target.clone(), words.join(" "));
        } else {
            self.values.insert(target.clone(), value.into());
        }
        if let Some((_, other, value)) = self.takes_along.clone().filter(|(of, ..)| of == target) {
            self.values.insert(other, value);
        }
        Ok(())
    }
}

/// A journal in a directory of its own.
fn begun() -> (tempfile::TempDir, PathBuf, Fake, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (fake, journal) = (Fake::new(&path), Journal::open(&path).unwrap());
    (dir, path, fake, journal)
}

/// The same of a host that has a setting with this value.
fn begun_with(name: &str, value: &str) -> (tempfile::TempDir, Fake, Journal, Target) {
    let (dir, _, mut fake, journal) = begun();
    let target: Target = name.parse().unwrap();
    fake.values.insert(target.clone(), value.into());
    (dir, fake, journal, target)
}

#[test]
fn what_is_accepted_and_takes_effect_later_is_pending_and_undone_all_the_same() {
    let (_dir, path, mut fake, mut journal) = begun();
    fake.later = Some("the next interrupt");
    let change = journal.change(&mut fake, &target("a"), "5", &[]).unwrap();
    assert_eq!(change.outcome, ChangeOutcome::Pending { until: "the next interrupt".into() });
    let kept = Contents::read(&path).unwrap().unwrap();
    assert!(kept.is_open(), "it may come into force");
    assert_eq!(kept.entries[0].end, Some((Some("5".into()), change.outcome)));
    assert!(journal.undo(&mut fake).unwrap()[0].is_whole());
    assert_eq!(fake.values[&target("a")], "1");
}

#[test]
fn undo_restores_in_reverse_order_and_once() {
    let (_dir, path, mut fake, mut journal) = begun();
    for (key, value) in [("a", "10"), ("b", "20"), ("a", "11")] {
        journal.change(&mut fake, &target(key), value, &[]).unwrap();
    }
    drop(journal);
    let mut journal = Journal::open(&path).unwrap();
    assert_eq!(journal.entries().len(), 3);
    assert_eq!(journal.entries()[2].end.as_ref().unwrap().1, ChangeOutcome::Applied);
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!(undone.iter().map(|undo| undo.n).collect::<Vec<_>>(), [2, 1, 0]);
    assert!(undone.iter().all(Undo::is_whole), "{undone:?}");
    assert_eq!(fake.values, Fake::new(&path).values);
    assert!(journal.undo(&mut fake).unwrap().is_empty());
    assert!(Journal::open(&path).unwrap().undo(&mut fake).unwrap().is_empty());
    assert!(!journal.contents().is_open());
    journal.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn what_has_the_value_already_is_not_written() {
    let (_dir, _, mut fake, mut journal) = begun();
    let change = journal.change(&mut fake, &target("a"), "1", &[]).unwrap();
    assert_eq!((change.outcome, journal.entries().len()), (ChangeOutcome::Applied, 0));
}

#[test]
fn what_cant_be_read_is_not_changed() {
    let (_dir, _, mut fake, mut journal) = begun();
    let error = journal.change(&mut fake, &target("flush"), "1", &[]).unwrap_err();
    assert!(error.to_string().contains("could not be undone"), "{error}");
    assert!(!fake.values.contains_key(&target("flush")));
}

#[test]
fn a_group_and_what_it_took_along_are_restored() {
    let (_dir, _, mut fake, mut journal) = begun();
    let group: Target = "eth0/features".parse().unwrap();
    let rps: Target = "eth0/queues/rx-0/rps_cpus".parse().unwrap();
    fake.values.insert(group.clone(), "rx-gro=on sg=on".into());
    fake.values.insert(rps.clone(), "3".into());
    let before = fake.values.clone();
    fake.takes_along = Some((group.clone(), rps.clone(), "0".into()));
    let change = journal.change(&mut fake, &group, "sg=off", std::slice::from_ref(&rps)).unwrap();
    assert_eq!(change.before.as_deref(), Some("sg=on"));
    assert_eq!(fake.values[&rps], "0");
    assert!(journal.undo(&mut fake).unwrap()[0].is_whole());
    assert_eq!(fake.values, before);
}

#[test]
fn values_are_read_back_when_the_link_is_there_again() {
    let (_dir, mut fake, mut journal, threaded) = begun_with("eth0/threaded", "0");
    fake.bounces = Some((threaded.clone(), "0".into()));
    let change = journal.change(&mut fake, &threaded, "1", &[]).unwrap();
    assert_eq!(
        change.outcome,
        ChangeOutcome::Ignored,
        "read back too early, it would have been applied"
    );
    assert_eq!(change.link.as_deref(), Some("its link was down for 0.7 s"));
    let change = journal.change(&mut fake, &target("a"), "2", &[]).unwrap();
    assert_eq!(change.link, None, "no device, no link");
}

#[test]
fn a_renamed_device_is_found_and_a_gone_one_is_told() {
    let (_dir, _, mut fake, mut journal) = begun();
    let old: Target = "eth0/threaded".parse().unwrap();
    let new: Target = "lan0/threaded".parse().unwrap();
    fake.values.insert(old.clone(), "0".into());
    journal.change(&mut fake, &old, "1", &[]).unwrap();
    // Another device has the name now.
    fake.devices = [(7, "lan0".into()), (9, "eth0".into())].into();
    fake.values.insert(new.clone(), "1".into());
    fake.values.insert(old.clone(), "1".into());
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!((&undone[0].target, &undone[0].restored), (&new, &Restored::Yes));
    assert_eq!(fake.values[&new], "0");
    assert_eq!(fake.values[&old], "1", "a stranger of the same name is not touched");

    journal.change(&mut fake, &new, "1", &[]).unwrap();
    fake.devices.clear();
    let undone = journal.undo(&mut fake).unwrap();
    let Restored::Gone { why } = &undone[0].restored else { panic!("{undone:?}") };
    assert!(why.contains("index 7 is gone"), "{why}");
    assert!(journal.contents().is_open(), "it may come back");
    journal.forget().unwrap();
    assert!(!journal.contents().is_open());
}

/// The ends of a link agree upon its speed when they see each other again: what was chosen is back before that.
#[test]
fn a_link_that_is_still_down_is_undone_once_what_it_offers_is_back() {
    let (_dir, mut fake, mut journal, link) =
        begun_with("eth0/link-modes", "autoneg=on speed=1000 duplex=full 100baseT/Full=on");
    journal.change(&mut fake, &link, "autoneg=off", &[]).unwrap();
    let down = "autoneg=on speed=unknown duplex=unknown 100baseT/Full=on";
    fake.bounces = Some((link.clone(), down.into()));
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!((&undone[0].restored, &undone[0].foreign), (&Restored::Yes, &None), "{undone:?}");
    assert!(!journal.contents().is_open());

    fake.bounces = None;
    journal.change(&mut fake, &link, "autoneg=off", &[]).unwrap();
    // What is offered is a choice: without it the link is not as it was.
    fake.bounces = Some((link, down.replace("100baseT/Full=on", "100baseT/Full=off")));
    let undone = journal.undo(&mut fake).unwrap();
    assert!(matches!(undone[0].restored, Restored::No { .. }), "{undone:?}");
}

#[test]
fn a_change_by_somebody_else_is_told_and_undone() {
    let (_dir, _, mut fake, mut journal) = begun();
    journal.change(&mut fake, &target("a"), "10", &[]).unwrap();
    fake.values.insert(target("a"), "12".into());
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!(undone[0].foreign.as_deref(), Some("12"));
    assert_eq!(fake.values[&target("a")], "1");
}

/// After a failure in the middle a second undo must not bring back a value from in between.
#[test]
fn a_second_undo_after_a_failure_keeps_to_the_oldest_value() {
    let (_dir, _, mut fake, mut journal) = begun();
    journal.change(&mut fake, &target("a"), "10", &[]).unwrap();
    journal.change(&mut fake, &target("a"), "11", &[]).unwrap();
    fake.broken = Some(target("a"));
    let undone = journal.undo(&mut fake).unwrap();
    assert!(undone.iter().all(|undo| matches!(undo.restored, Restored::No { .. })), "{undone:?}");
    fake.broken = None;
    // As if the first of them had worked.
    fake.values.insert(target("a"), "1".into());
    let undone = journal.undo(&mut fake).unwrap();
    assert_eq!(fake.values[&target("a")], "1", "{undone:?}");
    assert!(!journal.contents().is_open());
}

/// A crash at any byte: what was written up to there restores everything that can have changed.
#[test]
fn a_journal_cut_at_any_byte_still_undoes() {
    let (_dir, path, mut fake, mut journal) = begun();
    journal.change(&mut fake, &target("a"), "10", &[]).unwrap();
    journal.change(&mut fake, &target("b"), "20", &[]).unwrap();
    let whole = fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let begins = |text: &str| text.matches("\"begin\"").count();
    let by_line: Vec<usize> =
        text.match_indices('\n').map(|(end, _)| begins(&text[..end])).collect();
    assert_eq!(by_line, [0, 1, 1, 2, 2], "head, begin, end, begin, end");
    for end in 0..=whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let mut cut = Journal::open(&path).unwrap();
        // What is in force after a crash here: each change whose `begin` is whole may be.
        let mut fake = Fake::new(&path);
        for entry in cut.entries() {
            fake.values.insert(entry.target.clone(), entry.asked.clone());
        }
        assert!(cut.undo(&mut fake).unwrap().iter().all(Undo::is_whole));
        assert_eq!(fake.values, Fake::new(&path).values, "cut at {end}");
        // And the journal goes on after the cut.
        cut.change(&mut fake, &target("a"), "3", &[]).unwrap();
        let again = Journal::open(&path).unwrap();
        assert_eq!(again.entries().last().unwrap().asked, "3");
    }
}

#[test]
fn watch_and_confirmation_are_kept() {
    let (_dir, path, _, mut journal) = begun();
    let process = ProcessId { pid: 7, start_ticks: 8 };
    let watch =
        Watch { process, applier: process, deadline_ns: 9, while_alive: false, is_final: false };
    journal.watch(watch).unwrap();
    journal.watch(Watch { deadline_ns: 10, ..watch }).unwrap();
    let read = Contents::read(&path).unwrap().unwrap();
    assert_eq!(read.watch.map(|watch| watch.deadline_ns), Some(10));
    assert!(!read.confirmed);
    journal.confirm().unwrap();
    assert!(Contents::read(&path).unwrap().unwrap().confirmed);
}

#[test]
fn an_earlier_boot_and_another_namespace_are_not_undone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fs::write(&path, "{\"step\":\"head\",\"v\":1,\"boot_id\":\"another\",\"netns\":1}\n").unwrap();
    let error = Journal::open(&path).unwrap().undo(&mut Fake::new(&path)).unwrap_err();
    assert!(error.to_string().contains("restart"), "{error}");
    let boot = boot_id().unwrap();
    let head = format!("{{\"step\":\"head\",\"v\":1,\"boot_id\":\"{boot}\",\"netns\":1}}\n");
    fs::write(&path, head).unwrap();
    let error = Journal::open(&path).unwrap().undo(&mut Fake::new(&path)).unwrap_err();
    assert!(error.to_string().contains("net:[1]"), "{error}");
}

#[test]
fn broken_and_newer_journals_are_refused_in_words() {
    const HEAD: &str = "{\"step\":\"head\",\"v\":1,\"boot_id\":\"x\",\"netns\":1}\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    for (text, words) in [
        ("{\"step\":\"head\",\"v\":3,\"boot_id\":\"x\"}\n".to_owned(), "newer rxpath"),
        ("hello\n".to_owned(), "not a journal"),
        (format!("{HEAD}nonsense\n{{}}\n"), ":2:"),
        (format!("{HEAD}{{\"step\":\"undone\",\"n\":4}}\n"), "never begun"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "a refused journal is not touched");
    }
}

takes_any_bytes!(300, bytes => parse(Path::new("x"), &bytes));

proptest! {
    /// Whatever is changed in whatever order, cut short at whatever change: undo is the way back.
    #[test]
    fn any_sequence_of_changes_and_undos_is_undone(
        steps in proptest::collection::vec((0..4usize, 0..6u32, any::<bool>()), 0..12)
    ) {
        let (_dir, path, mut fake, _) = begun();
        let group: Target = "eth0/rings".parse().unwrap();
        fake.values.insert(group.clone(), "rx=1 tx=2".into());
        let original = fake.values.clone();
        for (which, value, undo) in steps {
            let mut journal = Journal::open(&path).unwrap();
            let (target, text) = match which {
                0 => (target("a"), value.to_string()),
                1 => (target("b"), value.to_string()),
                2 => (group.clone(), format!("rx={value}")),
                _ => (group.clone(), format!("rx={value} tx={value}")),
            };
            journal.change(&mut fake, &target, &text, std::slice::from_ref(&group)).unwrap();
            if undo {
                journal.undo(&mut fake).unwrap();
                prop_assert_eq!(&fake.values, &original);
            }
        }
        Journal::open(&path).unwrap().undo(&mut fake).unwrap();
        prop_assert_eq!(&fake.values, &original);
    }
}

/// What a change may take along and cannot be read now could not be undone: nothing is written.
#[test]
fn a_side_effect_that_cannot_be_read_stops_the_change() {
    let (_dir, _, mut fake, mut journal) = begun();
    fake.unreadable = Some((target("b"), libc::EBUSY));
    let refused = journal.begin(&mut fake, &target("a"), ("1", "5"), &[target("b")]);
    assert!(refused.is_err(), "{refused:?}");
    assert!(journal.entries().is_empty());
    // A device without the setting has nothing to take along.
    fake.unreadable = Some((target("b"), libc::EOPNOTSUPP));
    journal.begin(&mut fake, &target("a"), ("1", "5"), &[target("b")]).unwrap();
    assert!(journal.entries()[0].coupled.is_empty());
}

#[test]
fn a_journal_that_begins_again_forgets_what_was_undone_and_keeps_its_order() {
    let (_dir, path, mut fake, mut journal) = begun();
    let process = ProcessId { pid: 7, start_ticks: 8 };
    let watch =
        Watch { process, applier: process, deadline_ns: 9, while_alive: true, is_final: true };
    journal.watch(watch).unwrap();
    for round in 0..3 {
        journal.change(&mut fake, &target("a"), "7", &[]).unwrap();
        journal.undo(&mut fake).unwrap();
        journal.restart().unwrap();
        let read = Contents::read(&path).unwrap().unwrap();
        assert_eq!((read.entries.len(), read.watch), (0, Some(watch)), "round {round}");
    }
    // What comes after it is undone as ever, also by another who opens the file.
    journal.change(&mut fake, &target("b"), "9", &[]).unwrap();
    drop(journal);
    let mut again = Journal::open(&path).unwrap();
    assert!(again.contents().is_open());
    assert!(again.undo(&mut fake).unwrap().iter().all(Undo::is_whole));
    assert_eq!(fake.values, Fake::new(&path).values);
}
