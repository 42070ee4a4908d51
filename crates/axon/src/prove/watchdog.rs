//! Check that the PFC watchdog does not take a pause caused by congestion for a storm.

use axon_fabric::cycle::ends;
use axon_fabric::dcb::draining;
use axon_fabric::model::{Fabric, FlowControl};
use axon_fabric::units::span_text;
use axon_plane::watchdog::WatchdogConfig;
use axon_prove::{CongestionPause, Dependencies, congestion_pauses};
use axon_wire::Span;
use serde::Serialize;

/// Maximum span.
const FOR_EVER: Span = Span::from_ticks(u64::MAX);

/// Result for the watchdog.
pub struct Watched {
    /// Configuration of the watchdog.
    pub config: WatchdogConfig,
    /// Buffer that needs the longest detection time; `None` if no switch pauses another.
    pub worst: Option<CongestionPause>,
    /// Longest pause that congestion causes; `None` without a bound, as where buffers may wait in a
    /// cycle.
    pub longest: Option<Span>,
    /// True if such pauses have a bound; false where buffers may wait in a cycle.
    pub bounded: bool,
}

/// Checks the watchdog of a fabric, if it has one, against the dependencies of its routes.
pub(super) fn of(fabric: &Fabric, dependencies: &Dependencies) -> Option<Watched> {
    let dcb = fabric.dcb.as_deref()?;
    let config = dcb.watchdog?;
    let stops = congestion_pauses(dependencies, draining(fabric, dcb));
    let bounded = stops.is_some();
    let longest = stops.as_ref().map(|stops| stops.iter().map(|stop| stop.longest).max());
    let longest = longest.map(Option::unwrap_or_default).filter(|&longest| longest < FOR_EVER);
    let percent = config.paused_percent;
    let key = |stop: &CongestionPause| (stop.detection(percent).unwrap_or(FOR_EVER), stop.longest);
    // The first of several equally bad ones.
    let worst = stops
        .into_iter()
        .flatten()
        .reduce(|worst, stop| if key(&stop) > key(&worst) { stop } else { worst });
    Some(Watched { config, worst, longest, bounded })
}

/// Warns of the lack of a watchdog where hosts can pause their switch; `None` with one, or where
/// they cannot.
pub(super) fn warning(fabric: &Fabric) -> Option<&'static str> {
    let dcb = fabric.dcb.as_deref()?;
    let can_pause = dcb.flow_control != FlowControl::None && !dcb.lossless.is_empty();
    let unwatched = can_pause && dcb.watchdog.is_none() && !fabric.hosts.is_empty();
    unwatched.then_some(
        "there is no watchdog, so a host that sends XOFF without end stops the lossless frames to \
         it, and whatever waits behind them; expected dcb.watchdog",
    )
}

impl Watched {
    /// Returns the longest detection time that is too short; `None` if none is long enough.
    fn needed(&self) -> Option<Span> {
        let worst = |stop: CongestionPause| stop.detection(self.config.paused_percent);
        self.worst.map_or(Some(Span::ZERO), worst).filter(|_| self.bounded)
    }

    /// Returns whether no pause caused by congestion is taken for a storm.
    pub(super) fn suffices(&self) -> bool {
        self.needed().is_some_and(|needed| self.config.detection > needed)
    }

    /// Returns the result in one line.
    pub(super) fn headline(&self, fabric: &Fabric) -> String {
        let WatchdogConfig { detection, paused_percent, .. } = self.config;
        let storm = match paused_percent {
            100 => format!("{} of pause are a storm", span_text(detection)),
            part => format!("{part}% of {} of pause are a storm", span_text(detection)),
        };
        let Some(worst) = self.worst.filter(|_| self.bounded) else {
            let why = if self.bounded {
                "no switch pauses another"
            } else {
                "nothing bounds the pauses of a cycle"
            };
            return format!("{storm}; {why}");
        };
        let at = ends(fabric, worst.buffer).1;
        let verdict = match self.needed() {
            _ if self.suffices() => "enough".into(),
            Some(needed) => format!("TOO SHORT, more than {} would do", text(needed)),
            None => "NO TIME is long enough".into(),
        };
        let longest = text(worst.longest);
        let through = match paused_percent {
            100 => String::new(),
            _ => format!(" and let {} b/s of {} through", worst.rate, worst.link),
        };
        format!("{storm}; congestion pauses {at} for up to {longest}{through}: {verdict}")
    }

    /// Returns a remedy for a detection time that does not suffice, if there is one.
    pub(super) fn way_out(&self) -> Option<String> {
        if self.suffices() {
            return None;
        }
        if self.needed().is_some() {
            let way = "a longer dcb.watchdog.detection, or less that has to leave before XON is \
                       sent: a fixed dcb.buffers.lossless_share, such as 20kB";
            return Some(way.into());
        }
        // By the share of time no detection time suffices; without a break each pause has an end.
        let longest = self.longest.filter(|_| self.config.paused_percent < 100)?;
        let longer = match self.config.detection > longest {
            true => String::new(),
            false => format!(", and a dcb.watchdog.detection of more than {}", text(longest)),
        };
        Some(format!("dcb.watchdog.paused: 100%{longer}"))
    }

    /// Returns the result for JSON.
    pub(super) fn json(&self, fabric: &Fabric) -> WatchdogJson {
        let worst = self.worst.filter(|_| self.bounded);
        WatchdogJson {
            suffices: self.suffices(),
            detection_ns: self.config.detection.as_nanos(),
            paused_percent: self.config.paused_percent,
            detection_needed_ns: self.needed().map(Span::as_nanos),
            at: worst.map(|worst| ends(fabric, worst.buffer).1),
            longest_pause_ns: worst.map(|worst| worst.longest.as_nanos()),
            least_through_bps: worst.map(|worst| worst.rate),
        }
    }
}

/// Check that the PFC watchdog ignores pauses caused by congestion.
#[derive(Serialize)]
pub(super) struct WatchdogJson {
    /// True if its detection time is long enough.
    suffices: bool,
    /// Configured detection time, in nanoseconds.
    detection_ns: u64,
    /// Share of the detection time for which a queue must be paused, in per cent.
    paused_percent: u8,
    /// Longest detection time that is too short, in nanoseconds; null if none is long enough.
    detection_needed_ns: Option<u64>,
    /// Port whose queue congestion pauses for longest; null if there is none or no bound.
    at: Option<String>,
    /// Longest pause there, in nanoseconds; null if there is none or no bound.
    longest_pause_ns: Option<u64>,
    /// Minimum throughput there during the pause, in bits per second; null if there is none or no
    /// bound.
    least_through_bps: Option<u64>,
}

/// Formats a time, `for ever` without an end: in microseconds below 10 ms, in milliseconds below 10
/// s, else in seconds, in whole numbers and rounded up.
fn text(span: Span) -> String {
    if span == FOR_EVER {
        return "for ever".into();
    }
    let micros = span.as_nanos().div_ceil(1_000);
    match micros {
        10_000_000.. => format!("{} s", micros.div_ceil(1_000_000)),
        10_000.. => format!("{} ms", micros.div_ceil(1_000)),
        _ => format!("{micros} us"),
    }
}
