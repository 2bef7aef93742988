//! Receive flow steering: packets go to the CPU of their reader if both tables are set.

use crate::prelude::*;

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "rfs-flow-entries",
    what: "Are both RFS tables set, or neither?",
    applies: "hosts on which net.core.rps_sock_flow_entries or a queue's rps_flow_cnt is not 0",
    weight: Weight::always(Warn).sized(Latency, Percents),
    size: Tens,
    effect: "one table alone has no effect; both bring packets to the CPU that reads them",
    check: Check::Host(halves),
    why: "RFS needs a global table of flows and a table for each queue. With only one table no packet is steered: \
          the host looks tuned but is not.",
    mechanism: "get_rps_cpu (net/core/dev.c) uses the queue's rps_flow_table and the global rps_sock_flow_table. \
                Without both it uses the RPS mask; without a mask the packet stays on its CPU.",
    not_when: "leave both at 0 when every queue's interrupt already goes to the CPU of its reader, \
               or when one reader serves all flows",
    side_effects: "an inter-processor interrupt and a remote enqueue for each moved batch of packets",
    set_now: "sysctl -w net.core.rps_sock_flow_entries=32768; \
              echo 4096 > /sys/class/net/DEV/queues/rx-N/rps_flow_cnt (the counts of all queues sum to the entries)",
    persist: "/etc/sysctl.d/ for the entries, a udev rule for the queues",
    undo: "restore both previous values; 0 in both is off",
    verify: "cat /proc/sys/net/core/rps_sock_flow_entries /sys/class/net/DEV/queues/rx-*/rps_flow_cnt; \
             column 10 of /proc/net/softnet_stat rises on the CPUs of the readers",
    since: "2.6.35",
    sources: &[
        "kernel: Documentation/networking/scaling.rst, section RFS",
        "kernel: net/core/dev.c get_rps_cpu, set_rps_cpu",
    ],
    ..Rule::judge(Area::Queues)
}];

fn halves(ask: &Ask<'_>) -> Checked {
    let entries = ask.facts.sysctl_number("net.core.rps_sock_flow_entries").known()?;
    let queues: Vec<(String, u64)> = ask
        .facts
        .devices
        .iter()
        .flat_map(|device| {
            let count = |queue: &rxpath_host::sysfs::device::RxQueue| {
                let path = device.path(&format!("queues/rx-{}/rps_flow_cnt", queue.index));
                Some((path, *queue.rps_flow_count.value()?))
            };
            device.sysfs.rx_queues.iter().filter_map(count)
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    let sum: u64 = queues.iter().map(|(_, count)| count).sum();
    match (entries, queues.first()) {
        (0, None) => Answer::silent("RFS is off"),
        (0, Some((path, _))) => Answer::found(
            format!(
                "{} queues have a flow table ({path}, ...), net.core.rps_sock_flow_entries is 0",
                queues.len()
            ),
            format!("net.core.rps_sock_flow_entries of {sum} (the sum of the queues), or 0 in all"),
            "without the global table no packet is steered",
        )
        .change(Set::new(Knob::sysctl("net.core.rps_sock_flow_entries"), sum.next_power_of_two())),
        (entries, None) => Answer::found(
            format!("net.core.rps_sock_flow_entries is {entries}, no queue has rps_flow_cnt"),
            "rps_flow_cnt on the queues of the device that receives, or no entries",
            "without the table of the queue no packet is steered",
        )
        .advice(
            "share the entries among the receive queues of the device that carries the traffic",
        ),
        (entries, Some(_)) => {
            Answer::fine(format!("{entries} entries, {} queues with {sum} in all", queues.len()))
        }
    }
}
