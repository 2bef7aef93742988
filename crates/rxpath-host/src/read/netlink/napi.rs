//! Settings of one NAPI instance over the netdev family (6.13): deferral, flush and suspend timers, threads.

use super::netdev::{NAPI_ID, NETDEV, Question, QueueKind, question};
use crate::HostError;
use crate::netlink::genl::HEADER;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;
use crate::pairs::Pairs;

/// Names and attributes; the timers are in ns.
pub(crate) const SETTINGS: [(&str, u16); 4] =
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
    let set = SETTINGS.into_iter();
    Ok(set.filter_map(|(name, attribute)| Some((name, attrs.uint(attribute)?))).collect())
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
        let body = question(Question::Napi).u32(NAPI_ID, id);
        parse(&self.family_get(&format!("read NAPI instance {id}"), NETDEV, &body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use crate::netlink::wire::Body;

    #[test]
    fn numbers_of_both_widths_are_read() {
        let body = Body::new(&[11, 1, 0, 0]).u32(5, 2).raw(6, &20_000u64.to_ne_bytes()).u32(7, 9);
        let pairs = parse(body.bytes()).unwrap();
        assert_eq!(
            pairs.to_string(),
            "defer-hard-irqs=2 gro-flush-timeout=20000 irq-suspend-timeout=9"
        );
    }

    takes_any_bytes!(200, bytes => parse(&bytes));
}
