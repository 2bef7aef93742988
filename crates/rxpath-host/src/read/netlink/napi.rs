//! Settings of one NAPI instance over the netdev family (6.13): deferral, flush and suspend timers, threads.

use super::netdev::{NETDEV, QueueKind};
use crate::HostError;
use crate::netlink::genl::HEADER;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};
use crate::pairs::Pairs;

// linux/netdev.h, `enum` of NETDEV_CMD_*
const NAPI_GET: u8 = 11;
const NAPI_SET: u8 = 14;
// NETDEV_A_NAPI_*
const NAPI_ID: u16 = 2;

/// Names and attributes; the timers are in ns.
const SETTINGS: [(&str, u16); 4] =
    [("defer-hard-irqs", 5), ("gro-flush-timeout", 6), ("irq-suspend-timeout", 7), ("threaded", 8)];

/// The names of the settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name)
}

/// Reads an answer as pairs.
///
/// **Source** net/core/netdev-genl.c `netdev_nl_napi_fill_one`.
pub fn parse(payload: &[u8]) -> Result<Pairs, HostError> {
    let attrs = Attrs::after(payload, HEADER)?;
    let mut pairs = Pairs::default();
    for (name, attribute) in SETTINGS {
        if let Some(value) = attrs.uint(attribute) {
            pairs.push(name, value);
        }
    }
    Ok(pairs)
}

fn request(mut body: Body, asked: &Pairs) -> Result<Body, HostError> {
    for (name, text) in asked.iter() {
        let known = SETTINGS.iter().find(|(known, _)| *known == name);
        let (Some((_, attribute)), Ok(value)) = (known, text.parse::<u64>()) else {
            let names: Vec<&str> = names().collect();
            let why = format!("{name}={text}: expected a number for {}", names.join(", "));
            return Err(HostError::malformed("napi", 0, why));
        };
        // `u32` attributes must be 4 bytes long, `uint` ones may be.
        body = match u32::try_from(value) {
            Ok(value) => body.u32(*attribute, value),
            Err(_) => body.raw(*attribute, &value.to_ne_bytes()),
        };
    }
    Ok(body)
}

/// Whether these are names and values that a NAPI instance takes.
pub fn check(asked: &Pairs) -> Result<(), HostError> {
    request(Body::default(), asked).map(drop)
}

impl Netlink {
    /// The id of the NAPI instance that serves a receive queue. On a [`Netlink::generic`] socket.
    ///
    /// **Errors** `Unsupported` when the driver does not tell, or the device is down.
    pub(crate) fn napi_of_queue(&mut self, index: u32, queue: u32) -> Result<u32, HostError> {
        let queues = self.device_queues(index)?;
        let mine = queues.iter().find(|q| q.kind == QueueKind::Rx && q.index == queue);
        mine.and_then(|queue| queue.napi_id).ok_or_else(|| HostError::Unsupported {
            what: format!("find the NAPI instance of receive queue {queue}"),
            needs: "a device that is up and a driver that ties its queues to NAPI instances".into(),
        })
    }

    /// Settings of a NAPI instance.
    pub fn napi(&mut self, id: u32) -> Result<Pairs, HostError> {
        let body = Body::new(&[NAPI_GET, 1, 0, 0]).u32(NAPI_ID, id);
        parse(&self.family_get(&format!("read NAPI instance {id}"), NETDEV, &body)?)
    }

    /// Asks for settings of a NAPI instance.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` before 6.13.
    pub(crate) fn set_napi(&mut self, id: u32, asked: &Pairs) -> Result<(), HostError> {
        let family = self.family(NETDEV)?;
        let body = request(Body::new(&[NAPI_SET, 1, 0, 0]).u32(NAPI_ID, id), asked)?;
        let op = format!("set {asked} of NAPI instance {id}");
        self.change(&op, family, 0, body.bytes()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_both_widths_are_read() {
        let body = Body::new(&[11, 1, 0, 0]).u32(5, 2).raw(6, &20_000u64.to_ne_bytes()).u32(7, 9);
        let pairs = parse(body.bytes()).unwrap();
        assert_eq!(
            pairs.to_string(),
            "defer-hard-irqs=2 gro-flush-timeout=20000 irq-suspend-timeout=9"
        );
        let asked = request(Body::new(&[14, 1, 0, 0]), &pairs).unwrap();
        assert_eq!(parse(asked.bytes()).unwrap(), pairs);
        assert!(request(Body::default(), &"threaded=yes".parse().unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
