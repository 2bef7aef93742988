//! Costs from the published one-CPU UDP runs: which `c_s` and `c_a` fit a lossless rate and a livelocked one.
//!
//! **Source** the figures of Wu, Crawford, Bowden, Computer Communications 30, 2007, put into the livelock line
//! `lambda c_s + g c_a = 1`; a lossless run at `lam200` says `c_s + c_a <= 1/lam200`.

use crate::inputs::{Inputs, Outputs, Problem};

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let offered = inputs.positive("lam400")?;
    let goodput = inputs.positive("goodput")?;
    let lossless = inputs.positive("lam200")?;
    if goodput >= offered || goodput > lossless {
        return Err(Problem::bad("goodput", "it must be below `lam400` and not above `lam200`"));
    }
    let least = (1.0 - goodput / lossless) / (offered - goodput);
    let zero = serde_json::json!([offered, 1.0 / least]);
    let outputs = Outputs::default()
        .with("c_s_us_min", least * 1e6)
        .with("c_s_us_max", 1e6 / offered)
        .with("c_a_us_at_min", (1.0 - offered * least) / goodput * 1e6);
    Ok(outputs
        .value("zero_goodput_pps_range", zero)
        .with("fluid_two_resource_app_us", 1e6 / goodput))
}
