//! Hosts that are namespaces of one machine, as in `make hosts-demo`: what one of them runs is no foreign load to the other.

use rxpath_record::run::RunReader;

use crate::over_ssh::site;

const SCENARIO: &str = r#"
    question = "?"
    [load]
    rate = "100k"
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    paired = false
    ramp = "200ms"
    measure = "1s"
"#;

#[test]
fn the_other_host_s_workload_is_no_foreign_load() {
    let Some(site) = site() else { return };
    let out = site.path("runs");
    let file = site.write("s.toml", SCENARIO);
    let run = site.rxpath(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    for trial in &manifest.trials {
        let ours = trial.noise.iter().find(|reason| reason.contains("rx-"));
        assert_eq!(ours, None, "{:?}: {run:?}", trial.noise);
    }
    let said = manifest.warnings.iter().find(|warning| warning.code == "one-machine");
    assert!(said.unwrap().text.contains("gen1 and sut are one machine"), "{:?}", manifest.warnings);
}
