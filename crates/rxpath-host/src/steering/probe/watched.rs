//! Probes into an application's sockets, seen by counters: nothing of the application is touched but its queues.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::Fact;

use super::{Ask, Probed, ends};
use crate::netlink::Netlink;
use crate::procfs::softnet;
use crate::{HostError, Root};

/// So many that other traffic of a quiet host does not look like them.
const TIMES: u32 = 64;
/// After so many the sockets are looked at again, before the application has read them all.
const BURST: u32 = 8;

/// Packets of each CPU's softirq.
type Softnet = BTreeMap<u32, u32>;

pub(super) fn probe(ask: &Ask<'_>) -> Result<Probed, HostError> {
    let mut diag = Netlink::sock_diag()?;
    let before = Sockets::read(&mut diag, ask)?;
    let cpus = softnet()?;
    let mut moved = Moved::default();
    for _ in 0..TIMES / BURST {
        for _ in 0..BURST {
            ends::send(&ask.sender, ask.flow)?;
        }
        moved.add(&before, &Sockets::read(&mut diag, ask)?);
    }
    let rps_cpu = if ask.rps { most(&cpus, &softnet()?) } else { Fact::absent("not asked for") };
    let inode = moved.only();
    let index = match (&inode, ask.group) {
        (Ok(inode), Some(group)) => {
            let place = group.inodes.iter().position(|one| one == inode);
            place.map_or_else(
                || Fact::absent(format!("the socket {inode} got them, which is in no group")),
                |place| Fact::ok(place as u32),
            )
        }
        (Ok(inode), None) => Fact::absent(format!(
            "the socket {inode} got them; its place in the group takes CAP_BPF and CAP_PERFMON to read"
        )),
        (Err(why), _) => Fact::absent(why.clone()),
    };
    Ok(Probed {
        sent_packets: TIMES,
        into_application: true,
        rps_cpu,
        reuseport_socket: index,
        sockets_count: ask.group.map(|group| group.sockets_count),
        inode: inode.ok(),
    })
}

/// Queued bytes and drops of each socket of the port, by inode.
struct Sockets(BTreeMap<u64, (u32, u32)>);

impl Sockets {
    fn read(diag: &mut Netlink, ask: &Ask<'_>) -> Result<Self, HostError> {
        let sockets = diag.udp_sockets(Some(ask.flow.destination.port()))?;
        let memory = |one: &crate::netlink::UdpSocket| {
            one.memory.map(|memory| (u64::from(one.inode), (memory.rmem, memory.drops)))
        };
        Ok(Self(sockets.iter().filter_map(memory).collect()))
    }
}

/// Which sockets got something.
#[derive(Default)]
struct Moved(BTreeSet<u64>);

impl Moved {
    fn add(&mut self, before: &Sockets, now: &Sockets) {
        for (inode, (queued, drops)) in &now.0 {
            let (was, dropped) = before.0.get(inode).copied().unwrap_or_default();
            if *queued > was || *drops != dropped {
                self.0.insert(*inode);
            }
        }
    }

    fn only(&self) -> Result<u64, String> {
        let all: Vec<u64> = self.0.iter().copied().collect();
        match all.as_slice() {
            [only] => Ok(*only),
            [] => Err(
                "no queue of a socket grew: the application read the probes before they were seen"
                    .into(),
            ),
            several => Err(format!(
                "the queues of several sockets grew ({several:?}): other traffic hides the probes"
            )),
        }
    }
}

fn softnet() -> Result<Softnet, HostError> {
    Ok(softnet::read(&Root::host())?.into_iter().map(|(cpu, line)| (cpu, line.processed)).collect())
}

/// The CPU that processed all of them.
fn most(before: &Softnet, after: &Softnet) -> Fact<u32> {
    let moved = |cpu: &u32, now: u32| now.wrapping_sub(before.get(cpu).copied().unwrap_or(0));
    let enough: Vec<u32> =
        after.iter().filter(|(cpu, now)| moved(cpu, **now) >= TIMES).map(|(cpu, _)| *cpu).collect();
    match enough.as_slice() {
        [only] => Fact::ok(*only),
        [] => Fact::absent("no CPU processed all probes"),
        _ => Fact::absent("other traffic of the host hides which CPU processed the probes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_socket_and_one_cpu_must_stand_out() {
        let sockets = |all: &[(u64, u32, u32)]| {
            Sockets(all.iter().map(|(inode, queued, drops)| (*inode, (*queued, *drops))).collect())
        };
        let mut moved = Moved::default();
        moved.add(&sockets(&[(1, 0, 0), (2, 5, 0)]), &sockets(&[(1, 0, 0), (2, 5, 3)]));
        assert_eq!(moved.only(), Ok(2), "drops count too");
        moved.add(&sockets(&[(1, 0, 0)]), &sockets(&[(1, 9, 0)]));
        assert!(moved.only().unwrap_err().contains("several"));
        assert!(Moved::default().only().unwrap_err().contains("before they were seen"));

        let cpus = |all: &[(u32, u32)]| all.iter().copied().collect::<Softnet>();
        assert_eq!(most(&cpus(&[(0, 10), (1, u32::MAX)]), &cpus(&[(0, 15), (1, 63)])), Fact::ok(1));
        assert!(most(&cpus(&[(0, 0), (1, 0)]), &cpus(&[(0, 80), (1, 90)])).value().is_none());
        assert!(most(&cpus(&[(0, 0)]), &cpus(&[(0, 9)])).value().is_none());
    }
}
