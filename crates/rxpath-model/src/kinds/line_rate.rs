//! The packet rate of a full Ethernet link, and how long a ring lasts at it.
//!
//! **Source** IEEE 802.3: each frame (with its FCS) also takes 8 bytes of preamble and 12 bytes of gap.

use serde_json::Map;

use crate::inputs::{Inputs, Outputs, Problem};

/// Preamble, start delimiter and inter-frame gap.
const BESIDE_BYTES: f64 = 20.0;

/// Descriptors for `stall_ms`, rounded up from one division so that an exact quotient stays exact.
fn descriptors(rate_bps: f64, frame_bytes: f64, stall_ms: f64) -> u64 {
    (rate_bps * stall_ms / (8000.0 * (frame_bytes + BESIDE_BYTES))).ceil() as u64
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let (rings, stalls) = (inputs.numbers("ring")?, inputs.numbers("stall_ms")?);
    let mut outputs = Outputs::default();
    for link in inputs.objects("rates")? {
        let (bits, frame) = (link.positive("rate_bps")?, link.positive("frame_bytes")?);
        let rate = bits / (8.0 * (frame + BESIDE_BYTES));
        let mut one = Map::new();
        one.insert("pps".into(), rate.into());
        for ring in &rings {
            one.insert(format!("t_fill_us_D{ring}"), (ring / rate * 1e6).into());
        }
        for stall in &stalls {
            one.insert(format!("D_for_{stall}ms"), descriptors(bits, frame, *stall).into());
        }
        outputs = outputs.value(link.text("name")?, one);
    }
    Ok(outputs)
}
