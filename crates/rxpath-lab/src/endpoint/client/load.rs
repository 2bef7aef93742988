//! A load may starve the connection: while it runs, silence is no loss.

use std::time::Duration;

use super::{Client, PendingAnswer};
use crate::clock::{HostClock, monotonic_ns};
use crate::endpoint::wire::{HostAsk, LEASE_MS};
use crate::error::LabError;

impl Client {
    /// A load is about to run that ends without an order, at the latest at this instant of the clock here; none: it is over.
    /// Until then neither end takes the other one for lost because it hears nothing.
    pub fn expect_load(
        &self,
        until_ns: Option<u64>,
        clock: HostClock,
    ) -> Result<PendingAnswer, LabError> {
        let lease = &self.shared.lease;
        if until_ns.is_none() {
            // What the host said meanwhile may be under way.
            lease.renew(monotonic_ns());
        }
        lease.expect_load(until_ns);
        self.begin(HostAsk::Load { until_ns: until_ns.map(|at| clock.to_host_ns(at)) })
    }

    /// How long the endpoint acts at most if it hears nothing from now on.
    pub fn acts_unheard(&self) -> Duration {
        let left_ns = self.shared.lease.end_ns().saturating_sub(monotonic_ns());
        Duration::from_nanos(left_ns).max(Duration::from_millis(LEASE_MS))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::endpoint::client::PROMPT;
    use crate::endpoint::wire::MARKER;

    #[test]
    fn an_endpoint_gets_the_end_of_a_load_on_its_own_clock_and_may_be_silent_until_then() {
        // Answers with the request, whose words it does not read.
        let script = format!(
            r#"echo '{MARKER}'; while IFS= read -r asked; do
                case $asked in *'"load"'*) ;; *) continue ;; esac
                id=${{asked#*:}}; id=${{id%%,*}}
                echo "{{\"answer\":{{\"id\":$id,\"ok\":$asked}}}}"
            done"#
        );
        let mut transport = Command::new("sh");
        transport.args(["-c", &script]);
        let client = Client::start("gen1", transport, PROMPT).unwrap().unwrap();
        let second = 1_000_000_000;
        let (clock, lease) = (HostClock { ahead_ns: 5 }, Duration::from_millis(LEASE_MS));
        assert_eq!(client.acts_unheard(), lease);
        let until_ns = monotonic_ns() + 60 * second;
        let asked = client.expect_load(Some(until_ns), clock).unwrap();
        let asked: serde_json::Value = asked.wait(PROMPT).unwrap();
        assert_eq!(asked["until_ns"], until_ns + 5);
        let acts = client.acts_unheard();
        assert!(acts > lease + Duration::from_secs(50), "{acts:?}");
        assert!(
            !client.shared.lease.is_over(until_ns),
            "a silent host is not lost while load runs"
        );
        let over = client.expect_load(None, clock).unwrap().wait::<serde_json::Value>(PROMPT);
        assert_eq!(over.unwrap()["until_ns"], serde_json::Value::Null);
        assert_eq!(client.acts_unheard(), lease);
        assert!(client.shared.lease.is_over(until_ns));
    }
}
