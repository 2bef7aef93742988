//! Engines of both sides: each protocol has its own, and those that bypass the stack replace what sockets have.

use rxpath_load::udp::load::options::Engine as SendEngine;
use rxpath_load::udp::serve::options::ServeEngine;

use super::error;
use crate::scenario::error::FileError;
use crate::scenario::key::OF_HTTP;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{Lab, LoadOptions, Protocol, ServeOptions, Topology};

const SENDER: &str = "load.engine";
const RECEIVER: &str = "serve.engine";

/// Each protocol has its own engines.
pub(super) fn known(reader: &Reader<'_>) -> Result<(), FileError> {
    let spoken = reader.protocol();
    for (key, of_udp) in [(SENDER, SendEngine::words()), (RECEIVER, ServeEngine::words())] {
        let Some(engine) = reader.text(key) else { continue };
        let own = if spoken == Protocol::Udp { of_udp } else { OF_HTTP.to_vec() };
        if !own.contains(&engine) {
            let wrong = format!("`{key}` = \"{engine}\" is not an engine of {}", spoken.word());
            return Err(error(reader, key, wrong, format!("use {}", own.join(", "))));
        }
    }
    Ok(())
}

/// Frames go to a device that has addresses, and those of XDP programs only to a veth end with NAPI.
pub(super) fn path(reader: &Reader<'_>, topology: Topology, lab: &Lab) -> Result<(), FileError> {
    if topology == Topology::Hosts {
        return Ok(());
    }
    let sends = reader.section::<LoadOptions>()?.bypasses_stack();
    let serves = reader.section::<ServeOptions>()?.bypasses_stack();
    for (key, bypasses) in [(SENDER, sends), (RECEIVER, serves)] {
        let Some(name) = reader.text(key).filter(|_| bypasses) else { continue };
        if topology.is_loopback() {
            let wrong = format!("the engine {name} is about frames, and loopback has none");
            return Err(error(reader, key, wrong, "use topology.kind = \"netns\""));
        }
    }
    let Some(name) = reader.text(SENDER).filter(|_| sends) else { return Ok(()) };
    if name == "xdp-frames" && (!lab.gro || lab.tso) {
        let wrong = "frames of XDP programs need NAPI at the receiver's end".to_owned();
        return Err(error(reader, SENDER, wrong, "set lab.gro = true and lab.tso = false"));
    }
    if lab.qdisc_tx.is_some() {
        let wrong = format!("the engine {name} goes around queueing disciplines");
        return Err(error(reader, "lab.qdisc_tx", wrong, "leave one of the two out"));
    }
    Ok(())
}
