//! Which hosts are namespaces or logins of one machine: what one of them runs is no foreign load to the others.

use super::ConnectedHost;
use crate::endpoint::client::PROMPT;
use crate::endpoint::token::is_seen;
use crate::endpoint::wire::Ask;
use crate::error::LabError;

/// Numbers the machines of the hosts, and gives that of this process, if a host is on it.
///
/// # Errors
/// Of a host that no longer answers.
pub fn tell_apart(hosts: &mut [ConnectedHost], secret: &str) -> Result<Option<usize>, LabError> {
    let mut count = 0;
    for at in 0..hosts.len() {
        let (before, rest) = hosts.split_at_mut(at);
        let host = &mut rest[0];
        let mut known = None;
        // Others cannot be its machine; the secret decides of those that may.
        for other in before.iter().filter(|other| other.hello.boot_id == host.hello.boot_id) {
            let (pid, secret) = (other.hello.pid, secret.to_owned());
            let ask = Ask::IsOnMachineOf { pid, secret };
            if known.is_none() && host.client.ask::<bool>(ask, PROMPT)? {
                known = Some(other.machine);
            }
        }
        host.machine = known.unwrap_or(count);
        count += usize::from(known.is_none());
    }
    let here = hosts.iter().find(|host| is_seen(host.hello.pid, secret));
    Ok(here.map(|host| host.machine))
}
