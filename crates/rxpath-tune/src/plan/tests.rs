use std::collections::BTreeMap;

use proptest::prelude::*;
use rxpath_host::pairs::Pairs;
use rxpath_host::read::identity::Identity;
use rxpath_host::write::change::ChangeOutcome::{self, Applied, Ignored, Refused, Rounded};
use rxpath_host::write::journal::{Contents, Journal, JournalEntry, Undo};
use rxpath_host::write::setter::{Bounds, Setter};

use super::make::{ChangeRequest, make};
use super::*;
use crate::apply::{apply, ready};
use crate::verify::{Standing, verify};

/// A step for tests.
pub(crate) fn step(set: &str, old: &str, new: &str) -> PlanStep {
    PlanStep {
        set: set.parse().unwrap(),
        old: old.into(),
        new: new.into(),
        because: vec!["a-rule".into()],
        effects: Vec::new(),
    }
}

/// A host in memory: groups merge, some values are rounded, ignored or refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FakeHost {
    pub values: BTreeMap<String, String>,
}

impl FakeHost {
    pub fn new() -> Self {
        let values = [
            ("eth0/rings", "rx=256 tx=256"),
            ("eth0/channels", "combined=4"),
            ("eth0/rss", "indir=0,1,2,3"),
            ("eth0/features", "rx-gro=on sg=on tso=on"),
            ("eth0/pause", "autoneg=on rx=on tx=on"),
            ("eth0/threaded", "0"),
            ("eth0/queues/rx-0/rps_cpus", "0"),
            ("net.core.rmem_max", "212992"),
            ("net.core.netdev_budget", "300"),
        ];
        Self { values: values.map(|(k, v)| (k.to_owned(), v.to_owned())).into() }
    }

    fn put(&mut self, name: &str, asked: &Pairs) {
        let now: Pairs = self.values[name].parse().unwrap();
        let mut merged = Pairs::default();
        for (part, old) in now.iter() {
            let mut value = asked.get(part).unwrap_or(old).to_owned();
            // Rings are rounded up to 8, pause ignores rx, and sg takes tso along.
            if name.ends_with("/rings") {
                value = value.parse::<u64>().unwrap().next_multiple_of(8).to_string();
            }
            if name.ends_with("/pause") && part == "rx" {
                value = old.to_owned();
            }
            if part == "tso" && asked.get("sg") == Some("off") {
                value = "off".into();
            }
            merged.push(part, value);
        }
        self.values.insert(name.into(), merged.to_string());
    }
}

impl Setter for FakeHost {
    fn identify(&mut self, target: &Target) -> Result<Option<Identity>, HostError> {
        Ok(target.device().map(|_| Identity::Device { index: 2 }))
    }

    fn locate(&mut self, target: &Target, _: &Identity) -> Result<Option<Target>, HostError> {
        Ok(Some(target.clone()))
    }

    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError> {
        let value = self.values.get(&target.to_string());
        value
            .cloned()
            .map(Some)
            .ok_or_else(|| HostError::Missing { path: target.to_string().into() })
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), HostError> {
        let name = target.to_string();
        if name == "net.core.netdev_budget" && value == "301" {
            return Err(HostError::Kernel {
                op: "set".into(),
                errno: 22,
                extack: Some("no odd budgets".into()),
            });
        }
        if target.has_parts() {
            self.put(&name, &value.parse().unwrap());
        } else {
            self.values.insert(name, value.into());
        }
        Ok(())
    }

    fn bounds(&mut self, target: &Target) -> Bounds {
        match target.to_string().as_str() {
            "eth0/rings" => {
                Bounds { most: "rx=4096 tx=4096".parse().unwrap(), ..Bounds::default() }
            }
            "eth0/queues/rx-0/rps_cpus" => Bounds { cpus: "0-3".parse().ok(), ..Bounds::default() },
            _ => Bounds::default(),
        }
    }
}

fn planned(host: &mut FakeHost, requests: &[&str]) -> Plan {
    let requests: Vec<ChangeRequest> =
        requests.iter().map(|text| ChangeRequest::parse(text).unwrap()).collect();
    let plan = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
    make(host, &|_| Some("igb".into()), &requests, plan)
}

fn text_of(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| format!("{}: {} -> {}", step.set, step.old, step.new)).collect()
}

#[test]
fn writes_to_one_target_become_one_and_stand_in_order() {
    let mut host = FakeHost::new();
    let plan = planned(
        &mut host,
        &[
            "net.core.rmem_max=1000000",
            "eth0/queues/rx-0/rps_cpus=3",
            "eth0/rss/indir=0,0,1,1",
            "eth0/rings/rx=512",
            "eth0/channels/combined=8",
            "eth0/rings/tx=1024",
        ],
    );
    assert_eq!(
        text_of(&plan),
        [
            "eth0/channels: combined=4 -> combined=8",
            "eth0/rings: rx=256 tx=256 -> rx=512 tx=1024",
            "eth0/rss: indir=0,1,2,3 -> indir=0,0,1,1",
            "eth0/queues/rx-0/rps_cpus: 0 -> 3",
            "net.core.rmem_max: 212992 -> 1000000",
        ]
    );
    assert!(plan.steps[1].bounces_link(), "igb loses its link");
    assert!(plan.left_out.is_empty());
}

#[test]
fn a_table_is_narrowed_before_its_queues_go() {
    let mut host = FakeHost::new();
    let plan = planned(&mut host, &["eth0/channels/combined=2", "eth0/rss/indir=0,1,0,1"]);
    assert_eq!(plan.steps[0].set.to_string(), "eth0/rss");
    assert_eq!(plan.steps[1].set.to_string(), "eth0/channels");
}

#[test]
fn what_cannot_be_is_left_out_with_its_reason() {
    let mut host = FakeHost::new();
    let plan = planned(
        &mut host,
        &[
            "eth0/rings/rx=9999",
            "eth0/rings/rx-mini=1",
            "eth0/threaded=0",
            "eth1/rings/rx=512",
            "net.core.rmem_max=1000",
            "net.core.rmem_max=2000",
        ],
    );
    let why: Vec<&str> = plan.left_out.iter().map(|left| left.why.as_str()).collect();
    assert_eq!(why[0], "rx=9999: the device takes at most 4096");
    assert_eq!(why[1], "this driver has no rx-mini; it has rx, tx");
    assert_eq!(plan.left_out.iter().position(|left| left.is_set), Some(2), "{why:?}");
    assert!(why[3].contains("eth1/rings"), "{why:?}");
    assert_eq!(why[4], "two values are requested: 1000 (asked for) and 2000");
    assert_eq!(plan.steps.len(), 1);
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let mut host = FakeHost::new();
    let mut plan = planned(&mut host, &["eth0/rings/rx=512", "eth0/threaded=0"]);
    plan.host = HostMark {
        machine: Some("00ff".into()),
        boot_id: "b".into(),
        netns: 4,
        kernel: "6".into(),
    };
    assert_eq!(plan.steps.len(), 1, "{:?}", plan.left_out);
    let text = plan.to_toml().unwrap();
    insta::assert_snapshot!("plan", text);
    assert_eq!(Plan::parse(&text, "x.toml").unwrap(), plan);
    let json = serde_json::to_string_pretty(&plan).unwrap();
    assert_eq!(Plan::parse(&json, "x.json").unwrap(), plan);
}

#[test]
fn bad_plans_are_refused_in_one_line() {
    let requests = ["eth0/rings/rx=512", "net.core.netdev_budget=600"];
    let good = planned(&mut FakeHost::new(), &requests).to_toml().unwrap();
    for (from, to, words) in [
        ("rxpath/plan/1.0", "rxpath/plan/2.0", "newer rxpath"),
        ("rxpath/plan/1.0", "rxpath/udp/1.0", "expected rxpath/plan/1.0"),
        ("new = \"600\"", "new = \"600000\"", "from 1 to 10000"),
        ("rx=512", "rx=many", "expected a number"),
        ("eth0/rings", "eth0/ringz", "expected one of gro_flush_timeout"),
        ("net.core.netdev_budget", "kernel.modprobe", "not a sysctl of the receive path"),
        ("net.core.netdev_budget", "net.netfilter.nf_conntrack_max", "never changed"),
        ("net.core.netdev_budget", "/etc/passwd", "not a setting"),
        ("[host]", "[hast]", "unknown field"),
        ("new = \"600\"", "new = 600", "line"),
        ("created", "craeted", "line 3"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from} is in the plan");
        let error = Plan::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for text in ["", "hello", "{", "{}", "[[step]]", "\0\u{1}"] {
        assert!(Plan::parse(text, "x").is_err(), "{text:?}");
    }
}

#[test]
fn a_plan_for_another_host_boot_or_namespace_is_told() {
    let here =
        HostMark { machine: Some("a".into()), boot_id: "b".into(), netns: 1, kernel: "k".into() };
    assert_eq!((here.id(), HostMark { machine: None, ..here.clone() }.id()), ("a", "b"));
    let mut plan = Plan::new(String::new(), here.clone());
    assert!(plan.is_for(&HostMark { kernel: "other".into(), ..here.clone() }, "f").is_ok());
    for (mark, word) in [
        (HostMark { machine: None, ..here.clone() }, "another host"),
        (HostMark { boot_id: "c".into(), ..here.clone() }, "another boot"),
        (HostMark { netns: 2, ..here.clone() }, "another network namespace"),
    ] {
        plan.host = mark;
        let error = plan.is_for(&here, "f").unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_plan_is_read_as_it_was_printed() {
    let mut plan = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
    plan.steps = vec![step("net.core.rmem_max", "212992", "4194304")];
    let mut printed = serde_json::json!({
        "schema": "rxpath/tune-plan/1.0", "settings": {}, "result": &plan, "warnings": []
    });
    assert_eq!(Plan::parse(&printed.to_string(), "x").unwrap(), plan);
    printed["result"]["predictions"] = serde_json::json!([{ "any": 1 }]);
    assert_eq!(Plan::parse(&printed.to_string(), "x").unwrap(), plan);
    printed["result"]["surprise"] = serde_json::json!(1);
    let error = Plan::parse(&printed.to_string(), "x").unwrap_err().to_string();
    assert!(error.contains("unknown field `surprise`"), "{error}");
    printed.as_object_mut().unwrap().remove("result");
    let error = Plan::parse(&printed.to_string(), "x").unwrap_err().to_string();
    assert_eq!(error, "x: missing field `result`");
}

#[test]
fn a_stale_plan_writes_nothing() {
    let mut host = FakeHost::new();
    let plan = planned(&mut host, &["eth0/rings/rx=512", "net.core.rmem_max=1000000"]);
    host.values.insert("net.core.rmem_max".into(), "300".into());
    let error = ready(&mut host, &plan.steps).unwrap_err().to_string();
    assert!(
        error.contains("step 2: net.core.rmem_max was 212992") && error.contains("is 300 now"),
        "{error}"
    );
    host = FakeHost::new();
    let mut edited = plan;
    edited.steps[0].new = "rx=5000".into();
    let error = ready(&mut host, &edited.steps).unwrap_err().to_string();
    assert!(error.contains("at most 4096"), "{error}");
}

fn run(host: &mut FakeHost, plan: &Plan, journal: &mut Journal) -> Vec<ChangeOutcome> {
    ready(host, &plan.steps).unwrap();
    let applied = apply(journal, host, &plan.steps, &mut |_| Ok(()));
    assert!(applied.stopped.is_none(), "{applied:?}");
    applied.changes.into_iter().map(|change| change.outcome).collect()
}

#[test]
fn each_step_is_told_as_the_kernel_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&dir.path().join("j")).unwrap();
    let mut host = FakeHost::new();
    let before = host.clone();
    let plan = planned(
        &mut host,
        &[
            "eth0/rings/rx=510",
            "eth0/pause/rx=off",
            "net.core.rmem_max=1000000",
            "net.core.netdev_budget=301",
        ],
    );
    let outcomes = run(&mut host, &plan, &mut journal);
    let refused = Refused { why: "Invalid argument (os error 22): no odd budgets".into() };
    assert_eq!(outcomes, [Rounded, Ignored, Applied, refused]);
    let open: Vec<bool> = journal.entries().iter().map(JournalEntry::is_open).collect();
    assert_eq!(open, [true, false, true, false], "what came to nothing is not in force");
    let stands: Vec<Standing> =
        verify(&mut host, journal.contents()).into_iter().map(|one| one.standing).collect();
    let why = "Invalid argument (os error 22): no odd budgets".into();
    let refused = Standing::Refused { why };
    assert_eq!(stands, [Standing::AsLeft, Standing::Ignored, Standing::Holds, refused]);
    assert_eq!(journal.contents().never_reached(), []);
    assert!(journal.undo(&mut host).unwrap().iter().all(Undo::is_whole));
    assert_eq!(host, before);
}

#[test]
fn what_a_refusal_kept_from_being_tried_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut journal = Journal::open(&path).unwrap();
    let mut host = FakeHost::new();
    let mut plan = planned(&mut host, &["net.core.rmem_max=1000000", "net.core.netdev_budget=301"]);
    plan.steps.reverse();
    let refused = apply(&mut journal, &mut host, &plan.steps, &mut |_| Ok(()));
    assert_eq!(refused.changes.len(), 1);
    let told = |contents: &Contents| {
        let left = contents.never_reached();
        left.iter().map(|(target, asked)| format!("{target}={asked}")).collect::<Vec<_>>()
    };
    assert_eq!(told(journal.contents()), ["net.core.rmem_max=1000000"]);
    assert!(!journal.contents().is_open() && journal.undo(&mut host).unwrap().is_empty());
    let stands = verify(&mut host, journal.contents());
    assert_eq!(stands[1].standing, Standing::NeverReached);
    drop(journal);
    assert_eq!(told(&Contents::read(&path).unwrap().unwrap()), ["net.core.rmem_max=1000000"]);
    // Of a program that died there is no count: what was begun last was reached.
    let text = std::fs::read_to_string(&path).unwrap();
    let (dead, _) = text.split_once("{\"step\":\"reached\"").unwrap();
    std::fs::write(&path, dead).unwrap();
    assert_eq!(told(&Contents::read(&path).unwrap().unwrap()), ["net.core.rmem_max=1000000"]);
}

/// Values that somebody may type, most of them wrong for any one setting.
fn edited() -> impl Strategy<Value = String> {
    let words = [
        "on", "off", "maybe", "", "zzz", "-1", "0", "1", "2", "f", "10", "ffffffff", "1e3", "0x10",
    ];
    prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        (0i64..20_000).prop_map(|n| n.to_string()),
        "[0-9a-f,]{1,12}",
    ]
}

/// Groups of up to eight digits, of which the last alone may have bits, and of these the lowest four.
fn is_mask_of_four(text: &str) -> bool {
    let mut groups = text.trim().split(',').rev().map(|group| {
        Some(group)
            .filter(|group| group.len() <= 8)
            .and_then(|group| u32::from_str_radix(group, 16).ok())
    });
    groups.next().flatten().is_some_and(|bits| bits < 16) && groups.all(|bits| bits == Some(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Plans, applies and undoes in any order: in the end nothing has changed.
    #[test]
    fn any_sequence_of_plan_apply_undo_is_the_identity(
        steps in proptest::collection::vec((proptest::collection::vec(0usize..10, 1..5), 1u32..5000, any::<bool>()), 1..8)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("j")).unwrap();
        let mut host = FakeHost::new();
        let before = host.clone();
        for (which, number, undo) in steps {
            let request = |which: &usize| match which {
                0 => format!("eth0/rings/rx={}", number.min(4096)),
                1 => format!("eth0/rings/tx={}", number.min(4096)),
                2 => format!("eth0/channels/combined={}", number % 8 + 1),
                3 => format!("eth0/features/sg={}", if number % 2 == 0 { "on" } else { "off" }),
                4 => format!("eth0/features/rx-gro={}", if number % 3 == 0 { "on" } else { "off" }),
                5 => "eth0/pause/rx=off".to_owned(),
                6 => format!("eth0/threaded={}", number % 2),
                7 => format!("eth0/queues/rx-0/rps_cpus={:x}", number % 4),
                8 => format!("net.core.rmem_max={}", number + 256),
                _ => "net.core.netdev_budget=301".to_owned(),
            };
            let requests: Vec<String> = which.iter().map(request).collect();
            let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
            let plan = planned(&mut host, &requests);
            let again = Plan::parse(&plan.to_toml().unwrap(), "x").unwrap();
            run(&mut host, &again, &mut journal);
            if undo {
                journal.undo(&mut host).unwrap();
                prop_assert_eq!(&host, &before);
            }
        }
        journal.undo(&mut host).unwrap();
        prop_assert_eq!(&host, &before);
    }

    /// A plan that was edited to hold any value writes it within its range, or writes nothing at all.
    #[test]
    fn a_value_of_an_edited_plan_fits_or_nothing_is_written(which in 0usize..6, text in edited()) {
        let mut host = FakeHost::new();
        let requests = ["net.core.netdev_budget=600", "eth0/threaded=1", "eth0/rings/rx=512",
            "eth0/queues/rx-0/rps_cpus=1", "net.core.rmem_max=1000000", "eth0/features/rx-gro=off"];
        let mut plan = planned(&mut host, &requests);
        let at = which % plan.steps.len();
        let name = plan.steps[at].set.to_string();
        let new = match name.as_str() {
            "eth0/rings" => format!("rx={text}"),
            "eth0/features" => format!("rx-gro={text}"),
            _ => text.clone(),
        };
        plan.steps[at].new = new;
        let before = host.clone();
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("j")).unwrap();
        let read = plan.to_toml().and_then(|text| Plan::parse(&text, "x"));
        let checked = read.and_then(|plan| ready(&mut host, &plan.steps).map(|()| plan));
        let number = |min: i64, max: i64| text.trim().parse::<i64>().is_ok_and(|n| (min..=max).contains(&n));
        let fits = match name.as_str() {
            "net.core.netdev_budget" => number(1, 10_000),
            "net.core.rmem_max" => number(256, i64::from(i32::MAX)),
            "eth0/threaded" => number(0, 2),
            "eth0/rings" => number(0, 4096),
            "eth0/queues/rx-0/rps_cpus" => is_mask_of_four(&text),
            _ => ["on", "off"].contains(&text.as_str()),
        };
        prop_assert_eq!(checked.is_ok(), fits, "{} = {:?}: {:?}", name, text, checked.as_ref().err().map(ToString::to_string));
        if let Ok(plan) = checked {
            apply(&mut journal, &mut host, &plan.steps, &mut |_| Ok(()));
            journal.undo(&mut host).unwrap();
        }
        prop_assert_eq!(host, before, "nothing was written, or all is undone");
    }

    #[test]
    fn any_text_is_a_plan_or_refused(text in ".{0,200}") {
        let _ = Plan::parse(&text, "x");
    }
}
