//! All entries of a hash map, many with one call.
//!
//! The kernel gives whole buckets: a call that could have given more comes back with fewer than were asked for, and only
//! `ENOENT` says that nothing is left (kernel/bpf/hashtab.c, `__htab_map_lookup_and_delete_batch`).

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::MapCore;
use rxpath_host::HostError;

use super::{Give, MapEntry};

/// Entries that one call asks for: 0.2 MB of the largest map.
const ASKED: u32 = 1024;

/// Reads them; an entry that is added or removed meanwhile may be missed.
///
/// **Errors** as [`each`].
pub fn entries(map: &libbpf_rs::Map<'_>) -> Result<Vec<MapEntry>, HostError> {
    let mut entries = Vec::new();
    each(map, &mut |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(entries)
}

/// Gives them to `give`, which may remove them: a bucket that was given is not read again. An entry that is added or
/// removed meanwhile may be missed.
///
/// **Errors** the kernel's, and the first of `give`.
pub fn each(map: &libbpf_rs::Map<'_>, give: Give<'_>) -> Result<(), HostError> {
    let (key, value) = (map.key_size() as usize, map.value_size() as usize);
    let mut batch = Batch::new(map.as_fd().as_raw_fd(), key, value);
    loop {
        let errno = batch.read();
        match errno {
            0 | libc::ENOENT => batch.give(key, value, give)?,
            // One bucket holds more than was asked for.
            libc::ENOSPC => batch.grow(key, value),
            other => {
                let what = format!("read the map {}", map.name().to_string_lossy());
                return Err(HostError::kernel(what, other));
            }
        }
        if errno == libc::ENOENT {
            return Ok(());
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

    fn give(&self, key: usize, value: usize, give: Give<'_>) -> Result<(), HostError> {
        let keys = self.keys.chunks_exact(key);
        let mut both = keys.zip(self.values.chunks_exact(value)).take(self.got as usize);
        both.try_for_each(|(key, value)| give(key, value))
    }

    fn grow(&mut self, key: usize, value: usize) {
        self.room = self.room.saturating_mul(2);
        self.keys.resize(self.room as usize * key, 0);
        self.values.resize(self.room as usize * value, 0);
    }
}
