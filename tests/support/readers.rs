//! What a driver says over netlink held against what it says by ioctl: old kernels have the ioctl alone, and the facts
//! must not depend on the way they came.

use std::fmt::Debug;

use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::ioctl;
use rxpath_host::read::netlink::ethtool::{
    CHANNELS, COALESCE, Coalesce, EEE, FEATURES, FEC, Fec, LINK_MODES, LINK_PORT, LINK_STATE,
    LinkModes, LinkState, PAUSE, PRIVATE_FLAGS, Pause, RINGS, Rings,
};

/// The devices of this namespace that come and go with no test: loopback and those with hardware behind them.
pub fn lasting() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let lasts = |name: &String| {
        name == "lo" || std::path::Path::new(&format!("/sys/class/net/{name}/device")).exists()
    };
    names.filter(lasts).collect()
}

/// Asks both ways for each topic and fails where they differ; gives the topics that the driver has.
pub fn agree(dev: &str) -> Vec<&'static str> {
    let mut ask = Netlink::generic().unwrap();
    let topics = [
        ("rings", same(dev, ask.ethtool(&RINGS, dev).map(rings), ioctl::rings(dev))),
        ("channels", same(dev, ask.ethtool(&CHANNELS, dev), ioctl::channels(dev))),
        ("coalesce", same(dev, ask.ethtool(&COALESCE, dev).map(coalesce), ioctl::coalesce(dev))),
        ("pause", same(dev, ask.ethtool(&PAUSE, dev).map(pause), ioctl::pause(dev))),
        ("features", same(dev, ask.ethtool(&FEATURES, dev), ioctl::features(dev))),
        ("private-flags", same(dev, ask.ethtool(&PRIVATE_FLAGS, dev), ioctl::private_flags(dev))),
        ("eee", same(dev, ask.ethtool(&EEE, dev), ioctl::eee(dev))),
        ("fec", same(dev, ask.ethtool(&FEC, dev).map(fec), ioctl::fec(dev))),
        ("link-modes", same(dev, ask.ethtool(&LINK_MODES, dev).map(modes), ioctl::link_modes(dev))),
        ("port", same(dev, ask.ethtool(&LINK_PORT, dev), ioctl::link_port(dev))),
        (
            "link-state",
            same(dev, ask.ethtool(&LINK_STATE, dev).and_then(state), ioctl::link_state(dev)),
        ),
    ];
    topics.into_iter().filter_map(|(topic, there)| there.then_some(topic)).collect()
}

/// Whether the driver has it: both ways must say the same of that too.
fn same<T: PartialEq + Debug>(
    dev: &str,
    netlink: Result<T, HostError>,
    ioctl: Result<T, HostError>,
) -> bool {
    match (netlink, ioctl) {
        (Ok(netlink), Ok(ioctl)) => {
            assert_eq!(netlink, ioctl, "{dev}: netlink left, ioctl right");
            true
        }
        (Err(netlink), Err(ioctl)) if is_lacking(&netlink) && is_lacking(&ioctl) => false,
        (netlink, ioctl) => panic!("{dev}: netlink {netlink:?}, ioctl {ioctl:?}"),
    }
}

/// With or without words of the kernel's own.
fn is_lacking(error: &HostError) -> bool {
    const EOPNOTSUPP: i32 = 95;
    matches!(error, HostError::Unsupported { .. } | HostError::Kernel { errno: EOPNOTSUPP, .. })
}

/// The old structure has four kinds of rings and nothing else.
fn rings(all: Rings) -> Rings {
    let Rings { rx, rx_mini, rx_jumbo, tx, .. } = all;
    Rings { rx, rx_mini, rx_jumbo, tx, ..Rings::default() }
}

/// The old structure tells no zero from "the driver has no such parameter".
fn coalesce(all: Coalesce) -> Coalesce {
    let some = |value: Option<u32>| value.filter(|value| *value != 0);
    let on = |value: Option<bool>| value.filter(|on| *on);
    let rare = all.rare.into_iter();
    Coalesce {
        rx_usecs: some(all.rx_usecs),
        rx_max_frames: some(all.rx_max_frames),
        rx_usecs_irq: some(all.rx_usecs_irq),
        rx_max_frames_irq: some(all.rx_max_frames_irq),
        tx_usecs: some(all.tx_usecs),
        tx_max_frames: some(all.tx_max_frames),
        tx_usecs_irq: some(all.tx_usecs_irq),
        tx_max_frames_irq: some(all.tx_max_frames_irq),
        adaptive_rx: on(all.adaptive_rx),
        adaptive_tx: on(all.adaptive_tx),
        rare: rare.filter(|(name, value)| *value != 0 && !name.starts_with("tx-aggr")).collect(),
        ..Coalesce::default()
    }
}

fn pause(all: Pause) -> Pause {
    Pause { tx_pause_packets: None, rx_pause_packets: None, ..all }
}

fn fec(all: Fec) -> Fec {
    Fec { corrected_blocks: None, uncorrectable_blocks: None, ..all }
}

fn modes(all: LinkModes) -> LinkModes {
    LinkModes { lanes: None, ..all }
}

/// netlink answers without the state where the driver has none (net/ethtool/linkstate.c).
fn state(all: LinkState) -> Result<LinkState, HostError> {
    let missing = HostError::Unsupported { what: "link state".into(), needs: "a driver".into() };
    all.up.map(|up| LinkState { up: Some(up), ..LinkState::default() }).ok_or(missing)
}
