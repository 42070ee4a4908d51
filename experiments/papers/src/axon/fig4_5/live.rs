//! Ping among real Linux hosts, through software switches in namespaces.

use anyhow::{Context, Result, bail};
use axon_lab::{Lab, StateDir, UpOptions};
use axon_wire::Span;
use std::fs;
use std::path::Path;

/// The lab's name; one that was left behind is ended.
const NAME: &str = "fig4-5";
/// Pings, after one that sets up the route.
const COUNT: u32 = 200;

/// Guard that ends the lab on drop.
struct Guard(Lab);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = axon_lab::down(Some(self.0.name())) {
            eprintln!("axon: cannot end lab {}: {error:#}", self.0.name());
        }
    }
}

/// Measures the shortest round trip of pings of `data_bytes` through `switches` software switches,
/// for each size.
///
/// # Errors
/// The lab does not come up, or ping(8) gets no answers.
pub(crate) fn shortest(switches: usize, data_bytes: &[u16], folder: &Path) -> Result<Vec<Span>> {
    let names: Vec<String> = (1..=switches).map(|number| format!("s{number}")).collect();
    let links: Vec<String> =
        names.windows(2).map(|pair| format!("[{}, {}]", pair[0], pair[1])).collect();
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [{}]\n    hosts:\n      \
         h1: {{ at: s1, ip: 10.0.0.10 }}\n      h2: {{ at: s{switches}, ip: 10.0.0.20 }}\n    \
         links: [{}]\nlinks: {{ rate: 1Gbps }}\n",
        names.join(", "),
        links.join(", ")
    );
    let path = folder.join("lab.yaml");
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    if StateDir::of(NAME)?.exists() {
        axon_lab::down(Some(NAME)).context("an earlier run has left a lab")?;
    }
    let (lab, report) = axon_lab::up(&path, &UpOptions::default(), |_| {})?;
    let guard = Guard(lab);
    if !report.missing.is_empty() {
        bail!("no way to the controller from {:?}", report.missing);
    }
    // Sets up the route; the answer may take a try or two.
    ping(&guard.0, 3, 18, "0.3")?;
    let least = |trips: Vec<Span>| trips.into_iter().min().context("a ping was answered");
    data_bytes.iter().map(|&bytes| least(ping(&guard.0, COUNT, bytes, "0.005")?)).collect()
}

/// Returns the round trips of the answered pings in order: at least one.
fn ping(lab: &Lab, count: u32, data_bytes: u16, interval: &str) -> Result<Vec<Span>> {
    let (count, size) = (count.to_string(), data_bytes.to_string());
    let argv = ["ping", "-n", "-c", &count, "-i", interval, "-s", &size, "-W", "1", "10.0.0.20"];
    let output = lab.command("h1", &argv)?.output().context("cannot start ping")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let trips: Vec<Span> = text.lines().filter_map(round_trip).collect();
    if trips.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("no ping was answered; {}", said.lines().next().unwrap_or("ping(8) says nothing"));
    }
    Ok(trips)
}

/// Parses the time in a line of ping(8): `... icmp_seq=1 ttl=64 time=0.123 ms`.
fn round_trip(line: &str) -> Option<Span> {
    let (_, rest) = line.split_once(" time=")?;
    let ms: f64 = rest.strip_suffix(" ms")?.parse().ok()?;
    Some(Span::from_nanos((ms * 1e6) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_where_ping_writes_them() {
        let line = "64 bytes from 10.0.0.20: icmp_seq=7 ttl=64 time=0.125 ms";
        assert_eq!(round_trip(line), Some(Span::from_micros(125)));
        assert_eq!(round_trip("--- 10.0.0.20 ping statistics ---"), None);
    }
}
