//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`: state, CPU time, nice and last CPU of a process or thread.
//!
//! **Source** fs/proc/array.c, `do_task_stat`; field numbers as in proc(5).

use std::os::unix::fs::MetadataExt;

use crate::parse::{ParseError, number};
use crate::{HostError, Root};

/// One process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// Process id, or thread id when the file is below `task/`.
    pub id: i32,
    /// Name, up to 15 bytes for user threads; bytes that are not UTF-8 are replaced.
    pub comm: String,
    /// `R`, `S`, `D`, `Z`, ...
    pub state: char,
    /// Parent process.
    pub ppid: i32,
    /// User time in `USER_HZ`.
    pub utime: u64,
    /// System time in `USER_HZ`.
    pub stime: u64,
    /// User and system time of children that ended and were waited for, with theirs, in `USER_HZ`.
    pub children: u64,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// Threads of the process.
    pub threads: u32,
    /// Start, in `USER_HZ` since boot: with the id it names a process for good.
    pub start_time: u64,
    /// CPU that it ran on last.
    pub processor: u32,
    /// Real-time priority; 0 of other policies.
    pub rt_priority: u32,
    /// Scheduling policy (`SCHED_OTHER` 0, `SCHED_FIFO` 1, ...).
    pub policy: u32,
}

/// Reads the file's bytes: `comm` may hold spaces, parentheses, line ends and bytes that are not UTF-8.
///
/// **Errors** a field that is missing or no number.
pub fn parse(bytes: &[u8]) -> Result<TaskStat, ParseError> {
    let bad = |why: &str| ParseError::new(1, why);
    let open =
        bytes.iter().position(|b| *b == b'(').ok_or_else(|| bad("no `(` before the name"))?;
    // The name is whatever stands before the last parenthesis: no later field has one.
    let close =
        bytes.iter().rposition(|b| *b == b')').ok_or_else(|| bad("no `)` after the name"))?;
    if close < open {
        return Err(bad("parentheses in the wrong order"));
    }
    let id = str::from_utf8(&bytes[..open]).map_err(|_| bad("the id is not text"))?;
    let rest = str::from_utf8(&bytes[close + 1..]).map_err(|_| bad("the fields are not text"))?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of proc(5) is the first after the name.
    let field = |at: usize| fields.get(at - 3).copied();
    let children = [number::<u64>(1, "cutime", field(16))?, number(1, "cstime", field(17))?];
    Ok(TaskStat {
        id: number(1, "the id", Some(id.trim()))?,
        comm: String::from_utf8_lossy(&bytes[open + 1..close]).into_owned(),
        state: field(3).and_then(|s| s.chars().next()).ok_or_else(|| bad("no state"))?,
        ppid: number(1, "ppid", field(4))?,
        utime: number(1, "utime", field(14))?,
        stime: number(1, "stime", field(15))?,
        children: children[0].saturating_add(children[1]),
        nice: number(1, "nice", field(19))?,
        threads: number(1, "num_threads", field(20))?,
        start_time: number(1, "starttime", field(22))?,
        processor: number(1, "processor", field(39))?,
        rt_priority: number(1, "rt_priority", field(40))?,
        policy: number(1, "policy", field(41))?,
    })
}

/// Reads a process, or a thread of it when `tid` is given.
///
/// **Errors** [`HostError::Missing`] when it is gone.
pub fn read(root: &Root, pid: i32, tid: Option<i32>) -> Result<TaskStat, HostError> {
    let path = match tid {
        Some(tid) => format!("/proc/{pid}/task/{tid}/stat"),
        None => format!("/proc/{pid}/stat"),
    };
    // 52 fields (fs/proc/array.c `do_task_stat`): a name of less than 64 bytes, a state, and numbers of at most 20 digits.
    let mut buffer = [0; 2048];
    parse(root.once_bytes(&path, &mut buffer)?).map_err(|e| e.at(root.path(&path)))
}

/// Process ids, in order.
pub fn processes(root: &Root) -> Result<Vec<i32>, HostError> {
    let mut pids: Vec<i32> =
        root.list("/proc")?.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Which of these names (`comm`, at most 15 bytes) a process bears, sorted.
pub fn named(root: &Root, pids: &[i32], names: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = pids
        .iter()
        .filter_map(|pid| root.value(&format!("/proc/{pid}/comm")).ok())
        .filter(|comm| names.contains(&comm.as_str()))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The process and everything that it forked and that has not been adopted by another, in order.
///
/// **Caveat** a process that appears or ends while this reads may be missing.
pub fn family(root: &Root, pid: i32) -> Vec<i32> {
    let pids = processes(root).unwrap_or_default().into_iter();
    let tasks = pids.filter_map(|pid| read(root, pid, None).ok());
    let mut family = descendants(pid, &tasks.map(|task| (task.ppid, task.id)).collect::<Vec<_>>());
    family.sort_unstable();
    family
}

/// `first` and those that descend from it; `all` are parents, each with one child.
pub fn descendants<P: Copy + PartialEq>(first: P, all: &[(P, P)]) -> Vec<P> {
    let mut family = vec![first];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        for (_, child) in all.iter().filter(|(of, _)| *of == parent) {
            if !family.contains(child) {
                family.push(*child);
            }
        }
        next += 1;
    }
    family
}

/// Thread ids of a process, in order.
///
/// **Errors** [`HostError::Missing`] when the process is gone.
pub fn threads(root: &Root, pid: i32) -> Result<Vec<i32>, HostError> {
    let path = format!("/proc/{pid}/task");
    // Two links of its own and one for each thread (fs/proc/base.c `proc_task_getattr`): most processes have one, and
    // looking is cheaper than listing.
    if root.is_live() {
        let about = std::fs::metadata(root.path(&path));
        let about = about.map_err(|e| HostError::from_io("read", &root.path(&path), e))?;
        if about.nlink() == 3 {
            return Ok(vec![pid]);
        }
    }
    let names = root.list(&path)?;
    let mut tids: Vec<i32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    Ok(tids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(comm: &[u8]) -> Vec<u8> {
        let mut line = b"42 (".to_vec();
        line.extend(comm);
        line.extend(b") S 1 42 42 0 -1 4194304 96 0 0 0 7 8 0 0 20 -5 3 0 161101 3133440 360 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n");
        line
    }

    #[test]
    fn fields_are_counted_after_the_name() {
        for comm in ["cat", "a b) S 9 (c", "((", "))", "", "x\ny"] {
            let task = parse(&line(comm.as_bytes())).unwrap();
            assert_eq!(task.comm, comm);
            assert_eq!(
                (task.id, task.state, task.ppid, task.utime, task.stime),
                (42, 'S', 1, 7, 8)
            );
            assert_eq!((task.nice, task.threads, task.start_time), (-5, 3, 161_101));
            assert_eq!((task.processor, task.rt_priority, task.policy), (1, 0, 0));
        }
    }

    #[test]
    fn a_forked_process_is_family() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo started; read line; kill $!"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let pid = shell.id() as i32;
        let family = family(&Root::host(), pid);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(family.len(), 2, "{family:?}");
        assert!(family.contains(&pid));
    }

    #[test]
    fn this_process_reads_itself() {
        let pid = std::process::id() as i32;
        let root = Root::host();
        let task = read(&root, pid, None).unwrap();
        assert_eq!(task.id, pid);
        assert!(threads(&root, pid).unwrap().contains(&pid));
        assert!(processes(&root).unwrap().contains(&pid));
    }

    #[test]
    fn a_line_cut_short_is_refused() {
        let whole = line(b"cat");
        assert!(parse(&whole[..40]).unwrap_err().why.contains("missing"));
        assert!(parse(b"42 cat S").is_err());
        assert!(parse(b")(").is_err());
    }

    proptest! {
        #[test]
        fn any_name_is_read(comm in proptest::collection::vec(any::<u8>(), 0..16)) {
            let task = parse(&line(&comm)).unwrap();
            prop_assert_eq!(task.comm, String::from_utf8_lossy(&comm).into_owned());
            prop_assert_eq!(task.processor, 1);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
        }
    }
}
