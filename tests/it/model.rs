//! `rxpath model`: arithmetic over the command line.

use std::path::Path;

use crate::program::rxpath;

fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

#[test]
fn eval_prints_every_case_of_a_file() {
    let got = rxpath(&["model", "eval", &repository("testdata/model/cases.json"), "--json"])
        .ends(0)
        .json();
    assert_eq!(got["schema"], "rxpath/model-eval/1.0");
    let cases = got["result"]["cases"].as_array().unwrap();
    let one = cases.iter().find(|case| case["id"] == "mm1k_rho1_K64").unwrap();
    assert_eq!(one["outputs"]["mean_number"], 32.0);
}

#[test]
fn eval_lists_problems_by_case_and_is_partial() {
    let file = repository("fuzz/corpus/model_cases/bad-inputs");
    let got = rxpath(&["model", "eval", &file, "--json"]).ends(5).json();
    assert_eq!(got["result"]["cases"][1]["problem"]["code"], "bad-input");
    assert_eq!(got["result"]["cases"][3]["problem"]["code"], "no-value");
    assert_eq!(got["warnings"].as_array().unwrap().len(), 4);
    rxpath(&["model", "eval", &repository("fuzz/corpus/model_cases/broken")]).ends(2);
}

#[test]
fn bounds_answer_in_sentences_with_formula_and_assumption() {
    let words = "model bounds --arrival-rate 400k --size 32 --service-ns 2000 --stall 10ms";
    let words: Vec<&str> = words.split(' ').collect();
    let done = rxpath(&words);
    let wanted = "At 400k datagrams/s the socket queue of 256 datagrams overflows 640us after the reader stops";
    assert!(done.out.contains(wanted), "{done:?}");
    assert!(
        done.out.contains("by N >= ceil(lambda T)") && done.out.contains("if regular arrivals"),
        "{done:?}"
    );
    assert!(done.out.contains(" needs --rcvbuf 4334KiB (4,000 datagrams)."), "{done:?}");
    assert!(done.out.contains("ring_capacity (packet_ns)"), "what is missing: {done:?}");
    let got = rxpath(&[words.as_slice(), &["--json"]].concat()).json();
    assert_eq!(got["settings"]["arrival_rate_pps"], 400_000);
    assert_eq!(got["result"]["bounds"]["stall"]["min_queue_packets"], 4000);
}

#[test]
fn flags_win_over_the_file_and_nonsense_is_usage() {
    let file = repository("fuzz/corpus/model_parameters/full");
    let got =
        rxpath(&["model", "bounds", &file, "--ring", "512", "--rx-usecs", "20", "--json"]).json();
    assert_eq!(got["settings"]["ring_packets"], 512);
    assert_eq!(got["settings"]["rx_usecs"], 20);
    assert_eq!(got["settings"]["size_bytes"], 32);
    for (words, wanted) in [
        (vec!["model", "bounds"], "no bound follows"),
        (vec!["model", "bounds", "--share", "2"], "`share` must be above 0"),
        (vec!["model", "bounds", "--stall", "3"], "unit is missing"),
        (vec!["model", "bounds", "--stall", "-1s"], "`--stall -1s`: is negative"),
        (vec!["model", "bounds", "--service-ns", "-4"], "`--service-ns -4`: is negative"),
        (vec!["model", "bounds", "/no/such.toml"], "/no/such.toml"),
        (vec!["model", "bounds", "--ring", "0"], "1 to 1000G descriptors"),
        (vec!["model", "bounds", "--size", "70000"], "at most 65507 bytes"),
        (vec!["model", "bounds", "--calibration", "/no/c"], "rxpath model calibrate"),
        (vec!["model", "calibrate", "--out", "/proc/no/c"], "--out /proc/no/c: cannot write"),
    ] {
        rxpath(&words).ends(2).refuses("", wanted);
    }
}

#[test]
fn a_simulation_is_repeatable_and_its_ledger_closes() {
    let words = ["model", "simulate", "whole-path", "-d", "50ms", "--seed", "3", "--json"];
    let (first, second) = (rxpath(&words).ends(0), rxpath(&words));
    assert_eq!(first.out, second.out, "the same seed gives the same bytes");
    let got = first.json();
    assert_eq!(got["schema"], "rxpath/model-simulate/1.0");
    assert_eq!(got["settings"]["nic.ring"], 512);
    assert_eq!(got["settings"]["duration_ns"], 50_000_000);
    assert_eq!(got["result"]["ledger"]["unaccounted_packets"], 0);
    let other = rxpath(&["model", "simulate", "whole-path", "-d", "50ms", "--seed", "4", "--json"]);
    assert_ne!(first.out, other.out, "another seed is another run");
}

#[test]
fn a_simulation_is_kept_as_a_run_that_can_be_reported() {
    let base = tempfile::tempdir().unwrap();
    let out = base.path().display().to_string();
    let sets = ["--set", "reader.packet_ns=2us", "--set", "warmup=10ms", "-d", "100ms"];
    let words = [&["model", "simulate", "simple-path", "--out", out.as_str(), "--json"], &sets[..]]
        .concat();
    let done = rxpath(&words);
    let run = done.json()["result"]["run"].as_str().unwrap().to_owned();
    for file in ["manifest.json", "environment.json", "events.jsonl", "samples.jsonl.gz"] {
        assert!(Path::new(&run).join(file).exists(), "{file}");
    }
    assert!(std::fs::read_dir(Path::new(&run).join("histograms")).unwrap().count() >= 3);
    let report = rxpath(&["report", &run]).ends(0);
    assert!(report.err.is_empty(), "whole: {}", report.err);
    let page = std::fs::read_to_string(Path::new(&run).join("report.html")).unwrap();
    assert!(page.contains("all results here are simulated, none was measured"));
}

#[test]
fn bad_parameters_and_traces_are_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let trace = file("back.csv", "5,32,1\n4,32,1\n");
    let missing = file("missing.toml", "[arrivals]\nrate = 5\n");
    let broken = file("broken.toml", "[arrivals\n");
    let with = |set: &str| vec!["simple-path".to_owned(), "--set".into(), set.into()];
    for (words, told) in [
        (with("arrivals.rate=0"), "must be 1 to 1000000000 (packets/s)"),
        (with("duration=-5"), "it is negative"),
        (with("nic.rings=4"), "`nic.rings` is not a parameter"),
        (vec![missing], "`reader.packet_ns` is missing"),
        (vec![broken], "broken.toml"),
        (vec!["simple-paths".into()], "no bundled set and no file"),
        (
            vec![
                "simple-path".into(),
                "--set".into(),
                "arrivals.kind=trace".into(),
                "--set".into(),
                format!("arrivals.file={trace}"),
            ],
            "line 2: time goes backwards by 1 ns",
        ),
    ] {
        let words: Vec<&str> =
            ["model", "simulate"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let done = rxpath(&words).ends(2).warns(told);
        let lines = done.err.lines().filter(|line| line.starts_with("rxpath: ")).count();
        assert_eq!(lines, 1, "{done:?}");
    }
}

#[test]
fn a_calibration_of_another_host_is_refused_without_the_flag() {
    let file = repository("fuzz/corpus/model_calibration/whole");
    let sets = ["--set", "arrivals.rate=10k", "-d", "10ms", "--json"];
    let words = [&["model", "simulate", "--from", file.as_str()], &sets[..]].concat();
    let refused = rxpath(&words).ends(2);
    assert!(
        refused.err.contains("of another host: its kernel is 6.18.0")
            || refused.err.contains("its CPU is x"),
        "{refused:?}"
    );
    assert!(refused.err.contains("--foreign"), "{refused:?}");
    let got = rxpath(&[words.as_slice(), &["--foreign"]].concat()).ends(0).json();
    assert_eq!(got["settings"]["reader.packet_ns"], 612);
    assert_eq!(got["warnings"][0]["code"], "foreign-calibration");
    assert!(got["result"]["before"]["delivered_pps"].is_null(), "no base without a rate");
}
