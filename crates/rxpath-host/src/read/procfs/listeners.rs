//! Whether a port waits for peers: `/proc/net/tcp`, `tcp6`, `udp` and `udp6`, their first columns only.
//!
//! **Source** net/ipv4/tcp_ipv4.c `get_tcp4_sock`, net/ipv4/udp.c `udp4_format_sock`. The files are those of the
//! network namespace of the process that they are read of: `/proc/PID/net/tcp`.

/// `TCP_LISTEN` (include/net/tcp_states.h) of a TCP socket.
const LISTEN: &str = "0A";
/// `TCP_CLOSE`: a UDP socket that is not connected.
const UNCONNECTED: &str = "07";

/// Inodes of the TCP sockets of the table that listen, as in `/proc/PID/fd`. Rows that cannot be read are passed over.
pub fn inodes(table: &str) -> impl Iterator<Item = u32> {
    table.lines().skip(1).filter_map(|row| {
        let mut words = row.split_ascii_whitespace().skip(3);
        if words.next() != Some(LISTEN) {
            return None;
        }
        // Queues, timer, retransmissions, owner and timeout stand between.
        words.nth(5)?.parse().ok()
    })
}

/// Whether a socket of the table listens on `port`. Rows that cannot be read are passed over.
pub fn has_port(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|row| {
        let mut words = row.split_ascii_whitespace().skip(1);
        let own = words.next().and_then(|address| address.rsplit_once(':'));
        let own = own.and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok());
        let state = words.nth(1);
        own == Some(port) && matches!(state, Some(LISTEN | UNCONNECTED))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n\
           0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1\n\
           1: 0100007F:0050 0100007F:A000 01 00000000:00000000 00:00000000 00000000 0 0 1\n";

    #[test]
    fn only_a_listener_counts() {
        assert!(has_port(TABLE, 8080));
        assert!(!has_port(TABLE, 80), "a connection is no listener");
        assert_eq!(inodes(TABLE).collect::<Vec<_>>(), [1], "the listener's");
        assert_eq!(inodes("x\n0: a b 0A\n").count(), 0);
        assert!(!has_port("", 80) && !has_port("x\ny: :z 1 2", 80));
    }

    #[test]
    fn this_machine_shows_a_socket_of_ours() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        assert!(has_port(&table, port));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(has_port(&std::fs::read_to_string("/proc/self/net/udp").unwrap(), port));
    }
}
