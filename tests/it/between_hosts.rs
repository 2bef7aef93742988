//! Experiments between hosts without root: both ends on this machine's loopback, each behind an endpoint and its pipe.

mod bundled;
mod chosen;
mod unusable;

use std::fs;
use std::path::Path;
use std::process::Command;

use rxpath_record::manifest::{Manifest, Trial};

use crate::program::{Said, said};

const INVENTORY: &str = r#"
    [hosts.gen1]
    ssh = "local"
    role = "sender"
    [hosts.sut]
    ssh = "local"
    role = "receiver"
    addr = ["127.0.0.1"]
"#;

/// The program: as root on a loopback of its own, because a ledger counts what the whole loopback loses, and other tests
/// send there too.
fn rxpath(words: &[&str]) -> Said {
    let program = env!("CARGO_BIN_EXE_rxpath");
    if !nix::unistd::geteuid().is_root() {
        return said(Command::new(program).args(words));
    }
    let own = "mount -t sysfs sysfs /sys; ip link set lo up; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-ec", own, "sh", program]);
    said(command.args(words))
}

fn inventory(dir: &Path, text: &str) -> String {
    let file = dir.join("lab.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// One trial of a scenario between the hosts, and every byte of its run directory.
fn run(scenario: &str) -> (Manifest, Vec<u8>) {
    run_between(INVENTORY, scenario)
}

/// The same between these hosts. On a busy machine all trials may begin too late for their windows: up to three runs.
fn run_between(hosts: &str, scenario: &str) -> (Manifest, Vec<u8>) {
    let counts = |(manifest, _): &(Manifest, _)| manifest.trials.iter().any(|it| it.void.is_none());
    let mut more = (0..2).map(|_| run_once(hosts, scenario)).skip_while(|run| !counts(run));
    more.next().unwrap_or_else(|| run_once(hosts, scenario))
}

fn run_once(hosts: &str, scenario: &str) -> (Manifest, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), hosts);
    let file = dir.path().join("s.toml");
    fs::write(&file, scenario).unwrap();
    let out = dir.path().join("runs");
    let paths = [file.to_str().unwrap(), &hosts, out.to_str().unwrap()];
    let words = ["run", paths[0], "--hosts", paths[1], "--out", paths[2]];
    let output = rxpath(&[&words[..], &["--keep-noisy", "--json", "--wait=120s"]].concat());
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(output.code, Some(0 | 4)), "{output:?}");
    let answer = output.json();
    let mut kept = Vec::new();
    let run = answer["settings"]["run"].as_str().unwrap();
    for entry in fs::read_dir(run).unwrap().flatten().filter(|it| it.path().is_file()) {
        kept.extend(fs::read(entry.path()).unwrap());
    }
    (serde_json::from_value(answer["result"].clone()).unwrap(), kept)
}

/// The first trial that counts: one that began too late for its window is repeated.
fn counted(manifest: &Manifest) -> &Trial {
    let mut counts = manifest.trials.iter().filter(|trial| trial.void.is_none());
    counts.next().unwrap_or(&manifest.trials[0])
}

const TRIALS: &str = "[trials]\nblocks = 1\nmax_blocks = 1\naa = false\nramp = \"100ms\"\nsettle = \"100ms\"\n\
                      measure = \"400ms\"\n";

#[test]
fn every_datagram_between_two_endpoints_is_accounted_for() {
    let (manifest, kept) = run(&format!(
        "question = \"?\"\n[load]\nrate = \"5k\"\n[serve]\nrcvbuf = \"64KiB\"\n{TRIALS}"
    ));
    let trial = counted(&manifest);
    assert!(trial.metrics["delivered_pps"] > 0.0, "{:?}", trial.metrics);
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    assert!(trial.ledger.offered_packets > 500, "{:?}", trial.ledger);
    let threads = [&trial.evidence.sender_threads, &trial.evidence.receiver_threads];
    assert!(threads.iter().all(|threads| !threads.is_empty()), "CPU time of both hosts");
    assert!(!trial.evidence.cpus.is_empty());
    assert_eq!(manifest.hosts.keys().collect::<Vec<_>>(), ["gen1", "sut"]);
    assert!(manifest.hosts["sut"].clock_error_ns < manifest.hosts["sut"].round_trip_ns.max(1) * 10);
    let sut = &manifest.hosts["sut"];
    assert_eq!(sut.hops_at_most, Some(1));
    assert_eq!(sut.clock, manifest.hosts["gen1"].clock, "one machine has one clock");
    let drift = sut.drift.unwrap();
    assert!(drift.ahead_ppm.abs() <= drift.error_ppm, "one clock does not drift: {drift:?}");
    for alias in ["gen1", "sut"] {
        let cost = trial.hosts[alias].endpoint_cost.as_ref().unwrap();
        assert!(cost.cpu_ns > 0 && cost.span_ns > 0, "{cost:?}");
    }
    let text = String::from_utf8_lossy(&kept);
    assert!(text.contains("time.ntp"), "the fact is kept");
    assert!(!text.contains("127.0.0.1") && text.contains("sut:4321"), "addresses are hidden");
}

#[test]
fn tcp_and_http_run_between_hosts_too() {
    for (protocol, metric, load) in [
        ("tcp-rr", "achieved_tps", "connections = 1"),
        ("tcp-stream", "delivered_bps", "bitrate = \"50M\""),
        ("http", "achieved_rps", "connections = 2\nrate = \"500\""),
    ] {
        let scenario = format!(
            "question = \"?\"\n[serve]\nprotocol = \"{protocol}\"\n[load]\n{load}\n{TRIALS}"
        );
        let (manifest, _) = run(&scenario);
        let metrics = &counted(&manifest).metrics;
        assert!(metrics.get(metric).is_some_and(|value| *value > 0.0), "{protocol}: {metrics:?}");
    }
}

#[test]
fn several_senders_share_a_rate_and_their_results_are_one() {
    let more =
        ["gen2", "gen3"].map(|it| format!("[hosts.{it}]\nssh = \"local\"\nrole = \"sender\"\n"));
    let hosts = INVENTORY.to_owned() + &more.concat();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    fs::write(&file, "question = \"?\"\n[load]\nrate = \"30k\"\n").unwrap();
    let three = inventory(dir.path(), &hosts);
    rxpath(&["run", file.to_str().unwrap(), "--hosts", &three, "--dry-run"])
        .prints("base: load.rate 30k = 3 senders x 10k");
    for (protocol, load, metric, total, target) in [
        ("udp", "rate = \"4003\"", "offered_pps", "offered_packets", "target_pps"),
        ("tcp-stream", "bitrate = \"60M\"", "delivered_bps", "sent_bytes", "target_bps"),
        ("tcp-rr", "rate = \"2003\"", "achieved_tps", "transactions_total", "target_tps"),
        ("http", "rate = \"1003\"", "achieved_rps", "requests_total", "target_rps"),
    ] {
        let scenario = format!(
            "question = \"?\"\n[serve]\nprotocol = \"{protocol}\"\n[load]\n{load}\n{TRIALS}"
        );
        let (manifest, _) = run_between(&hosts, &scenario);
        let trial = counted(&manifest);
        let result =
            |name: &str, field: &str| trial.workloads[name]["result"][field].as_f64().unwrap();
        let each = ["load@gen1", "load@gen2", "load@gen3"];
        for field in [total, target] {
            let sum: f64 = each.iter().map(|name| result(name, field)).sum();
            assert!(sum > 0.0 && (result("load", field) - sum).abs() < 1e-6, "{protocol} {field}");
        }
        // The rest of a rate that cannot be shared goes to the first.
        assert!(result("load@gen1", target) >= result("load@gen3", target), "{protocol}");
        assert!(trial.metrics[metric] > 0.0, "{protocol}: {:?}", trial.metrics);
        let threads = &trial.evidence.sender_threads;
        assert_eq!(threads.len(), 3, "one thread of each: {protocol}: {threads:?}");
        match protocol {
            "udp" => assert!(trial.pair_rates.is_empty()),
            "tcp-stream" => pairs_are_what_senders_did(trial, "delivered_bytes"),
            _ => pairs_are_what_senders_did(trial, total),
        }
        if protocol == "udp" {
            assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
            assert_eq!(trial.workloads["serve"]["result"]["sequence"]["streams_count"], 3);
        }
        if protocol == "tcp-rr" {
            let count = |name: &str| {
                trial.workloads[name]["result"]["response_time_us"]["samples_count"]
                    .as_u64()
                    .unwrap()
            };
            let sum: u64 = each.iter().map(|name| count(name)).sum();
            assert_eq!(count("load"), sum, "quantiles are of all times");
        }
    }
}

/// With one receiver a pair is its sender.
fn pairs_are_what_senders_did(trial: &Trial, done: &str) {
    let result = |alias: &str| trial.workloads[&format!("load@{alias}")]["result"][done].as_u64();
    let pairs = trial.pair_rates.iter();
    let pairs: Vec<_> = pairs.map(|pair| (pair.sender.as_str(), pair.done_total)).collect();
    assert_eq!(pairs, ["gen1", "gen2", "gen3"].map(|alias| (alias, result(alias))), "{done}");
}

#[test]
fn background_load_runs_on_the_receiver_s_host_for_as_long_as_a_trial() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let script = format!("echo $$ >> {}; sleep 1000", file.display());
    let scenario = |background: &str| {
        format!("question = \"?\"\n[load]\nrate = \"2k\"\n[background]\n{background}\n{TRIALS}")
    };
    let (manifest, _) =
        run(&scenario(&format!("hogs = 2\ncommand = [\"sh\", \"-c\", \"{script}\"]")));
    let pids = fs::read_to_string(file).unwrap();
    assert_eq!(pids.lines().count(), 2 * manifest.trials.len(), "{pids}");
    for pid in pids.lines() {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
    let said = |manifest: &Manifest| -> Vec<String> {
        manifest.trials[0].warnings.iter().map(|warning| warning.code.clone()).collect()
    };
    assert!(!said(&manifest).contains(&"background-ended".into()), "{:?}", said(&manifest));
    let (manifest, _) = run(&scenario("command = [\"true\"]"));
    assert!(said(&manifest).contains(&"background-ended".into()), "{:?}", said(&manifest));
}

#[test]
fn keys_of_the_lab_s_link_are_not_those_of_a_host() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), INVENTORY);
    let planned = |scenario: &str| {
        let file = dir.path().join("s.toml");
        fs::write(&file, scenario).unwrap();
        rxpath(&["run", file.to_str().unwrap(), "--hosts", &hosts, "--dry-run"])
    };
    let text = planned(
        "question = \"?\"\n[lab]\nmtu_bytes = 1400\nrps_cpus = \"@receiver\"\n[[variant]]\nname = \"a\"\n\
         [[variant]]\nname = \"gro\"\nlab.gro = true\n",
    )
    .out;
    assert!(text.contains("`lab.mtu_bytes` is not used between hosts"), "{text}");
    // A role too, which is a CPU's number in the variants.
    assert!(text.contains("`lab.rps_cpus` is not used between hosts"), "{text}");
    let instead = "the device's own: --change-hosts sets {dev}/features/rx-gro";
    assert!(
        text.contains("`lab.gro` is a setting of the lab's link") && text.contains(instead),
        "{text}"
    );
    assert!(!text.contains("`lab.rps_cpus` is a setting"), "{text}");
    let file = dir.path().join("s.toml");
    fs::write(
        &file,
        "question = \"?\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"rps\"\nlab.rps_cpus = \"0\"\n\
         [[variant]]\nname = \"own\"\nlab.rps_cpus = \"0\"\n\
         tune.receiver.\"{dev}/queues/rx-*/rps_cpus\" = \"2\"\n",
    )
    .unwrap();
    let words = ["run", file.to_str().unwrap(), "--hosts", &hosts, "--change-hosts", "--dry-run"];
    let text = rxpath(&words).out;
    // A variant without the key has the lab's value of it, and what a scenario sets itself stays.
    for (value, variant) in [("00000000", "a"), ("00000001", "rps"), ("2", "own")] {
        let line = format!("sut: lo/queues/rx-0/rps_cpus = {value} (for {variant})");
        assert!(text.contains(&line), "{line}: {text}");
    }
    let text = planned("question = \"?\"\n[tune.receiver]\n\"net.core.rmem_max\" = \"1\"\n").out;
    // A container may not have it.
    assert!(text.contains("sut: net.core.rmem_max = 1 (for base), "), "{text}");
    for line in [
        "gen1 sends by lo, with the rights of this command\n  base: $ rxpath load udp 127.0.0.1:4321",
        "sut receives by lo, with the rights of this command\n  base: $ rxpath serve udp 127.0.0.1:4321",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_plan_with_nothing_to_compare_is_shown_and_ends_as_the_run_would() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), INVENTORY);
    let file = dir.path().join("s.toml");
    fs::write(&file, "question = \"?\"\n[load]\nengine = \"xdp\"\n").unwrap();
    let words = ["run", file.to_str().unwrap(), "--hosts", &hosts];
    let why = "`load.engine` works on one machine only, in a lab of two namespaces";
    let what = format!("rxpath: 1 of 1 variants not available: {why}: nothing is left to compare");
    for plan in [&["--dry-run"][..], &["--dry-run", "--json"]] {
        let said = rxpath(&[&words[..], plan].concat()).ends(3).prints(why);
        assert!(said.err.lines().any(|line| line == what), "{said:?}");
        assert!(!said.err.contains("hint: "), "the plan is there: {said:?}");
    }
    let run = rxpath(&words).ends(3);
    assert!(run.err.lines().any(|line| line == what), "{run:?}");
}

/// The loopback device has no channels. The others would have one, for the sake of the variant with two alone.
#[test]
fn a_plan_leaves_out_the_variant_of_which_a_host_refuses_a_setting_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), INVENTORY);
    let file = dir.path().join("s.toml");
    let text = "question = \"?\"\n[[variant]]\nname = \"plain\"\n[[variant]]\nname = \"queues\"\nlab.queues = 2\n\
                [[variant]]\nname = \"rps\"\nlab.rps_cpus = \"0\"\n";
    fs::write(&file, text).unwrap();
    let words = ["run", file.to_str().unwrap(), "--hosts", &hosts, "--change-hosts", "--dry-run"];
    let why = "cannot be set on sut: lo/channels/combined=2: ";
    let plan = rxpath(&words)
        .ends(5)
        .warns(&format!("rxpath: 1 of 3 variants not available: {why}"))
        .prints(&format!("  not available here: {why}"));
    // As a change it would be `lo/channels/combined = 1 (for plain, rps)`.
    assert!(!plan.out.contains("lo/channels/combined = "), "{plan:?}");
    for (value, variant) in [("00000000", "plain"), ("00000001", "rps")] {
        let line = format!("sut: lo/queues/rx-0/rps_cpus = {value} (for {variant})");
        assert!(plan.out.contains(&line), "{line}: {plan:?}");
    }
}

#[test]
fn the_network_is_set_in_the_command_and_checked_as_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), INVENTORY);
    let run = |hosts: &[&str], set: &str| {
        rxpath(&[["run", "udp-batching", "--dry-run", "--set", set].as_slice(), hosts].concat())
    };
    run(&["--hosts", &hosts], "network.hops=3").ends(0);
    run(&["--hosts", &hosts], "network.hops=0").ends(2).warns("--set network.hops: 0");
    run(&["--sender", "local", "--receiver", "local"], "network.hop=2")
        .ends(2)
        .warns("did you mean `hops`?");
    let nobody = "--set network.hops is for --hosts, --sender and --receiver, or a scenario";
    run(&[], "network.hops=2").ends(2).warns(nobody);
}

/// An endpoint that is asked by its input.
fn endpoint() -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let (ask, answer) = (std::process::Stdio::piped(), std::process::Stdio::piped());
    command.arg("endpoint").stdin(ask).stdout(answer).spawn().unwrap()
}

#[test]
fn an_endpoint_answers_and_ends_with_its_input() {
    use std::io::{BufRead, BufReader, Write};
    let mut child = endpoint();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "@@rxpath-endpoint 1");
    let mut ask = |text: &str| {
        writeln!(input, "{text}").unwrap();
        lines.find(|line| line != "\"tick\"").unwrap()
    };
    assert!(ask(r#"{"id":1,"do":"clock"}"#).contains("got_ns"));
    assert!(ask(r#"{"id":2,"do":"reboot"}"#).contains(r#""failure":{"id":2"#));
    assert!(ask("no JSON").contains(r#""failure":{"id":0"#));
    let launched = ask(
        r#"{"id":3,"do":"program","program":1,"what":{"launch":{"words":["serve","udp","127.0.0.1:0","--control","--json"],"host":"","sender":0}}}"#,
    );
    let answer: serde_json::Value = serde_json::from_str(&launched).unwrap();
    let pid = answer["answer"]["ok"]["pid"].as_i64().unwrap_or_else(|| panic!("{launched}"));
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "its program is gone with it");
}

#[test]
fn packets_of_workloads_take_no_more_hops_than_the_experiment_allows() {
    use std::io::{BufRead, BufReader, Write};
    use std::net::UdpSocket;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    setsockopt(&receiver, sockopt::Ipv4RecvTtl, &true).unwrap();
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let to = receiver.local_addr().unwrap();
    let mut child = endpoint();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let hello = r#"{"id":1,"do":"hello","lock":false,"secret":"hops","hops":3}"#;
    writeln!(input, "{hello}").unwrap();
    assert!(lines.any(|line| line.contains(r#""answer":{"id":1"#)), "hello");
    let words = format!(r#"["load","udp","{to}","--rate","100","-d","1s","--json"]"#);
    writeln!(
        input,
        r#"{{"id":2,"do":"program","program":1,"what":{{"launch":{{"words":{words},"host":"","sender":0}}}}}}"#
    )
    .unwrap();
    let mut bytes = [0; 64];
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    let mut space = nix::cmsg_space!(nix::libc::c_int);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&receiver);
    let came = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::empty()).unwrap();
    let left: Vec<ControlMessageOwned> = came.cmsgs().unwrap().collect();
    assert_eq!(left, [ControlMessageOwned::Ipv4Ttl(3)]);
    drop(input);
    child.wait().unwrap();
}
