//! Names for numbers: kernel addresses, drop reasons, sockets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rxpath_host::HostError;
use rxpath_host::procfs::{socket_owner, task};
use rxpath_host::root::Root;

/// Kernel functions by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    by_address: BTreeMap<u64, String>,
}

impl Symbols {
    /// Reads `/proc/kallsyms`. Without CAP_SYSLOG all addresses there are 0 and names stay numbers.
    pub fn read(root: &Root) -> Result<Self, HostError> {
        Ok(Self::parse(&root.text("/proc/kallsyms")?))
    }

    /// Reads the file's text: address, type, name, and the module in brackets. Lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        let mut by_address = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if !kind.eq_ignore_ascii_case("t") && !kind.eq_ignore_ascii_case("w") {
                continue;
            }
            if let Ok(address @ 1..) = u64::from_str_radix(address, 16) {
                by_address.insert(address, name.to_owned());
            }
        }
        Self { by_address }
    }

    /// `function+0x12`, or the address where no function is known.
    pub fn name(&self, address: u64) -> String {
        match self.by_address.range(..=address).next_back() {
            Some((start, name)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }
}

/// Drop reasons of the running kernel: their numbers change between versions.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    names: HashMap<u32, String>,
}

impl Reasons {
    /// From the kernel's BTF.
    pub fn of_this_kernel() -> Result<Self, HostError> {
        Ok(Self::from_pairs(crate::object::enumerators("skb_drop_reason")?))
    }

    /// From numbers and names as the kernel spells them.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u32, impl AsRef<str>)>) -> Self {
        let short = |name: &str| {
            let name = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
            name.strip_prefix("SKB_").unwrap_or(name).to_owned()
        };
        Self { names: pairs.into_iter().map(|(n, name)| (n, short(name.as_ref()))).collect() }
    }

    /// The name, or the number where the kernel has none: reasons of subsystems (the upper 16 bits) are not in the list.
    pub fn name(&self, reason: u32) -> String {
        match self.names.get(&reason) {
            Some(name) => name.clone(),
            None if reason >> 16 != 0 => {
                format!("subsystem {} reason {}", reason >> 16, reason & 0xffff)
            }
            None => format!("reason {reason}"),
        }
    }
}

/// Which processes have these sockets, as `name (pid)`, by the sockets' inodes.
///
/// **Source** `/proc/PID/fd`, links `socket:[INODE]`. **Caveat** sockets of other users are not seen without
/// CAP_SYS_PTRACE, closed ones never.
pub fn socket_owners(root: &Root, inodes: &[u64]) -> HashMap<u64, Vec<String>> {
    let inodes: BTreeSet<u32> =
        inodes.iter().filter_map(|inode| (*inode).try_into().ok()).collect();
    let named = |pid: i32| {
        let comm = task::read(root, pid, None).map_or_else(|_| "?".into(), |task| task.comm);
        format!("{comm} ({pid})")
    };
    let owners = socket_owner::of(root, &inodes).into_iter();
    owners.map(|(inode, pids)| (inode.into(), pids.into_iter().map(named).collect())).collect()
}

/// A transport protocol: `udp`, `tcp`, `icmp` or its number; none for 0.
pub fn transport_name(number: u32) -> Option<String> {
    match number {
        0 => None,
        1 => Some("icmp".into()),
        6 => Some("tcp".into()),
        17 => Some("udp".into()),
        58 => Some("icmpv6".into()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T first\nffffffff81000100 t second\nffffffff81000180 d data\n0 T hidden\nffffffffc0000000 t in_module [veth]\n",
        );
        assert_eq!(symbols.name(0xffff_ffff_8100_00ff), "first+0xff");
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), "second+0x90", "data is no function");
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), "in_module+0x1");
        assert_eq!(symbols.name(0x10), "0x10");
    }

    #[test]
    fn reasons_lose_their_prefix() {
        let reasons =
            Reasons::from_pairs([(2, "SKB_DROP_REASON_NOT_SPECIFIED"), (1, "SKB_CONSUMED")]);
        assert_eq!(reasons.name(2), "NOT_SPECIFIED");
        assert_eq!(reasons.name(1), "CONSUMED");
        assert_eq!(reasons.name(999), "reason 999");
        assert_eq!(reasons.name(0x0001_0003), "subsystem 1 reason 3");
    }

    #[test]
    fn an_own_socket_is_found() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let about = std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&about);
        let owners = socket_owners(&Root::host(), &[inode]);
        let own = format!("({})", std::process::id());
        assert!(owners[&inode].iter().any(|owner| owner.ends_with(&own)), "{owners:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "([0-9a-f]{0,20}| |\\n|[tTdW]|\\PC){0,60}", address in any::<u64>()) {
            let _ = Symbols::parse(&text).name(address);
        }
    }
}
