//! Congestion notification, IEEE 802.1Q clauses 30 to 33: messages from a congestion point. The
//! cases for reaction points are in `qcn_reacts.rs`.
//!
//! Two ports of the tester send more frames with one priority than port 0 can carry. The queue of
//! port 0 grows, and the tester receives the messages that the device sends to the sources.

use super::qcn_reacts::{cnm, pdu};
use crate::bench::{Bench, FRAME_BYTES};
use crate::case::Case;
use crate::frames;
use crate::interpretations::CnmInterpretation;
use crate::rig::{Halt, Stream};
use crate::setup::Setup;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Span, Time};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "qcn/cp-sends-cnm",
        clause: "802.1Q 32.8; UNH 5.3.2",
        says: "A queue above its set point makes the device send CNMs to the sources of its \
                frames.",
        run: |bench| congest(bench, None).map(drop),
    },
    Case {
        name: "qcn/cnm-format",
        clause: "802.1Q 33.3, 33.4; UNH 33.1.1 to 33.1.10",
        says: "A CNM goes to the source of the sampled frame, and quotes its priority, destination \
                and beginning.",
        run: cnm_format,
    },
    Case {
        name: "qcn/cn-tag-comes-back",
        clause: "802.1Q 33.2; UNH 33.2.2, 33.2.4",
        says: "The CN-TAG of a sampled frame stands in its CNM, behind the VLAN tag, and is not \
                changed.",
        run: cn_tag,
    },
    Case {
        name: "qcn/frames-without-cn-tag",
        clause: "802.1Q 32.8; UNH 33.1.12",
        says: "Frames without a CN-TAG are sampled, too, and their CNMs name flow 0 (or none, \
                `cnm-tag`).",
        run: without_tag,
    },
    Case {
        name: "qcn/silent-below-set-point",
        clause: "802.1Q 32.8.9",
        says: "A queue that stays below its set point sends no CNM.",
        run: below_set_point,
    },
    Case {
        name: "qcn/silent-without-congestion-notification",
        clause: "802.1Q 31.1.1",
        says: "A priority without congestion notification has no congestion point.",
        run: without,
    },
    Case {
        name: "qcn/feedback-grows-with-queue",
        clause: "802.1Q 32.8.9",
        says: "The more a queue is above its set point, and grows, the greater the feedback.",
        run: feedback_grows,
    },
    Case {
        name: "qcn/sampling-interval",
        clause: "802.1Q 32.8.6, table 32-2",
        says: "Frames are sampled every 150 KB, more often with greater feedback, and not more \
                often than every 18.5 KB, all within 15 %.",
        run: sampling,
    },
    Case {
        name: "qcn/cnm-of-a-host-dropped",
        clause: "our own; a bridge may forward it",
        says: "A CNM that one host sends to another, whole or malformed, is dropped.",
        run: of_a_host,
    },
];

/// Default priority with congestion notification.
const DEFAULT: PrioritySet = PrioritySet::from_bits(0b0000_1000);
/// Sampling intervals in bytes, at the greatest feedback and without feedback, with 15 % jitter
/// (table 32-2, as recalled).
const SAMPLE_LEAST: u64 = 18_500 * 85 / 100;
const SAMPLE_MOST: u64 = 150_000 * 115 / 100;

/// CNM as parsed from its frame.
struct Cnm<'a> {
    at: Time,
    /// Port that has received the CNM.
    port: usize,
    frame: &'a [u8],
    /// Flow in the CN-TAG, if there is one.
    flow: Option<u16>,
    /// Octets that follow the EtherType.
    pdu: &'a [u8],
}

impl Cnm<'_> {
    fn word(&self, at: usize) -> u16 {
        frames::word(self.pdu, at).unwrap_or(0)
    }

    fn feedback(&self) -> u16 {
        self.word(0) & 0x3f
    }
}

/// Returns the CNMs received since the device was set up.
fn cnms<'a>(bench: &'a Bench<'_>) -> Vec<Cnm<'a>> {
    let ports = 1..bench.ports();
    let heard = ports.flat_map(|port| bench.log().heard(port, Time::ZERO));
    let cnm = heard.filter_map(|seen| {
        let (mut kind, mut at) = frames::ethertype(&seen.frame)?;
        let mut flow = None;
        if kind == frames::CN_TAG_TYPE {
            flow = frames::word(&seen.frame, at);
            (kind, at) = (frames::word(&seen.frame, at + 2)?, at + 4);
        }
        let pdu = seen.frame.get(at..)?;
        let cnm = Cnm { at: seen.at, port: seen.port, frame: &seen.frame, flow, pdu };
        (kind == frames::CNM_TYPE).then_some(cnm)
    });
    let mut all: Vec<Cnm<'a>> = cnm.collect();
    all.sort_by_key(|cnm| cnm.at);
    all
}

/// Sets up a device with a congestion point, and returns its priority.
fn set_up(bench: &mut Bench<'_>) -> Result<Priority, Halt> {
    bench.need_ports(3, "two ports that send more than a third takes")?;
    let own = Setup { congestion: DEFAULT, ..Setup::default() };
    let setup = bench.given().cloned().unwrap_or(own);
    let Some(priority) = setup.congestion.iter().next() else {
        let why = "the device has congestion notification for no priority (--cn)";
        return Err(Halt::NotApplicable(why.into()));
    };
    bench.set_up(&setup)?;
    Ok(priority)
}

/// Returns a span that is long enough for some samples, in which the link carries at least a
/// megabyte.
fn span(bench: &Bench<'_>) -> Span {
    bench.time_for(FRAME_BYTES) * 4_000
}

/// Sends a priority from two ports, each at full rate, with this CN-TAG.
fn overload(bench: &mut Bench<'_>, priority: Priority, flow: Option<u16>) -> Result<(), Halt> {
    let span = span(bench);
    for port in [1, 2] {
        let stream = bench.full_rate(port, priority, span);
        bench.stream(Stream { flow, ..stream });
    }
    bench.did(format!("two ports at full rate into one, priority {priority}, for {span}"));
    bench.pass(span + bench.slack())
}

/// Overloads a device that has a congestion point. Fails if no CNM arrives.
fn congest(bench: &mut Bench<'_>, flow: Option<u16>) -> Result<Priority, Halt> {
    let priority = set_up(bench)?;
    overload(bench, priority, flow)?;
    let count = cnms(bench).len();
    bench.saw(format!("{count} CNMs"));
    bench.expect(count > 0, || "no CNM came".into())?;
    Ok(priority)
}

fn cnm_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let priority = congest(bench, Some(7))?;
    let format = bench.interpretations().cnm();
    for cnm in cnms(bench) {
        let wrong = fault(&cnm, priority, &format);
        bench.expect(wrong.is_none(), || {
            format!("{}: {}", wrong.unwrap_or_default(), frames::hex(cnm.frame))
        })?;
    }
    bench.saw("all of them in order");
    Ok(())
}

/// Returns the fault in a CNM, given this format, if it has any.
fn fault(cnm: &Cnm<'_>, priority: Priority, format: &CnmInterpretation) -> Option<&'static str> {
    if cnm.pdu.len() < 24 {
        return Some("it is shorter than 24 octets");
    }
    let msdu = usize::from(cnm.word(22));
    let quoted = cnm.pdu.get(24..24 + msdu);
    // Behind their tags, the frames in the stream begin with the EtherType of the traffic.
    let whole = frames::beginning();
    let beginning = if format.msdu_has_ethertype { &whole[..] } else { &whole[2..] };
    let compared = msdu.min(beginning.len());
    let from_destination = cnm.frame[6..12] == frames::mac(0).0;
    let tag = (frames::word(cnm.frame, 12) == Some(frames::TAG_TYPE))
        .then(|| [cnm.frame[14], cnm.frame[15]]);
    let (value, shift) =
        (u16::from(priority.value()), if format.priority_in_high_bits { 13 } else { 0 });
    let checks = [
        (cnm.frame[..6] == frames::mac(cnm.port).0, "it does not go to the source"),
        (cnm.frame[6] & 1 == 0, "its own source is a group"),
        (from_destination != format.source_is_point, "it comes from another address (cnm-source)"),
        (tag.is_none_or(|tag| tag[0] & 0x0f == 0 && tag[1] == 0), "it is in another VLAN"),
        (
            !format.copies_tag || tag == Some([priority.value() << 5, 0]),
            "its tag is not that of the sampled frame (cnm-vlan)",
        ),
        (cnm.word(0) >> 12 == 0, "its version is not 0"),
        (cnm.word(0) & 0x0fc0 == 0, "its reserved bits are set"),
        (cnm.feedback() > 0, "it says no feedback"),
        (cnm.pdu[2..10] != [0; 8], "it names no congestion point"),
        (cnm.word(14) == value << shift, "it quotes another priority (cnm-priority)"),
        (cnm.pdu[16..22] == frames::mac(0).0, "it quotes another destination"),
        (msdu <= 64 && quoted.is_some(), "it quotes more than 64 octets, or than it holds"),
        (
            quoted.is_some_and(|quoted| quoted[..compared] == beginning[..compared]),
            "it quotes another beginning (cnm-quote)",
        ),
    ];
    checks.into_iter().find(|(good, _)| !good).map(|(_, what)| what)
}

fn cn_tag(bench: &mut Bench<'_>) -> Result<(), Halt> {
    const FLOW: u16 = 0x1234;
    congest(bench, Some(FLOW))?;
    for cnm in cnms(bench) {
        bench.expect(cnm.flow == Some(FLOW), || {
            format!("a CNM names flow {:?}, and the frames flow {FLOW:#06x}", cnm.flow)
        })?;
    }
    Ok(())
}

fn without_tag(bench: &mut Bench<'_>) -> Result<(), Halt> {
    congest(bench, None)?;
    let wanted = bench.interpretations().cnm().always_tagged.then_some(0);
    for cnm in cnms(bench) {
        bench.expect(cnm.flow == wanted, || {
            format!("a CNM names flow {:?}, not {wanted:?} (cnm-tag)", cnm.flow)
        })?;
    }
    Ok(())
}

fn below_set_point(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let priority = set_up(bench)?;
    let span = span(bench);
    let stream = bench.full_rate(1, priority, span);
    let interval = bench.time_for(FRAME_BYTES) * 2;
    bench.stream(Stream { interval, ..stream });
    bench.did("one port at half rate");
    bench.pass(span + bench.slack())?;
    let count = cnms(bench).len();
    bench.expect(count == 0, || format!("{count} CNMs, and no queue"))
}

fn without(bench: &mut Bench<'_>) -> Result<(), Halt> {
    set_up(bench)?;
    let other = bench.given().map_or(DEFAULT, |given| given.congestion);
    let Some(priority) = Priority::ALL.into_iter().find(|&one| !other.contains(one)) else {
        return Err(Halt::NotApplicable("a priority without congestion notification".into()));
    };
    overload(bench, priority, None)?;
    let count = cnms(bench).len();
    bench.expect(count == 0, || format!("{count} CNMs for priority {priority}"))
}

fn feedback_grows(bench: &mut Bench<'_>) -> Result<(), Halt> {
    congest(bench, None)?;
    // The expected feedback is the excess of the queue, plus twice its growth.
    let signed = |word: u16| i32::from(word as i16);
    let sign = if bench.interpretations().cnm().offset_falls_with_queue { -1 } else { 1 };
    let above = |cnm: &Cnm<'_>| 2 * signed(cnm.word(12)) + sign * signed(cnm.word(10));
    let mut points: Vec<(i32, u16)> =
        cnms(bench).iter().map(|cnm| (above(cnm), cnm.feedback())).collect();
    points.sort_unstable();
    let (least, most) = (points[0], points[points.len() - 1]);
    bench.saw(format!(
        "feedback {} at {}, {} at {} units of 64 octets",
        least.1, least.0, most.1, most.0
    ));
    let falls = points.windows(2).find(|pair| pair[1].1 + 1 < pair[0].1);
    bench.expect(falls.is_none(), || format!("feedback falls while the queue grows: {falls:?}"))?;
    bench.expect(least.0 == most.0 || least.1 < most.1, || {
        format!("feedback is always {}, from {} to {} units", least.1, least.0, most.0)
    })
}

fn of_a_host(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = Setup { congestion: DEFAULT, ..Setup::default() };
    if bench.given().is_some() {
        return Err(Halt::NotApplicable("this is asked of our own switch only".into()));
    }
    bench.set_up(&setup)?;
    let priority = DEFAULT.iter().next().unwrap_or_default();
    let stream =
        Stream { from: 0, to: 1, flow: Some(1), ..bench.full_rate(0, priority, Span::ZERO) };
    let sampled = frames::traffic(&stream, 0, 0);
    let whole = pdu(&sampled, 63, &bench.interpretations().cnm());
    let mut overlong = whole.clone();
    overlong[22..24].copy_from_slice(&[0x7f, 0xff]);
    let said = [&whole[..], &overlong, &[]];
    for one in said {
        let mut frame = cnm(&sampled, one);
        frame[6..12].copy_from_slice(&frames::mac(1).0);
        bench.send_now(1, frame)?;
    }
    bench.did("a whole CNM from port 1 to port 0, one that quotes too much, and an empty one");
    bench.pass(Span::from_millis(1))?;
    let came = bench.log().heard(0, Time::ZERO).filter(|seen| frames::is_cnm(&seen.frame)).count();
    bench.expect(came == 0, || format!("{came} of them came out at port 0"))
}

fn sampling(bench: &mut Bench<'_>) -> Result<(), Halt> {
    congest(bench, None)?;
    let all = cnms(bench);
    if all.len() < 3 {
        return Err(Halt::NotApplicable("fewer than three CNMs came".into()));
    }
    let (first, last) = (all[0].at, all[all.len() - 1].at);
    let samples = all.len() as u64 - 1;
    // Two ports add this much to the queue, without FCS.
    let frame = bench.time_for(FRAME_BYTES).ticks();
    let bytes = last.since(first).ticks() / frame * 2 * FRAME_BYTES as u64;
    let each = bytes / samples;
    bench.saw(format!("a CNM each {each} octets, in the mean of {samples}"));
    // There may be one frame more or less at each end of an interval.
    let (least, most) =
        (SAMPLE_LEAST - 2 * FRAME_BYTES as u64, SAMPLE_MOST + 2 * FRAME_BYTES as u64);
    bench.expect((least..=most).contains(&each), || {
        format!("a CNM each {each} octets, which should be {least} to {most}")
    })
}
