//! The port before it is open: reserved early, so that a second exporter ends before it has loaded anything, and opened last.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::socket::sockopt::{AcceptConn, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, bind, getsockname,
    getsockopt, listen, setsockopt, socket,
};

use crate::listen::{Address, Listener, MetricsServer, Page};
use crate::socket_file::SocketFile;

/// A place that is reserved. Nobody can connect to it before [`Reserved::open`], unless another program opened it.
#[derive(Debug)]
pub struct Reserved {
    address: Address,
    socket: Option<OwnedFd>,
}

impl Reserved {
    /// Reserves an address. One of TCP is of the network namespace that the thread is in now; the file of a Unix socket is
    /// created when it is opened.
    ///
    /// # Errors
    /// When another socket has it.
    pub fn new(address: &Address) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp(address) => Some(bound(*address)?),
            Address::Unix(_) | Address::Inherited(_) => None,
        };
        Ok(Self { address: address.clone(), socket })
    }

    /// A listening socket that another program passed on.
    ///
    /// # Errors
    /// When it is no listening socket.
    pub fn inherited(socket: OwnedFd) -> io::Result<Self> {
        let address = match getsockname::<SockaddrStorage>(socket.as_raw_fd())?.family() {
            Some(AddressFamily::Unix) => {
                let listener = UnixListener::from(socket.try_clone()?);
                let path = listener.local_addr()?.as_pathname().map(Path::to_owned);
                Address::Unix(path.unwrap_or_default())
            }
            _ => Address::Tcp(TcpListener::from(socket.try_clone()?).local_addr()?),
        };
        if !getsockopt(&socket, AcceptConn)? {
            return Err(io::Error::new(ErrorKind::InvalidInput, "not a listening socket"));
        }
        Ok(Self { address, socket: Some(socket) })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn open(self, page: Page) -> io::Result<MetricsServer> {
        let mut own_file = None;
        let listener = match (&self.address, self.socket) {
            (Address::Unix(_), Some(socket)) => Listener::Unix(UnixListener::from(socket)),
            (_, Some(socket)) => {
                if !getsockopt(&socket, AcceptConn)? {
                    listen(&socket, Backlog::MAXCONN)?;
                }
                Listener::Tcp(TcpListener::from(socket))
            }
            (Address::Unix(path), None) => {
                let (listener, file) = SocketFile::bind(path)?;
                own_file = Some(file);
                Listener::Unix(listener)
            }
            (address, None) => {
                let text = format!("{address} has no socket");
                return Err(io::Error::new(ErrorKind::InvalidInput, text));
            }
        };
        MetricsServer::of(listener, &self.address, own_file, page)
    }
}

fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let address = SockaddrStorage::from(address);
    let family = address.family().unwrap_or(AddressFamily::Inet);
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // As std's listeners: an address that closed connections still hold can be had.
    setsockopt(&socket, ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::request::RenderedPages;

    fn asked(mut stream: impl Read + Write) -> String {
        let mut text = String::new();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn page() -> Page {
        let page = Page::default();
        page.set(RenderedPages { metrics: "a 1\n".into(), status: String::new() });
        page
    }

    #[test]
    fn a_reserved_address_refuses_connections_until_it_is_open() {
        let reserved = Reserved::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
        let of = |socket: &OwnedFd| TcpListener::from(socket.try_clone().unwrap()).local_addr();
        let address = of(reserved.socket.as_ref().unwrap()).unwrap();
        assert!(TcpStream::connect(address).is_err());
        let taken = Reserved::new(&Address::Tcp(address)).unwrap().open(Page::default());
        let port = reserved.open(Page::default());
        assert!(taken.is_err() || port.is_err(), "two listen on {address}");
        let open = taken.or(port).unwrap();
        assert!(asked(TcpStream::connect(address).unwrap()).starts_with("HTTP/1.1 503"));
        drop(open);
    }

    #[test]
    fn a_socket_of_another_program_is_served_and_its_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passed.sock");
        let passed = UnixListener::bind(&path).unwrap();
        let port = Reserved::inherited(passed.into()).unwrap().open(page()).unwrap();
        assert!(asked(UnixStream::connect(&path).unwrap()).ends_with("a 1\n"));
        drop(port);
        assert!(path.exists());
        let passed = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = passed.local_addr().unwrap();
        let port = Reserved::inherited(passed.into()).unwrap().open(page()).unwrap();
        assert_eq!(port.address, Address::Tcp(address));
        assert!(asked(TcpStream::connect(address).unwrap()).ends_with("a 1\n"));
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(Reserved::inherited(one.into()).is_err());
        assert!(Reserved::inherited(std::fs::File::open("/dev/null").unwrap().into()).is_err());
    }
}
