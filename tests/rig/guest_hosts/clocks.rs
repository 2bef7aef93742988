//! A clock that does not keep its pace, or jumps, makes a trial void by the name of its host. A step of the time of day does not.
//!
//! What each run does to the clock of the guest is at the head of `guest_clocks.sh`. It does it in the first trial only.

use serde_json::Value;

use super::{drift, measured};
use crate::between_hosts::{assert_done, trial};
use crate::reading::{json, part};

/// What a part of a trial may be off its pace.
const LIMIT_PPM: f64 = 600.0;
/// How much faster the clock of `sped up` runs: less than what the comparisons of two clocks allow.
const SPED_UP_PPM: f64 = 1_000.0;

/// All trials of a run: why each is void.
fn voids(out: &str, name: &str) -> Vec<Option<String>> {
    let trials = json(out, name)["result"]["trials"].clone();
    let void = |trial: &Value| trial["void"].as_str().map(str::to_owned);
    trials.as_array().unwrap_or_else(|| panic!("{name}: {trials}")).iter().map(void).collect()
}

/// What was done to the clock in the first window of a run.
fn done<'a>(out: &'a str, name: &str) -> &'a str {
    let done = part(out, &format!("{name} done"));
    assert!(done.lines().any(|line| line == "in the window"), "{name}: three times late: {done}");
    done
}

/// The fault of the guest with these words that made the first trial void. The run's text has the reason too, and a repeat counts.
fn fault(out: &str, name: &str, words: &str) -> String {
    assert_done(out, &[name]);
    let (voids, errors) = (voids(out, name), part(out, &format!("{name} errors")));
    let why = voids.first().cloned().flatten();
    let why =
        why.unwrap_or_else(|| panic!("{name}: the first trial is not void: {voids:?}: {errors}"));
    assert!(errors.contains(&format!("void, to be repeated: {why}")), "{name}: {why}: {errors}");
    let found = why.split("; ").find(|one| one.starts_with("guest: ") && one.contains(words));
    let found = found.unwrap_or_else(|| panic!("{name}: no {words:?} of the guest: {voids:?}"));
    trial(out, name);
    found.to_owned()
}

/// The number between two texts.
fn number(text: &str, before: &str, after: &str) -> f64 {
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let number = rest.and_then(|rest| rest.split_once(after)).and_then(|(it, _)| it.parse().ok());
    number.unwrap_or_else(|| panic!("no number between {before:?} and {after:?}: {text}"))
}

/// How long QEMU stopped the machine, by its events. **Unit** ms.
fn stopped_ms(done: &str) -> f64 {
    let events: Vec<Value> = done.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
    let at_ms = |name: &str| {
        let event = events.iter().find(|event| event["event"] == name);
        let time = &event.unwrap_or_else(|| panic!("no {name}: {done}"))["timestamp"];
        let of = |unit: &str| time[unit].as_f64().unwrap_or_else(|| panic!("no {unit}: {done}"));
        of("seconds") * 1e3 + of("microseconds") / 1e3
    };
    at_ms("RESUME") - at_ms("STOP")
}

#[test]
fn a_slewed_clock_voids_a_trial_by_the_name_of_its_host() {
    let Some(out) = measured() else { return };
    // From before the trial to its end, at a sender. Readings may be wrong, so the fault says what is sure.
    let sped_up = fault(out, "sped up", " ppm in the window");
    let ppm = number(&sped_up, "its clock was sped up by ", " ppm in the window");
    assert!(LIMIT_PPM < ppm && ppm <= SPED_UP_PPM + 1.0, "{sped_up}");
    // There and back within the window, at a receiver: the ends alone would not show it.
    let what = done(out, "swung");
    let swung = fault(out, "swung", " off an even pace in the window");
    let off_ms = number(&swung, "its clock was up to ", " ms off");
    assert!(off_ms > 0.0, "{swung}: {what}");
}

#[test]
fn the_clock_of_a_machine_that_was_stopped_voids_a_trial_by_its_name() {
    let Some(out) = measured() else { return };
    let what = done(out, "stopped");
    let jumped = fault(out, "stopped", "its clock jumped by ");
    let behind_ms = -number(&jumped, "its clock jumped by ", " ms in the trial");
    // The clock stops just before the one event and goes on just after the other one: QEMU may have no CPU for half a second there.
    let stopped_ms = stopped_ms(what);
    let is_that = (stopped_ms * 0.9..stopped_ms + 1_000.0).contains(&behind_ms);
    assert!(is_that, "{jumped}, stopped for {stopped_ms} ms: {what}");
    let voids = voids(out, "stopped");
    let slewed = voids.iter().flatten().any(|why| why.contains("guest: its clock was"));
    assert!(!slewed, "both of its clocks stopped: {voids:?}");
    let first = &json(out, "stopped")["result"]["trials"][0]["warnings"];
    let warnings = first.as_array().unwrap();
    let is_jump = |warning: &Value| warning["code"] == "clock-jump" && warning["text"] == *jumped;
    assert!(warnings.iter().any(is_jump), "{jumped}: {warnings:?}");
    // The two clocks are one but for the stop, which is no drift.
    let [apart, error] = drift(&json(out, "stopped")["result"]["hosts"], "stopped");
    assert!(apart.abs() <= error, "{apart} +-{error} ppm");
}

#[test]
fn a_step_of_the_time_of_day_voids_nothing() {
    let Some(out) = measured() else { return };
    assert_done(out, &["stepped"]);
    let times: Vec<i64> =
        done(out, "stepped").lines().filter_map(|line| line.parse().ok()).collect();
    let [before, back, after] = times[..] else { panic!("{times:?}") };
    assert!(before - back > 3_000 && after - back > 3_000, "{times:?}");
    let voids = voids(out, "stepped");
    // This machine's own clock may be slewed meanwhile.
    let is_of_guest = |fault: &&str| fault.contains("clock") && !fault.starts_with("here: ");
    let found: Vec<&str> =
        voids.iter().flatten().flat_map(|why| why.split("; ")).filter(is_of_guest).collect();
    assert!(found.is_empty(), "{found:?}: {voids:?}");
    trial(out, "stepped");
}
