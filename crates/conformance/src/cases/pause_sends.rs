//! PAUSE, IEEE 802.3 annex 31B, for a device that has to send it.
//!
//! The cases are like those in `pfc_sends.rs`, but with PAUSE, so that the tester and the device
//! pause all priorities on a link.

use super::pfc_sends::{all_came, block_with, fault_of, long, send_into, well_formed};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::Halt;
use crate::setup::Setup;
use axon_wire::Time;
use axon_wire::priority::Priority;

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "pause/frame-format",
        clause: "802.3 31B.2, 31B.3.1",
        says: "A PAUSE frame is 60 octets and its FCS, untagged, to the group address, zero behind \
                its time.",
        run: |bench| {
            congest(bench)?;
            well_formed(bench, |frame| fault_of(frame, frames::PAUSE, 18))
        },
    },
    Case {
        name: "pause/sent-before-loss",
        clause: "802.3 31B.1, 31B.3.1",
        says: "A device with PAUSE whose buffer fills sends it, with a time above zero, before it \
                loses a frame.",
        run: before_loss,
    },
    Case {
        name: "pause/xon-is-sent",
        clause: "802.3 31B.3.1",
        says: "Once there is room again the device sends XON: a time of zero.",
        run: go_on,
    },
];

/// Pauses port 0 of a device that uses PAUSE, and sends towards that port. Returns the stream, and
/// the time at which the buffer had drained.
fn congest(bench: &mut Bench<'_>) -> Result<(u16, Time), Halt> {
    let own = Setup { pause: true, ..Setup::default() };
    let setup = bench.given().cloned().unwrap_or(own);
    if !setup.pause {
        return Err(Halt::NotApplicable("the device sends no PAUSE (--pause)".into()));
    }
    bench.set_up(&setup)?;
    let span = long(bench);
    let room = bench.now() + span;
    block_with(bench, span, |quanta| frames::pause(frames::mac(0), quanta));
    Ok((send_into(bench, Priority::ZERO, span)?, room))
}

/// Returns the PAUSE frames that the device sent to port 1, each as its time and its quanta.
fn said(bench: &Bench<'_>) -> Vec<(Time, u16)> {
    let heard = bench.log().heard(1, Time::ZERO);
    heard.filter_map(|seen| Some((seen.at, frames::pause_of(&seen.frame)?))).collect()
}

fn before_loss(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let (id, _) = congest(bench)?;
    let stops = said(bench).into_iter().filter(|&(_, time)| time > 0).count();
    bench.saw(format!("{stops} times XOFF"));
    bench.expect(stops > 0, || "no XOFF".into())?;
    all_came(bench, &[id])
}

fn go_on(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let (_, room) = congest(bench)?;
    let said = said(bench);
    bench.expect(said.iter().any(|&(_, time)| time > 0), || "no XOFF".into())?;
    let went = said.iter().find(|&&(at, time)| time == 0 && at >= room);
    bench.expect(went.is_some(), || "the last XOFF was followed by no XON".into())?;
    let after = went.map(|(at, _)| at.since(room)).unwrap_or_default();
    bench.saw(format!("XON {after} after there was room"));
    Ok(())
}
