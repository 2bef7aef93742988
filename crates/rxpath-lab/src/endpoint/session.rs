//! Which device carries the control connection: whether control and load share a link decides what a late answer means.

use rxpath_core::SortFew;
use rxpath_host::Root;
use rxpath_host::read::session;

use super::route::route;

/// The device towards the other end of the ssh session that this endpoint belongs to, then those below it; none without one.
///
/// **Caveat** in another network namespace than that of sshd it looks up the wrong routes.
pub fn control_devices() -> Vec<String> {
    let Ok(Some(session)) = session::current(&Root::host()) else { return Vec::new() };
    let route = route(session.client.ip()).ok().flatten();
    in_order(route.map(|route| route.device), session.devices)
}

/// All of them, the first one first.
fn in_order(first: Option<String>, all: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort_few_by_key(|device| Some(device) != first.as_ref());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_of_the_route_stands_before_those_below_it() {
        let all = || ["bond0", "eno1", "vlan7"].map(str::to_owned);
        assert_eq!(in_order(Some("vlan7".into()), all()), ["vlan7", "bond0", "eno1"]);
        assert_eq!(in_order(None, all()), ["bond0", "eno1", "vlan7"]);
    }
}
