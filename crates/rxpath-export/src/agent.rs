//! What the exporter says of itself: its cost, its budget, and what it leaves out to keep that.

use crate::families::{
    AGENT_CPU, AGENT_MEMORY, BUDGET, COLLECT_ERRORS, COST, Families, SHED, STARTED,
};
use crate::governor::{Governor, SHEDS};

impl Families {
    /// CPU time of the threads of this process since it was started, and its memory.
    pub fn own_process(&mut self, cpu_s: f64, rss_bytes: u64) {
        self.add(AGENT_CPU, &["user"], cpu_s - self.own_cpu_before_s);
        self.own_cpu_before_s = cpu_s;
        self.set(AGENT_MEMORY, &["rss"], rss_bytes as f64);
    }

    /// When counting began, Unix time.
    pub fn started(&self, at_unix_s: f64) {
        self.set(STARTED, &[], at_unix_s);
    }

    /// Pages that could not be written since the last call, and connections that failed since the start.
    pub fn collect_errors(&mut self, textfile: u64, http: u64) {
        self.add(COLLECT_ERRORS, &["textfile"], textfile as f64);
        self.add(COLLECT_ERRORS, &["http"], http.saturating_sub(self.http_errors_before) as f64);
        self.http_errors_before = http;
    }

    /// What the governor decided.
    pub fn governed(&self, governor: &Governor) {
        self.set(BUDGET, &[], governor.budget());
        self.set(COST, &[], governor.cost());
        for (what, is_shed) in SHEDS.iter().zip(governor.shed()) {
            self.set(SHED, &[what], f64::from(u8::from(is_shed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::WindowCost;

    #[test]
    fn what_is_left_out_is_named() {
        let mut families = Families::new("1", 1).unwrap();
        families.own_process(2.0, 7);
        families.own_process(2.5, 8);
        families.started(1e9);
        for (textfile, http) in [(0, 2), (1, 5)] {
            families.collect_errors(textfile, http);
        }
        let mut governor = Governor::new(0.01);
        families.governed(&governor);
        let text = families.text().unwrap();
        for line in [
            "rxpath_agent_cpu_seconds_total{part=\"user\"} 2.5",
            "rxpath_agent_memory_bytes{kind=\"rss\"} 8",
            "rxpath_agent_budget_ratio 0.01",
            "rxpath_agent_start_time_seconds 1000000000",
            "rxpath_collect_errors_total{source=\"textfile\"} 1",
            "rxpath_collect_errors_total{source=\"http\"} 5",
            "rxpath_agent_shed{what=\"BPF probes\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
        let dear = WindowCost { window_s: 30.0, threads_s: 9.0, programs_s: 0.0 };
        (0..99).for_each(|_| governor.window(dear));
        families.governed(&governor);
        let text = families.text().unwrap();
        assert!(text.contains("rxpath_agent_cost_ratio 0.3\n"), "{text}");
        assert!(text.contains("rxpath_agent_shed{what=\"BPF probes\"} 1"), "{text}");
    }
}
