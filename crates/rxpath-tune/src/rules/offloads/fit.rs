//! Sizes that do not fit: an MTU above that of the other end or of the device below, and size limits of merged packets.

use crate::prelude::*;

/// A VLAN tag, by which a frame may be longer than the MTU. **Source** include/linux/netdevice.h
/// `__is_skb_forwardable`.
const VLAN_BYTES: u32 = 4;

/// What an overlay adds to each packet: outer IPv4, UDP, its own header, inner Ethernet. IPv6 adds 20 more.
/// **Source** include/net/vxlan.h `VXLAN_HEADROOM`.
const OVERLAYS: [(&str, u32); 1] = [("vxlan", 50)];

/// The kernel's default size limit of merged packets, in bytes: `GRO_LEGACY_MAX_SIZE`, `GSO_LEGACY_MAX_SIZE`.
const JOINED_BYTES: u32 = 65_536;
/// Nobody sets less for speed.
const SMALL_BYTES: u32 = 16_384;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("mtu-fit", Check::Active(mtu)), ("joined-size", Check::Active(joined))];

fn mtu(ask: &Ask<'_>, device: &Device) -> Checked {
    let link = (&device.nic.link).known()?;
    match link.kind.as_deref() {
        Some("veth") => {
            let other = link.other_end.as_ref().ok_or_else(|| {
                Gap::Absent(
                    "the other end is not shown: it needs CAP_NET_ADMIN in its namespace".into(),
                )
            })?;
            let place = if other.is_elsewhere { ", in another namespace," } else { "" };
            let words = format!("its other end{place} has {}", other.mtu_bytes);
            fits(
                device,
                link.mtu_bytes,
                (other.mtu_bytes.saturating_add(VLAN_BYTES), other.mtu_bytes),
                &words,
            )
        }
        Some(kind) => match OVERLAYS.iter().find(|(known, _)| *known == kind) {
            Some((_, headers)) => overlay(ask, device, link.mtu_bytes, *headers),
            None => Answer::silent(format!(
                "a {kind}: only veth and VXLAN are judged; the kernel keeps VLANs and macvlans within the device below"
            )),
        },
        None => Answer::silent("no virtual device"),
    }
}

/// An overlay, whose packets carry so many bytes of headers, over the devices below.
fn overlay(ask: &Ask<'_>, device: &Device, own: u32, headers: u32) -> Checked {
    let names = ask.facts.list(&device.path("")).known()?;
    let below = names.iter().filter_map(|name| name.strip_prefix("lower_"));
    let least = below
        .filter_map(|name| ask.facts.device(name))
        .filter_map(|lower| Some((*lower.sysfs.mtu_bytes.value()?, lower.name.clone())))
        .min();
    let Some((bytes, name)) = least else {
        return Answer::silent(
            "bound to no device below: its packets leave by whatever route they have",
        );
    };
    let most = bytes.saturating_sub(headers);
    fits(
        device,
        own,
        (most, most),
        &format!("{name} below has {bytes}, of which headers take {headers}"),
    )
}

/// Whether the own MTU is within `most`; `wanted` is what to set.
fn fits(device: &Device, own: u32, (most, wanted): (u32, u32), words: &str) -> Checked {
    let told = format!("MTU {own}; {words}");
    if own <= most {
        return Answer::fine(told);
    }
    let knob = Knob::part(&device.name, Group::Link, "mtu");
    let found = Answer::found(
        told,
        format!("at most {wanted}"),
        "larger packets are dropped or fragmented, and the sender is not informed",
    );
    // Below 1280 IPv6 leaves the device with all its addresses.
    if wanted < 1280 {
        return found.advice("a larger MTU at the other end or below");
    }
    found.change(Set::new(knob, u64::from(wanted)))
}

fn joined(_: &Ask<'_>, device: &Device) -> Checked {
    let link = (&device.nic.link).known()?;
    let driver = link.tso_max_bytes.unwrap_or(0).min(JOINED_BYTES);
    let limits = [
        ("gro_max_size", link.gro_max_bytes, JOINED_BYTES),
        ("gro_ipv4_max_size", link.gro_ipv4_max_bytes, JOINED_BYTES),
        ("gso_max_size", link.gso_max_bytes, driver),
    ];
    let known: Vec<(&str, u32, u32)> =
        limits.into_iter().filter_map(|(name, now, most)| Some((name, now?, most))).collect();
    if known.is_empty() {
        return Err(Gap::Absent(
            "the kernel does not report the size limits of merged packets".into(),
        ));
    }
    let told = |all: &[(&str, u32, u32)]| {
        all.iter().map(|(name, now, _)| format!("{name} {now}")).collect::<Vec<_>>().join(", ")
    };
    let low: Vec<(&str, u32, u32)> =
        known.iter().copied().filter(|(_, now, most)| *now < SMALL_BYTES && now < most).collect();
    if low.is_empty() {
        return Answer::fine(told(&known));
    }
    let sets = low.iter().map(|(name, _, most)| {
        let knob = Knob::part(&device.name, Group::Link, &name.replace('_', "-"));
        Set::new(knob, u64::from(*most))
    });
    Answer::observed(told(&low)).changes(sets)
}
