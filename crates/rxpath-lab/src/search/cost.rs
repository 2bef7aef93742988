//! What the kept settings cost: power and CPUs, over the confirming pairs.

use rxpath_record::comparison::Comparison;
use rxpath_record::metric::metric;

use super::answer::AutoAnswer;

const POWER: &str = "power_w";
/// What a machine uses, on scenarios and on real traffic.
const COSTS: [&str; 3] = [POWER, "busy_cpus", "busy_cpu_us_per_packet"];

/// Each cost: the metric, how much more or less, how sure, and what the metric is.
pub fn rows(answer: &AutoAnswer) -> Vec<Vec<String>> {
    if answer.kept().is_none() {
        return Vec::new();
    }
    let found = COSTS.iter().filter_map(|name| {
        let is_it = |one: &&Comparison| one.metric == *name && one.pairs_count > 0;
        let compared = answer.compared.iter().find(is_it)?;
        Some(vec![
            (*name).to_owned(),
            compared.effect.amount(name),
            compared.sureness(),
            metric(name).map_or("", |metric| metric.what).to_owned(),
        ])
    });
    let found: Vec<Vec<String>> = found.collect();
    let has_power = found.iter().any(|row| row[0] == POWER);
    let unknown = (!has_power).then(|| {
        let why = "no energy counter can be read there (/sys/class/powercap)";
        vec![POWER.into(), "not known".into(), why.into(), String::new()]
    });
    unknown.into_iter().chain(found).collect()
}

/// The same in lines.
pub fn lines(answer: &AutoAnswer) -> Vec<String> {
    let line = |row: Vec<String>| format!("- cost: {} {}: {}", row[0], row[1], row[2]);
    rows(answer).into_iter().map(line).collect()
}
