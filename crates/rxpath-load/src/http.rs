//! HTTP/1.1 over TCP: a server and a load generator that measure without an HTTP library and spend little time outside
//! the kernel.

pub mod load;
pub mod request;
pub mod response;
pub mod serve;
