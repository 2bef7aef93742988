//! Settings of one NAPI instance to ask for over the netdev family (6.13).

use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Body;
use crate::pairs::Pairs;
use crate::read::netlink::napi::{SETTINGS, names};
use crate::read::netlink::netdev::{NAPI_ID, NETDEV};

// linux/netdev.h, `enum` of NETDEV_CMD_*
const NAPI_SET: u8 = 14;

fn request(mut body: Body, asked: &Pairs) -> Result<Body, HostError> {
    for (name, text) in asked.iter() {
        let known = SETTINGS.iter().find(|(known, _)| *known == name);
        let (Some((_, attribute)), Ok(value)) = (known, text.parse::<u64>()) else {
            let names: Vec<&str> = names().collect();
            let why = format!("{name}={text}: expected a number for {}", names.join(", "));
            return Err(HostError::malformed("napi", 0, why));
        };
        // `u32` attributes must be 4 bytes long, `uint` ones may be.
        body = match u32::try_from(value) {
            Ok(value) => body.u32(*attribute, value),
            Err(_) => body.raw(*attribute, &value.to_ne_bytes()),
        };
    }
    Ok(body)
}

/// Whether these are names and values that a NAPI instance takes.
pub fn check(asked: &Pairs) -> Result<(), HostError> {
    request(Body::default(), asked).map(drop)
}

impl Netlink {
    /// Asks for settings of a NAPI instance.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` before 6.13.
    pub(crate) fn set_napi(&mut self, id: u32, asked: &Pairs) -> Result<(), HostError> {
        let family = self.family(NETDEV)?;
        let body = request(Body::new(&[NAPI_SET, 1, 0, 0]).u32(NAPI_ID, id), asked)?;
        let op = format!("set {asked} of NAPI instance {id}");
        self.change(&op, family, 0, body.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::netlink::napi::parse;

    #[test]
    fn what_is_asked_for_is_what_would_be_read() {
        let pairs: Pairs = "defer-hard-irqs=2 irq-suspend-timeout=9000000000".parse().unwrap();
        let asked = request(Body::new(&[NAPI_SET, 1, 0, 0]), &pairs).unwrap();
        assert_eq!(parse(asked.bytes()).unwrap(), pairs);
        assert!(request(Body::default(), &"threaded=yes".parse().unwrap()).is_err());
    }
}
