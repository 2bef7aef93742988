//! Experiments over real ssh: a coordinator and two hosts in namespaces of their own, each host with a real sshd.

mod armed;
mod deaths;
mod hostile_words;
mod hosts_command;
mod kept_settings;
mod lease;
mod left_settings;
mod no_place;
mod observing;
mod ordinary_user;
mod pairs;
mod paths;
mod refused_settings;
mod relay;
mod secrets;
mod sent_builds;
pub mod site;
mod steady;
mod strange_logins;
mod two_receivers;
mod unreached;
mod wire;

use std::path::Path;
use std::time::{Duration, Instant};

use rxpath_record::manifest::Trial;
use rxpath_record::run::RunReader;

use self::site::Site;
use crate::bed::Bed;
use crate::skip::skip;

/// In which all ends and is undone that lost its connection: before the lease of 20 s does the same, and not sooner than a busy
/// machine can.
const SOON: Duration = Duration::from_secs(15);

/// About half a second a trial.
pub const QUICK: [&str; 6] = [
    "load.rate=2k",
    "trials.ramp=100ms",
    "trials.settle=100ms",
    "trials.measure=200ms",
    "trials.max_blocks=1",
    "trials.aa=false",
];

/// The site, where it can be made. The program is on its hosts: no test waits until it is sent.
pub fn site() -> Option<Site> {
    new_site().inspect(|site| ["gen1", "sut"].iter().for_each(|alias| site.store_on(alias)))
}

/// The same with hosts on which nothing of rxpath is.
fn new_site() -> Option<Site> {
    let bed = Bed::new()?;
    match Site::new(bed) {
        Ok(site) => Some(site),
        Err(missing) => {
            skip("sshd", &missing);
            None
        }
    }
}

#[test]
fn a_scenario_runs_between_two_hosts_over_ssh_and_leaves_nothing_of_them_in_its_directory() {
    let Some(site) = new_site() else { return };
    let check = site
        .rxpath(&["hosts", "check", &site.inventory])
        .ends(0)
        .warns("gen1: sending rxpath")
        .prints("ready: gen1 -> sut (10.78.3.2)");
    let control = "control over mgmt, not the measured link, round trip ";
    assert_eq!(check.out.matches(control).count(), 2, "{check:?}");
    let out = site.path("runs");
    let mut words = vec![
        "run",
        "udp-pinning",
        "--hosts",
        &site.inventory,
        "--out",
        &out,
        "--trials",
        "1",
        "--keep-noisy",
    ];
    words.extend(QUICK.iter().flat_map(|set| ["--set", set]));
    let run = site.rxpath(&words);
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    assert!(!run.err.contains("sending rxpath"), "the copies are there: {run:?}");
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let reader = RunReader::open(&directory).unwrap();
    for trial in &reader.manifest.trials {
        assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
        for host in trial.hosts.values() {
            assert!(!host.endpoint_cost.as_ref().unwrap().cpus.is_empty(), "{host:?}");
        }
    }
    let path = reader.manifest.hosts["gen1"].path_clocks["sut"];
    let off_ns = path.ahead_ns - i64::from(site::AHEAD_S) * 1_000_000_000;
    assert!(off_ns.unsigned_abs() <= path.error_ns, "{path:?}");
    // The sender's clock is a day ahead: rates and windows are right only if every instant was brought to one clock.
    // On a busy machine the sender of one trial may get no CPU in its window.
    let rate = |trial: &Trial| trial.metrics.get("delivered_pps").copied().unwrap_or_default();
    let trials = &reader.manifest.trials;
    assert!(trials.iter().any(|trial| rate(trial) > 0.0), "{trials:#?}");
    let offered: u64 = trials.iter().map(|trial| trial.ledger.offered_packets).sum();
    assert!(offered > 100, "{trials:#?}");
    secrets::are_kept(&site, &directory);
    site.holds_nothing(SOON);
}

#[test]
fn whoever_dies_in_a_trial_nothing_is_left_on_the_hosts() {
    let Some(site) = site() else { return };
    let long = ["trials.measure=60s", "trials.time_limit=5min", "background.command=sleep 3333"];
    let sets: Vec<&str> = QUICK.iter().chain(&long).flat_map(|set| ["--set", set]).collect();
    let out = site.path("runs");
    let words = ["run", "udp-pinning", "--hosts", &site.inventory, "--out", &out, "--trials", "1"];
    let start = || {
        let mut all = words.to_vec();
        all.extend(&sets);
        let run = site.start(&all);
        // Both programs run: the load is what is started last.
        site.wait_for("gen1", " load udp ");
        site.wait_for("sut", "sleep 3333");
        run
    };
    let nothing_is_left = || {
        site.holds_nothing(SOON);
        site.wait_for_none("sut", "sleep 3333");
    };
    // The coordinator.
    let run = start();
    run.kill();
    nothing_is_left();
    // An endpoint: the run ends and says which host was lost.
    let run = start();
    site.kill_in("gen1", " endpoint");
    let ended = run.wait().ends(5);
    // Nothing was changed on the hosts: there is nothing to say of it.
    let what = " phase (its connection ended); trial 1 is void\n";
    assert!(ended.err.contains("gen1 was lost in the "), "{ended:?}");
    assert!(ended.err.contains(what), "{ended:?}");
    nothing_is_left();
    // The sender's workload: the trial's own failure, by name.
    let run = start();
    site.kill_in("gen1", " load udp ");
    run.wait().ends(5).warns("load died during");
    nothing_is_left();
}

/// One variant changes the receiver's host, one wants what its device does not have.
const CHANGING: &str = r#"
    question = "?"
    [load]
    rate = "2k"
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "100ms"
    measure = "200ms"
    [[variant]]
    name = "base"
    [[variant]]
    name = "changed"
    tune.receiver."net.core.somaxconn" = 4321
    lab.gro = true
    [[variant]]
    name = "none"
    tune.receiver."{dev}/rings/rx" = 512
"#;

#[test]
fn settings_of_hosts_hold_for_a_trial_only_where_they_were_allowed() {
    const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
    let Some(site) = site() else { return };
    let file = site.write("s.toml", CHANGING);
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let refused = site.rxpath(&words).ends(2);
    let what = "this run changes settings of hosts: sut: data/rings/rx = 512 (for none)";
    assert!(refused.err.contains(what) && !Path::new(&out).exists(), "{refused:?}");
    let before = site.sysctl("sut", SOMAXCONN);
    let allowed = [&words[..], &["--change-hosts"]].concat();
    let run = site.rxpath(&allowed);
    // 5: one variant is not available.
    assert!(matches!(run.code, Some(4 | 5)), "{run:?}");
    assert!(run.err.contains("cannot be set on sut: data/rings/rx=512: "), "{run:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let events = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    let read_back = format!(r#""setting":"net.core.somaxconn","old":"{before}","new":"4321""#);
    // Once in each trial of that variant: one that is void is repeated.
    let trials = events.matches(r#""variant":"changed""#).count();
    assert_eq!(events.matches(&read_back).count(), trials, "{events}");
    // A key of the lab's link in which variants differ is a setting of the device in each of them.
    assert!(events.contains(r#""new":"rx-gro=on""#), "{events}");
    assert!(events.contains("rx-gro=off"), "{events}");
    // The end of the coordinator undoes them.
    let always = CHANGING.split("[[variant]]").next().unwrap();
    let always = format!("{always}[tune.receiver]\n\"net.core.somaxconn\" = 4321\n");
    let file = site.write("s.toml", &always.replace("200ms", "60s"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let run = site.start(&words);
    let is = |value: &str| site.sysctl("sut", SOMAXCONN) == value;
    until(Duration::from_secs(60), "the setting", || is("4321"));
    run.kill();
    until(SOON, "the setting of before", || is(&before));
    site.holds_nothing(SOON);
}

/// A server with a file of its own that prints what names its host, and a generator.
const FOREIGN: &str = r#"
    question = "?"
    [serve]
    protocol = "udp"
    command = ["sh", "{dir}/serve.sh"]
    files = { "serve.sh" = "cat /proc/sys/kernel/hostname /etc/passwd; ip address; exec iperf3 -s -1 -p {port}" }
    [load]
    command = ["iperf3", "-u", "-J", "-c", "{addr}", "-p", "{port}", "-b", "8M", "-l", "200", "-t", "{duration_s}"]
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "400ms"
    measure = "4s"
"#;

#[test]
fn programs_of_others_run_on_both_hosts_and_go_with_the_trial() {
    if !Path::new("/usr/bin/iperf3").exists() {
        skip("iperf3", "there is no iperf3");
        return;
    }
    let Some(site) = site() else { return };
    let file = site.write("s.toml", FOREIGN);
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.rxpath(&words);
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let directory = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let manifest = RunReader::open(&directory).unwrap().manifest;
    let trial = &manifest.trials[0];
    // By the kernel's counters of each host, told by lines of its own: 5,000 per second, far less or some more where the generator
    // waited for a CPU. Counted on both hosts, or for one clock of two, they would be no such number.
    for metric in ["delivered_pps", "offered_pps"] {
        assert!((500.0..7_500.0).contains(&trial.metrics[metric]), "{:?}", trial.metrics);
    }
    let printed = |side: &str| trial.workloads[side]["result"]["stdout"].to_string();
    assert!(printed("serve").starts_with("\"sut\\n"), "{:?}", trial.workloads["serve"]);
    assert!(printed("load").contains("system_info"), "{:?}", trial.workloads["load"]);
    secrets::are_kept(&site, &directory);
    site.holds_nothing(SOON);
    let words = [&words[..], &["--set", "trials.measure=60s"]].concat();
    let run = site.start(&words);
    site.wait_for("gen1", "iperf3 -u");
    assert!(site.has_files(), "the server's file is there");
    run.kill();
    site.wait_for_none("sut", "iperf3");
    site.wait_for_none("gen1", "iperf3");
    until(SOON, "no directory of a program", || !site.has_files());
    // What a killed endpoint leaves is removed by the next one.
    let run = site.start(&words);
    site.wait_for("gen1", "iperf3 -u");
    site.kill_in("sut", " endpoint");
    assert_eq!(run.wait().code, Some(5));
    let check = site.rxpath(&["hosts", "check", &site.inventory]);
    assert_eq!((check.code, site.has_files()), (Some(0), false), "{check:?}");
    site.wait_for_none("sut", "iperf3");
}

/// 25 datagrams arrive while the reader stalls; a buffer of 4 KiB holds five of them.
pub const STALLING: &str = r#"
    question = "Which settings help a reader that stalls?"
    [serve]
    sleep = "5ms"
    every = "10ms"
    rcvbuf = "4KiB"
    [load]
    rate = "5k"
"#;

#[test]
fn a_search_between_hosts_undoes_what_it_tried_even_if_it_is_killed() {
    const EARLY_DEMUX: &str = "/proc/sys/net/ipv4/udp_early_demux";
    let Some(site) = site() else { return };
    let file = site.write("s.toml", STALLING);
    let out = site.path("runs");
    let words = ["tune", "auto", "--scenario", &file, "--hosts", &site.inventory, "--out", &out];
    site.rxpath(&words).ends(2).warns("--change-hosts allows it");
    let quick = ["--set", "trials.ramp=20ms", "--set", "trials.measure=100ms", "--budget", "10min"];
    let words = [&words[..], &["--change-hosts", "--json", "--settings", "no early demux"], &quick]
        .concat();
    let before = site.sysctl("sut", EARLY_DEMUX);
    let more = ["larger receive buffer", "larger ring", "larger budget*"];
    let more: Vec<&str> = more.iter().flat_map(|name| ["--settings", name]).collect();
    let tried = [&words[..], &more, &["--dry-run"]].concat();
    let ended = site.rxpath(&tried).ends(0);
    let result = crate::schema::result("tune-auto", &ended.out);
    let names = |list: &serde_json::Value, field: &str| -> Vec<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| one[field].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&result["candidates"], "name").contains(&"no early demux".into()), "{result}");
    // The veth has no ring; a limit of the whole host is not that of a network namespace.
    let left_out = names(&result["not_available"], "what");
    assert_eq!(left_out, ["larger ring", "larger budget of a softirq"], "{result}");
    assert_eq!(site.sysctl("sut", EARLY_DEMUX), before);
    // Killed at once after a setting was made. A short budget could be refused where other tests make trials slow.
    let run = site.start(&words);
    until(Duration::from_secs(300), "the setting", || site.sysctl("sut", EARLY_DEMUX) != before);
    run.kill();
    until(SOON, "as before", || site.sysctl("sut", EARLY_DEMUX) == before);
    site.holds_nothing(SOON);
}

#[test]
fn a_command_runs_on_another_host_with_its_result_status_and_end() {
    let Some(site) = site() else { return };
    let on_sut = |words: &[&str]| {
        let mut all = words[..1].to_vec();
        all.extend(["--host", "sut.lab"]);
        all.extend(&words[1..]);
        site.rxpath(&all)
    };
    let check = on_sut(&["check", "--json"]).warns("sut.lab: sending rxpath");
    let facts = check.json();
    // The device of the link between the hosts: the coordinator has none of this name.
    assert!(facts.to_string().contains("\"data\""), "{check:?}");
    for words in [
        &["doctor", "--json"][..],
        &["diagnose", "-d", "300ms", "--json"],
        &["trace", "-d", "300ms", "--json"],
        &["watch", "--once", "--json"],
    ] {
        let ended = on_sut(words);
        let schema = format!("\"rxpath/{}/", words[0]);
        assert!(ended.out.contains(&schema), "{words:?}: {ended:?}");
        assert!(!ended.err.contains("sending rxpath"), "the copy is there: {ended:?}");
    }
    // The status of the user's own command, and of words that are wrong there.
    on_sut(&["steal", "--irq-entry", "1", "--", "sh", "-c", "exit 7"]).ends(7);
    on_sut(&["trace", "--netns", "nosuch", "-d", "1s"]).ends(2).warns("--netns nosuch");
    site.rxpath(&["check", "--host", "nowhere.invalid"])
        .ends(3)
        .warns("nowhere.invalid: ssh does not know the host (ssh: Could not resolve hostname ");
    // Ended early, it prints what it has; killed, it leaves nothing.
    let words = ["trace", "--host", "sut.lab", "-d", "10m", "--json"];
    let running = site.start(&words);
    site.wait_for_handler("sut", " trace -d 10m");
    running.interrupt();
    running.wait().ends(130).prints("\"rxpath/trace/");
    let running = site.start(&words);
    site.wait_for("sut", " trace -d 10m");
    running.kill();
    site.wait_for_none("sut", " trace ");
}

/// Waits for a condition.
fn until(limit: Duration, what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} within {} s", limit.as_secs());
        // why: polls a condition with the deadline above.
        std::thread::sleep(Duration::from_millis(20));
    }
}
