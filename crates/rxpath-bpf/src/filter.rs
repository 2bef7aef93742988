//! Which part of the host a probe looks at.

/// What is wanted; an empty filter wants everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these CPUs, unless empty.
    pub cpus: Vec<u32>,
    /// Only this device, unless 0.
    pub ifindex: u32,
    /// Inode of that device's network namespace.
    pub netns: u32,
    /// Only this local port, unless 0: of sockets, and of packets without one by their destination.
    pub port: u16,
}
