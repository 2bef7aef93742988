//! Rules about sockets, readers and control groups look at the named processes alone; those about settings at everybody's.

use rxpath_host::Root;
use rxpath_tune::{Ask, HostFacts, Report, Scope, check};

use crate::fixture::{Bench, Overlay, dir};

/// Two programs with a UDP socket each, in two groups of which one has a limit.
fn host() -> Overlay {
    let mut host = Overlay::default();
    let head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
    let mut table = head.to_owned();
    for (pid, inode, port, quota) in [(100, 501, "10E1", "max"), (200, 502, "10E2", "50000")] {
        table += &format!(
            "  1: 00000000:{port} 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 {inode} 2 0 0\n"
        );
        let group = format!("/app{pid}");
        for (path, text) in [
            (format!("proc/{pid}/comm"), format!("app{pid}\n")),
            (format!("proc/{pid}/cgroup"), format!("0::{group}\n")),
            (format!("sys/fs/cgroup{group}/cpu.max"), format!("{quota} 100000\n")),
            (format!("sys/fs/cgroup{group}/cpu.stat"), "nr_periods 9\nnr_throttled 0\n".into()),
        ] {
            host.files.insert(path, text);
        }
        host.links.insert(format!("proc/{pid}/fd/3"), format!("socket:[{inode}]"));
    }
    host.files.insert("proc/net/udp".into(), table);
    host.files.insert("proc/self/cgroup".into(), "0::/app200\n".into());
    host
}

fn report(root: &Root, scope: &Scope) -> Report {
    check(&Ask { facts: &HostFacts::collect(root, scope), goal: None })
}

/// Everything that the rule said.
fn said(report: &Report, id: &str) -> String {
    let notes = [&report.records, &report.fine, &report.silent].into_iter().flatten();
    let notes = notes.filter(|note| note.id == id).map(|note| note.text.clone());
    let found = report.findings.iter().filter(|it| it.id == id).map(|it| it.observed.clone());
    notes.chain(found).collect()
}

#[test]
fn sockets_and_groups_are_those_of_the_named_processes() {
    Bench::new().at(&host(), |root| {
        let all = report(root, &Scope::default());
        let of = |pids: &[i32]| {
            let processes = Some(pids.iter().copied().collect());
            report(root, &Scope { processes, ..Scope::default() })
        };
        let (first, second, none) = (of(&[100]), of(&[200]), of(&[300]));
        let ports = |report: &Report| said(report, "reuseport-incoming-cpu");
        assert_eq!(ports(&all), "0 of 2 ports");
        assert_eq!(
            [&first, &second, &none].map(ports),
            ["0 of 1 ports", "0 of 1 ports", "0 of 0 ports"]
        );
        let quota = |report: &Report| said(report, "cgroup-throttle");
        assert!(quota(&all).contains("/app200 50000"), "{}", quota(&all));
        assert_eq!(quota(&first), "no limit on the groups of the processes asked about (1)");
        assert!(quota(&second).contains("/app200 50000"), "{}", quota(&second));
        // Settings and counters are those of the namespace, whoever is named.
        assert_eq!(said(&all, "tcp-rmem"), said(&first, "tcp-rmem"));
    });
}

#[test]
fn files_of_settings_do_not_speak_of_a_namespace_that_was_entered() {
    let mut host = Overlay::default();
    host.files.insert("etc/sysctl.d/x.conf".into(), "net.ipv4.tcp_sack = 0\n".into());
    Bench::new().at(&host, |root| {
        let differs = |is_entered| {
            let report = report(root, &Scope { is_entered, ..Scope::default() });
            report.findings.iter().any(|it| it.id == "persistent-vs-live")
        };
        assert!(differs(false) && !differs(true));
    });
}

#[test]
fn counts_of_a_later_namespace_are_not_since_boot() {
    let bench = Bench::new();
    let mut host = Overlay::default();
    let snmp = std::fs::read_to_string(dir().join("base/proc/net/snmp")).unwrap();
    let udp = snmp.lines().filter(|line| line.starts_with("Udp: ")).collect::<Vec<_>>();
    let at = udp[0].split(' ').position(|name| name == "RcvbufErrors").unwrap();
    let mut counts: Vec<&str> = udp[1].split(' ').collect();
    counts[at] = "4000";
    host.files.insert("proc/net/snmp".into(), snmp.replace(udp[1], &counts.join(" ")));
    let mut since = |own: &str, pids: &str| {
        host.links.insert("proc/thread-self/ns/net".into(), own.into());
        host.links.insert("proc/1/ns/net".into(), "net:[1]".into());
        host.links.insert("proc/self/ns/pid".into(), pids.into());
        bench.at(&host, |root| said(&report(root, &Scope::default()), "socket-rcvbuf-actual"))
    };
    let first_pids = "pid:[4026531836]";
    let first = since("net:[1]", first_pids);
    assert!(first.contains("since boot"), "{first}");
    // The init of a container is not the machine's.
    for later in [since("net:[2]", first_pids), since("net:[1]", "pid:[7]")] {
        assert!(later.contains("since this network namespace was made"), "{later}");
    }
}
