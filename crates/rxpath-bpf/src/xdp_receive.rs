//! Takes the datagrams to one address from a device, before the kernel makes packets of them.
//!
//! A program on the device hands them to the AF_XDP socket of their queue, or drops them, and counts. It is attached by
//! a link, so that the kernel takes it from the device when this process ends, however it ends, and it never replaces
//! another program.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};

use rxpath_host::HostError;
use rxpath_host::read::netlink::{NetworkLink, XdpMode};

use crate::bytes::Fields;
use crate::object::{Loaded, MapSpec, ObjectSpec, ProgramSpec, compiled, map, unhooked};

/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`, include/uapi/linux/if_link.h.
const GENERIC: u32 = 2;
const NATIVE: u32 = 4;

const QUEUES: MapSpec = map("queues", 4, 40);
const SOCKETS: MapSpec = map("sockets", 4, 4);

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[QUEUES, SOCKETS],
    programs: &[own(XdpAction::Redirect), own(XdpAction::Drop)],
    ..compiled!("xdp_receive")
};

const fn own(action: XdpAction) -> ProgramSpec {
    unhooked(action.program(), "the receiver", true)
}

/// What happens to the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpAction {
    /// They go to the socket of their queue; where there is none, they pass.
    Redirect,
    /// They are dropped.
    Drop,
}

impl XdpAction {
    const fn program(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Drop => "drop",
        }
    }
}

/// Which datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFilter {
    /// Their destination; the unspecified address is every one of its family.
    pub to: SocketAddr,
    /// Tag of their frames.
    pub vlan_id: Option<u16>,
}

/// What became of the frames that came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpCounts {
    /// Datagrams that were wanted.
    pub matched: u64,
    /// Of these, handed to a socket.
    pub redirected: u64,
    /// Of these, dropped.
    pub dropped: u64,
    /// Of these, left to the kernel, because their queue had no socket.
    pub passed: u64,
    /// Others, left to the kernel.
    pub others: u64,
}

/// A program that is in the kernel and on no device yet, so that it can be given its sockets first.
#[derive(Debug)]
pub struct Prepared {
    loaded: Loaded,
    device: NetworkLink,
    queues: u32,
    action: XdpAction,
}

/// A program on a device; dropping it takes it off.
#[derive(Debug)]
pub struct XdpReceive {
    // Dropped first: it holds the program.
    _link: OwnedFd,
    loaded: Loaded,
    queues: u32,
    /// The kernel's number of the program.
    pub program_id: u32,
    /// Where the program runs.
    pub mode: XdpMode,
}

impl Prepared {
    /// Loads the program for a device with `queues` receive queues.
    ///
    /// **Errors** `Unsupported` where the device has a program already, which says which.
    pub fn load(
        device: &NetworkLink,
        queues: u32,
        wanted: XdpFilter,
        action: XdpAction,
    ) -> Result<Self, HostError> {
        vacant(device)?;
        let queues = queues.max(1);
        let sizes = [(QUEUES.name, queues), (SOCKETS.name, queues)];
        let loaded = Loaded::load(&SPEC, &constants(wanted), &sizes)?;
        Ok(Self { loaded, device: device.clone(), queues, action })
    }

    /// The socket of a queue.
    pub fn set_socket(&self, queue: u32, socket: RawFd) -> Result<(), HostError> {
        self.loaded.put(SOCKETS.name, &queue.to_ne_bytes(), &socket.to_ne_bytes())
    }

    /// Puts the program on the device: into its driver, or where that cannot run it, behind it.
    pub fn attach(self) -> Result<XdpReceive, HostError> {
        let Self { loaded, device, queues, action } = self;
        let program = action.program();
        let attach = |flags| loaded.attach_xdp(program, device.index, flags);
        let (link, mode) = match attach(NATIVE) {
            Ok(link) => (link, XdpMode::Native),
            Err(first) => match attach(GENERIC) {
                Ok(link) => (link, XdpMode::Generic),
                // If another one came in between, its refusal is the first one.
                Err(_) => return Err(named(first, &device.name)),
            },
        };
        let program_id = loaded.id(program)?;
        Ok(XdpReceive { _link: link, loaded, queues, program_id, mode })
    }
}

impl XdpReceive {
    /// What became of the frames of all queues so far.
    pub fn counts(&self) -> Result<XdpCounts, HostError> {
        let mut sum = XdpCounts::default();
        for queue in 0..self.queues {
            for of_cpu in self.loaded.values(QUEUES.name, queue)? {
                sum.add(&of_cpu);
            }
        }
        Ok(sum)
    }
}

impl XdpCounts {
    /// Adds what one CPU counted.
    fn add(&mut self, value: &[u8]) {
        let [matched, redirected, dropped, passed, others] = Fields::of(value).array();
        self.matched += matched;
        self.redirected += redirected;
        self.dropped += dropped;
        self.passed += passed;
        self.others += others;
    }
}

/// What people call a mode.
pub fn word(mode: XdpMode) -> &'static str {
    match mode {
        XdpMode::Native => "native",
        XdpMode::Generic => "generic",
        XdpMode::Offloaded => "offloaded",
    }
}

/// A program that is there is never replaced: somebody needs it.
fn vacant(device: &NetworkLink) -> Result<(), HostError> {
    let Some(other) = device.xdp.first() else { return Ok(()) };
    let mode = word(other.mode);
    let needs = format!(
        "a device without one: program {} is on it, {mode} (see `bpftool prog show id {0}`)",
        other.program_id
    );
    Err(HostError::unsupported(format!("put an XDP program on {}", device.name), needs))
}

fn named(error: HostError, device: &str) -> HostError {
    match error {
        HostError::Kernel { op, errno, extack } => {
            HostError::Kernel { op: format!("{op} to {device}"), errno, extack }
        }
        other => other,
    }
}

/// The object's `config`.
fn constants(wanted: XdpFilter) -> Vec<u8> {
    let mut bytes = match wanted.to.ip() {
        IpAddr::V4(ip) => [ip.octets().as_slice(), &[0; 12]].concat(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let vlan = u32::from(wanted.vlan_id.unwrap_or(0));
    for word in [u32::from(wanted.to.is_ipv6()), wanted.to.port().into(), vlan] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rxpath_host::read::netlink::XdpProgram;

    use super::*;

    #[test]
    fn the_program_knows_the_address_the_port_and_the_tag() {
        let to = "198.18.1.1:4321".parse().unwrap();
        let bytes = constants(XdpFilter { to, vlan_id: Some(7) });
        assert_eq!(bytes[..5], [198, 18, 1, 1, 0]);
        assert_eq!(bytes[16..20], 0u32.to_ne_bytes());
        assert_eq!(bytes[20..24], 4321u32.to_ne_bytes());
        assert_eq!(bytes[24..], 7u32.to_ne_bytes());
        let bytes = constants(XdpFilter { to: "[2001:2::1]:1".parse().unwrap(), vlan_id: None });
        assert_eq!((bytes[0], bytes[15], bytes[16] | bytes[19]), (0x20, 1, 1));
    }

    #[test]
    fn a_program_of_somebody_else_is_named_and_stays() {
        let other = XdpProgram { mode: XdpMode::Generic, program_id: 77 };
        let device =
            NetworkLink { name: "eth0".into(), xdp: vec![other], ..NetworkLink::default() };
        let to = "198.18.1.1:1".parse().unwrap();
        let wanted = XdpFilter { to, vlan_id: None };
        let error = Prepared::load(&device, 1, wanted, XdpAction::Drop).unwrap_err().to_string();
        assert!(error.contains("program 77 is on it, generic"), "{error}");
    }

    #[test]
    fn counts_of_all_cpus_are_added() {
        let mut sum = XdpCounts::default();
        let value: Vec<u8> = (1..=5u64).flat_map(u64::to_ne_bytes).collect();
        sum.add(&value);
        sum.add(&value);
        let twice = XdpCounts { matched: 2, redirected: 4, dropped: 6, passed: 8, others: 10 };
        assert_eq!(sum, twice);
    }
}
