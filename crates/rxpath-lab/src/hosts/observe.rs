//! Observers by BPF on the hosts: whether they run there, and what an interrupt costs there.

use std::sync::Arc;
use std::time::Duration;

use rxpath_bpf::account::calibrate::IrqCalibration;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ConnectedHost, Hosts};
use crate::endpoint::client::{Client, PROMPT};
use crate::endpoint::observing::ObserveAsk;
use crate::endpoint::wire::HostAsk;
use crate::error::{LabError, cannot};
use crate::scenario::spec::Observe;

/// How long a calibration may take: six seconds on an idle CPU.
const CALIBRATED: Duration = Duration::from_secs(60);

/// Asks the observers of a host.
pub fn ask<T: DeserializeOwned>(
    client: &Arc<Client>,
    what: ObserveAsk,
    limit: Duration,
) -> Result<T, LabError> {
    client.ask(HostAsk::Observe { what }, limit)
}

impl Hosts {
    /// Tries each observer on the host where it would run.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] with the host and what is missing there.
    pub fn can_observe(&self, wanted: &Observe) -> Result<(), LabError> {
        self.receivers.iter().try_for_each(|host| try_there(host, wanted))?;
        self.of_sender(wanted).map_or(Ok(()), |wanted| {
            self.senders.iter().try_for_each(|host| try_there(host, &wanted))
        })
    }

    /// What of it runs on each sender's host: reasons of drops, unless all hosts have one kernel.
    pub fn of_sender(&self, wanted: &Observe) -> Option<Observe> {
        let drops = wanted.drops && !self.share_a_clock;
        drops.then(|| Observe { drops, ..Observe::default() })
    }

    /// Measures what an interrupt costs on the first receiver's host.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    pub fn calibrate(&self, cpu: Option<u32>) -> Result<IrqCalibration, LabError> {
        ask(&self.receiver().client, ObserveAsk::Calibrate { cpu }, CALIBRATED)
    }
}

fn try_there(host: &ConnectedHost, wanted: &Observe) -> Result<(), LabError> {
    if wanted.observers().is_empty() {
        return Ok(());
    }
    let what = ObserveAsk::Try { wanted: wanted.clone() };
    match ask::<Value>(&host.client, what, PROMPT) {
        Err(LabError::OnHost { host: alias, text, .. }) => {
            let hint = format!("{} says what is missing there", host.doctor);
            Err(cannot(format!("{alias}: {text}"), hint))
        }
        other => other.map(drop),
    }
}
