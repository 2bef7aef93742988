//! Changing real settings of a veth pair and of a namespace's sysctls: applied, read back, undone, after every crash.

mod beside;
mod crash;
mod device;
mod every;
mod outcome;
mod place;
mod watch;

use place::{Place, WISHES};

use crate::program::said;
use crate::schema;

#[test]
fn every_kind_of_setting_is_applied_verified_and_undone() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    let text = std::fs::read_to_string(&plan).unwrap();
    assert_eq!(text.matches("[[step]]").count(), WISHES.len(), "{text}");
    let applied = place.rxpath(&["tune", "apply", &plan]).ok();
    assert_eq!(applied.matches(" -> ").count(), WISHES.len(), "{applied}");
    let changed = place.snapshot();
    for wish in WISHES {
        let (knob, value) = wish.split_once('=').unwrap();
        assert!(place.has(knob, value), "{wish}: {changed:#?}");
    }
    let verified = place.rxpath(&["tune", "verify"]).ok();
    assert_eq!(verified.matches(": holds").count(), WISHES.len(), "{verified}");
    let status = place.rxpath(&["tune", "status"]).ok();
    assert!(status.contains("journal 1: in force"), "{status}");

    let undone = place.rxpath(&["tune", "undo"]).ok();
    assert_eq!(undone.matches(" again").count(), WISHES.len(), "{undone}");
    assert_eq!(place.snapshot(), place.before);
    assert!(place.rxpath(&["tune", "undo", "--all"]).ok().contains("nothing to undo"));
}

#[test]
fn what_drifted_is_told_and_undone_all_the_same() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    place.sysctl("net.ipv4.udp_rmem_min", "16384");
    place.rxpath(&["tune", "verify"]).ends(1).prints("drifted: 16384, asked for 8192");
    let undone = place.rxpath(&["tune", "undo"]).ok();
    assert!(undone.contains("another program had set 16384"), "{undone}");
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn a_refusal_stops_the_plan_and_offers_to_undo() {
    let Some(place) = Place::new() else { return };
    // veth takes no more channels than it has queues, and says so.
    let plan = place.plan(&["veth/link/mtu=1400", "net.ipv4.udp_rmem_min=8192"]);
    let text = std::fs::read_to_string(&plan).unwrap();
    // A congestion control that no kernel has; sysctls that are text are the kernel's to judge.
    let key = "net.ipv4.tcp_congestion_control";
    let now = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let step = format!(
        "\n[[step]]\nset = \"{key}\"\nold = \"{}\"\nnew = \"no-such-control\"\n\n[[step]]\n",
        now.trim()
    );
    let edited = text.replacen(
        "\n[[step]]\nset = \"net.ipv4.udp_rmem_min\"",
        &format!("{step}set = \"net.ipv4.udp_rmem_min\""),
        1,
    );
    std::fs::write(&plan, edited).unwrap();
    place
        .rxpath(&["tune", "apply", &plan])
        .ends(5)
        .prints("tcp_congestion_control: refused no-such-control: No such file")
        .prints("1 more steps were not tried")
        .warns("hint: undo the completed steps with: rxpath tune undo 1");
    assert!(place.has("veth/link/mtu", "1400"), "the step before stays until it is undone");
    place.rxpath(&["tune", "undo", "1"]).ok();
    assert_eq!(place.snapshot(), place.before);

    place.rxpath(&["tune", "apply", &plan, "--on-failure", "undo"]).ends(5);
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn a_permission_that_is_lost_halfway_stops_the_plan() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/threaded=1", "net.ipv4.udp_rmem_min=8192"]);
    // Without CAP_NET_ADMIN root may still write sysctls, as their owner, and no attribute of a device.
    let text = std::fs::read_to_string(&plan).unwrap();
    let (head, steps) = text.split_once("[[step]]").unwrap();
    let mut steps: Vec<&str> = steps.split("[[step]]").collect();
    steps.reverse();
    let steps: Vec<String> =
        steps.iter().map(|step| format!("[[step]]{}\n", step.trim_end())).collect();
    std::fs::write(&plan, format!("{head}{}", steps.concat())).unwrap();
    place
        .without("net_admin", &["tune", "apply", &plan])
        .ends(5)
        .prints("udp_rmem_min: 4096 -> 8192")
        .prints("veth/threaded: refused 1:")
        .prints("CAP_NET_ADMIN");
    place.undo();
}

#[test]
fn a_plan_that_is_stale_or_foreign_changes_nothing() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/threaded=1", "net.ipv4.udp_rmem_min=8192"]);
    place.sysctl("net.ipv4.udp_rmem_min", "16384");
    let before = place.snapshot();
    place
        .rxpath(&["tune", "apply", &plan])
        .ends(2)
        .warns("was 4096 when the plan was made and is 16384 now");
    assert_eq!(place.snapshot(), before);

    let other = Place::new().unwrap();
    other.rxpath(&["tune", "apply", &plan]).ends(2).warns("another network namespace");
}

#[test]
fn changes_on_top_of_each_other_are_undone_in_order() {
    let Some(place) = Place::new() else { return };
    for value in ["8192", "16384"] {
        let plan = place.plan(&[&format!("net.ipv4.udp_rmem_min={value}")]);
        place.rxpath(&["tune", "apply", &plan]).ok();
    }
    place.rxpath(&["tune", "undo", "1"]).ends(2).warns("journal 2 is newer than journal 1");
    place.rxpath(&["tune", "undo", "--all"]).ok();
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn only_one_at_a_time_changes_the_host() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400"]);
    let before = place.snapshot();
    let held = place.lock();
    let refused = place.rxpath(&["tune", "apply", &plan]).ends(3);
    let holder = format!("one tune at a time; process {}", std::process::id());
    assert!(refused.err.contains(&holder), "{refused:?}");
    assert_eq!(place.snapshot(), before);
    // Another directory for the journals is no way round it.
    let elsewhere = place.dir.path().join("elsewhere").display().to_string();
    let words = ["tune", "apply", &plan, "--state-dir", &elsewhere];
    place.rxpath_as_told(&words).ends(3).warns(&holder);
    assert_eq!(place.snapshot(), before);
    drop(held);
    place.rxpath(&["tune", "apply", &plan]).ok();
    place.rxpath(&["tune", "undo"]).ok();
    assert_eq!(place.snapshot(), before);
}

#[test]
fn two_directories_of_journals_do_not_undo_over_each_other() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    let again = place.plan(&["net.ipv4.udp_rmem_min=16384"]);
    let elsewhere = place.dir.path().join("elsewhere").display().to_string();
    let words = ["tune", "apply", &again, "--state-dir", &elsewhere];
    let refused = place.rxpath_as_told(&words).ends(2);
    let said = "net.ipv4.udp_rmem_min: journal 1 of ";
    assert!(refused.err.contains(said) && refused.err.contains("in force"), "{refused:?}");
    assert!(refused.err.contains("tune undo 1 --state-dir"), "{refused:?}");
    assert!(place.has("net.ipv4.udp_rmem_min", "8192"), "nothing was written");
    // What the other did not touch is free.
    let free = place.plan(&["net.ipv4.udp_early_demux=0"]);
    place.rxpath_as_told(&["tune", "apply", &free, "--state-dir", &elsewhere]).ok();
    place.rxpath_as_told(&["tune", "undo", "--state-dir", &elsewhere]).ok();
    place.undo();
    let plan = place.plan(&["net.ipv4.udp_rmem_min=16384"]);
    place.rxpath_as_told(&["tune", "apply", &plan, "--state-dir", &elsewhere]).ok();
    place.rxpath_as_told(&["tune", "undo", "--state-dir", &elsewhere]).ok();
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn the_link_of_the_ssh_session_stays_up_unless_forced() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400"]);
    let text = std::fs::read_to_string(&plan).unwrap();
    // What a plan says of its effects counts too: veth itself loses no link.
    assert!(!text.contains("link-bounce"), "{text}");
    std::fs::write(
        &plan,
        format!("{text}\n").replace("because", "effects = [\"link-bounce\"]\nbecause"),
    )
    .unwrap();
    let before = place.snapshot();
    let session = ("SSH_CONNECTION", "10.77.0.9 50000 10.77.0.2 22");
    place
        .with(session, &["tune", "apply", &plan])
        .ends(2)
        .warns("your ssh session from 10.77.0.9 runs over it")
        .warns("--force");
    assert_eq!(place.snapshot(), before);
    // A session over another device is no reason.
    let other = ("SSH_CONNECTION", "127.0.0.1 50000 127.0.0.1 22");
    assert_eq!(place.with(other, &["tune", "apply", &plan]).code, Some(0));
    place.rxpath(&["tune", "undo"]).ok();
    assert_eq!(place.with(session, &["tune", "apply", "--force", &plan]).code, Some(0));
    place.rxpath(&["tune", "undo"]).ok();
    assert_eq!(place.snapshot(), before);
}

#[test]
fn json_of_each_command_is_as_its_schema_says() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    let json = |words: &[&str]| place.rxpath(&[&["tune"], words, &["--json"]].concat()).ok();
    let applied =
        schema::result("tune-apply", &json(&["apply", &plan, "--confirm-within", "1000s"]));
    assert_eq!(applied["changes"].as_array().unwrap().len(), WISHES.len(), "{applied}");
    let status = schema::result("tune-status", &json(&["status"]));
    assert_eq!(status[0]["state"], "waits", "{status}");
    let confirmed = schema::result("tune-confirm", &json(&["confirm"]));
    assert_eq!(confirmed["already"], false);
    assert_eq!(schema::result("tune-confirm", &json(&["confirm", "1"]))["already"], true);
    let status = schema::result("tune-status", &json(&["status"]));
    assert_eq!(status[0]["state"], "in-force", "{status}");
    let verified = schema::result("tune-verify", &json(&["verify"]));
    assert!(verified.as_array().unwrap().iter().all(|one| one["state"] == "holds"), "{verified}");
    let undone = schema::result("tune-undo", &json(&["undo"]));
    assert!(undone.as_array().unwrap().iter().all(|one| one["state"] == "restored"), "{undone}");
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn a_plan_that_was_printed_as_json_is_applied_as_well() {
    let Some(place) = Place::new() else { return };
    let printed = place.rxpath(&["tune", "plan", "--set", "veth/link/mtu=1400", "--json"]).ok();
    let path = place.dir.path().join("plan.json").display().to_string();
    std::fs::write(&path, printed).unwrap();
    place.rxpath(&["tune", "apply", &path]).ok();
    assert!(place.has("veth/link/mtu", "1400"));
    place.undo();
}

#[test]
fn from_another_namespace_nothing_is_compared_or_undone() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/link/mtu=1400"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    let changed = place.snapshot();
    let state = place.dir.path().join("state").display().to_string();
    let outside = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rxpath"));
        said(command.args(words).args(["--state-dir", &state]))
    };
    let status = outside(&["tune", "status"]).ok();
    assert!(status.contains("journal 1: of another network namespace"), "{status}");
    let verified = outside(&["tune", "verify"]);
    assert_eq!((verified.code, verified.out.as_str()), (Some(0), ""), "{verified:?}");
    assert!(verified.err.contains("journal 1 is not compared"), "{verified:?}");
    outside(&["tune", "undo"])
        .ends(5)
        .warns("the network namespace in which the changes were made");
    assert_eq!(place.snapshot(), changed);
    place.undo();
}
