//! Network functions that run in softirqs of other kinds. The tracepoints of timers, tasklets and work queues pass
//! their addresses.

use std::collections::BTreeMap;
use std::io::BufRead;

use rxpath_core::Warning;
use rxpath_host::Root;

use crate::names::each_function;

/// As many as the program knows (`FUNCTIONS` of bpf/account.bpf.c).
const MOST: usize = 8;

/// TCP's pacing and its compressed acknowledgements (HRTIMER), its small queues (TASKLET: work of the BH queue, a
/// tasklet before 6.10).
///
/// **Source** net/ipv4/tcp_output.c `tcp_pace_kick`, `tcp_tsq_workfn`, `tcp_tasklet_func`; tcp_input.c
/// `tcp_compressed_ack_kick`. A queueing discipline's watchdog runs in the hard interrupt and raises NET_TX
/// (net/sched/sch_api.c `qdisc_watchdog`).
const NAMES: [&str; 4] =
    ["tcp_pace_kick", "tcp_compressed_ack_kick", "tcp_tsq_workfn", "tcp_tasklet_func"];

/// What is known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Functions(BTreeMap<&'static str, u64>);

impl Functions {
    /// For the program; 0 where there is none.
    pub(super) fn addresses(&self) -> [u64; MOST] {
        let mut known = self.0.values().copied();
        std::array::from_fn(|_| known.next().unwrap_or_default())
    }

    /// A warning where none of the addresses is known.
    pub(super) fn not_separable(&self) -> Option<Warning> {
        self.0.is_empty().then(|| {
            let text = "TCP pacing timers and TCP small queues are counted with other softirqs";
            Warning::new("tcp-softirqs-not-separable", text)
                .because("/proc/kallsyms shows no address of tcp_pace_kick or tcp_tsq_workfn")
                .cure("run with CAP_SYSLOG, or see kernel.kptr_restrict")
        })
    }
}

/// Where they are on this kernel. **Source** `/proc/kallsyms`; without CAP_SYSLOG its addresses are 0. **Cost** reads
/// it through once, some 10 ms.
pub(super) fn of_network(root: &Root) -> Functions {
    root.open("/proc/kallsyms")
        .map(|table| found(std::io::BufReader::with_capacity(64 * 1024, table)))
        .unwrap_or_default()
}

fn found(table: impl BufRead) -> Functions {
    let mut known = BTreeMap::new();
    // What was read before an error stays.
    let _ = each_function(table, |start, name| {
        if let Some(name) = NAMES.iter().find(|known| **known == name) {
            known.insert(*name, start);
        }
    });
    Functions(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_found_by_their_whole_names() {
        let table = "ffffffff8202c180 t __pfx_tcp_tsq_workfn\nffffffff8202c190 t tcp_tsq_workfn\n\
                     ffffffff8202c2c0 T tcp_pace_kick\nffffffffc0000000 t tcp_pace_kick2\t[mod]\n";
        let functions = found(table.as_bytes());
        assert_eq!(functions.not_separable(), None);
        assert_eq!(functions.addresses()[..3], [0xffff_ffff_8202_c2c0, 0xffff_ffff_8202_c190, 0]);
        let hidden = found(&b"0000000000000000 T tcp_pace_kick\n"[..]);
        assert_eq!(hidden.addresses(), [0; MOST]);
        assert!(hidden.not_separable().is_some());
    }
}
