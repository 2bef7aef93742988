//! What a request on the page's port is answered with.

use httparse::{EMPTY_HEADER, Request, Status};

/// Longest head of a request.
pub(crate) const HEAD_BYTES: usize = 8192;
/// Most fields in it.
const FIELDS: usize = 64;

/// The pages of the last window.
#[derive(Clone, Debug, Default)]
pub struct RenderedPages {
    /// In Prometheus' text format.
    pub metrics: String,
    /// What is measured and what is not, as JSON.
    pub status: String,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpResponse {
    /// The head is not complete.
    NotYet,
    /// The metrics.
    Metrics,
    /// That the process lives.
    Healthy,
    /// What is measured and what is not, as JSON.
    Status,
    /// Which pages there are.
    Pages,
    /// 404.
    Unknown,
    /// 405.
    Method,
    /// 400.
    Bad,
    /// 431.
    Long,
}

/// The answer to what was received so far.
pub fn answer(received: &[u8]) -> HttpResponse {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut request = Request::new(&mut fields);
    match request.parse(received) {
        Ok(Status::Partial) if received.len() >= HEAD_BYTES => HttpResponse::Long,
        Ok(Status::Partial) => HttpResponse::NotYet,
        Err(httparse::Error::TooManyHeaders) => HttpResponse::Long,
        Err(_) => HttpResponse::Bad,
        Ok(Status::Complete(_)) => {
            if !matches!(request.method, Some("GET" | "HEAD")) {
                return HttpResponse::Method;
            }
            let path = request.path.unwrap_or_default();
            match path.split_once('?').map_or(path, |(path, _)| path) {
                "/metrics" => HttpResponse::Metrics,
                "/status" => HttpResponse::Status,
                "/-/healthy" => HttpResponse::Healthy,
                "/" => HttpResponse::Pages,
                _ => HttpResponse::Unknown,
            }
        }
    }
}

/// Whether an answer to this has a body. **Source** RFC 9110, 9.3.2: one to `HEAD` has none, and the length of that to `GET`.
pub(crate) fn wants_body(received: &[u8]) -> bool {
    // Empty lines in front of a request are skipped (RFC 9112, 2.2), as `answer` does.
    !received.trim_ascii_start().starts_with(b"HEAD ")
}

impl HttpResponse {
    /// The bytes to send, with the page that is asked for; `None` while the head is not complete.
    pub(crate) fn bytes(self, shown: Option<&RenderedPages>, with_body: bool) -> Option<Vec<u8>> {
        let not_yet =
            ("503 Service Unavailable", "text/plain", "the first window is not over yet\n");
        let plain = "text/plain; charset=utf-8";
        let (status, kind, body) = match self {
            Self::NotYet => return None,
            Self::Metrics => shown.map_or(not_yet, |shown| {
                ("200 OK", "text/plain; version=0.0.4; charset=utf-8", &shown.metrics)
            }),
            Self::Status => {
                shown.map_or(not_yet, |shown| ("200 OK", "application/json", &shown.status))
            }
            Self::Healthy => ("200 OK", plain, "ok\n"),
            Self::Pages => ("200 OK", plain, "rxpath export: /metrics, /status, /-/healthy\n"),
            Self::Unknown => {
                ("404 Not Found", plain, "there is /metrics, /status and /-/healthy\n")
            }
            Self::Method => ("405 Method Not Allowed", plain, "use GET\n"),
            Self::Bad => ("400 Bad Request", plain, "this is not HTTP/1\n"),
            Self::Long => ("431 Request Header Fields Too Large", plain, "at most 8 KiB\n"),
        };
        let allow = if self == Self::Method { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
        );
        let body = if with_body { body } else { "" };
        Some([head.as_bytes(), body.as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_request_has_its_answer() {
        let get = |path: &str| answer(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        assert_eq!(get("/metrics?x=1"), HttpResponse::Metrics);
        assert_eq!(get("/status"), HttpResponse::Status);
        assert_eq!(get("/-/healthy"), HttpResponse::Healthy);
        assert_eq!(get("/"), HttpResponse::Pages);
        assert_eq!(get("/../etc/passwd"), HttpResponse::Unknown);
        assert_eq!(answer(b"HEAD /metrics HTTP/1.0\r\n\r\n"), HttpResponse::Metrics);
        assert_eq!(answer(b"POST /metrics HTTP/1.1\r\n\r\n"), HttpResponse::Method);
        assert_eq!(answer(b"\x16\x03\x01\x02\x00 TLS"), HttpResponse::Bad);
        assert_eq!(answer(b"GET /metrics HTTP/1.1\r\nHost"), HttpResponse::NotYet);
        let long = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'x'; HEAD_BYTES]].concat();
        assert_eq!(answer(&long), HttpResponse::Long);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: 1\r\n".repeat(65));
        assert_eq!(answer(many.as_bytes()), HttpResponse::Long);
    }

    #[test]
    fn before_the_first_window_there_is_no_page() {
        let of = |wanted: HttpResponse, shown: Option<&RenderedPages>| {
            String::from_utf8(wanted.bytes(shown, true).unwrap()).unwrap()
        };
        let text = of(HttpResponse::Metrics, None);
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        let shown = RenderedPages { metrics: "a 1\n".into(), status: "{}".into() };
        let text = of(HttpResponse::Status, Some(&shown));
        assert!(text.contains("application/json") && text.ends_with("\r\n\r\n{}"), "{text}");
        let text = of(HttpResponse::Metrics, Some(&shown));
        assert!(text.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\na 1\n"), "{text}");
    }

    #[test]
    fn an_answer_to_head_has_the_length_of_the_page_and_no_body() {
        let shown = RenderedPages { metrics: "a 1\n".into(), status: "{}".into() };
        for path in ["/metrics", "/status", "/-/healthy", "/", "/none"] {
            // A client may send an empty line first.
            let [whole, head, late_head] = ["GET", "HEAD", "\r\nHEAD"].map(|method| {
                let request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n");
                let (request, shown) = (request.as_bytes(), Some(&shown));
                String::from_utf8(answer(request).bytes(shown, wants_body(request)).unwrap())
                    .unwrap()
            });
            let (of_whole, body) = whole.split_once("\r\n\r\n").unwrap();
            assert!(!body.is_empty() && head == format!("{of_whole}\r\n\r\n"), "{path}: {head}");
            assert_eq!(late_head, head, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&bytes).bytes(Some(&RenderedPages::default()), wants_body(&bytes));
        }
    }
}
