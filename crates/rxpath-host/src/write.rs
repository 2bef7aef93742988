//! The writer half: settings of the host, each read back after it is written, and the journal that undoes them.
//!
//! The question it answers: *what did the kernel make of what was asked?* It reads through [`crate::read`] and knows no lab.

pub mod awake;
pub mod change;
pub mod fault;
pub mod ioctl;
pub mod journal;
pub mod netlink;
pub mod sched;
pub mod setter;
