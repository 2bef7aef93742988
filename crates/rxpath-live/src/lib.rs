//! What happens on this host now: the evidence of a window, one frame after another, and who used the CPUs meanwhile.
//!
//! It sends nothing and changes nothing: experiments are `rxpath-lab`'s.

pub mod counted;
pub mod deep;
pub mod doubts;
pub mod live;
pub mod lowest;
pub mod observe;
pub mod watch;
pub mod witness;
