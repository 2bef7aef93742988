//! The `netdev` generic netlink family: queues, NAPI instances, queue statistics and page pools of a device.
//!
//! **Source** Documentation/netlink/specs/netdev.yaml, include/uapi/linux/netdev.h. The family came with 6.3
//! (`dev-get`), queues and NAPIs with 6.8, queue statistics with 6.9; each of them needs the driver's help.

mod page_pool;
mod queue_stats;

pub use page_pool::{PagePool, PagePoolStats, parse_page_pool, parse_page_pool_stats};
pub use queue_stats::{QueueStats, parse_queue_stats};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::netlink::genl::{self, Family};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};

pub(crate) const NETDEV: Family = Family { name: "netdev", needs: "Linux 6.3" };

/// The questions; there is no order among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Question {
    Device = 1,
    PagePool = 5,
    PagePoolStats = 9,
    Queue = 10,
    Napi = 11,
    QueueStats = 12,
}

// NETDEV_A_DEV_*
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
const DEV_XDP_ZC_MAX_SEGS: u16 = 4;
// NETDEV_A_QUEUE_*
const QUEUE_ID: u16 = 1;
const QUEUE_IFINDEX: u16 = 2;
const QUEUE_TYPE: u16 = 3;
const QUEUE_NAPI_ID: u16 = 4;
const QUEUE_XSK: u16 = 7;
// NETDEV_A_NAPI_*
const NAPI_IFINDEX: u16 = 1;
pub(crate) const NAPI_ID: u16 = 2;
const NAPI_IRQ: u16 = 3;
const NAPI_PID: u16 = 4;
const NAPI_DEFER_HARD_IRQS: u16 = 5;
const NAPI_GRO_FLUSH_TIMEOUT: u16 = 6;
const NAPI_IRQ_SUSPEND_TIMEOUT: u16 = 7;
const NAPI_THREADED: u16 = 8;

/// Bits of `xdp-features` (`enum netdev_xdp_act`), in their order.
const XDP_FEATURES: [&str; 7] =
    ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"];

/// What a queue does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// Receives.
    Rx,
    /// Transmits.
    Tx,
}

impl QueueKind {
    fn read(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Rx),
            1 => Some(Self::Tx),
            _ => None,
        }
    }
}

/// XDP abilities of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct XdpAbilities {
    /// By the names of `enum netdev_xdp_act`: `basic`, `redirect`, ...
    pub features: Vec<String>,
    /// Most fragments of a packet with zero copy (6.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_copy_segments: Option<u32>,
}

/// One queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// What it does.
    pub kind: QueueKind,
    /// Number among its kind.
    pub index: u32,
    /// The NAPI instance that serves it; `None` where the driver did not link them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi_id: Option<u32>,
    /// An AF_XDP socket is bound to it (6.16).
    #[serde(default)]
    pub has_xsk: bool,
}

/// One NAPI instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Napi {
    /// Its number, which sockets report as `SO_INCOMING_NAPI_ID`.
    pub id: u32,
    /// Its interrupt; `None` where the driver did not link them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq: Option<u32>,
    /// Its thread, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_pid: Option<u32>,
    /// Empty polls before interrupts are enabled again (6.13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defer_hard_irqs_count: Option<u32>,
    /// GRO flush and poll timer, in ns (6.13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_flush_timeout_ns: Option<u64>,
    /// Longest time with interrupts masked while an application keeps finding data, in ns (6.13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq_suspend_timeout_ns: Option<u64>,
    /// 0 softirq, 1 thread, 2 thread that polls all the time (6.17, 6.19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threaded: Option<u32>,
}

pub(super) fn question(question: Question) -> Body {
    Body::new(&genl::header(question as u8))
}

impl Netlink {
    fn netdev_dump(&mut self, what: &str, body: &Body) -> Result<Vec<Vec<u8>>, HostError> {
        self.family_dump(&format!("read {what}"), NETDEV, body)
    }

    /// XDP abilities of a device by its index (6.3).
    pub fn xdp_abilities(&mut self, ifindex: u32) -> Result<XdpAbilities, HostError> {
        let body = question(Question::Device).u32(DEV_IFINDEX, ifindex);
        parse_xdp_abilities(&self.family_get("read XDP abilities", NETDEV, &body)?)
    }

    /// Queues of a device by its index (6.8); none while it is down.
    pub fn device_queues(&mut self, ifindex: u32) -> Result<Vec<Queue>, HostError> {
        let body = question(Question::Queue).u32(QUEUE_IFINDEX, ifindex);
        let replies = self.netdev_dump("queues", &body)?;
        all(&replies, ifindex, QUEUE_IFINDEX, parse_queue)
    }

    /// NAPI instances of a device by its index (6.8); none while it is down.
    pub fn napis(&mut self, ifindex: u32) -> Result<Vec<Napi>, HostError> {
        let body = question(Question::Napi).u32(NAPI_IFINDEX, ifindex);
        let replies = self.netdev_dump("NAPI instances", &body)?;
        all(&replies, ifindex, NAPI_IFINDEX, parse_napi)
    }
}

/// The objects of one device: kernels that don't filter give those of all.
fn all<T>(
    replies: &[Vec<u8>],
    ifindex: u32,
    kind: u16,
    parse: impl Fn(&[u8]) -> Result<Option<T>, HostError>,
) -> Result<Vec<T>, HostError> {
    let mut found = Vec::new();
    for reply in replies {
        let of = Attrs::after(reply, genl::HEADER)?.u32(kind);
        if of == Some(ifindex) {
            found.extend(parse(reply)?);
        }
    }
    Ok(found)
}

/// Reads an answer to the device question (net/core/netdev-genl.c `netdev_nl_dev_fill`).
pub fn parse_xdp_abilities(payload: &[u8]) -> Result<XdpAbilities, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let bits = attrs.u64(DEV_XDP_FEATURES).unwrap_or_default();
    let set = XDP_FEATURES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    Ok(XdpAbilities {
        features: set.map(|(_, name)| (*name).to_owned()).collect(),
        zero_copy_segments: attrs.u32(DEV_XDP_ZC_MAX_SEGS),
    })
}

/// Reads one queue (`netdev_nl_queue_fill_one`); `None` for a kind that is not known here.
pub fn parse_queue(payload: &[u8]) -> Result<Option<Queue>, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let kind = attrs.uint(QUEUE_TYPE).and_then(QueueKind::read);
    let (Some(kind), Some(index)) = (kind, attrs.u32(QUEUE_ID)) else { return Ok(None) };
    Ok(Some(Queue {
        kind,
        index,
        napi_id: attrs.u32(QUEUE_NAPI_ID),
        has_xsk: attrs.get(QUEUE_XSK).is_some(),
    }))
}

/// Reads one NAPI instance (`netdev_nl_napi_fill_one`); `None` without a number.
pub fn parse_napi(payload: &[u8]) -> Result<Option<Napi>, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(attrs.u32(NAPI_ID).map(|id| Napi {
        id,
        irq: attrs.u32(NAPI_IRQ),
        thread_pid: attrs.u32(NAPI_PID),
        defer_hard_irqs_count: attrs.u32(NAPI_DEFER_HARD_IRQS),
        gro_flush_timeout_ns: attrs.uint(NAPI_GRO_FLUSH_TIMEOUT),
        irq_suspend_timeout_ns: attrs.uint(NAPI_IRQ_SUSPEND_TIMEOUT),
        threaded: attrs.uint(NAPI_THREADED).and_then(|mode| u32::try_from(mode).ok()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_and_its_napi_are_read() {
        let queue = question(Question::Queue)
            .u32(QUEUE_ID, 3)
            .u32(QUEUE_IFINDEX, 2)
            .u32(QUEUE_TYPE, 0)
            .u32(QUEUE_NAPI_ID, 515);
        let read = parse_queue(queue.bytes()).unwrap().unwrap();
        assert_eq!((read.kind, read.index, read.napi_id), (QueueKind::Rx, 3, Some(515)));
        let napi = question(Question::Napi)
            .u32(NAPI_ID, 515)
            .raw(NAPI_GRO_FLUSH_TIMEOUT, &20_000u64.to_ne_bytes())
            .u32(NAPI_IRQ_SUSPEND_TIMEOUT, 7);
        let read = parse_napi(napi.bytes()).unwrap().unwrap();
        assert_eq!(read.gro_flush_timeout_ns, Some(20_000), "a number is as long as it needs");
        assert_eq!((read.irq_suspend_timeout_ns, read.irq), (Some(7), None));
        assert_eq!(
            parse_queue(question(Question::Queue).u32(QUEUE_TYPE, 9).bytes()).unwrap(),
            None
        );
    }

    #[test]
    fn only_the_asked_device_counts() {
        let queue = |ifindex| {
            question(Question::Queue)
                .u32(QUEUE_ID, 0)
                .u32(QUEUE_IFINDEX, ifindex)
                .u32(QUEUE_TYPE, 1)
                .bytes()
                .to_vec()
        };
        let found = all(&[queue(1), queue(2)], 2, QUEUE_IFINDEX, parse_queue).unwrap();
        assert_eq!(found.len(), 1);
    }
}
