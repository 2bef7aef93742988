//! Hosts that are namespaces of one machine, as in `make hosts-demo`: what one of them runs is no foreign load to the other.

use rxpath_record::run::RunReader;

use crate::over_ssh::{QUICK, site};

#[test]
fn the_other_host_s_workload_is_no_foreign_load() {
    let Some(site) = site() else { return };
    let out = site.path("runs");
    let file = site.write("s.toml", "question = \"?\"\n");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--trials", "1"];
    let sets = QUICK.iter().chain(&["load.rate=100k", "trials.measure=1s"]);
    let run = site
        .rxpath(&[&words[..], &sets.flat_map(|set| ["--set", set]).collect::<Vec<_>>()].concat());
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    assert!(!manifest.trials.is_empty(), "{run:?}");
    for trial in &manifest.trials {
        let ours = trial.noise.iter().find(|reason| reason.contains("rx-"));
        assert_eq!(ours, None, "{:?}: {run:?}", trial.noise);
    }
    let said = manifest.warnings.iter().find(|warning| warning.code == "one-machine");
    assert!(said.unwrap().text.contains("gen1 and sut are one machine"), "{:?}", manifest.warnings);
}

/// A sender without a rate is full, and the softirq of its veth may run in its calls: in the lab pairs of trials follow.
#[test]
fn hosts_do_not_run_pairs_of_trials_whose_settings_they_do_not_have() {
    let Some(site) = site() else { return };
    let out = site.path("runs");
    let file = site.write("s.toml", "question = \"?\"\n[serve]\nrcvbuf = \"8MiB\"\n");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--trials", "1"];
    let sets = QUICK[1..].iter().flat_map(|set| ["--set", set]);
    let run = site.rxpath(&[&words[..], &["--keep-noisy"], &sets.collect::<Vec<_>>()].concat());
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    let moved = manifest.trials.iter().find(|trial| trial.variant.contains("softirq"));
    assert!(!manifest.trials.is_empty() && moved.is_none(), "{moved:?}: {run:?}");
}
