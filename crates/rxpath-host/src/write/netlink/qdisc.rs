//! The few queueing disciplines that are installed.

use libc::{RTM_DELQDISC, RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS};

use crate::HostError;
use crate::netlink::socket::{Netlink, REPLACE};
use crate::netlink::wire::Body;
use crate::read::netlink::qdisc::{TCA_FQ_PLIMIT, TCA_TBF_PARMS, TCA_TBF_RATE64, header};

// linux/pkt_sched.h
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;

/// The handle of what this program installs: `1:`.
const HANDLE: u32 = 0x0001_0000;

/// A root qdisc to install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QdiscSpec {
    /// Token bucket: a rate in bits a second, bucket and queue in bytes.
    Tbf {
        /// **Unit** bits a second.
        rate_bps: u64,
        /// **Unit** bytes; at least a frame with its Ethernet header, or nothing passes.
        burst_bytes: u32,
        /// **Unit** bytes.
        limit_bytes: u32,
    },
    /// One queue bounded in packets.
    Pfifo {
        /// **Unit** packets.
        limit_packets: u32,
    },
    /// One queue bounded in bytes.
    Bfifo {
        /// **Unit** bytes.
        limit_bytes: u32,
    },
    /// Fair queue with pacing; `None` leaves the kernel's default.
    Fq {
        /// **Unit** packets in all.
        limit_packets: Option<u32>,
        /// **Unit** packets of one flow.
        flow_limit_packets: Option<u32>,
    },
    /// No queue: the driver takes each packet or it is lost.
    Noqueue,
}

impl QdiscSpec {
    /// The kernel's name of it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tbf { .. } => "tbf",
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::Fq { .. } => "fq",
            Self::Noqueue => "noqueue",
        }
    }

    fn add_options(&self, body: Body) -> Body {
        match *self {
            Self::Tbf { rate_bps, burst_bytes, limit_bytes } => {
                body.nest(TCA_OPTIONS, &tbf(rate_bps / 8, burst_bytes, limit_bytes))
            }
            Self::Pfifo { limit_packets: limit } | Self::Bfifo { limit_bytes: limit } => {
                body.u32(TCA_OPTIONS, limit)
            }
            Self::Fq { limit_packets, flow_limit_packets } => {
                let options = Body::default()
                    .with(limit_packets, |body, limit| body.u32(TCA_FQ_PLIMIT, limit))
                    .with(flow_limit_packets, |body, limit| body.u32(TCA_FQ_FLOW_PLIMIT, limit));
                body.nest(TCA_OPTIONS, &options)
            }
            Self::Noqueue => body,
        }
    }
}

/// Options of tbf: `struct tc_tbf_qopt`, then the burst in bytes, which needs no rate table.
///
/// **Source** `net/sched/sch_tbf.c` `tbf_change`.
fn tbf(rate: u64, burst: u32, limit: u32) -> Body {
    let mut parms = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    parms.extend(u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    parms.extend([0; 12]); // no peak rate
    parms.extend([limit, 0, 0].into_iter().flat_map(u32::to_ne_bytes));
    let body = Body::default().raw(TCA_TBF_PARMS, &parms).u32(TCA_TBF_BURST, burst);
    // The 64-bit rate counts only above what 32 bits hold.
    if rate > u64::from(u32::MAX) { body.raw(TCA_TBF_RATE64, &rate.to_ne_bytes()) } else { body }
}

impl Netlink {
    /// Installs a root qdisc with handle `1:` in the place of what is there.
    ///
    /// **Caveat** the old one goes first (a handle can't change its kind): its packets and counters go
    /// with it.
    pub fn set_qdisc(&mut self, dev: &str, spec: QdiscSpec) -> Result<(), HostError> {
        self.reset_qdisc(dev)?;
        let index = self.index(dev)?;
        // noqueue has no handle of its own (sch_generic.c noqueue_qdisc_ops).
        let handle = if spec == QdiscSpec::Noqueue { 0 } else { HANDLE };
        let body = Body::new(&header(index, handle)).text(TCA_KIND, spec.kind());
        let op = format!("install qdisc {} on {dev}", spec.kind());
        let body = spec.add_options(body);
        match self.change(&op, RTM_NEWQDISC, REPLACE, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => Err(HostError::Unsupported {
                what: op,
                needs: format!("a kernel with the {} qdisc (CONFIG_NET_SCH_*)", spec.kind()),
            }),
            other => other,
        }
    }

    /// Removes the root qdisc; the kernel puts its default back.
    pub(crate) fn reset_qdisc(&mut self, dev: &str) -> Result<(), HostError> {
        let index = self.index(dev)?;
        let op = format!("remove the root qdisc of {dev}");
        match self.change(&op, RTM_DELQDISC, 0, &header(index, 0)) {
            // The default itself can't be removed (sch_api.c tc_get_qdisc: "handle of zero").
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::netlink::qdisc::{DeviceQdisc, QdiscLimit};

    #[test]
    fn what_is_installed_is_what_would_be_read() {
        let read = |spec: QdiscSpec| {
            let body = Body::new(&header(4, HANDLE)).text(TCA_KIND, spec.kind());
            DeviceQdisc::parse(spec.add_options(body).bytes()).unwrap()
        };
        let shaper =
            read(QdiscSpec::Tbf { rate_bps: 1_000_000, burst_bytes: 1600, limit_bytes: 3000 });
        assert_eq!(shaper.limit, Some(QdiscLimit::Bytes(3000)));
        assert_eq!(shaper.rate_bps, Some(1_000_000));
        let fq = read(QdiscSpec::Fq { limit_packets: Some(9), flow_limit_packets: None });
        assert_eq!((fq.kind.as_str(), fq.limit), ("fq", Some(QdiscLimit::Packets(9))));
    }
}
