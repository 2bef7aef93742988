//! Whether busy polling can act at all: the kernel takes the options on any socket and says nothing.

use rxpath_core::Warning;

use crate::engine::socket::Socket;

/// NAPI instance of the last packet (`SO_INCOMING_NAPI_ID`, Linux 4.12); 0 = its device has none, and there is nothing
/// to poll. `None` where the kernel does not tell.
pub(crate) fn napi_id(socket: &Socket) -> Option<u32> {
    let id = socket.get(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID).ok()?;
    Some(id as u32)
}

/// Nothing could be polled for: `what` (datagrams, connections) came through devices without NAPI.
pub(crate) fn blind(what: &str) -> Warning {
    Warning::new("busy-poll-idle", "busy polling had no effect")
        .because(format!("SO_INCOMING_NAPI_ID is 0: the {what} came through a device without NAPI"))
        .cure("on a veth, turn GRO on at the receiving end; loopback has no NAPI")
}
