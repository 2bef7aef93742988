//! Receive flow steering: packets go to the CPU of their reader if both tables are set.

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("rfs-flow-entries", Check::Host(halves))];

fn halves(ask: &Ask<'_>) -> Checked {
    let entries = ask.facts.sysctl_number("net.core.rps_sock_flow_entries").known()?;
    let queues: Vec<(String, u64)> = ask
        .facts
        .devices
        .iter()
        .flat_map(|device| {
            device.sysfs.steering.rx_queues.iter().filter_map(|queue| {
                let path = device.path(&format!("queues/rx-{}/rps_flow_cnt", queue.index));
                Some((path, *queue.rps_flow_count.value()?))
            })
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
