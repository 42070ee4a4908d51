//! PAUSE, IEEE 802.3 annex 31B, for a device that receives it.

use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::{Halt, Way};
use crate::station::REACTION;
use axon_wire::priority::PrioritySet;
use axon_wire::{MacAddr, Span, Time};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "pause/nonzero-stops",
        clause: "802.3 31B.3.2",
        says: "A PAUSE with a time above zero stops all data frames for that time, and no longer.",
        run: |bench| stop_and_go(bench, None),
    },
    Case {
        name: "pause/zero-resumes",
        clause: "802.3 31B.3.2",
        says: "A PAUSE with time zero ends a pause at once.",
        run: |bench| stop_and_go(bench, Some(0)),
    },
    Case {
        name: "pause/shorter-replaces",
        clause: "802.3 31B.3.2",
        says: "A new time replaces what is left of the last one, also if it is shorter.",
        run: |bench| stop_and_go(bench, Some(1)),
    },
    Case {
        name: "pause/longer-replaces",
        clause: "802.3 31B.3.2",
        says: "A new time replaces what is left of the last one and is not added to it.",
        run: |bench| stop_and_go(bench, Some(2)),
    },
    Case {
        name: "pause/timer-length",
        clause: "802.3 31B.2",
        says: "A quantum is 512 bit times of the port.",
        run: timer_length,
    },
    Case {
        name: "pause/individual-address",
        clause: "802.3 31B.1",
        says: "A PAUSE to the address of the port itself is honoured, too.",
        run: individual_address,
    },
    Case {
        name: "pause/other-address-ignored",
        clause: "802.3 31B.1",
        says: "A PAUSE to any other address is not honoured and ends in the device.",
        run: other_address,
    },
    Case {
        name: "pause/unknown-opcode-ignored",
        clause: "802.3 31.5.3",
        says: "A MAC control frame with an opcode that is not supported is dropped.",
        run: |bench| {
            let opcodes = [0x0000, 0x0002, 0x0008, 0x0100, 0xffff];
            let frames =
                opcodes.map(|opcode| frames::mac_control(frames::mac(0), opcode, &[0xffff]));
            not_honoured(bench, &frames)
        },
    },
    Case {
        name: "pause/short-frame-ignored",
        clause: "802.3 3.4, 31B.2",
        says: "A PAUSE shorter than the shortest frame is dropped.",
        run: |bench| {
            let whole = frames::pause(frames::mac(0), u16::MAX);
            not_honoured(bench, &SHORT.map(|length| whole[..length].to_vec()))
        },
    },
    Case {
        name: "pause/group-source-ignored",
        clause: "802.3 3.2.5",
        says: "A PAUSE with a group address as its source is dropped.",
        run: |bench| not_honoured(bench, &[frames::pause(frames::GROUP, u16::MAX)]),
    },
    Case {
        name: "pause/not-forwarded",
        clause: "802.1Q 8.6.3, table 8-1",
        says: "A MAC control frame is never forwarded, whatever its opcode and its address.",
        run: not_forwarded,
    },
    Case {
        name: "pause/frame-in-progress-completes",
        clause: "802.3 31B.3.2",
        says: "A frame that has begun when a PAUSE comes is sent to its end, and none is lost.",
        run: frame_completes,
    },
    Case {
        name: "pause/only-that-port",
        clause: "802.3 31B.1",
        says: "A PAUSE stops the port that receives it and no other.",
        run: only_that_port,
    },
];

/// Lengths of frames that are too short: without an opcode, with only an opcode, with half a time,
/// and with incomplete padding.
pub(super) const SHORT: [usize; 5] = [14, 16, 17, 40, 59];

/// Priorities that are watched. PAUSE stops both of them.
const WATCHED: PrioritySet = PrioritySet::from_bits(0b1000_0001);

/// Pauses all priorities and sends another PAUSE half way through, whose time is `again` halves of
/// the first one. Checks when frames resume.
fn stop_and_go(bench: &mut Bench<'_>, again: Option<u16>) -> Result<(), Halt> {
    bench.set_up_pause()?;
    let (quanta, pause) = bench.pause()?;
    let half = Span::from_ticks(pause.ticks() / 2);
    let turn = bench.load(WATCHED, pause * 4)?;
    let mut until = bench.send_now(0, frames::pause(frames::mac(0), quanta))? + pause;
    let sent = until - pause;
    bench.did(format!("PAUSE of {quanta} quanta, {pause}, into a load on priorities 0 and 7"));
    if let Some(halves) = again {
        bench.pass(half)?;
        let time = quanta / 2 * halves;
        let again = bench.send_now(0, frames::pause(frames::mac(0), time))?;
        bench.did(format!("another of {time} quanta half way through"));
        bench.silent(WATCHED, sent, again)?;
        until = again + half * u64::from(halves);
    }
    bench.pass(pause * 2)?;
    bench.silent(WATCHED, sent, until)?;
    let late = until + REACTION + bench.slack() + turn * 3;
    bench.goes_again(WATCHED, until - bench.slack(), late)?;
    bench.saw(format!("silence from {sent} to {until}, and frames again by {late}"));
    Ok(())
}

fn timer_length(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.set_up_pause()?;
    let (quanta, pause) = bench.pause()?;
    bench.load(WATCHED, pause * 4)?;
    let sent = bench.send_now(0, frames::pause(frames::mac(0), quanta))?;
    bench.did(format!("PAUSE of {quanta} quanta: {pause} at {}", bench.rate()));
    bench.pass(pause * 3)?;
    let next = [0, 7].into_iter().filter_map(|value| {
        let priority = axon_wire::Priority::from_low_bits(value);
        bench.paused_for(priority, sent)
    });
    length_fits(bench, next.min(), pause)
}

/// Fails unless a pause had the right length. It may be shorter by at most the rig's slack, and
/// longer by at most the reaction time.
pub(super) fn length_fits(
    bench: &mut Bench<'_>,
    stood: Option<Span>,
    sent: Span,
) -> Result<(), Halt> {
    let most = sent + bench.slack() + REACTION + bench.time_for(crate::bench::FRAME_BYTES_MAX);
    let least = Span::from_ticks(sent.ticks().saturating_sub(bench.slack().ticks()));
    let Some(stood) = stood else {
        return Err(Halt::Failed(format!("nothing came for more than {}", sent * 2)));
    };
    bench.saw(format!("a pause of {stood}, between {least} and {most}"));
    bench.expect(stood >= least && stood <= most, || {
        format!("a pause of {stood}, which should be {least} to {most}")
    })
}

fn individual_address(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let device = bench.device_mac()?;
    bench.set_up_pause()?;
    let (quanta, pause) = bench.pause()?;
    bench.load(WATCHED, pause * 3)?;
    let mut frame = frames::pause(frames::mac(0), quanta);
    frame[..6].copy_from_slice(&device.0);
    let sent = bench.send_now(0, frame)?;
    bench.did(format!("PAUSE of {quanta} quanta to {device}"));
    bench.pass(pause)?;
    bench.silent(WATCHED, sent, sent + pause)
}

/// Sends frames that a device without PFC must ignore.
fn not_honoured(bench: &mut Bench<'_>, frames: &[Vec<u8>]) -> Result<(), Halt> {
    bench.set_up_pause()?;
    ignored(bench, WATCHED, frames)
}

/// Sends frames that must be ignored. Checks that these priorities keep sending, and that none of
/// the frames is forwarded.
pub(super) fn ignored(
    bench: &mut Bench<'_>,
    watched: PrioritySet,
    frames: &[Vec<u8>],
) -> Result<(), Halt> {
    let (_, pause) = bench.pause()?;
    let turn = bench.load(watched, pause * (1 + frames.len() as u64))?;
    let first = bench.now();
    for frame in frames {
        let sent = bench.send_now(0, frame.clone())?;
        bench.pass(Span::from_ticks(pause.ticks() / 2))?;
        keeps_sending(bench, watched, (sent, bench.now()), turn)?;
    }
    let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
    bench.did(format!("frames of {lengths:?} bytes that are not to be honoured"));
    nothing_comes_out(bench, first)
}

/// Fails if one of these priorities has no frame in some part of a span. Each part is several
/// rounds of all priorities long.
pub(super) fn keeps_sending(
    bench: &Bench<'_>,
    priorities: PrioritySet,
    (from, until): (Time, Time),
    turn: Span,
) -> Result<(), Halt> {
    let part = (turn * 4).max(bench.slack() * 2);
    let mut at = from;
    while at + part < until {
        bench.flows(priorities, at, at + part)?;
        at += part;
    }
    Ok(())
}

/// Fails if the device has forwarded a MAC control frame from the tester since `from`.
pub(super) fn nothing_comes_out(bench: &Bench<'_>, from: Time) -> Result<(), Halt> {
    for port in 0..bench.ports() {
        let own = |frame: &[u8]| frames::is_mac_control(frame) && frame[6..9] == *b"\x02cf";
        let out = bench.log().heard(port, from).any(|seen| own(&seen.frame));
        bench.expect(!out, || format!("the frame came out of the device at port {port}"))?;
    }
    Ok(())
}

fn other_address(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(2, "the address of another station")?;
    let mut frame = frames::pause(frames::mac(0), u16::MAX);
    let MacAddr(other) = frames::mac(1);
    frame[..6].copy_from_slice(&other);
    not_honoured(bench, &[frame])
}

fn not_forwarded(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(2, "a port to be forwarded to")?;
    let setup = bench.given().cloned().unwrap_or_default();
    bench.set_up(&setup)?;
    forwards_none(bench)
}

/// Sends MAC control frames of every kind, and checks that none of them is forwarded.
pub(super) fn forwards_none(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let from = bench.now();
    let opcodes = [frames::PAUSE, frames::PFC, 0x0002, 0x0008, 0xffff];
    let addresses = [frames::MAC_CONTROL_GROUP, frames::mac(1).0, [0xff; 6]];
    for opcode in opcodes {
        for address in addresses {
            let mut frame = frames::mac_control(frames::mac(0), opcode, &[0; 9]);
            frame[..6].copy_from_slice(&address);
            bench.send_now(0, frame)?;
        }
    }
    bench.did("MAC control frames with five opcodes to the group, to a station and to all");
    bench.pass(bench.slack() * 10 + Span::from_millis(10))?;
    nothing_comes_out(bench, from)
}

fn frame_completes(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.set_up_pause()?;
    let (quanta, pause) = bench.pause()?;
    let few = quanta / 20 + 1;
    bench.load(WATCHED, pause * 2)?;
    // Each frame arrives at a later offset within a data frame than the one before.
    let (begun, step) = (bench.now(), bench.time_for(crate::bench::FRAME_BYTES) * 2);
    for n in 0..32_u64 {
        let at = begun + step * n + Span::from_ticks(step.ticks() / 32 * n);
        bench.send_at(0, at, frames::pause(frames::mac(0), if n % 2 == 0 { few } else { 0 }));
    }
    bench.did("32 PAUSE frames, alternately with a time and zero, at other moments of frames");
    bench.pass(pause * 4)?;
    let sent = bench.log().frames().iter().filter(|seen| seen.way == Way::Sent && seen.port == 1);
    let sent = sent.filter(|seen| frames::traffic_of(&seen.frame).is_some()).count();
    let whole = |frame: &[u8]| frame.len() == crate::bench::FRAME_BYTES;
    let came =
        bench.log().heard(0, Time::ZERO).filter(|seen| frames::traffic_of(&seen.frame).is_some());
    let came: Vec<bool> = came.map(|seen| whole(&seen.frame)).collect();
    bench.saw(format!("{sent} frames went in, {} came out", came.len()));
    bench.expect(came.iter().all(|&whole| whole), || "a frame was cut short".into())?;
    bench.expect(came.len() == sent, || format!("{} frames were lost", sent - came.len()))
}

fn only_that_port(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.set_up_pause()?;
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(WATCHED, pause * 3)?;
    let sent = bench.send_now(1, frames::pause(frames::mac(1), quanta))?;
    bench.did(format!("PAUSE of {quanta} quanta at the port that the traffic comes from"));
    bench.pass(pause)?;
    keeps_sending(bench, WATCHED, (sent, sent + pause), turn)
}
