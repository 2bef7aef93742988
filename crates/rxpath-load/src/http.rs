//! HTTP/1.1 over TCP: a server and a load generator whose numbers are their own, not a library's, and that spend little
//! outside the kernel.

pub mod load;
pub mod request;
pub mod response;
pub mod serve;
