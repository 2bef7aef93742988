//! At one tracepoint `rxpath export` has one program: each further one is another call for each event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use crate::bed::{Bed, until_within};
use crate::exporter::Running;

/// Number and tracepoint of each BPF link of a process.
/// **Source** kernel/bpf/syscall.c `bpf_link_show_fdinfo`, `bpf_raw_tp_link_show_fdinfo`.
fn links(pid: u32) -> BTreeSet<(String, String)> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let link = |text: &str| {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        Some((field("link_id:")?.trim().to_owned(), field("tp_name:")?.trim().to_owned()))
    };
    // A link may be closed meanwhile.
    files.flatten().filter_map(|file| link(&fs::read_to_string(file.path()).ok()?)).collect()
}

#[test]
fn each_tracepoint_has_one_program_and_where_a_poll_ends_latency_has_another() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let running = Running::quick();
    let mut found = BTreeSet::new();
    let turn = "a turn in which all programs are in their places";
    until_within(Duration::from_secs(60), turn, || {
        // Two equal readings have no link of another turn.
        found = links(running.child.id());
        let has = |name: &str| found.iter().any(|(_, tracepoint)| tracepoint == name);
        has("netif_receive_skb") && has("softirq_exit") && found == links(running.child.id())
    });
    let mut programs: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, tracepoint) in &found {
        *programs.entry(tracepoint).or_default() += 1;
    }
    // Where packets are lost meanwhile, a deep look has programs for each read, too.
    programs.retain(|tracepoint, count| *count > 1 && *tracepoint != "sock_recv_length");
    assert_eq!(programs, BTreeMap::from([("napi_poll", 2)]), "{found:?}");
}
