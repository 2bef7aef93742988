//! `/proc/stat`: CPU time.
//!
//! **Source** fs/proc/stat.c, `show_stat`. **Unit** CPU times in `USER_HZ` (100 a second on every
//! architecture that Linux runs on today; ask `sysconf(_SC_CLK_TCK)`).

use crate::parse::{ParseError, number};

/// Path of the file.
pub const PATH: &str = "/proc/stat";

/// CPU time of one line in `USER_HZ`, since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// User mode, guests included.
    pub user: u64,
    /// User mode at low priority, guests included.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle: exact (in `USER_HZ` steps) where the kernel has `NO_HZ` (`get_cpu_idle_time_us`).
    pub idle: u64,
    /// Idle with a task waiting for I/O; can run backwards (kernel documentation, filesystems/proc.rst).
    pub iowait: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Softirqs.
    pub softirq: u64,
    /// Wanted and not given by the hypervisor.
    pub steal: u64,
}

/// What is read of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// All CPUs added.
    pub total: Ticks,
    /// Each online CPU.
    pub cpus: Vec<(u32, Ticks)>,
}

/// Reads the file's text.
///
/// **Errors** a CPU line with fewer than the 4 times of Linux 2.4, a number that is none, no line `cpu`.
/// Times that older kernels lack (`steal` before 2.6.11) stay 0 as they do in the kernel's own documentation.
pub fn parse(text: &str) -> Result<Stat, ParseError> {
    let mut stat = Stat::default();
    let mut seen_total = false;
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let mut words = line.split_ascii_whitespace();
        let Some(key) = words.next() else { continue };
        match key.strip_prefix("cpu") {
            Some("") => {
                stat.total = ticks(at, words)?;
                seen_total = true;
            }
            Some(cpu) => stat.cpus.push((number(at, "the CPU", Some(cpu))?, ticks(at, words)?)),
            None => {}
        }
    }
    if seen_total { Ok(stat) } else { Err(ParseError::new(0, "no line `cpu`")) }
}

fn ticks<'a>(line: usize, mut words: impl Iterator<Item = &'a str>) -> Result<Ticks, ParseError> {
    let mut must = |what| number(line, what, words.next());
    let (user, nice, system, idle) = (must("user")?, must("nice")?, must("system")?, must("idle")?);
    let mut may = |what| words.next().map_or(Ok(0), |word| number(line, what, Some(word)));
    Ok(Ticks {
        user,
        nice,
        system,
        idle,
        iowait: may("iowait")?,
        irq: may("irq")?,
        softirq: may("softirq")?,
        steal: may("steal")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let stat = parse("cpu  10 0 2 30 4 0 5 6 0 0\ncpu3 1 2 3 4 5 6 7 8 0 0\nintr 99 0 1\nctxt 5\nbtime 17\nsoftirq 8 0\n").unwrap();
        assert_eq!(stat.total.softirq, 5);
        assert_eq!(
            stat.cpus,
            [(
                3,
                Ticks {
                    user: 1,
                    nice: 2,
                    system: 3,
                    idle: 4,
                    iowait: 5,
                    irq: 6,
                    softirq: 7,
                    steal: 8
                }
            )]
        );
    }

    #[test]
    fn broken_lines_are_refused() {
        assert_eq!(parse("cpu 1 2 3\n").unwrap_err().why, "idle is missing");
        assert_eq!(parse("cpu 1 2 3 4\ncpux 1 2 3 4\n").unwrap_err().line, 2);
        assert!(parse("").is_err());
    }
}
