//! TCP: streams, request/response, and connect/request/response/close, against one server for all of them.
//!
//! The first bytes of each connection state its purpose (see [`preamble`]); the server has no modes. In addition to its
//! data connections a client keeps a control connection. There the server sends a hello and, at the end, its report on
//! the run (see [`frame`]).

pub mod connection;
mod flow;
pub mod frame;
pub mod load;
mod open_connections;
pub mod pattern;
pub mod preamble;
pub mod result;
pub mod serve;
pub mod socket;
