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

/// CPU 1 goes while it is counted, and in another window comes. The windows are ended by hand: on a busy host it may take
/// the emulated machine seconds to switch a CPU.
const PLUGGED: &str = "
online=/sys/devices/system/cpu/cpu1/online
for command in 'steal --irq-entry 5' trace; do
	for now in 0 1; do
		rxpath $command -d 600s --json >/tmp/out 2>/tmp/err &
		until grep -q -e counting -e tracing /tmp/err; do usleep 10000; done
		usleep 300000
		echo $now >$online
		usleep 300000
		kill -INT $!
		wait $!
		[ $? = 130 ] || { cat /tmp/err; exit 1; }
		cat /tmp/out
		echo @@
	done
done";

#[test]
fn a_cpu_that_goes_or_comes_is_named_and_the_rows_still_add_up() {
    let machine = Machine { kernel: "6.12", nics: "e1000", ..Machine::default() };
    let Some(out) = run(machine, &["sh", "-c", PLUGGED]) else { return };
    let parts = out.split("@@").filter(|text| !text.trim().is_empty());
    let told: Vec<Value> = parts.map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(told.len(), 4, "{out}");
    for (document, code) in told.iter().zip(["cpu-not-read", "cpu-came", "cpu-gone", "cpu-came"]) {
        let warnings = document["warnings"].to_string();
        let from = &document["schema"];
        assert!(warnings.contains(code), "{from} without {code}: {warnings}");
    }
    for document in &told[..2] {
        let sum = |rows: &str| {
            let rows = document["result"][rows].as_array().unwrap().iter();
            rows.map(|row| row["on_cpu_s"].as_f64().unwrap()).sum::<f64>()
        };
        assert!((sum("tasks") - sum("cpus")).abs() < 1e-6, "{} {}", sum("tasks"), sum("cpus"));
    }
    for document in &told[2..] {
        has_both_cpus(&document["result"]);
    }
}

/// A trace has the interrupts of a CPU that went and of one that came, and its NAPIs sum to what the CPUs polled.
fn has_both_cpus(result: &Value) {
    let rows = |list: &str| result[list].as_array().unwrap();
    let count = |row: &Value, key: &str| row[key].as_u64().unwrap();
    for cpu in [0, 1] {
        let row = rows("cpus").iter().find(|row| row["cpu"] == cpu).unwrap();
        let all = count(row, "device_interrupts_count") + count(row, "other_interrupts_count");
        assert!(all > 0, "{row}");
    }
    let sum = |list: &str| rows(list).iter().map(|row| count(row, "packets")).sum::<u64>();
    // A poll may end between the readings of the two.
    assert!(sum("cpus").abs_diff(sum("napis")) <= 64, "{} {}", sum("cpus"), sum("napis"));
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
    assert_eq!(said.contains("not traced: the latency of stages"), kernel == "6.1", "{said}");
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
