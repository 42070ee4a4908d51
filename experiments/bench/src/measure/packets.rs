//! Frames of 64 bytes: peak rate, and delivered rate under overload.
//!
//! The peak is found by a search. It begins with a sender at full speed. If frames are lost, the
//! rate is halved until the offered rate is at most the best delivered one. Then rates around the
//! best one are tried. The overload is ten times the peak, or the sender's maximum.

use crate::cpu;
use crate::quantity::{Figures, Quantity};
use crate::subject::World;
use crate::traffic::packets::{self, PORT};
use anyhow::Result;
use axon_demo::process::Process;
use std::time::Duration;

/// Overload in multiples of the peak.
const OVERLOAD: f64 = 10.0;
/// Fraction of delivered frames above which a sender at full speed has not reached the peak.
const ALL: f64 = 0.98;
/// Rates tried around the best of the halved rates, in multiples of it.
const AROUND: [f64; 2] = [0.75, 1.4];
/// Milliseconds in a step for each second of a measurement.
const STEP_MS: u32 = 300;
/// Additional time for a sender to start and end.
const SLACK: Duration = Duration::from_secs(15);

/// Result for one offered rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Number of frames sent per second.
    offered: f64,
    /// Number of frames delivered per second.
    delivered: f64,
    /// CPU time per delivered frame in ns, if known.
    cpu_nanos: Option<f64>,
}

/// Result of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    peak: Step,
    overload: Step,
}

/// Measures the peak, the overload, and the CPU time per frame.
pub(crate) fn all(world: &World<'_>, seconds: u32) -> Result<Figures> {
    let receiver = world.start_own(1, "packets-receive", "packets-receive")?;
    world.wait_listening(1, 'u', PORT)?;
    let found = search(|rate| step(world, &receiver, rate, STEP_MS * seconds))?;
    let Found { peak, overload } = found;
    let mut figures = vec![
        (Quantity::PacketsPeak, peak.delivered / 1e3),
        (Quantity::OverloadOffered, overload.offered / peak.delivered),
        (Quantity::OverloadDelivered, overload.delivered / peak.delivered),
    ];
    figures.extend(peak.cpu_nanos.map(|nanos| (Quantity::CpuPerPacket, nanos)));
    Ok(figures)
}

/// Searches for the peak, and then overloads it. `step` tries a rate, or full speed.
fn search(mut step: impl FnMut(Option<f64>) -> Result<Step>) -> Result<Found> {
    let full = step(None)?;
    let mut peak = full;
    if full.delivered < full.offered * ALL {
        let mut rate = full.offered / 2.0;
        let mut best_rate = rate;
        while rate > peak.delivered.max(1.0) {
            let found = step(Some(rate))?;
            if found.delivered > peak.delivered {
                (peak, best_rate) = (found, rate);
            }
            rate /= 2.0;
        }
        for around in AROUND {
            let found = step(Some(best_rate * around))?;
            if found.delivered > peak.delivered {
                peak = found;
            }
        }
    }
    let wanted = peak.delivered * OVERLOAD;
    let overload = if full.offered <= wanted { full } else { step(Some(wanted))? };
    Ok(Found { peak, overload })
}

/// Offers a certain rate for `millis` milliseconds.
fn step(world: &World<'_>, receiver: &Process, rate: Option<f64>, millis: u32) -> Result<Step> {
    let (device, from, mac, to) =
        (world.device(0), world.address(0), world.mac(1), world.address(1));
    let mut words = format!("packets-send {device} {from} {mac} {to} {millis}");
    if let Some(rate) = rate {
        words += &format!(" {:.0}", rate.max(1.0));
    }
    let workers = [world.switch_processes(), cpu::softirq_threads()].concat();
    let before = cpu::nanos(&workers);
    let sender = world.start_own(0, &words, "packets-send")?;
    let limit = Duration::from_millis(u64::from(millis)) + SLACK;
    let sent = packets::parse(&sender.succeed(limit, world.stop())?)?;
    let workers = before.zip(cpu::nanos(&workers)).map(|(before, after)| after - before);
    let delivered = sent.delivered(&receiver.printed())?;
    let arrived = delivered * sent.seconds();
    let cpu_nanos = workers.filter(|_| arrived > 0.0);
    let cpu_nanos = cpu_nanos.map(|workers| (workers + sent.cpu_nanos) as f64 / arrived);
    Ok(Step { offered: sent.offered(), delivered, cpu_nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a sender of at most 1.000.000 frames per second, whose frames go through
    /// `carried`.
    fn found(carried: impl Fn(f64) -> f64) -> (Found, usize) {
        let mut steps = 0;
        let step = |rate: Option<f64>| {
            steps += 1;
            let offered = rate.unwrap_or(1e6).min(1e6);
            Ok(Step { offered, delivered: carried(offered), cpu_nanos: None })
        };
        (search(step).unwrap(), steps)
    }

    #[test]
    fn a_sender_that_is_the_slowest_finds_the_peak_at_once() {
        let (found, steps) = found(|offered| offered);
        assert_eq!((found.peak.delivered, found.overload.offered, steps), (1e6, 1e6, 1));
    }

    #[test]
    fn what_drops_the_rest_has_its_peak_at_full_speed() {
        let (found, _) = found(|offered| offered.min(300e3));
        assert_eq!(found.peak.delivered, 300e3);
        assert_eq!(found.overload.offered, 1e6, "the sender cannot do three million");
    }

    #[test]
    fn what_collapses_under_overload_is_seen_at_its_best_and_at_its_worst() {
        let (found, steps) = found(|offered| if offered <= 60e3 { offered } else { 2e3 });
        assert!((30e3..=60e3).contains(&found.peak.delivered), "{found:?}");
        let overload = found.overload.offered / found.peak.delivered;
        assert!((9.9..10.1).contains(&overload), "{found:?}");
        assert_eq!(found.overload.delivered, 2e3);
        assert!(steps < 12, "{steps}");
    }

    #[test]
    fn what_carries_nothing_ends_the_search() {
        let (found, steps) = found(|_| 0.0);
        assert_eq!(found.peak.delivered, 0.0);
        assert!(steps < 30, "{steps}");
    }
}
