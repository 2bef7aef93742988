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
}

const OF_HTTP: [&str; 2] = ["epoll", "uring"];

const SENDER: Side = Side { key: "load.engine", of_udp: ["socket", "xdp", "xdp-frames"] };

const RECEIVER: Side = Side { key: "serve.engine", of_udp: ["socket", "xdp", "xdp-drop"] };

impl Side {
    /// The engine of this side, if it bypasses the stack.
    fn bypass<'r>(&self, reader: &'r Reader<'_>) -> Option<&'r str> {
        reader.text(self.key).filter(|engine| self.of_udp[1..].contains(engine))
    }
}

/// Each protocol has its own engines.
pub(super) fn known(reader: &Reader<'_>) -> Result<(), FileError> {
    let spoken = reader.protocol();
    for side in [SENDER, RECEIVER] {
        let Some(engine) = reader.text(side.key) else { continue };
        let own = if spoken == Protocol::Udp { side.of_udp.as_slice() } else { OF_HTTP.as_slice() };
        if !own.contains(&engine) {
            let wrong =
                format!("`{}` = \"{engine}\" is not an engine of {}", side.key, spoken.word());
            return Err(error(reader, side.key, wrong, format!("use {}", own.join(", "))));
        }
    }
    Ok(())
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
