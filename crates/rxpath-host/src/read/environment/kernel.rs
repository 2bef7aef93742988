//! The kernel: release, build options, tick, boot parameters.

use serde_json::{Map, Value, json};

use super::{Facts, in_force, names};
use crate::error::parts_of;
use crate::read::{kernel_config, procfs};

pub(super) fn collect(facts: &mut Facts<'_>) {
    facts.text("kernel.release", "/proc/sys/kernel/osrelease");
    facts.text("kernel.version", "/proc/sys/kernel/version");
    facts.result("kernel.tainted", facts.root.number::<i64>("/proc/sys/kernel/tainted"));
    let cmdline = facts.root.value("/proc/cmdline").map(|text| parameters(&text));
    facts.result("kernel.cmdline", cmdline);
    facts.text("boot.id", "/proc/sys/kernel/random/boot_id");
    let uptime = procfs::uptime(facts.root);
    facts.result("boot.uptime_s", uptime.map(|uptime| uptime.as_secs_f64()));
    let config = kernel_config::read(facts.root);
    facts.put("kernel.hz", kernel_config::tick(facts.root, config.as_ref().ok()));
    let config = parts_of(&config);
    facts.put("kernel.config.source", config.clone().map(|config| &config.source));
    let options = config.map(|config| {
        let of = |name: &str| (name.to_owned(), json!(config.get(name).unwrap_or("n")));
        names("[options]").map(of).collect::<Map<String, Value>>()
    });
    facts.put("kernel.config.options", options);
    for (name, path) in [
        ("kernel.preempt", "/sys/kernel/debug/sched/preempt"),
        ("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ] {
        facts.result(name, facts.root.value(path).map(|text| in_force(&text).to_owned()));
    }
}

/// The kernel's command line without the parameters that matter to nothing here: they may name disks and hosts.
pub(crate) fn known_parameters(cmdline: &str) -> String {
    let kernel = cmdline.split(" -- ").next().unwrap_or_default();
    let kept: Vec<&str> = kernel.split_ascii_whitespace().filter(|word| matters(word)).collect();
    kept.join(" ") + "\n"
}

/// The parameters that matter; of the others only the number, because they may name disks and hosts.
fn parameters(cmdline: &str) -> Value {
    // What follows ` -- ` goes to init.
    let kernel = cmdline.split(" -- ").next().unwrap_or_default();
    let (kept, others): (Vec<&str>, Vec<&str>) =
        kernel.split_ascii_whitespace().partition(|word| matters(word));
    json!({"parameters": kept, "left_out_count": others.len()})
}

/// Whether a capture keeps this word of the command line, or the boot parameter of this name: a rule may ask for no other.
pub fn matters(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    names("[parameters]").any(|known| {
        name.strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/', '_']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_the_list_do_not_run_into_each_other() {
        let ends = |section| (names(section).next(), names(section).last());
        assert_eq!(ends("[options]"), (Some("HZ"), Some("MITIGATION_RETPOLINE")));
        assert_eq!(ends("[parameters]"), (Some("audit"), Some("uhash_entries")));
    }

    #[test]
    fn parameters_that_name_things_are_left_out() {
        let value = parameters(
            "root=UUID=1234 isolcpus=1 nohz_full=1 intel_idle.max_cstate=1 ip=10.0.0.1::host quiet -- mitigations=off",
        );
        let debugging = "slab_debug=FZ page_poison=1 debug_pagealloc=on sysctl.net/core/rmem_max=9 uhash_entries=4096";
        assert_eq!(known_parameters(debugging), format!("{debugging}\n"));
        assert_eq!(
            value,
            json!({"parameters": ["isolcpus=1", "nohz_full=1", "intel_idle.max_cstate=1"], "left_out_count": 3})
        );
    }

    #[test]
    fn the_preemption_in_force_is_found() {
        assert_eq!(in_force("none (voluntary) full"), "voluntary");
    }
}
