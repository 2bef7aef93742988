//! TCP: streams, request/response, and connect/request/response/close, against one server for all of them.
//!
//! The client says what each connection is for in its first bytes (see [`preamble`]); the server has no modes.
//! Beside its data connections a client keeps a control connection, on which the server says hello and, at the
//! end, what the run did at its side (see [`frame`]).

pub mod connection;
mod flow;
pub mod frame;
mod lanes;
pub mod load;
pub mod pattern;
pub mod preamble;
pub mod result;
mod roster;
pub mod serve;
pub mod socket;
