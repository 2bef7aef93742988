//! Groups of sockets that share a port, listening or not, and the limits of descriptors.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::LoadError;
use crate::engine::socket::Socket;

/// Whether the process or the host ran out of descriptors or memory: waiting helps, trying again does not.
pub fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Opens a socket on an address, or with `reuseport` one for each thread, all of one `SO_REUSEPORT` group.
///
/// `open` makes a socket and sets its options. With port 0 the first socket's port is that of the group.
pub fn bind_group(
    (mut addr, threads): (SocketAddr, usize),
    reuseport: bool,
    mut open: impl FnMut(SocketAddr) -> Result<Socket, LoadError>,
) -> Result<Vec<Socket>, LoadError> {
    let count = if reuseport { threads } else { 1 };
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = open(addr)?;
        if reuseport {
            let refused = LoadError::unsupported("--sockets reuseport (SO_REUSEPORT)");
            socket.0.set_reuse_port(true).map_err(refused)?;
        }
        socket.bind(addr).map_err(|e| refusal("bind", addr, e))?;
        addr = local(&socket)?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// The local address of a socket.
pub fn local(socket: &Socket) -> Result<SocketAddr, LoadError> {
    socket.local().map_err(|e| LoadError::io("getsockname", e))
}

/// An error of `bind` or `listen`, with a remedy.
pub fn refusal(op: &'static str, addr: SocketAddr, source: io::Error) -> LoadError {
    let (ip, port) = (addr.ip(), addr.port());
    let hint = match source.kind() {
        ErrorKind::AddrInUse => format!(
            "port {port} is taken by another socket (`ss -tulnp sport = :{port}` shows whose); \
             choose another port, or end its owner"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("{ip} is not an address of this host; `ip address` lists its addresses")
        }
        ErrorKind::PermissionDenied => {
            "ports under net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE".into()
        }
        _ => String::new(),
    };
    LoadError::Address { op, addr: addr.to_string(), source, hint }
}

/// Raises the soft limit of descriptors to the hard one; returns what is in force.
///
/// **Source** getrlimit(2) `RLIMIT_NOFILE`.
pub fn raise_descriptor_limit() -> Result<u64, LoadError> {
    let (soft, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| LoadError::io("RLIMIT_NOFILE", e.into()))?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return Ok(hard);
    }
    Ok(soft)
}

/// Raises the limit of descriptors for so many connections and others; returns what is in force.
///
/// **Errors** a usage error that names `option`, which asked for the connections, where fewer fit.
pub fn descriptors_for(option: &str, connections: usize, others: usize) -> Result<u64, LoadError> {
    let limit = raise_descriptor_limit()?;
    let needed = connections.saturating_add(others) as u64;
    if needed <= limit {
        return Ok(limit);
    }
    let most = limit.saturating_sub(others as u64);
    let what = format!(
        "{option} {connections}: needs {needed} file descriptors, this process may open {limit}"
    );
    let hint = format!(
        "use {option} {most} or fewer, or raise the limit (`ulimit -Hn` as root, or LimitNOFILE= of the service)"
    );
    Err(LoadError::usage(what, hint))
}

/// The name of an errno, such as `ECONNRESET`; `EOF` for a stream that ended early, `EPROTO` for bytes that do not belong
/// there.
pub fn errno_name(error: &io::Error) -> String {
    match (error.raw_os_error(), error.kind()) {
        (Some(raw), _) => format!("{:?}", nix::errno::Errno::from_raw(raw)),
        (None, ErrorKind::UnexpectedEof) => "EOF".into(),
        (None, ErrorKind::InvalidData) => "EPROTO".into(),
        (None, _) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_hard_one() {
        let limit = raise_descriptor_limit().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, limit);
    }

    #[test]
    fn more_than_the_hard_limit_is_refused_with_what_fits() {
        let limit = descriptors_for("-c", 1, 2).unwrap();
        let Some(too_many) = usize::try_from(limit).ok().and_then(|n| n.checked_add(1)) else {
            return;
        };
        let error = descriptors_for("-c", too_many, 2).unwrap_err();
        assert!(error.to_string().contains(&limit.to_string()) && error.is_usage(), "{error}");
        assert!(error.hint().unwrap().contains(&format!("-c {} or", limit - 2)), "{error}");
    }

    #[test]
    fn a_group_has_one_port() {
        let open = |addr| Socket::udp(addr).map_err(|e| LoadError::io("socket", e));
        let group = bind_group(("127.0.0.1:0".parse().unwrap(), 2), true, open).unwrap();
        assert_eq!(group[0].local().unwrap(), group[1].local().unwrap());
        let taken = bind_group((group[0].local().unwrap(), 1), false, open).unwrap_err();
        assert!(taken.is_usage() && taken.hint().unwrap().contains("ss -tulnp"), "{taken}");
    }
}
