//! Sets the requested socket buffers, and warns when the kernel grants less.

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::socket::{Buffer, Socket};

/// Sets a buffer; true when the kernel accepted the option that no sysctl caps.
pub(crate) fn set(socket: &Socket, side: Buffer, asked: u64) -> Result<bool, LoadError> {
    socket.set_buffer(side, asked).map_err(|e| LoadError::io(name(side), e))
}

/// A warning when `got` is less than requested. The kernel doubles the requested value, so a missing byte of an odd
/// size is ignored.
pub(crate) fn capped(side: Buffer, asked: u64, got: u64) -> Option<Warning> {
    let (code, what, sysctl) = match side {
        Buffer::Receive => ("rcvbuf-capped", "receive", "net.core.rmem_max"),
        Buffer::Send => ("sndbuf-capped", "send", "net.core.wmem_max"),
    };
    let name = name(side);
    (got < asked / 2 * 2).then(|| {
        Warning::new(code, format!("the kernel gave {got} of {asked} bytes of {what} buffer"))
            .because(format!("{sysctl} caps {name} (the kernel doubles the requested value)"))
            .cure(format!("run it as root or with CAP_NET_ADMIN, or raise {sysctl}"))
    })
}

fn name(side: Buffer) -> &'static str {
    match side {
        Buffer::Receive => "SO_RCVBUF",
        Buffer::Send => "SO_SNDBUF",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_size_is_not_capped() {
        assert_eq!(capped(Buffer::Receive, 8193, 8192), None);
        assert_eq!(capped(Buffer::Send, 8192, 8192), None);
        let warning = capped(Buffer::Send, 8194, 8192).unwrap();
        assert_eq!(warning.code, "sndbuf-capped");
        assert!(warning.to_string().contains("8192 of 8194"), "{warning}");
    }
}
