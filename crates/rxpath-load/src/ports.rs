//! The local ports that connections to one destination use up.

/// The local ports that connections take, as the kernel is set.
///
/// **Source** `/proc/sys/net/ipv4/ip_local_port_range`, of this network namespace; it holds for IPv6, too.
fn range() -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// The reason for `EADDRNOTAVAIL` of a connect, with the numbers.
pub(crate) fn why() -> String {
    match range() {
        Some((low, high)) => format!(
            "net.ipv4.ip_local_port_range is {low} to {high}: {} ports per destination, and a closed connection keeps its port in TIME_WAIT for 60 s",
            (high + 1).saturating_sub(low)
        ),
        None => "the local ports for one destination are used up".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_read_and_told() {
        let (low, high) = range().unwrap();
        assert!(low <= high);
        assert!(why().contains(&format!("{low} to {high}")), "{}", why());
    }
}
