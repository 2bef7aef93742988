//! What can go wrong between this program and the host, by what the caller can do about it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rxpath_core::Fact;
use thiserror::Error;

/// A failed reading or setting of the host.
#[derive(Debug, Error)]
pub enum HostError {
    /// The kernel has it and refused: run with the capability.
    #[error("{what}: permission denied, needs {capability}")]
    Denied {
        /// What was tried.
        what: String,
        /// The capability or file permission that would allow it.
        capability: String,
    },
    /// This kernel, device or namespace can't do it: do without, or change the host.
    #[error("{what}: not supported here, needs {needs}")]
    Unsupported {
        /// What was tried.
        what: String,
        /// The kernel option, version or device that has it.
        needs: String,
    },
    /// The file, device or object is not there.
    #[error("{}: no such file or object", path.display())]
    Missing {
        /// What was looked for.
        path: PathBuf,
    },
    /// It was read and is not what it should be: a defect of the kernel, the capture or this program.
    #[error("{}{}: {why}", path.display(), if *line == 0 { String::new() } else { format!(":{line}") })]
    Malformed {
        /// The source.
        path: PathBuf,
        /// Line, from 1; 0 when the whole source is meant.
        line: usize,
        /// What is wrong and what was expected.
        why: String,
    },
    /// Reading or writing failed for another reason.
    #[error("cannot {op} {}", path.display())]
    Io {
        /// `read`, `write`, `list`, `open`, ...
        op: &'static str,
        /// Of what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A system call or netlink request was refused.
    #[error("{op}: {}", refusal(*errno, extack.as_deref()))]
    Kernel {
        /// What was asked for, with its object: `create veth rxp0`.
        op: String,
        /// The positive error number.
        errno: i32,
        /// The kernel's own words (`NLMSGERR_ATTR_MSG`), when it gave some.
        extack: Option<String>,
    },
}

/// Errors that say nothing about whether the object has what was asked for.
const PASSING: [i32; 9] = [
    libc::EINTR,
    libc::EAGAIN,
    libc::EBUSY,
    libc::EIO,
    libc::EMFILE,
    libc::ENFILE,
    libc::ENOBUFS,
    libc::ENOMEM,
    libc::ETIMEDOUT,
];

impl HostError {
    /// Whether the same question may be answered at another time: the object may well have what was asked for.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Kernel { errno, .. } => PASSING.contains(errno),
            Self::Io { source, .. } => {
                source.raw_os_error().is_some_and(|errno| PASSING.contains(&errno))
            }
            _ => false,
        }
    }

    /// The error of a failed `op` on `path`, classified by its error number.
    ///
    /// `EOPNOTSUPP` and `EINVAL` on reading an attribute mean that the driver does not have it
    /// (sysfs `speed` of a veth, `net/core/dev.c` `speed_show`).
    pub fn from_io(op: &'static str, path: &Path, source: io::Error) -> Self {
        let what = || format!("{op} {}", path.display());
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ESRCH) => {
                Self::Missing { path: path.into() }
            }
            Some(libc::EACCES | libc::EPERM) => {
                Self::Denied { what: what(), capability: capability_for(op, path) }
            }
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                Self::Unsupported { what: what(), needs: "a kernel or driver that has it".into() }
            }
            Some(libc::EINVAL) if op == "read" => {
                Self::Unsupported { what: what(), needs: "a driver that has this attribute".into() }
            }
            _ if source.kind() == io::ErrorKind::NotFound => Self::Missing { path: path.into() },
            _ => Self::Io { op, path: path.into(), source },
        }
    }

    /// The error of a system call that just failed, from `errno`: read before `op` becomes text, for which memory may be
    /// allocated.
    pub fn last_os(op: impl fmt::Display) -> Self {
        let error = io::Error::last_os_error();
        Self::os(op.to_string(), &error)
    }

    /// The error of a failed system call that names no file.
    pub fn os(op: impl Into<String>, error: &io::Error) -> Self {
        Self::kernel(op, error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// A refused system call or request.
    pub fn kernel(op: impl Into<String>, errno: i32) -> Self {
        Self::Kernel { op: op.into(), errno, extack: None }
    }

    /// Why, in one line with its cause: for a reader who knows the object already.
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Kernel { errno, extack, .. } => refusal(*errno, extack.as_deref()),
            other => other.to_string(),
        }
    }

    /// Its text and its cause.
    pub(crate) fn with_cause(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            other => other.to_string(),
        }
    }

    /// Something that this kernel, device or namespace can't do.
    pub fn unsupported(what: impl Into<String>, needs: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), needs: needs.into() }
    }

    /// A malformed source.
    pub fn malformed(path: impl Into<PathBuf>, line: usize, why: impl Into<String>) -> Self {
        Self::Malformed { path: path.into(), line, why: why.into() }
    }

    /// The gap that this error leaves in a list of facts.
    pub fn into_gap<T>(self) -> Fact<T> {
        match self {
            Self::Denied { capability, .. } => Fact::denied(capability),
            Self::Kernel { errno: libc::EPERM | libc::EACCES, .. } => {
                Fact::denied(format!("more privilege ({self})"))
            }
            other => Fact::absent(other.with_cause()),
        }
    }
}

/// What the kernel answered.
fn refusal(errno: i32, extack: Option<&str>) -> String {
    let error = io::Error::from_raw_os_error(errno);
    extack.map_or_else(|| error.to_string(), |words| format!("{error}: {words}"))
}

/// A reading as a fact: errors become gaps with their reason.
pub fn fact<T>(result: Result<T, HostError>) -> Fact<T> {
    result.map_or_else(HostError::into_gap, Fact::ok)
}

/// What several facts are parts of: where it could not be read, each of them is a gap for the same reason.
pub(crate) fn parts_of<T>(read: &Result<T, HostError>) -> Fact<&T> {
    read.as_ref().map_or_else(|error| Fact::absent(error.to_string()), Fact::ok)
}

/// Which capability allows what was refused; the kernel does not say, so this names what its checks ask for.
///
/// Most refusals are those of a file that is root's alone (`ip_tables_names`, module parameters, tracefs):
/// CAP_DAC_READ_SEARCH reads and lists all of them, CAP_DAC_OVERRIDE writes. Sysctls of the network take CAP_NET_ADMIN for
/// root (net/sysctl_net.c `net_ctl_permissions`), those of the BPF compiler CAP_SYS_ADMIN besides
/// (net/core/sysctl_net_core.c `proc_dointvec_minmax_bpf_restricted`), other sysctls ask for the user root alone
/// (fs/proc/proc_sysctl.c `test_perm`), attributes of a device want it besides
/// (net/core/net-sysfs.c `netdev_store`), and what a process holds is shown to who may trace it (fs/proc/base.c
/// `proc_fd_access_allowed`).
fn capability_for(op: &str, path: &Path) -> String {
    let path = path.to_string_lossy();
    let reads = matches!(op, "read" | "list" | "open");
    let files = if reads { "CAP_DAC_READ_SEARCH" } else { "CAP_DAC_OVERRIDE" };
    let is_process = path.strip_prefix("/proc/").is_some_and(|rest| {
        rest.split('/').next().is_some_and(|first| first.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if path.starts_with("/proc/sys/net/core/bpf_jit_") {
        "CAP_NET_ADMIN and CAP_SYS_ADMIN".into()
    } else if path.starts_with("/proc/sys/net/") {
        "CAP_NET_ADMIN".into()
    } else if path.starts_with("/proc/sys/") {
        "the user root".into()
    } else if is_process {
        format!("{files} and CAP_SYS_PTRACE, or the same user")
    } else if path.starts_with("/sys/class/net/") && !reads {
        format!("CAP_NET_ADMIN and {files} (root)")
    } else {
        format!("{files} (root)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: &'static str, path: &str, errno: i32) -> HostError {
        HostError::from_io(op, Path::new(path), io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn errors_become_the_right_gap() {
        for (op, path, needs) in [
            ("read", "/sys/kernel/debug/x", "CAP_DAC_READ_SEARCH (root)"),
            ("read", "/proc/net/ip_tables_names", "CAP_DAC_READ_SEARCH (root)"),
            ("read", "/proc/sys/net/core/bpf_jit_harden", "CAP_NET_ADMIN and CAP_SYS_ADMIN"),
            ("write", "/proc/sys/net/core/rmem_max", "CAP_NET_ADMIN"),
            ("read", "/proc/sys/vm/mmap_rnd_bits", "the user root"),
            ("list", "/proc/71/fd", "CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE, or the same user"),
            ("write", "/sys/class/net/e0/threaded", "CAP_NET_ADMIN and CAP_DAC_OVERRIDE (root)"),
            ("write", "/sys/devices/system/cpu/smt/control", "CAP_DAC_OVERRIDE (root)"),
        ] {
            let denied: Fact<u8> = of(op, path, libc::EACCES).into_gap();
            assert_eq!(denied, Fact::denied(needs), "{op} {path}");
        }
        let absent: Fact<u8> = of("read", "/proc/net/nope", libc::ENOENT).into_gap();
        assert_eq!(absent.gap().unwrap(), "absent: /proc/net/nope: no such file or object");
        let driver: Fact<u8> = of("read", "/sys/class/net/v0/speed", libc::EINVAL).into_gap();
        assert!(driver.gap().unwrap().contains("driver"));
        let io: Fact<u8> = of("read", "/proc/x", libc::EIO).into_gap();
        assert!(io.gap().unwrap().contains("cannot read /proc/x: Input/output error"));
    }

    #[test]
    fn a_kernel_error_is_one_line_with_the_kernels_own_words() {
        let error = HostError::Kernel {
            op: "create veth a".into(),
            errno: libc::EEXIST,
            extack: Some("name taken".into()),
        };
        assert_eq!(error.to_string(), "create veth a: File exists (os error 17): name taken");
    }
}
