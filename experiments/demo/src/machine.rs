//! Description of the machine, its load, and its programs.

use super::report::Machine;
use anyhow::{Context, Result, bail};
use std::fs::read_to_string;
use std::process::{Command, Stdio};

/// Programs that the demo runs, with the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 10] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ss", "iproute2"),
    ("ping", "iputils-ping"),
    ("iperf3", "iperf3"),
    ("dhclient", "isc-dhcp-client"),
    ("udhcpc", "udhcpc"),
    ("dumpcap", "wireshark-common"),
    ("mergecap", "wireshark-common"),
    ("tshark", "tshark"),
];

/// Checks that all programs are there, before anything is started.
///
/// # Errors
/// Programs are missing. The error names their packages.
pub(crate) fn check_programs() -> Result<()> {
    let mut missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !has_program(program))
        .map(|(_, package)| *package)
        .collect();
    missing.dedup();
    if !missing.is_empty() {
        bail!("the demo needs these Debian packages: {}", missing.join(" "));
    }
    Ok(())
}

/// Returns whether a program can be started by its name.
pub fn has_program(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').any(|dir| std::path::Path::new(dir).join(program).exists())
}

/// Returns the description of this machine.
pub fn describe() -> Machine {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        cpu: model.map_or("unknown", |(_, name)| name).to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: kernel.trim().to_owned(),
    }
}

/// Returns the time in UTC, by RFC 3339.
///
/// # Errors
/// There is no date(1).
pub fn date() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%FT%TZ"]).stderr(Stdio::null()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Returns the congestion control for the TCP flows. It is CUBIC (RFC 9438) if the kernel has it,
/// for comparable results, otherwise Reno, which every kernel has.
pub fn congestion_control() -> &'static str {
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = read_to_string(available).unwrap_or_default();
    if available.split_whitespace().any(|name| name == "cubic") { "cubic" } else { "reno" }
}

/// Time that all CPUs have spent so far, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    idle: u64,
    all: u64,
}

impl CpuTime {
    /// Returns the CPU time up to now.
    ///
    /// # Errors
    /// /proc/stat is missing or malformed (proc(5)).
    pub(crate) fn now() -> Result<CpuTime> {
        CpuTime::parse(&read_to_string("/proc/stat")?).context("/proc/stat has no line `cpu`")
    }

    /// The fields are user nice system idle iowait irq softirq steal. Guest time is part of user
    /// time.
    fn parse(stat: &str) -> Option<CpuTime> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().flat_map(str::parse).take(8).collect();
        Some(CpuTime { idle: ticks.get(3)? + ticks.get(4)?, all: ticks.iter().sum() })
    }

    /// Returns the fraction of the time since then that all CPUs together were not idle.
    ///
    /// # Errors
    /// See [`CpuTime::now`].
    pub(crate) fn busy_since(self) -> Result<f64> {
        let now = CpuTime::now()?;
        let all = (now.all - self.all).max(1) as f64;
        Ok(1.0 - now.idle.saturating_sub(self.idle) as f64 / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_time_is_not_counted_twice() {
        let stat = "cpu  10 0 10 70 5 0 3 2 9 9\ncpu0 1 2 3 4\n";
        let time = CpuTime::parse(stat).unwrap();
        assert_eq!((time.idle, time.all), (75, 100));
        assert!(CpuTime::parse("cpu0 1 2").is_none());
    }

    #[test]
    fn the_date_is_rfc_3339() {
        let date = date().unwrap();
        assert_eq!((date.len(), &date[10..11], &date[19..]), (20, "T", "Z"));
    }
}
