//! `rxpath diagnose --selftest`: each limit is made for real and recognised from its evidence, and judged again from the
//! run directory.
//!
//! Cases of CPU time are made beside whatever else the machine does: what disturbs them makes other limits. Of these the
//! trials that nothing disturbed must be recognised; of the others all that count.

use std::path::Path;
use std::process::Command;

use rxpath_record::evidence::CpuUse;
use rxpath_record::manifest::{Grade, Trial};
use rxpath_record::run::RunReader;
use serde_json::Value;

use crate::bed::may_run;
use crate::experiment::in_turn;
use crate::skip::skip;

/// Cases whose datagrams are made to cost a drawn time.
const TIMED: [&str; 7] =
    ["backlog", "softirq", "one-cpu", "rps-missing", "rps-pointless", "victim", "tick-artefact"];

fn rxpath(args: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let output = in_turn(command.args(args).arg("--json"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}"));
    (output.status.code(), value)
}

/// Which trials must be recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// Every trial that counts: no other load can turn these limits into others.
    Counted,
    /// Those that nothing disturbed, on any CPU: what takes CPU time from the path, or the time of a CPU that would be free
    /// for it, makes another limit, and rightly so.
    Undisturbed,
}

/// Makes these cases, twice each, and demands that they are recognised; judges the run again.
fn recognised(cases: &[&str], demand: Demand) {
    if !may_run() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().to_str().unwrap();
    let named = cases.iter().flat_map(|case| ["--case", case]);
    let base = ["diagnose", "--selftest", "--draws", "2", "--seed", "11", "--out", dir];
    let words: Vec<&str> = base.into_iter().chain(named).collect();
    let (code, value) = rxpath(&words);
    let result = &value["result"];
    // 4: other load voided all trials of a case. 1: a disturbed one was taken for another. Both are looked at below.
    assert!(matches!(code, Some(0 | 1 | 4)), "{code:?}: {result}");
    let rows = result["cases"].as_array().unwrap();
    let timed = rows.iter().any(|row| TIMED.contains(&row["case"].as_str().unwrap()));
    assert_eq!(result["rule_cost"].is_object(), timed, "measured where it is needed: {result}");
    assert_eq!(rows.len() + result["not_made"].as_array().unwrap().len(), cases.len(), "{result}");
    let run = RunReader::open(Path::new(value["settings"]["run"].as_str().unwrap())).unwrap();
    // A paired trial moves the softirq of another: it is none of the cases.
    let made = run.manifest.trials.iter().filter(|trial| !trial.variant.contains(" ("));
    let mut counted = 0;
    for trial in made {
        assert_eq!(trial.ledger.unaccounted_packets, 0, "{}: {:?}", trial.variant, trial.ledger);
        let case = trial.variant.rsplit_once('-').unwrap().0;
        let row = rows.iter().find(|row| row["case"] == case).unwrap();
        let verdict = trial.verdict.as_ref().unwrap();
        assert!(!verdict.next.is_empty() && !verdict.evidence.is_empty(), "{verdict:?}");
        let counts = match demand {
            Demand::Counted => trial.void.is_none(),
            Demand::Undisturbed => {
                trial.grade == Grade::A
                    && undisturbed(trial)
                    && !held_up(case, trial)
                    && is_made(case, trial)
            }
        };
        counted += u32::from(counts);
        let stage = serde_json::to_value(verdict.stage).unwrap();
        let right = row["expected"].as_array().unwrap().contains(&stage);
        assert!(right || !counts, "{}: {verdict:#?}", trial.variant);
    }
    if counted == 0 {
        let which = cases.join(", ");
        skip("selftest", &format!("other load kept all trials of {which} from it"));
    }
    let (code, again) = rxpath(&["diagnose", run.directory.to_str().unwrap()]);
    // 4: there is nothing to judge in a run whose trials are all void.
    let all_void = run.manifest.trials.iter().all(|trial| trial.void.is_some());
    assert_eq!(code, Some(if all_void { 4 } else { 0 }), "{again}");
    for variant in again["result"]["runs"][0]["variants"].as_array().unwrap() {
        let number = variant["trial"].as_u64().unwrap();
        let trial = run.manifest.trials.iter().find(|trial| u64::from(trial.trial) == number);
        let told = serde_json::to_value(trial.unwrap().verdict.as_ref().unwrap().stage).unwrap();
        assert_eq!(variant["verdict"]["stage"], told, "{variant}");
    }
}

/// No CPU of the machine had other load, also of those to which nothing is pinned.
fn undisturbed(trial: &Trial) -> bool {
    let quiet = |cpu: &CpuUse| {
        cpu.foreign_ratio.is_some_and(|ratio| ratio < 0.03) && cpu.steal_ratio < 0.02
    };
    trial.evidence.cpus.iter().all(quiet)
}

/// A sender that fell behind although it was asked for little: what was made is then that, and no healthy path.
fn held_up(case: &str, trial: &Trial) -> bool {
    let evidence = &trial.evidence;
    let behind = evidence.asked_pps.is_some_and(|asked| evidence.offered_pps < 0.99 * asked);
    behind && ["nothing", "victim", "tick-artefact"].contains(&case)
}

/// Whether the load that was drawn took as much of this host's CPU as the case is about: what rules cost is measured before
/// the run, and other load or a hypervisor can make that wrong.
fn is_made(case: &str, trial: &Trial) -> bool {
    let ledger = &trial.ledger;
    let probed = || trial.evidence.probed.iter();
    match case {
        "softirq" | "one-cpu" | "rps-missing" | "rps-pointless" => {
            ledger.lost_packets() > ledger.offered_packets / 1_000
        }
        "victim" => probed()
            .flat_map(|probed| &probed.tasks)
            .any(|task| !task.part_of_path && task.taken_ratio >= 0.2 * task.on_cpu_ratio.max(0.5)),
        "tick-artefact" => {
            probed().flat_map(|probed| &probed.cpus).any(|cpu| cpu.net_softirq_ratio >= 0.25)
        }
        _ => true,
    }
}

/// Time of the receive softirq for each datagram of a trial that came in, in ns, where tracepoints measured it.
fn measured_ns(trial: &Trial) -> Option<f64> {
    let cpus = &trial.evidence.probed.as_ref()?.cpus;
    let taken = cpus.iter().map(|cpu| cpu.net_softirq_ratio).fold(0.0, f64::max);
    (taken > 0.0).then(|| taken * 1e9 / trial.evidence.delivered_pps)
}

#[test]
fn rules_make_a_datagram_cost_what_was_drawn() {
    if !may_run() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    // Their readers keep pace: what is read in the window came in in the window.
    let cases = ["--case", "victim", "--case", "tick-artefact"];
    let base = ["diagnose", "--selftest", "--draws", "3", "--seed", "5", "--out"];
    let (_, value) = rxpath(&[&base[..], &[out.path().to_str().unwrap()], &cases[..]].concat());
    let cost = &value["result"]["rule_cost"];
    for (of, least, most) in [
        ("datagram_ns", 50.0, 20_000.0),
        ("first_rule_ns", 2.0, 500.0),
        ("later_rule_ns", 2.0, 500.0),
    ] {
        let ns = cost[of].as_f64().unwrap_or_else(|| panic!("{of} in {value}"));
        assert!((least..=most).contains(&ns), "{cost}");
    }
    let run = RunReader::open(Path::new(value["settings"]["run"].as_str().unwrap())).unwrap();
    let mut ratios = Vec::new();
    let quiet = |trial: &&Trial| trial.void.is_none() && undisturbed(trial);
    for trial in run.manifest.trials.iter().filter(quiet) {
        let variant = run.manifest.variants.iter().find(|variant| variant.name == trial.variant);
        let Some((variant, measured_ns)) = variant.zip(measured_ns(trial)) else { continue };
        let drawn = variant.what.rsplit_once("; ").unwrap().1.strip_suffix(" us each").unwrap();
        ratios.push(measured_ns / (1e3 * drawn.parse::<f64>().unwrap()));
    }
    ratios.sort_by(f64::total_cmp);
    match ratios.get(ratios.len() / 2) {
        Some(median) => assert!((0.67..=1.5).contains(median), "{ratios:?}"),
        None => skip("selftest", "other load disturbed all trials, or tracepoints measured none"),
    }
}

#[test]
fn drops_on_purpose_damage_and_a_closed_port() {
    recognised(&["filter", "checksum", "no-listener"], Demand::Counted);
}

#[test]
fn a_full_connection_table() {
    recognised(&["conntrack-full"], Demand::Counted);
}

#[test]
fn a_sender_that_could_not_offer_more_and_nothing_at_all() {
    recognised(&["sender", "nothing"], Demand::Undisturbed);
}

#[test]
fn queues_before_the_softirq() {
    recognised(&["ring", "backlog", "softirq"], Demand::Undisturbed);
}

#[test]
fn a_load_that_is_not_spread() {
    recognised(&["one-cpu", "rps-missing", "rps-pointless"], Demand::Undisturbed);
}

#[test]
fn readers_that_stall_are_slow_or_do_not_get_their_cpu() {
    recognised(&["socket-queue", "application", "descheduled", "livelock"], Demand::Undisturbed);
}

#[test]
fn several_readers_of_one_socket_and_of_one_group() {
    recognised(&["socket-lock", "reuseport"], Demand::Undisturbed);
}

#[test]
fn a_path_that_is_well_and_somebody_who_pays_or_is_told_wrong() {
    recognised(&["victim", "tick-artefact"], Demand::Undisturbed);
}
