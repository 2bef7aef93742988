//! A host that was lost in a trial is connected to again, for a limited time. This shows whether it restarted. If it did not, its
//! new endpoint undoes what the killed one left, so that the run can say so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;

use super::{ConnectedHost, Hosts};
use crate::endpoint::client::Client;
use crate::endpoint::wire::{Hello, HostAsk, LEASE_MS};
use crate::trial::phase;

/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the watchdog of the settings takes at most to undo them, once their endpoint has ended.
pub(super) const WATCHDOG: Duration = Duration::from_secs(10);
/// When settings of a host that is lost are undone at the latest, unless a load ran: its endpoint ends itself when it hears
/// nothing for the lease, and the watchdog follows.
pub(super) const UNSEEN: Duration = Duration::from_millis(LEASE_MS).saturating_add(WATCHDOG);

/// What another connection to a lost host showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// There was none in time, or changes of a killed endpoint are still in force there.
    Unseen,
    /// The boot is the same, and no setting of a killed endpoint is in force.
    Clean,
    /// The boot is another one: nothing of the old one is there.
    Restarted,
}

impl Hosts {
    /// The host of this alias, unless it is this machine, which did not restart.
    pub fn remote(&self, alias: &str) -> Option<&ConnectedHost> {
        self.all().find(|host| host.client.alias() == alias && !host.is_local)
    }

    /// Connects to a lost host again, as long as its settings may take to be undone there at most.
    ///
    /// **Cost** up to 30 s, if the host does not answer. A signal ends it between two attempts.
    pub fn look_again(&self, alias: &str, stop: &AtomicBool) -> Again {
        let Some(lost) = self.remote(alias) else { return Again::Unseen };
        let deadline = Instant::now() + UNSEEN;
        let machines = self.all().map(|host| (host.client.alias(), host.machine));
        let lock = is_alone((alias, lost.machine), machines);
        while !stop.load(Ordering::Relaxed) {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(found) = lost.again(left, lock) {
                return found;
            }
            if deadline <= Instant::now() + PAUSE || phase::pause(PAUSE, stop).is_err() {
                break;
            }
        }
        Again::Unseen
    }
}

impl ConnectedHost {
    /// One attempt, with the lab lock or without; nothing if the host does not answer, or is not clean yet.
    fn again(&self, limit: Duration, lock: bool) -> Option<Again> {
        let began = Instant::now();
        let client: Client = self.client.again(limit)?;
        // A secret of its own: an endpoint of the run that has not ended there is then another experiment's.
        let secret = format!("{:016x}", rand::rng().random::<u64>());
        let ask = HostAsk::Hello { lock, secret, hops: None };
        let hello: Hello = client.ask(ask, limit.saturating_sub(began.elapsed())).ok()?;
        found(&self.hello.boot_id, &hello)
    }
}

/// Whether no other host of the run is on the machine of this one. The endpoint of another one holds the lab lock there, and
/// an endpoint that asks for the lock and does not get it looks at no settings.
fn is_alone<'a>(host: (&str, usize), mut all: impl Iterator<Item = (&'a str, usize)>) -> bool {
    !all.any(|(alias, machine)| machine == host.1 && alias != host.0)
}

/// What a host says of itself, compared with its boot before; nothing if that may change in a moment.
fn found(boot_id: &str, hello: &Hello) -> Option<Again> {
    if hello.boot_id != boot_id {
        return Some(Again::Restarted);
    }
    (hello.not_locked.is_none() && hello.left.refused.is_none()).then_some(Again::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::settings::LeftSettings;

    #[test]
    fn another_boot_is_a_restart_and_the_same_one_is_clean_once_nothing_is_in_force() {
        let hello = |boot_id: &str| Hello { boot_id: boot_id.into(), ..Hello::default() };
        assert_eq!(found("a", &hello("b")), Some(Again::Restarted));
        assert_eq!(found("a", &hello("a")), Some(Again::Clean));
        let ending = Hello { not_locked: Some("one lab at a time".into()), ..hello("a") };
        assert_eq!(found("a", &ending), None);
        let refused = Some(["open journal 1 of a killed run".to_owned(), String::new()]);
        let left = LeftSettings { refused, ..LeftSettings::default() };
        assert_eq!(found("a", &Hello { left, ..hello("a") }), None);
    }

    #[test]
    fn a_host_that_shares_its_machine_does_not_ask_for_the_lock_that_the_other_one_holds() {
        let all = [("gen1", 0), ("gen2", 1), ("sut", 0)];
        assert!(!is_alone(("sut", 0), all.into_iter()));
        assert!(is_alone(("gen2", 1), all.into_iter()));
    }
}
