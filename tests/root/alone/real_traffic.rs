//! `rxpath tune auto --live` on traffic that is there: what helps is found and proven, what stops it is undone at once, and
//! however the search ends, the settings are as before.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rxpath_host::Target;
use rxpath_host::write::setter::{HostSetter, Setter};
use serde_json::Value;

use crate::bed::{searched, tried, until};
use crate::program::{Said, said};
use crate::schema;
use crate::service::Service;

/// Slices in which a pause of half a second, as of a sender without a CPU, breaks no limit: two glances of 300 ms must.
const LONG: [&str; 4] = ["--slice", "1200ms", "--settle", "100ms"];

fn answer(done: &Said) -> Value {
    schema::result("tune-auto", &done.out)
}

/// The limit that these settings broke. Other load may break one too, with nothing on.
fn breach_by<'a>(found: &'a Value, settings: &str) -> &'a Value {
    let breaches = found["live"]["breaches"].as_array().unwrap();
    let is_by = |breach: &&Value| breach["by_settings"] == true && breach["on"][0] == settings;
    breaches.iter().find(is_by).unwrap_or_else(|| panic!("{found}"))
}

#[test]
fn a_setting_that_helps_is_found_on_real_traffic_and_left_in_force() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let words = ["--yes", "--settings", "GRO", "--guard", "loss_ratio<=+5%", "--budget", "30s"];
    let times = ["--slice", "300ms", "--settle", "100ms", "--seed", "3"];
    let words = [&words[..], &["--apply"]].concat();
    let done = searched(|| said(&mut service.search_by(&times, &words))).ends(0);
    let found = answer(&done);
    assert_eq!(found["found"]["kept"][0]["name"], "GRO");
    // One poll hands 20 segments on as one: 0.6 times the CPU time was seen here.
    assert!(found["found"]["gain"]["interval"]["high"].as_f64().unwrap() < 1.0, "{found}");
    let compared = found["compared"].as_array().unwrap();
    let busy = compared.iter().find(|one| one["metric"] == "busy_cpu_us_per_packet").unwrap();
    assert!(busy["pairs_count"].as_u64() >= Some(5), "{busy}");
    assert_eq!(found["plan"]["step"][0]["new"], "rx-gro=on");
    assert_eq!(found["live"]["restored_count"], 1);
    let count = |of: &str| found["live"][of].as_array().unwrap().len() as u64;
    let trials = found["found"]["trials_count"].as_u64().unwrap();
    assert!(count("slices") <= trials && trials <= count("slices") + count("breaches"), "{found}");
    let run = PathBuf::from(done.json()["settings"]["run"].as_str().unwrap());
    for file in ["plan.toml", "tune-auto.md", "tune-auto.json", "tune-auto.html"] {
        assert!(run.join(file).exists(), "{file}");
    }
    assert_eq!(found["applied"]["in_force"], true);
    assert!(service.has_gro(), "what is kept is in force");
    let undo = said(&mut service.rxpath(&["tune", "undo"])).ends(0);
    assert!(!service.has_gro(), "{undo:?}");
    service.assert_done();
}

#[test]
fn a_setting_that_stops_the_traffic_is_undone_and_named() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let mtu = "veth/link/mtu=1300";
    let words = ["--yes", "--settings", "nothing", "--try", mtu, "--budget", "30s"];
    // Traffic that pauses by itself, too, says nothing of a setting.
    let attempt = || {
        let done = said(&mut service.search(&words));
        assert!(service.read("veth/link").contains("mtu=1500"), "{done:?}");
        done
    };
    let done = tried(attempt, |done| done.code == Some(1)).ends(1);
    let found = answer(&done);
    let dropped = &found["found"]["dropped"][0];
    assert_eq!(dropped["name"], mtu);
    assert!(dropped["why"]["broke"].as_str().unwrap().contains("packets/s arrived"), "{dropped}");
    breach_by(&found, mtu);
    service.assert_done();
}

/// A search while which the route to the user's host is gone as long as GRO is on.
fn without_a_route(service: &Service) -> Said {
    let route = |action: &str| {
        let words = ["-n", service.rx.name(), "route", action, "10.99.0.0/24", "dev", "veth"];
        assert!(Command::new("ip").args(words).status().unwrap().success(), "{words:?}");
    };
    route("add");
    let mut command = service.search(&["--yes", "--settings", "GRO", "--budget", "30s"]);
    command.env("SSH_CONNECTION", "10.99.0.9 50022 10.99.0.1 22");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut is_there = true;
    // Longer than the budget, and than slices in a row that say nothing.
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the search goes on and on");
        if service.has_gro() == is_there {
            route(if is_there { "del" } else { "add" });
            is_there = !is_there;
        }
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(2));
    }
    if is_there {
        route("del");
    }
    let done = Said::from(child.wait_with_output().unwrap());
    assert!(!service.has_gro(), "{done:?}");
    done
}

/// The route to the user's host is gone while a setting is on: whatever it gains, it is undone and not tried again.
#[test]
fn a_setting_that_cuts_the_ssh_session_is_undone_and_named() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    // Where this thread has no CPU the route goes and comes late, in slices without GRO, too. Where the sender has none, the search
    // may end before.
    let is_cut = |done: &Said| {
        done.code == Some(1) && done.out.contains("\"broke\": \"your ssh session was cut off")
    };
    let done = tried(|| without_a_route(&service), is_cut).ends(1);
    let found = answer(&done);
    let dropped = &found["found"]["dropped"][0];
    let broke = dropped["why"]["broke"].as_str().unwrap();
    assert_eq!(broke, "your ssh session was cut off: there is no route to 10.99.0.9");
    let breach = breach_by(&found, "GRO");
    // The watchdog would have done it after 5 s and one and a half slices.
    assert!(breach["undone_after_s"].as_f64().unwrap() < 5.0, "{breach}");
    service.assert_done();
}

/// The kernel keeps these times in jiffies: 1 to 10 ms. Nothing else of the search matters: it ends once the value is set.
#[test]
fn a_value_that_the_kernel_rounds_is_told_with_what_was_measured() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let words = ["--yes", "--allow", "host", "--settings", "nothing", "--budget", "120s", "--try"];
    let set = "net.ipv4.neigh.veth.base_reachable_time_ms";
    let odd = format!("{set}=31001");
    let words = [&words[..], &[&odd]].concat();
    let before = service.read(set);
    let attempt = || {
        let mut command = service.search(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut is_over = false;
        // A sender without a CPU may end it before.
        until("a slice has it on", || {
            is_over = child.try_wait().unwrap().is_some();
            is_over || service.read(set) != before
        });
        if !is_over {
            kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        }
        Said::from(child.wait_with_output().unwrap())
    };
    let done = tried(attempt, |done| done.code == Some(130)).ends(130);
    let found = answer(&done);
    let rounded = found["live"]["rounded"].as_array().unwrap();
    assert_eq!(rounded.len(), 1, "{done:?}");
    let now: u64 = rounded[0]["after"].as_str().unwrap().parse().unwrap();
    assert!((31_002..31_011).contains(&now), "{found}");
    assert_eq!((&rounded[0]["set"], &rounded[0]["asked"]), (&set.into(), &"31001".into()));
    assert_eq!(service.read(set), before);
    service.assert_done();
}

/// Starts a search and waits until it has GRO on.
fn until_changed(service: &Service) -> Child {
    let words = ["--yes", "--settings", "GRO", "--budget", "120s"];
    let mut command = service.search_by(&LONG, &words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a slice has GRO on", || service.has_gro());
    child
}

#[test]
fn a_search_that_is_killed_or_interrupted_leaves_the_settings_as_they_were() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let before = service.settings();
    for (signal, status) in [(Signal::SIGKILL, None), (Signal::SIGINT, Some(130))] {
        let child = until_changed(&service);
        let status_now = said(&mut service.rxpath(&["tune", "status"])).out;
        // Between two slices nothing is in force.
        let is_told = status_now.contains(&format!("while process {} runs", child.id()));
        assert!(is_told || status_now.starts_with("nothing is changed"), "{status_now}");
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let ended = Said::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, status, "{ended:?}");
        assert_eq!(ended.out.contains("\"ended\": \"cut-short\""), status.is_some(), "{ended:?}");
        until("the settings are as before", || service.settings() == before);
        service.assert_done();
    }
}

#[test]
fn what_another_program_sets_meanwhile_ends_the_search_and_stays() {
    let Some(service) = Service::new() else { return };
    let service = service.stream();
    let words =
        ["--yes", "--settings", "nothing", "--try", "net.ipv4.tcp_rmem=4096 131072 9999999"];
    let rmem = "net.ipv4.tcp_rmem";
    let before = service.read(rmem);
    let words = [&words[..], &["--allow", "host", "--budget", "120s"]].concat();
    let mut command = service.search_by(&LONG, &words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a slice has it on", || service.read(rmem) != before);
    let foreign = "4096\t131072\t7777777";
    let target: Target = rmem.parse().unwrap();
    service.rx.run(move |_| HostSetter::default().write(&target, foreign)).unwrap().unwrap();
    Said::from(child.wait_with_output().unwrap())
        .ends(5)
        .warns("another program set net.ipv4.tcp_rmem to 4096");
    assert_eq!(service.read(rmem), foreign);
    service.assert_done();
}

#[test]
fn what_cannot_be_searched_on_is_refused_before_anything_changes() {
    let Some(service) = Service::new() else { return };
    let refused = |service: &Service, words: &[&str], code: i32, part: &str| {
        said(&mut service.search(words)).ends(code).warns(part);
        assert!(!service.state().join("1.journal").exists(), "{words:?}");
    };
    refused(&service, &["--yes"], 3, "there is no traffic to search on");
    let service = &service.stream();
    let cases = [
        (&["--settings", "GRO"][..], 2, "--yes allows it"),
        (&["--yes", "--try", "net.ipv4.nothing=1"], 2, "--try net.ipv4.nothing=1: not here"),
        (&["--yes", "--try", "veth/link/mtu=600"], 2, "IPv6"),
        (&["--yes", "--objective", "max delivered_pps"], 3, "it measures busy_cpu_us_per_packet"),
        (&["--yes", "--guard", "loss_ratio>0.1"], 2, "write <"),
        (&["--yes", "--budget", "5s"], 2, "too short"),
    ];
    // Most look at the traffic for a second first.
    std::thread::scope(|scope| {
        for (words, code, part) in cases {
            scope.spawn(move || refused(service, words, code, part));
        }
    });
    let listed = answer(&said(&mut service.search(&["--dry-run"])).ends(0));
    let names: Vec<&str> = listed["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"GRO"), "{names:?}");
    let left: Vec<&Value> = listed["not_available"].as_array().unwrap().iter().collect();
    let is_host_wide = |name: &str| {
        let one = left.iter().find(|left| left["what"] == name);
        one.is_some_and(|one| one["why"].as_str().unwrap().contains("--allow host"))
    };
    assert!(is_host_wide("no sleep of idle CPUs"), "{left:?}");
    service.assert_done();
}
