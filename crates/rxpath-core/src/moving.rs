//! Facts of a host that change by themselves, while nobody changes a setting.

/// Their names, or the beginnings of their names.
pub const FACTS: [&str; 6] = [
    "boot.id",
    "boot.uptime_s",
    "load.average",
    "memory.available_bytes",
    "sysctl.net.netfilter.nf_conntrack_count",
    "time.",
];

/// Members that do so in facts that are objects: counts of processes and of traffic.
pub const MEMBERS: [&str; 2] = ["processes_seen_count", "statistics"];

/// Whether the fact of this name changes by itself.
pub fn is_moving(name: &str) -> bool {
    FACTS.iter().any(|moving| name.starts_with(moving))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS_SQL: &str = include_str!("../../../fleet/runs.sql");

    #[test]
    fn the_queries_over_run_directories_leave_the_same_facts_out() {
        for name in FACTS {
            let word = if name.ends_with('.') { format!("'{name}%'") } else { format!("'{name}'") };
            assert!(RUNS_SQL.contains(&word), "runs.sql has no {word}");
        }
        for member in MEMBERS {
            let word = format!("\"{member}\": null");
            assert!(RUNS_SQL.contains(&word), "runs.sql has no {word}");
        }
    }

    #[test]
    fn a_setting_does_not_change_by_itself() {
        assert!(is_moving("boot.uptime_s") && is_moving("time.ntp"));
        assert!(!is_moving("memory.total_bytes") && !is_moving("sysctl.net.core.rmem_max"));
    }
}
