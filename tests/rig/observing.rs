//! What a measurement makes of a clock that is set while it runs. Only a machine of its own may have its clock set.

use serde_json::Value;

use crate::{Machine, run};

/// Counts for three seconds, in which the clock is set far forward and back; prints what was counted.
const SCRIPT: &str = "
for command in 'steal --irq-entry 5' trace; do
	rxpath $command -d 3s --json >/tmp/out 2>/tmp/err &
	until grep -q -e counting -e tracing /tmp/err; do usleep 10000; done
	usleep 500000
	date -s @4000000000 >/dev/null
	usleep 500000
	date -s @1000000000 >/dev/null
	wait $! || { cat /tmp/err; exit 1; }
	cat /tmp/out
	echo @@
done";

#[test]
fn a_step_of_the_clock_is_none_of_the_windows() {
    for kernel in ["6.12", "6.1"] {
        let machine = Machine { kernel, nics: "e1000", ..Machine::default() };
        let Some(out) = run(machine, &["sh", "-c", SCRIPT]) else { return };
        hold(kernel, &out);
    }
}

fn hold(kernel: &str, out: &str) {
    let told: Vec<Value> = out
        .split("@@")
        .filter(|text| !text.trim().is_empty())
        .map(|text| serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
        .collect();
    assert_eq!(told.len(), 2, "{out}");
    // Stages need a tracepoint of 6.3: what is missing is said, and the rest is there.
    let said = told[1]["warnings"].to_string();
    assert_eq!(said.contains("latency of stages are not seen"), kernel == "6.1", "{said}");
    for document in told {
        let result = &document["result"];
        let window_s = result["window_s"].as_f64().or(result["duration_s"].as_f64()).unwrap();
        // An emulated machine is slow: it may begin late and end late, by seconds and not by decades.
        assert!((2.9..60.0).contains(&window_s), "{window_s}: {document}");
        for cpu in result["cpus"].as_array().unwrap() {
            if let (Some(on_cpu_s), Some(whole_s)) =
                (cpu["on_cpu_s"].as_f64(), cpu["window_s"].as_f64())
            {
                let lost_s = cpu["lost_s"].as_f64().unwrap_or(0.0);
                assert!((on_cpu_s + lost_s - whole_s).abs() < 1e-6, "{cpu}");
            }
        }
    }
}
