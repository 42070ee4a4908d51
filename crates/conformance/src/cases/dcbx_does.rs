//! DCBX, IEEE 802.1Q annex D: checks that a device applies the configuration that it has taken
//! over. `dcbx_takes.rs` checks its advertisements.

use super::dcbx_takes::{
    OTHER, OTHER_SHARES, OWN, pfc_is, pfc_says, recommended, set_up, shares_are, willing,
};
use super::ets::{Bound, compete, enough, proportion};
use super::lldp::{SETTLES, announce};
use super::pause::keeps_sending;
use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::Halt;
use axon_wire::Span;
use axon_wire::priority::{Priority, PrioritySet};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "dcbx/taken-pfc-is-honoured",
        clause: "802.1Q D.4.4, 36.1.2",
        says: "A device that follows its peer's PFC honours it for those priorities, and no longer \
                for its own.",
        run: pfc_is_honoured,
    },
    Case {
        name: "dcbx/taken-shares-are-in-force",
        clause: "802.1Q D.4.3, 37.3",
        says: "A device that does what its peer recommends gives classes those shares.",
        run: shares_are_in_force,
    },
];

fn pfc_is_honoured(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(2, "traffic has to come through the device")?;
    set_up(bench, willing(true))?;
    announce(bench, 120, &[pfc_says(false, OTHER)])?;
    bench.pass(SETTLES)?;
    pfc_is(bench, OTHER)?;
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 5)?;
    let sent = bench.send_now(0, frames::pfc_for(frames::mac(0), OTHER, quanta))?;
    bench.pass(pause * 2)?;
    let taken = PrioritySet::from_bits(OTHER);
    bench.silent(taken, sent, sent + pause)?;
    keeps_sending(
        bench,
        PrioritySet::ALL.difference(taken),
        (sent + turn * 2, sent + pause),
        turn,
    )?;
    let sent = bench.send_now(0, frames::pfc_for(frames::mac(0), OWN, u16::MAX))?;
    bench.did("PFC for the priority that was taken over, then for the one that it had before");
    bench.pass(pause)?;
    keeps_sending(bench, PrioritySet::from_bits(OWN), (sent, sent + pause), turn)
}

fn shares_are_in_force(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(3, "two ports that send more than a third takes")?;
    enough(bench, &OTHER_SHARES)?;
    set_up(bench, willing(true))?;
    announce(bench, 120, &[recommended(OTHER_SHARES)])?;
    bench.pass(SETTLES)?;
    shares_are(bench, OTHER_SHARES)?;
    let wanted: Vec<_> = Priority::ALL[..3].iter().map(|&one| (one, Span::ZERO)).collect();
    let bytes = compete(bench, &wanted)?;
    bench.did(format!("recommended shares of {OTHER_SHARES:?} %, and sent at full load"));
    proportion(bench, &bytes, &OTHER_SHARES, Bound::Standard)
}
