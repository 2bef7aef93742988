//! All entries of a hash map, many with one call.
//!
//! The kernel gives whole buckets: a call that could have given more comes back with fewer than were asked for, and only
//! `ENOENT` says that nothing is left (kernel/bpf/hashtab.c, `__htab_map_lookup_and_delete_batch`).

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::MapCore;

use super::Entry;

/// Entries that one call asks for.
const ASKED: u32 = 4096;

/// Reads them; an entry that is added or removed meanwhile may be missed.
///
/// **Errors** the kernel's errno.
pub fn entries(map: &libbpf_rs::Map<'_>) -> Result<Vec<Entry>, i32> {
    let (key, value) = (map.key_size() as usize, map.value_size() as usize);
    let mut batch = Batch::new(map.as_fd().as_raw_fd(), key, value);
    let mut entries = Vec::new();
    loop {
        let errno = batch.read();
        match errno {
            0 | libc::ENOENT => batch.give(key, value, &mut entries),
            // One bucket holds more than was asked for.
            libc::ENOSPC => batch.grow(key, value),
            other => return Err(other),
        }
        if errno == libc::ENOENT {
            return Ok(entries);
        }
    }
}

/// What a call reads into, and where it goes on.
struct Batch {
    fd: i32,
    /// The place at which the last call ended; none before the first.
    place: Option<Vec<u8>>,
    keys: Vec<u8>,
    values: Vec<u8>,
    room: u32,
    got: u32,
}

impl Batch {
    fn new(fd: i32, key: usize, value: usize) -> Self {
        let room = ASKED as usize;
        let (keys, values) = (vec![0; room * key], vec![0; room * value]);
        Self { fd, place: None, keys, values, room: ASKED, got: 0 }
    }

    /// One call; its errno, 0 when there may be more.
    fn read(&mut self) -> i32 {
        // A place is a bucket's number, or a key where the map has no buckets.
        let mut next = vec![0u8; (self.keys.len() / self.room as usize).max(8)];
        self.got = self.room;
        let from = self.place.as_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr);
        // SAFETY: keys and values have room for `got` entries of this map's sizes; both places for the larger of a key
        // and a bucket's number; all outlive the call.
        let rc = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                self.fd,
                from.cast(),
                next.as_mut_ptr().cast(),
                self.keys.as_mut_ptr().cast(),
                self.values.as_mut_ptr().cast(),
                &raw mut self.got,
                std::ptr::null(),
            )
        };
        if rc == 0 {
            self.place = Some(next);
        }
        -rc
    }

    fn give(&self, key: usize, value: usize, entries: &mut Vec<Entry>) {
        let keys = self.keys.chunks_exact(key);
        let both = keys.zip(self.values.chunks_exact(value)).take(self.got as usize);
        entries.extend(both.map(|(key, value)| (key.to_vec(), value.to_vec())));
    }

    fn grow(&mut self, key: usize, value: usize) {
        self.room = self.room.saturating_mul(2);
        self.keys.resize(self.room as usize * key, 0);
        self.values.resize(self.room as usize * value, 0);
    }
}
