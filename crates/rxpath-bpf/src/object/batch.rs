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
    let mut room = ASKED;
    let mut keys = vec![0u8; room as usize * key];
    let mut values = vec![0u8; room as usize * value];
    // The place at which the last call ended; none before the first.
    let mut place: Option<Vec<u8>> = None;
    loop {
        // A place is a bucket's number, or a key where the map has no buckets.
        let mut next = vec![0u8; key.max(8)];
        let mut got = room;
        let from = place.as_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr);
        // SAFETY: keys and values have room for `got` entries of this map's sizes; both places for the larger of a key
        // and a bucket's number; all outlive the call.
        let rc = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from.cast(),
                next.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut got,
                std::ptr::null(),
            )
        };
        match -rc {
            0 | libc::ENOENT => {
                let both = keys.chunks_exact(key).zip(values.chunks_exact(value));
                both.take(got as usize).try_for_each(|(key, value)| give(key, value))?;
            }
            // One bucket holds more than was asked for.
            libc::ENOSPC => {
                room = room.saturating_mul(2);
                keys.resize(room as usize * key, 0);
                values.resize(room as usize * value, 0);
                continue;
            }
            other => {
                let what = format!("read the map {}", map.name().to_string_lossy());
                return Err(HostError::kernel(what, other));
            }
        }
        if rc != 0 {
            return Ok(());
        }
        place = Some(next);
    }
}
