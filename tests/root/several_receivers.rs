//! Experiments with several receivers: hosts that are network namespaces of this machine, on one bridge.

mod lan;

use std::fs;
use std::path::Path;

use rxpath_core::PathSide;
use rxpath_record::ledger::{LedgerUnit, Place};
use rxpath_record::manifest::Trial;
use rxpath_record::verdict::Stage;

use self::lan::Lan;

/// Two lines of each program at least, also on a busy machine.
const TRIALS: &str = "[trials]\nblocks = 1\nmax_blocks = 1\naa = false\npaired = false\nramp = \"100ms\"\n\
                      settle = \"100ms\"\nmeasure = \"2s\"\n";

/// Readers that stall with small buffers: both receivers lose.
fn stalling() -> String {
    format!(
        "question = \"?\"\n[load]\nrate = \"20k\"\n[serve]\nrcvbuf = \"4KiB\"\nsleep = \"5ms\"\nevery = \"10ms\"\n{TRIALS}"
    )
}

#[test]
fn each_sender_sends_to_each_receiver_and_every_datagram_is_accounted_for_at_each() {
    let Some(lan) = Lan::new() else { return };
    let (manifest, printed, page) = lan.run(&stalling());
    let trial = &manifest.trials[0];
    let ledger = &trial.ledger;
    assert_eq!(ledger.unaccounted_packets, Some(0), "{ledger:?}");
    matrix(trial);
    // Each receiver has a ledger of its own, which closes too.
    let of = |alias: &str| trial.hosts[alias].ledger.as_ref().unwrap();
    for alias in ["sut", "sut2"] {
        let own = of(alias);
        assert_eq!(own.unaccounted_packets, Some(0), "{alias}: {own:?}");
        assert!(own.lost_at(Place::SocketBuffer) > 0, "{alias}: {own:?}");
        let name = format!("rx@{alias}/Udp.RcvbufErrors");
        let counted = u64::try_from(trial.moved.get(&name)).unwrap();
        assert_eq!(own.lost_at(Place::SocketBuffer), counted);
    }
    let sum: u64 = ["sut", "sut2"].map(|it| of(it).lost_at(Place::SocketBuffer)).iter().sum();
    assert_eq!(sum, ledger.lost_at(Place::SocketBuffer));
    // The verdict is on one of them, which it names; rates are those of both.
    names_a_receiver(trial);
    assert_eq!(trial.evidence.sockets.len(), 1, "of one receiver");
    let rates = ["sut", "sut2"].map(|it| trial.hosts[it].delivered_pps.unwrap());
    let rate = trial.metrics["delivered_pps"];
    assert!(rates.iter().all(|own| *own > 0.0 && *own < rate), "{rates:?} of {rate}");
    assert!((rates.iter().sum::<f64>() / rate - 1.0).abs() < 0.2, "{rates:?} of {rate}");
    for pair in ["gen1 -> sut:", "gen1 -> sut2:", "gen2 -> sut:", "gen2 -> sut2:"] {
        assert!(printed.contains(&format!("base: {pair} ")), "{pair} {printed}");
    }
    assert!(printed.contains("base: sut2: ") && printed.contains("lost at socket buffer"));
    assert!(
        page.contains("Datagrams by sender and receiver") && page.contains("Losses by receiver")
    );
}

/// The verdict names the receiver that it is on, unless a sender waited for its CPU and is the limit.
fn names_a_receiver(trial: &Trial) {
    let verdict = trial.verdict.as_ref().unwrap();
    let is_named = verdict.sentence.starts_with("sut") || verdict.stage == Stage::Sender;
    assert!(is_named, "{verdict:?}");
}

/// The matrix adds up to what the ledger has, and no receiver is preferred.
fn matrix(trial: &Trial) {
    let names: Vec<String> =
        trial.pairs.iter().map(|pair| format!("{} {}", pair.sender, pair.receiver)).collect();
    assert_eq!(names, ["gen1 sut", "gen1 sut2", "gen2 sut", "gen2 sut2"]);
    let offered: u64 = trial.pairs.iter().map(|pair| pair.offered_packets).sum();
    let delivered: u64 = trial.pairs.iter().map(|pair| pair.delivered_packets.unwrap()).sum();
    let ledger = &trial.ledger;
    assert_eq!((offered, delivered), (ledger.offered_packets, ledger.delivered_packets));
    for pair in &trial.pairs {
        assert!(pair.lost_ratio().unwrap() > 0.0, "{pair:?}");
    }
    are_even(trial);
    let serve = |name: &str| &trial.workloads[name]["result"];
    let count = |name: &str| serve(name)["delivered_packets"].as_u64().unwrap();
    assert_eq!(count("serve@sut") + count("serve@sut2"), count("serve"));
    assert_eq!(serve("serve@sut2")["sequence"]["streams_count"], 2, "a flow of each sender");
    assert!(trial.workloads.contains_key("load@gen2"), "{:?}", trial.workloads.keys());
}

/// Each sender sends as much to one receiver as to the other. On a busy machine one sender may send less than the other.
fn are_even(trial: &Trial) {
    for alias in ["gen1", "gen2"] {
        let own = trial.pairs.iter().filter(|pair| pair.sender == alias);
        let own: Vec<u64> = own.map(|pair| pair.offered_packets).collect();
        let share = own[0] as f64 / own.iter().sum::<u64>() as f64;
        assert!(own.len() == 2 && (0.4..0.6).contains(&share), "{:?}", trial.pairs);
    }
}

#[test]
fn threads_of_a_sender_share_the_receivers_evenly() {
    let Some(lan) = Lan::new() else { return };
    let (manifest, ..) =
        lan.run(&format!("question = \"?\"\n[load]\nrate = \"6k\"\nthreads = 3\n{TRIALS}"));
    let trial = &manifest.trials[0];
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    // Without a flow of each thread to each receiver one would get twice as much.
    are_even(trial);
}

/// A load over TCP, and how its results call what it did.
struct OverTcp {
    protocol: &'static str,
    load: &'static str,
    /// What was completed; of a stream, read.
    done: &'static str,
    /// What was begun and not completed.
    open: Option<&'static str>,
}

const OVER_TCP: [OverTcp; 4] = [
    OverTcp {
        protocol: "tcp-stream",
        load: "bitrate = \"40M\"\nbuffer = \"16KiB\"\nconnections = 4",
        done: "delivered_bytes",
        open: None,
    },
    OverTcp {
        protocol: "tcp-rr",
        load: "rate = \"2k\"\nconnections = 4",
        done: "transactions_total",
        open: Some("in_flight_transactions_total"),
    },
    OverTcp {
        protocol: "tcp-crr",
        load: "rate = \"400\"\nconnections = 4",
        done: "transactions_total",
        open: Some("in_flight_transactions_total"),
    },
    OverTcp {
        protocol: "http",
        load: "rate = \"2k\"\nconnections = 4",
        done: "requests_total",
        open: Some("in_flight_requests_total"),
    },
];

#[test]
fn clients_of_tcp_and_http_reach_each_receiver_and_what_they_did_adds_up() {
    let Some(lan) = Lan::new() else { return };
    for case in &OVER_TCP {
        let protocol = case.protocol;
        let load = case.load;
        let (manifest, printed, page) = lan.run(&format!(
            "question = \"?\"\n[serve]\nprotocol = \"{protocol}\"\n[load]\n{load}\n{TRIALS}"
        ));
        let trial = &manifest.trials[0];
        adds_up(trial, case);
        times_are_those_of_all_pairs(trial, case);
        each_receiver_stands_alone(trial, &manifest.main_metric);
        for pair in ["gen1 -> sut:", "gen1 -> sut2:", "gen2 -> sut:", "gen2 -> sut2:"] {
            assert!(printed.contains(&format!("base: {pair} ")), "{protocol}: {pair} {printed}");
        }
        assert!(page.contains("Rates by sender and receiver"), "{protocol}");
    }
}

fn count(trial: &Trial, workload: &str, field: &str) -> u64 {
    trial.workloads[workload]["result"][field].as_u64().unwrap_or_else(|| panic!("{field}"))
}

/// The pairs are the total of the senders, and what each receiver says.
fn adds_up(trial: &Trial, case: &OverTcp) {
    let pairs = &trial.pair_rates;
    let names: Vec<String> =
        pairs.iter().map(|pair| format!("{} {}", pair.sender, pair.receiver)).collect();
    assert_eq!(names, ["gen1 sut", "gen1 sut2", "gen2 sut", "gen2 sut2"]);
    let of = |alias: &str| -> u64 {
        let own = pairs.iter().filter(|it| it.receiver == alias || it.sender == alias);
        own.map(|pair| pair.done_total.unwrap()).sum()
    };
    let done = |workload: &str| count(trial, workload, case.done);
    let (sent, served) = (of("gen1") + of("gen2"), done("serve@sut") + done("serve@sut2"));
    assert_eq!((sent, served), (done("load"), done("serve")), "{}: {pairs:?}", case.protocol);
    assert_eq!([of("gen1"), of("gen2")], ["load@gen1", "load@gen2"].map(done));
    let open = case.open.map_or(0, |field| count(trial, "load", field));
    for alias in ["sut", "sut2"] {
        // A server may have answered what its client did not wait for.
        let (own, told) = (of(alias), done(&format!("serve@{alias}")));
        assert!(own > 0 && (own..=own + open).contains(&told), "{alias}: {own} {told} {open}");
    }
    let rate = trial.metrics[&pairs[0].metric];
    let sum: f64 = pairs.iter().map(|pair| pair.value).sum();
    assert!((sum / rate - 1.0).abs() < 0.2, "{}: {sum} of {rate}", case.protocol);
    assert!(pairs.iter().all(|pair| pair.errors_count == 0), "{pairs:?}");
}

/// The merged histogram has every request once.
fn times_are_those_of_all_pairs(trial: &Trial, case: &OverTcp) {
    let pairs = &trial.pair_rates;
    if case.open.is_none() {
        assert!(pairs.iter().all(|pair| pair.p99_us.is_none()), "a stream has no times");
        return;
    }
    for pair in pairs {
        assert_eq!(Some(pair.timed_count), pair.done_total, "{}: {pair:?}", case.protocol);
    }
    let times = &trial.workloads["load"]["result"]["response_time_us"];
    assert_eq!(times["samples_count"], count(trial, "load", case.done), "{}", case.protocol);
}

/// Each receiver has a rate and a ledger of its own, and one of them speaks for the trial.
fn each_receiver_stands_alone(trial: &Trial, metric: &str) {
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    let mut sum = 0.0;
    for alias in ["sut", "sut2"] {
        let host = &trial.hosts[alias];
        let ledger = host.ledger.as_ref().unwrap();
        assert_eq!(ledger.unit, LedgerUnit::Segment);
        assert!(ledger.delivered_packets > 0, "{alias}: {ledger:?}");
        assert_eq!(ledger.unaccounted_packets.unwrap_or(0), 0, "{alias}: {ledger:?}");
        sum += host.metrics[metric];
    }
    let rate = trial.metrics[metric];
    assert!((sum / rate - 1.0).abs() < 0.2, "{metric}: {sum} of {rate}");
    names_a_receiver(trial);
    assert_eq!(trial.evidence.receiver_threads.len(), 1, "of one receiver");
    assert_eq!(trial.evidence.sender_threads.len(), 4, "a thread of each pair");
}

#[test]
fn over_tcp_a_sender_connects_to_the_receivers_that_it_is_paired_with() {
    let Some(lan) = Lan::new() else { return };
    // gen1 has two programs, gen2 one.
    lan.choose("[[\"gen1\", \"sut\"], [\"gen1\", \"sut2\"], [\"gen2\", \"sut2\"]]");
    let (manifest, ..) = lan.run(&format!(
        "question = \"?\"\n[serve]\nprotocol = \"tcp-rr\"\n[load]\nrate = 1500\nconnections = 4\n{TRIALS}"
    ));
    let trial = &manifest.trials[0];
    let names: Vec<String> =
        trial.pair_rates.iter().map(|it| format!("{} {}", it.sender, it.receiver)).collect();
    assert_eq!(names, ["gen1 sut", "gen1 sut2", "gen2 sut2"]);
    for pair in &trial.pair_rates {
        assert!(pair.done_total.unwrap() > 0, "{pair:?}");
    }
    assert_eq!(trial.ledger.unaccounted_packets, Some(0), "{:?}", trial.ledger);
    let accepted = |alias: &str| count(trial, &format!("serve@{alias}"), "transactions_total");
    let done = |at: usize| trial.pair_rates[at].done_total.unwrap();
    let open = count(trial, "load", "in_flight_transactions_total");
    // A server may have answered what its client did not wait for.
    assert!((done(0)..=done(0) + open).contains(&accepted("sut")), "{:?}", trial.pair_rates);
    let both = done(1) + done(2);
    assert!((both..=both + open).contains(&accepted("sut2")), "{:?}", trial.pair_rates);
}

#[test]
fn background_load_runs_beside_each_receiver() {
    let Some(lan) = Lan::new() else { return };
    let pids = lan.dir.path().join("pids");
    let script = format!("echo $$ >> {}; sleep 1000", pids.display());
    let scenario = format!(
        "question = \"?\"\n[load]\nrate = \"2k\"\n[background]\nhogs = 1\ncommand = [\"sh\", \"-c\", \"{script}\"]\n{TRIALS}"
    );
    let (manifest, ..) = lan.run(&scenario);
    let pids = fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2 * manifest.trials.len(), "one on each: {pids}");
    for pid in pids.lines() {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
}

#[test]
fn a_plan_names_both_receivers_and_what_is_for_one_is_refused() {
    let Some(lan) = Lan::new() else { return };
    let shown = |scenario: &str, words: &[&str]| {
        let file = lan.write(scenario);
        lan.rxpath(&[&["run", &file][..], words].concat())
    };
    let tuned =
        "question = \"?\"\n[load]\nrate = \"8k\"\n[tune.receiver]\n\"net.core.somaxconn\" = 99\n";
    let text = shown(tuned, &["--dry-run"]).ok();
    assert!(text.contains("base: load.rate 8k = 2 senders x 2 receivers x 2k"), "{text}");
    for alias in ["sut", "sut2"] {
        assert!(text.contains(&format!("{alias}: net.core.somaxconn = 99 (for base)")), "{text}");
    }
    let transactions =
        "question = \"?\"\nload.protocol = \"tcp-rr\"\nload.rate = \"8k\"\nload.connections = 6\n";
    let text = shown(transactions, &["--dry-run"]).ok();
    for line in [
        "load.rate 8k = 2 senders x 2 receivers x 2k",
        "load.connections 6 of each sender = 2 receivers x 3",
    ] {
        assert!(text.contains(&format!("base: {line}")), "{text}");
    }
    lan.choose("[[\"gen1\", \"sut\"], [\"gen2\", \"sut2\"], [\"gen2\", \"sut\"]]");
    let text = shown("question = \"?\"\n[load]\nrate = \"6k\"\n", &["--dry-run"]).ok();
    assert!(text.contains("base: load.rate 6k = 3 pairs x 2k"), "{text}");
    for words in [
        "load udp 10.79.0.3:4321 --",
        "--rate 2000",
        "load udp 10.79.0.3:4321 10.79.0.4:4321 --",
        "--rate 4000",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for (scenario, what) in [
        ("[serve]\nprotocol = \"http\"\n[observe]\nsteal = true\n", "observe.steal"),
        ("[observe]\nsteal = true\n", "observe.steal"),
        ("[observe]\ntrace = true\n", "observe.trace"),
    ] {
        let scenario = format!("question = \"?\"\n{scenario}");
        for words in [&["--dry-run"][..], &[]] {
            let wanted = format!("variant base has {what}, which is for one receiver");
            shown(&scenario, words).ends(3).warns(&wanted);
        }
    }
    let file = lan.write("question = \"?\"\n[load]\nrate = \"1k\"\n");
    lan.rxpath(&["tune", "auto", "--scenario", &file, "--change-hosts"])
        .ends(2)
        .warns("a search is for one receiver");
}

#[test]
fn senders_are_sampled_as_in_the_lab() {
    let Some(lan) = Lan::new() else { return };
    let scenario = format!(
        "question = \"?\"\n[serve]\nprotocol = \"tcp-stream\"\n[load]\nbitrate = \"20M\"\n{TRIALS}"
    );
    let (run, ..) = lan.recorded(&scenario);
    let series = &run.samples[0].series;
    let hosts =
        [(PathSide::Rx, ""), (PathSide::Rx, "sut2:"), (PathSide::Tx, ""), (PathSide::Tx, "gen2:")];
    for (side, host) in hosts {
        for (entity, metric) in [("thread0", "run_ns"), ("socket0", "unsent_bytes")] {
            let entity = format!("{host}{entity}");
            let mut found = series.iter().filter(|it| it.side == side && it.entity == entity);
            let found = found.find(|it| it.metric == metric);
            let is_read = found.is_some_and(|it| it.values.iter().any(Option::is_some));
            assert!(is_read, "{side} {entity} {metric}");
        }
    }
    let of_machine = series.iter().filter(|it| it.side == PathSide::Machine);
    let cpus: Vec<&str> = of_machine.map(|it| it.entity.as_str()).collect();
    assert!(cpus.contains(&"cpu0") && !cpus.iter().any(|cpu| cpu.contains(':')), "{cpus:?}");
}
