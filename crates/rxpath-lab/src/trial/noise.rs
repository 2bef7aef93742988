//! How quiet the machine was during a trial: a grade with its reasons.
//!
//! Foreign CPU time, hypervisor steal and run-queue wait of the workload's own threads are what made results
//! differ by factors; each has limits, the worst one gives the grade. Shares are of the window's wall time.

use rxpath_record::manifest::Grade;

/// What disturbed a trial, as shares of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// Largest foreign CPU share on a CPU that the workload is bound to; `None` = not readable.
    pub foreign_ratio: Option<f64>,
    /// The CPU it was on.
    pub foreign_cpu: u32,
    /// The program that took most of it.
    pub foreign_name: String,
    /// Largest hypervisor steal on any of these CPUs.
    pub steal_ratio: f64,
    /// How long that CPU was idle and could halt.
    pub idle_ratio: f64,
}

/// Upper limits of grades A, B and C; above the last is D.
const LIMITS: [(Grade, f64); 3] = [(Grade::A, 0.01), (Grade::B, 0.03), (Grade::C, 0.10)];

/// Idle share from which a CPU halts often enough for its wake-ups to count.
const OFTEN_IDLE: f64 = 0.1;

fn grade_of(ratio: f64) -> Grade {
    LIMITS.iter().find(|(_, limit)| ratio <= *limit).map_or(Grade::D, |(grade, _)| *grade)
}

/// The grade and its reasons in words.
pub fn grade(seen: &Disturbance) -> (Grade, Vec<String>) {
    let mut worst = grade_of(seen.steal_ratio);
    let mut why = Vec::new();
    if seen.steal_ratio > LIMITS[0].1 {
        // A halted virtual CPU waits to be scheduled by the host when it wakes: that is steal, too, and nobody's load.
        let halts = seen.idle_ratio > OFTEN_IDLE && seen.steal_ratio > LIMITS[1].1;
        let hint = if halts {
            "; it was often idle, and lab.awake = true keeps it from halting"
        } else {
            ""
        };
        let taken = seen.steal_ratio * 100.0;
        why.push(format!("the hypervisor took {taken:.1} % of a pinned CPU{hint}"));
    }
    if let Some(ratio) = seen.foreign_ratio {
        worst = worst.max(grade_of(ratio));
        if ratio > LIMITS[0].1 {
            why.push(format!(
                "other programs took {:.1} % of CPU {} (most: {})",
                ratio * 100.0,
                seen.foreign_cpu,
                seen.foreign_name
            ));
        }
    } else {
        worst = worst.max(Grade::B);
        why.push("CPU time of other programs could not be read".into());
    }
    (worst, why)
}

/// Why a trial of this grade does not count, when it does not.
pub fn void(grade: Grade, why: &[String]) -> Option<String> {
    (grade == Grade::D).then(|| why.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_disturbance_gives_the_grade() {
        let quiet = Disturbance { foreign_ratio: Some(0.002), ..Disturbance::default() };
        assert_eq!(grade(&quiet).0, Grade::A);
        let (got, why) = grade(&Disturbance {
            foreign_ratio: Some(0.5),
            foreign_cpu: 1,
            foreign_name: "cc1".into(),
            steal_ratio: 0.02,
            idle_ratio: 0.5,
        });
        assert_eq!(got, Grade::D);
        let reason = void(got, &why).unwrap();
        assert!(reason.contains("50.0 % of CPU 1") && reason.contains("cc1"), "{reason}");
    }

    #[test]
    fn time_that_the_hypervisor_took_from_an_idle_cpu_comes_with_its_cure() {
        let seen =
            |idle_ratio| Disturbance { steal_ratio: 0.3, idle_ratio, ..Disturbance::default() };
        let told = |idle_ratio| grade(&seen(idle_ratio)).1.join("; ");
        assert!(told(0.5).contains("lab.awake = true"), "{}", told(0.5));
        assert!(!told(0.01).contains("lab.awake"), "{}", told(0.01));
    }

    #[test]
    fn what_cannot_be_read_is_never_grade_a() {
        assert_eq!(grade(&Disturbance::default()).0, Grade::B);
    }
}
