//! What a setting belonged to when it was changed, so that a later thing of the same name is not taken for it.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{HostError, Root};

/// What tells a thing from another one that gets its name or number later in this boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Identity {
    /// A network device: its index stays when it is renamed and is not given again.
    Device {
        /// Index in its network namespace.
        index: u32,
    },
    /// An interrupt: numbers are given again, the names of the handlers tell to whom.
    Irq {
        /// Names of the handlers.
        users: String,
    },
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { index } => write!(f, "the device of index {index}"),
            Self::Irq { users } => write!(f, "the interrupt of {users}"),
        }
    }
}

/// The network namespace of this thread: the inode of its `nsfs` file.
///
/// **Source** namespaces(7). **Caveat** an inode can be given again once the namespace is gone.
pub fn network_namespace() -> Result<u64, HostError> {
    let path = Path::new("/proc/thread-self/ns/net");
    let meta = std::fs::metadata(path).map_err(|e| HostError::from_io("read", path, e))?;
    Ok(std::os::unix::fs::MetadataExt::ino(&meta))
}

/// This boot's id.
///
/// **Source** drivers/char/random.c `proc_do_uuid`.
pub fn boot_id() -> Result<String, HostError> {
    Root::host().value("/proc/sys/kernel/random/boot_id")
}
