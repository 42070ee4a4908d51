//! Watermarks and the PFC watchdog, from the file to the configuration of switches.

use crate::error::Problem;
use crate::file;
use crate::units::span_text;
use axon_plane::targeted::{Choice, Targeting, Watermarks};
use axon_plane::watchdog::{StormAction, WatchdogConfig};
use axon_wire::priority::PrioritySet;
use axon_wire::{Bytes, Span};

/// Allowed parts of the watchdog's detection time, in percent.
const PAUSED_PERCENT: std::ops::RangeInclusive<u8> = 51..=100;

/// Reads the watermarks of queues. They do not bound queues: the memory's headroom is what keeps
/// lossless frames, as `axon prove` proves. Each switch sets its own seed.
pub(super) fn watermarks(
    asked: Option<&file::Watermarks>,
    lossless: PrioritySet,
) -> Result<Option<Watermarks>, Problem> {
    let Some(asked) = asked else { return Ok(None) };
    if lossless.is_empty() {
        let what = "no class is lossless";
        return Err(Problem::new("dcb.watermarks", what, "a lossless class, or no watermarks"));
    }
    // The target is the amount that the senders to be chosen can have in flight (equation 7.1).
    let interval = asked.target.map_or(Bytes(0), |target| target.0);
    let choice = match asked.choose {
        Some(file::Choose::Sampled) => Choice::Sampled { seed: 0, interval },
        Some(file::Choose::FairBandwidth) => Choice::FairBandwidth,
        Some(file::Choose::MaxMin) | None => Choice::MaxMin,
    };
    if asked.choose.is_some() && asked.target.is_none() {
        let what = "it has no effect without a target";
        return Err(Problem::new("dcb.watermarks.choose", what, "target, or no choose"));
    }
    let watermarks = Watermarks {
        low: Some(asked.low.0),
        targeting: asked.target.map(|target| Targeting { target: target.0, choice }),
        high: asked.high.0,
        bytes_max: Bytes(u64::MAX),
    };
    watermarks.check().map_err(|_| {
        let Bytes(low) = asked.low.0;
        let what = match asked.target {
            Some(target) => {
                format!("{low}, {} and {} bytes do not rise", target.0.0, asked.high.0.0)
            }
            None => format!("{low} and {} bytes do not rise", asked.high.0.0),
        };
        Problem::new("dcb.watermarks", what, "low < target < high")
    })?;
    Ok(Some(watermarks))
}

/// Reads the PFC watchdog.
pub(super) fn watchdog(
    asked: Option<&file::Watchdog>,
    lossless: PrioritySet,
) -> Result<Option<WatchdogConfig>, Problem> {
    let Some(asked) = asked else { return Ok(None) };
    if lossless.is_empty() {
        let what = "no class is lossless, so no peer pauses a queue";
        return Err(Problem::new("dcb.watchdog", what, "a lossless class, or no watchdog"));
    }
    for (key, time) in [("detection", asked.detection.0), ("restoration", asked.restoration.0)] {
        if !(Span::from_micros(1)..=Span::from_secs(60)).contains(&time) {
            return Err(Problem::range(
                format!("dcb.watchdog.{key}"),
                span_text(time),
                "1us to 60s",
            ));
        }
    }
    let paused_percent = asked.paused.0;
    if !PAUSED_PERCENT.contains(&paused_percent) {
        // Two senders that share a port are each paused half of the time.
        let what = format!(
            "{paused_percent}% is out of range: pauses that congestion causes last that long"
        );
        return Err(Problem::new("dcb.watchdog.paused", what, "51% to 100%"));
    }
    let action = match asked.action {
        file::StormAction::Drop => StormAction::Drop,
        file::StormAction::Forward => StormAction::Forward,
    };
    let (detection, restoration) = (asked.detection.0, asked.restoration.0);
    Ok(Some(WatchdogConfig { detection, paused_percent, action, restoration }))
}
