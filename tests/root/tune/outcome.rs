//! What came of each step is told afterwards too: by `status` and `verify`, and where nothing came of any, nothing waits.

use rxpath_host::write::journal::Contents;

use super::place::Place;
use crate::bed::until;
use crate::schema;

/// A step that the kernel refuses: sysctls that are words are its to judge.
fn refused_step() -> String {
    let now = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let set = "net.ipv4.tcp_congestion_control";
    format!("[[step]]\nset = \"{set}\"\nold = \"{}\"\nnew = \"no-such-control\"\n", now.trim())
}

#[test]
fn each_steps_outcome_is_told_by_status_and_verify() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/queues/rx-3/rps_flow_cnt=33", "net.ipv4.udp_rmem_min=8192"]);
    let text = std::fs::read_to_string(&plan).unwrap();
    let at = text.rfind("[[step]]").unwrap();
    std::fs::write(&plan, format!("{}{}\n{}", &text[..at], refused_step(), &text[at..])).unwrap();
    assert_eq!(place.rxpath(&["tune", "apply", &plan]).code, Some(5));
    let told = [
        ("veth/queues/rx-3/rps_flow_cnt: 0 -> 64, rounded from 33", "as the kernel made it (64"),
        (": refused no-such-control: No such file", ": refused no-such-control: No such file"),
        ("udp_rmem_min: never reached: 8192 was not tried", "never reached: 8192 was not tried"),
    ];
    let status = place.rxpath(&["tune", "status"]).ok();
    let verify = place.rxpath(&["tune", "verify"]).ends(1);
    for (of_status, of_verify) in told {
        assert!(status.contains(of_status), "{of_status}: {status}");
        assert!(verify.out.contains(of_verify), "{of_verify}: {verify:?}");
    }
    let json = place.rxpath(&["tune", "status", "--json"]).ok();
    let settings = schema::result("tune-status", &json)[0]["settings"].clone();
    let outcomes: Vec<&str> =
        settings.as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["rounded", "refused", "never-reached"]);
    let json = place.rxpath(&["tune", "verify", "--json"]).out;
    let compared = schema::result("tune-verify", &json);
    assert_eq!(compared[2]["state"], "never-reached", "{compared}");
    place.undo();
    assert!(place.rxpath(&["tune", "status"]).ok().contains("nothing is changed"));
}

#[test]
fn where_nothing_came_of_any_step_nothing_waits_and_nothing_is_undone() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    let text = std::fs::read_to_string(&plan).unwrap();
    let at = text.find("[[step]]").unwrap();
    std::fs::write(&plan, format!("{}{}\n{}", &text[..at], refused_step(), &text[at..])).unwrap();
    let applied = place
        .rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"])
        .ends(5)
        .prints("there is nothing to undo");
    assert!(!applied.out.contains("unless confirmed") && !applied.err.contains("hint: undo"));
    until("the watchdog has ended", || {
        let contents = Contents::read(&place.store().path(1)).unwrap().unwrap();
        !contents.watch.unwrap().process.is_alive()
    });
    let status = place.rxpath(&["tune", "status"]).ok();
    assert!(status.contains("nothing is changed"), "{status}");
    let all = place.rxpath(&["tune", "status", "--all"]).ok();
    assert!(
        all.contains("journal 1: finished") && all.contains("refused no-such-control"),
        "{all}"
    );
    place.rxpath(&["tune", "confirm"]).ends(2).warns("nothing waits for a confirmation");
    assert!(place.rxpath(&["tune", "undo"]).ok().contains("nothing to undo"));
    assert_eq!(place.rxpath(&["tune", "verify", "1"]).code, Some(1));
    assert_eq!(place.snapshot(), place.before);
}

#[test]
fn ranges_that_are_the_kernels_own_are_what_the_kernel_takes() {
    let Some(place) = Place::new() else { return };
    let mut tried = 0;
    for (key, min, max) in rxpath_tune::limits::sysctl::kernel_ranges() {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        // Those of the namespace alone: others would change for the whole host.
        if !key.starts_with("net.ipv4.") || !std::path::Path::new(&path).exists() {
            continue;
        }
        let wrong = place.ns.run(move |_| taken(&path, [min - 1, max + 1]));
        assert_eq!(wrong.unwrap(), [0i64; 0], "{key}: the kernel takes what we refuse");
        tried += 1;
    }
    assert!(tried > 20, "only {tried} of them are here");
}

/// Which of these values a file takes; it has its old one afterwards.
fn taken(path: &str, values: [i64; 2]) -> Vec<i64> {
    let was = std::fs::read_to_string(path).unwrap();
    let refused = |value: &i64| {
        let written = std::fs::write(path, value.to_string());
        written.is_err_and(|e| e.kind() == std::io::ErrorKind::InvalidInput)
    };
    let taken = values.into_iter().filter(|value| !refused(value)).collect();
    std::fs::write(path, was.trim()).unwrap();
    taken
}
