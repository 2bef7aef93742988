//! The URL of a load: `http://HOST[:PORT][/PATH][?QUERY]`, `http://[fe80::1%25eth0]/` with the zone of a link-local address.
//!
//! **Source** RFC 3986, RFC 6874 (zones) and RFC 9110, section 4.2.1. Only what a request line and a connection need.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use thiserror::Error;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address, without brackets; its zone behind one `%`.
    pub host: String,
    /// Port; 80 when none was given.
    pub port: u16,
    /// Whether the port was given, and belongs into `Host`.
    explicit_port: bool,
    /// Path and query, beginning with `/`.
    pub target: String,
}

/// A text that is no URL that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}`: {why}")]
pub struct BadUrl {
    text: String,
    why: &'static str,
    /// What would be right.
    pub hint: &'static str,
}

const EXAMPLE: &str = "for example http://192.0.2.1:8080/path or http://[2001:db8::1]/";

impl FromStr for Url {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why, hint| Err(BadUrl { text: text.into(), why, hint });
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
            let why = "a URL must not contain spaces, control characters or non-ASCII letters";
            return bad(why, "write them percent-encoded: a space is %20");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad("it has no scheme", EXAMPLE);
        };
        if scheme.eq_ignore_ascii_case("https") {
            let why = "TLS is not supported: rxpath measures the host's receive path, not a cipher";
            let hint = "use the plain HTTP port (http://…), or put a TLS proxy between rxpath and the server";
            return bad(why, hint);
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return bad("only http:// is supported", EXAMPLE);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            let hint = "send it as a header: -H 'Authorization: Basic …'";
            return bad("it contains a user name", hint);
        }
        let Some((host, port)) = split_port(authority) else {
            return bad("the host or its port is malformed", EXAMPLE);
        };
        let host = match host.split_once("%25") {
            // RFC 6874 writes the `%` as `%25`, people write it alone, as to curl.
            Some((ip, zone)) if host.contains(':') && !zone.is_empty() => format!("{ip}%{zone}"),
            _ => host.into(),
        };
        let slash = if target.starts_with('/') { "" } else { "/" };
        let (explicit_port, target) = (port.is_some(), format!("{slash}{target}"));
        Ok(Self { host, port: port.unwrap_or(80), explicit_port, target })
    }
}

/// Host (brackets taken off) and port.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, port) = inner.split_once(']')?;
        // Whether there is such a zone (%eth0) shows when it is resolved.
        host.split('%').next()?.parse::<Ipv6Addr>().ok()?;
        (host, port)
    } else {
        let at = authority.find(':').unwrap_or(authority.len());
        authority.split_at(at)
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~%:".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return None;
    }
    match port {
        "" | ":" => Some((host, None)),
        _ => {
            let digits = port.strip_prefix(':')?;
            let port: u16 = digits.parse().ok()?;
            (port > 0 && digits.bytes().all(|b| b.is_ascii_digit())).then_some((host, Some(port)))
        }
    }
}

impl Url {
    /// The value of `Host`: a zone means nothing to another host.
    pub fn authority(&self) -> String {
        let (host, _) = self.host.split_once('%').unwrap_or((&self.host, ""));
        self.with_port(host)
    }

    fn with_port(&self, host: &str) -> String {
        let host = if host.contains(':') { format!("[{host}]") } else { host.into() };
        if self.explicit_port { format!("{host}:{}", self.port) } else { host }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host.split_once('%') {
            Some((ip, zone)) if ip.contains(':') => format!("{ip}%25{zone}"),
            _ => self.host.clone(),
        };
        write!(f, "http://{}{}", self.with_port(&host), self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn urls_are_taken_apart() {
        let plain = url("http://example.org");
        assert_eq!(
            (plain.host.as_str(), plain.port, plain.target.as_str()),
            ("example.org", 80, "/")
        );
        assert_eq!(plain.authority(), "example.org");
        let whole = url("HTTP://127.0.0.1:8080/a/b?c=d#e");
        assert_eq!((whole.host.as_str(), whole.port), ("127.0.0.1", 8080));
        assert_eq!(
            (whole.target.as_str(), whole.authority().as_str()),
            ("/a/b?c=d", "127.0.0.1:8080")
        );
        assert_eq!(url("http://h?x").target, "/?x");
        let six = url("http://[::1]:81/");
        assert_eq!(
            (six.host.as_str(), six.port, six.authority().as_str()),
            ("::1", 81, "[::1]:81")
        );
        for text in ["http://[fe80::1%25eth0]:81/", "http://[fe80::1%eth0]:81/"] {
            let zone = url(text);
            let (host, authority) = (zone.host.as_str(), zone.authority());
            assert_eq!((host, authority.as_str()), ("fe80::1%eth0", "[fe80::1]:81"), "{text}");
            assert_eq!(zone.to_string(), "http://[fe80::1%25eth0]:81/");
        }
        assert_eq!(url("http://[fe80::1%25]/").host, "fe80::1%25", "the interface of number 25");
    }

    #[test]
    fn what_cannot_be_loaded_says_why() {
        for (text, wanted) in [
            ("https://h/", "TLS is not supported"),
            ("ftp://h/", "only http://"),
            ("127.0.0.1:80", "no scheme"),
            ("http://", "malformed"),
            ("http://h:0/", "malformed"),
            ("http://h:65536/", "malformed"),
            ("http://h:+1/", "malformed"),
            ("http://[::1/", "malformed"),
            ("http://::1/", "malformed"),
            ("http://me:pw@h/", "user name"),
            ("http://h/a b", "must not contain spaces"),
            ("http://h/\r\nX: y", "must not contain spaces"),
        ] {
            let told = text.parse::<Url>().unwrap_err().to_string();
            assert!(told.contains(wanted), "{text}: {told}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_is_printed_the_same(text in "http://[a-z0-9.]{1,8}(:[1-9][0-9]{0,3})?(/[a-z]{0,5})?") {
            let parsed = url(&text);
            prop_assert_eq!(url(&parsed.to_string()), parsed);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Url>();
            let _ = format!("http://{text}").parse::<Url>();
        }
    }
}
