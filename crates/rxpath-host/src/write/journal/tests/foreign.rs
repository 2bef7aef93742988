//! What others changed since a change, and what the change had left alone.

use super::*;

const LINK: &str = "mtu=1500 txqueuelen=1000 gso=65536";

/// A journal with one change of the MTU, which took a mask along and left another alone.
struct Case {
    _dir: tempfile::TempDir,
    fake: Fake,
    journal: Journal,
    link: Target,
    taken: Target,
    left: Target,
}

impl Case {
    fn new() -> Self {
        let (dir, _, mut fake, mut journal) = begun();
        let of = |name: &str| -> Target { name.parse().unwrap() };
        let (link, taken, left) =
            (of("eth0/link"), of("eth0/queues/rx-0/rps_cpus"), of("eth0/queues/rx-1/rps_cpus"));
        fake.values.insert(link.clone(), LINK.into());
        fake.values.insert(taken.clone(), "3".into());
        fake.values.insert(left.clone(), "3".into());
        fake.takes_along = Some((link.clone(), taken.clone(), "0".into()));
        journal.change(&mut fake, &link, "mtu=1400", &[taken.clone(), left.clone()]).unwrap();
        fake.takes_along = None;
        Self { _dir: dir, fake, journal, link, taken, left }
    }

    fn by_others(&mut self, target: &Target, value: &str) {
        self.fake.values.insert(target.clone(), value.into());
    }

    fn undo(&mut self, manner: Manner) -> Undo {
        self.journal.undo_as(&mut self.fake, manner).unwrap().remove(0)
    }

    fn now(&self, target: &Target) -> &str {
        &self.fake.values[target]
    }
}

#[test]
fn values_that_the_change_left_alone_stay_as_others_made_them() {
    let mut case = Case::new();
    let (link, left) = (case.link.clone(), case.left.clone());
    case.by_others(&link, "mtu=1400 txqueuelen=4242 gso=1");
    case.by_others(&left, "2");
    let undone = case.undo(Manner::default());
    assert_eq!((undone.value.as_str(), undone.foreign), ("mtu=1500", None));
    assert!(undone.foreign_coupled.is_empty());
    assert_eq!(case.now(&link), "mtu=1500 txqueuelen=4242 gso=1");
    assert_eq!((case.now(&case.taken), case.now(&left)), ("3", "2"));
    assert!(!case.journal.contents().is_open());
}

#[test]
fn what_the_undoing_takes_along_is_put_back() {
    let mut case = Case::new();
    let left = case.left.clone();
    case.by_others(&left, "2");
    case.fake.takes_along = Some((case.link.clone(), left.clone(), "0".into()));
    case.undo(Manner::default());
    assert_eq!(case.now(&left), "2");
}

#[test]
fn what_others_made_of_the_change_is_named_and_undone() {
    let mut case = Case::new();
    let (link, taken) = (case.link.clone(), case.taken.clone());
    case.by_others(&link, "mtu=1300 txqueuelen=7 gso=65536");
    case.by_others(&taken, "c");
    let undone = case.undo(Manner::default());
    assert_eq!(undone.foreign.as_deref(), Some("mtu=1300"));
    assert_eq!(undone.foreign_coupled, [(taken.clone(), "c".to_owned())]);
    assert_eq!(case.now(&link), "mtu=1500 txqueuelen=7 gso=65536");
    assert_eq!(case.now(&taken), "3");
}

#[test]
fn what_others_made_of_the_change_may_stay() {
    let mut case = Case::new();
    let (link, taken) = (case.link.clone(), case.taken.clone());
    case.by_others(&link, "mtu=1300 txqueuelen=1000 gso=65536");
    case.by_others(&taken, "c");
    let undone = case.undo(Manner { keeps_foreign: true, ..Manner::default() });
    assert_eq!((&undone.restored, undone.foreign.as_deref()), (&Restored::Kept, Some("mtu=1300")));
    assert_eq!((case.now(&link), case.now(&taken)), ("mtu=1300 txqueuelen=1000 gso=65536", "c"));
    assert!(!case.journal.contents().is_open(), "it is closed: nothing of it is left to undo");
}

#[test]
fn of_a_group_only_what_others_changed_stays() {
    let (_dir, mut fake, mut journal, link) = begun_with("eth0/link", LINK);
    journal.change(&mut fake, &link, "mtu=1400 txqueuelen=500", &[]).unwrap();
    fake.values.insert(link.clone(), "mtu=1400 txqueuelen=7 gso=65536".into());
    let manner = Manner { keeps_foreign: true, ..Manner::default() };
    let undone = journal.undo_as(&mut fake, manner).unwrap();
    assert_eq!(undone[0].restored, Restored::Yes);
    assert_eq!(fake.values[&link], "mtu=1500 txqueuelen=7 gso=65536");
}

#[test]
fn a_rehearsal_tells_all_and_writes_nothing() {
    let mut case = Case::new();
    let (link, taken) = (case.link.clone(), case.taken.clone());
    case.by_others(&taken, "c");
    let before = case.fake.values.clone();
    let told = case.undo(Manner { is_rehearsal: true, ..Manner::default() });
    assert_eq!((told.restored, told.value.as_str()), (Restored::Yes, "mtu=1500"));
    assert_eq!(told.foreign_coupled, [(taken, "c".to_owned())]);
    assert_eq!(case.fake.values, before);
    assert!(case.journal.contents().is_open());
    case.undo(Manner::default());
    assert_eq!(case.now(&link), LINK);
}

/// Two changes of one setting: the second is undone in the rehearsal before the first is looked at.
#[test]
fn a_rehearsal_takes_no_change_of_its_own_for_anothers() {
    let (_dir, _, mut fake, mut journal) = begun();
    journal.change(&mut fake, &target("a"), "10", &[]).unwrap();
    journal.change(&mut fake, &target("a"), "11", &[]).unwrap();
    let manner = Manner { is_rehearsal: true, ..Manner::default() };
    let told = journal.undo_as(&mut fake, manner).unwrap();
    assert!(told.iter().all(|undo| undo.foreign.is_none()), "{told:?}");
    assert_eq!(told.iter().map(|undo| undo.value.as_str()).collect::<Vec<_>>(), ["10", "1"]);
    assert_eq!(fake.values[&target("a")], "11");
}

#[test]
fn a_name_with_a_blank_is_undone_by_that_name() {
    let (_dir, mut fake, mut journal, flags) = begun_with("eth0/priv-flags", "tx%20push=off rx=on");
    journal.change(&mut fake, &flags, "tx%20push=on", &[]).unwrap();
    let undone = journal.undo(&mut fake).unwrap().remove(0);
    assert_eq!((undone.value.as_str(), undone.restored), ("tx%20push=off", Restored::Yes));
    assert_eq!(fake.values[&flags], "tx%20push=off rx=on");
}

#[test]
fn a_name_with_a_blank_is_that_name_next_to_what_others_changed() {
    let (_dir, mut fake, mut journal, flags) =
        begun_with("eth0/priv-flags", "tx%20push=off rx=off");
    journal.change(&mut fake, &flags, "tx%20push=on rx=on", &[]).unwrap();
    fake.values.insert(flags.clone(), "tx%20push=on rx=auto".into());
    let manner = Manner { keeps_foreign: true, ..Manner::default() };
    let undone = journal.undo_as(&mut fake, manner).unwrap().remove(0);
    assert_eq!((undone.value.as_str(), undone.restored), ("tx%20push=off", Restored::Yes));
    assert_eq!(fake.values[&flags], "tx%20push=off rx=auto");
}

/// What the rehearsal of the later change keeps of the flags is what the earlier one left.
#[test]
fn a_rehearsal_takes_a_name_with_a_blank_for_no_other_name() {
    let (_dir, mut fake, mut journal, flags) =
        begun_with("eth0/priv-flags", "tx%20push=off rx=off");
    journal.change(&mut fake, &flags, "tx%20push=on", &[]).unwrap();
    journal.change(&mut fake, &flags, "rx=on", &[]).unwrap();
    let manner = Manner { is_rehearsal: true, ..Manner::default() };
    let told = journal.undo_as(&mut fake, manner).unwrap();
    let is_plain = |undo: &Undo| undo.restored == Restored::Yes && undo.foreign.is_none();
    assert!(told.len() == 2 && told.iter().all(is_plain), "{told:?}");
}
