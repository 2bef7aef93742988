//! Plans without root: what is refused, in one line, before anything is written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::program::{rxpath, said};
use crate::schema;

/// A plan of this host that changes nothing bad: loopback's MTU down by one.
fn plan(dir: &TempDir) -> String {
    let path = dir.path().join("plan.toml").display().to_string();
    let mtu: u32 =
        std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    let set = format!("lo/link/mtu={}", mtu - 1);
    rxpath(&["tune", "plan", "--set", &set, "-o", &path])
        .ends(0)
        .prints(&format!("lo/link: mtu={mtu} -> mtu={}", mtu - 1));
    path
}

#[test]
fn knobs_that_are_none_and_values_out_of_range_are_refused() {
    let cases = [
        ("net.core.rmem_max", "expected KNOB=VALUE"),
        ("net.core.rmem_max=-5", "from 256 to 2147483647"),
        ("net.ipv4.tcp_rmem=1 2", "three numbers"),
        ("lo/rings=rx", "name one of its values"),
        ("lo/ringz/rx=1", "expected one of"),
        ("lo=1", "is not a setting"),
        ("/etc/passwd=x", "is not a setting"),
        ("net.netfilter.nf_conntrack_max=1", "never changed"),
        ("/sys/devices/system/cpu/vulnerabilities/meltdown=off", "never changed"),
        ("kernel.modprobe=/tmp/x", "not a sysctl of the receive path"),
        ("irq/1=x", "expected CPUs"),
        ("lo/features/rx-gro=maybe", "on or off"),
    ];
    for (set, words) in cases {
        let said = rxpath(&["tune", "plan", "--set", set]).ends(2).refuses("", words);
        let rest = said.err.lines().skip(1).all(|line| line.starts_with("hint: "));
        assert!(rest, "one line: {}", said.err);
    }
}

#[test]
fn what_this_host_lacks_is_left_out_with_its_reason() {
    let sets = [
        "--set",
        "lo/rings/rx=512",
        "--set",
        "no-such-dev/rings/rx=1",
        "--set",
        "lo/features/rx-gro=on",
    ];
    let said = rxpath(&[&["tune", "plan"], &sets[..]].concat());
    // None of the settings that were asked for by hand can be a step.
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.out.contains("lo/rings/rx=512: this driver does not have it"), "{}", said.out);
    assert!(said.out.contains("no-such-dev/rings/rx=1:"), "{}", said.out);
    assert!(said.out.contains("lo/features/rx-gro=on: already set"), "{}", said.out);
}

/// The same plan, of a machine with another id, or with one where this has none.
fn other_host(plan: &str) -> String {
    let kept = plan.lines().filter(|line| !line.starts_with("machine = "));
    kept.map(|line| {
        if line == "[host]" { "[host]\nmachine = \"0123\"\n" } else { line }.to_owned() + "\n"
    })
    .collect()
}

#[test]
fn bad_plans_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = plan(&dir);
    let state = dir.path().join("state").display().to_string();
    let good = std::fs::read_to_string(&path).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let other_boot = "00000000-0000-0000-0000-000000000000";
    let mtu = good.lines().find_map(|line| line.strip_prefix("new = ")).unwrap();
    let cases = [
        (good.replace(boot.trim(), other_boot), "another boot"),
        (other_host(&good), "another host"),
        (good.replace(mtu, "\"mtu=huge\""), "expected a number"),
        (good.replace("lo/link", "lo/lunk"), "expected one of"),
        (good.replace("plan/1.0", "plan/7.0"), "newer rxpath"),
        (String::new(), "missing field"),
        ("\u{0}\u{1}garbage".into(), "line 1"),
        (good.replace("[[step]]", "[[stop]]"), "unknown field `stop`"),
    ];
    for (text, words) in cases {
        std::fs::write(&path, &text).unwrap();
        let said = rxpath(&["tune", "apply", &path, "--state-dir", &state]);
        assert_eq!(said.code, Some(2), "{words}: {} {}", said.out, said.err);
        assert!(said.err.contains(words), "{words}: {}", said.err);
        assert_eq!(said.err.lines().filter(|line| line.starts_with("rxpath: ")).count(), 1);
        assert!(!Path::new(&state).exists(), "nothing was begun");
    }
    rxpath(&["tune", "plan", "--goal", "latency", "--dev", "no-such-dev"])
        .ends(2)
        .warns("--dev no-such-dev: no such network device");
    rxpath(&["tune", "apply", "/no/such/plan"]).ends(2).warns("cannot read the plan /no/such/plan");
}

#[test]
fn times_that_are_no_watchdog_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = plan(&dir);
    for time in ["1s", "2000000s"] {
        rxpath(&["tune", "apply", &path, "--confirm-within", time])
            .ends(2)
            .warns("expected 5s to 86400s");
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_shown_in_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    let file = odd.join("plan.toml");
    let shown = |words: &[&str], path: &Path, key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        let answer = said(command.args(words).arg(path)).ends(0).json();
        assert_eq!(answer["settings"][key], path.display().to_string(), "{answer}");
    };
    // Without a step: it is set already.
    let plan = ["tune", "plan", "--json", "--set", "lo/features/rx-gro=on", "-o"];
    shown(&plan, &file, "out");
    shown(&["tune", "apply", "--json"], &file, "plan");
    shown(&["tune", "status", "--json", "--state-dir"], &odd, "state_dir");
}

#[test]
fn journals_of_other_boots_and_newer_versions_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().display().to_string();
    let head = |v: u32| format!("{{\"step\":\"head\",\"v\":{v},\"boot_id\":\"x\",\"netns\":1}}\n");
    let begin = "{\"step\":\"begin\",\"n\":0,\"target\":\"net.core.rmem_max\",\"before\":\"1\",\"asked\":\"2\"}\n";
    std::fs::write(dir.path().join("1.journal"), head(1) + begin).unwrap();
    std::fs::write(dir.path().join("2.journal"), head(9) + begin).unwrap();
    let status = rxpath(&["tune", "status", "--state-dir", &state])
        .ends(3)
        .prints("journal 1: of an earlier boot: the restart has undone it")
        .prints("journal 2: can't be read")
        .prints("newer rxpath");
    // All commands say it in the same line and end with the same status.
    let line = status.out.lines().find(|line| line.starts_with("journal 2: ")).unwrap();
    let verify = rxpath(&["tune", "verify", "2", "--state-dir", &state]);
    assert_eq!((verify.code, verify.err), (Some(3), format!("rxpath: {line}\n")));
    rxpath(&["tune", "undo", "--all", "--state-dir", &state])
        .ends(3)
        .warns(&format!("rxpath: {line}\n"))
        .warns("journal 1 is of an earlier boot");
    let again = rxpath(&["tune", "status", "--state-dir", &state]);
    assert!(!again.out.contains("journal 1"), "{}", again.out);
    rxpath(&["tune", "undo", "2", "--forget", "--state-dir", &state])
        .ends(5)
        .warns("journal 2 is set aside as");
    assert!(dir.path().join("2.1.unreadable").exists());
    let status = rxpath(&["tune", "status", "--state-dir", &state]);
    assert_eq!(status.out.trim(), "nothing is changed");
}

#[test]
fn a_journal_that_is_not_there_is_refused_alike_and_nothing_is_made_by_asking() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().display().to_string();
    let missing = dir.path().join("none").display().to_string();
    for state in [&there, &missing] {
        for command in ["undo", "confirm", "verify"] {
            let said = rxpath(&["tune", command, "99", "--state-dir", state]).ends(2);
            assert!(said.err.starts_with("rxpath: there is no journal 99\n"), "{}", said.err);
        }
        rxpath(&["tune", "confirm", "--state-dir", state])
            .ends(2)
            .warns("nothing waits for a confirmation");
        let said = rxpath(&["tune", "undo", "--state-dir", state]);
        assert_eq!((said.code, said.out.trim()), (Some(0), "nothing to undo"), "{}", said.err);
    }
    assert!(!Path::new(&missing).exists(), "asking makes no directory");
}

#[test]
fn drafts_for_a_restart_are_written_for_review() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("etc").display().to_string();
    rxpath(&[
        "tune",
        "plan",
        "--set",
        "lo/link/mtu=4000",
        "--set",
        "net.ipv4.udp_rmem_min=8192",
        "--persist",
        "sysctl.d",
        &to,
    ])
    .ends(0)
    .prints("review it, then install it as /etc/sysctl.d/")
    .prints("not in the draft: lo/link mtu=4000: not a sysctl");
    let text = std::fs::read_to_string(Path::new(&to).join("90-rxpath.conf")).unwrap();
    assert!(text.contains("net.ipv4.udp_rmem_min = 8192"), "{text}");
    rxpath(&["tune", "plan", "--set", "lo/link/mtu=4000", "--persist", "nowhere", &to])
        .ends(2)
        .warns("sysctl.d, link, udev, cmdline, ansible");
}

#[test]
fn json_is_as_the_schemas_say() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().display().to_string();
    let path = plan(&dir);
    let sets = ["--set", "lo/link/mtu=4000", "--set", "lo/rings/rx=1", "--json"];
    let said = rxpath(&[&["tune", "plan"], &sets[..]].concat());
    let planned = schema::result("tune-plan", &said.out);
    assert_eq!(planned["step"].as_array().unwrap().len(), 1, "{planned}");
    assert_eq!(planned["left_out"].as_array().unwrap().len(), 1, "{planned}");
    let nothing: [(&str, &[&str]); 3] = [
        ("tune-status", &["status", "--all"]),
        ("tune-verify", &["verify"]),
        ("tune-undo", &["undo"]),
    ];
    for (name, words) in nothing {
        let words = [&["tune"], words, &["--json", "--state-dir", &state]].concat();
        assert_eq!(schema::result(name, &rxpath(&words).out), serde_json::json!([]));
    }
    let without = std::fs::read_to_string(&path).unwrap();
    let (head, _) = without.split_once("[[step]]").unwrap();
    std::fs::write(&path, head).unwrap();
    let said = rxpath(&["tune", "apply", &path, "--json", "--state-dir", &state]).ends(0);
    assert_eq!(schema::result("tune-apply", &said.out)["journal"], serde_json::Value::Null);
}

#[test]
fn a_setting_that_is_not_here_is_no_success() {
    rxpath(&["tune", "plan", "--set", "rxp-none/link/mtu=4000"])
        .ends(2)
        .prints("rxp-none/link/mtu=4000");
    rxpath(&["tune", "plan", "--set", "net.core.rmem_maxx=4194304"]).ends(2);
    let both = ["tune", "plan", "--set", "lo/link/mtu=4000", "--set", "rxp-none/link/mtu=4000"];
    rxpath(&both).ends(5);
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
    let same = format!("lo/link/mtu={}", mtu.trim());
    assert_eq!(rxpath(&["tune", "plan", "--set", &same]).code, Some(0), "already set");
}

#[test]
fn what_cannot_be_written_has_one_status() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("x").display().to_string();
    for place in [below.as_str(), "/proc/rxp-none/x"] {
        let said = rxpath(&["capture", place]);
        assert_eq!(said.code, Some(2), "capture {place}: {}", said.err);
        let said = rxpath(&["tune", "plan", "--set", "lo/link/mtu=4000", "-o", place]);
        assert_eq!(said.code, Some(2), "tune plan -o {place}: {}", said.err);
    }
}

#[test]
fn an_endless_plan_is_not_read_to_its_end() {
    rxpath(&["tune", "apply", "/dev/zero"]).ends(2).warns("larger than 4 MiB: not a plan");
}

#[test]
fn a_search_that_makes_no_sense_is_refused_before_anything_is_made() {
    let auto =
        |words: &[&str]| rxpath(&[&["tune", "auto", "--scenario", "udp-queue"], words].concat());
    for (words, part) in [
        (vec!["--objective", "max loss_ratio"], "write min loss_ratio"),
        (vec!["--guard", "loss_ratio"], "there is no < or >"),
        (vec!["--guard", "loss_ratio>1"], "write <"),
        (vec!["--guard", "loss_ratio<1", "--guard", "loss_ratio<2"], "keep the stricter"),
        (vec!["--objective", "delivered_pps", "--guard", "delivered_pps>5"], "is the objective"),
        (vec!["--variant", "none"], "has no variant `none`; it has "),
        (vec!["--set", "topology.kind=local"], "namespace of its own"),
        (vec!["--set", "tune.receiver.nothing=1"], "is not a setting"),
    ] {
        auto(&words).ends(2).warns(part).prints_nothing();
    }
}
