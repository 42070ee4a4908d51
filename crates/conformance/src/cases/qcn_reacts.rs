//! Congestion notification, IEEE 802.1Q clause 32: what a reaction point does that is told.
//!
//! In plain English: the device is an end station that sends as fast as it may. The tester
//! takes the place of a congestion point: it answers one of the frames, and sees the rate change.

use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::Halt;
use crate::setup::Setup;
use axon_wire::Span;
use axon_wire::priority::PrioritySet;

/// All of them.
pub const CASES: &[Case] = &[
    Case {
        name: "qcn/rp-rate-falls",
        clause: "802.1Q 32.13; UNH 31.3.6",
        says: "The greatest feedback cuts the rate to a half, and no further.",
        run: |bench| cut(bench, 63, (440, 580)),
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
        run: |bench| cut(bench, 0, (950, 1_050)),
    },
    Case {
        name: "qcn/rp-reserved-bits-ignored",
        clause: "802.1Q 33.4.1, 33.4.2, as recalled; UNH 33.1.1, 33.1.2",
        says: "Version and reserved bits of a CNM are not looked at.",
        run: |bench| told(bench, (440, 580), |cnm| *cnm = [&[cnm[0] | 0xf0], &cnm[1..]].concat()),
    },
    Case {
        name: "qcn/rp-overlong-quote-ignored",
        clause: "802.1Q 33.4.9; UNH 33.1.9",
        says: "A CNM that claims to quote more than it holds changes nothing.",
        run: |bench| told(bench, (950, 1_050), |cnm| cnm[22..24].copy_from_slice(&[0x7f, 0xff])),
    },
];

/// The priority that the station sends, if nobody says otherwise.
const DEFAULT: PrioritySet = PrioritySet::from_bits(0b0000_1000);
/// How many frames the rate is measured by.
const FRAMES: u64 = 100;

/// Sets an end station up and lets it send.
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

/// Bytes that the station sent in a window from now on.
fn rate(bench: &mut Bench<'_>) -> Result<u64, Halt> {
    let (from, window) = (bench.now(), window(bench));
    bench.pass(window)?;
    let data =
        |frame: &[u8]| frames::ethertype(frame).is_some_and(|(kind, _)| kind != frames::LLDP_TYPE);
    let heard = bench.heard(0, from).filter(|seen| data(&seen.frame));
    Ok(heard.map(|seen| seen.frame.len() as u64 + 24).sum())
}

/// The PDU of a CNM for a frame that was heard, with this feedback: 64 octets of it are quoted.
fn pdu(frame: &[u8], feedback: u8) -> Vec<u8> {
    let (mut kind, mut at) = frames::ethertype(frame).unwrap_or((0, 14));
    if kind == frames::CN_TAG_TYPE {
        (kind, at) = (frames::word(frame, at + 2).unwrap_or(0), at + 4);
    }
    let priority =
        if frames::word(frame, 12) == Some(frames::TAG_TYPE) { frame[14] >> 5 } else { 0 };
    let quoted = [&kind.to_be_bytes()[..], frame.get(at..at + 62).unwrap_or_default()].concat();
    let mut pdu = vec![0, feedback];
    pdu.extend(frames::mac(0).0);
    pdu.extend([0, 1]);
    pdu.extend((-400_i16).to_be_bytes());
    pdu.extend(100_i16.to_be_bytes());
    pdu.extend([priority << 5, 0]);
    pdu.extend(&frame[..6]);
    pdu.extend((quoted.len() as u16).to_be_bytes());
    pdu.extend(quoted);
    pdu
}

/// The CNM for a frame: to its source, with its tags.
fn cnm(frame: &[u8], pdu: &[u8]) -> Vec<u8> {
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

/// The last frame of data that the station sent.
fn sample(bench: &Bench<'_>) -> Result<Vec<u8>, Halt> {
    let last = bench.heard(0, axon_wire::Time::ZERO).last();
    let frame = last.map(|seen| seen.frame.clone());
    frame.ok_or_else(|| Halt::NotApplicable("the station sends nothing".into()))
}

fn cut(bench: &mut Bench<'_>, feedback: u8, wanted: (u64, u64)) -> Result<(), Halt> {
    told(bench, wanted, |cnm| cnm[1] = feedback)
}

/// Sends one CNM of the greatest feedback, changed so; the rate after it is to be between these
/// thousandths of the rate before.
fn told(
    bench: &mut Bench<'_>,
    (least, most): (u64, u64),
    change: impl Fn(&mut Vec<u8>),
) -> Result<(), Halt> {
    set_up(bench)?;
    let before = rate(bench)?;
    let frame = sample(bench)?;
    let mut said = pdu(&frame, 63);
    change(&mut said);
    bench.tell(0, cnm(&frame, &said))?;
    bench.did(format!("one CNM of {} octets, {:02x?}...", said.len(), &said[..2]));
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
    bench.tell(0, cnm(&frame, &pdu(&frame, 63)))?;
    bench.did("one CNM of the greatest feedback");
    let low = rate(bench)?;
    // Five cycles of 150 KB at half the rate and more, or five of the timer.
    let cycles = bench.rate().time_for(axon_wire::Bytes(5 * 2 * 172_500));
    bench.pass(cycles.max(Span::from_millis(90)))?;
    let high = rate(bench)?;
    let (low, high) = (low * 1000 / before.max(1), high * 1000 / before.max(1));
    bench.saw(format!("from {}.{} % to {}.{} %", low / 10, low % 10, high / 10, high % 10));
    bench.expect(high > 950 && low < 900, || {
        format!("the rate was {} % after the CNM and {} % five cycles later", low / 10, high / 10)
    })
}
