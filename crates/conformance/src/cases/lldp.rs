//! LLDP helpers for the DCBX cases: advertising and receiving.

use crate::bench::Bench;
use crate::frames;
use crate::rig::{Halt, Seen};
use axon_wire::{MacAddr, Span, Time};

/// OUI of IEEE 802.1.
pub(crate) const IEEE: [u8; 3] = [0x00, 0x80, 0xc2];
/// OUI of CEE DCBX.
pub(crate) const BEFORE: [u8; 3] = [0x00, 0x1b, 0x21];

/// Longest time until a device's next LLDP frame: the longest usual interval, plus a margin.
const SPEAKS_WITHIN: Span = Span::from_secs(35);
/// Polling interval.
const STEP: Span = Span::from_millis(100);
/// Longest time for a device to apply and advertise a change. Its credit and its fast interval are
/// one second.
pub(crate) const SETTLES: Span = Span::from_secs(6);

/// Advertises TLVs in LLDP frames at port 0, with a time to live in seconds.
///
/// # Errors
/// The rig has failed.
pub(crate) fn announce(bench: &mut Bench<'_>, ttl: u16, others: &[Vec<u8>]) -> Result<(), Halt> {
    announce_as(bench, frames::mac(0), ttl, others)
}

/// Advertises TLVs in LLDP frames at port 0, from another address.
///
/// # Errors
/// The rig has failed.
pub(crate) fn announce_as(
    bench: &mut Bench<'_>,
    from: MacAddr,
    ttl: u16,
    others: &[Vec<u8>],
) -> Result<(), Halt> {
    bench.send_now(0, frames::lldp(from, ttl, others)).map(drop)
}

/// Returns whether a frame is an LLDP frame from the device.
fn is_own(seen: &Seen) -> bool {
    let lldp = frames::word(&seen.frame, 12) == Some(frames::LLDP_TYPE);
    lldp && seen.frame[6..9] != *b"\x02cf"
}

/// Returns the LLDP frames that the device has sent since it was set up.
pub(crate) fn latest(bench: &Bench<'_>) -> Vec<Vec<u8>> {
    bench
        .log()
        .heard(0, Time::ZERO)
        .filter(|seen| is_own(seen))
        .map(|seen| seen.frame.clone())
        .collect()
}

/// Waits for the device's next LLDP frame.
///
/// # Errors
/// No LLDP frame arrives.
pub(crate) fn receive(bench: &mut Bench<'_>) -> Result<Vec<u8>, Halt> {
    let from = bench.now();
    // A new neighbour triggers an immediate transmission.
    announce(bench, 120, &[])?;
    while bench.now() < from + SPEAKS_WITHIN {
        bench.pass(STEP)?;
        if let Some(seen) = bench.log().heard(0, from).find(|seen| is_own(seen)) {
            return Ok(seen.frame.clone());
        }
    }
    Err(Halt::Failed(format!("no LLDP frame for {SPEAKS_WITHIN}")))
}

/// Returns the last TLV with this IEEE subtype that the device has advertised.
///
/// # Errors
/// The device has sent no DCBX.
pub(crate) fn last_said(bench: &mut Bench<'_>, subtype: u8) -> Result<Vec<u8>, Halt> {
    let mut frames = latest(bench);
    if frames.is_empty() {
        frames.push(receive(bench)?);
    }
    let last = frames.pop().unwrap_or_default();
    let said = frames::said_by(&last, IEEE, subtype).first().map(|said| said.to_vec());
    said.ok_or_else(|| Halt::Failed(format!("its last LLDP frame has no TLV of subtype {subtype}")))
}
