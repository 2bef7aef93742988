//! In what else than the variant two runs differ, and what that means for their difference.

use rxpath_core::{Fact, Warning};
use serde_json::Value;

use super::facts::{Changed, leaves};
use crate::manifest::Manifest;
use crate::run::RunReader;

/// Keys of `trials` that decide what one value of a trial is; the others decide how many there are.
const DURATIONS: [&str; 3] = ["measure", "ramp", "settle"];
/// Sections of a variant that decide what is measured.
const SECTIONS: [&str; 4] = ["lab", "load", "serve", "background"];
/// Differences that a warning names at most; `--json` has them all.
const SHOWN: usize = 6;

/// The keys of the scenario that differ: durations of a trial, and settings of the variants that both runs have.
pub fn scenario(base: &Manifest, other: &Manifest) -> Vec<Changed> {
    let (one, two) = (&base.resolved, &other.resolved);
    let mut changed: Vec<Changed> = DURATIONS
        .iter()
        .flat_map(|key| {
            let of = |resolved: &Value| resolved["trials"].get(*key).map(duration);
            leaves(&format!("trials.{key}"), of(one).as_ref(), of(two).as_ref())
        })
        .collect();
    for variant in variants(one) {
        let name = &variant["name"];
        let Some(same) = variants(two).iter().find(|other| other["name"] == *name) else {
            continue;
        };
        for section in SECTIONS {
            let path = format!("{}: {section}", name.as_str().unwrap_or_default());
            changed.extend(leaves(&path, variant.get(section), same.get(section)));
        }
    }
    changed
}

fn variants(resolved: &Value) -> &[Value] {
    resolved["variants"].as_array().map_or(&[], Vec::as_slice)
}

/// A span is kept in ns, and read in the unit that people give.
fn duration(ns: &Value) -> Value {
    ns.as_u64().map_or_else(|| ns.clone(), |ns| rxpath_core::Nanos(ns).to_string().into())
}

/// What the differences in scenario, version, kernel and machine mean.
pub fn warnings(base: &RunReader, other: &RunReader, changed: &[Changed]) -> Vec<Warning> {
    let (one, two) = (&base.manifest, &other.manifest);
    let mut warnings = Vec::new();
    let mut differ = |code: &str, what: &str, a: &str, b: &str, why: &str| {
        if a != b {
            let text = format!("the runs are of different {what}: {a} and {b}");
            warnings.push(Warning::new(code, text).because(why));
        }
    };
    let names = "variants of one name may not be the same thing";
    differ("other-scenario", "scenarios", &one.scenario, &two.scenario, names);
    let measured = "a newer version may count or compute a metric in another way";
    differ("other-version", "versions of rxpath", &one.version, &two.version, measured);
    let main = "their protocols differ: a metric of both may not mean the same";
    differ("other-metric", "main metrics", &one.main_metric, &two.main_metric, main);
    let fact = |run: &RunReader, name: &str| {
        let facts = run.environment.as_ref()?.hosts.get("local")?;
        facts.get(name).and_then(Fact::value)?.as_str().map(str::to_owned)
    };
    for (code, what, name, why) in [
        ("other-kernel", "kernels", "kernel.release", "the difference is that of the kernels too"),
        ("other-machine", "CPUs", "cpu.model", "the difference is that of the machines too"),
    ] {
        if let (Some(a), Some(b)) = (fact(base, name), fact(other, name)) {
            differ(code, what, &a, &b, why);
        }
    }
    let (durations, settings): (Vec<&Changed>, Vec<&Changed>) =
        changed.iter().partition(|key| key.fact.starts_with("trials."));
    let lengths = "rates of both are comparable; a longer window averages more noise away and sees rarer delays, so \
                   scatter and high quantiles are not";
    warnings.extend(told("other-durations", &durations, lengths));
    let of_settings = "the difference is that of these settings too";
    warnings.extend(told("other-settings", &settings, of_settings));
    warnings
}

fn told(code: &str, changed: &[&Changed], why: &str) -> Option<Warning> {
    let each = |key: &&Changed| format!("{} is {} and {}", key.fact, key.base, key.other);
    let mut listed: Vec<String> = changed.iter().take(SHOWN).map(each).collect();
    if changed.len() > SHOWN {
        listed.push(format!("{} more (--json)", changed.len() - SHOWN));
    }
    let text = format!("the scenarios of the runs differ: {}", listed.join("; "));
    (!changed.is_empty()).then(|| Warning::new(code, text).because(why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(measure_ns: u64, rate: u64) -> Manifest {
        let variant = json!({"name": "a", "load": {"rate": rate}, "serve": {}});
        let resolved =
            json!({"trials": {"measure": measure_ns, "blocks": 5}, "variants": [variant]});
        Manifest { resolved, ..Manifest::default() }
    }

    #[test]
    fn keys_that_decide_what_is_measured_are_named_and_the_number_of_trials_is_not() {
        let changed = scenario(&run(1_000_000_000, 100_000), &run(10_000_000_000, 200_000));
        let told: Vec<String> =
            changed.iter().map(|key| format!("{} {} {}", key.fact, key.base, key.other)).collect();
        assert_eq!(told, ["trials.measure 1s 10s", "a: load.rate 100000 200000"]);
        let mut more = run(1_000_000_000, 100_000);
        more.resolved["trials"]["blocks"] = 20.into();
        assert_eq!(scenario(&run(1_000_000_000, 100_000), &more), []);
    }

    #[test]
    fn a_warning_says_what_a_difference_means() {
        let reader = |manifest: Manifest| RunReader {
            manifest,
            environment: None,
            problems: Vec::new(),
            ..RunReader::open(std::path::Path::new(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../testdata/runs/recorded-demo"
            )))
            .unwrap()
        };
        let (base, other) = (run(1_000_000_000, 1), run(10_000_000_000, 1));
        let changed = scenario(&base, &other);
        let newer = Manifest { version: "9.9".into(), ..other };
        let told = warnings(&reader(base), &reader(newer), &changed);
        let codes: Vec<&str> = told.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["other-version", "other-durations"]);
        assert!(told[1].text.contains("trials.measure is 1s and 10s"), "{}", told[1].text);
    }
}
