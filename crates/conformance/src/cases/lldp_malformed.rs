//! LLDP, IEEE 802.1AB clause 9.2.7.7: LLDPDUs that are to be dropped.
//!
//! In plain English: each of them says PFC that a willing device would follow if it took the
//! LLDPDU in.

use super::dcbx_takes::{OTHER, OWN, pfc_is, pfc_says, set_up, willing};
use super::lldp::{SETTLES, hear};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames::{self, tlv};
use crate::rig::Halt;

/// All of them.
pub const CASES: &[Case] = &[
    Case {
        name: "dcbx/lldp-cut-tlv-dropped",
        clause: "802.1AB 9.2.7.7",
        says: "An LLDPDU with a TLV that is longer than what is left is dropped and counted.",
        run: |bench| dropped(bench, &[chassis(), port(), time_to_live(), pfc(), vec![0x10, 0xff]]),
    },
    Case {
        name: "dcbx/lldp-without-time-to-live-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU without a time to live is dropped and counted.",
        run: |bench| dropped(bench, &[chassis(), port(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-short-time-to-live-dropped",
        clause: "802.1AB 8.5.4, 9.2.7.7",
        says: "An LLDPDU whose time to live is one octet is dropped and counted.",
        run: |bench| dropped(bench, &[chassis(), port(), tlv(3, &[120]), pfc()]),
    },
    Case {
        name: "dcbx/lldp-wrong-order-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU whose port comes before its chassis is dropped and counted.",
        run: |bench| dropped(bench, &[port(), chassis(), time_to_live(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-chassis-twice-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU that names a second chassis is dropped and counted.",
        run: |bench| dropped(bench, &[chassis(), port(), time_to_live(), chassis(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-empty-identity-dropped",
        clause: "802.1AB 8.5.2, 9.2.7.7",
        says: "An LLDPDU whose chassis has a kind and no name is dropped and counted.",
        run: |bench| dropped(bench, &[tlv(1, &[4]), port(), time_to_live(), pfc()]),
    },
];

fn chassis() -> Vec<u8> {
    tlv(1, &[&[4][..], &frames::mac(0).0].concat())
}

fn port() -> Vec<u8> {
    tlv(2, &[&[3][..], &frames::mac(0).0].concat())
}

fn time_to_live() -> Vec<u8> {
    tlv(3, &120_u16.to_be_bytes())
}

fn pfc() -> Vec<u8> {
    pfc_says(false, OTHER)
}

/// Says this to a device that is willing; it is to stay as it is, and to count the frame.
fn dropped(bench: &mut Bench<'_>, tlvs: &[Vec<u8>]) -> Result<(), Halt> {
    set_up(bench, willing(true))?;
    let before = bench.counters();
    let mut said = tlvs.concat();
    said.extend(tlv(0, &[]));
    let to = frames::NEAREST_BRIDGE;
    let frame = frames::ethernet(to, frames::mac(0), frames::LLDP_TYPE, &said);
    bench.send_now(0, frame)?;
    bench.did(format!("LLDPDU {}", frames::hex(&said)));
    bench.pass(SETTLES)?;
    if let (Some(before), Some(after)) = (before, bench.counters()) {
        let counted = after.refused - before.refused;
        bench.expect(counted == 1, || format!("counted {counted} times"))?;
        bench.saw("counted once");
    }
    // A neighbour that is new, and says nothing of DCBX, makes it speak.
    hear(bench)?;
    pfc_is(bench, OWN)
}
