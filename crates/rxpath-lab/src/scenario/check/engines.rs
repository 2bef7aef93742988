//! Engines of both sides: each protocol has its own, and those that bypass the stack replace what sockets have.

use super::error;
use crate::scenario::error::FileError;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{Lab, Protocol, Topology};

/// Engines of one side.
struct Side {
    key: &'static str,
    /// Those of UDP; the ones behind the first bypass the stack.
    of_udp: [&'static str; 3],
    /// What a bypass excludes: options of sockets.
    excludes: &'static [&'static str],
}

const OF_HTTP: [&str; 2] = ["epoll", "uring"];

const SENDER: Side = Side {
    key: "load.engine",
    of_udp: ["socket", "xdp", "xdp-frames"],
    excludes: &["load.gso", "load.corrupt", "load.unconnected"],
};

const RECEIVER: Side = Side {
    key: "serve.engine",
    of_udp: ["socket", "xdp", "xdp-drop"],
    excludes: &[
        "serve.sockets",
        "serve.steer",
        "serve.gro",
        "serve.busy_poll",
        "serve.rcvbuf",
        "serve.nap",
        "serve.stamps",
    ],
};

/// What says nothing where nobody reads.
const OF_READERS: [&str; 4] = ["serve.threads", "serve.batch", "serve.work", "serve.sleep"];

impl Side {
    /// The engine of this side, if it bypasses the stack.
    fn bypass<'r>(&self, reader: &'r Reader<'_>) -> Option<&'r str> {
        reader.text(self.key).filter(|engine| self.of_udp[1..].contains(engine))
    }
}

/// Each protocol has its own engines, and those that bypass the stack exclude what only sockets have.
pub(super) fn options(reader: &Reader<'_>) -> Result<(), FileError> {
    for side in [SENDER, RECEIVER] {
        known(reader, &side)?;
        let Some(name) = side.bypass(reader) else { continue };
        for other in side.excludes {
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
        for other in OF_READERS {
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
    let of_udp = reader.protocol() == Protocol::Udp;
    let own = if of_udp { side.of_udp.as_slice() } else { OF_HTTP.as_slice() };
    if own.contains(&engine) {
        return Ok(());
    }
    let wrong =
        format!("`{}` = \"{engine}\" is not an engine of {}", side.key, reader.protocol().word());
    Err(error(reader, side.key, wrong, format!("use {}", own.join(", "))))
}

/// Frames go to a device that has addresses, and those of XDP programs only to a veth end with NAPI.
pub(super) fn path(reader: &Reader<'_>, topology: Topology, lab: &Lab) -> Result<(), FileError> {
    if topology == Topology::Hosts {
        return Ok(());
    }
    for side in [&SENDER, &RECEIVER] {
        let Some(name) = side.bypass(reader) else { continue };
        if topology == Topology::Local {
            let wrong = format!("the engine {name} is about frames, and loopback has none");
            return Err(error(reader, side.key, wrong, "use topology.kind = \"netns\""));
        }
    }
    let Some(name) = SENDER.bypass(reader) else { return Ok(()) };
    if name == "xdp-frames" && (!lab.gro || lab.tso) {
        let wrong = "frames of XDP programs need NAPI at the receiver's end".to_owned();
        return Err(error(reader, SENDER.key, wrong, "set lab.gro = true and lab.tso = false"));
    }
    if lab.qdisc_tx.is_some() {
        let wrong = format!("the engine {name} goes around queueing disciplines");
        return Err(error(reader, "lab.qdisc_tx", wrong, "leave one of the two out"));
    }
    Ok(())
}
