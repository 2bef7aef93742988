//! Names for numbers: kernel addresses, drop reasons, sockets.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;

use rxpath_host::read::procfs::{socket_owner, task};
use rxpath_host::{HostError, Root};

/// Names of places in the kernel that were asked for. The whole table of functions would take 12 MB for a few dozen of
/// them.
#[derive(Debug, Default)]
pub struct Places {
    names: HashMap<u64, String>,
    table: Option<File>,
}

/// A place in the kernel whose function is not known.
pub const UNNAMED: &str = "?";

/// The kernel's functions and their addresses.
const TABLE: &str = "/proc/kallsyms";

impl Places {
    /// Opens the kernel's table now: it shows its addresses to who had CAP_SYSLOG when it was opened, also after the
    /// process has given that up.
    ///
    /// **Source** kernel/kallsyms.c `kallsyms_open`, `kallsyms_show_value`.
    pub fn open(root: &Root) -> Self {
        Self { table: root.open(TABLE).ok(), ..Self::default() }
    }

    /// Looks up the names of new addresses.
    ///
    /// **Source** `/proc/kallsyms`, read through once for all that are new. **Caveat** places have no names where it could not
    /// be opened (a unit with `ProtectKernelTunables=`), and without CAP_SYSLOG, when all addresses there are 0.
    pub fn learn(&mut self, addresses: impl IntoIterator<Item = u64>) -> Result<(), HostError> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let new: BTreeSet<u64> =
            addresses.into_iter().filter(|address| !self.names.contains_key(address)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let failed = |e| HostError::from_io("read", Path::new(TABLE), e);
        table.rewind().map_err(failed)?;
        let mut found =
            names_of(&new, BufReader::with_capacity(64 * 1024, &*table)).map_err(failed)?;
        // Also those without a name: the table would be read for them again and again.
        let mut name = |address: u64| found.remove(&address).unwrap_or_else(|| UNNAMED.to_owned());
        self.names.extend(new.into_iter().map(|address| (address, name(address))));
        Ok(())
    }

    /// `function+0x12`, or [`UNNAMED`]: an address would show where the kernel lies in memory (KASLR) to who may not know
    /// that.
    pub fn name(&self, address: u64) -> String {
        self.names.get(&address).cloned().unwrap_or_else(|| UNNAMED.to_owned())
    }
}

/// Names of addresses by the function that starts at or before each. A line of the table is address, type, name, and
/// the module in brackets; the lines are in no order, and those of another form are left out.
pub fn names_of(
    addresses: &BTreeSet<u64>,
    table: impl BufRead,
) -> io::Result<HashMap<u64, String>> {
    let mut best: HashMap<u64, (u64, String)> = HashMap::new();
    each_function(table, |start, name| {
        for address in addresses.range(start..) {
            // Those further on have a function as near.
            if best.get(address).is_some_and(|(nearest, _)| *nearest > start) {
                break;
            }
            best.insert(*address, (start, name.to_owned()));
        }
    })?;
    let named = |(address, (start, name)): (u64, (u64, String))| {
        (address, format!("{name}+{:#x}", address - start))
    };
    Ok(best.into_iter().map(named).collect())
}

/// Each function of a table of symbols with the address at which it starts; those whose address is hidden are left out.
pub(crate) fn each_function(
    mut table: impl BufRead,
    mut see: impl FnMut(u64, &str),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while table.read_until(b'\n', &mut bytes)? > 0 {
        if let Some((start, name)) = str::from_utf8(&bytes).ok().and_then(function) {
            see(start, name);
        }
        bytes.clear();
    }
    Ok(())
}

fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let is_function = kind.eq_ignore_ascii_case("t") || kind.eq_ignore_ascii_case("w");
    let start = u64::from_str_radix(address, 16).ok().filter(|start| *start > 0)?;
    is_function.then_some((start, name))
}

/// Drop reasons of the running kernel: their numbers change between versions.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    names: HashMap<u32, String>,
}

impl Reasons {
    /// From numbers and names as the kernel spells them.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u32, impl AsRef<str>)>) -> Self {
        let short = |name: &str| {
            let name = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
            name.strip_prefix("SKB_").unwrap_or(name).to_owned()
        };
        Self { names: pairs.into_iter().map(|(n, name)| (n, short(name.as_ref()))).collect() }
    }

    /// The name, or the number where the kernel has none: reasons of subsystems (the upper 16 bits) are not in the
    /// list.
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

/// Which processes hold these sockets, as `name (pid)`, by the sockets' inodes.
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
        let table = "ffffffff81000100 t second\nffffffff81000000 T first\nffffffff81000180 d data\n0 T hidden\nffffffffc0000000 t in_module [veth]\n";
        let [first, second, module, before] =
            [0xffff_ffff_8100_00ff, 0xffff_ffff_8100_0190, 0xffff_ffff_c000_0001, 0x10];
        let names = names_of(&[first, second, module, before].into(), table.as_bytes()).unwrap();
        assert_eq!(names[&first], "first+0xff");
        assert_eq!(names[&second], "second+0x90", "data is no function");
        assert_eq!(names[&module], "in_module+0x1");
        assert_eq!(names.get(&before), None);
    }

    #[test]
    fn a_place_that_no_function_holds_shows_no_address() {
        let mut places = Places::open(&Root::host());
        for address in [0x10, 0x11] {
            places.learn([address]).unwrap();
            assert_eq!(places.name(address), UNNAMED);
        }
    }

    #[test]
    fn a_table_that_cannot_be_opened_costs_the_names_only() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        let mut places = Places::open(&Root::tree(tree.path()).unwrap());
        places.learn([u64::MAX]).unwrap();
        assert_eq!(places.name(u64::MAX), UNNAMED);
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
            names_of(&[address].into(), text.as_bytes()).unwrap();
        }
    }
}
