//! Findings come by what they cost the goal: the worst first, then the largest effect on that goal.

use rxpath_host::Root;
use rxpath_tune::weight::Magnitude;
use rxpath_tune::{Ask, Finding, Goal, HostFacts, Scope, check};

use crate::fixture::dir;

fn findings(host: &str, goal: Goal) -> Vec<Finding> {
    let root = Root::tree(dir().join("../hosts").join(host)).unwrap();
    let facts = HostFacts::collect(&root, &Scope::default());
    check(&Ask { facts: &facts, goal: Some(goal) }).findings
}

fn place(all: &[Finding], id: &str) -> usize {
    all.iter().position(|one| one.id == id).unwrap_or_else(|| panic!("no {id} in {all:#?}"))
}

#[test]
fn a_warning_for_the_goal_comes_before_what_merely_could_be_better() {
    let router = findings("router", Goal::Latency);
    assert!(place(&router, "cpu-governor") < place(&router, "rss-indirection"));
    let metal = findings("bare-metal-2node", Goal::Benchmark);
    assert!(place(&metal, "irq-coalesce-adaptive") < place(&metal, "rmem-max"));
    for goal in Goal::ALL {
        for host in ["router", "bare-metal-2node"] {
            let order: Vec<_> =
                findings(host, goal).iter().map(|one| (one.severity, one.effect_size)).collect();
            assert!(order.is_sorted_by(|a, b| a >= b), "{host} {goal}: {order:?}");
        }
    }
}

#[test]
fn a_figure_of_packets_a_second_is_not_taken_for_one_of_latency() {
    let size = |goal| {
        let all = findings("router", goal);
        all[place(&all, "irq-affinity")].effect_size
    };
    assert_eq!(size(Goal::Throughput), Magnitude::Multiple);
    assert_eq!(size(Goal::Latency), Magnitude::Percents);
}
