//! Whether the PFC watchdog may take a pause caused by congestion for a storm.

use axon_fabric::cycle::ends;
use axon_fabric::dcb::draining;
use axon_fabric::model::{Fabric, FlowControl};
use axon_fabric::units::span_text;
use axon_plane::watchdog::WatchdogConfig;
use axon_prove::{CongestionPause, Dependencies, congestion_pauses};
use axon_wire::Span;
use serde::Serialize;

/// The longest span there is.
const FOR_EVER: Span = Span::from_ticks(u64::MAX);

/// What was found.
pub struct Watched {
    /// The watchdog's configuration.
    pub config: WatchdogConfig,
    /// The buffer that needs the longest detection time; `None` if no switch pauses another.
    pub worst: Option<CongestionPause>,
    /// The longest pause that congestion causes; `None` if nothing bounds it, as where buffers may
    /// wait in a cycle.
    pub longest: Option<Span>,
    /// Whether such pauses have a bound: not where buffers may wait in a cycle.
    pub bounded: bool,
}

/// Looks at the watchdog of a fabric, if it has one, by what its routes make wait.
pub(super) fn of(fabric: &Fabric, dependencies: &Dependencies) -> Option<Watched> {
    let dcb = fabric.dcb.as_deref()?;
    let config = dcb.watchdog?;
    let stops = congestion_pauses(dependencies, draining(fabric, dcb));
    let bounded = stops.is_some();
    let longest = stops.as_ref().map(|stops| stops.iter().map(|stop| stop.longest).max());
    let longest = longest.map(Option::unwrap_or_default).filter(|&longest| longest < FOR_EVER);
    let percent = config.paused_percent;
    let key = |stop: &CongestionPause| (stop.detection(percent).unwrap_or(FOR_EVER), stop.longest);
    // Of several equally bad the first.
    let worst = stops
        .into_iter()
        .flatten()
        .reduce(|worst, stop| if key(&stop) > key(&worst) { stop } else { worst });
    Some(Watched { config, worst, longest, bounded })
}

/// What may happen without a watchdog where hosts can pause their switch; `None` with one, or
/// where they cannot.
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
    /// The detection time that is just too short; `None` if none is long enough.
    fn needed(&self) -> Option<Span> {
        let worst = |stop: CongestionPause| stop.detection(self.config.paused_percent);
        self.worst.map_or(Some(Span::ZERO), worst).filter(|_| self.bounded)
    }

    /// Whether no pause caused by congestion is taken for a storm.
    pub(super) fn suffices(&self) -> bool {
        self.needed().is_some_and(|needed| self.config.detection > needed)
    }

    /// In one line what came of it.
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

    /// What may be done about a detection time that does not suffice, where anything may.
    pub(super) fn way_out(&self) -> Option<String> {
        if self.suffices() {
            return None;
        }
        if self.needed().is_some() {
            let way = "a longer dcb.watchdog.detection, or less that has to leave before XON is \
                       sent: a fixed dcb.buffers.lossless_share, such as 20kB";
            return Some(way.into());
        }
        // By the share of time nothing is enough; without a break each pause has an end.
        let longest = self.longest.filter(|_| self.config.paused_percent < 100)?;
        let longer = match self.config.detection > longest {
            true => String::new(),
            false => format!(", and a dcb.watchdog.detection of more than {}", text(longest)),
        };
        Some(format!("dcb.watchdog.paused: 100%{longer}"))
    }

    /// The same for machines.
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

/// Whether the PFC watchdog ignores pauses caused by congestion.
#[derive(Serialize)]
pub(super) struct WatchdogJson {
    /// Whether its detection time is long enough.
    suffices: bool,
    /// The detection time that is configured, in nanoseconds.
    detection_ns: u64,
    /// The share of the detection time for which a queue must be paused, in per cent.
    paused_percent: u8,
    /// The longest detection time that is too short; null if none is long enough.
    detection_needed_ns: Option<u64>,
    /// The port whose queue congestion pauses for longest; null if there is none or no bound.
    at: Option<String>,
    /// The longest pause there; null if there is none or no bound.
    longest_pause_ns: Option<u64>,
    /// The least that goes through there meanwhile, in bits per second; null if there is none or no
    /// bound.
    least_through_bps: Option<u64>,
}

/// A time to read, `for ever` if it has no end: in microseconds below 10 ms, in milliseconds below
/// 10 s, else in seconds, in whole numbers and rounded up.
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
