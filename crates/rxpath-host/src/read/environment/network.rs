//! The network's settings: sysctls of the receive path and each device.

use rxpath_core::Fact;

use super::{Facts, names};
use crate::error::fact;
use crate::read::procfs::sysctl;
use crate::read::sysfs::device;

pub(super) fn collect(facts: &mut Facts<'_>) {
    for name in names("[core]").chain(names("[sysctls]")) {
        facts.result(format!("sysctl.{name}"), sysctl::read(facts.root, name));
    }
    for (path, value) in sysctl::walk(facts.root, "net/core").unwrap_or_default() {
        facts.put(format!("sysctl.{}", path.replace('/', ".")), value);
    }
    match device::names(facts.root) {
        Ok(names) => {
            for name in names {
                facts.result(format!("device.{name}"), device::read(facts.root, &name));
            }
        }
        Err(error) => facts.put("device", error.into_gap::<()>()),
    }
    facts.put("net.packet_taps", taps(facts));
}

/// Sockets that see every packet (`AF_PACKET`): each costs a filter run or a clone for each packet.
fn taps(facts: &Facts<'_>) -> Fact<usize> {
    fact(facts.root.text("/proc/net/packet"))
        .map(|text| text.lines().skip(1).filter(|line| !line.trim().is_empty()).count())
}
