//! What the cases of DCBX have in common: to advertise by LLDP, and to receive what is advertised.

use crate::bench::Bench;
use crate::frames;
use crate::rig::{Halt, Seen};
use axon_wire::{MacAddr, Span, Time};

/// The organisation of IEEE 802.1.
pub const IEEE: [u8; 3] = [0x00, 0x80, 0xc2];
/// That of what was before the standard.
pub const BEFORE: [u8; 3] = [0x00, 0x1b, 0x21];

/// How long a device may take until it speaks: its longest usual interval, and some.
const SPEAKS_WITHIN: Span = Span::from_secs(35);
/// From look to look.
const STEP: Span = Span::from_millis(100);
/// How long a device may take to do and to say something else once it has heard: its credit and
/// fast interval are a second.
pub const SETTLES: Span = Span::from_secs(6);

/// The tester says this by LLDP, at port 0, to hold for so many seconds.
///
/// # Errors
/// The rig has failed.
pub fn announce(bench: &mut Bench<'_>, ttl: u16, others: &[Vec<u8>]) -> Result<(), Halt> {
    announce_as(bench, frames::mac(0), ttl, others)
}

/// The same, as a station of another address.
///
/// # Errors
/// The rig has failed.
pub fn announce_as(
    bench: &mut Bench<'_>,
    from: MacAddr,
    ttl: u16,
    others: &[Vec<u8>],
) -> Result<(), Halt> {
    bench.send_now(0, frames::lldp(from, ttl, others)).map(drop)
}

/// Whether a frame is the device's LLDP.
fn is_own(seen: &Seen) -> bool {
    let lldp = frames::word(&seen.frame, 12) == Some(frames::LLDP_TYPE);
    lldp && seen.frame[6..9] != *b"\x02cf"
}

/// The device's LLDP frames since it was set up.
pub fn latest(bench: &Bench<'_>) -> Vec<Vec<u8>> {
    bench.heard(0, Time::ZERO).filter(|seen| is_own(seen)).map(|seen| seen.frame.clone()).collect()
}

/// Waits for the device's next LLDP frame.
///
/// # Errors
/// None comes.
pub fn receive(bench: &mut Bench<'_>) -> Result<Vec<u8>, Halt> {
    let from = bench.now();
    // A neighbour that is new makes a device speak at once.
    announce(bench, 120, &[])?;
    while bench.now() < from + SPEAKS_WITHIN {
        bench.pass(STEP)?;
        if let Some(seen) = bench.heard(0, from).find(|seen| is_own(seen)) {
            return Ok(seen.frame.clone());
        }
    }
    Err(Halt::Failed(format!("no LLDP frame for {SPEAKS_WITHIN}")))
}

/// What the device said last in a TLV of this subtype of the standard's.
///
/// # Errors
/// It has said nothing by DCBX.
pub fn last_said(bench: &mut Bench<'_>, subtype: u8) -> Result<Vec<u8>, Halt> {
    let mut frames = latest(bench);
    if frames.is_empty() {
        frames.push(receive(bench)?);
    }
    let last = frames.pop().unwrap_or_default();
    let said = frames::said_by(&last, IEEE, subtype).first().map(|said| said.to_vec());
    said.ok_or_else(|| Halt::Failed(format!("its last LLDP frame has no TLV of subtype {subtype}")))
}
