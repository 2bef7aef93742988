//! Connection tracking of a network namespace: its counters over netlink, else those of procfs.
//!
//! Both have the same counters. Netlink needs `CAP_NET_ADMIN` and the module `nf_conntrack_netlink`. The file needs no
//! privilege and a kernel with `CONFIG_NF_CONNTRACK_PROCFS`.

use crate::netlink::Netlink;
use crate::read::netlink::netfilter::Conntrack;
use crate::read::procfs::nf_conntrack;
use crate::{HostError, Root};

/// Counters of connection tracking, in the network namespace of the calling thread.
///
/// **Errors** `Unsupported` if connection tracking is not loaded: no query loads it. If neither source has them, the
/// error of netlink.
pub fn read() -> Result<Conntrack, HostError> {
    // A netlink socket has the namespace of its thread, `/proc/net` that of the process.
    let root = Root::thread_netns("/sys");
    // Each namespace has it as soon as the module is there (net/netfilter/nf_conntrack_standalone.c).
    if !root.exists(nf_conntrack::MAX) {
        let needs = "nf_conntrack, which is not loaded";
        return Err(HostError::unsupported("read connection tracking's counters", needs));
    }
    or_procfs(Netlink::netfilter().and_then(|mut netfilter| netfilter.conntrack()), &root)
}

fn or_procfs(answer: Result<Conntrack, HostError>, root: &Root) -> Result<Conntrack, HostError> {
    answer.or_else(|refused| match nf_conntrack::read(root) {
        Err(HostError::Missing { .. }) => Err(refused),
        counted => counted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procfs_has_what_netlink_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let stat = dir.path().join("proc/net/stat");
        std::fs::create_dir_all(&stat).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let refused = || {
            let (what, capability) = ("read".into(), "CAP_NET_ADMIN".into());
            or_procfs(Err(HostError::Denied { what, capability }), &root)
        };
        let neither = refused().unwrap_err();
        assert!(matches!(neither, HostError::Denied { .. }), "{neither}");
        std::fs::write(stat.join("nf_conntrack"), "entries drop\n5 3\n5 4\n").unwrap();
        let found = refused().unwrap();
        assert_eq!((found.entries_count, found.drop_total), (5, 7));
        let asked = Conntrack { drop_total: 1, ..Conntrack::default() };
        assert_eq!(or_procfs(Ok(asked), &root).unwrap(), asked, "netlink comes first");
        std::fs::write(stat.join("nf_conntrack"), "entries drop\n5\n").unwrap();
        let cut = refused().unwrap_err();
        assert!(matches!(cut, HostError::Malformed { line: 2, .. }), "{cut}");
    }
}
