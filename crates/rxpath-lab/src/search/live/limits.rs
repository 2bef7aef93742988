//! What real traffic must never suffer: limits with which each glance is compared.
//!
//! A limit is the worst glance of the start plus the guard's margin, or as much again as the start's worst is from its
//! middle, so that what the traffic does by itself breaks none. Two glances in a row must break it. Whether the settings did
//! it is seen by taking them off.

use std::collections::BTreeMap;

use rxpath_stats::quantile::median;
use rxpath_tune::auto::MetricGuard;

use super::meter::Glance;

/// Glances in a row that break a limit.
const IN_A_ROW: usize = 2;
/// Glances without a carrier, where no candidate may take it.
const WITHOUT_CARRIER: usize = 4;
/// With less of the start's packets almost nothing arrives any more.
const LEAST_ARRIVING: f64 = 0.1;
/// With more lost than at the start's worst by this share of what was received, too little gets through.
const MOST_LOST: f64 = 0.5;

/// A limit that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which, in words.
    pub limit: String,
    /// Traffic stopped: nobody tries that twice.
    pub is_stop: bool,
}

/// The limits of a search.
#[derive(Debug)]
pub struct Limits {
    guards: Vec<MetricGuard>,
    /// What the glances of the start had.
    start: Vec<BTreeMap<String, f64>>,
    arriving: Vec<f64>,
    /// How many glances in a row broke each; the last are of arrival, loss, the ssh session and the carrier.
    rows: Vec<usize>,
}

/// The limits beyond the guards.
const OWN: usize = 4;

impl Limits {
    /// Before anything is known of the start.
    pub fn new(guards: Vec<MetricGuard>) -> Self {
        let rows = vec![0; guards.len() + OWN];
        Self { guards, start: Vec::new(), arriving: Vec::new(), rows }
    }

    /// A glance without any candidate, before the first one is tried.
    pub fn learn(&mut self, glance: &Glance) {
        self.start.push(glance.slice.metrics());
        self.arriving.push(glance.device_pps);
    }

    /// Other settings are on from here.
    pub fn reset(&mut self) {
        self.rows.fill(0);
    }

    /// Whether a glance is within all limits.
    pub fn is_within(&self, glance: &Glance) -> bool {
        self.beyond_each(glance).iter().all(Option::is_none)
    }

    /// For each limit how the glance is beyond it, if it is.
    fn beyond_each(&self, glance: &Glance) -> Vec<Option<String>> {
        let metrics = glance.slice.metrics();
        let of_guards = self.guards.iter().map(|guard| self.beyond(guard, &metrics));
        let own = [
            self.arrives_no_more(glance),
            self.loses_most(&metrics),
            glance.session_cut.as_ref().map(|why| format!("your ssh session was cut off: {why}")),
            (!glance.has_carrier).then(|| "the link was away".to_owned()),
        ];
        of_guards.chain(own).collect()
    }

    /// Which limit is broken, if one is.
    pub fn broken(&mut self, glance: &Glance) -> Option<Broken> {
        let beyond = self.beyond_each(glance);
        let carrier = self.rows.len() - 1;
        let mut found = None;
        for (at, (row, what)) in self.rows.iter_mut().zip(beyond).enumerate() {
            *row = if what.is_some() { *row + 1 } else { 0 };
            let enough = if at == carrier { WITHOUT_CARRIER } else { IN_A_ROW };
            if *row >= enough && found.is_none() {
                found = what.map(|limit| Broken { limit, is_stop: at >= self.guards.len() });
            }
        }
        found
    }

    fn beyond(&self, guard: &MetricGuard, metrics: &BTreeMap<String, f64>) -> Option<String> {
        let value = *metrics.get(&guard.metric)?;
        let of = |metrics: &BTreeMap<String, f64>| guard.reading(*metrics.get(&guard.metric)?);
        let start: Vec<f64> = self.start.iter().filter_map(of).collect();
        let worst = start.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = median(&start)?;
        let margin = guard.margin(middle).max(worst - middle);
        let is_beyond = guard.reading(value)? > worst + margin;
        is_beyond.then(|| format!("{} was {value:.4}, beyond {}", guard.metric, guard.text))
    }

    fn arrives_no_more(&self, glance: &Glance) -> Option<String> {
        let usual = median(&self.arriving)?;
        (glance.device_pps < LEAST_ARRIVING * usual).then(|| {
            format!("{:.0} packets/s arrived ({usual:.0} at the start)", glance.device_pps)
        })
    }

    fn loses_most(&self, metrics: &BTreeMap<String, f64>) -> Option<String> {
        let loss = |metrics: &BTreeMap<String, f64>| metrics.get("loss_ratio").copied();
        let worst = self.start.iter().filter_map(loss).fold(0.0, f64::max);
        let now = loss(metrics)?;
        (now > worst + MOST_LOST).then(|| format!("{:.0} % were lost", 100.0 * now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::ask;
    use rxpath_record::watch::TrafficSlice;

    fn glance(received: f64, lost: f64) -> Glance {
        let mut slice = TrafficSlice::default();
        (slice.window_s, slice.received, slice.lost) = (0.5, received, lost);
        let device_pps = received / 0.5;
        Glance { slice, device_pps, has_carrier: true, session_cut: None, verdict: None }
    }

    fn learned(guards: Vec<MetricGuard>) -> Limits {
        let mut limits = Limits::new(guards);
        for lost in [0.0, 0.0, 5.0, 0.0] {
            limits.learn(&glance(1000.0, lost));
        }
        limits
    }

    #[test]
    fn two_glances_beyond_a_guard_break_it_and_what_the_start_did_too_breaks_none() {
        let mut limits = learned(vec![ask::guard("loss_ratio<=+0.1%").unwrap()]);
        for _ in 0..5 {
            assert_eq!(limits.broken(&glance(1000.0, 5.0)), None, "the start lost as much");
        }
        assert_eq!(limits.broken(&glance(1000.0, 60.0)), None, "one glance");
        assert_eq!(limits.broken(&glance(1000.0, 0.0)), None);
        assert_eq!(limits.broken(&glance(1000.0, 60.0)), None, "not in a row");
        let Broken { limit, is_stop } = limits.broken(&glance(1000.0, 60.0)).unwrap();
        assert!(limit.contains("0.06") && limit.contains("loss_ratio<=+0.1%"), "{limit}");
        assert!(!is_stop);
        limits.reset();
        assert_eq!(limits.broken(&glance(1000.0, 60.0)), None);
    }

    #[test]
    fn without_any_guard_traffic_that_stops_breaks_a_limit() {
        let mut limits = learned(Vec::new());
        assert_eq!(limits.broken(&glance(50.0, 0.0)), None);
        assert!(limits.broken(&glance(50.0, 0.0)).unwrap().limit.contains("100 packets/s arrived"));
        limits.reset();
        limits.broken(&glance(1000.0, 700.0));
        let stop = Broken { limit: "70 % were lost".into(), is_stop: true };
        assert_eq!(limits.broken(&glance(1000.0, 700.0)), Some(stop));
        limits.reset();
        let cut = || Glance { session_cut: Some("no route".into()), ..glance(1000.0, 0.0) };
        assert_eq!(limits.broken(&cut()), None);
        let stop = Broken { limit: "your ssh session was cut off: no route".into(), is_stop: true };
        assert_eq!(limits.broken(&cut()), Some(stop));
        limits.reset();
        let away = |limits: &mut Limits| {
            limits.broken(&Glance { has_carrier: false, ..glance(1000.0, 0.0) })
        };
        let found: Vec<_> = (0..4).map(|_| away(&mut limits).is_some()).collect();
        assert_eq!(found, [false, false, false, true], "a link may be away for a moment");
    }
}
