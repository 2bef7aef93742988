//! Neighbours: what their hardware address is, and the tables that hold all of them.

use std::net::IpAddr;

use libc::{NDA_DST, NDA_LLADDR, RTM_GETNEIGH, RTM_GETNEIGHTBL};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::addr::{family, octets};
use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body, word32, word64};

/// `struct ndmsg`.
const NDMSG: usize = 12;
/// `struct ndtmsg`.
const NDTMSG: usize = 4;
const NDTA_NAME: u16 = 1;
const NDTA_THRESH1: u16 = 2;
const NDTA_THRESH3: u16 = 4;
const NDTA_CONFIG: u16 = 5;
const NDTA_STATS: u16 = 7;
/// Word of `struct ndt_config` that counts entries, behind two 16-bit lengths.
const ENTRIES_WORD: usize = 1;
/// Words of `struct ndt_stats`, of 64 bits.
const FORCED_GC_WORD: usize = 9;
const TABLE_FULLS_WORD: usize = 10;
/// States in which the address may be used: REACHABLE, STALE, DELAY, PROBE, NOARP, PERMANENT (`NUD_VALID`).
const NUD_VALID: u16 = 0xde;

/// A table of neighbours. It is one for all network namespaces.
///
/// **Source** net/core/neighbour.c `neightbl_fill_info`; include/uapi/linux/neighbour.h.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NeighbourTable {
    /// `arp_cache`, `ndisc_cache`.
    pub name: String,
    /// Entries now, permanent ones too.
    pub entries_count: u32,
    /// Below so many entries none is collected (`gc_thresh1`).
    pub least_entries: u32,
    /// No more entries than that, permanent ones left out (`gc_thresh3`).
    pub most_entries: u32,
    /// Times that entries were collected because there were too many.
    pub forced_gc_total: u64,
    /// Times that a new neighbour found the table full. `None` before 4.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_fulls_total: Option<u64>,
}

/// Reads a table; `None` for what one device sets for itself, which comes in the same list.
pub fn parse_neighbour_table(payload: &[u8]) -> Result<Option<NeighbourTable>, HostError> {
    let attrs = Attrs::after(payload, NDTMSG)?;
    let Some(config) = attrs.get(NDTA_CONFIG) else { return Ok(None) };
    let stats = attrs.get(NDTA_STATS).unwrap_or_default();
    let name = attrs.text(NDTA_NAME).ok_or_else(|| {
        HostError::malformed("netlink", 0, "a table of neighbours without a name")
    })?;
    Ok(Some(NeighbourTable {
        name,
        entries_count: word32(config, ENTRIES_WORD).unwrap_or_default(),
        least_entries: attrs.u32(NDTA_THRESH1).unwrap_or_default(),
        most_entries: attrs.u32(NDTA_THRESH3).unwrap_or_default(),
        forced_gc_total: word64(stats, FORCED_GC_WORD).unwrap_or_default(),
        table_fulls_total: word64(stats, TABLE_FULLS_WORD),
    }))
}

/// A `struct ndmsg`.
pub(crate) fn header(device: u32, ip: IpAddr, state: u16, flags: u8) -> Vec<u8> {
    let mut header = vec![family(ip), 0, 0, 0];
    header.extend(device.to_ne_bytes());
    header.extend(state.to_ne_bytes());
    header.extend([flags, 0]);
    header
}

/// The hardware address in one `RTM_NEWNEIGH` payload, when it may be used.
pub fn parse_neighbour(payload: &[u8]) -> Result<Option<[u8; 6]>, HostError> {
    let attrs = Attrs::after(payload, NDMSG)?;
    let state = payload.get(8..10).and_then(|state| state.try_into().ok());
    let is_valid = state.is_some_and(|state| u16::from_ne_bytes(state) & NUD_VALID != 0);
    Ok(attrs.get(NDA_LLADDR).filter(|_| is_valid).and_then(|mac| mac.try_into().ok()))
}

impl Netlink {
    /// The tables of neighbours. On a [`Netlink::route`] socket.
    pub fn neighbour_tables(&mut self) -> Result<Vec<NeighbourTable>, HostError> {
        let replies = self.dump("list tables of neighbours", RTM_GETNEIGHTBL, &[0; NDTMSG])?;
        replies.iter().filter_map(|reply| parse_neighbour_table(reply).transpose()).collect()
    }

    /// The hardware address of a neighbour by the index of its device; `None` while it is not known.
    ///
    /// **Source** net/core/neighbour.c `neigh_get` (5.0).
    pub fn neighbour(&mut self, device: u32, ip: IpAddr) -> Result<Option<[u8; 6]>, HostError> {
        let body = Body::new(&header(device, ip, 0, 0)).raw(NDA_DST, &octets(ip));
        let op = format!("look up the neighbour {ip}");
        match self.get(&op, RTM_GETNEIGH, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => Ok(None),
            replies => replies?.first().map_or(Ok(None), |reply| parse_neighbour(reply)),
        }
    }
}

#[cfg(test)]
mod tests {
    use libc::NUD_PERMANENT;

    use super::*;

    #[test]
    fn a_table_is_read_and_what_a_device_sets_is_not_one() {
        let config: Vec<u8> = [20u32, 300].into_iter().flat_map(u32::to_ne_bytes).collect();
        let stats: Vec<u8> = (0..11u64).flat_map(u64::to_ne_bytes).collect();
        let body = Body::new(&[2, 0, 0, 0])
            .text(NDTA_NAME, "arp_cache")
            .u32(NDTA_THRESH1, 128)
            .u32(NDTA_THRESH3, 1024);
        assert_eq!(parse_neighbour_table(body.bytes()).unwrap(), None);
        let old = body.clone().raw(NDTA_CONFIG, &config).raw(NDTA_STATS, &stats[..80]);
        let found = parse_neighbour_table(old.bytes()).unwrap().unwrap();
        assert_eq!((found.entries_count, found.table_fulls_total), (300, None));
        let now = body.raw(NDTA_CONFIG, &config).raw(NDTA_STATS, &stats);
        let found = parse_neighbour_table(now.bytes()).unwrap().unwrap();
        assert_eq!((found.least_entries, found.most_entries), (128, 1024));
        assert_eq!((found.forced_gc_total, found.table_fulls_total), (9, Some(10)));
    }

    #[test]
    fn only_a_usable_address_is_one() {
        let ip = IpAddr::from([192, 0, 2, 1]);
        let of = |state| {
            let body = Body::new(&header(3, ip, state, 0)).raw(NDA_LLADDR, &[2, 0, 0, 0, 0, 9]);
            parse_neighbour(body.bytes()).unwrap()
        };
        assert_eq!(of(NUD_PERMANENT), Some([2, 0, 0, 0, 0, 9]));
        // NUD_INCOMPLETE, NUD_FAILED.
        assert_eq!((of(1), of(0x20)), (None, None));
        assert_eq!(Netlink::route().unwrap().neighbour(1, ip).unwrap(), None);
    }

    #[test]
    fn the_kernel_has_a_table_for_arp() {
        let tables = Netlink::route().unwrap().neighbour_tables().unwrap();
        let arp = tables.iter().find(|table| table.name == "arp_cache").expect("a table for ARP");
        assert!(arp.most_entries >= arp.least_entries);
    }
}
