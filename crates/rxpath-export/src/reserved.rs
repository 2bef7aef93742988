//! The port before it is open: reserved early, so that a second exporter ends before it has loaded anything, and opened last.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::libc;
use socket2::{Domain, Socket, Type};

use crate::listen::{Address, MetricsServer, Page};
use crate::socket_file::SocketFile;

/// A place that is reserved. Nobody can connect to it before [`Reserved::open`], unless another program opened it.
#[derive(Debug)]
pub struct Reserved {
    address: Address,
    socket: Option<Socket>,
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
        let socket = Socket::from(socket);
        let own = socket.local_addr()?;
        let address = if own.is_unix() {
            Address::Unix(own.as_pathname().map(Path::to_owned).unwrap_or_default())
        } else {
            Address::Tcp(own.as_socket().ok_or(ErrorKind::InvalidInput)?)
        };
        if !socket.is_listener()? {
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
            (_, Some(socket)) => {
                if !socket.is_listener()? {
                    socket.listen(libc::SOMAXCONN)?;
                }
                socket
            }
            (Address::Unix(path), None) => {
                let (listener, file) = SocketFile::bind(path)?;
                own_file = Some(file);
                listener.into()
            }
            (address, None) => {
                let text = format!("{address} has no socket");
                return Err(io::Error::new(ErrorKind::InvalidInput, text));
            }
        };
        MetricsServer::of(listener, &self.address, own_file, page)
    }
}

fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // As std's listeners: an address that closed connections still hold can be had.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

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
        let own = reserved.socket.as_ref().unwrap().local_addr().unwrap();
        let address = own.as_socket().unwrap();
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
