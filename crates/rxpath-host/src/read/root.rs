//! Where files are read from: the running host, a network namespace seen by this thread, or a captured tree.
//!
//! Readers take paths as the kernel names them (`/proc/net/snmp`) and never know which of the three it is.
//! Reads are bounded: a file that does not end is refused. Nothing here writes.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, readlinkat};
use nix::sys::stat::Mode;
use rxpath_core::CpuList;

use self::beneath::Beneath;
use crate::HostError;
use crate::parse::{ParseError, shorten};

mod beneath;

/// The largest file that is read, in bytes.
///
/// `/proc/interrupts` of a machine with 1024 CPUs and 4096 vectors is about 46 MB.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;

/// Where a captured tree keeps the second reading of its counters, as a tree of its own.
pub const LATER: &str = "later";

/// More entries than any directory that is listed here has.
const MAX_ENTRIES: usize = 1 << 20;

/// A place to read a host's files from.
#[derive(Clone, Debug)]
pub struct Root {
    view: View,
    /// Paths that were asked for, where somebody wants to know.
    asked: Option<Asked>,
}

/// Paths that were asked of a [`Root`] and of its copies.
pub type Asked = Arc<Mutex<BTreeSet<String>>>;

#[derive(Clone, Debug)]
enum View {
    /// `/proc` and `/sys` of this process.
    Host,
    /// The network namespace of the calling thread.
    ThreadNet {
        /// A sysfs that was mounted inside that namespace.
        sysfs: PathBuf,
    },
    /// A directory with `proc/`, `sys/`, ... below it.
    Tree(Beneath),
}

impl Default for Root {
    fn default() -> Self {
        Self::host()
    }
}

impl Root {
    /// The running host as this process sees it.
    pub fn host() -> Self {
        Self { view: View::Host, asked: None }
    }

    /// The network namespace of the thread that reads.
    ///
    /// `/proc/net` and `/sys/class/net` of a thread that called `setns` still show the process's first
    /// namespace: `/proc/net` is a link to `self/net` (the thread group leader's), and a sysfs shows the
    /// namespace it was mounted in (fs/sysfs/mount.c, `sysfs_init_fs_context`). So this view reads
    /// `/proc/thread-self/net` and takes `/sys/class/net` from `sysfs`, a sysfs mounted inside the namespace.
    /// `/proc/sys/net` needs no change: it is looked up in the namespace of the calling thread
    /// (`net/sysctl_net.c`, `net_ctl_header_lookup`).
    ///
    /// **Caveat** the owner of this value must read from a thread that is inside the namespace.
    pub fn thread_netns(sysfs: impl Into<PathBuf>) -> Self {
        Self { view: View::ThreadNet { sysfs: sysfs.into() }, asked: None }
    }

    /// A captured tree: `base/proc/net/snmp` stands for `/proc/net/snmp`.
    ///
    /// Links inside the tree that lead out of it are refused, so a tree from a stranger can't show
    /// this host's files.
    ///
    /// **Errors** [`HostError::Missing`] when `base` is no directory, [`HostError::Malformed`] when it
    /// holds neither `proc` nor `sys`.
    pub fn tree(base: impl AsRef<Path>) -> Result<Self, HostError> {
        let base = base.as_ref();
        let real = base.canonicalize().map_err(|e| HostError::from_io("open", base, e))?;
        if !real.join("proc").is_dir() && !real.join("sys").is_dir() {
            let why = "no captured tree: has no proc or sys below it";
            return Err(HostError::malformed(base, 0, why));
        }
        let beneath = Beneath::new(real).map_err(|e| HostError::from_io("open", base, e))?;
        Ok(Self { view: View::Tree(beneath), asked: None })
    }

    /// The same, noting every path that is asked for.
    #[must_use]
    pub fn noting(mut self, asked: &Asked) -> Self {
        self.asked = Some(Arc::clone(asked));
        self
    }

    /// The second reading of the counters that a captured tree holds; `None` for a tree with one reading, and on the
    /// running host.
    pub fn later(&self) -> Option<Self> {
        let View::Tree(tree) = &self.view else { return None };
        tree.open(LATER, OFlag::O_PATH).ok()?;
        Self::tree(tree.base.join(LATER)).ok()
    }

    /// Whether this is the running host and not a captured tree: only then may system calls add to what files say.
    pub fn is_live(&self) -> bool {
        !matches!(self.view, View::Tree(_))
    }

    /// Where `path` (absolute, as the kernel names it) really lies.
    pub fn path(&self, path: &str) -> PathBuf {
        let relative = path.trim_start_matches('/');
        if let Some(asked) = &self.asked {
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        }
        match &self.view {
            View::Host => PathBuf::from(path),
            View::Tree(tree) => tree.base.join(relative),
            View::ThreadNet { sysfs } => {
                if let Some(rest) = below(relative, "proc/net") {
                    Path::new("/proc/thread-self/net").join(rest)
                } else if below(relative, "sys/class/net").is_some() {
                    sysfs.join(relative.trim_start_matches("sys/"))
                } else {
                    PathBuf::from(path)
                }
            }
        }
    }

    /// Opens a file for reading.
    ///
    /// **Errors** as [`HostError::from_io`]; [`HostError::Malformed`] for what is no file and for a
    /// link that leads out of a captured tree.
    pub fn open(&self, path: &str) -> Result<File, HostError> {
        let real = self.path(path);
        let file = match &self.view {
            View::Tree(tree) => below_root(tree, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?,
            // A FIFO put in the place of a file must not hang the reader.
            View::Host | View::ThreadNet { .. } => OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                .open(&real)
                .map_err(|e| HostError::from_io("read", &real, e))?,
        };
        let kind = file.metadata().map_err(|e| HostError::from_io("read", &real, e))?.file_type();
        if kind.is_file() {
            Ok(file)
        } else {
            Err(HostError::malformed(real, 0, "not a regular file"))
        }
    }

    /// The text of [`Root::once_bytes`].
    ///
    /// **Errors** as [`Root::text`]; `Malformed` when it does not fit.
    pub fn once<'b>(&self, path: &str, buffer: &'b mut [u8]) -> Result<&'b str, HostError> {
        str::from_utf8(self.once_bytes(path, buffer)?).map_err(|_| {
            HostError::malformed(self.path(path), 1, "not text (bytes that are not UTF-8)")
        })
    }

    /// A small file of `/proc` that the kernel makes at once (`single_open`), with one read into `buffer`.
    ///
    /// **Cost** three system calls, for readers of a file for each thread of the machine; [`Root::bytes`] takes five.
    /// **Errors** as [`Root::open`]; `Malformed` when it does not fit.
    pub fn once_bytes<'b>(&self, path: &str, buffer: &'b mut [u8]) -> Result<&'b [u8], HostError> {
        let failed = |e: io::Error| HostError::from_io("read", &self.path(path), e);
        let mut file = match &self.view {
            // The kernel has no FIFO there, and the kind of the file would be one more call.
            View::Host => File::open(self.path(path)).map_err(failed)?,
            View::Tree(_) | View::ThreadNet { .. } => self.open(path)?,
        };
        let length = file.read(buffer).map_err(failed)?;
        if length == buffer.len() {
            return Err(HostError::malformed(self.path(path), 1, "longer than expected"));
        }
        Ok(&buffer[..length])
    }

    /// The whole file.
    ///
    /// **Errors** as [`Root::open`]; [`HostError::Malformed`] above `MAX_FILE_BYTES`.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, HostError> {
        // The kernel gives the size of a file of /proc or sysfs as nothing or a page. Most files fit here: one read has all of
        // it, and the next one nothing.
        let mut content = Vec::with_capacity(4 << 10);
        self.open(path)?
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(|e| HostError::from_io("read", &self.path(path), e))?;
        if content.len() as u64 > MAX_FILE_BYTES {
            let why = format!("larger than {} MiB, refused", MAX_FILE_BYTES >> 20);
            return Err(HostError::malformed(self.path(path), 0, why));
        }
        Ok(content)
    }

    /// The whole file as text.
    ///
    /// **Errors** as [`Root::bytes`]; [`HostError::Malformed`] when it is not UTF-8.
    pub fn text(&self, path: &str) -> Result<String, HostError> {
        String::from_utf8(self.bytes(path)?).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..good].split(|b| *b == b'\n').count();
            HostError::malformed(self.path(path), line, "not text (bytes that are not UTF-8)")
        })
    }

    /// The file without the white space around it: a sysfs attribute.
    pub fn value(&self, path: &str) -> Result<String, HostError> {
        Ok(self.text(path)?.trim().to_owned())
    }

    /// The number or other simple type that the file holds.
    pub fn number<T: FromStr>(&self, path: &str) -> Result<T, HostError> {
        let text = self.value(path)?;
        text.parse().map_err(|_| {
            let why = format!("`{}` is not the expected number", shorten(&text));
            HostError::malformed(self.path(path), 1, why)
        })
    }

    /// The CPU list that the file holds; an empty file is an empty list.
    pub fn cpus(&self, path: &str) -> Result<CpuList, HostError> {
        self.value(path)?.parse().map_err(|e: rxpath_core::ParseUnitError| {
            HostError::malformed(self.path(path), 1, e.to_string())
        })
    }

    /// Reads `path` and parses it with `parse`.
    pub fn parsed<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, HostError> {
        parse(&self.text(path)?).map_err(|e| e.at(self.path(path)))
    }

    /// Names in a directory, sorted; names that are not UTF-8 are left out.
    pub fn list(&self, path: &str) -> Result<Vec<String>, HostError> {
        let real = self.path(path);
        let failed = |e: Errno| HostError::from_io("list", &real, e.into());
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut dir = match &self.view {
            View::Tree(tree) => Dir::from_fd(below_root(tree, path, flags)?.into()),
            View::Host | View::ThreadNet { .. } => Dir::open(&real, flags, Mode::empty()),
        }
        .map_err(failed)?;
        let mut names = Vec::new();
        for entry in dir.iter().take(MAX_ENTRIES) {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."));
            names.extend(name.map(ToOwned::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether `path` is a directory (links followed).
    pub fn is_dir(&self, path: &str) -> bool {
        let real = self.path(path);
        match &self.view {
            View::Tree(tree) => below_root(tree, path, OFlag::O_PATH | OFlag::O_DIRECTORY).is_ok(),
            View::Host | View::ThreadNet { .. } => real.is_dir(),
        }
    }

    /// Whether `path` is there.
    pub fn exists(&self, path: &str) -> bool {
        let real = self.path(path);
        match &self.view {
            View::Tree(tree) => below_root(tree, path, OFlag::O_PATH).is_ok(),
            View::Host | View::ThreadNet { .. } => real.exists(),
        }
    }

    /// Where a symbolic link points to, as written in it.
    pub fn link(&self, path: &str) -> Result<PathBuf, HostError> {
        let real = self.path(path);
        let (View::Tree(tree), Some((parent, name))) = (&self.view, path.rsplit_once('/')) else {
            return fs::read_link(&real).map_err(|e| HostError::from_io("read", &real, e));
        };
        // The link itself need not lead anywhere; the way to it stays inside the tree.
        let parent = below_root(tree, parent, OFlag::O_PATH | OFlag::O_DIRECTORY)?;
        let to = readlinkat(&parent, name);
        to.map(PathBuf::from).map_err(|e| HostError::from_io("read", &real, e.into()))
    }
}

/// Opens a path of the kernel in a captured tree.
fn below_root(tree: &Beneath, path: &str, flags: OFlag) -> Result<File, HostError> {
    let relative = path.trim_start_matches('/');
    let refused = |e| beneath::refusal("read", &tree.base.join(relative), e);
    tree.open(relative, flags).map_err(refused)
}

/// What follows the directory `dir` in `path`.
fn below<'a>(path: &'a str, dir: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(dir)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/net")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn a_namespaces_paths_are_the_threads_own() {
        let root = Root::thread_netns("/run/x/sys");
        assert_eq!(root.path("/proc/net/snmp"), Path::new("/proc/thread-self/net/snmp"));
        assert_eq!(root.path("/sys/class/net/lo"), Path::new("/run/x/sys/class/net/lo"));
        assert_eq!(root.path("/proc/network"), Path::new("/proc/network"));
        assert_eq!(root.path("/sys/devices/system/cpu"), Path::new("/sys/devices/system/cpu"));
        assert_eq!(root.path("/proc/stat"), Path::new("/proc/stat"));
        assert_eq!(Root::host().path("/proc/net/snmp"), Path::new("/proc/net/snmp"));
    }

    #[test]
    fn a_tree_does_not_show_this_hosts_files() {
        let (dir, root) = tree();
        std::os::unix::fs::symlink("/proc/version", dir.path().join("proc/version")).unwrap();
        let error = root.text("/proc/version").unwrap_err();
        assert!(error.to_string().contains("leads out of the captured tree"), "{error}");
        assert!(!root.exists("/proc/version"));
        assert!(root.text("/proc/../../../../../../etc/hostname").is_err());
        // Not the target of a link of this host either, over a directory that leads out.
        std::os::unix::fs::symlink("/proc/self", dir.path().join("proc/self")).unwrap();
        let error = root.link("/proc/self/exe").unwrap_err();
        assert!(error.to_string().contains("leads out of the captured tree"), "{error}");
        assert_eq!(root.link("/proc/self").unwrap(), Path::new("/proc/self"), "the link itself");
    }

    #[test]
    fn endless_and_odd_files_are_refused() {
        let (dir, root) = tree();
        let fifo = dir.path().join("proc/fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(root.text("/proc/fifo").unwrap_err().to_string().contains("not a regular file"));
        let huge = File::create(dir.path().join("proc/huge")).unwrap();
        huge.set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(root.text("/proc/huge").unwrap_err().to_string().contains("larger than 64 MiB"));
        fs::write(dir.path().join("proc/garbage"), b"ok\n\xff\xfe").unwrap();
        let error = root.text("/proc/garbage").unwrap_err();
        assert!(matches!(error, HostError::Malformed { line: 2, .. }), "{error}");
        assert!(matches!(root.text("/proc/none").unwrap_err(), HostError::Missing { .. }));
    }

    #[test]
    fn a_file_that_is_read_at_once_is_whole_or_refused() {
        let (dir, root) = tree();
        fs::write(dir.path().join("proc/small"), b"ok\xff").unwrap();
        assert_eq!(root.once_bytes("/proc/small", &mut [0; 4]).unwrap(), b"ok\xff");
        // A full buffer may have lost the end of the file.
        let mut buffer = [0; 3];
        for room in [2, 3] {
            let error = root.once_bytes("/proc/small", &mut buffer[..room]).unwrap_err();
            assert!(error.to_string().contains("longer than expected"), "{error}");
        }
        let error = root.once("/proc/small", &mut [0; 4]).unwrap_err();
        assert!(error.to_string().contains("not text"), "{error}");
        let missing = root.once_bytes("/proc/none", &mut [0; 4]).unwrap_err();
        assert!(matches!(missing, HostError::Missing { .. }), "{missing}");
    }

    #[test]
    fn what_is_read_at_once_is_noted_too() {
        let asked = Asked::default();
        let root = Root::host().noting(&asked);
        root.once_bytes("/proc/self/stat", &mut [0; 2048]).unwrap();
        let asked = asked.lock().unwrap();
        assert!(asked.contains("/proc/self/stat"), "{asked:?}");
    }

    #[test]
    fn a_directory_that_is_no_tree_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Root::tree(dir.path()).is_err());
        assert!(Root::tree("/no/such/dir").is_err());
    }
}
