//! Interrupt coalescing: how long and for how many frames a device waits before it interrupts.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, EthtoolQuestion};
use super::field::Answer;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;
use crate::{Group, HostError};

/// Of `ETHTOOL_A_COALESCE_*` those that are no single value.
pub(crate) mod attr {
    pub(crate) const RX_PROFILE: u16 = 29;
    pub(crate) const PROFILE_IRQ_MODERATION: u16 = 1;
    pub(crate) const MODERATION_USEC: u16 = 1;
    pub(crate) const MODERATION_PKTS: u16 = 2;
    pub(crate) const MODERATION_COMPS: u16 = 3;
}

/// Parameters that few drivers have.
const RARE: [&str; 15] = [
    "stats-block-usecs",
    "pkt-rate-low",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "pkt-rate-high",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
    "sample-interval",
    "tx-aggr-max-bytes",
    "tx-aggr-max-frames",
    "tx-aggr-time-usecs",
];

/// One step of an adaptive moderation profile (6.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Moderation {
    /// Microseconds.
    pub usecs: u32,
    /// Packets.
    pub packets: u32,
    /// Completions.
    pub completions: u32,
}

/// Coalescing of a device; `None` is a parameter that the driver does not take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Coalesce {
    /// Microseconds from the first packet to the interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_usecs: Option<u32>,
    /// Packets until the interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_max_frames: Option<u32>,
    /// The same while an interrupt is being served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_usecs_irq: Option<u32>,
    /// The same while an interrupt is being served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_max_frames_irq: Option<u32>,
    /// Microseconds from a transmission to its completion interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_usecs: Option<u32>,
    /// Transmissions until the interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_max_frames: Option<u32>,
    /// The same while an interrupt is being served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_usecs_irq: Option<u32>,
    /// The same while an interrupt is being served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_max_frames_irq: Option<u32>,
    /// Moderation follows the load: `rx_usecs` is then not the delay that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_rx: Option<bool>,
    /// The same for transmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_tx: Option<bool>,
    /// The timer restarts with each completion instead of each event (5.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cqe_mode_rx: Option<bool>,
    /// The same for transmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cqe_mode_tx: Option<bool>,
    /// Steps of the adaptive moderation of receiving (6.11); empty where the driver shows none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rx_profile: Vec<Moderation>,
    /// Parameters that few drivers have, by the names of the `ethtool` program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rare: BTreeMap<String, u32>,
}

/// Coalescing of a device.
///
/// **Errors** `Unsupported` for drivers without it.
pub const COALESCE: EthtoolQuestion<Coalesce> =
    EthtoolQuestion::new("coalescing", Command::CoalesceGet, parse_coalesce);

/// Reads an answer to the coalescing question (net/ethtool/coalesce.c `coalesce_fill_reply`).
pub fn parse_coalesce(payload: &[u8]) -> Result<Coalesce, HostError> {
    let answer = Answer::of_attributes(Group::Coalesce, payload)?;
    let rx_profile = profile(&Attrs::after(payload, genl::HEADER)?)?;
    Ok(Coalesce { rx_profile, ..Coalesce::from(&answer) })
}

impl From<&Answer> for Coalesce {
    fn from(answer: &Answer) -> Self {
        let rare = RARE.iter().filter_map(|name| Some(((*name).to_owned(), answer.number(name)?)));
        Self {
            rx_usecs: answer.number("rx-usecs"),
            rx_max_frames: answer.number("rx-frames"),
            rx_usecs_irq: answer.number("rx-usecs-irq"),
            rx_max_frames_irq: answer.number("rx-frames-irq"),
            tx_usecs: answer.number("tx-usecs"),
            tx_max_frames: answer.number("tx-frames"),
            tx_usecs_irq: answer.number("tx-usecs-irq"),
            tx_max_frames_irq: answer.number("tx-frames-irq"),
            adaptive_rx: answer.is_on("adaptive-rx"),
            adaptive_tx: answer.is_on("adaptive-tx"),
            cqe_mode_rx: answer.is_on("cqe-mode-rx"),
            cqe_mode_tx: answer.is_on("cqe-mode-tx"),
            rx_profile: Vec::new(),
            rare: rare.into_map(),
        }
    }
}

fn profile(attrs: &Attrs<'_>) -> Result<Vec<Moderation>, HostError> {
    let steps = attrs.nest(attr::RX_PROFILE)?;
    let steps = steps.iter().filter(|(kind, _)| *kind == attr::PROFILE_IRQ_MODERATION);
    steps
        .map(|(_, bytes)| {
            let step = Attrs::parse(bytes)?;
            Ok(Moderation {
                usecs: step.u32(attr::MODERATION_USEC).unwrap_or_default(),
                packets: step.u32(attr::MODERATION_PKTS).unwrap_or_default(),
                completions: step.u32(attr::MODERATION_COMPS).unwrap_or_default(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;

    #[test]
    fn what_the_driver_does_not_take_is_none_and_unknown_attributes_are_left_alone() {
        let step = Body::default().u32(1, 8).u32(2, 64).u32(3, 0);
        let body = Body::new(&[20, 1, 0, 0])
            .u32(2, 3)
            .u8(11, 1)
            .raw(25, &[])
            .nest(attr::RX_PROFILE, &Body::default().nest(1, &step))
            .u32(23, 9)
            .raw(777, &[1, 2, 3]);
        let found = parse_coalesce(body.bytes()).unwrap();
        assert_eq!((found.rx_usecs, found.adaptive_rx), (Some(3), Some(true)));
        assert_eq!((found.rx_max_frames, found.cqe_mode_rx), (None, None), "empty is no value");
        assert_eq!(found.rx_profile, [Moderation { usecs: 8, packets: 64, completions: 0 }]);
        assert_eq!(found.rare["sample-interval"], 9);
    }
}
