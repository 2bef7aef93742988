//! Busy polling of sockets, and whether it is possible: the kernel accepts the options on any socket without an error.

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::udp::serve::options::BusyPoll;

/// Sets the options of a socket; the connections of a listener inherit them.
pub(crate) fn set(socket: &Socket, poll: BusyPoll) -> Result<(), LoadError> {
    let options = [
        ("--busy-poll (SO_BUSY_POLL)", libc::SO_BUSY_POLL, Some(poll.poll_us)),
        (
            "--prefer-busy-poll (SO_PREFER_BUSY_POLL)",
            libc::SO_PREFER_BUSY_POLL,
            poll.prefer.then_some(1),
        ),
        (
            "--busy-poll-budget (SO_BUSY_POLL_BUDGET)",
            libc::SO_BUSY_POLL_BUDGET,
            poll.budget_packets,
        ),
    ];
    for (what, name, value) in options {
        let Some(value) = value else { continue };
        socket.set(libc::SOL_SOCKET, name, value as i32).map_err(LoadError::of_option(what))?;
    }
    Ok(())
}

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
