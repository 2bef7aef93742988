//! Waiting for a confirmation that may never come, and undoing then.
//!
//! The one who waits is a process of its own: it outlives the terminal and the program that made the changes, and needs
//! nothing of them but the journal.

use std::path::Path;
use std::time::Duration;

use rxpath_host::HostError;
use rxpath_host::read::clock::boottime_ns;
use rxpath_host::write::journal::{Contents, Journal, Undo, Watch};
use rxpath_host::write::setter::Setter;

use crate::store::Store;

/// How often the journal is looked at. Nobody measures while a change waits for its confirmation.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a process that makes changes may hold the lock beyond the deadline before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// The deadline of a [`Watch`] that much from now. **Unit** ns of `CLOCK_BOOTTIME`.
pub fn deadline_ns(within: Duration) -> Result<u64, HostError> {
    Ok(boottime_ns()? + within.as_nanos() as u64)
}

/// How the waiting ended.
#[derive(Debug)]
pub enum WatchdogOutcome {
    /// The changes were confirmed.
    Confirmed,
    /// Somebody else has undone them, or there were none.
    Finished,
    /// The time was up: this was undone.
    Undone(Vec<Undo>),
}

/// What there is to do for a journal now.
enum Next {
    Wait,
    TimeIsUp(Watch),
    Nothing(WatchdogOutcome),
}

fn next(contents: &Contents) -> Result<Next, HostError> {
    if contents.confirmed {
        return Ok(Next::Nothing(WatchdogOutcome::Confirmed));
    }
    let held = contents.watch.filter(|watch| watch.while_alive);
    let is_held = held.is_some_and(|watch| watch.applier.is_alive());
    // A step that was refused has left nothing; the next one may still come.
    let is_over = contents.reached.is_some() || contents.entries.iter().any(|entry| entry.undone);
    if !contents.is_open() {
        return match held {
            // Between two switches of a search.
            Some(watch) if is_held && !watch.is_final => Ok(Next::Wait),
            None if !is_over => due(contents, true),
            _ => Ok(Next::Nothing(WatchdogOutcome::Finished)),
        };
    }
    due(contents, held.is_none() || is_held)
}

/// Whether the time is up; the end of an applier that the changes need is as good.
fn due(contents: &Contents, is_held: bool) -> Result<Next, HostError> {
    match contents.watch {
        Some(watch) if !is_held || boottime_ns()? >= watch.deadline_ns => Ok(Next::TimeIsUp(watch)),
        _ => Ok(Next::Wait),
    }
}

/// Whether the one who makes the changes may be what holds the lock beyond the deadline. Behind the last order it needs the
/// changes and makes none: another process holds the lock.
fn may_end(watch: &Watch) -> bool {
    !watch.is_final
}

/// Whether the one who makes the changes died before it gave an order: it holds the lock until it is done, and changes
/// nothing before the order is on the journal.
fn is_abandoned(store: &Store, journal: &Path) -> Result<bool, HostError> {
    let Ok(_lock) = store.lock(Duration::ZERO) else { return Ok(false) };
    Ok(Contents::read(journal)?.is_none_or(|contents| contents.watch.is_none()))
}

/// Waits until the changes of journal `id` are confirmed or the time is up, and undoes them then.
pub fn stand_by<S: Setter>(
    store: &Store,
    id: u32,
    setter: &mut S,
) -> Result<WatchdogOutcome, HostError> {
    let path = store.path(id);
    loop {
        let contents = store.contents(id)?;
        match next(&contents)? {
            Next::Wait if contents.watch.is_none() && is_abandoned(store, &path)? => {
                return Ok(WatchdogOutcome::Finished);
            }
            // why: the pace of looking at the journal; the deadline on it ends the waiting.
            Next::Wait => std::thread::sleep(LOOK_AGAIN),
            Next::Nothing(ended) => return Ok(ended),
            Next::TimeIsUp(_) => {
                let Ok(lock) = store.lock(PATIENCE) else {
                    // A step that hangs, or a terminal that takes no more output: the journal is made for this. A
                    // holder that is not ours to end (another directory's applier) is waited for. More time may have
                    // come meanwhile.
                    if let Next::TimeIsUp(watch) = next(&store.contents(id)?)?
                        && may_end(&watch)
                    {
                        let _ = watch.applier.kill();
                    }
                    continue;
                };
                let mut journal = Journal::open(&path)?;
                // The confirmation, or more time, may have come while we waited for the lock.
                match next(journal.contents())? {
                    Next::TimeIsUp(_) => {
                        let targets = journal.contents().open_targets();
                        // Held by one of another namespace, which is none of ours to end: it is asked for again.
                        let Ok(_shared) = store.lock_shared(targets, PATIENCE) else { continue };
                        return Ok(WatchdogOutcome::Undone(journal.undo(setter)?));
                    }
                    Next::Nothing(ended) => return Ok(ended),
                    Next::Wait => drop(lock),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_host::read::process::ProcessId;

    const HEAD: &str = "{\"step\":\"head\",\"v\":1,\"boot_id\":\"b\",\"netns\":1}\n";
    const CHANGE: &str = "{\"step\":\"begin\",\"n\":0,\"target\":\"net.core.rmem_max\",\"before\":\"1\",\"asked\":\"2\"}\n";
    const REACHED: &str = "{\"step\":\"reached\",\"count\":1}\n";
    const UNDONE: &str = "{\"step\":\"undone\",\"n\":0}\n";

    fn contents(lines: &[&str], applier: ProcessId, while_alive: bool) -> Contents {
        let text = format!("{HEAD}{}", lines.concat());
        let read = rxpath_host::write::journal::parse_any(text.as_bytes()).unwrap().unwrap();
        let watch = Watch {
            process: applier,
            applier,
            deadline_ns: u64::MAX,
            while_alive,
            is_final: false,
        };
        Contents { watch: Some(watch), ..read }
    }

    #[test]
    fn changes_that_hold_while_the_applier_lives_are_undone_when_it_is_gone() {
        let here = ProcessId::own().unwrap();
        let gone = ProcessId { start_ticks: here.start_ticks + 1, ..here };
        let after = |lines: &[&str], applier, while_alive| {
            next(&contents(lines, applier, while_alive)).unwrap()
        };
        assert!(matches!(after(&[CHANGE], here, true), Next::Wait));
        assert!(matches!(after(&[CHANGE], gone, true), Next::TimeIsUp(_)));
        // An applier that is done may go: the deadline decides.
        assert!(matches!(after(&[CHANGE], gone, false), Next::Wait));
        // Between two switches nothing is in force, and more will come.
        assert!(matches!(after(&[CHANGE, UNDONE], here, true), Next::Wait));
        // A search's switch is a plan that was carried out; the next one comes.
        assert!(matches!(after(&[CHANGE, REACHED, UNDONE], here, true), Next::Wait));
        assert!(matches!(after(&[CHANGE, REACHED], here, true), Next::Wait));
        assert!(matches!(after(&[CHANGE, REACHED], gone, true), Next::TimeIsUp(_)));
        assert!(matches!(
            after(&[CHANGE, UNDONE], gone, true),
            Next::Nothing(WatchdogOutcome::Finished)
        ));
        assert!(matches!(after(&[], gone, true), Next::Nothing(WatchdogOutcome::Finished)));
        assert!(matches!(
            after(&[CHANGE, UNDONE], here, false),
            Next::Nothing(WatchdogOutcome::Finished)
        ));
    }

    #[test]
    fn only_one_who_makes_changes_is_ended_for_the_lock() {
        let here = ProcessId::own().unwrap();
        let watch = contents(&[CHANGE], here, true).watch.unwrap();
        assert!(may_end(&watch));
        assert!(!may_end(&Watch { is_final: true, ..watch }), "an endpoint holds no lock");
    }

    #[test]
    fn after_the_last_order_nobody_waits_for_more_changes() {
        let here = ProcessId::own().unwrap();
        let after = |lines: &[&str]| {
            let mut contents = contents(lines, here, true);
            contents.watch = contents.watch.map(|watch| Watch { is_final: true, ..watch });
            next(&contents).unwrap()
        };
        assert!(matches!(after(&[CHANGE, REACHED]), Next::Wait));
        let undone = after(&[CHANGE, REACHED, UNDONE]);
        assert!(matches!(undone, Next::Nothing(WatchdogOutcome::Finished)));
    }
}
