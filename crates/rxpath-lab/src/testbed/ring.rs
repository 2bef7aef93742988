//! How full is the ring between the two ends of a veth with NAPI?
//!
//! The kernel counts what the sender's IP hands down, what the device refuses because the ring is full, and what NAPI
//! takes out, but not what lies in between: the difference is the occupancy. It is exact to what passes between the
//! three readings, some microseconds apart (a sample whose readings are more than 1 ms apart is left out), and to the poll in progress, which counts its packets at its end
//! (`veth_xdp_rcv`, drivers/net/veth.c, 6.18: 64 at most).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rxpath_host::netlink::Netlink;
use rxpath_host::read::procfs::snmp;

use super::tuned::DEVICE;

/// `VETH_RING_SIZE` (drivers/net/veth.c, 6.18): what fits at most.
pub const CAPACITY_PACKETS: u64 = 256;
/// Of these, entries that NAPI emptied and did not give back yet: it gives them back sixteen at a time
/// (`__ptr_ring_discard_one`, include/linux/ptr_ring.h, 6.18, with cache lines of 64 bytes). A full ring thus holds 241 to
/// 256 packets, by how many it took before.
pub const HELD_BACK_MOST_PACKETS: u64 = 15;
/// The three readings take some 20 us; this thread may lose its CPU between them.
const SPREAD_MOST: Duration = Duration::from_millis(1);
/// The file is a dozen lines.
const SNMP_BYTES: usize = 8192;

/// Reads what passes; sockets and file belong to the namespaces in which they were opened.
#[derive(Debug)]
pub struct Ring {
    tx_snmp: File,
    tx_link: Netlink,
    rx_link: Netlink,
    /// The counters while the ring was empty: packets from before they were looked at.
    base: Passed,
}

/// Packets that passed the ring's ends so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Handed to the sending device by its IP.
    pub handed: u64,
    /// Of these, dropped because the ring was full.
    pub refused: u64,
    /// Taken out by NAPI.
    pub polled: u64,
}

impl Passed {
    /// What is in the ring.
    pub fn inside(&self) -> u64 {
        // A packet that leaves between the readings makes the difference smaller by one, never a queue.
        self.handed.saturating_sub(self.refused + self.polled)
    }

    fn since(&self, base: &Self) -> Self {
        Self {
            handed: self.handed.wrapping_sub(base.handed),
            refused: self.refused.wrapping_sub(base.refused),
            polled: self.polled.wrapping_sub(base.polled),
        }
    }
}

impl Ring {
    /// A reader of an empty ring: nothing may be in flight.
    pub fn at_rest(tx_snmp: File, tx_link: Netlink, rx_link: Netlink) -> Option<Self> {
        let mut ring = Self { tx_snmp, tx_link, rx_link, base: Passed::default() };
        ring.base = ring.counters()?;
        Some(ring)
    }

    /// What has passed since it was quiescent; `None` when a counter could not be read, or too much time passed between
    /// the readings.
    pub fn passed(&mut self) -> Option<Passed> {
        let begun = Instant::now();
        let now = self.counters()?;
        (begun.elapsed() <= SPREAD_MOST).then(|| now.since(&self.base))
    }

    fn counters(&mut self) -> Option<Passed> {
        let stat = |link: &mut Netlink, name| link.link(DEVICE).ok()?.stat(name);
        // What left is read first: a packet in flight counts as in the ring, not as taken out.
        let polled = stat(&mut self.rx_link, "rx.packets")?;
        let refused = stat(&mut self.tx_link, "tx.dropped")?;
        Some(Passed { handed: handed_down(&self.tx_snmp)?, refused, polled })
    }
}

/// Packets that IP handed to devices: datagrams, each fragmented one as its fragments.
fn handed_down(snmp: &File) -> Option<u64> {
    let mut text = [0u8; SNMP_BYTES];
    let length = snmp.read_at(&mut text, 0).ok()?;
    let entries = snmp::parse(str::from_utf8(&text[..length]).ok()?).ok()?;
    let of = |name| entries.iter().find(|e| e.group == "Ip" && e.name == name).map(|e| e.value);
    u64::try_from(of("OutRequests")? + of("FragCreates")? - of("FragOKs")?).ok()
}
