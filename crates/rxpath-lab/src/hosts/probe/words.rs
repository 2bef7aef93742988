//! What probes showed of a path, and the words for what is wrong with it.

use std::net::IpAddr;

use rxpath_core::number::counted;

use super::ProbedPort;
use crate::endpoint::probe::{HeardProbe, SentProbes};

/// A payload that every path takes. **Unit** bytes.
pub(super) const SMALL: u32 = 64;
/// The longest payload of a datagram. **Unit** bytes.
const LONGEST: u32 = 65_507;
/// Headers of IP and UDP. **Unit** bytes.
const HEADERS: u32 = 28;
/// The same with IPv6.
const HEADERS_V6: u32 = 48;

/// What probes from a sender to an address of the receiver showed.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub sent: SentProbes,
    pub heard: Vec<HeardProbe>,
    /// Hops that they took, where those were more than the experiment allows.
    pub hops: Option<Hops>,
    /// How far they got, where none arrived.
    pub reach: Option<Reach>,
    /// Rules of nftables on the receiver's input, where none arrived and they can be counted.
    pub input_rules: Option<u32>,
    /// The size that failed and the largest one that passed, where not all did.
    pub sizes: Option<[u32; 2]>,
}

/// How many hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hops {
    Exactly(u8),
    More,
}

/// How far probes got, by the devices' counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// They did not leave the sender's device.
    NotSent,
    /// They left it, and did not come to the receiver's.
    Sent,
    /// They came there.
    Came,
}

/// The two ends of a path, in words.
pub(super) struct Ends<'a> {
    pub sender: &'a str,
    pub receiver: &'a str,
    /// Devices of the two.
    pub devices: [&'a str; 2],
    pub mtus: [u32; 2],
    /// The payload that must pass; without it the largest one that both devices take. **Unit** bytes.
    pub payload: Option<u32>,
    pub port: ProbedPort,
    pub to: IpAddr,
    /// Hops that the experiment allows.
    pub hops: u8,
}

impl Ends<'_> {
    pub fn headers(&self) -> u32 {
        if self.to.is_ipv6() { HEADERS_V6 } else { HEADERS }
    }

    /// The largest payload that must pass.
    pub fn full(&self) -> u32 {
        let fits = self.mtus[0].min(self.mtus[1]).saturating_sub(self.headers());
        self.payload.unwrap_or(fits).min(LONGEST)
    }

    pub fn sizes(&self) -> Vec<u32> {
        let full = self.full();
        if full > SMALL { vec![SMALL, full] } else { vec![SMALL] }
    }
}

/// What is wrong with a path, and what to do about it; `other` is the device on which probes came, if it is not the
/// receiver's.
pub(super) fn refusal(
    ends: &Ends<'_>,
    found: &Found,
    other: Option<&str>,
) -> Option<(String, String)> {
    let Ends { sender, receiver, devices: [out, into], port, to, hops, .. } = ends;
    if let Some(taken) = found.hops {
        let (text, least) = match taken {
            Hops::Exactly(taken) => (format!("takes {taken} hops"), taken),
            Hops::More => {
                (format!("takes more than {}", counted(u64::from(*hops), "hop")), hops + 1)
            }
        };
        return Some((
            format!("{sender} -> {receiver} {text}; network.hops is {hops}"),
            format!("only in a network that is yours: network.hops = {least}"),
        ));
    }
    if found.heard.is_empty() {
        return Some(not_arrived(ends, found));
    }
    if let Some(other) = other {
        return Some((
            format!("probes from {sender} arrive at {receiver} by {other}, not by {into}"),
            format!("{to} is on {into}: give {receiver} an address on the device that is meant"),
        ));
    }
    if found.sent.answered.is_empty() {
        return Some((
            format!("{port} from {sender} arrives at {receiver}, and no answer comes back"),
            format!("the route of {receiver} to {sender}, or a firewall on input of {sender}"),
        ));
    }
    let [full, passed] = found.sizes?;
    let [first, second] = ends.mtus;
    let mtus = if first == second {
        format!("MTU {first} at both ends")
    } else {
        format!("MTU {first} at {sender} and {second} at {receiver}")
    };
    Some((
        format!("{passed} bytes pass {sender} -> {receiver}, {full} do not: {mtus}, less between"),
        format!(
            "one MTU on the whole path: raise that of the switch, or ip link set {out} mtu {}",
            passed + ends.headers()
        ),
    ))
}

/// Why no probe came.
fn not_arrived(ends: &Ends<'_>, found: &Found) -> (String, String) {
    let Ends { sender, receiver, devices: [out, into], port, to, .. } = ends;
    let words = format!("{port} from {sender} does not arrive at {receiver}");
    let refused = found.sent.refused.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let rules = |on: &str| {
        found.input_rules.filter(|count| *count > 0).map_or_else(String::new, |count| {
            format!(" (nftables has {} on {on})", counted(u64::from(count), "rule"))
        })
    };
    match found.reach {
        None => (
            format!("{words}{refused}"),
            format!(
                "a firewall on the way or on one of the hosts{}; {receiver} listened at {to}",
                rules(&format!("input of {receiver}"))
            ),
        ),
        Some(Reach::NotSent) => (
            format!("{words}: it did not leave {out}{refused}"),
            format!("a firewall of {sender}, or another route there: ip route get {to}"),
        ),
        Some(Reach::Sent) => (
            format!("{words}: it left {out}, nothing came to {into}"),
            "a switch, VLAN or firewall between them".into(),
        ),
        Some(Reach::Came) => (
            format!("{words}: it came to {into} and reached no socket{}", rules("input")),
            format!("a firewall of {receiver}, on input (nft list ruleset), or its rp_filter"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends<'a>() -> Ends<'a> {
        Ends {
            sender: "gen1",
            receiver: "sut",
            devices: ["enp3s0f0", "ens1f0"],
            mtus: [9_000, 9_000],
            payload: None,
            port: ProbedPort { tcp: false, port: 4321 },
            to: "192.0.2.10".parse().unwrap(),
            hops: 1,
        }
    }

    fn told(found: &Found, other: Option<&str>) -> String {
        refusal(&ends(), found, other).map_or_else(String::new, |(what, hint)| {
            assert!(!hint.is_empty(), "{what}");
            what
        })
    }

    /// Of probes that were heard and answered.
    fn good() -> Found {
        let heard = vec![HeardProbe { bytes: 64, device: Some(2), hops_left: Some(1) }];
        let sent = SentProbes { answered: vec![64, 8_972], refused: None };
        Found { sent, heard, ..Found::default() }
    }

    #[test]
    fn a_good_path_is_not_refused() {
        assert_eq!(told(&good(), None), "");
        assert_eq!(ends().sizes(), [64, 8_972]);
        let v6 = Ends { to: "2001:db8::1".parse().unwrap(), mtus: [1_500, 9_000], ..ends() };
        assert_eq!(v6.sizes(), [64, 1_452]);
        assert_eq!(Ends { mtus: [68, 68], ..ends() }.sizes(), [64]);
        assert_eq!(Ends { mtus: [65_536; 2], ..ends() }.sizes(), [64, 65_507]);
    }

    #[test]
    fn what_is_wrong_with_a_path_is_said_with_its_place() {
        let hops = |hops| Found { hops: Some(hops), ..Found::default() };
        assert_eq!(
            told(&hops(Hops::Exactly(3)), None),
            "gen1 -> sut takes 3 hops; network.hops is 1"
        );
        assert_eq!(
            told(&hops(Hops::More), None),
            "gen1 -> sut takes more than 1 hop; network.hops is 1"
        );
        let silent = |reach| told(&Found { reach, ..Found::default() }, None);
        assert_eq!(silent(None), "udp/4321 from gen1 does not arrive at sut");
        assert_eq!(
            silent(Some(Reach::Sent)),
            "udp/4321 from gen1 does not arrive at sut: it left enp3s0f0, nothing came to ens1f0"
        );
        assert_eq!(
            silent(Some(Reach::Came)),
            "udp/4321 from gen1 does not arrive at sut: it came to ens1f0 and reached no socket"
        );
        let refused = Some("Operation not permitted (os error 1)".to_owned());
        let sent = SentProbes { refused, ..SentProbes::default() };
        let blocked = Found { sent, reach: Some(Reach::NotSent), ..Found::default() };
        assert_eq!(
            told(&blocked, None),
            "udp/4321 from gen1 does not arrive at sut: it did not leave enp3s0f0 (Operation not permitted (os error 1))"
        );
        assert_eq!(
            told(&good(), Some("eno1")),
            "probes from gen1 arrive at sut by eno1, not by ens1f0"
        );
        let unanswered = Found { sent: SentProbes::default(), ..good() };
        assert_eq!(
            told(&unanswered, None),
            "udp/4321 from gen1 arrives at sut, and no answer comes back"
        );
        let narrow = Found { sizes: Some([8_972, 1_472]), ..good() };
        assert_eq!(
            told(&narrow, None),
            "1472 bytes pass gen1 -> sut, 8972 do not: MTU 9000 at both ends, less between"
        );
    }

    #[test]
    fn rules_on_input_of_the_receiver_are_counted_where_nothing_arrived() {
        let came = Found { reach: Some(Reach::Came), ..Found::default() };
        let filtered = |reach, count| Found { reach, input_rules: Some(count), ..Found::default() };
        assert_eq!(
            told(&filtered(Some(Reach::Came), 14), None),
            "udp/4321 from gen1 does not arrive at sut: it came to ens1f0 and reached no socket \
             (nftables has 14 rules on input)"
        );
        // 0 would read as if no chain could drop, and a policy may.
        assert_eq!(told(&filtered(Some(Reach::Came), 0), None), told(&came, None));
        // Over TCP it is not known how far they got.
        let (_, hint) = refusal(&ends(), &filtered(None, 1), None).unwrap();
        assert_eq!(
            hint,
            "a firewall on the way or on one of the hosts (nftables has 1 rule on input of sut); \
             sut listened at 192.0.2.10"
        );
    }
}
