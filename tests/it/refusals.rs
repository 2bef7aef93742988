//! What cannot be done is refused in one line with exit status 2, before anything is made.

use crate::program::rxpath;

#[test]
fn bad_scenarios_and_options_say_what_would_be_right() {
    let cases: [(&[&str], &str); 7] = [
        (
            &["udp-pinning", "--trials", "0"],
            "invalid value '0' for '--trials <N>': 0 is not in 1..=1000",
        ),
        (&["udp-pinning", "--bogus"], "unexpected argument '--bogus'"),
        (&["nosuch"], "no scenario is called `nosuch`; bundled are million-pps"),
        (&["udp-pinning", "--set", "load.sise=3"], "did you mean `size`?"),
        (
            &["udp-pinning", "--set", "variant.nope.load.gso=3"],
            "variants known here: unpinned, pinned",
        ),
        (&["udp-pinning", "--set", "load.cpu=7777"], "CPU 7777 is not online"),
        (&["/no/such/file.toml"], "/no/such/file.toml"),
    ];
    for (words, wanted) in cases {
        let words: Vec<&str> = ["run"].iter().chain(words).copied().collect();
        let done = rxpath(&words).ends(2).refuses("", wanted);
        assert!(
            done.err.lines().skip(1).all(|line| line.starts_with("hint: ")),
            "one line: {done:?}"
        );
    }
}

#[test]
fn the_plan_of_a_search_names_its_axes_and_what_has_no_place_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let axes = "axes.\"serve.batch\" = [1, 64]\nguards = [\"loss_ratio<0.01\"]";
    let write = |more: &str| {
        std::fs::write(&file, format!("question = \"?\"\n[search]\n{axes}\n{more}")).unwrap();
    };
    let run = |words: &[&str]| rxpath(&[&["run", file.to_str().unwrap()], words].concat());
    write("");
    let words = ["run", file.to_str().unwrap(), "--dry-run"];
    let plan = rxpath(&words).out;
    let lines = ["guard loss_ratio<0.01", "try serve.batch=1 or serve.batch=64"];
    let from = "search from variant base: delivered_pps, within 1200s";
    assert!(plan.contains(&[&[from][..], &lines].concat().join("\n  ")), "{plan}");
    for words in [&["--trials", "3"][..], &["--check", "--dry-run"]] {
        run(words).ends(2).warns("has a [search], which has no blocks");
    }
    // Variants other than the start are not compared: a search may lack them. The lab's veth has no flow rules.
    let variants =
        "[[variant]]\nname = \"here\"\n[[variant]]\nname = \"rule\"\nlab.flow_rule = true\n";
    write(variants);
    run(&["--dry-run"]).ends(0).prints("not available here: ");
    write(&format!("variant = \"rule\"\n{variants}"));
    run(&["--dry-run"]).ends(3).warns("variant rule cannot run here: ");
    write("objective = \"max loss_ratio\"");
    for words in [&[][..], &["--dry-run"]] {
        run(words).ends(2).warns("write min loss_ratio").warns("[search]");
    }
}

/// As the run ends that leaves them out. The lab's veth has no flow rules.
#[test]
fn a_plan_without_some_of_its_variants_is_partial() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let text = "question = \"?\"\n[[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\nload.size = 99\n\
                [[variant]]\nname = \"rule\"\nlab.flow_rule = true\n";
    std::fs::write(&file, text).unwrap();
    let words = ["run", file.to_str().unwrap(), "--dry-run"];
    for more in [&[][..], &["--json"]] {
        let plan = rxpath(&[&words[..], more].concat()).ends(5);
        plan.warns("rxpath: 1 of 3 variants not available: ").prints("two");
    }
}

#[test]
fn addresses_and_cpus_that_cannot_be_had_are_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let cases: [(&[&str], &str); 5] = [
        (&["serve", "udp", &taken], "in use"),
        // TEST-NET-3 (RFC 5737) is nobody's address.
        (&["serve", "udp", "203.0.113.7:4321"], "203.0.113.7:4321"),
        (&["serve", "udp", "127.0.0.1:0", "--cpu", "7777"], "--cpu 7777"),
        (&["load", "udp", &taken, "--flood", "--cpu", "7777"], "--cpu 7777"),
        (&["serve", "udp", "127.0.0.1:0", "--cpu", "0", "--threads", "2"], "--threads 2"),
    ];
    for (words, wanted) in cases {
        let done = rxpath(words).ends(2).refuses("", wanted);
        assert_eq!(done.err.lines().filter(|line| line.starts_with("rxpath: ")).count(), 1);
    }
}

#[test]
fn frames_go_to_a_lab_or_where_the_user_says() {
    for engine in ["xdp", "xdp-frames"] {
        let words = ["load", "udp", "192.0.2.1:9", "198.18.1.1:9", "--engine", engine, "--flood"];
        let done = rxpath(&words).ends(2);
        let says = format!("--engine {engine} sends past this host's firewall and queues");
        assert!(
            done.err.contains(&says) && done.err.contains("192.0.2.1 is not in a lab"),
            "{done:?}"
        );
        assert!(done.err.contains("hint: if 192.0.2.1 may be flooded"), "{done:?}");
        rxpath(&[&words[..], &["--yes-send-to", "192.0.2.2"]].concat())
            .warns("192.0.2.1 is not in a lab");
        // Loopback is permitted then, and has no frames.
        let words = ["load", "udp", "127.0.0.1:9", "--engine", engine, "--count", "1"];
        rxpath(&[&words[..], &["--yes-send-to", "127.0.0.1"]].concat())
            .ends(3)
            .warns("the route leaves by lo");
    }
}

#[test]
fn an_engine_refuses_options_that_it_would_ignore() {
    for (words, says) in [
        ("xdp --gso 2", "it excludes --gso and --batch 1"),
        ("xdp --unconnected", "--engine xdp excludes --unconnected: it sends without UDP sockets"),
        ("xdp-frames --sndbuf 1MiB", "--engine xdp-frames excludes --sndbuf"),
        ("xdp-frames --pacing sleep", "the kernel's loop spins until a frame is due"),
    ] {
        excludes(&format!("load udp 198.18.1.1:9 --rate 1k --engine {words}"), says);
    }
    for (words, says) in [
        (
            "xdp --rcvbuf 1MiB",
            "--engine xdp reads no socket of the kernel's UDP: it excludes --rcvbuf",
        ),
        ("xdp-drop --work 1us", "omit --work"),
        ("xdp-drop --sleep 1ms --every 2ms", "omit --sleep"),
        ("xdp-drop --threads 2", "omit --threads"),
    ] {
        excludes(&format!("serve udp 127.0.0.1:0 --engine {words}"), says);
    }
}

#[test]
fn hints_name_what_would_be_accepted() {
    excludes("load udp 127.0.0.1:9 --rate 0", "hint: use --flood instead");
    excludes("watch -d -1s", "hint: this option takes no value below 0; see `rxpath watch --help`");
    for line in [
        "run udp-pinning --wait=5",
        "tune apply no-such-plan --confirm-within 5",
        "load http http://127.0.0.1:9/ --timeout 5",
        "diagnose -d fast",
        "watch -d 5",
        "trace -d 5",
        "steal -d 5",
        "export --interval 5",
        "load udp 127.0.0.1:9 --flood -d fast",
    ] {
        excludes(line, "for example `10s`");
    }
}

#[test]
fn threads_that_cannot_start_are_refused_before_any_starts() {
    for line in [
        "serve udp 127.0.0.1:0 -d 1s",
        "serve udp 127.0.0.1:0 -d 1s --sockets reuseport",
        "serve tcp 127.0.0.1:0 -d 1s",
        "serve http 127.0.0.1:0 -d 1s",
        "load udp 127.0.0.1:9 --flood --count 1",
        "load tcp rr 127.0.0.1:9 -d 1s",
        "load http http://127.0.0.1:9/ -d 1s",
    ] {
        excludes(&format!("{line} -t 100000"), "rxpath: --threads 100000: at most ");
    }
}

fn excludes(line: &str, says: &str) {
    rxpath(&line.split(' ').collect::<Vec<_>>()).ends(2).warns(says);
}

#[test]
fn datagrams_over_the_mtu_are_told_before_the_run() {
    let words = ["run", "udp-pinning", "--set", "load.size=4000", "--dry-run", "--json"];
    let plan = rxpath(&words).ok();
    for wanted in
        ["datagrams-fragmented", "do not fit the MTU of 1500", "IP cuts each into 3 fragments"]
    {
        assert!(plan.contains(wanted), "{wanted}: {plan}");
    }
}

#[test]
fn what_cannot_be_written_is_status_2_in_every_command() {
    let dir = tempfile::tempdir().unwrap();
    // No privilege makes a directory of a file: a path below one is refused to root as well.
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("below").display().to_string();
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/runs/one-variant");
    let cases: [&[&str]; 6] = [
        &["man", "--out", &below],
        &["schema", "--write", &below],
        &["report", run, "--out", &below],
        &["capture", &below],
        &["tune", "plan", "--set", "net.core.rmem_max=7500000", "-o", &below],
        &["watch", "--no-bpf", "-d", "100ms", "--record", &below],
    ];
    for words in cases {
        let done = rxpath(words).ends(2).warns("below");
        assert!(!done.err.contains("an existing recording"), "{words:?}: {done:?}");
    }
}

#[test]
fn a_refusal_names_the_page_of_help_that_belongs_to_it() {
    for (words, page) in [
        (&["load", "udp", "--sise", "3"][..], "rxpath load udp --help"),
        (&["--bogus"], "rxpath --help"),
        (&["tune", "plan", "--bogus"], "rxpath tune plan --help"),
    ] {
        rxpath(words).ends(2).warns(&format!("hint: see `{page}`"));
    }
}

#[test]
fn microseconds_take_a_unit() {
    let bounds = |us: &str| {
        let words = ["model", "bounds", "--arrival-rate", "100k", "--packet-ns", "500", "--json"];
        rxpath(&[&words[..], &["--rx-usecs", us]].concat()).ok()
    };
    assert_eq!(bounds("50us"), bounds("50"));
    rxpath(&["steal", "--irq-entry", "5 parsecs"]).ends(2).warns("for example 5.5 or 500ns");
}

#[test]
fn what_trace_cannot_watch_says_what_it_can() {
    for (words, wrong, right) in [
        (["--port", "0"], "--port 0 is no port", "from 1 to 65535"),
        (["--dev", "no-such-dev0"], "--dev no-such-dev0: no such device", "`ip link`"),
    ] {
        rxpath(&[&["trace"][..], &words].concat()).ends(2).warns(wrong).warns(right);
    }
}
