//! How many hops the packets of an experiment between hosts may take: a flood must not leave its network by a wrong route.

use std::sync::OnceLock;

/// The variable that has the number; without it the kernel's default holds.
pub const HOPS: &str = "RXPATH_HOPS";

/// The number, where there is one.
pub fn limit() -> Option<u8> {
    static LIMIT: OnceLock<Option<u8>> = OnceLock::new();
    *LIMIT.get_or_init(|| parse(&std::env::var(HOPS).ok()?))
}

/// No packet takes zero hops.
fn parse(text: &str) -> Option<u8> {
    text.parse().ok().filter(|hops| *hops > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_hops() {
        assert_eq!((parse("1"), parse("255")), (Some(1), Some(255)));
        for text in ["", "0", "256", "-1", "two"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
