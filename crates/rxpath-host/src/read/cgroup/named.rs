//! Who a control group stands for: the service, pod, container or user that its path names.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::tree;
use crate::Root;
use crate::parse::is_number;
use crate::read::procfs::is_first_pid_namespace;

/// What a group stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// A unit of systemd.
    Unit,
    /// A pod of Kubernetes, by its uid.
    Pod,
    /// A container outside Kubernetes, by the first 12 digits of its id.
    Container,
    /// A user's sessions, by the user's number.
    User,
    /// Another group, by its path.
    Group,
}

/// A group by what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    /// What it is.
    pub kind: GroupKind,
    /// Its name, at most `NAME_BYTES` long.
    pub name: String,
}

/// A longer name is cut: who makes groups chooses their names.
pub const NAME_BYTES: usize = 96;
/// Digits of a container's id, as `docker ps` shows them.
const ID_DIGITS: usize = 12;
/// What systemd's name of a container's scope begins with, by the program that made it.
const MAKERS: [&str; 5] = ["docker-", "libpod-", "crio-", "cri-containerd-", "containerd-"];

impl GroupName {
    /// From a group's path, as `/proc/PID/cgroup` has it; none for the root group.
    ///
    /// **Source** systemd's `src/basic/cgroup-util.c`; kubelet's `cgroup_manager_linux.go`, both of its drivers.
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
        if parts.is_empty() {
            return None;
        }
        let first = |of: fn(&str) -> Option<String>| parts.iter().find_map(|part| of(part));
        let found = first(pod)
            .map(|name| (GroupKind::Pod, name))
            .or_else(|| container(&parts).map(|name| (GroupKind::Container, name)))
            .or_else(|| first(user).map(|name| (GroupKind::User, name)))
            .or_else(|| unit(&parts).map(|name| (GroupKind::Unit, name)));
        let (kind, name) = found.unwrap_or_else(|| (GroupKind::Group, parts.join("/")));
        Some(Self { kind, name: bounded(&name) })
    }
}

/// No longer than [`NAME_BYTES`], and without control characters.
fn bounded(name: &str) -> String {
    let mut clean: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    while clean.len() > NAME_BYTES {
        clean.pop();
    }
    clean
}

/// `pod<uid>` of the cgroupfs driver, `kubepods-burstable-pod<uid>.slice` of systemd's, which has `_` for `-`.
fn pod(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) if slice.starts_with("kubepods") => slice.rsplit_once("-pod")?.1,
        _ => part.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let is_uid = uid.len() >= 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uid.then_some(uid)
}

/// A scope or a group with 64 hexadecimal digits.
fn container(parts: &[&str]) -> Option<String> {
    let id = |part: &&str| {
        let scope = part.strip_suffix(".scope").unwrap_or(part);
        let id = MAKERS.iter().find_map(|maker| scope.strip_prefix(maker)).unwrap_or(scope);
        let is_id = id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
        is_id.then(|| id[..ID_DIGITS].to_owned())
    };
    parts.iter().find_map(id)
}

/// `user-1000.slice`.
fn user(part: &str) -> Option<String> {
    let number = part.strip_prefix("user-")?.strip_suffix(".slice")?;
    is_number(number).then(|| number.to_owned())
}

/// The uppermost service: groups that it makes below itself are its own. Else the lowest scope or slice.
fn unit(parts: &[&str]) -> Option<String> {
    let service = parts.iter().find(|part| part.ends_with(".service"));
    let is_unit =
        |part: &&&str| [".scope", ".slice"].iter().any(|kind| part.strip_suffix(kind).is_some());
    let other = || parts.iter().rev().find(is_unit);
    service.or_else(other).map(|unit| (*unit).to_owned())
}

/// Names of groups by their ids. A task that ended has no group to ask for: its group is known from another one, or from the
/// tree of groups.
#[derive(Debug, Default)]
pub struct GroupNames {
    known: HashMap<u64, Option<GroupName>>,
    /// Groups that were not in the tree when it was walked for them: they ended, or are outside what is visible here.
    absent: HashSet<u64>,
    walked: Option<Instant>,
    /// Until the next walk, from the last one on.
    pause: Duration,
}

/// Groups that are remembered.
const MOST: usize = 4096;
/// The tree of groups is walked again after this time at the earliest.
const WALK_AGAIN: Duration = Duration::from_secs(10);
/// And after this time at the latest, however many walks found nothing new.
const LONGEST_PAUSE: Duration = Duration::from_secs(160);
/// The root of the hierarchy (kernel/cgroup/cgroup.c, `CGRP_ROOT` has the first inode of its file system).
const ROOT_ID: u64 = 1;

impl GroupNames {
    /// The name of this group, in which the process with this number of the host was when its task ran last. None for the
    /// root group, and for one that is in no tree which is visible here.
    ///
    /// **Source** `/proc/PID/cgroup`, once for each group; where the process has ended, or processes have other numbers
    /// here, the inodes of `/sys/fs/cgroup`. **Cost** a walk of all groups for an unknown one, once for each, at most
    /// every ten seconds. The pause is twice as long after a walk that found nothing new.
    pub fn name(&mut self, root: &Root, id: u64, pid: u32) -> Option<&GroupName> {
        if id <= ROOT_ID {
            return None;
        }
        if !self.known.contains_key(&id) {
            match of_process(root, id, pid) {
                Some(path) => self.keep(vec![(id, path)]),
                None => self.walk(root, id),
            }
        }
        self.known.get(&id)?.as_ref()
    }

    fn walk(&mut self, root: &Root, id: u64) {
        let is_due = self.walked.is_none_or(|at| at.elapsed() >= self.pause);
        if !is_due || self.absent.contains(&id) {
            return;
        }
        self.walked = Some(Instant::now());
        let groups = tree::groups(root, MOST);
        let has_new = groups.iter().any(|(id, _)| !self.known.contains_key(id));
        let pause = if has_new { WALK_AGAIN } else { self.pause * 2 };
        self.pause = pause.clamp(WALK_AGAIN, LONGEST_PAUSE);
        self.keep(groups);
        if !self.known.contains_key(&id) {
            if self.absent.len() >= MOST {
                self.absent.clear();
            }
            self.absent.insert(id);
        }
    }

    fn keep(&mut self, groups: Vec<(u64, String)>) {
        if self.known.len() + groups.len() > MOST {
            self.known.clear();
        }
        let named = groups.into_iter().map(|(id, path)| (id, GroupName::of(&path)));
        self.known.extend(named);
    }
}

/// The path of the group of a process, if that is the one with this id.
fn of_process(root: &Root, id: u64, pid: u32) -> Option<String> {
    // Another process may have that number here.
    if !is_first_pid_namespace(root) {
        return None;
    }
    let text = root.text(&format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    // It may have been moved since.
    let is_another = root
        .path(&format!("/sys/fs/cgroup{path}"))
        .metadata()
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::ino(&meta) != id);
    (!is_another).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn named(path: &str) -> Option<(GroupKind, String)> {
        GroupName::of(path).map(|name| (name.kind, name.name))
    }

    #[test]
    fn a_group_is_named_after_what_it_stands_for() {
        let uid = "6c1b4bd0-5a3c-4f0e-9d1a-0123456789ab";
        let slice = format!("kubepods-burstable-pod{}.slice", uid.replace('-', "_"));
        for (path, kind, name) in [
            ("/system.slice/nginx.service", GroupKind::Unit, "nginx.service"),
            ("/system.slice/a.service/worker.scope", GroupKind::Unit, "a.service"),
            ("/init.scope", GroupKind::Unit, "init.scope"),
            ("/user.slice/user-1000.slice/user@1000.service/x.scope", GroupKind::User, "1000"),
            (&format!("/system.slice/docker-{ID}.scope"), GroupKind::Container, &ID[..12]),
            (&format!("/docker/{ID}"), GroupKind::Container, &ID[..12]),
            (&format!("/machine.slice/libpod-{ID}.scope"), GroupKind::Container, &ID[..12]),
            (&format!("/kubepods.slice/{slice}/cri-containerd-{ID}.scope"), GroupKind::Pod, uid),
            (&format!("/../../kubepods/besteffort/pod{uid}/{ID}"), GroupKind::Pod, uid),
            ("/lxc/web", GroupKind::Group, "lxc/web"),
            ("/user-x.slice", GroupKind::Unit, "user-x.slice"),
        ] {
            assert_eq!(named(path), Some((kind, name.to_owned())), "{path}");
        }
        assert_eq!((named("/"), named("/.."), named("")), (None, None, None));
    }

    #[test]
    fn a_name_is_asked_for_once_and_outlives_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let process = dir.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        std::fs::write(process.join("cgroup"), "3:cpu:/x\n0::/system.slice/a.service\n").unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let mut names = GroupNames::default();
        assert_eq!(names.name(&root, 5, 8), None, "no such process");
        let name = names.name(&root, 5, 7).map(|name| name.name.clone());
        assert_eq!(name.as_deref(), Some("a.service"));
        std::fs::remove_file(process.join("cgroup")).unwrap();
        assert!(names.name(&root, 5, 7).is_some() && names.name(&root, 6, 7).is_none());
        assert!(names.name(&root, ROOT_ID, 7).is_none());
        // A group of that path has another number: the process was moved.
        std::fs::write(process.join("cgroup"), "0::/a.service\n").unwrap();
        std::fs::create_dir_all(dir.path().join("sys/fs/cgroup/a.service")).unwrap();
        assert!(names.name(&root, u64::MAX, 7).is_none());
    }

    #[test]
    fn where_processes_have_other_numbers_a_group_is_found_by_its_inode() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("proc/self/ns");
        std::fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink("pid:[4026532001]", own.join("pid")).unwrap();
        // The process with that number is one of this namespace.
        std::fs::create_dir_all(dir.path().join("proc/7")).unwrap();
        std::fs::write(dir.path().join("proc/7/cgroup"), "0::/a.service\n").unwrap();
        let mount = dir.path().join("sys/fs/cgroup");
        let uid = "6c1b4bd0-5a3c-4f0e-9d1a-0123456789ab";
        let pod = mount.join(format!("kubepods/burstable/pod{uid}/container"));
        std::fs::create_dir_all(&pod).unwrap();
        std::fs::write(mount.join("cgroup.controllers"), "").unwrap();
        let id = std::os::unix::fs::MetadataExt::ino(&pod.metadata().unwrap());
        let root = Root::tree(dir.path()).unwrap();
        let mut names = GroupNames::default();
        let name = names.name(&root, id, 7).map(|name| (name.kind, name.name.clone()));
        assert_eq!(name, Some((GroupKind::Pod, uid.to_owned())));
        // An unknown group does not have the tree walked again at once.
        let late = mount.join("late.service");
        std::fs::create_dir(&late).unwrap();
        let late = std::os::unix::fs::MetadataExt::ino(&late.metadata().unwrap());
        assert!(names.name(&root, late, 7).is_none());
        names.walked = None;
        assert_eq!(names.name(&root, late, 7).map(|name| name.name.as_str()), Some("late.service"));
    }

    #[test]
    fn the_tree_is_walked_once_for_an_absent_group_and_seldom_where_nothing_is_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let mut names = GroupNames::default();
        let mut is_walked_for = |id| {
            names.walked = None;
            assert!(names.name(&root, id, 7).is_none());
            (names.walked.is_some(), names.pause)
        };
        assert_eq!(is_walked_for(5), (true, WALK_AGAIN));
        assert_eq!(is_walked_for(5), (false, WALK_AGAIN));
        assert_eq!(is_walked_for(6), (true, WALK_AGAIN * 2));
        let last = (7..20).fold((false, WALK_AGAIN), |_, id| is_walked_for(id));
        assert_eq!(last, (true, LONGEST_PAUSE));
    }

    #[test]
    fn of_groups_that_come_and_go_a_bounded_number_is_remembered() {
        let mut names = GroupNames::default();
        for id in 2..3 * MOST as u64 {
            names.keep(vec![(id, format!("/system.slice/{id}.service"))]);
            assert!(names.known.len() <= MOST && names.known.contains_key(&id));
        }
    }

    proptest! {
        #[test]
        fn any_path_has_a_bounded_name(path in "(/|\\.\\.|pod|-pod|user-|\\.slice|\\.service|\\PC|[0-9a-f]{60,70}|\\n){0,40}") {
            if let Some(name) = GroupName::of(&path) {
                prop_assert!(name.name.len() <= NAME_BYTES && !name.name.contains('\n'));
            }
        }
    }
}
