//! Ledgers of trials in which programs of others send or receive: what the kernel alone knows of them is not taken for more
//! than it is. The programs are this one, started as a stranger's.

use std::fs;
use std::path::PathBuf;

use rxpath_core::number::grouped;
use rxpath_record::ledger::{Balance, Figure, Ledger, Place};
use rxpath_record::manifest::{Manifest, Trial};

use crate::bed::{may_run, random_id, until};
use crate::experiment::{observed_file, run_file};
use crate::losses::has_check;
use crate::skip::skip;

const EXE: &str = env!("CARGO_BIN_EXE_rxpath");

/// Some 0.6 s a trial.
const TRIALS: &str = r#"
[trials]
blocks = 1
max_blocks = 1
aa = false
ramp = "100ms"
settle = "0s"
measure = "400ms"
time_limit = "60s"
"#;

fn receiver(options: &str) -> String {
    format!("{EXE} serve udp {{addr}}:{{port}} {options}")
}

fn sender(options: &str) -> String {
    format!("{EXE} load udp {{addr}}:{{port}} -d {{duration_s}}s {options}")
}

/// One trial of these commands, `more` being further keys of the base.
fn scenario(serve: &str, load: &str, more: &str) -> String {
    format!(
        "question = \"?\"\n{more}\n[serve]\ncommand = '''{serve}'''\n[load]\ncommand = '''{load}'''\n{TRIALS}"
    )
}

fn run(text: &str, observed: bool) -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("foreign.toml");
    fs::write(&file, text).unwrap();
    let manifest = if observed { observed_file(&file, "drops") } else { run_file(&file, &[]) };
    eprintln!("{}\n{:#?}", manifest.headline, manifest.trials[0].ledger);
    manifest
}

fn only(manifest: &Manifest) -> &Trial {
    let [trial] = manifest.trials.as_slice() else { panic!("not one trial") };
    trial
}

fn figures(ledger: &Ledger) -> Vec<Figure> {
    ledger.inexact.iter().map(|it| it.figure).collect()
}

#[test]
fn aggregates_of_a_foreign_sender_are_counted_in_datagrams() {
    if !may_run() {
        return;
    }
    let load = sender("--gso 20 --rate 10k");
    for options in ["--rcvbuf 64MiB", "--rcvbuf 64MiB --gro", "--rcvbuf 16KiB --work 100us"] {
        let manifest = run(&scenario(&receiver(options), &load, ""), false);
        let trial = only(&manifest);
        let ledger = &trial.ledger;
        // Full batches of 20, of which the sender's socket counts one each.
        let sends = trial.moved.get("tx/Udp.OutDatagrams");
        assert!(sends > 0);
        assert_eq!(ledger.offered_packets, 20 * sends.unsigned_abs(), "{options}");
        assert_eq!((ledger.balance(), figures(ledger)), (Balance::Closed, vec![]), "{options}");
        let found = ledger.delivered_packets + ledger.lost_packets();
        assert_eq!(ledger.offered_packets, found, "{options}");
        assert_eq!(ledger.lost_at(Place::SocketBuffer), ledger.lost_packets(), "{options}");
    }
}

#[test]
fn what_a_foreign_reader_of_aggregates_read_has_bounds() {
    if !may_run() {
        return;
    }
    let serve = receiver("--gro --rcvbuf 16KiB --work 500us");
    let manifest = run(&scenario(&serve, &sender("--gso 20 --rate 20k"), ""), false);
    let ledger = &only(&manifest).ledger;
    assert_eq!((ledger.balance(), figures(ledger)), (Balance::Unknown, vec![Figure::Delivered]));
    let bounds = &ledger.inexact[0];
    assert_eq!(bounds.least_packets, ledger.delivered_packets);
    assert!(bounds.most_packets.is_some_and(|most| most > bounds.least_packets), "{bounds:?}");
    assert!(manifest.headline.contains("Whether the ledger closes is not known"));
    assert!(!manifest.headline.contains("accounted for"), "{}", manifest.headline);
}

#[test]
fn aggregates_that_were_lost_before_they_were_counted_leave_the_offer_open() {
    if !may_run() {
        return;
    }
    let queue = "[lab]\nqdisc_tx = { kind = \"tbf\", rate = \"5M\", burst = 5000, limit = 20000 }";
    let load = sender("--gso 20 --rate 20k");
    let manifest = run(&scenario(&receiver("--rcvbuf 64MiB"), &load, queue), false);
    let trial = only(&manifest);
    let ledger = &trial.ledger;
    assert_eq!((ledger.balance(), figures(ledger)), (Balance::Unknown, vec![Figure::Offered]));
    let sends = trial.moved.get("tx/Udp.OutDatagrams") + trial.moved.get("tx/Udp.SndbufErrors");
    let offered = 20 * sends.unsigned_abs();
    let bounds = &ledger.inexact[0];
    let most = bounds.most_packets.unwrap();
    assert!((bounds.least_packets..=most).contains(&offered), "{offered}: {bounds:?}");
}

#[test]
fn a_hook_that_the_receiver_attaches_owns_what_it_takes() {
    if !may_run() {
        return;
    }
    let rules = "table netdev t {\n chain in {\n type filter hook ingress device veth priority 0; policy accept;\n \
                 udp dport 4321 numgen inc mod 4 0 drop\n }\n}\n";
    let serve = format!("sh -c 'nft -f {{dir}}/rules && exec {}'", receiver("--rcvbuf 64MiB"));
    let text = scenario(&serve, &sender("--rate 10k"), "");
    let files = format!("[serve]\nfiles = {{ rules = \"\"\"{rules}\"\"\" }}\n");
    let manifest = run(&text.replacen("[serve]\n", &files, 1), false);
    let trial = only(&manifest);
    let ledger = &trial.ledger;
    assert_eq!(ledger.balance(), Balance::Closed);
    let quarter = [ledger.offered_packets / 4, ledger.offered_packets.div_ceil(4)];
    assert!(quarter.contains(&ledger.lost_at(Place::IngressHook)));
    let named = trial.warnings.iter().find(|warning| warning.code == "hook-attached");
    assert!(named.is_some(), "{:?}", trial.warnings);
}

/// A control group of version 1.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn what_the_memory_limit_of_a_foreign_receiver_drops_is_its_sockets_word() {
    if !may_run() {
        return;
    }
    let path = PathBuf::from("/sys/fs/cgroup/memory").join(format!("rxpath-{}", random_id()));
    if fs::create_dir(&path).is_err() {
        return skip("cgroup", "no control groups of version 1 for memory here");
    }
    let group = Group(path);
    let limit = group.0.join("memory.kmem.tcp.limit_in_bytes");
    if fs::write(limit, "65536").is_err() {
        return skip("cgroup", "this kernel limits no memory of sockets");
    }
    let tasks = group.0.join("cgroup.procs");
    let slow = receiver("--rcvbuf 16MiB --work 200us");
    let serve = format!("sh -c 'echo $$ > {} && exec {slow}'", tasks.display());
    let manifest = run(&scenario(&serve, &sender("--rate 20k"), ""), false);
    let ledger = &only(&manifest).ledger;
    // Draining is the foreign program's business: what it left when it closed is in no counter.
    let left = ledger.unaccounted_packets.unwrap();
    let lost = ledger.lost_at(Place::UdpMemoryUncounted) + ledger.lost_at(Place::UdpMemory);
    assert!(lost > ledger.offered_packets / 4, "lost {lost}");
    assert!(left.unsigned_abs() < 1000, "{left} unaccounted");
}

#[test]
fn what_routing_refuses_has_the_kernels_reason() {
    if !may_run() {
        return;
    }
    let can = rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs");
    if let Err(reason) = can {
        return skip("bpf_programs", &reason.to_string());
    }
    // A group that nobody joined.
    let load = format!(
        "sh -c 'ip route add 239.0.0.0/8 dev veth && exec {EXE} load udp 239.9.9.9:{{port}} -d {{duration_s}}s --rate 10k'"
    );
    let text = scenario(&receiver("--rcvbuf 64MiB"), &load, "");
    let manifest = run(&text, true);
    let ledger = &only(&manifest).ledger;
    assert_eq!(ledger.balance(), Balance::Closed);
    assert_eq!(ledger.lost_at(Place::Routing), ledger.offered_packets);
    assert!(ledger.drops[0].counter.starts_with("skb:kfree_skb"), "{:?}", ledger.drops);
    // Unwatched it is a gap with a name, and no rule's.
    let manifest = run(&text, false);
    let ledger = &only(&manifest).ledger;
    assert_eq!(ledger.balance(), Balance::Missing(ledger.offered_packets));
    assert!(ledger.notes.iter().any(|note| note.contains("a group that nobody joined")));
}

#[test]
fn more_than_were_sent_are_told_as_that() {
    if !may_run() {
        return;
    }
    let twice = "[lab]\nnft_rx = \"\"\"\ntable ip t {\n chain in {\n type filter hook prerouting priority -300; policy \
                 accept;\n iifname veth udp dport 4321 numgen inc mod 4 0 dup to 198.18.1.2\n }\n}\n\"\"\"";
    let text = scenario(&receiver("--rcvbuf 64MiB"), &sender("--rate 10k"), twice);
    let manifest = run(&text, false);
    let trial = only(&manifest);
    let Balance::Excess(more) = trial.ledger.balance() else { panic!("{:?}", trial.ledger) };
    assert_eq!(more, trial.ledger.offered_packets.div_ceil(4));
    let told = format!("{} more datagrams arrived than were sent", grouped(more));
    assert!(manifest.headline.contains(&told), "{}", manifest.headline);
    assert!(!manifest.headline.contains("accounted for"), "{}", manifest.headline);
}

#[test]
fn segments_that_an_output_rule_drops_are_its_own() {
    if !may_run() {
        return;
    }
    let text = format!(
        "question = \"?\"\n[lab]\nnft_rx = \"\"\"\ntable inet t {{\n chain out {{\n type filter hook output priority 0; \
         policy accept;\n tcp sport 4321 numgen inc mod 50 7 counter drop\n }}\n}}\n\"\"\"\n[serve]\nprotocol = \
         \"tcp-rr\"\n{TRIALS}"
    );
    let manifest = run(&text, false);
    let trial = only(&manifest);
    assert_eq!(trial.ledger.balance(), Balance::Closed);
    // A backlog is all namespaces': others may fill it.
    let drop = trial.ledger.drops.iter().find(|drop| drop.place == Place::Output);
    let drop = drop.unwrap_or_else(|| panic!("{:?}", trial.ledger));
    assert_eq!(drop.counter, "rx/nft.inet.t.out.1.packets");
    assert!(drop.packets > 0 && drop.exact);
}

#[test]
fn fragments_are_told_as_datagrams() {
    if !may_run() {
        return;
    }
    let trials = crate::experiment::run("loss-fragments", &[]);
    let of = |name: &str| {
        let trial = trials.iter().find(|trial| trial.variant == name).unwrap();
        eprintln!("{name}: {:#?}", trial.ledger);
        assert_eq!(trial.ledger.balance(), Balance::Closed, "{name}");
        trial
    };
    assert_eq!(of("none").ledger.drops, []);
    for name in ["behind", "before"] {
        let [drop] = of(name).ledger.drops.as_slice() else { panic!("{name}") };
        assert!(drop.place == Place::Netfilter && drop.exact, "{name}: {drop:?}");
    }
    // What it let through of datagrams that it ended may use up the memory of reassembly.
    let queue = of("queue");
    assert_eq!(queue.ledger.drops[0].place, Place::Qdisc);
    assert!(queue.ledger.drops.iter().all(|drop| drop.exact), "{:?}", queue.ledger.drops);
    let refused = queue.moved.get("tx/Udp.SndbufErrors").unsigned_abs();
    assert_eq!(queue.ledger.lost_at(Place::Qdisc), refused);
    let before = &of("before").ledger.drops[0];
    has_check(before, "rx/nft.inet.t.in.1.packets");
    // Fragments stand for datagrams nowhere: what never became whole is the sum of both places.
    let trial = of("device");
    let whole = trial.moved.get("tx/Ip.FragOKs") - trial.moved.get("rx/Ip.ReasmOKs");
    assert_eq!(trial.ledger.lost_packets(), whole.unsigned_abs());
    assert!(trial.ledger.lost_at(Place::IngressHook) > 0);
    assert!(trial.ledger.drops.iter().all(|drop| !drop.exact), "{:?}", trial.ledger.drops);
}
