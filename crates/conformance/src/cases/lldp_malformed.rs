//! LLDP, IEEE 802.1AB clause 9.2.7.7: LLDPDUs that must be dropped.
//!
//! Each LLDPDU advertises a PFC configuration that a willing device would follow if it accepted the
//! LLDPDU.

use super::dcbx_takes::{OTHER, OWN, pfc_is, pfc_says, set_up, willing};
use super::lldp::{IEEE, SETTLES, latest, receive};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames::{self, tlv};
use crate::rig::Halt;

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "dcbx/lldp-cut-tlv-dropped",
        clause: "802.1AB 9.2.7.7",
        says: "An LLDPDU with a TLV that is longer than what is left is dropped.",
        run: |bench| dropped(bench, &[chassis(), port(), time_to_live(), pfc(), vec![0x10, 0xff]]),
    },
    Case {
        name: "dcbx/lldp-without-time-to-live-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU without a time to live is dropped.",
        run: |bench| dropped(bench, &[chassis(), port(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-short-time-to-live-dropped",
        clause: "802.1AB 8.5.4, 9.2.7.7",
        says: "An LLDPDU whose time to live is one octet is dropped.",
        run: |bench| dropped(bench, &[chassis(), port(), tlv(3, &[120]), pfc()]),
    },
    Case {
        name: "dcbx/lldp-wrong-order-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU whose port comes before its chassis is dropped.",
        run: |bench| dropped(bench, &[port(), chassis(), time_to_live(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-chassis-twice-dropped",
        clause: "802.1AB 8.2, 9.2.7.7",
        says: "An LLDPDU that names a second chassis is dropped.",
        run: |bench| dropped(bench, &[chassis(), port(), time_to_live(), chassis(), pfc()]),
    },
    Case {
        name: "dcbx/lldp-empty-identity-dropped",
        clause: "802.1AB 8.5.2, 9.2.7.7",
        says: "An LLDPDU whose chassis has a kind and no name is dropped.",
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

/// Advertises TLVs to a willing device, and fails if the device changes its configuration.
fn dropped(bench: &mut Bench<'_>, tlvs: &[Vec<u8>]) -> Result<(), Halt> {
    set_up(bench, willing(true))?;
    let mut said = tlvs.concat();
    said.extend(tlv(0, &[]));
    let to = frames::NEAREST_BRIDGE;
    let frame = frames::ethernet(to, frames::mac(0), frames::LLDP_TYPE, &said);
    bench.send_now(0, frame)?;
    bench.did(format!("LLDPDU {}", frames::hex(&said)));
    bench.pass(SETTLES)?;
    // A device that accepts the LLDPDU advertises the change before it receives the next LLDPDU.
    for frame in latest(bench) {
        let followed = frames::said_by(&frame, IEEE, 11).iter().any(|pfc| pfc.get(1) != Some(&OWN));
        bench.expect(!followed, || format!("it was taken in: {}", frames::hex(&frame)))?;
    }
    // A new neighbour without DCBX triggers a transmission.
    receive(bench)?;
    pfc_is(bench, OWN)
}
