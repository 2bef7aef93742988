//! What third-party programs print, kept in memory until their end.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::shared::locked;

/// Output beyond this is read and not kept.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// What was kept so far; bytes that are no UTF-8 are replaced.
pub(super) fn said(kept: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&locked(kept)).into_owned()
}

/// Keeps what comes out of a pipe, in a thread that ends with the pipe.
pub(super) fn keep(
    mut pipe: impl Read + Send + 'static,
    kept: &Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<()> {
    let kept = Arc::clone(kept);
    std::thread::spawn(move || {
        let mut chunk = [0u8; 8192];
        while let Ok(n @ 1..) = pipe.read(&mut chunk) {
            let mut kept = locked(&kept);
            if (kept.len() as u64) < OUTPUT_LIMIT {
                kept.extend_from_slice(&chunk[..n]);
            }
        }
    })
}
