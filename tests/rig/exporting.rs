//! `rxpath export` on the kernels of Debian's releases: it keeps no capability, its programs are attached again without one,
//! and no counter falls while a CPU goes and comes.

use std::collections::BTreeMap;

use crate::counters::{counters, raise};
use crate::{Machine, run};

/// Prints a page after each step, and the capabilities of the exporter behind the first. With the default budget the
/// probes of so slow a machine pause for up to half a minute.
const SCRIPT: &str = "
page=/tmp/page.prom
online=/sys/devices/system/cpu/cpu1/online
rxpath export --budget 90% --interval 2s --check-every 0s --textfile $page 2>/tmp/err &
pid=$!
windows() { sed -n 's/^rxpath_window_seconds_total //p' $page 2>/dev/null; }
next() {
	was=$(windows)
	until [ -s $page ] && [ \"$(windows)\" != \"$was\" ]; do
		kill -0 $pid || { cat /tmp/err; exit 1; }
		usleep 100000
	done
	cat $page
	echo @@
}
next
grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/$pid/status
echo @@
for now in 0 1; do
	echo $now >$online
	for _ in 1 2 3; do next; done
done
kill -TERM $pid
wait $pid
[ $? = 143 ] || { cat /tmp/err; exit 1; }";

#[test]
fn an_exporter_without_capabilities_counts_on_while_a_cpu_goes_and_comes() {
    for kernel in ["6.12", "6.1"] {
        let modules = "udp_diag tcp_diag";
        let machine = Machine { kernel, nics: "e1000", modules, ..Machine::default() };
        let Some(out) = run(machine, &["sh", "-c", SCRIPT]) else { return };
        let mut parts: Vec<&str> = out.split("@@").filter(|text| !text.trim().is_empty()).collect();
        assert_eq!(parts.len(), 8, "{kernel}: {out}");
        let rights = parts.remove(1);
        let none = rights.lines().filter(|line| line.trim_end().ends_with("\t0000000000000000"));
        assert_eq!(none.count(), 4, "{kernel}: {rights}");
        let pages: Vec<_> = parts.iter().map(|page| counters(page)).collect();
        let mut highest = BTreeMap::new();
        for page in &pages {
            raise(&mut highest, page, kernel);
        }
        let up = parts.iter().filter(|page| page.contains("\nrxpath_probe_up 1"));
        assert_eq!(up.count(), parts.len(), "{kernel}: {out}");
        let windows = |page: &BTreeMap<String, f64>| page["rxpath_window_seconds_total"];
        let (first, last) = (&pages[0], &pages[pages.len() - 1]);
        assert!(windows(last) - windows(first) >= 5.0, "{kernel}: {out}");
        let gone = |page: &BTreeMap<String, f64>| {
            page.get("rxpath_windows_discarded_total{why=\"cpu\"}").copied().unwrap_or(0.0)
        };
        assert!(gone(first) < 0.5 && gone(last) > 0.5, "{kernel}: no CPU was missing: {out}");
        let taken = |page: &BTreeMap<String, f64>| {
            let rows =
                page.iter().filter(|(series, _)| series.contains("_cpu_stolen_seconds_total"));
            rows.map(|(_, seconds)| *seconds).sum::<f64>()
        };
        assert!(taken(last) > taken(first), "{kernel}: nothing was counted later: {out}");
    }
}

#[test]
fn without_a_list_of_udp_sockets_an_exporter_and_a_diagnosis_go_on() {
    let script = "
        rxpath export --once --no-bpf --interval 200ms --check-every 0s || exit 1
        rxpath watch --once --no-bpf --interval 200ms >/dev/null || exit 1
        rxpath diagnose -d 1s --no-bpf 2>&1";
    let machine =
        Machine { kernel: "6.12", nics: "e1000", modules: "tcp_diag", ..Machine::default() };
    let Some(out) = run(machine, &["sh", "-c", script]) else { return };
    assert!(out.contains("\nrxpath_not_read{what=\"UDP sockets\"} 1\n"), "{out}");
    assert!(out.contains("UDP sockets was not read"), "{out}");
}
