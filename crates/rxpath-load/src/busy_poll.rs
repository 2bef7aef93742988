//! Whether busy polling is possible: the kernel accepts the options on any socket without an error.

use rxpath_core::Warning;

use crate::engine::socket::Socket;

/// NAPI instance of the last packet (`SO_INCOMING_NAPI_ID`, Linux 4.12); 0 = its device has none, so polling is not
/// possible. `None` where the kernel does not report it.
pub(crate) fn napi_id(socket: &Socket) -> Option<u32> {
    let id = socket.get(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).ok()?;
    Some(id as u32)
}

/// Warning that polling was not possible: `what` (datagrams, connections) came through devices without NAPI.
pub(crate) fn blind(what: &str) -> Warning {
    Warning::new("busy-poll-idle", "busy polling had no effect")
        .because(format!("SO_INCOMING_NAPI_ID is 0: the {what} came through a device without NAPI"))
        .cure("on a veth, turn GRO on at the receiving end; loopback has no NAPI")
}
