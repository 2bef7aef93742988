//! What a self-test found: how many limits were recognised, by case and by confidence.

use rxpath_record::manifest::Manifest;
use rxpath_stats::proportion;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Case, RuleCost, SelftestRow, Sureness, sureness, table};

/// The `result` object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SelftestResult {
    /// Trials that were made and not voided by noise.
    pub made_count: u32,
    /// Those whose verdict was right.
    pub recognised_count: u32,
    /// The cost of datagrams and firewall rules on this host, measured before the run; absent if no case needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_cost: Option<RuleCost>,
    /// 95 % interval of the share of right verdicts. The cases are made by those who wrote the rules: on hosts of others
    /// the share may be lower.
    pub recognised_interval: [f64; 2],
    /// The table, one row per case.
    pub cases: Vec<SelftestRow>,
    /// How often strong, fair and weak verdicts were right.
    pub sureness: Vec<Sureness>,
    /// Limits that cannot be made here, and why.
    pub not_made: Vec<NotMade>,
}

/// A limit that was not made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotMade {
    /// Its name.
    pub case: &'static str,
    /// Why not.
    pub why: String,
}

impl SelftestResult {
    /// What the trials of a self-test say, and what was left out of it.
    pub fn of(
        manifest: &Manifest,
        left_out: &[(&Case, &str)],
        rule_cost: Option<RuleCost>,
    ) -> Self {
        let cases = table(manifest);
        let (made_count, recognised_count) = cases.iter().fold((0, 0), |(made, right), row| {
            (made + row.made_count, right + row.recognised_count)
        });
        let not_made = left_out.iter();
        let not_made = not_made.map(|(case, why)| NotMade { case: case.id, why: (*why).into() });
        Self {
            made_count,
            recognised_count,
            rule_cost,
            recognised_interval: proportion::interval(recognised_count.into(), made_count.into()),
            sureness: sureness(manifest, &cases),
            cases,
            not_made: not_made.collect(),
        }
    }
}
