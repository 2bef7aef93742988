//! HTTP/1.1 over TCP: a load generator whose numbers are its own, not its client library's.

pub mod load;
pub mod response;
