//! A command as the victim of stolen time: it must get a whole second of CPU time within a trial.

use crate::stolen::{near, run, trial, victim, whole};

#[test]
fn a_command_as_the_victim_has_its_time_by_both_accounts() {
    let Some(manifest) = run("steal-openssl") else { return };
    for variant in ["idle", "streams-2"] {
        let trial = trial(&manifest, variant);
        let victim = victim(trial);
        assert!(victim.command.starts_with("openssl speed -seconds 1 "), "{}", victim.command);
        assert!(victim.row.got_by_work_s.is_none() && victim.row.time.own_s > 0.0, "{victim:?}");
        assert!(whole(&victim.row.time), "{victim:?}");
        let [claim] = victim.row.claims.as_slice() else { panic!("{:?}", victim.row.claims) };
        assert!(near(claim.asked_s, 1.0) && claim.work_count > 0, "{claim:?}");
        assert!(near(trial.metrics["victim_claimed_ratio"], claim.got_s / claim.asked_s));
        // It is part of the experiment, not another program that disturbs it.
        let disturbed = format!("{:?}", trial.noise);
        assert!(!disturbed.contains("openssl"), "{disturbed}");
    }
}
