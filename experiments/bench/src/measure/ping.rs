//! Round trips of pings, both paced, as from an idle host, and back to back.

use crate::quantity::{Figures, Quantity};
use crate::statistics::{mean, median, percentile};
use crate::subject::World;
use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// Interval between paced pings, in ms.
const INTERVAL_MS: u32 = 5;
/// Number of paced pings per second of a measurement. They take half of it.
const PACED_PER_SECOND: u32 = 100;
/// Number of back-to-back pings per second of a measurement.
const FLOOD_PER_SECOND: u32 = 2000;
/// Additional time for back-to-back pings, in seconds.
const SLACK_SECONDS: u32 = 5;
/// Minimum fraction of requests that must be answered.
const ANSWERED_MIN: f64 = 0.9;

/// Measures paced and back-to-back pings.
pub(crate) fn both(world: &World<'_>, seconds: u32) -> Result<Figures> {
    let mut figures = Figures::new();
    let paced = format!("-i 0.{INTERVAL_MS:03}");
    for (options, per_second, quantities) in [
        (
            paced.as_str(),
            PACED_PER_SECOND,
            [Quantity::PingMean, Quantity::PingMedian, Quantity::PingP99],
        ),
        ("-A", FLOOD_PER_SECOND, [Quantity::FloodMean, Quantity::FloodMedian, Quantity::FloodP99]),
    ] {
        let times = pings(world, options, per_second * seconds, seconds + SLACK_SECONDS)?;
        let found = [mean(&times), median(&times), percentile(&times, 0.99)];
        let found = found.map(|figure| figure.context("no ping was answered"));
        for (quantity, figure) in quantities.into_iter().zip(found) {
            figures.push((quantity, figure?));
        }
    }
    Ok(figures)
}

/// Returns round-trip times in us.
fn pings(world: &World<'_>, options: &str, count: u32, seconds_max: u32) -> Result<Vec<f64>> {
    let command = format!("ping -n {options} -c {count} -w {seconds_max} {}", world.address(1));
    let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let limit = Duration::from_secs(u64::from(seconds_max)) + Duration::from_secs(10);
    // ping(8) exits with 1 if not all requests were answered in time. The answered ones still
    // count.
    let (_, output) = world.start(0, &argv, "ping")?.finish(limit, world.stop())?;
    let (times, sent) = (round_trips(&output), sent(&output).unwrap_or(count));
    let answered = times.len() as f64 / f64::from(sent.max(1));
    ensure!(answered >= ANSWERED_MIN, "{} of {sent} pings were answered", times.len());
    Ok(times)
}

/// Parses round-trip times in us from lines such as `64 bytes from 10.0.0.2: icmp_seq=1 ttl=64
/// time=0.044 ms`.
fn round_trips(output: &str) -> Vec<f64> {
    let time = |line: &str| {
        let (_, rest) = line.split_once(" time=")?;
        rest.strip_suffix(" ms")?.parse::<f64>().ok()
    };
    output.lines().filter_map(time).map(|millis| millis * 1e3).collect()
}

/// Parses the number of requests sent from a line such as `20 packets transmitted, 20 received,
/// ...`.
fn sent(output: &str) -> Option<u32> {
    let line = output.lines().find(|line| line.contains(" packets transmitted"))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_replies_are_read_in_microseconds() {
        let output = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n\
                      64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.044 ms\n\
                      64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=12.5 ms\n\n\
                      --- 10.0.0.2 ping statistics ---\n\
                      3 packets transmitted, 2 received, 33.3333% packet loss, time 408ms\n\
                      rtt min/avg/max/mdev = 0.044/6.272/12.500/6.228 ms\n";
        assert_eq!(round_trips(output), [44.0, 12500.0]);
        assert_eq!(sent(output), Some(3));
        assert!(round_trips("").is_empty() && sent("").is_none());
    }
}
