//! Resources that run out with many connections: local ports and file descriptors.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::LoadError;

/// File descriptors in addition to the connections: standard streams, epoll sets, rings, signals.
const OTHER_DESCRIPTORS: u64 = 32;

/// Makes room for this many descriptors: raises the soft limit as far as the hard one. Returns the limit in force.
pub(super) fn make_room(connections: usize, threads: usize) -> Result<u64, LoadError> {
    let needed = connections as u64 + 2 * threads as u64 + OTHER_DESCRIPTORS;
    let (soft, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| LoadError::io("getrlimit", e.into()))?;
    if soft >= needed {
        return Ok(soft);
    }
    if needed > hard {
        return Err(LoadError::usage(
            format!(
                "-c {connections}: needs {needed} file descriptors, the hard limit of this process is {hard}"
            ),
            format!(
                "use -c {} or fewer, or raise the limit (`ulimit -Hn`, or LimitNOFILE= of a systemd unit)",
                hard.saturating_sub(needed - connections as u64)
            ),
        ));
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard)
        .map_err(|e| LoadError::io("setrlimit", e.into()))?;
    Ok(needed)
}

/// The local ports that connections take, as the kernel is set.
///
/// **Source** `/proc/sys/net/ipv4/ip_local_port_range`, of this network namespace; it holds for IPv6, too.
fn range() -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// The reason for `EADDRNOTAVAIL`, with the numbers.
pub(super) fn why() -> String {
    match range() {
        Some((low, high)) => format!(
            "net.ipv4.ip_local_port_range is {low} to {high}: {} ports per destination, and a closed connection keeps its port in TIME_WAIT for 60 s",
            (high + 1).saturating_sub(low)
        ),
        None => "the local ports for one destination are used up".into(),
    }
}

/// What to do about it.
pub(super) fn hint() -> String {
    "keep connections alive, use fewer connections, another --source address, or a wider net.ipv4.ip_local_port_range"
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_read_and_told() {
        let (low, high) = range().unwrap();
        assert!(low <= high);
        assert!(why().contains(&format!("{low} to {high}")), "{}", why());
    }

    #[test]
    fn more_than_the_hard_limit_is_refused_with_what_fits() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!(make_room(1, 1).unwrap() >= 3);
        let Some(too_many) = usize::try_from(hard).ok().and_then(|n| n.checked_add(1)) else {
            return;
        };
        let error = make_room(too_many, 1).unwrap_err();
        assert!(error.to_string().contains(&hard.to_string()), "{error}");
        assert!(error.is_usage());
    }
}
