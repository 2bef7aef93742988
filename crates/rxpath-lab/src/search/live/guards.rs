//! What a search on real traffic makes better and must not make worse, unless the user says otherwise.

use std::collections::BTreeMap;

use rxpath_tune::auto::MetricGuard;

use crate::search::ask::{self, Objective};

/// What is made better.
pub const OBJECTIVE: &str = "network_cpu_us_per_packet";
/// What must not become worse.
/// GRO delays packets by some 10 us; a doubling of 5 us would forbid that.
const GUARDS: [&str; 3] =
    ["loss_ratio<=+0.1%", "busy_cpu_us_per_packet<=+10%", "receive_to_socket_p99_us<=+100%|+100"];
/// What no glance may exceed in addition. It scatters too much to be shown to hold.
const WATCHED: [&str; 1] = ["socket_to_read_p99_us<=+100%|+1000"];

/// The default guards: those whose metrics are measured here, and the others.
pub fn defaults(
    objective: &Objective,
    metrics: &BTreeMap<String, f64>,
) -> (Vec<MetricGuard>, Vec<MetricGuard>) {
    let guards = GUARDS.iter().filter_map(|text| ask::guard(text).ok());
    guards
        .filter(|guard| guard.metric != objective.metric)
        .partition(|guard| metrics.contains_key(&guard.metric))
}

/// What no glance may exceed: these guards, and what is watched in addition.
pub fn watched(objective: &Objective, guards: &[MetricGuard]) -> Vec<MetricGuard> {
    let is_other = |guard: &MetricGuard| {
        guard.metric != objective.metric && guards.iter().all(|other| other.metric != guard.metric)
    };
    let more = WATCHED.iter().filter_map(|text| ask::guard(text).ok()).filter(is_other);
    guards.iter().cloned().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_guard_can_be_read_and_contradicts_nothing() {
        let texts: Vec<String> = GUARDS.iter().map(|text| (*text).to_owned()).collect();
        let objective = Objective::read(OBJECTIVE).unwrap();
        assert_eq!(ask::guards(&texts, &objective).unwrap().len(), GUARDS.len());
    }

    #[test]
    fn a_default_guard_holds_where_it_is_measured_and_no_metric_is_watched_twice() {
        let objective = Objective::read("min busy_cpu_us_per_packet").unwrap();
        let (known, missing) =
            defaults(&objective, &BTreeMap::from([("loss_ratio".to_owned(), 0.0)]));
        let names = |guards: &[MetricGuard]| -> Vec<String> {
            guards.iter().map(|guard| guard.metric.clone()).collect()
        };
        assert_eq!(names(&known), ["loss_ratio"]);
        assert_eq!(names(&missing), ["receive_to_socket_p99_us"]);
        assert_eq!(names(&watched(&objective, &known)), ["loss_ratio", "socket_to_read_p99_us"]);
        let own = ask::guard("socket_to_read_p99_us<=+10%").unwrap();
        assert_eq!(names(&watched(&objective, &[own])), ["socket_to_read_p99_us"]);
    }
}
