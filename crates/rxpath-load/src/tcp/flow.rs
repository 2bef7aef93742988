//! The two halves of a connection that moves bytes: a feed that sends, a sink that receives.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::engine::socket::Socket;
use crate::engine::zerocopy::Mapping;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::SendMethod;
use crate::tcp::result::Mismatch;
use crate::tcp::serve::options::ReceiveMethod;

/// Address space that a connection's receive queue is mapped into.
const MAPPING_BYTES: usize = 2 << 20;
/// Completions are read at the latest when this many calls are under way.
const UNREAD_CALLS: u64 = 64;

/// What `MSG_ZEROCOPY` gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ZerocopyCount {
    pub(crate) calls: u64,
    pub(crate) completed: u64,
    pub(crate) copied: u64,
    pub(crate) enobufs: u64,
}

impl ZerocopyCount {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.completed += other.completed;
        self.copied += other.copied;
        self.enobufs += other.enobufs;
    }
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Feed {
    pattern: Arc<Pattern>,
    method: SendMethod,
    buffer_bytes: usize,
    /// Payloads go on through the pattern; otherwise each call sends its beginning, which stays in the cache.
    verify: bool,
    pub(crate) offset: u64,
    pub(crate) zerocopy: ZerocopyCount,
}

impl Feed {
    pub(crate) fn new(
        pattern: Arc<Pattern>,
        method: SendMethod,
        buffer_bytes: usize,
        verify: bool,
    ) -> Self {
        let buffer_bytes = buffer_bytes.min(pattern.buffer_bytes);
        let zerocopy = ZerocopyCount::default();
        Self { pattern, method, buffer_bytes, verify, offset: 0, zerocopy }
    }

    /// Prepares the socket.
    pub(crate) fn prepare(&self, socket: &Socket) -> io::Result<()> {
        if self.method == SendMethod::Zerocopy { socket.allow_zerocopy() } else { Ok(()) }
    }

    /// One send call of up to `most` bytes, as the socket blocks.
    #[inline]
    pub(crate) fn push(&mut self, socket: &Socket, most: usize) -> io::Result<usize> {
        let len = self.buffer_bytes.min(most);
        let from = if self.verify { self.offset } else { 0 };
        let sent = match self.method {
            SendMethod::Copy => socket.send_with(self.pattern.at(from, len), 0),
            SendMethod::Zerocopy => self.push_zerocopy(socket, from, len),
        }?;
        self.offset += sent as u64;
        Ok(sent)
    }

    fn push_zerocopy(&mut self, socket: &Socket, from: u64, len: usize) -> io::Result<usize> {
        if self.zerocopy.calls - self.zerocopy.completed >= UNREAD_CALLS {
            self.reap(socket)?;
        }
        loop {
            match socket.send_zerocopy(self.pattern.at(from, len)) {
                Ok(sent) => {
                    self.zerocopy.calls += 1;
                    return Ok(sent);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.zerocopy.enobufs += 1;
                    // Completions free what is short; an error on the queue wakes every poll.
                    if !socket.wait(0, 20)? {
                        return Err(ErrorKind::Interrupted.into());
                    }
                    self.reap(socket)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the completions that are there.
    pub(crate) fn reap(&mut self, socket: &Socket) -> io::Result<()> {
        if self.method != SendMethod::Zerocopy {
            return Ok(());
        }
        while let Some(done) = socket.completion()? {
            self.zerocopy.completed += u64::from(done.calls);
            self.zerocopy.copied += if done.copied { u64::from(done.calls) } else { 0 };
        }
        Ok(())
    }

    /// Whether completions are still to come.
    #[cfg(test)]
    pub(crate) fn is_waiting(&self) -> bool {
        self.zerocopy.completed < self.zerocopy.calls
    }
}

/// The receiving half.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    method: ReceiveMethod,
    verify: bool,
    mapping: Option<Mapping>,
    pub(crate) offset: u64,
    pub(crate) mapped_bytes: u64,
    /// Offset of the first wrong byte.
    pub(crate) mismatch: Option<u64>,
}

impl Sink {
    pub(crate) fn new(socket: &Socket, method: ReceiveMethod, verify: bool) -> io::Result<Self> {
        let mapping = match method {
            ReceiveMethod::Zerocopy => Some(Mapping::new(socket, MAPPING_BYTES)?),
            ReceiveMethod::Read | ReceiveMethod::Trunc => None,
        };
        Ok(Self { method, verify, mapping, ..Self::default() })
    }

    /// One step of receiving, as the socket blocks; 0 = the peer has ended its direction.
    #[inline]
    pub(crate) fn pull(
        &mut self,
        socket: &Socket,
        buffer: &mut [u8],
        pattern: &Pattern,
    ) -> io::Result<usize> {
        let got = match self.method {
            ReceiveMethod::Trunc => socket.recv_discard(buffer.len())?,
            ReceiveMethod::Read => {
                let got = socket.recv(buffer, 0)?;
                self.check(&buffer[..got], pattern);
                got
            }
            ReceiveMethod::Zerocopy => return self.pull_mapped(socket, buffer, pattern),
        };
        self.offset += got as u64;
        Ok(got)
    }

    fn pull_mapped(
        &mut self,
        socket: &Socket,
        buffer: &mut [u8],
        pattern: &Pattern,
    ) -> io::Result<usize> {
        let mut got = 0;
        let mut skip = buffer.len();
        if let Some(mapping) = &mut self.mapping {
            let part = mapping.receive(socket).unwrap_or_default();
            (got, skip) = (part.mapped, part.skip);
            if got > 0 {
                if self.verify && self.mismatch.is_none() {
                    self.mismatch = pattern.mismatch(self.offset, mapping.bytes());
                }
                self.mapped_bytes += got as u64;
                self.offset += got as u64;
            }
        }
        // What cannot be mapped is read; with nothing of either kind a read tells the end.
        if skip > 0 || got == 0 {
            let most = if skip > 0 { skip.min(buffer.len()) } else { buffer.len() };
            let flags = if got > 0 { libc::MSG_DONTWAIT } else { 0 };
            match socket.recv(&mut buffer[..most], flags) {
                Ok(read) => {
                    self.check(&buffer[..read], pattern);
                    self.offset += read as u64;
                    got += read;
                }
                Err(error) if got > 0 && error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    }

    /// Checks bytes that begin at the offset so far; counts nothing.
    #[inline]
    fn check(&mut self, data: &[u8], pattern: &Pattern) {
        if self.verify && self.mismatch.is_none() {
            self.mismatch = pattern.mismatch(self.offset, data);
        }
    }

    /// The first wrong byte, of the connection with this name.
    pub(crate) fn wrong(&self, connection: &str) -> Option<Mismatch> {
        self.mismatch.map(|offset_bytes| Mismatch { connection: connection.into(), offset_bytes })
    }

    /// Takes bytes that were read otherwise.
    #[inline]
    pub(crate) fn took(&mut self, data: &[u8], pattern: &Pattern) {
        self.check(data, pattern);
        self.offset += data.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tcp::tests::pair;

    /// Sends a megabyte in every method, receives it in every method, and checks each byte.
    #[test]
    fn every_way_of_sending_arrives_in_every_way_of_receiving() {
        const BYTES: usize = 1_000_000;
        let pattern = Arc::new(Pattern::new(50_000).unwrap());
        for send in [SendMethod::Copy, SendMethod::Zerocopy] {
            for receive in [ReceiveMethod::Read, ReceiveMethod::Zerocopy] {
                let (client, server) = pair();
                let mut feed = Feed::new(Arc::clone(&pattern), send, 50_000, true);
                feed.prepare(&client).unwrap();
                let mut sink = Sink::new(&server, receive, true).unwrap();
                let sender = std::thread::spawn(move || {
                    while feed.offset < BYTES as u64 {
                        feed.push(&client, BYTES - feed.offset as usize).unwrap();
                    }
                    client.shutdown_write().unwrap();
                    (client, feed)
                });
                let mut buffer = vec![0; 30_000];
                while sink.pull(&server, &mut buffer, &pattern).unwrap() > 0 {}
                let (client, mut feed) = sender.join().unwrap();
                assert_eq!(
                    (sink.offset, sink.mismatch),
                    (BYTES as u64, None),
                    "{send:?} {receive:?}"
                );
                while feed.is_waiting() {
                    assert!(client.wait(0, 10_000).unwrap());
                    feed.reap(&client).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_changed_byte_is_found_with_its_offset() {
        let pattern = Pattern::new(4096).unwrap();
        let (client, server) = pair();
        let mut data = pattern.at(0, 4096).to_vec();
        data[1234] ^= 1;
        client.send_with(&data, 0).unwrap();
        client.shutdown_write().unwrap();
        let mut sink = Sink::new(&server, ReceiveMethod::Read, true).unwrap();
        let mut buffer = vec![0; 1000];
        while sink.pull(&server, &mut buffer, &pattern).unwrap() > 0 {}
        assert_eq!(sink.mismatch, Some(1234));
    }
}
