//! What NTP says of the hosts' clocks, compared with what was measured. It is never an input: a measured interval holds the
//! truth, and a daemon may follow a wrong server.

use rxpath_core::ntp::NtpState;
use rxpath_core::{Nanos, Warning};
use rxpath_host::read::ntp::FACT;

use super::{ConnectedHost, Hosts};
use crate::endpoint::clock::ClockBounds;

/// How far the reading of a host's two clocks may be off, where it was interrupted. **Unit** ns.
const READ_NS: i64 = 50_000;
/// Pairs that a warning lists.
const LISTED: usize = 3;

/// A host whose clock is synchronised, by its own word.
struct SynchronisedClock<'a> {
    alias: &'a str,
    clock: ClockBounds,
    ntp: NtpState,
}

impl ConnectedHost {
    /// What NTP says of its clock, where its kernel could be asked.
    pub fn ntp(&self) -> Option<NtpState> {
        serde_json::from_value(self.hello.facts.get(FACT)?.value()?.clone()).ok()
    }
}

impl Hosts {
    /// A warning where the clocks of two hosts are farther apart than both say by NTP.
    pub(super) fn ntp_contradicted(&self) -> Option<Warning> {
        let known = self.all().filter_map(|host| {
            let ntp = host.ntp().filter(|ntp| ntp.is_synchronised)?;
            Some(SynchronisedClock { alias: host.client.alias(), clock: host.clock, ntp })
        });
        contradicted(&known.collect::<Vec<_>>())
    }
}

fn contradicted(known: &[SynchronisedClock<'_>]) -> Option<Warning> {
    let pairs = known.iter().enumerate();
    let pairs = pairs.flat_map(|(at, one)| known[at + 1..].iter().map(move |other| (one, other)));
    let found = pairs.filter_map(|(one, other)| contradiction(one, other));
    let mut found: Vec<String> = found.collect();
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    if found.is_empty() {
        return None;
    }
    let more = if more > 0 { format!("; and {more} more pairs") } else { String::new() };
    let text = format!("NTP contradicts the measured clocks: {}{more}", found.join("; "));
    let why = "a daemon follows a wrong server, or an asymmetric path to one";
    let warning = Warning::new("ntp-contradicted", text).because(why);
    Some(warning.cure("compare `chronyc tracking` of both; rxpath uses what it measured"))
}

/// How two clocks contradict what their hosts say of them.
fn contradiction(one: &SynchronisedClock<'_>, other: &SynchronisedClock<'_>) -> Option<String> {
    let ahead = one.clock.ahead_of(other.clock);
    // From the monotonic clocks, which were compared, to the time of day, which NTP is about.
    let epochs = one.ntp.epoch_ns.saturating_sub(other.ntp.epoch_ns);
    let least = ahead.least_ns.saturating_add(epochs);
    let most = ahead.most_ns.saturating_add(epochs);
    let errors = [one.ntp.max_error_us, other.ntp.max_error_us].map(|us| us.max(0) * 1_000);
    let allowed = errors[0] + errors[1] + READ_NS;
    let apart = least.max(most.saturating_neg());
    let nanos = |ns: i64| Nanos(ns.unsigned_abs());
    (apart > allowed).then(|| {
        format!(
            "{} is right to +-{} and {} to +-{}, and they are {} apart at least",
            one.alias,
            nanos(errors[0]),
            other.alias,
            nanos(errors[1]),
            nanos(apart)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A clock of the day that is ahead by this, known to +- 1 ms; booted `up_s` ago.
    fn clock(alias: &str, ahead_ms: i64, up_s: i64, max_error_us: i64) -> SynchronisedClock<'_> {
        let day = 86_400_000 * MS;
        let monotonic = up_s * 1_000 * MS;
        let clock = ClockBounds {
            least_ns: monotonic - MS,
            most_ns: monotonic + MS,
            round_trip_ns: 0,
            at_ns: 0,
        };
        let epoch_ns = day + ahead_ms * MS - monotonic;
        let ntp = NtpState { is_synchronised: true, max_error_us, epoch_ns, ..NtpState::default() };
        SynchronisedClock { alias, clock, ntp }
    }

    #[test]
    fn clocks_that_agree_as_far_as_is_known_are_no_contradiction() {
        assert_eq!(contradicted(&[clock("gen1", 0, 5, 500), clock("sut", 3, 86_400, 800)]), None);
        assert_eq!(contradicted(&[clock("gen1", 0, 5, 500)]), None);
    }

    #[test]
    fn clocks_farther_apart_than_both_say_are_named() {
        let all = [clock("gen1", 0, 5, 500), clock("sut", -80, 86_400, 800)];
        let warning = contradicted(&all).unwrap();
        let text = "NTP contradicts the measured clocks: gen1 is right to +-500us and sut to +-800us, and they are \
                    78ms apart at least";
        assert_eq!(warning.text, text);
        let all = [clock("sut", -80, 86_400, 800), clock("gen1", 0, 5, 500)];
        assert!(contradicted(&all).unwrap().text.ends_with("78ms apart at least"));
    }

    #[test]
    fn of_many_pairs_a_few_are_listed() {
        let mut all: Vec<_> = ["a", "b", "c", "d", "e"].map(|alias| clock(alias, 0, 5, 1)).into();
        all.push(clock("wrong", 80, 5, 1));
        let text = contradicted(&all).unwrap().text;
        assert!(text.ends_with("; and 2 more pairs"), "{text}");
    }
}
