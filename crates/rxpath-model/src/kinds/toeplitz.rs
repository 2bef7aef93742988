//! Which queue a flow lands on: the Toeplitz hash, the indirection table, and the scaling by which sockets are chosen.
//!
//! **Source** Microsoft, "Verifying the RSS Hash Calculation"; Linux `reciprocal_scale` (include/linux/math.h).
//! **Caveat** SO_REUSEPORT's own hash in the kernel is a keyed jhash; only the scaling is shown here.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::inputs::{Inputs, Outputs, Problem};
use crate::kinds::Kind;

/// The kind.
pub const KIND: Kind = Kind { name: "Microsoft verification suite key", compute };

/// Toeplitz hash of `data`; the key must be at least 4 bytes longer.
pub fn hash(key: &[u8], data: &[u8]) -> Option<u32> {
    if key.len() < data.len() + 4 {
        return None;
    }
    let mut window = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    let mut result = 0;
    for (byte, next) in data.iter().zip(&key[4..]) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                result ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    Some(result)
}

/// `(hash * n) >> 32`.
pub fn reciprocal_scale(hash: u32, n: u64) -> u64 {
    (u64::from(hash) * n) >> 32
}

fn key(text: &str) -> Result<Vec<u8>, Problem> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| *c != ':')
        .map(|c| c.to_digit(16).ok_or_else(|| Problem::bad("key", "it is not hexadecimal")))
        .collect::<Result<_, _>>()?;
    if digits.len() % 2 == 1 {
        return Err(Problem::bad("key", "it has half a byte"));
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

fn octets(flow: &Inputs, name: &str) -> Result<Vec<u8>, Problem> {
    match flow.text(name)?.parse() {
        Ok(IpAddr::V4(address)) => Ok(address.octets().to_vec()),
        Ok(IpAddr::V6(address)) => Ok(address.octets().to_vec()),
        Err(_) => Err(Problem::bad(name, "it is not an IP address")),
    }
}

fn port(flow: &Inputs, name: &str) -> Result<[u8; 2], Problem> {
    Ok((flow.whole(name, 0..=65_535)? as u16).to_be_bytes())
}

fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let key = key(inputs.text("key")?)?;
    let queues = inputs.whole("queues", 1..=65_536)?;
    let entries = inputs.whole("indirection_entries", 1..=65_536)?;
    let sockets = inputs.whole("reuseport_sockets", 1..=65_536)?;
    let short = || Problem::bad("key", "it is too short: 4 bytes more than addresses and ports");
    let mut flows = Vec::new();
    for flow in inputs.objects("flows")? {
        let mut data = octets(&flow, "src")?;
        let to = octets(&flow, "dst")?;
        if to.len() != data.len() {
            return Err(Problem::bad("dst", "it is of another family than `src`"));
        }
        data.extend(to);
        let addresses = hash(&key, &data).ok_or_else(short)?;
        data.extend(port(&flow, "sport")?);
        data.extend(port(&flow, "dport")?);
        let four = hash(&key, &data).ok_or_else(short)?;
        let mut one = json!({
            "hash2": format!("{addresses:#010x}"),
            "hash4": format!("{four:#010x}"),
        });
        // For a table of a power of two this is the mask of its low bits.
        one[format!("queue_of_{queues}_ind{entries}")] =
            (u64::from(four) % entries % queues).into();
        one[format!("reuseport_of_{sockets}")] = reciprocal_scale(four, sockets).into();
        flows.push(one);
    }
    Ok(Outputs::default().value("flows", Value::Array(flows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_of_the_verification_suite() {
        let key =
            key("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
                .unwrap();
        let mut data = Vec::new();
        for address in ["3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1"] {
            data.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
        }
        assert_eq!(hash(&key, &data), Some(0x2cc1_8cd5));
        data.extend(2794_u16.to_be_bytes());
        data.extend(1766_u16.to_be_bytes());
        assert_eq!(hash(&key, &data), Some(0x4020_7d3d));
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        assert!(key("6d5").is_err() && key("xy").is_err());
        assert_eq!(hash(&[1, 2, 3, 4], &[1]), None);
    }
}
