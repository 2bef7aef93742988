//! The metrics of a trial of HTTP, of our client and server or of third-party programs.

use rxpath_record::evidence::WindowEvidence;

use super::tcp::per_second_of_the_client;
use super::times::{foreign_times, times};
use super::{TrialSources, per_unit};
use crate::output::Metrics;
use crate::trial::result::WorkloadResult;

pub(super) fn metrics(trial: TrialSources<'_>, evidence: &WindowEvidence, all: &mut Metrics) {
    let raw = trial.raw;
    let foreign = all.get("load.mean_rps").copied();
    let Some(rps) = per_second_of_the_client(raw).or(foreign) else { return };
    all.insert("achieved_rps".into(), rps);
    times(&raw.load.result, all);
    foreign_times(all);
    let names = ["client_cpu_us_per_request", "server_cpu_us_per_request"];
    per_unit(names, evidence, (1e6, [rps; 2]), all);
    let WorkloadResult::HttpLoad(result) = &raw.load.result else { return };
    if let Some(asked) = result.target_rps.filter(|asked| *asked > 0.0) {
        all.insert("achieved_ratio".into(), rps / asked);
    }
    all.insert("errors_count".into(), result.errors_total.values().sum::<u64>() as f64);
}
