//! What this program tells the service manager that started it (sd_notify(3)).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use crate::HostError;

/// Says that this program is ready. Nothing without a service manager that waits for it.
///
/// **Source** sd_notify(3), `NOTIFY_SOCKET`.
///
/// **Errors** when the manager's socket does not take the message: the manager would wait for it and then kill the program.
pub fn ready() -> Result<(), HostError> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let sent = send(&socket, b"READY=1");
    sent.map_err(|error| HostError::from_io("notify", Path::new(&socket), error))
}

fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_at_a_file_and_at_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("rxpath-notify-test-{}", std::process::id());
        let sockets = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, named) in sockets {
            send(&named, b"READY=1").unwrap();
            let mut bytes = [0; 64];
            let length = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1", "{named:?}");
        }
        assert!(send(dir.path().join("none").as_os_str(), b"READY=1").is_err());
    }
}
