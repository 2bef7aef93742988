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

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "mtu-fit",
        what: "Does the MTU of a virtual device fit its other end, and the device below?",
        applies: "veth devices whose other end may be seen, and overlays bound to a device below",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "packets larger than the smaller MTU are dropped without a message to the sender, or fragmented",
        check: Check::Active(mtu),
        why: "Small packets pass and large ones do not: connections open and then hang.",
        mechanism: "veth_forward_skb calls __dev_forward_skb, whose is_skb_forwardable \
                    (include/linux/netdevice.h) drops packets longer than the receiving end's MTU plus a VLAN \
                    tag. An overlay adds its headers (VXLAN 50 bytes over IPv4, 70 over IPv6), and the result \
                    must fit the device below. rxpath reads the other end in its own namespace (RTM_GETLINK with \
                    IFLA_TARGET_NETNSID).",
        not_when: "nothing larger than the smaller MTU is ever sent, because routes set a smaller MTU",
        side_effects: "connections that are open keep their segment size for a while",
        set_now: "ip link set dev DEV mtu 1500, with the smaller of the two",
        persist: "systemd .link or .network: MTUBytes=; the container network's own MTU setting",
        undo: "ip link set dev DEV mtu N, with the previous MTU",
        verify: "ping -M do -s 1472 HOST; ip -s link show dev DEV: dropped of TX does not rise",
        since: "2.6.24; the question across namespaces 4.20",
        sources: &[
            "kernel: net/core/dev.c __dev_forward_skb",
            "kernel: drivers/net/veth.c veth_forward_skb",
            "kernel: include/net/vxlan.h VXLAN_HEADROOM",
        ],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "joined-size",
        what: "May GRO and GSO packets grow to the kernel's default limit?",
        applies: "devices that are up and report their limits",
        weight: Weight::always(Info).when(Throughput, Warn),
        size: Multiple,
        effect: "with bulk TCP each merged packet passes the stack once: 64 KiB instead of some segments",
        check: Check::Active(joined),
        why: "The limit was lowered, for an experiment or for another path. Merging then ends after a few \
              segments.",
        mechanism: "skb_gro_receive (net/core/gro.c) does not merge beyond gro_max_size or gro_ipv4_max_size; \
                    tcp_tso_autosize and sk_setup_caps (net/core/sock.c) respect gso_max_size. A driver's own \
                    limit is tso_max_size; rxpath does not judge it.",
        not_when: "a router that has to keep its packets small for a slow link",
        side_effects: "packets of a flow arrive in larger batches",
        set_now: "ip link set dev DEV gro_max_size 65536 gso_max_size 65536; since 6.3 also \
                  ip link set dev DEV gro_ipv4_max_size 65536 gso_ipv4_max_size 65536",
        persist: "systemd .link: GenericReceiveOffload=yes keeps the kernel's default; remove the line that sets \
                  it",
        undo: "ip link set dev DEV gro_max_size N gso_max_size N, with the previous values",
        verify: "ip -d link show dev DEV",
        since: "4.16 (gso_max_size); gro_max_size 5.19; for IPv4 6.3",
        sources: &[
            "kernel: net/core/gro.c skb_gro_receive",
            "kernel: Documentation/networking/segmentation-offloads.rst",
        ],
        ..Rule::judge(Area::Offloads)
    },
];

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
        let words = all.iter().map(|(name, now, _)| format!("{name} {now}"));
        words.collect::<Vec<_>>().join(", ")
    };
    let low: Vec<(&str, u32, u32)> =
        known.iter().copied().filter(|(_, now, most)| *now < SMALL_BYTES && now < most).collect();
    if low.is_empty() {
        return Answer::fine(told(&known));
    }
    let sets = low.iter().map(|(name, _, most)| {
        let which = match *name {
            "gro_max_size" => "gro-max-size",
            "gro_ipv4_max_size" => "gro-ipv4-max-size",
            _ => "gso-max-size",
        };
        let knob = Knob::part(&device.name, Group::Link, which);
        Set::new(knob, u64::from(*most))
    });
    Answer::found(
        told(&low),
        "65536 bytes, the kernel's default",
        "merging ends after a few segments",
    )
    .changes(sets)
}
