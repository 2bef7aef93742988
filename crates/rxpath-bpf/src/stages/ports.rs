//! Packets that sockets got, by protocol and local port.

use rxpath_host::Root;

use crate::bytes::Fields;
use crate::object::{MapSpec, map};
use crate::room::Room;

/// `ports` of the program.
pub(super) const MAP: MapSpec = map("ports", 8, 8);

/// Each CPU may set 128 rows aside for itself (kernel/bpf/bpf_lru_list.c, `LOCAL_FREE_TARGET`).
pub(super) const ROWS: Room = Room { each_cpu: 512, most: 32_768 };

/// Where the kernel says which local ports it chooses.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Packets of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPackets {
    /// The protocol's number.
    pub protocol: u32,
    /// Local port; 0 for all that the kernel chose for connections of this host.
    pub port: u16,
    /// Packets; aggregates of GRO count as one where the socket takes them whole.
    pub packets: u64,
}

/// `struct port_key` and its packets.
pub(super) fn row(key: &[u8], value: &[u8]) -> PortPackets {
    let mut k = Fields::of(key);
    let (protocol, port) = (k.u32(), k.u32());
    PortPackets { protocol, port: port as u16, packets: Fields::of(value).u64() }
}

/// `chosen_from` and `chosen_to` of the program, in one word; from 1 to 0, which is no port, where they are not known.
pub(super) fn chosen(root: &Root) -> u32 {
    let range = root.value(RANGE).ok().and_then(|text| range(&text));
    let (from, to) = range.unwrap_or((1, 0));
    let (from, to) = (from.to_ne_bytes(), to.to_ne_bytes());
    u32::from_ne_bytes([from[0], from[1], to[0], to[1]])
}

fn range(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace().map(|word| word.parse::<u16>().ok());
    Some((words.next()??, words.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_by_place() {
        let key: Vec<u8> = [17u32, 4800].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let read = row(&key, &9u64.to_ne_bytes());
        assert_eq!(read, PortPackets { protocol: 17, port: 4800, packets: 9 });
    }

    #[test]
    fn the_range_is_two_numbers_in_one_word() {
        assert_eq!(range("32768\t60999\n"), Some((32768, 60999)));
        for wrong in ["", "1", "a b", "1 70000"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
        let word = chosen(&Root::host()).to_ne_bytes();
        let to = u16::from_ne_bytes([word[2], word[3]]);
        assert!(to > 1024 || to == 0, "{word:?}");
    }
}
