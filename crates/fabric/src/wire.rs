//! Properties of a link: overrides and checks.

use crate::error::Problem;
use crate::model::Wire;
use crate::topology::WireChange;
use crate::units::{LINK_RATES, LINK_RATES_EXPECTED, span_text};
use axon_wire::{Rate, Span};

/// Returns the properties of a link with an override applied.
pub(crate) fn changed(wire: Wire, change: WireChange) -> Wire {
    Wire {
        rate: change.rate.unwrap_or(wire.rate),
        latency: change.latency.unwrap_or(wire.latency),
        loss_ppm: change.loss_ppm.unwrap_or(wire.loss_ppm),
        bit_errors_per_1e15: change.bit_errors_per_1e15.unwrap_or(wire.bit_errors_per_1e15),
        queue: wire.queue,
    }
}

/// Refuses links that can carry nothing, and those whose times cannot be represented.
pub(crate) fn check_wire(key: &str, wire: &Wire) -> Result<(), Problem> {
    check_rate(key, wire.rate)?;
    if wire.loss_ppm > 1_000_000 {
        let what = format!("{} is more than all frames", wire.loss_ppm);
        return Err(Problem::new(format!("{key}.loss_ppm"), what, "0 to 1000000"));
    }
    if !(2048..=1 << 32).contains(&wire.queue.0) {
        let what = format!("{} is out of range", wire.queue);
        return Err(Problem::new(format!("{key}.queue"), what, "2KiB to 4GiB"));
    }
    if wire.latency > Span::from_secs(3600) {
        let what = format!("{} is out of range", span_text(wire.latency));
        return Err(Problem::new(format!("{key}.latency"), what, "0s to 1h"));
    }
    Ok(())
}

/// Refuses a rate whose times cannot be represented.
pub(crate) fn check_rate(key: &str, rate: Rate) -> Result<(), Problem> {
    if LINK_RATES.contains(&rate.bits_per_second()) {
        return Ok(());
    }
    let what = format!("{rate} cannot be represented");
    Err(Problem::new(format!("{key}.rate"), what, LINK_RATES_EXPECTED))
}
