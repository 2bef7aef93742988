//! Direct system calls for send and receive: in the C library both calls are cancellation points, which costs two
//! locked instructions each in a program with threads.

use std::os::fd::RawFd;

use nix::errno::Errno;

/// send(2) without a signal for a closed peer.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length describe `bytes`; no address is given.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            std::ptr::null::<libc::sockaddr>(),
            0,
        )
    };
    Errno::result(sent).map(|sent| sent as usize)
}

/// recv(2); 0 = the peer has ended its direction.
#[inline]
pub fn recv(fd: RawFd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length describe `into`; no address is asked for.
    let got = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            into.as_mut_ptr(),
            into.len(),
            0,
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    Errno::result(got).map(|got| got as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_go_over_and_ends_are_told() {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let mut into = [0; 8];
        assert_eq!(recv(one.as_raw_fd(), &mut into), Err(Errno::EAGAIN));
        assert_eq!(send(other.as_raw_fd(), b"hello"), Ok(5));
        assert_eq!(recv(one.as_raw_fd(), &mut into), Ok(5));
        assert_eq!(&into[..5], b"hello");
        let fd = other.as_raw_fd();
        drop(one);
        assert_eq!(send(fd, b"x"), Err(Errno::EPIPE));
        assert_eq!(recv(fd, &mut into), Ok(0));
    }
}
