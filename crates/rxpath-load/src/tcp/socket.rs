//! Options of TCP sockets, the same for both sides: set, read back, and refused in words.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use clap::Args;
use rxpath_core::{Bytes, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::engine::listen;
use crate::engine::socket::{Buffer, Socket};
use crate::engine::tcp::CONGESTION_LIST;
use crate::udp::serve::options::{BusyPoll, Sockets};
use crate::values::number;
use crate::{buffers, busy_poll, ports, zone};

/// What helps where all local ports are in use.
pub(crate) const PORTS_CURE: &str = "let the server close (--close server), reset (--close reset), widen the range, or lower --rate";

/// Buffers of TCP sockets.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct BufferOptions {
    /// Receive buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES", value_parser = number::<Bytes>)]
    pub rcvbuf: Option<u64>,
    /// Send buffer as the kernel accounts it (default: the kernel tunes it); forced with CAP_NET_ADMIN
    #[arg(long, value_name = "BYTES", value_parser = number::<Bytes>)]
    pub sndbuf: Option<u64>,
}

/// Options of the sockets of one side; what is skipped is not an option of both sides.
#[derive(Clone, Debug, Default, Args)]
pub struct SocketOptions {
    /// Their buffers.
    #[command(flatten)]
    pub buffers: BufferOptions,
    /// Congestion control of what this side sends (TCP_CONGESTION)
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// `SO_MAX_PACING_RATE`. **Unit** bits per second.
    #[arg(skip)]
    pub pacing_bps: Option<u64>,
    /// `TCP_NODELAY`.
    #[arg(skip)]
    pub nodelay: bool,
    /// `TCP_MAXSEG`.
    #[arg(skip)]
    pub mss_bytes: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`.
    #[arg(skip)]
    pub notsent_lowat_bytes: Option<u32>,
    /// Busy polling.
    #[arg(skip)]
    pub busy_poll: Option<BusyPoll>,
}

/// What is in force on one side's sockets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketSettings {
    /// `sk_rcvbuf` at the opening; the kernel tunes it later unless it was asked for.
    pub rcvbuf_bytes: u64,
    /// Asked `sk_rcvbuf`.
    pub rcvbuf_asked_bytes: Option<u64>,
    /// `sk_sndbuf` at the opening; the kernel tunes it later unless it was asked for.
    pub sndbuf_bytes: u64,
    /// Asked `sk_sndbuf`.
    pub sndbuf_asked_bytes: Option<u64>,
    /// Congestion control.
    pub congestion: String,
    /// `SO_MAX_PACING_RATE`.
    pub pacing_bps: Option<u64>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_MAXSEG` as asked.
    pub mss_asked_bytes: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat_bytes: Option<u32>,
    /// Busy polling.
    pub busy_poll: Option<BusyPoll>,
}

impl SocketOptions {
    /// Sets the options; before connect or listen, so that the handshake knows the buffers.
    pub(crate) fn apply(&self, socket: &Socket) -> Result<(), LoadError> {
        let tcp = libc::IPPROTO_TCP;
        if let Some(bytes) = self.buffers.rcvbuf {
            buffers::set(socket, Buffer::Receive, bytes)?;
        }
        if let Some(bytes) = self.buffers.sndbuf {
            buffers::set(socket, Buffer::Send, bytes)?;
        }
        if let Some(name) = &self.congestion {
            socket.set_congestion(name).map_err(|e| congestion_error(name, &e))?;
        }
        if let Some(bps) = self.pacing_bps {
            let paced = socket.set_pacing((bps / 8).max(1));
            paced.map_err(|e| LoadError::io("--pacing-rate (SO_MAX_PACING_RATE)", e))?;
        }
        if self.nodelay {
            socket.set(tcp, libc::TCP_NODELAY, 1).map_err(|e| LoadError::io("TCP_NODELAY", e))?;
        }
        if let Some(mss) = self.mss_bytes {
            socket.set(tcp, libc::TCP_MAXSEG, mss as i32).map_err(|_| mss_error(mss))?;
        }
        if let Some(bytes) = self.notsent_lowat_bytes {
            let set = socket.set(tcp, libc::TCP_NOTSENT_LOWAT, bytes as i32);
            set.map_err(|e| LoadError::io("--notsent-lowat (TCP_NOTSENT_LOWAT)", e))?;
        }
        self.busy_poll.map_or(Ok(()), |poll| busy_poll::set(socket, poll))
    }

    /// Listeners on an address, as many as `sockets` asks for; their connections inherit the options
    /// (`inet_csk_clone_lock`), at no call per connection.
    pub(crate) fn listen(
        &self,
        addr: SocketAddr,
        (sockets, threads): (Sockets, usize),
        backlog: u32,
    ) -> Result<Vec<Socket>, LoadError> {
        let reuseport = sockets == Sockets::Reuseport;
        let listeners = listen::bind_group((addr, threads), reuseport, |addr| {
            let socket = Socket::tcp(addr).map_err(|e| LoadError::io("socket", e))?;
            socket.0.set_reuse_address(true).map_err(|e| LoadError::io("SO_REUSEADDR", e))?;
            self.apply(&socket)?;
            Ok(socket)
        })?;
        for socket in &listeners {
            socket.listen(backlog).map_err(|e| listen::refusal("listen", addr, e))?;
        }
        Ok(listeners)
    }

    /// What came of them, and a warning where the kernel gave less.
    pub(crate) fn settle(
        &self,
        socket: &Socket,
        warnings: &mut Vec<Warning>,
    ) -> Result<SocketSettings, LoadError> {
        let memory = socket.meminfo().map_err(|e| LoadError::io("SO_MEMINFO", e))?;
        for (side, asked, got) in [
            (Buffer::Receive, self.buffers.rcvbuf, memory.rcvbuf),
            (Buffer::Send, self.buffers.sndbuf, memory.sndbuf),
        ] {
            warnings.extend(asked.and_then(|asked| buffers::capped(side, asked, got.into())));
        }
        Ok(SocketSettings {
            rcvbuf_bytes: memory.rcvbuf.into(),
            rcvbuf_asked_bytes: self.buffers.rcvbuf,
            sndbuf_bytes: memory.sndbuf.into(),
            sndbuf_asked_bytes: self.buffers.sndbuf,
            congestion: socket.congestion().map_err(|e| LoadError::io("TCP_CONGESTION", e))?,
            pacing_bps: self.pacing_bps,
            nodelay: self.nodelay,
            mss_asked_bytes: self.mss_bytes,
            notsent_lowat_bytes: self.notsent_lowat_bytes,
            busy_poll: self.busy_poll,
        })
    }
}

fn congestion_error(name: &str, source: &io::Error) -> LoadError {
    if source.kind() == ErrorKind::PermissionDenied {
        return LoadError::Denied { what: format!("--congestion {name}"), needs: "CAP_NET_ADMIN" };
    }
    let known = std::fs::read_to_string(CONGESTION_LIST).unwrap_or_default();
    let known = known.trim();
    let what = format!("--congestion {name}: this kernel has no congestion control with that name");
    let hint = format!("available: {known} (others may be modules: modprobe tcp_{name})");
    LoadError::usage(what, hint)
}

fn mss_error(mss: u32) -> LoadError {
    // tcp_set_maxseg, net/ipv4/tcp.c: TCP_MIN_MSS to MAX_TCP_WINDOW.
    let what = format!("--mss {mss}: the kernel accepts 88 to 32767");
    LoadError::usage(what, "omit it to use the path's own segment size")
}

/// A refused connect in words.
pub(crate) fn connect_error(addr: SocketAddr, source: io::Error) -> LoadError {
    let ip = addr.ip();
    let hint = match source.raw_os_error() {
        Some(libc::ECONNREFUSED) => {
            format!("nothing listens there; start `rxpath serve tcp {addr}` on that host")
        }
        Some(libc::ENETUNREACH) => {
            format!("this host has no route to {ip}; check with `ip route get {ip}`")
        }
        Some(libc::EHOSTUNREACH) => format!("no host answers for {ip}; check with `ip neigh`"),
        Some(libc::ETIMEDOUT) => "nothing answered: a firewall that drops, or no such host".into(),
        Some(libc::EADDRNOTAVAIL) => format!("{}: {PORTS_CURE}", ports::why()),
        Some(libc::EINVAL) if addr.is_ipv6() => zone::missing(addr),
        _ => String::new(),
    };
    LoadError::Address { op: "connect", addr: addr.to_string(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_of_a_connection_needs_its_interface() {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
        let error = connect_error("[fe80::1]:4397".parse().unwrap(), invalid);
        assert!(error.hint().unwrap().contains("[fe80::1%2]:4397"), "{error}");
    }
}
