//! Which queue a flow lands on: the Toeplitz hash, the indirection table, and the scaling by which sockets are chosen.
//!
//! **Source** Microsoft, "Verifying the RSS Hash Calculation"; Linux `reciprocal_scale` (include/linux/math.h).
//! **Caveat** SO_REUSEPORT's own hash in the kernel is a keyed jhash; only the scaling is shown here.

use std::net::IpAddr;

use rxpath_core::toeplitz::{hash, reciprocal_scale};
use serde_json::json;

use crate::inputs::{Inputs, Outputs, Problem};

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

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
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
    Ok(Outputs::default().value("flows", flows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_none_are_refused() {
        assert!(key("6d5").is_err() && key("xy").is_err());
    }
}
