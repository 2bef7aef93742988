//! `rxpath compare` as a program, on runs over loopback.

use std::path::Path;

use serde_json::Value;

use crate::program::rxpath;

/// A run whose trials each had these values of a metric; made from the directory of a real one.
fn with_values(run: &Path, to: &Path, name: &str, values: &[f64]) {
    edited(run, to, |variants| {
        let metric = &mut variants[0]["metrics"][name];
        metric["values"] = values.into();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        metric["median"] = sorted[sorted.len() / 2].into();
    });
}

/// A copy of a run whose manifest has other variants.
fn edited(run: &Path, to: &Path, edit: impl Fn(&mut Vec<Value>)) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(run).unwrap().map(Result::unwrap).filter(|f| f.path().is_file()) {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    let path = to.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(manifest["variants"].as_array_mut().unwrap());
    std::fs::write(path, manifest.to_string()).unwrap();
}

fn real_run(dir: &Path) -> std::path::PathBuf {
    let scenario = dir.join("small.toml");
    let text = "question = \"Does it compare?\"\n[topology]\nkind = \"local\"\n[load]\nrate = \"2k\"\n\
                [trials]\nblocks = 1\nmax_blocks = 1\naa = false\nramp = \"20ms\"\nsettle = \"0s\"\nmeasure = \"100ms\"\n";
    std::fs::write(&scenario, text).unwrap();
    let args = [
        "run",
        scenario.to_str().unwrap(),
        "--keep-noisy",
        "--json",
        "--wait=120s",
        "--out",
        dir.to_str().unwrap(),
    ];
    let value = rxpath(&args).json();
    value["settings"]["run"].as_str().unwrap().into()
}

#[test]
fn two_runs_are_better_worse_the_same_or_cannot_be_told() {
    let dir = tempfile::tempdir().unwrap();
    let run = real_run(dir.path());
    let made = |name: &str, rates: &[f64]| {
        let to = dir.path().join(name);
        with_values(&run, &to, "delivered_pps", rates);
        to.to_str().unwrap().to_owned()
    };
    let base = made("base", &[100.0, 101.0, 99.0, 100.5, 99.5]);
    let more = made("more", &[120.0, 121.0, 119.0, 120.5, 119.5]);
    let few = made("few", &[120.0, 121.0]);
    for (one, two, outcome, code) in [
        (&base, &more, "better", 0),
        (&more, &base, "worse", 1),
        (&base, &base, "same", 0),
        (&base, &few, "inconclusive", 4),
    ] {
        let output = rxpath(&["compare", one, two, "--json"]);
        assert_eq!(output.code, Some(code), "{outcome}");
        let value = output.json();
        assert_eq!(value["schema"], "rxpath/compare/1.0");
        assert_eq!(value["result"]["outcome"], outcome);
        let difference = &value["result"]["differences"][0];
        assert_eq!(difference["interval"].is_null(), outcome == "inconclusive");
        assert_eq!(value["result"]["hosts_changed"].as_array().unwrap().len(), 0);
    }
    let text = rxpath(&["compare", &base, &more]).out;
    assert!(text.contains("delivered_pps: 100 to 120, +20.0 % (95 % interval"), "{text}");
    for (args, says) in [
        (vec!["compare", &base, &more, "--variant", "no"], "--variant no: not in both runs"),
        (vec!["compare", &base, &more, "--metric", "no"], "no variant has no in both runs"),
        (vec!["compare", &base, &more, "--threshold", "2"], "--threshold 2: a share from 0 to 1"),
        (vec!["compare", &base, "/no/such/run"], "/no/such/run"),
    ] {
        rxpath(&args).ends(2).refuses("", says);
    }
}

#[test]
fn what_one_run_did_not_measure_is_a_row_and_no_pass() {
    let dir = tempfile::tempdir().unwrap();
    let run = real_run(dir.path());
    let values = dir.path().join("values");
    with_values(&run, &values, "delivered_pps", &[100.0, 101.0, 99.0, 100.5, 99.5]);
    let made = |name: &str, edit: &dyn Fn(&mut Vec<Value>)| {
        let to = dir.path().join(name);
        edited(&values, &to, |variants| {
            let mut second = variants[0].clone();
            second["name"] = "second".into();
            variants.push(second);
            edit(variants);
        });
        to.to_str().unwrap().to_owned()
    };
    let both = made("both", &|_| {});
    let without_metric = made("without-metric", &|variants| {
        variants[1]["metrics"].as_object_mut().unwrap().remove("delivered_pps");
    });
    let void = made("void", &|variants| variants[1]["metrics"] = serde_json::json!({}));
    let one = made("one", &|variants| drop(variants.pop()));
    let compared = |base: &str, other: &str, words: &[&str]| {
        let output = rxpath(&[&["compare", base, other, "--json"], words].concat());
        let value: Value = serde_json::from_str(&output.out).unwrap_or_default();
        (output.code, value)
    };
    assert_eq!(compared(&both, &both, &[]).0, Some(0));
    for other in [&without_metric, &void, &one] {
        let (code, value) = compared(&both, other, &[]);
        let rows = value["result"]["differences"].as_array().unwrap();
        assert_eq!((code, rows.len()), (Some(4), 2), "{other}: {rows:?}");
        assert_eq!(rows[1]["variant"], "second");
        assert_eq!(rows[1]["inconclusive_because"], "not-measured", "{other}: {rows:?}");
        assert_eq!((&rows[1]["medians"][0], &rows[1]["medians"][1]), (&100.0.into(), &Value::Null));
        assert_eq!(value["result"]["outcome"], "inconclusive");
    }
    let text = rxpath(&["compare", &both, &one]).out;
    assert!(text.contains("second: delivered_pps: inconclusive: B did not measure it"), "{text}");
    // What neither run measured is no loss.
    assert_eq!(compared(&without_metric, &void, &[]).0, Some(0));
    // A variant that is new has no base.
    let (code, value) = compared(&one, &both, &[]);
    assert_eq!((code, value["result"]["differences"].as_array().unwrap().len()), (Some(0), 1));
    assert!(value["warnings"].to_string().contains("variant-without-base"), "{value}");
    let asked = ["--metric", "delivered_pps", "--metric", "nosuch"];
    rxpath(&[&["compare", &both, &both][..], &asked].concat())
        .ends(2)
        .warns("no variant has nosuch in both runs");
}

#[test]
fn what_a_run_says_against_itself_is_said_where_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = real_run(dir.path());
    let noisy = dir.path().join("noisy");
    edited(&run, &noisy, |_| {});
    let path = noisy.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["warnings"] = serde_json::json!([
        { "code": "noisy-trials", "text": "this machine was busy: 10 of 10 trials" },
        { "code": "something-else", "text": "nothing against the figures" },
    ]);
    manifest["status"] = "interrupted".into();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let (run, noisy) = (run.to_str().unwrap(), noisy.to_str().unwrap());
    for words in [&["compare", run, noisy, "--json"][..], &["diagnose", noisy, "--json"]] {
        let value = rxpath(words).json();
        let warnings = value["warnings"].to_string();
        assert!(warnings.contains(&format!("{noisy}: this machine was busy")), "{warnings}");
        assert!(warnings.contains("the run was interrupted"), "{warnings}");
        assert!(!warnings.contains("nothing against"), "{warnings}");
    }
}

#[test]
fn scatter_between_runs_of_the_same_code_counts_when_it_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let run = real_run(dir.path());
    let made = |name: &str, rate: f64| {
        let to = dir.path().join(name);
        with_values(&run, &to, "delivered_pps", &[-1.0, 0.0, 1.0, 0.5, -0.5].map(|off| rate + off));
        to.to_str().unwrap().to_owned()
    };
    let (base, other) = (made("base", 100.0), made("other", 110.0));
    let (earlier, later) = (made("earlier", 85.0), made("later", 115.0));
    let outcome = |args: &[&str]| {
        let output = rxpath(&[&["compare", &base, &other, "--json"], args].concat());
        let value = output.json();
        let alone = value["result"]["assumes_no_run_scatter"].as_bool().unwrap();
        let warned = value["warnings"].to_string().contains("run-scatter-unknown");
        assert!(!warned || alone, "{value}");
        (value["result"]["outcome"].as_str().unwrap().to_owned(), alone, output.code)
    };
    assert_eq!(outcome(&[]), ("better".into(), true, Some(0)));
    assert_eq!(outcome(&["--strict"]), ("inconclusive".into(), true, Some(4)));
    let known = outcome(&["--history", &earlier, "--history", &later]);
    assert_eq!(known, ("inconclusive".into(), false, Some(4)));
    rxpath(&["compare", &base, &other, "--history", &earlier])
        .ends(2)
        .warns("--history: one further run shows no scatter");
}

#[test]
fn a_base_of_zero_is_compared_or_said_to_have_no_ratio() {
    let dir = tempfile::tempdir().unwrap();
    let run = real_run(dir.path());
    for (metric, more, outcome, code, says) in [
        ("loss_ratio", 0.3, "worse", 1, "+30.00 percentage points"),
        ("loss_ratio", 0.0, "same", 0, "+0.00 percentage points"),
        ("receiver_cpu_ns_per_packet", 900.0, "inconclusive", 4, "no ratio: the base is 0; +900"),
    ] {
        let made = |name: &str, values: &[f64]| {
            let to = dir.path().join(format!("{metric}-{more}-{name}"));
            with_values(&run, &to, metric, values);
            to.to_str().unwrap().to_owned()
        };
        let (base, other) = (made("base", &[0.0; 5]), made("other", &[more; 5]));
        let output = rxpath(&["compare", &base, &other, "--metric", metric, "--json"]);
        assert_eq!(output.code, Some(code), "{metric} {more}: {output:?}");
        let value = output.json();
        let found = &value["result"]["differences"][0];
        assert_eq!(found["outcome"], outcome);
        assert!(found["ratio"].is_null(), "{found}");
        for end in [0, 1] {
            let end = found["difference"]["interval"][end].as_f64();
            let is_right = end.map_or(outcome == "inconclusive", |end| (end - more).abs() < 1e-9);
            assert!(is_right, "{metric} {more}: {found}");
        }
        let text = rxpath(&["compare", &base, &other, "--metric", metric]).out;
        assert!(text.contains(says), "{text}");
    }
}
