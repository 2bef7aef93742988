//! Hosts that are namespaces of one machine, as in `make hosts-demo`: what one of them runs is no foreign load to the other.

use rxpath_record::run::RunReader;

use crate::over_ssh::{QUICK, site};

/// A sender without a rate is full, and the softirq of its veth may run in its calls: in the lab pairs of trials follow. Hosts do not
/// run pairs, whose settings they do not have.
#[test]
fn the_other_host_s_workload_is_no_foreign_load_and_no_pairs_of_trials_follow() {
    let Some(site) = site() else { return };
    let out = site.path("runs");
    let file = site.write("s.toml", "question = \"?\"\n[serve]\nrcvbuf = \"8MiB\"\n");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--trials", "1"];
    let sets = QUICK[1..].iter().chain(&["trials.measure=1s"]).flat_map(|set| ["--set", set]);
    let run = site.rxpath(&[&words[..], &["--keep-noisy"], &sets.collect::<Vec<_>>()].concat());
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    assert!(!manifest.trials.is_empty(), "{run:?}");
    for trial in &manifest.trials {
        let ours = trial.noise.iter().find(|reason| reason.contains("rx-"));
        assert_eq!(ours, None, "{:?}: {run:?}", trial.noise);
        assert!(!trial.variant.contains("softirq"), "{}: {run:?}", trial.variant);
    }
    let said = manifest.warnings.iter().find(|warning| warning.code == "one-machine");
    assert!(said.unwrap().text.contains("gen1 and sut are one machine"), "{:?}", manifest.warnings);
}
