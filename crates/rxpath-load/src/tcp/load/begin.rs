//! Common start of all clients: check the options, connect, place the threads.

use std::sync::Arc;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::listen::descriptors_for;
use crate::engine::socket::Socket;
use crate::tcp::load::options::{Common, CommonSettings};
use crate::tcp::load::session::{CONNECT_MS, Session};
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::MAX_BUFFER;
use crate::tcp::serve::options::ReceiveMethod;
use crate::tcp::socket::connect_error;

/// File descriptors in addition to the connections: standard streams, control connection, epoll sets, files.
const OTHER_DESCRIPTORS: usize = 64;

/// Refuses impossible options.
pub(super) fn check(common: &Common) -> Result<(), LoadError> {
    let bad = |what: String, hint: &str| Err(LoadError::usage(what, hint));
    // Its epoll set, and one connection at least.
    common.threads.check("send", 2)?;
    let (connections, threads) = (common.connections(), common.threads.count);
    if connections < threads {
        let what =
            format!("--connections {connections}: fewer than one for each of {threads} threads");
        return bad(what, "raise --connections or lower --threads");
    }
    if !(1..=MAX_BUFFER as usize).contains(&common.buffer_bytes) {
        let what = format!("--buffer {}: 1 byte to 64 MiB", common.buffer_bytes);
        return bad(what, "128KiB is the default");
    }
    descriptors_for("--connections", connections, OTHER_DESCRIPTORS).map(drop)
}

/// Begins the session.
pub(super) fn session(common: &Common) -> Result<Session, LoadError> {
    let session = Session::open(common.addr)?;
    if common.verify && session.hello.receive == ReceiveMethod::Trunc {
        let what =
            "--verify: this server discards what it receives (--receive trunc) and cannot check it";
        return Err(LoadError::usage(what, "start the server with --receive read"));
    }
    Ok(session)
}

/// The payloads of all connections.
pub(super) fn pattern(common: &Common) -> Result<Arc<Pattern>, LoadError> {
    let pattern = Pattern::new(common.buffer_bytes);
    Ok(Arc::new(pattern.map_err(|e| LoadError::io("prepare the payload", e))?))
}

/// One connection to the server, with its options, non-blocking.
pub(super) fn connect(common: &Common) -> Result<Socket, LoadError> {
    let socket = Socket::tcp(common.addr).map_err(|e| LoadError::io("socket", e))?;
    common.socket.apply(&socket)?;
    socket.connect_within(common.addr, CONNECT_MS).map_err(|e| connect_error(common.addr, e))?;
    Ok(socket)
}

/// The settings in force; `socket` is one of the connections.
pub(super) fn settle(
    common: &Common,
    session: &Session,
    socket: &Socket,
    warnings: &mut Vec<Warning>,
) -> Result<CommonSettings, LoadError> {
    Ok(CommonSettings {
        to: common.addr,
        server_program: session.hello.program.clone(),
        server_threads_count: session.hello.threads_count,
        threads: common.threads.clone(),
        connections_count: common.connections(),
        verify: common.verify,
        socket: common.socket.settle(socket, warnings)?,
        mss_bytes: session.mss_bytes(),
        duration_s: common.duration_ns.map(|ns| ns as f64 / 1e9),
    })
}
