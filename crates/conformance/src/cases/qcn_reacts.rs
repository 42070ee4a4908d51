//! Congestion notification, IEEE 802.1Q clause 32: for a reaction point that receives CNMs.
//!
//! The device is an end station that sends as fast as it may. The tester acts as the congestion
//! point. It sends a CNM for one of the frames and measures the rate.

use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::interpretations::CnmInterpretation;
use crate::rig::Halt;
use crate::setup::Setup;
use axon_wire::Span;
use axon_wire::priority::PrioritySet;

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "qcn/rp-rate-falls",
        clause: "802.1Q 32.13; UNH 31.3.6",
        says: "The greatest feedback cuts the rate to a half, and no further.",
        run: |bench| cut(bench, 63, HALF),
    },
    Case {
        name: "qcn/rp-cut-follows-feedback",
        clause: "802.1Q 32.13",
        says: "Feedback of 16 cuts the rate by an eighth.",
        run: |bench| cut(bench, 16, (820, 930)),
    },
    Case {
        name: "qcn/rp-recovers",
        clause: "802.1Q 32.14, 32.15",
        says: "After the last CNM the rate comes back.",
        run: recovers,
    },
    Case {
        name: "qcn/rp-no-feedback-no-effect",
        clause: "802.1Q 33.4.3, as recalled; UNH 33.1.3",
        says: "A CNM without feedback changes nothing.",
        run: |bench| cut(bench, 0, NOTHING),
    },
    Case {
        name: "qcn/rp-version",
        clause: "802.1Q 33.4.1, as recalled; UNH 33.1.1",
        says: "The version of a CNM is not looked at (or it is refused for it, `cnm-reserved`).",
        run: |bench| reserved(bench, [0xf0, 0]),
    },
    Case {
        name: "qcn/rp-reserved-bits",
        clause: "802.1Q 33.4.2, as recalled; UNH 33.1.2",
        says: "The reserved bits of a CNM are not looked at (or it is refused for them, \
                `cnm-reserved`).",
        run: |bench| reserved(bench, [0x0f, 0xc0]),
    },
    Case {
        name: "qcn/rp-version-and-reserved-bits",
        clause: "802.1Q 33.4.1, 33.4.2, as recalled; UNH 33.1.13",
        says: "Nor are both.",
        run: |bench| reserved(bench, [0xff, 0xc0]),
    },
    Case {
        name: "qcn/rp-overlong-quote-ignored",
        clause: "802.1Q 33.4.9; UNH 33.1.9",
        says: "A CNM that claims to quote more than it holds changes nothing.",
        run: |bench| after_cnm(bench, NOTHING, |cnm| cnm[22..24].copy_from_slice(&[0x7f, 0xff])),
    },
    Case {
        name: "qcn/rp-long-quote-ignored",
        clause: "802.1Q 33.4.9, 33.4.10; UNH 33.1.9",
        says: "A CNM that quotes more than 64 octets changes nothing.",
        run: |bench| {
            after_cnm(bench, NOTHING, |cnm| {
                cnm[22..24].copy_from_slice(&[0, 65]);
                cnm.resize(24 + 65, 0);
            })
        },
    },
    Case {
        name: "qcn/rp-other-station-ignored",
        clause: "802.1Q 33.3",
        says: "A CNM to another station changes nothing.",
        run: |bench| answer(bench, NOTHING, |_| {}, |frame| frame[..6].copy_from_slice(&[2; 6])),
    },
    Case {
        name: "qcn/rp-cn-tag",
        clause: "802.1Q 33.2; UNH 30.2.1, 33.2.2",
        says: "The CN-TAG of what a station sends stands behind the VLAN tag.",
        run: cn_tag,
    },
];

/// Default priority of the station's frames.
const DEFAULT: PrioritySet = PrioritySet::from_bits(0b0000_1000);
/// Remaining rate in thousandths: all of the rate, or half of it.
const NOTHING: (u64, u64) = (950, 1_050);
const HALF: (u64, u64) = (440, 580);
/// Number of frames in one measurement of the rate.
const FRAMES: u64 = 100;

/// Sets up an end station, and lets it send.
fn set_up(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let own = Setup { congestion: DEFAULT, station: true, ..Setup::default() };
    let setup = bench.given().cloned().unwrap_or(own);
    if !setup.station {
        return Err(Halt::NotApplicable(
            "the device is no end station that sends (--station)".into(),
        ));
    }
    bench.set_up(&setup)?;
    bench.pass(window(bench))
}

fn window(bench: &Bench<'_>) -> Span {
    (bench.time_for(1_000) * FRAMES).max(bench.slack() * 5)
}

/// Returns the number of bytes that the station sends in a window from now on.
fn rate(bench: &mut Bench<'_>) -> Result<u64, Halt> {
    let (from, window) = (bench.now(), window(bench));
    bench.timed();
    bench.pass(window)?;
    let data =
        |frame: &[u8]| frames::ethertype(frame).is_some_and(|(kind, _)| kind != frames::LLDP_TYPE);
    let heard = bench.log().heard(0, from).filter(|seen| data(&seen.frame));
    Ok(heard.map(|seen| seen.frame.len() as u64 + 24).sum())
}

/// Returns the PDU of a CNM for a received frame, with this feedback and in this format. It quotes
/// 64 octets.
pub(super) fn pdu(frame: &[u8], feedback: u8, format: &CnmInterpretation) -> Vec<u8> {
    let (mut kind, mut at) = frames::ethertype(frame).unwrap_or((0, 14));
    if kind == frames::CN_TAG_TYPE {
        (kind, at) = (frames::word(frame, at + 2).unwrap_or(0), at + 4);
    }
    let priority =
        if frames::word(frame, 12) == Some(frames::TAG_TYPE) { frame[14] >> 5 } else { 0 };
    let kind = kind.to_be_bytes();
    let (kind, rest) = if format.msdu_has_ethertype { (&kind[..], 62) } else { (&kind[..0], 64) };
    let quoted = [kind, frame.get(at..at + rest).unwrap_or_default()].concat();
    let shift = if format.priority_in_high_bits { 13 } else { 0 };
    let mut pdu = vec![0, feedback];
    pdu.extend(frames::mac(0).0);
    pdu.extend([0, 1]);
    pdu.extend((-400_i16).to_be_bytes());
    pdu.extend(100_i16.to_be_bytes());
    pdu.extend((u16::from(priority) << shift).to_be_bytes());
    pdu.extend(&frame[..6]);
    pdu.extend((quoted.len() as u16).to_be_bytes());
    pdu.extend(quoted);
    pdu
}

/// Returns the CNM for a frame, addressed to its source and with its tags.
pub(super) fn cnm(frame: &[u8], pdu: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    let (mut kind, mut at) = (frames::word(frame, 12).unwrap_or(0), 14);
    let first = if kind == frames::TAG_TYPE { kind } else { frames::CN_TAG_TYPE };
    if kind == frames::TAG_TYPE {
        payload.extend([6 << 5 | frame[14] & 0x0f, frame[15]]);
        payload.extend(frames::CN_TAG_TYPE.to_be_bytes());
        (kind, at) = (frames::word(frame, 16).unwrap_or(0), 18);
    }
    let flow = frames::word(frame, at).filter(|_| kind == frames::CN_TAG_TYPE).unwrap_or(0);
    payload.extend(flow.to_be_bytes());
    payload.extend(frames::CNM_TYPE.to_be_bytes());
    payload.extend(pdu);
    let mut source = [0; 6];
    source.copy_from_slice(&frame[6..12]);
    frames::ethernet(source, frames::mac(0), first, &payload)
}

/// Returns the last data frame that the station has sent.
fn sample(bench: &Bench<'_>) -> Result<Vec<u8>, Halt> {
    let last = bench.log().heard(0, axon_wire::Time::ZERO).last();
    let frame = last.map(|seen| seen.frame.clone());
    frame.ok_or_else(|| Halt::NotApplicable("the station sends nothing".into()))
}

fn cut(bench: &mut Bench<'_>, feedback: u8, wanted: (u64, u64)) -> Result<(), Halt> {
    after_cnm(bench, wanted, |cnm| cnm[1] = feedback)
}

/// Sends one modified CNM with the greatest feedback, and checks that the new rate is within these
/// thousandths of the earlier rate.
fn after_cnm(
    bench: &mut Bench<'_>,
    wanted: (u64, u64),
    change: impl Fn(&mut Vec<u8>),
) -> Result<(), Halt> {
    answer(bench, wanted, change, |_| {})
}

/// Sets bits in the first two octets. By the interpretation, the device must ignore these bits or
/// refuse the whole CNM.
fn reserved(bench: &mut Bench<'_>, bits: [u8; 2]) -> Result<(), Halt> {
    let wanted = if bench.interpretations().cnm().strict { NOTHING } else { HALF };
    after_cnm(bench, wanted, |cnm| {
        cnm[0] |= bits[0];
        cnm[1] |= bits[1];
    })
}

fn cn_tag(bench: &mut Bench<'_>) -> Result<(), Halt> {
    set_up(bench)?;
    rate(bench)?;
    let frame = sample(bench)?;
    let head = frame.get(12..22).unwrap_or_default();
    bench.saw(format!("behind the addresses {}", frames::hex(head)));
    let types = [12, 16, 20].map(|at| frames::word(&frame, at));
    if types[1] == Some(frames::CN_TAG_TYPE) && types[0] == Some(frames::TAG_TYPE) {
        return bench.expect(types[2] != Some(frames::TAG_TYPE), || "a VLAN tag behind it".into());
    }
    let at_once = types[0] == Some(frames::CN_TAG_TYPE);
    bench.expect(!at_once, || "its CN-TAG does not stand behind a VLAN tag".into())?;
    Err(Halt::NotApplicable("the station sends no CN-TAG, which it need not".into()))
}

/// Sends a CNM with a modified PDU or frame.
fn answer(
    bench: &mut Bench<'_>,
    (least, most): (u64, u64),
    change_pdu: impl Fn(&mut Vec<u8>),
    change_frame: impl Fn(&mut Vec<u8>),
) -> Result<(), Halt> {
    set_up(bench)?;
    let before = rate(bench)?;
    let frame = sample(bench)?;
    let mut said = pdu(&frame, 63, &bench.interpretations().cnm());
    change_pdu(&mut said);
    let mut said = cnm(&frame, &said);
    change_frame(&mut said);
    bench.send_now(0, said.clone())?;
    bench.did(format!("one CNM: {}", frames::hex(&said)));
    let after = rate(bench)?;
    let part = after * 1000 / before.max(1);
    bench.saw(format!("the rate went to {}.{} %", part / 10, part % 10));
    bench.expect((least..=most).contains(&part), || {
        format!(
            "the rate went to {}.{} %, which should be {} to {} %",
            part / 10,
            part % 10,
            least / 10,
            most / 10
        )
    })
}

fn recovers(bench: &mut Bench<'_>) -> Result<(), Halt> {
    set_up(bench)?;
    let before = rate(bench)?;
    let frame = sample(bench)?;
    let format = bench.interpretations().cnm();
    bench.send_now(0, cnm(&frame, &pdu(&frame, 63, &format)))?;
    bench.did("one CNM of the greatest feedback");
    let low = rate(bench)?;
    // Five cycles of 150 KB at half the rate and more, or five periods of the timer.
    let cycles = bench.rate().time_for(axon_wire::Bytes(5 * 2 * 172_500));
    bench.pass(cycles.max(Span::from_millis(90)))?;
    let high = rate(bench)?;
    let (low, high) = (low * 1000 / before.max(1), high * 1000 / before.max(1));
    bench.saw(format!("from {}.{} % to {}.{} %", low / 10, low % 10, high / 10, high % 10));
    bench.expect(high > 950 && low < 900, || {
        format!("the rate was {} % after the CNM and {} % five cycles later", low / 10, high / 10)
    })
}
