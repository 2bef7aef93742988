//! The queue, RPS CPU and socket of a flow, computed once per flow.

use rxpath_core::toeplitz::{hash, reciprocal_scale};

use super::parameters::Parameters;

/// The key of the verification suite, which many drivers have as their default.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Where a flow goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub queue: u8,
    /// CPU of the backlog, when RPS is on.
    pub cpu: u8,
    pub socket: u16,
}

/// The ways of all flows; flow numbers of a trace are taken modulo the table.
#[derive(Debug)]
pub(super) struct Steering {
    ways: Vec<Way>,
    mask: u32,
}

impl Steering {
    pub(super) fn new(p: &Parameters, flows: u32) -> Self {
        let table = flows.next_power_of_two();
        Self { ways: (0..table).map(|flow| way(p, flow)).collect(), mask: table - 1 }
    }

    #[inline]
    pub(super) fn of(&self, flow: u32) -> Way {
        self.ways[(flow & self.mask) as usize]
    }
}

/// The flow's addresses are 10.0.x.y to 10.1.0.1, its ports 1024 and up to 4321.
fn way(p: &Parameters, flow: u32) -> Way {
    let mut data = vec![10, 0, (flow >> 8) as u8, flow as u8, 10, 1, 0, 1];
    data.extend(((1024 + flow % 64_000) as u16).to_be_bytes());
    data.extend(4321_u16.to_be_bytes());
    let hash = hash(&KEY, &data).unwrap_or(0);
    let cpus = p.rps_cpus.len() as u64;
    let cpu = if cpus == 0 { 0 } else { p.rps_cpus[reciprocal_scale(hash, cpus) as usize] };
    Way {
        queue: (u64::from(hash) % p.indirection % p.queues as u64) as u8,
        cpu: cpu as u8,
        socket: reciprocal_scale(hash, p.sockets as u64) as u16,
    }
}
