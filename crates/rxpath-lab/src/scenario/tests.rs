//! The form of a scenario file, end to end: text and `--set` in, resolved variants or one line of error out.

mod bad_files;
mod hosts;
mod search;

use super::spec::Workload;
use super::*;

fn head() -> String {
    "question = \"does it work?\"\n".into()
}

fn resolved(text: &str, sets: &[&str], cpus: u32) -> Result<spec::Resolved, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    parse(&(head() + text), "t.toml", "t")
        .and_then(|file| resolve(&file, &sets, &HostShape::flat(cpus)))
        .map_err(|error| error.to_string())
}

fn error(text: &str) -> String {
    resolved(text, &[], 4).unwrap_err()
}

/// Each text has its error.
fn each_says(cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(text, expected)| (text, error(text), *expected))
        .filter(|(_, got, expected)| got != expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The options on the command line, without the subcommand.
fn options<O: spec::Options>(workload: &Workload<O>) -> String {
    let words = crate::trial::start::words(workload.own().unwrap(), Vec::new());
    let first = words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len());
    words[first..].join(" ")
}

#[test]
fn variants_stack_and_show_what_they_change() {
    let text = "[serve]\nbatch = 1\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nfrom = \"a\"\nserve.batch = 64\n\
                serve.cpu = \"@receiver\"\n[[variant]]\nname = \"c\"\nfrom = \"b\"\nserve.gro = true\nserve.batch = \"default\"\n";
    let resolved = resolved(text, &[], 2).unwrap();
    let lines: Vec<String> = resolved.variants.iter().map(|v| options(&v.serve)).collect();
    assert_eq!(
        lines,
        ["--batch 1 --size 32", "--cpu 1 --batch 64 --size 32", "--cpu 1 --gro --size 32"]
    );
    assert!(resolved.variants[0].settings.is_empty());
    let settings = serde_json::to_string(&resolved.variants[2].settings).unwrap();
    assert_eq!(settings, r#"{"serve.batch":"default","serve.cpu":"1","serve.gro":true}"#);
    let pairs: Vec<_> =
        resolved.compare.iter().map(|c| (c.base.as_str(), c.variant.as_str())).collect();
    assert_eq!(pairs, [("a", "b"), ("a", "c")]);
}

#[test]
fn a_sweep_is_every_combination_with_names_that_say_it() {
    let text =
        "[sweep]\nserve.rcvbuf = [\"64KiB\", \"1MiB\"]\nserve.batch = [1, 8]\nload.batch = [2]\n";
    let resolved = resolved(text, &[], 2).unwrap();
    let names: Vec<&str> = resolved.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "rcvbuf=64KiB,serve.batch=1,load.batch=2",
            "rcvbuf=64KiB,serve.batch=8,load.batch=2",
            "rcvbuf=1MiB,serve.batch=1,load.batch=2",
            "rcvbuf=1MiB,serve.batch=8,load.batch=2",
        ]
    );
    assert_eq!(options(&resolved.variants[2].serve), "--batch 1 --rcvbuf 1048576 --size 32");
    assert_eq!(options(&resolved.variants[2].load), "--size 32 --batch 2");
}

#[test]
fn set_changes_the_base_or_one_variant() {
    let text = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nload.rate = \"5k\"\n";
    let sets =
        ["load.rate=10k", "variant.b.serve.work=3us", "trials.blocks=7", "load.cpu = @sender"];
    let resolved = resolved(text, &sets, 2).unwrap();
    assert_eq!(options(&resolved.variants[0].load), "--cpu 0 --size 32 --rate 10000");
    assert_eq!(options(&resolved.variants[1].load), "--cpu 0 --size 32 --rate 5000");
    assert_eq!(options(&resolved.variants[1].serve), "--work 3us --size 32");
    assert_eq!(resolved.trials.blocks, 7);
    assert_eq!(
        resolved.warnings[0].to_string(),
        "--set load.rate=10k: 1 of 2 variants have their own load.rate (--set changes the base); use --set \
         variant.NAME.load.rate=VALUE for one variant"
    );
}

#[test]
fn a_wrong_set_is_quoted_with_what_would_be_right() {
    let text = "[[variant]]\nname = \"pinned\"\n";
    let cases = [
        (
            "serve.batch",
            "--set serve.batch: there is no `=`; write KEY=VALUE such as serve.batch=64",
        ),
        (
            "batch=1",
            "--set batch=1: there is no setting `batch`; did you mean `serve.batch` or `load.batch`?",
        ),
        (
            "server.batch=1",
            "--set server.batch=1: there is no setting `server.batch`; did you mean `serve.batch` or `load.batch`?",
        ),
        ("serve.bacth=1", "--set serve.bacth=1: [serve] has no key `bacth`; did you mean `batch`?"),
        (
            "serve.batch=many",
            "--set serve.batch=many: `serve.batch` is a text; it takes a whole number from 1 to 1024",
        ),
        (
            "variant.pined.serve.batch=1",
            "--set variant.pined.serve.batch=1: t has no variant `pined`; did you mean `pinned`?",
        ),
        (
            "variant.pinned.trials.seed=1",
            "--set variant.pinned.trials.seed=1: `trials.seed` is the whole run's, not one variant's; write --set trials.seed=VALUE",
        ),
        (
            "xyzzy=1",
            "--set xyzzy=1: there is no setting `xyzzy`; keys begin with topology., lab., tune., background., observe., serve., load., trials. or variant.NAME.",
        ),
        ("serve.cpu=9", "--set serve.cpu=9: `serve.cpu`: CPU 9 is not online; use CPUs of 0,1"),
    ];
    for (set, expected) in cases {
        assert_eq!(resolved(text, &[set], 2).unwrap_err(), expected);
    }
}

#[test]
fn a_datagram_above_the_mtu_is_a_warning_that_names_the_fragments() {
    let resolved = resolved("[load]\nsize = 4000\n", &[], 2).unwrap();
    assert_eq!(resolved.warnings[0].code, "datagrams-fragmented");
    assert_eq!(
        resolved.warnings[0].to_string(),
        "datagrams of 4000 bytes do not fit the MTU of 1500 (IP cuts each into 3 fragments; one lost fragment \
         loses all); use load.size up to 1472, a larger lab.mtu_bytes, or load.gso"
    );
}

#[test]
fn another_program_takes_the_place_of_a_workload() {
    let text = "[serve]\ncommand = \"iperf3 -s -1 -J -p {port}\"\nparser = \"iperf3\"\nready = \"Server listening\"\n\
                [load]\ncommand = [\"iperf3\", \"-c\", \"{addr}\"]\ncpu = 0\nparser = { json = { sent_packets = \"/end/x\" } }\n\
                [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[compare]]\nvariant = \"b\"\nmetric = \"jitter_us\"\n";
    let resolved = resolved(text, &[], 2).unwrap();
    let Workload::External(serve) = &resolved.variants[0].serve else { panic!() };
    let ready = serve.ready.as_deref();
    assert_eq!((serve.command.len(), ready, serve.port), (6, Some("Server listening"), 4321));
    assert_eq!(resolved.compare[0].metric, "serve.jitter_us");
}

#[test]
fn a_command_as_one_text_is_split_as_a_shell_splits_it() {
    let words = |command: &str| {
        let text = format!("[serve]\ncommand = {command:?}\nparser = \"none\"\n");
        resolved(&text, &[], 2).map(|resolved| match &resolved.variants[0].serve {
            Workload::External(serve) => serve.command.clone(),
            other @ Workload::Own(_) => panic!("{other:?}"),
        })
    };
    let split = words("sh -c 'echo \"a b\"; sleep 1' x\\ y").unwrap();
    assert_eq!(split, ["sh", "-c", "echo \"a b\"; sleep 1", "x y"]);
    let refused = words("sh -c 'echo a").unwrap_err();
    assert!(format!("{refused:?}").contains("a quote is open at its end"), "{refused:?}");
}

/// Two nodes, each with two caches of four cores, two threads a core: 32 CPUs, siblings 16 apart.
fn big() -> HostShape {
    let cpu = |cpu: u32| {
        let core = cpu % 16;
        CpuShape { cpu, core, node: core / 8, l3: Some(core / 4), allowed: true }
    };
    HostShape { cpus: (0..32).map(cpu).collect(), ..HostShape::default() }
}

#[test]
fn roles_find_their_place_on_a_big_host() {
    let expressions = [
        ("@sender", "0"),
        ("@receiver", "1"),
        ("@softirq", "2"),
        ("@receiver:4", "1,3,5,7"),
        ("@sender:3", "0,4,6"),
        ("@softirq:2", "2,3"),
        ("@victim", "2"),
        ("@next-to-victim", "1"),
        ("@sibling-of-softirq", "18"),
        ("@same-cache-as-softirq", "1"),
        ("@other-cache-than-softirq", "4"),
        ("@other-node-than-softirq", "8"),
    ];
    for (text, expected) in expressions {
        let list = super::cpus::CpuExpr::parse(text).unwrap();
        let mut warnings = Vec::new();
        let shape = big();
        let cpus = super::place::Places::new(&shape).place(&list, &mut warnings).unwrap();
        assert_eq!(rxpath_core::CpuList(cpus).to_string(), expected, "{text}");
        assert_eq!(warnings, [], "{text}");
    }
}

#[test]
fn cores_of_the_card_s_node_come_first() {
    let shape = HostShape { card_node: Some(1), ..big() };
    for (text, expected) in [("@sender", "8"), ("@receiver:4", "9,11,13,15"), ("@softirq", "10")] {
        let list = super::cpus::CpuExpr::parse(text).unwrap();
        let cpus = super::place::Places::new(&shape).place(&list, &mut Vec::new()).unwrap();
        assert_eq!(rxpath_core::CpuList(cpus).to_string(), expected, "{text}");
    }
}

#[test]
fn a_victim_never_shares_the_senders_cpu() {
    let text = "[load]\ncpu = \"@sender\"\n[serve]\ncpu = \"@next-to-victim\"\n[background]\nvictim = \"@victim\"\n";
    let two = resolved(text, &[], 2).unwrap();
    let variant = &two.variants[0];
    assert_eq!((variant.background.victim, variant.serve.cpus().0.as_slice()), (Some(1), &[0][..]));
    assert!(variant.observe.steal, "a victim is there to be watched");
    assert_eq!(variant.main_metric(), "victim_got_ratio");
    assert!(two.warnings[0].to_string().contains("no CPU is left for the receiver alone"));
    let one = resolved(text, &[], 1).unwrap();
    let why = one.variants[0].not_available.as_deref().unwrap();
    assert!(why.contains("a victim needs a second one"), "{why}");
}

#[test]
fn what_the_kernel_lacks_is_named_and_the_others_run() {
    let file = load("steal-compare").unwrap();
    let offers = super::offers::Offers {
        bridge: Some("this kernel has no bridges (CONFIG_BRIDGE)".into()),
        iptables: Some("`iptables` is not installed".into()),
        ..super::offers::Offers::default()
    };
    let host = HostShape { offers, ..HostShape::flat(2) };
    let resolved = resolve(&file, &[], &host).unwrap();
    let missing: Vec<&str> = resolved
        .variants
        .iter()
        .filter(|variant| variant.not_available.is_some())
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(missing, ["bridge", "iptables"]);
    let file = load("steal-isolation").unwrap();
    let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
    let rule = resolved.variants.iter().find(|variant| variant.name == "flow-rule").unwrap();
    assert!(rule.not_available.as_deref().unwrap().contains("veth"));
}

#[test]
fn a_placement_that_the_host_lacks_is_named_not_dropped() {
    let file = load("udp-placement").unwrap();
    let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
    let reasons: Vec<Option<&str>> =
        resolved.variants.iter().map(|v| v.not_available.as_deref()).collect();
    assert_eq!(
        reasons,
        [
            None,
            None,
            Some("CPU 0 (softirq) has no SMT sibling here"),
            Some("node 0 has one last-level cache, or its caches are not known"),
            Some("this host has one NUMA node"),
        ]
    );
    assert_eq!(resolved.compare.len(), 1);
    assert_eq!(resolve(&file, &[], &big()).unwrap().compare.len(), 4);
}

#[test]
fn few_cpus_shrink_a_scenario_and_say_so() {
    let file = load("udp-reuseport").unwrap();
    let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
    assert!(options(&resolved.variants[2].serve).starts_with("--cpu 1,0 --batch 64"));
    assert_eq!(
        resolved.warnings[0].to_string(),
        "4 receiver CPUs were wished for, the receiver threads run on CPU 1,0 (this host has 2 usable CPU(s)); read \
         rates that depend on more CPUs as lower bounds"
    );
    assert_eq!(resolve(&file, &[], &big()).unwrap().warnings, []);
}

#[test]
fn a_cpu_outside_the_cpuset_is_told_from_one_that_is_not_there() {
    let mut shape = HostShape::flat(4);
    shape.cpus[3].allowed = false;
    let file = parse("question = \"?\"\n[load]\ncpu = 3\n", "t.toml", "t").unwrap();
    assert_eq!(
        resolve(&file, &[], &shape).unwrap_err().to_string(),
        "t.toml:3: `load.cpu`: CPU 3 is online but outside this process's cpuset; use CPUs of 0-2"
    );
}

#[test]
fn every_bundled_scenario_resolves_on_every_host() {
    for shape in [HostShape::flat(1), HostShape::flat(2), HostShape::flat(4), big()] {
        for file in bundled().unwrap() {
            let resolved = resolve(&file, &[], &shape).unwrap();
            assert!(resolved.expected.is_some(), "{}", file.name);
            // A host of one CPU has one placement: nothing to compare there.
            let here = resolved.variants.iter().filter(|v| v.not_available.is_none()).count();
            assert_eq!(resolved.compare.is_empty(), here < 2, "{}", file.name);
            for variant in &resolved.variants {
                assert!(!variant.what.is_empty());
            }
        }
    }
}

#[test]
fn every_test_scenario_resolves() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let file = load(&path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"));
        resolve(&file, &[], &HostShape::flat(2)).unwrap_or_else(|error| panic!("{error}"));
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let text = |name: &str| load(name).unwrap_err().to_string();
    assert_eq!(
        text("milion-pps"),
        "no scenario is called `milion-pps`; did you mean `million-pps`? `rxpath list` shows all"
    );
    assert!(text("pinning").contains("udp-pinning"));
    assert!(text("nothing-like-it").contains("bundled are million-pps"));
    assert!(text("./none.toml").starts_with("cannot read the scenario file ./none.toml"));
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_panics_and_each_error_is_one_line(text in "\\PC{0,200}") {
            if let Err(error) = parse(&text, "f", "f") {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }

        #[test]
        fn mangled_scenarios_never_panic(at in 0usize..2000, with in "[\\[\\]=\"a-z0-9.@\n]{0,3}", cut in 0usize..20) {
            let whole = include_str!("../../scenarios/udp-placement.toml");
            let start = at.min(whole.len());
            let end = (start + cut).min(whole.len());
            let text = format!("{}{with}{}", &whole[..start], &whole[end..]);
            match parse(&text, "f", "f") {
                Ok(file) => {
                    let _ = resolve(&file, &[], &HostShape::flat(2)).map_err(|error| error.to_string());
                }
                Err(error) => prop_assert!(error.to_string().starts_with("f:"), "{}", error),
            }
        }

        #[test]
        fn no_set_panics(key in "[a-z.]{0,20}", value in "\\PC{0,20}") {
            let file = load("udp-pinning").unwrap();
            let _ = resolve(&file, &[format!("{key}={value}"), format!("serve.{value}")], &HostShape::flat(2));
        }

        #[test]
        fn a_number_set_is_the_number_used(batch in 1u64..=1024) {
            let file = load("udp-placement").unwrap();
            let resolved = resolve(&file, &[format!("load.batch={batch}")], &HostShape::flat(2)).unwrap();
            let wanted = format!("--batch {batch}");
            prop_assert!(resolved.variants.iter().all(|v| options(&v.load).contains(&wanted)));
        }

        #[test]
        fn every_placed_cpu_is_one_of_the_host(cpus in 1u32..20, count in 1u32..30) {
            let shape = HostShape::flat(cpus);
            for role in ["sender", "receiver", "softirq", "next-to-victim"] {
                let list = super::super::cpus::CpuExpr::parse(&format!("@{role}:{count}")).unwrap();
                let mut warnings = Vec::new();
                let places = super::super::place::Places::new(&shape);
                let got = places.place(&list, &mut warnings).unwrap();
                prop_assert!(!got.is_empty() && got.iter().all(|cpu| *cpu < cpus));
                prop_assert!(got.len() == count as usize || !warnings.is_empty());
            }
        }
    }
}

#[test]
fn the_example_of_the_guide_is_a_scenario() {
    let guide = include_str!("../../../../docs/reference/scenarios.md");
    let example =
        guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let file = parse(example, "docs/reference/scenarios.md", "guide").unwrap();
    let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
    assert_eq!(
        options(&resolved.variants[2].serve),
        "--cpu 1 --gro --sleep 8ms --every 10ms --size 32"
    );
}

/// Names of a variant are added to those of the base, and `--set` adds to both.
#[test]
fn any_setting_of_a_namespace_can_be_set() {
    let text = r#"
        question = "?"
        lab.sysctl_rx.net.ipv4.ip_forward = true
        tune.receiver."{dev}/features/rx-gro" = "off"
        [[variant]]
        name = "a"
        [[variant]]
        name = "b"
        from = "a"
        tune.receiver = { "net.ipv4.tcp_rmem" = "4096 8192 16384", "{dev}/features/rx-gro" = "on" }
    "#;
    let file = parse(text, "t", "t").unwrap();
    let sets = [
        r#"tune.sender."{dev}/gso_max_size"=4096"#.to_owned(),
        "variant.b.tune.receiver.{dev}/threaded=1".to_owned(),
    ];
    let made = resolve(&file, &sets, &HostShape::flat(2)).unwrap();
    let names = |at: usize| {
        let all = made.variants[at].tune.receiver.iter();
        all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(made.variants[0].lab.sysctl_rx["net.ipv4.ip_forward"], "1");
    assert_eq!(names(0), ["{dev}/features/rx-gro=off"]);
    let all = ["net.ipv4.tcp_rmem=4096 8192 16384", "{dev}/features/rx-gro=on", "{dev}/threaded=1"];
    assert_eq!(names(1), all);
    assert_eq!(made.variants[0].tune.sender["{dev}/gso_max_size"], "4096");
    for (name, why) in [
        ("kernel.pid_max", "holds for the whole host"),
        ("{dev}/features", "is a group"),
        ("no such", "is not a setting"),
    ] {
        let set = format!("tune.receiver.{name}=1");
        let error = resolve(&file, &[set], &HostShape::flat(2)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
