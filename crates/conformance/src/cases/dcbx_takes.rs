//! DCBX, IEEE 802.1Q annex D, and its predecessor CEE: the configuration that a device takes over
//! from its peer.
//!
//! The device has PFC on priority 3 and shares of 20, 30 and 50 %. The tester is its peer and
//! advertises other values. The device's next LLDP frame shows the operational values.

use super::lldp::{BEFORE, IEEE, SETTLES, announce, announce_as, last_said, latest, receive};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::Halt;
use crate::setup::{Dcbx, Form, Setup};
use axon_wire::priority::PrioritySet;
use axon_wire::{MacAddr, Span};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "dcbx/willing-takes-recommendation",
        clause: "802.1Q D.4.3; 002 3.2.4",
        says: "A device that is willing does what its peer recommends of ETS.",
        run: |bench| ets(bench, Some(true), &[recommended(OTHER_SHARES)], OTHER_SHARES),
    },
    Case {
        name: "dcbx/unwilling-keeps-ets",
        clause: "802.1Q D.4.3; 002 3.2.4",
        says: "A device that is not willing does not do what its peer recommends of ETS.",
        run: |bench| ets(bench, Some(false), &[recommended(OTHER_SHARES)], OWN_SHARES),
    },
    Case {
        name: "dcbx/configuration-is-no-recommendation",
        clause: "802.1Q D.4.3",
        says: "What the peer does itself is not taken for what it recommends.",
        run: |bench| ets(bench, Some(true), &[configured(OTHER_SHARES)], OWN_SHARES),
    },
    Case {
        name: "dcbx/wrong-sum-refused",
        clause: "802.1Q D.2.9",
        says: "Recommended percentages that do not add up to 100 are not taken.",
        run: |bench| ets(bench, Some(true), &[recommended([50, 30, 0])], OWN_SHARES),
    },
    Case {
        name: "dcbx/willing-takes-pfc",
        clause: "802.1Q D.4.4; 002 3.2.4",
        says: "A device that is willing follows the PFC of a peer that is not.",
        run: |bench| pfc(bench, Some(true), &[pfc_says(false, OTHER)], OTHER),
    },
    Case {
        name: "dcbx/unwilling-keeps-pfc",
        clause: "802.1Q D.4.4; 002 3.2.4",
        says: "A device that is not willing keeps its own PFC.",
        run: |bench| pfc(bench, Some(false), &[pfc_says(true, OTHER)], OWN),
    },
    Case {
        name: "dcbx/tie-lower-address-keeps",
        clause: "802.1Q D.4.4, as recalled; 002 3.2.4",
        says: "If both are willing, the port with the lower address keeps its own PFC.",
        run: |bench| tie(bench, false),
    },
    Case {
        name: "dcbx/tie-higher-address-keeps",
        clause: "what lldpad does",
        says: "By the other rule the port with the higher address keeps its own PFC.",
        run: |bench| tie(bench, true),
    },
    Case {
        name: "dcbx/tlv-twice-ignored",
        clause: "802.1Q D.2; 802.1AB 9.2.7.7",
        says: "Of a kind of TLV that comes twice none is taken.",
        run: |bench| {
            let both = [pfc_says(false, OTHER), pfc_says(false, 0x40)];
            pfc(bench, Some(true), &both, OWN)
        },
    },
    Case {
        name: "dcbx/short-tlv-ignored",
        clause: "802.1AB 9.2.7.7",
        says: "A PFC TLV that is too short is not taken, and the others are.",
        run: |bench| {
            let others = [frames::tlv_of(IEEE, 11, &[0x08]), recommended(OTHER_SHARES)];
            pfc(bench, Some(true), &others, OWN)?;
            shares_are(bench, OTHER_SHARES)
        },
    },
    Case {
        name: "dcbx/cut-recommendation-ignored",
        clause: "802.1AB 9.2.7.7",
        says: "A recommendation that is too short is not taken, and PFC is.",
        run: |bench| {
            let others = [frames::tlv_of(IEEE, 10, &[0; 9]), pfc_says(false, OTHER)];
            ets(bench, Some(true), &others, OWN_SHARES)?;
            pfc_is(bench, OTHER)
        },
    },
    Case {
        name: "dcbx/half-application-entry-ignored",
        clause: "802.1Q D.2.11",
        says: "An application TLV that ends in the middle of an entry does no harm.",
        run: |bench| {
            let half = frames::tlv_of(IEEE, 12, &[0, 0x61, 0x89, 0x06, 0x82]);
            pfc(bench, Some(true), &[half, pfc_says(false, OTHER)], OTHER)
        },
    },
    Case {
        name: "dcbx/time-to-live-zero-deletes",
        clause: "802.1AB 9.2.7.7.1",
        says: "Time to live zero ends at once what the peer has advertised.",
        run: |bench| taken_back(bench, |bench| announce(bench, 0, &[])),
    },
    Case {
        name: "dcbx/time-to-live-ends",
        clause: "802.1AB 9.2.7.7.2",
        says: "What a peer has advertised holds for its time to live and no longer.",
        run: expires,
    },
    Case {
        name: "dcbx/missing-tlv-is-gone",
        clause: "802.1AB 9.2.7.7",
        says: "What is not in the latest LLDPDU holds no longer.",
        run: |bench| taken_back(bench, |bench| announce(bench, 120, &[])),
    },
    Case {
        name: "dcbx/two-peers-follow-none",
        clause: "802.1Q D.4; 002 3.2.4",
        says: "A device that receives DCBX from two peers behaves as if there were none.",
        run: |bench| {
            taken_back(bench, |bench| {
                let other = MacAddr([0x02, b'c', b'f', 0, 1, 0]);
                announce_as(bench, other, 120, &[pfc_says(false, 0x40)])
            })
        },
    },
    Case {
        name: "dcbx/other-group-ignored",
        clause: "802.1Q D.1; 802.1AB 7.1",
        says: "LLDP to the nearest customer bridge is not taken for DCBX.",
        run: other_group,
    },
    Case {
        name: "dcbx/cee-format",
        clause: "CEE 1.01; lldpad",
        says: "The older form is one TLV with control, groups and PFC, each of its own length.",
        run: cee_format,
    },
    Case {
        name: "dcbx/cee-acknowledges",
        clause: "CEE 1.01; lldpad",
        says: "In the older form the peer's sequence number comes back.",
        run: cee_acknowledges,
    },
];

/// Configuration of the device: PFC on priority 3, and the shares of classes 0, 1 and 2.
pub(crate) const OWN: u8 = 0b0000_1000;
const OWN_SHARES: [u8; 3] = [20, 30, 50];
/// Configuration of the tester: PFC on priority 5, and other shares.
pub(super) const OTHER: u8 = 0b0010_0000;
pub(super) const OTHER_SHARES: [u8; 3] = [60, 30, 10];

/// Sets up a device that is willing, unwilling, or either of them. If its configuration is fixed,
/// the setup reflects that.
pub(super) fn set_up(bench: &mut Bench<'_>, dcbx: Dcbx) -> Result<(), Halt> {
    let setup = Setup {
        pfc: PrioritySet::from_bits(OWN),
        dcbx: Some(dcbx),
        ..Setup::with_shares(&OWN_SHARES)
    };
    bench.set_up(&setup)
}

pub(super) fn willing(willing: bool) -> Dcbx {
    Dcbx { ets_willing: willing, pfc_willing: willing, ..Dcbx::default() }
}

/// Returns a PFC TLV that states a capability of eight classes.
pub(super) fn pfc_says(willing: bool, bitmap: u8) -> Vec<u8> {
    frames::tlv_of(IEEE, 11, &[u8::from(willing) << 7 | 8, bitmap])
}

/// Returns an ETS TLV without its first octet. Priority n is in class n, and the classes have these
/// shares.
fn table(shares: [u8; 3]) -> Vec<u8> {
    let mut said = vec![0x01, 0x23, 0x45, 0x67];
    said.extend(shares);
    said.extend([0; 5]);
    said.extend(shares.map(|_| 2));
    said.extend([0; 5]);
    said
}

pub(super) fn recommended(shares: [u8; 3]) -> Vec<u8> {
    frames::tlv_of(IEEE, 10, &[vec![0], table(shares)].concat())
}

fn configured(shares: [u8; 3]) -> Vec<u8> {
    frames::tlv_of(IEEE, 9, &[vec![0], table(shares)].concat())
}

/// Advertises TLVs to a willing or unwilling device and waits until it settles.
fn say(bench: &mut Bench<'_>, is_willing: Option<bool>, said: &[Vec<u8>]) -> Result<(), Halt> {
    set_up(bench, willing(is_willing == Some(true)))?;
    announce(bench, 120, said)?;
    bench.pass(SETTLES)
}

fn ets(
    bench: &mut Bench<'_>,
    is_willing: Option<bool>,
    said: &[Vec<u8>],
    wanted: [u8; 3],
) -> Result<(), Halt> {
    say(bench, is_willing, said)?;
    shares_are(bench, wanted)
}

fn pfc(
    bench: &mut Bench<'_>,
    is_willing: Option<bool>,
    said: &[Vec<u8>],
    wanted: u8,
) -> Result<(), Halt> {
    say(bench, is_willing, said)?;
    pfc_is(bench, wanted)
}

/// Fails unless the device advertises these shares as operational.
pub(super) fn shares_are(bench: &mut Bench<'_>, wanted: [u8; 3]) -> Result<(), Halt> {
    let said = last_said(bench, 9)?;
    let shares = said.get(5..8).unwrap_or_default().to_vec();
    bench.saw(format!("shares of {shares:?} % in force"));
    bench.expect(shares == wanted, || format!("shares of {shares:?} %, not {wanted:?}"))
}

/// Fails unless the device advertises PFC on for these priorities.
pub(super) fn pfc_is(bench: &mut Bench<'_>, wanted: u8) -> Result<(), Halt> {
    let said = last_said(bench, 11)?;
    let bitmap = said.get(1).copied().unwrap_or(0);
    bench.saw(format!("PFC in force for {bitmap:#010b}"));
    bench.expect(bitmap == wanted, || format!("PFC for {bitmap:#010b}, not for {wanted:#010b}"))
}

/// Checks the tie between two willing ends, with the tester first at the lowest and then at the
/// highest address.
fn tie(bench: &mut Bench<'_>, higher_keeps: bool) -> Result<(), Halt> {
    let dcbx = Dcbx { higher_keeps, ..willing(true) };
    for (address, tester_is_higher) in [(0x00, false), (0xfe, true)] {
        set_up(bench, dcbx)?;
        let tester = MacAddr([address, 0, 0, 0, 0, address | 1]);
        announce_as(bench, tester, 120, &[pfc_says(true, OTHER)])?;
        bench.did(format!("said to be willing, as {tester}"));
        bench.pass(SETTLES)?;
        let tester_keeps = tester_is_higher == higher_keeps;
        pfc_is(bench, if tester_keeps { OTHER } else { OWN })?;
    }
    Ok(())
}

/// Checks that the device follows the tester's PFC, and returns to its own after `then`.
fn taken_back(
    bench: &mut Bench<'_>,
    then: impl FnOnce(&mut Bench<'_>) -> Result<(), Halt>,
) -> Result<(), Halt> {
    pfc(bench, Some(true), &[pfc_says(false, OTHER)], OTHER)?;
    then(bench)?;
    bench.pass(SETTLES)?;
    pfc_is(bench, OWN)
}

fn other_group(bench: &mut Bench<'_>) -> Result<(), Halt> {
    set_up(bench, willing(true))?;
    let mut frame = frames::lldp(frames::mac(0), 120, &[pfc_says(false, OTHER)]);
    frame[..6].copy_from_slice(&frames::CUSTOMER_BRIDGE);
    bench.send_now(0, frame)?;
    bench.did("PFC, said to the nearest customer bridge");
    bench.pass(SETTLES)?;
    receive(bench)?;
    pfc_is(bench, OWN)
}

fn expires(bench: &mut Bench<'_>) -> Result<(), Halt> {
    const TTL: u16 = 10;
    set_up(bench, willing(true))?;
    announce(bench, TTL, &[pfc_says(false, OTHER)])?;
    bench.did(format!("PFC that holds for {TTL} s"));
    bench.pass(SETTLES)?;
    pfc_is(bench, OTHER)?;
    bench.pass(Span::from_secs(TTL.into()))?;
    pfc_is(bench, OWN)
}

/// Returns the sub-TLVs in a CEE frame from the device, by type.
fn parts(frame: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, Halt> {
    let said = frames::said_by(frame, BEFORE, 2);
    let Some(mut rest) = said.first().copied() else {
        return Err(Halt::Failed("no TLV of the older form".into()));
    };
    let mut parts = Vec::new();
    while let Some(head) = frames::word(rest, 0) {
        let length = usize::from(head & 0x1ff);
        let Some(value) = rest.get(2..2 + length) else {
            return Err(Halt::Failed("a part is longer than what is left".into()));
        };
        parts.push(((head >> 9) as u8, value.to_vec()));
        rest = &rest[2 + length..];
    }
    Ok(parts)
}

fn cee_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    set_up(bench, Dcbx { form: Form::Cee, ..Dcbx::default() })?;
    let frame = receive(bench)?;
    let parts = parts(&frame)?;
    bench.saw(format!("parts {parts:02x?}"));
    for (kind, length) in [(1, 10), (2, 17), (3, 6)] {
        let own: Vec<_> = parts.iter().filter(|(own, _)| *own == kind).collect();
        bench.expect(own.len() == 1 && own[0].1.len() == length, || {
            format!("part {kind} is not there once with {length} octets")
        })?;
    }
    let pfc = parts.iter().find(|(kind, _)| *kind == 3).map(|(_, value)| value[4]);
    bench.expect(pfc == Some(OWN), || format!("PFC for {pfc:02x?}, not {OWN:#04x}"))
}

fn cee_acknowledges(bench: &mut Bench<'_>) -> Result<(), Halt> {
    const SEQUENCE: u8 = 9;
    set_up(bench, Dcbx { form: Form::Cee, ..Dcbx::default() })?;
    let control = frames::tlv(1, &[0, 0, 0, 0, 0, SEQUENCE, 0, 0, 0, 0]);
    let pfc = frames::tlv(3, &[0, 0, 0x80, 0, OWN, 8]);
    announce(bench, 120, &[frames::tlv_of(BEFORE, 2, &[control, pfc].concat())])?;
    bench.did(format!("sequence number {SEQUENCE}"));
    bench.pass(SETTLES)?;
    let last = latest(bench).pop().unwrap_or_default();
    let control = parts(&last)?.into_iter().find(|(kind, _)| *kind == 1);
    let acknowledged = control.and_then(|(_, value)| value.get(9).copied());
    bench.expect(acknowledged == Some(SEQUENCE), || {
        format!("acknowledged {acknowledged:?}, and the number was {SEQUENCE}")
    })
}
