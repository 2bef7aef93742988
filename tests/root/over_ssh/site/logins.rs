//! What keeps the coordinator from logging in to a host: ports that say nothing, an sshd that is full, other words for ssh.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{SSHD, Site};
use crate::bed::until;

impl Site {
    /// Puts lines before those of the coordinator's configuration of ssh, which takes the first of several values.
    pub fn configure_ssh(&self, lines: &str) {
        let others = fs::read_to_string(self.path("ssh_config")).unwrap();
        self.write("ssh_config", &(lines.to_owned() + &others));
    }

    /// A port of a host at which connections are taken, and nothing is said.
    pub fn mute_port(&self, alias: &str, port: u16) -> TcpListener {
        let open = move |_: &mut _| TcpListener::bind(("0.0.0.0", port)).unwrap();
        self.host(alias).run(open).unwrap()
    }

    /// Starts another sshd on `sut`, which takes one login at a time. One is under way as long as this connection lives.
    pub fn full_sshd(&self, port: u16) -> TcpStream {
        let (config, number) = (self.path("sshd_config"), port.to_string());
        self.inside("sut", &[SSHD, "-f", &config, "-p", &number, "-o", "MaxStartups=1"]);
        let address = SocketAddr::from(([10, 78, 2, 2], port));
        let mut login = None;
        until("a login under way", || {
            login = self.coordinator.run(move |_| greeted(address)).unwrap();
            login.is_some()
        });
        login.unwrap()
    }
}

/// A connection that sshd greets: to one that it drops it says something else.
fn greeted(address: SocketAddr) -> Option<TcpStream> {
    let mut login = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    login.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut greeting = [0; 4];
    login.read_exact(&mut greeting).ok()?;
    (greeting == *b"SSH-").then_some(login)
}
