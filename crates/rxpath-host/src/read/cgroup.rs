//! What a process's control groups keep it from: CPU time beyond a quota, and running at all.

mod named;
mod tree;

use std::path::Path;

use crate::Root;

pub use named::{GroupKind, GroupName, GroupNames};

/// What the groups of a process say at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// The group whose quota stopped it longest since it was made.
    pub throttled: Option<Throttling>,
    /// Whether it is frozen, by `docker pause` for example.
    ///
    /// **Source** `cgroup.events` of version 2, `freezer.state` of version 1.
    pub is_frozen: bool,
}

/// A quota at work since its group was made.
///
/// **Source** `cpu.stat` of both versions (kernel/sched/core.c).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// The group with the quota.
    pub group: String,
    /// How long it was throttled, in ns: of each CPU, added up. `throttled_usec` of version 2, `throttled_time` of version 1.
    pub stopped_ns: u64,
    /// Periods in which it wanted to run: `nr_periods`.
    pub periods_count: u64,
    /// Those of them in which it used up its quota: `nr_throttled`.
    pub used_up_count: u64,
}

/// Whose files the hierarchies are looked for in: this process's, and where they are hidden there, those of who started it, of
/// the process itself and of the first one. Who entered a network namespace has a `/sys` of its own, without them.
fn views(root: &Root, pid: i32) -> Vec<(String, String)> {
    let others = [nix::unistd::getppid().as_raw(), pid, 1].map(|pid| pid.to_string());
    let mounts = |of: &str| root.text(&format!("/proc/{of}/mounts")).unwrap_or_default();
    let own = (mounts("self"), String::new());
    let others = others.iter().map(|of| (mounts(of), format!("/proc/{of}/root")));
    [own].into_iter().chain(others).collect()
}

/// Reads the groups of a process, those above them included; what can't be seen is left out.
pub fn read(root: &Root, pid: i32) -> GroupState {
    let groups = root.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let views = views(root, pid);
    let mut state = GroupState::default();
    for (controllers, group) in groups.lines().filter_map(membership) {
        let mut found = views.iter().filter_map(|(mounts, view)| {
            let mount = format!("{view}{}", mount(mounts, controllers)?);
            root.exists(&format!("{mount}{group}")).then_some(mount)
        });
        let Some(mount) = found.next() else { continue };
        for group in with_parents(group) {
            let file = |name: &str| root.text(&format!("{mount}{group}/{name}")).ok();
            let name = if group.is_empty() { "/" } else { group.as_str() };
            let most = state.throttled.as_ref().map(|it| it.stopped_ns);
            let longer = file("cpu.stat")
                .and_then(|text| throttling(&text, name))
                .filter(|it| most.is_none_or(|most| it.stopped_ns > most));
            state.throttled = longer.or(state.throttled.take());
            let frozen = file("cgroup.events")
                .is_some_and(|text| text.lines().any(|line| line == "frozen 1"))
                || file("freezer.state").is_some_and(|text| text.trim() == "FROZEN");
            state.is_frozen |= frozen;
        }
    }
    state
}

/// `5:cpu,cpuacct:/app`: the controllers and the group; version 2 has no controllers.
fn membership(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let of_interest = |name: &str| matches!(name, "" | "cpu" | "freezer");
    // A group outside the tree that this process sees has no file here (cgroup_namespaces(7)).
    let seen = !Path::new(group).components().any(|part| part.as_os_str() == "..");
    (seen && controllers.split(',').any(of_interest)).then_some((controllers, group))
}

/// Where the hierarchy of these controllers is mounted.
fn mount<'a>(mounts: &'a str, controllers: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind, options) = (words.next()?, words.next()?, words.next()?);
        let is_it = match controllers {
            "" => kind == "cgroup2",
            some => {
                let has = |name: &str| options.split(',').any(|option| option == name);
                kind == "cgroup" && some.split(',').all(has)
            }
        };
        is_it.then_some(path)
    })
}

/// The group and those above it, the uppermost as an empty name.
///
/// The uppermost has no limit on a host; in a container it is the container's own.
pub fn with_parents(group: &str) -> Vec<String> {
    let above = Path::new(group).ancestors();
    above.map(|path| path.to_string_lossy().trim_end_matches('/').to_owned()).collect()
}

fn throttling(text: &str, group: &str) -> Option<Throttling> {
    let values: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name, value.trim().parse().ok()?))
        })
        .collect();
    let value = |of: &str| values.iter().find(|(name, _)| *name == of).map(|(_, value)| *value);
    let micros = || value("throttled_usec").map(|us| us.saturating_mul(1_000));
    Some(Throttling {
        group: group.to_owned(),
        stopped_ns: micros().or_else(|| value("throttled_time"))?,
        periods_count: value("nr_periods").unwrap_or(0),
        used_up_count: value("nr_throttled").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn the_group_that_stops_a_program_longest_is_named_in_both_versions() {
        let (_dir, root) = host(&[
            ("/proc/7/cgroup", "0::/app.slice/web.service\n"),
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"),
            ("/sys/fs/cgroup/app.slice/cpu.stat", "usage_usec 9\nthrottled_usec 2000\n"),
            ("/sys/fs/cgroup/app.slice/web.service/cpu.stat", "throttled_usec 5\n"),
            ("/sys/fs/cgroup/app.slice/web.service/cgroup.events", "populated 1\nfrozen 1\n"),
        ]);
        let stopped = |group: &str, stopped_ns| Throttling {
            group: group.into(),
            stopped_ns,
            ..Throttling::default()
        };
        let throttled = Some(stopped("/app.slice", 2_000_000));
        assert_eq!(read(&root, 7), GroupState { throttled, is_frozen: true });

        let (_dir, root) = host(&[
            ("/proc/7/cgroup", "4:memory:/x\n3:freezer:/f\n2:cpu,cpuacct:/app\n0::/\n"),
            (
                "/proc/self/mounts",
                "cgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup /cg/freezer cgroup rw,freezer 0 0\n",
            ),
            ("/cg/cpu,cpuacct/app/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 77\n"),
            ("/cg/freezer/f/freezer.state", "FROZEN\n"),
        ]);
        let throttled =
            Some(Throttling { periods_count: 9, used_up_count: 3, ..stopped("/app", 77) });
        assert_eq!(read(&root, 7), GroupState { throttled, is_frozen: true });
    }

    #[test]
    fn a_groups_parents_count_up_to_the_uppermost() {
        let all = with_parents("/system.slice/app.service");
        assert_eq!(all, ["/system.slice/app.service", "/system.slice", ""]);
        assert_eq!(with_parents("/"), [""]);
    }

    #[test]
    fn what_can_not_be_seen_is_left_out() {
        let (_dir, root) = host(&[
            ("/proc/7/cgroup", "0::/../other\nnonsense\n"),
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ]);
        assert_eq!(read(&root, 7), GroupState::default());
        assert_eq!(read(&root, 8), GroupState::default());
    }
}
