//! Hardware time stamps to ask for.
//!
//! **Source** linux/net_tstamp.h `SIOCSHWTSTAMP`, `struct hwtstamp_config`; net/core/dev_ioctl.c.

use crate::HostError;
use crate::ioctl::{issue, put};
use crate::read::ioctl::StampConfig;

const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;

/// Asks for other stamps.
///
/// **Source** net/core/dev_ioctl.c `dev_set_hwtstamp`. **Caveat** a driver may stamp more than what is asked for; some
/// reset the link.
pub fn set_stamp_config(dev: &str, config: StampConfig) -> Result<(), HostError> {
    let mut buffer = [0; 12];
    put(&mut buffer, &[config.flags, config.tx_type, config.rx_filter]);
    issue(SIOCSHWTSTAMP, "set the time stamps of", dev, &mut buffer)
}
