//! The request, built once and sent repeatedly.

use std::sync::Arc;

use crate::LoadError;
use crate::http::load::options::LoadOptions;
use crate::http::load::url::Url;

/// Memory that the copies of a request may take: pipelined requests leave in one call.
const MAX_COPIES_BYTES: usize = 256 << 20;

/// The bytes of a request, repeated as many times as a connection may have in flight.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) bytes: Arc<[u8]>,
    /// Bytes of one.
    pub(super) len: usize,
    /// Its head.
    pub(super) head: String,
    /// Replies have no body (`HEAD`).
    pub(super) bodiless: bool,
}

pub(super) fn write(options: &LoadOptions, url: &Url) -> Result<Message, LoadError> {
    let body = body(options)?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let method = options.method.as_deref().unwrap_or(method);
    let body = body.unwrap_or_default();
    if method.is_empty() || !method.bytes().all(is_token) {
        let hint = "a method is a word such as GET, HEAD or POST";
        return Err(LoadError::usage(format!("--method `{method}`: not a method"), hint));
    }
    if method == "CONNECT" {
        return Err(LoadError::usage("--method CONNECT makes a tunnel, not a reply", ""));
    }
    let mut head = format!("{method} {} HTTP/1.1\r\n", url.target);
    let has = |name: &str| {
        let is = |header: &String| {
            header.split(':').next().is_some_and(|n| n.trim().eq_ignore_ascii_case(name))
        };
        options.headers.iter().any(is)
    };
    if !has("host") {
        head += &format!("Host: {}\r\n", url.authority());
    }
    for header in &options.headers {
        head += &checked(header)?;
    }
    if !has("connection") && options.no_keepalive {
        head += "Connection: close\r\n";
    }
    if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    let one = [head.as_bytes(), &body].concat();
    let len = one.len();
    if len.saturating_mul(options.pipeline) > MAX_COPIES_BYTES {
        let count = options.pipeline;
        let what = format!("--pipeline {count} of {len} bytes each: over 256 MiB in one send");
        return Err(LoadError::usage(what, "use a smaller body or a lower --pipeline"));
    }
    let bytes = one.repeat(options.pipeline).into();
    Ok(Message { bytes, len, head, bodiless: method == "HEAD" })
}

/// What `--body` or `--body-file` gives.
fn body(options: &LoadOptions) -> Result<Option<Vec<u8>>, LoadError> {
    let Some(path) = &options.body_file else {
        return Ok(options.body.clone().map(String::into_bytes));
    };
    let bad = |error: std::io::Error| {
        LoadError::usage(format!("--body-file {}: {error}", path.display()), "")
    };
    std::fs::read(path).map(Some).map_err(bad)
}

/// One header's line.
fn checked(header: &str) -> Result<String, LoadError> {
    let bad = |why: &str| {
        Err(LoadError::usage(format!("-H `{header}`: {why}"), "for example -H 'Accept: text/html'"))
    };
    let Some((name, value)) = header.split_once(':') else { return bad("no colon") };
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(is_token) {
        return bad("the name is not an HTTP token");
    }
    if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
        return bad("the value holds a control character");
    }
    if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
    {
        return bad("rxpath sets the body length itself (--body, --body-file)");
    }
    Ok(format!("{name}: {value}\r\n"))
}

/// **Source** RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values;

    fn options(url: &str) -> LoadOptions {
        values::defaults(url).unwrap()
    }

    fn write(options: &LoadOptions) -> Result<Message, LoadError> {
        super::write(options, &options.url.parse().unwrap())
    }

    #[test]
    fn the_plain_request_is_the_published_one() {
        // 44 bytes: the request line and `Host`, nothing else.
        let message = write(&options("http://192.168.11.3:60000/")).unwrap();
        assert_eq!(message.head, "GET / HTTP/1.1\r\nHost: 192.168.11.3:60000\r\n\r\n");
        assert_eq!((&*message.bytes, message.len), (message.head.as_bytes(), 44));
    }

    #[test]
    fn bodies_headers_and_copies() {
        let mut options = options("http://h/x?y");
        options.body = Some("abc".into());
        options.headers = vec!["host:  other".into(), "X-A:b".into()];
        (options.pipeline, options.no_keepalive) = (2, true);
        let message = write(&options).unwrap();
        let one = "POST /x?y HTTP/1.1\r\nhost: other\r\nX-A: b\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!((message.len, &*message.bytes), (one.len(), one.repeat(2).as_bytes()));
        options.body = Some(String::new());
        assert!(write(&options).unwrap().head.contains("Content-Length: 0\r\n"));
        options.method = Some("HEAD".into());
        assert!(write(&options).unwrap().bodiless);
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        for (header, wanted) in [
            ("no colon here", "no colon"),
            ("a b: c", "not an HTTP token"),
            (": c", "not an HTTP token"),
            ("A: b\r\nC: d", "control character"),
            ("Content-Length: 3", "--body"),
        ] {
            let mut options = options("http://h/");
            options.headers = vec![header.into()];
            let told = write(&options).unwrap_err().to_string();
            assert!(told.contains(wanted), "{header}: {told}");
        }
        let mut options = options("http://h/");
        for method in ["", "GET /x", "G\r\nT", "CONNECT"] {
            options.method = Some(method.into());
            assert!(write(&options).is_err(), "{method:?}");
        }
        options.method = Some("PUT".into());
        options.body = Some("0".repeat(1 << 20));
        options.pipeline = 1000;
        assert!(write(&options).unwrap_err().to_string().contains("256 MiB"));
    }
}
