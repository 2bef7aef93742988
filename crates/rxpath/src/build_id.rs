//! Which sources this program is built from, for the program itself and for those that read its file.

/// Of this program: its version and a hash of its sources.
pub const ID: &str = env!("RXPATH_BUILD");
/// What `-V` prints: rxpath-agent says that it is one.
pub const VERSION: &str = env!("RXPATH_VERSION");
/// What `--version` prints.
pub const LONG_VERSION: &str = concat!(env!("RXPATH_VERSION"), "\nbuild ", env!("RXPATH_BUILD"));
/// The mark that [`rxpath_remote::ProgramFile::read`] looks for in a file.
const MARK: &str = concat!("@@rxpath-build ", env!("RXPATH_BUILD"), "@@");

/// The build id. Keeps the mark in the program's file, whole.
pub fn id() -> &'static str {
    // why: a constant that nobody could read would not be linked.
    debug_assert!(std::hint::black_box(MARK).contains(ID));
    std::hint::black_box(MARK);
    ID
}
