//! When the senders of a trial began: at one instant, as far as orders and clocks allow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::{Manifest, Trial};

/// When a sender began its load in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostStart {
    /// When its first program began, on the coordinator's clock.
    pub at_ns: i64,
    /// How far that may be wrong, because the difference of the clocks is known only so well.
    pub error_ns: u64,
    /// How much later than ordered that was, by its own clock; of several programs the latest.
    pub late_ns: u64,
}

/// How far apart the senders of a trial began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartSpread {
    /// From the first one's start to the last one's.
    pub spread_ns: u64,
    /// How far that may be wrong: the errors of the two clocks that are known least.
    pub error_ns: u64,
}

impl StartSpread {
    /// Of one trial; nothing of fewer than two senders.
    pub fn of(trial: &Trial) -> Option<Self> {
        let starts: Vec<HostStart> = trial.hosts.values().filter_map(|host| host.start).collect();
        let instants = || starts.iter().map(|start| start.at_ns);
        let (first, last) = instants().min().zip(instants().max())?;
        let mut errors: Vec<u64> = starts.iter().map(|start| start.error_ns).collect();
        errors.sort_unstable();
        let spread_ns = last.abs_diff(first);
        let error_ns = errors.iter().rev().take(2).sum();
        (starts.len() > 1).then_some(Self { spread_ns, error_ns })
    }

    /// For people: `0.31ms +-0.05ms`.
    pub fn text(&self) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        format!("{:.2}ms +-{:.2}ms", ms(self.spread_ns), ms(self.error_ns))
    }
}

impl Manifest {
    /// How far apart the senders began, of the counted trials of a variant that in which it was most; nothing if there is only
    /// one.
    pub fn start_spread(&self, variant: &str) -> Option<StartSpread> {
        let all = self.counted(variant).into_iter().filter_map(StartSpread::of);
        all.max_by_key(|spread| spread.spread_ns)
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::PathSide;

    use super::*;
    use crate::hosts::HostTrial;

    #[test]
    fn the_spread_is_from_the_first_start_to_the_last_with_the_errors_of_two_clocks() {
        let host = |at_ns, error_ns| HostTrial {
            start: Some(HostStart { at_ns, error_ns, late_ns: 0 }),
            ..HostTrial::of(PathSide::Tx)
        };
        let trial = |last_ns: i64, void: Option<&str>| Trial {
            variant: "base".into(),
            block: 1,
            void: void.map(str::to_owned),
            hosts: [
                ("gen1".to_owned(), host(5_000_000, 20_000)),
                ("gen2".to_owned(), host(last_ns, 10_000)),
                ("gen3".to_owned(), host(5_100_000, 30_000)),
                ("sut".to_owned(), HostTrial::of(PathSide::Rx)),
            ]
            .into(),
            ..Trial::default()
        };
        let trials = vec![
            trial(4_900_000, None),
            trial(5_310_000, None),
            trial(90_000_000, Some("start missed")),
        ];
        let manifest = Manifest { trials, ..Manifest::default() };
        let most = manifest.start_spread("base").unwrap();
        assert_eq!(most, StartSpread { spread_ns: 310_000, error_ns: 50_000 });
        assert_eq!(most.text(), "0.31ms +-0.05ms");
        let mut alone = trial(4_900_000, None);
        alone.hosts.retain(|alias, _| alias == "gen1" || alias == "sut");
        assert_eq!(StartSpread::of(&alone), None);
        assert_eq!(manifest.start_spread("other"), None);
    }
}
