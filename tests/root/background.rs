//! Load next to a workload: where it runs, how nice it is, and that it ends with the trial.

use crate::bed::{may_run, until};
use crate::experiment;
use crate::over_tcp::named;

#[test]
fn background_load_acts_and_a_run_says_what_nice_could_do() {
    if !may_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let marks = |name: &str| dir.path().join(name);
    let command = |name: &str, before: &str| {
        // What it is given is in its own files; then it is busy until it is ended.
        let script = format!(
            "(cut -d' ' -f19 /proc/self/stat; grep Cpus_allowed_list /proc/self/status) > {}.$$; \
             while :; do :; done",
            marks(name).display()
        );
        format!("variant.{name}.background.command=[{before}\"sh\", \"-c\", \"{script}\"]")
    };
    let sets = [command("next-to-4", ""), command("other-session", "\"setsid\", \"--wait\", ")];
    let trials = experiment::run("background", &[&sets[0], &sets[1], "trials.measure=4s"]);
    let left = |name: &str| -> Vec<String> {
        let entries = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let of = |path: &std::path::PathBuf| path.file_stem().is_some_and(|stem| stem == name);
        entries.filter(of).map(|path| std::fs::read_to_string(path).unwrap()).collect()
    };
    // The lab puts the receiver onto the second CPU where there is one.
    let cpu = named(&trials, "next-to-4").evidence.receiver_threads[0].asked_cpu.unwrap();
    let four = left("next-to-4");
    // A run without rates is made again, with commands of its own.
    let runs = four.len() / 4;
    assert!(runs > 0 && four.len() == 4 * runs, "{four:?}");
    assert!(four.iter().all(|text| *text == format!("7\nCpus_allowed_list:\t{cpu}\n")), "{four:?}");
    assert_eq!(left("other-session").len(), runs);
    let codes = |name: &str| -> Vec<String> {
        named(&trials, name).warnings.iter().map(|warning| warning.code.clone()).collect()
    };
    let said = codes("other-session");
    assert!(!said.contains(&"background-ended".into()), "{said:?}");
    let grouping = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    let grouping = grouping.is_ok_and(|text| text.trim() == "1");
    assert_eq!(said.iter().any(|code| code.starts_with("nice-")), grouping, "{said:?}");
    assert!(!codes("next-to-4").iter().any(|code| code.starts_with("nice-")));
    // Nothing of it outlives the run for long: what was killed needs its CPU to end.
    let words = dir.path().display().to_string();
    until("no command is left", || {
        let running = std::process::Command::new("pgrep").args(["-f", &words]).output();
        running.unwrap().stdout.is_empty()
    });
}
