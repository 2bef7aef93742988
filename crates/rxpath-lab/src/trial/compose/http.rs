//! The metrics of a trial of HTTP, whoever the client and the server are.

use std::collections::BTreeMap;

use rxpath_record::evidence::Evidence;
use serde_json::Value;

use super::tcp::{foreign_times, per_second_of_the_client, quantiles};
use super::{Spans, running};
use crate::trial::conduct::Raw;

pub(super) fn metrics(
    evidence: &Evidence,
    raw: &Raw,
    spans: &Spans,
    all: &mut BTreeMap<String, f64>,
) {
    let Some(rps) = per_second_of_the_client(raw, spans).or(all.get("load.mean_rps").copied())
    else {
        return;
    };
    all.insert("achieved_rps".into(), rps);
    quantiles(&raw.load.result, "service_time_us", "service_time", all);
    quantiles(&raw.load.result, "response_time_us", "response_time", all);
    foreign_times(all);
    let [client, server] = running(evidence);
    for (name, running) in
        [("client_cpu_us_per_request", client), ("server_cpu_us_per_request", server)]
    {
        if rps > 0.0 && running > 0.0 {
            all.insert(name.into(), running * 1e6 / rps);
        }
    }
    let target = raw.load.result.get("target_rps").and_then(Value::as_f64);
    if let Some(target) = target.filter(|target| *target > 0.0) {
        all.insert("achieved_ratio".into(), rps / target);
    }
    if let Some(errors) = raw.load.result.get("errors_total").and_then(Value::as_object) {
        let sum: f64 = errors.values().filter_map(Value::as_f64).sum();
        all.insert("errors_count".into(), sum);
    }
}
