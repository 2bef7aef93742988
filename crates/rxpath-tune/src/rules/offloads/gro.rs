//! Generic receive offload: packets of one flow go up the stack as one.

use crate::check::Ask;
use crate::facts::{Device, Known};
use crate::finding::Found;
use crate::knob::{Knob, Set};
use crate::rule::{
    Answer, Area, Check, Checked, Effect, Goal, Kind, Magnitude, Rule, Severity, Text, Weight,
};

/// Rules of this file.
pub const RULES: &[Rule] = &[Rule {
    id: "offload-gro",
    area: Area::Offloads,
    kind: Kind::Judge,
    what: "Is generic receive offload on?",
    applies: "devices that are up and have a NAPI of their own",
    weight: Weight::by_goal()
        .when(Goal::Throughput, Severity::Warn)
        .when(Goal::Fairness, Severity::Warn),
    effect: Effect::Follows {
        size: Magnitude::Multiple,
        text: "with bulk TCP one walk up the stack serves up to 64 KiB instead of one segment",
    },
    check: Check::Device(on),
    text: Text {
        why: "Most of the receive cost is per packet. GRO joins the segments of a flow that one poll brings \
              before they go up the stack.",
        mechanism: "napi_gro_receive and dev_gro_receive (net/core/gro.c) hold segments of a flow until the \
                    poll ends, gro_flush_timeout passes or 64 KiB are full.",
        not_when: "a router or bridge whose path cannot segment again; a measurement of the path per packet; \
                   small UDP datagrams gain nothing unless the socket sets UDP_GRO",
        side_effects: "packets of one flow arrive in batches; features move in groups, so others may change too",
        set_now: "ethtool -K DEV gro on",
        persist: "systemd .link: GenericReceiveOffload=yes",
        undo: "write back the whole set of features that was read before",
        verify: "ethtool -k DEV: generic-receive-offload: on",
        since: "2.6.29",
        sources: &[
            "kernel: net/core/gro.c dev_gro_receive",
            "kernel: Documentation/networking/segmentation-offloads.rst, Generic Receive Offload",
        ],
    },
}];

fn on(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_nic() || !device.is_up() {
        return Answer::silent("not a device with a NAPI of its own that is up");
    }
    let features = (&device.nic.features).known()?;
    let Some(gro) = features.get("rx-gro") else { return Answer::silent("the device has no GRO") };
    if gro.active {
        return Answer::fine("on");
    }
    let found = Found::new("rx-gro is off", "on", "every segment walks up the stack alone");
    if gro.changeable {
        found
            .change(Set::new(
                Knob::Feature { dev: device.name.clone(), name: "rx-gro".into() },
                true,
            ))
            .answer()
    } else {
        Answer::silent("off, and the driver does not let it be switched")
    }
}
