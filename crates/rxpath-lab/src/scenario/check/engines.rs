//! Engines of both sides: each protocol has its own, and those that bypass the stack replace what sockets have.

use super::error;
use crate::scenario::error::FileError;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{Lab, Protocol, Topology};

/// An engine that bypasses the stack.
struct Bypass {
    name: &'static str,
    /// What it excludes: options of sockets.
    excludes: &'static [&'static str],
}

/// Engines of one side.
struct Side {
    key: &'static str,
    of_udp: &'static [&'static str],
    bypasses: &'static [Bypass],
}

const OF_HTTP: &[&str] = &["epoll", "uring"];

const SENDS: &[&str] = &["load.gso", "load.corrupt", "load.unconnected"];
const READS: &[&str] = &[
    "serve.sockets",
    "serve.steer",
    "serve.gro",
    "serve.busy_poll",
    "serve.rcvbuf",
    "serve.nap",
    "serve.stamps",
];

const SENDER: Side = Side {
    key: "load.engine",
    of_udp: &["socket", "xdp", "xdp-frames"],
    bypasses: &[
        Bypass { name: "xdp", excludes: SENDS },
        Bypass { name: "xdp-frames", excludes: SENDS },
    ],
};

const RECEIVER: Side = Side {
    key: "serve.engine",
    of_udp: &["socket", "xdp", "xdp-drop"],
    bypasses: &[
        Bypass { name: "xdp", excludes: READS },
        Bypass { name: "xdp-drop", excludes: READS },
    ],
};

impl Side {
    /// The engine of this side, if it bypasses the stack.
    fn bypass(&self, reader: &Reader<'_>) -> Option<&'static Bypass> {
        let engine = reader.text(self.key)?;
        self.bypasses.iter().find(|bypass| bypass.name == engine)
    }
}

/// Each protocol has its own engines, and those that bypass the stack exclude what only sockets have.
pub(super) fn options(reader: &Reader<'_>) -> Result<(), FileError> {
    for side in [SENDER, RECEIVER] {
        known(reader, &side)?;
        let Some(Bypass { name, excludes }) = side.bypass(reader) else { continue };
        for other in *excludes {
            if reader.get(other).is_some() {
                let wrong = format!("`{other}` is about sockets, and the engine {name} has none");
                return Err(error(reader, other, wrong, "leave one of the two out"));
            }
        }
    }
    if reader.text("load.engine") == Some("xdp-frames")
        && reader.text("load.pacing") == Some("sleep")
    {
        let wrong = "the engine xdp-frames spins until a datagram is due".to_owned();
        return Err(error(reader, "load.pacing", wrong, "leave load.pacing out"));
    }
    if reader.text("serve.engine") == Some("xdp-drop") {
        for other in ["serve.threads", "serve.work", "serve.sleep"] {
            if reader.get(other).is_some() {
                let wrong =
                    format!("the engine xdp-drop reads nothing, and `{other}` is about reading");
                return Err(error(reader, other, wrong, "leave one of the two out"));
            }
        }
    }
    Ok(())
}

fn known(reader: &Reader<'_>, side: &Side) -> Result<(), FileError> {
    let Some(engine) = reader.text(side.key) else { return Ok(()) };
    let own = if reader.protocol() == Protocol::Udp { side.of_udp } else { OF_HTTP };
    if own.contains(&engine) {
        return Ok(());
    }
    let wrong =
        format!("`{}` = \"{engine}\" is not an engine of {}", side.key, reader.protocol().word());
    Err(error(reader, side.key, wrong, format!("use {}", own.join(", "))))
}

/// Frames go to a device that has addresses, and those of XDP programs only to a veth end with NAPI.
pub(super) fn path(reader: &Reader<'_>, topology: Topology, lab: &Lab) -> Result<(), FileError> {
    for side in [&SENDER, &RECEIVER] {
        let Some(bypass) = side.bypass(reader) else { continue };
        if topology == Topology::Local {
            let name = bypass.name;
            let wrong = format!("the engine {name} is about frames, and loopback has none");
            return Err(error(reader, side.key, wrong, "use topology.kind = \"netns\""));
        }
    }
    let Some(Bypass { name, .. }) = SENDER.bypass(reader) else { return Ok(()) };
    if *name == "xdp-frames" && (!lab.gro || lab.tso) {
        let wrong = "frames of XDP programs need NAPI at the receiver's end".to_owned();
        return Err(error(reader, SENDER.key, wrong, "set lab.gro = true and lab.tso = false"));
    }
    if lab.qdisc_tx.is_some() {
        let wrong = format!("the engine {name} goes around queueing disciplines");
        return Err(error(reader, "lab.qdisc_tx", wrong, "leave one of the two out"));
    }
    Ok(())
}
