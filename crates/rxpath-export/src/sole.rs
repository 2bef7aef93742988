//! One exporter with probes in a network namespace: a second would cost the same again and measure the first.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A name of the network namespace, not of the file system: an exporter without root can take it, and the kernel gives it
/// back with the process, however that ends.
const NAME: &str = "rxpath-export";

/// The place of the only exporter, held while this lives.
#[derive(Debug)]
pub struct Sole {
    _socket: UnixDatagram,
}

impl Sole {
    /// Takes the place in the network namespace of the calling thread.
    ///
    /// # Errors
    /// `AddrInUse` while another exporter has it, or any other program: the name is nobody's own.
    pub fn claim() -> io::Result<Self> {
        Self::named(NAME)
    }

    fn named(name: &str) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { _socket: UnixDatagram::bind_addr(&address)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_once_and_free_again_afterwards() {
        let name = format!("rxpath-export-test-{}", std::process::id());
        let first = Sole::named(&name).unwrap();
        assert_eq!(Sole::named(&name).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        Sole::named(&name).unwrap();
    }
}
