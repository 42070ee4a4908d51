//! Properties of a link: overrides and checks.

use crate::error::Problem;
use crate::file::{BitErrorsText, WireKey};
use crate::model::Wire;
use crate::units::{LINK_RATES, LINK_RATES_EXPECTED, RateText, SpanText, span_text};
use axon_wire::{Rate, Span};

/// Returns the properties of a link with changes applied.
pub(crate) fn changed(mut wire: Wire, changes: &[WireKey]) -> Wire {
    for change in changes {
        match *change {
            WireKey::Rate(RateText(rate)) => wire.rate = rate,
            WireKey::Latency(SpanText(latency)) => wire.latency = latency,
            WireKey::LossPpm(ppm) => wire.loss_ppm = ppm,
            WireKey::BitErrorRate(BitErrorsText(bits)) => wire.bit_errors_per_1e15 = bits,
        }
    }
    wire
}

/// Refuses links that can carry nothing, and those whose times cannot be represented.
pub(crate) fn check_wire(key: &str, wire: &Wire) -> Result<(), Problem> {
    check_rate(key, wire.rate)?;
    if wire.loss_ppm > 1_000_000 {
        let what = format!("{} is more than all frames", wire.loss_ppm);
        return Err(Problem::new(format!("{key}.loss_ppm"), what, "0 to 1000000"));
    }
    if !(2048..=1 << 32).contains(&wire.queue.0) {
        return Err(Problem::range(format!("{key}.queue"), wire.queue, "2KiB to 4GiB"));
    }
    if wire.latency > Span::from_secs(3600) {
        return Err(Problem::range(format!("{key}.latency"), span_text(wire.latency), "0s to 1h"));
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
