//! The scenario's section `lab` sets sysctls, offloads, steering and queueing of the two namespaces.

use std::collections::BTreeSet;

use rxpath_core::PathSide;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::netlink::qdisc::QdiscSpec;

use crate::error::LabError;
use crate::scenario::spec::{Lab, Qdisc};
use crate::testbed::tuned::DEVICE;
use crate::testbed::{Change, napi};

/// What a lab sets, and what that changed.
pub(super) struct LabSettings<'a> {
    pub lab: &'a Lab,
    pub changes: Vec<Change>,
}

impl LabSettings<'_> {
    pub fn sysctls(&mut self, ns: &Namespace, side: PathSide) -> Result<(), LabError> {
        let wanted = if side == PathSide::Tx { &self.lab.sysctl_tx } else { &self.lab.sysctl_rx };
        for (key, value) in wanted {
            self.note(side, ns.set_sysctl(key, value)?.applied()?);
        }
        Ok(())
    }

    pub fn features(&mut self, tx: &Namespace, rx: &Namespace) -> Result<(), LabError> {
        let lab = self.lab;
        // Every kind of TSO: a veth feeds its peer's NAPI only when all are off (`NETIF_F_ALL_TSO`).
        let tx_wanted = [("tso", lab.tso), ("tx-udp-segmentation", lab.udp_segmentation)];
        let rx_wanted = [
            ("rx-gro", lab.gro),
            ("rx-udp-gro-forwarding", lab.udp_gro_forwarding),
            ("tso", lab.tso_rx),
        ];
        let sides =
            [(PathSide::Tx, tx, tx_wanted.as_slice()), (PathSide::Rx, rx, rx_wanted.as_slice())];
        for (side, ns, wanted) in sides {
            for change in ns.set_features(DEVICE, wanted)? {
                self.note(side, change.applied()?);
            }
        }
        Ok(())
    }

    /// Returns the link's NAPI threads, which there are when NAPI is threaded.
    pub fn steering(&mut self, rx: &Namespace) -> Result<BTreeSet<i32>, LabError> {
        let lab = self.lab;
        if !lab.rps_cpus.is_empty() {
            for queue in 0..lab.queues.max(1) {
                let attr = format!("queues/rx-{queue}/rps_cpus");
                let change = rx.set_dev_attr(DEVICE, &attr, &lab.rps_cpus.to_mask())?;
                self.note(PathSide::Rx, change.applied()?);
            }
        }
        let polls =
            lab.napi_defer_hard_irqs.map(|polls| ("napi_defer_hard_irqs", polls.to_string()));
        let timeout =
            lab.gro_flush_timeout.map(|timeout| ("gro_flush_timeout", timeout.0.to_string()));
        for (name, value) in polls.into_iter().chain(timeout) {
            self.note(PathSide::Rx, rx.set_dev_attr(DEVICE, name, &value)?.applied()?);
        }
        if lab.threaded {
            let before = napi::threads();
            self.note(PathSide::Rx, rx.set_dev_attr(DEVICE, "threaded", "1")?.applied()?);
            return napi::place(&before, lab);
        }
        Ok(BTreeSet::new())
    }

    pub fn queueing(&mut self, tx: &Namespace) -> Result<(), LabError> {
        let Some(qdisc) = &self.lab.qdisc_tx else { return Ok(()) };
        let spec = match *qdisc {
            Qdisc::Tbf { rate, burst, limit } => {
                QdiscSpec::Tbf { rate_bps: rate.0, burst_bytes: burst, limit_bytes: limit }
            }
            Qdisc::Pfifo { limit } => QdiscSpec::Pfifo { limit_packets: limit },
            Qdisc::Fq => QdiscSpec::Fq { limit_packets: None, flow_limit_packets: None },
        };
        let new = format!("{spec:?}");
        tx.set_qdisc(DEVICE, Some(spec))?;
        let setting = format!("{DEVICE} qdisc");
        let (side, old) = (PathSide::Tx, "noqueue".to_owned());
        self.changes.push(Change { side, setting, old, new, since_trial: None });
        Ok(())
    }

    pub fn note(&mut self, side: PathSide, change: SettingChange) {
        let unread = || "not readable".to_owned();
        let (old, new) =
            (change.before.unwrap_or_else(unread), change.after.unwrap_or_else(unread));
        if old == new {
            return;
        }
        let setting = change.target.to_string();
        let (setting, old, new) = match (old.split_once('='), new.split_once('=')) {
            // One value of a group: `veth/features/rx-gro`, from `on` to `off`.
            (Some((name, old)), Some((_, new))) if change.target.has_parts() => {
                (format!("{setting}/{name}"), old.to_owned(), new.to_owned())
            }
            _ => (setting, old, new),
        };
        self.changes.push(Change { side, setting, old, new, since_trial: None });
    }
}
