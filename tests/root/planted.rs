//! Faults that an expert would see, planted in fresh network namespaces: `rxpath check` finds each, and nothing else.
//!
//! The namespaces are this test's own. What a check says of the whole machine is not looked at: others work there too.

mod frames;
mod holds;
mod place;
mod table;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use place::{Found, Pair, bare, check};
use table::{Fault, HEALTHY, all};

use crate::bed::may_run;
use crate::skip::skip;

/// Checks at a time; each waits most of its time for its window.
const WORKERS: usize = 6;

/// At least so many faults are planted, and of ten at least nine are found.
const LEAST: usize = 60;

/// What came of one fault.
struct Came {
    fault: Fault,
    /// What was found besides what is about the machine; or why the fault could not be planted.
    found: Result<Vec<Found>, String>,
}

impl Came {
    fn is_found(&self) -> bool {
        self.found.as_ref().is_ok_and(|all| all.iter().any(|one| one.rule == self.fault.rule))
    }

    /// Findings that the fault does not explain.
    fn false_ones(&self) -> Vec<&Found> {
        let all = self.found.as_ref().map_or(&[][..], Vec::as_slice);
        let explained = |one: &&Found| {
            one.rule != self.fault.rule && !self.fault.also.contains(&one.rule.as_str())
        };
        all.iter().filter(explained).collect()
    }
}

/// Plants a fault and checks its namespace while the traffic runs.
fn plant(fault: Fault) -> Result<Vec<Found>, String> {
    let pair = Pair::new();
    pair.tx.shell(fault.tx)?;
    pair.rx.shell(fault.rx)?;
    let held =
        (fault.tx_hold.map(|hold| pair.tx.run(hold)), fault.rx_hold.map(|hold| pair.rx.run(hold)));
    let stop = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        for (place, load) in [(&pair.rx, fault.rx_load), (&pair.tx, fault.tx_load)] {
            let Some(load) = load else { continue };
            let stop = &stop;
            scope.spawn(move || place.run(|| load(stop)));
        }
        if fault.rx_load.is_some() || fault.tx_load.is_some() {
            // why: the traffic has to have begun before the first reading, and connections to be open.
            std::thread::sleep(Duration::from_millis(150));
        }
        let found = std::panic::catch_unwind(|| check(&pair.rx, fault.goal));
        stop.store(true, Ordering::Relaxed);
        found
    });
    drop(held);
    found.map_err(|_| "the check failed".to_owned())
}

/// Rules that find something in a namespace with its loopback alone, by goal: they are about the machine.
fn about_the_machine(
    goals: &BTreeSet<Option<&'static str>>,
) -> BTreeMap<Option<&'static str>, BTreeSet<String>> {
    let place = bare();
    let rules = |goal: Option<&'static str>| {
        let found = check(&place, goal).into_iter().filter(Found::is_of_namespace);
        found.map(|one| one.rule).collect::<BTreeSet<String>>()
    };
    goals.iter().map(|goal| (*goal, rules(*goal))).collect()
}

/// Plants all of them, some at a time.
fn plant_all(faults: &[Fault]) -> Vec<Came> {
    let goals = faults.iter().map(|fault| fault.goal).collect();
    let machine = about_the_machine(&goals);
    assert!(machine[&None].is_empty(), "found without any device: {:?}", machine[&None]);
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut found = plant(*fault);
                    if let Ok(found) = &mut found {
                        found.retain(|one| {
                            one.is_of_namespace() && !machine[&fault.goal].contains(&one.rule)
                        });
                    }
                    all.lock().unwrap().push(Came { fault: *fault, found });
                }
            });
        }
    });
    all.into_inner().unwrap()
}

fn has_programs() -> bool {
    let is_there = |program: &&str| {
        Command::new("sh")
            .args(["-c", &format!("command -v {program} > /dev/null")])
            .status()
            .unwrap()
            .success()
    };
    ["ip", "tc", "nft"].iter().all(is_there)
}

#[test]
fn planted_faults_are_found_and_nothing_else() {
    if !may_run() {
        return;
    }
    if !has_programs() {
        return skip("programs", "not here: ip, tc or nft");
    }
    let begin = Instant::now();
    let faults: Vec<Fault> = all().chain(HEALTHY.iter().copied()).collect();
    let came = plant_all(&faults);
    let (mut planted, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
    for one in &came {
        let Fault { name, rule, .. } = one.fault;
        for found in one.false_ones() {
            wrong.push(format!("{name}: {} {:?} {}", found.rule, found.device, found.observed));
        }
        match &one.found {
            Err(why) => eprintln!("not planted: {name}: {why}"),
            Ok(_) if rule.is_empty() => {}
            Ok(found) => {
                planted += 1;
                if !one.is_found() {
                    let rules: Vec<&str> = found.iter().map(|one| one.rule.as_str()).collect();
                    missed.push(format!("{name}: no {rule}, but {rules:?}"));
                }
            }
        }
    }
    eprintln!("{planted} faults planted, {} missed: {missed:#?}", missed.len());
    eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
    assert!(wrong.is_empty(), "found without a fault: {wrong:#?}");
    assert!(planted >= LEAST, "{planted} of {} planted", faults.len());
    assert!(missed.len() * 10 <= planted, "{} of {planted} missed: {missed:#?}", missed.len());
    for one in came.iter().filter(|one| one.fault.rule.is_empty()) {
        assert!(one.found.is_ok(), "{}: {:?}", one.fault.name, one.found.as_ref().err());
    }
}
