//! PFC, IEEE 802.1Q clause 36, for a device that has to send it.
//!
//! The tester pauses a priority at port 0 and keeps sending frames with that priority from port 1.
//! The device has to buffer the frames and send XOFF before its buffer is full.

use crate::bench::{Bench, FRAME_BYTES_MAX};
use crate::case::Case;
use crate::frames;
use crate::rig::{Halt, Seen, Stream};
use crate::setup::Setup;
use crate::station::quanta;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Span, Time};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "pfc/frame-format",
        clause: "802.3 31D.2; 802.1Q 36.2",
        says: "A PFC frame is 60 octets and its FCS, untagged, to the group address, zero in \
                unused fields.",
        run: frame_format,
    },
    Case {
        name: "pfc/xoff-before-loss",
        clause: "802.1Q 36.1.2",
        says: "A device whose buffer fills sends XOFF, with a time above zero, before it loses a \
                frame.",
        run: xoff_before_loss,
    },
    Case {
        name: "pfc/xoff-is-refreshed",
        clause: "802.1Q 36.1.2",
        says: "A pause that lasts is refreshed before its time is over.",
        run: refreshed,
    },
    Case {
        name: "pfc/xon-is-sent",
        clause: "802.1Q 36.1.2",
        says: "Once there is room again the device sends XON: a time of zero.",
        run: xon_is_sent,
    },
    Case {
        name: "pfc/only-the-congested-priority",
        clause: "802.1Q 36.1.2",
        says: "Only priorities whose buffers fill are paused, and only those with PFC.",
        run: only_the_congested,
    },
    Case {
        name: "pfc/sent-while-paused",
        clause: "802.1Q 36.1.3; 802.3 31.3",
        says: "A port whose priorities are all paused still sends its own PFC.",
        run: sent_while_paused,
    },
    Case {
        name: "pfc/no-loss-with-headroom",
        clause: "802.1Q annex on PFC buffers; 002 3.2.1, figure 3-1",
        says: "What is in flight when XOFF is sent finds room, with the longest frames both ways.",
        run: no_loss,
    },
    Case {
        name: "pfc/no-loss-of-many-into-one",
        clause: "802.1Q 36.1.2; 002 3.2.2, figure 3-2",
        says: "Several ports that send more than one port takes lose nothing of a lossless \
                priority.",
        run: many_into_one,
    },
];

/// Returns the interval between the tester's XOFF frames, which is well below the length of the
/// pause.
fn refresh(bench: &Bench<'_>) -> Span {
    Span::from_ticks(quanta(u16::MAX, bench.rate()).ticks() / 4)
}

/// Pauses a priority at port 0 from now on for `span`, and then sends XON.
fn block(bench: &mut Bench<'_>, priority: Priority, span: Span) {
    let vector = 1 << priority.value();
    block_with(bench, span, |quanta| frames::pfc_for(frames::mac(0), vector, quanta));
}

/// Sends this frame at port 0 for `span` from now on, with the longest time, and finally with a
/// time of zero.
pub(super) fn block_with(bench: &mut Bench<'_>, span: Span, frame: impl Fn(u16) -> Vec<u8>) {
    let (step, begun) = (refresh(bench), bench.now());
    let mut at = begun;
    while at < begun + span {
        bench.send_at(0, at, frame(u16::MAX));
        at += step;
    }
    bench.send_at(0, begun + span, frame(0));
}

/// Returns the PFC frames for one priority that the device sent to a port of the tester, each as
/// its time and its quanta.
fn said(bench: &Bench<'_>, port: usize, priority: Priority) -> Vec<(Time, u16)> {
    let own = |seen: &Seen| {
        let (vector, times) = frames::pfc_of(&seen.frame)?;
        let named = vector & 1 << priority.value() != 0;
        named.then_some((seen.at, times[priority.index()]))
    };
    bench.log().heard(port, Time::ZERO).filter_map(own).collect()
}

/// Returns one of the priorities that have PFC.
fn one_of(setup: &Setup) -> Priority {
    setup.pfc.iter().next_back().unwrap_or_default()
}

/// Pauses one priority for `span` while port 1 sends it at line rate for 1.5 times `span`. Then
/// drains. Returns the priority and its stream.
fn congest(bench: &mut Bench<'_>, setup: &Setup, span: Span) -> Result<(Priority, u16), Halt> {
    let priority = one_of(setup);
    block(bench, priority, span);
    Ok((priority, send_into(bench, priority, span)?))
}

/// Sends a priority from port 1 for 1.5 times `span` while port 0 is paused for `span`. Then
/// drains.
pub(super) fn send_into(
    bench: &mut Bench<'_>,
    priority: Priority,
    span: Span,
) -> Result<u16, Halt> {
    bench.need_ports(2, "traffic has to come through the device")?;
    let whole = Span::from_ticks(span.ticks() / 2 * 3);
    let stream = bench.full_rate(1, priority, whole);
    let id = bench.stream(stream);
    bench
        .did(format!("blocked priority {priority} at port 0 for {span}, and sent it at full rate"));
    bench.pass(whole)?;
    drain(bench)?;
    Ok(id)
}

/// Waits until all queued frames have left the device.
pub(super) fn drain(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let longest = quanta(u16::MAX, bench.rate());
    bench.pass(longest * 2 + bench.slack() * 10)
}

/// Returns a span within which any device must send XOFF. It is several times the longest pause.
pub(super) fn long(bench: &Bench<'_>) -> Span {
    quanta(u16::MAX, bench.rate()) * 3
}

fn frame_format(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let span = long(bench);
    congest(bench, &setup, span)?;
    well_formed(bench, format_fault)
}

/// Fails unless MAC control frames arrived at port 1 and all of them were well formed.
pub(super) fn well_formed(
    bench: &mut Bench<'_>,
    fault: impl Fn(&[u8]) -> Option<&'static str>,
) -> Result<(), Halt> {
    let mut count = 0;
    for seen in bench.log().heard(1, Time::ZERO).filter(|seen| frames::is_mac_control(&seen.frame))
    {
        let wrong = fault(&seen.frame);
        bench.expect(wrong.is_none(), || {
            format!("{}: {}", wrong.unwrap_or_default(), frames::hex(&seen.frame))
        })?;
        count += 1;
    }
    bench.saw(format!("{count} MAC control frames, all of them in order"));
    bench.expect(count > 0, || "no MAC control frame came".into())
}

/// Returns the fault in a MAC control frame with this opcode whose fields end before `end`, if it
/// has any.
pub(super) fn fault_of(frame: &[u8], opcode: u16, end: usize) -> Option<&'static str> {
    let checks = [
        (frame.len() == frames::SHORTEST, "it is not 60 octets long"),
        (frame[..6] == frames::MAC_CONTROL_GROUP, "it does not go to the group address"),
        (frame[6] & 1 == 0 && frame[6..12] != [0; 6], "its source is no station's address"),
        (frames::word(frame, 14) == Some(opcode), "its opcode is another"),
        (frame.iter().skip(end).all(|&octet| octet == 0), "its padding is not zero"),
    ];
    checks.into_iter().find(|(good, _)| !good).map(|(_, what)| what)
}

/// Returns the fault in a PFC frame, if it has any.
fn format_fault(frame: &[u8]) -> Option<&'static str> {
    let word = |at: usize| frames::word(frame, at).unwrap_or(0);
    let unnamed = |n: usize| word(16) & 1 << n == 0;
    let checks = [
        (word(16) & 0xff00 == 0, "the reserved octet of its enable vector is not zero"),
        (
            (0..PRIORITIES).filter(|&n| unnamed(n)).all(|n| word(18 + 2 * n) == 0),
            "it says a time for a priority that it does not name",
        ),
    ];
    let wrong = checks.into_iter().find(|(good, _)| !good).map(|(_, what)| what);
    fault_of(frame, frames::PFC, 34).or(wrong)
}

fn xoff_before_loss(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let span = long(bench);
    let (priority, id) = congest(bench, &setup, span)?;
    let stops = said(bench, 1, priority).into_iter().filter(|&(_, time)| time > 0).count();
    bench.saw(format!("{stops} times XOFF for priority {priority}"));
    bench.expect(stops > 0, || format!("no XOFF for priority {priority}"))?;
    all_came(bench, &[id])
}

/// Fails unless every frame in these streams was received.
pub(super) fn all_came(bench: &mut Bench<'_>, ids: &[u16]) -> Result<(), Halt> {
    let counts: Vec<(u64, u64)> = ids.iter().map(|&id| bench.log().carried(id)).collect();
    let sent: u64 = counts.iter().map(|(sent, _)| sent).sum();
    let came: u64 = counts.iter().map(|(_, came)| came).sum();
    bench.saw(format!("{sent} frames went in, {came} came out"));
    bench.expect(sent > 0, || "nothing could be sent".into())?;
    bench.expect(came == sent, || {
        let (lost, slack) = (sent - came.min(sent), bench.slack());
        format!(
            "{lost} of {sent} frames of a lossless priority were lost; this tester stops \
                 within {slack}"
        )
    })
}

fn refreshed(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let span = long(bench);
    let begun = bench.now();
    let (priority, _) = congest(bench, &setup, span)?;
    let said = said(bench, 1, priority);
    let Some(&(first, _)) = said.iter().find(|&&(_, time)| time > 0) else {
        return Err(Halt::Failed(format!("no XOFF for priority {priority}")));
    };
    // After the first XOFF, and while port 0 is paused, no pause of the peer may expire.
    let held = said.iter().filter(|&&(at, _)| at >= first && at < begun + span);
    let mut over = first;
    for &(at, time) in held {
        bench.expect(at <= over + bench.slack() || at == first, || {
            format!("a pause of priority {priority} ran out {} before its refresh", at.since(over))
        })?;
        over = at + quanta(time, bench.rate());
    }
    let end = begun + span;
    bench.saw(format!("sent {} times, from {first}; the last holds until {over}", said.len()));
    bench.expect(over + bench.slack() >= end, || {
        format!("a pause of priority {priority} ran out {} before there was room", end.since(over))
    })
}

fn xon_is_sent(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let span = long(bench);
    let begun = bench.now();
    let (priority, _) = congest(bench, &setup, span)?;
    let said = said(bench, 1, priority);
    let stop = said.iter().rfind(|&&(_, time)| time > 0).copied();
    let Some((at, time)) = stop else {
        return Err(Halt::Failed(format!("no XOFF for priority {priority}")));
    };
    let over = at + quanta(time, bench.rate());
    let go = said.iter().find(|&&(went, time)| time == 0 && went >= begun + span);
    let Some(&(went, _)) = go else {
        return Err(Halt::Failed(format!("the last XOFF, at {at}, was followed by no XON")));
    };
    bench.saw(format!("XON {} after there was room", went.since(begun + span)));
    bench.expect(went <= over, || "XON only after the pause had run out".into())
}

fn only_the_congested(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let two = Setup::with_pfc(PrioritySet::from_bits(0b0001_1000));
    let setup = bench.given().cloned().unwrap_or(two);
    bench.set_up(&setup)?;
    bench.need_ports(2, "traffic has to come through the device")?;
    let (span, held) = (long(bench), one_of(&setup));
    // Every other priority sends at a tenth of the rate or less, alongside a paused one.
    let interval = bench.time_for(crate::bench::FRAME_BYTES) * 10 * PRIORITIES as u64;
    for priority in Priority::ALL.into_iter().filter(|&priority| priority != held) {
        let stream = bench.full_rate(1, priority, span);
        bench.stream(Stream { interval, ..stream });
    }
    congest(bench, &setup, span)?;
    for priority in Priority::ALL.into_iter().filter(|&priority| priority != held) {
        let stops = said(bench, 1, priority).len();
        bench.expect(stops == 0, || {
            format!("priority {priority} was named {stops} times, and only {held} is held up")
        })?;
    }
    let stops = said(bench, 1, held).len();
    bench.saw(format!("priority {held} was named {stops} times, no other"));
    bench.expect(stops > 0, || format!("no XOFF for priority {held}"))
}

fn sent_while_paused(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (span, step) = (long(bench), refresh(bench));
    let begun = bench.now();
    for n in 0..=span.ticks() / step.ticks() {
        let at = begun + step * n;
        bench.send_at(1, at, frames::pfc_for(frames::mac(1), setup.pfc.bits(), u16::MAX));
    }
    bench.did("stopped all priorities at port 1, too");
    let (priority, id) = congest(bench, &setup, span)?;
    let stops = said(bench, 1, priority).into_iter().filter(|&(_, time)| time > 0).count();
    bench.saw(format!("{stops} times XOFF, by a port that may send no data"));
    bench.expect(stops > 0, || "a paused port did not send XOFF".into())?;
    all_came(bench, &[id])
}

/// Rounds of pause and resume, each at a different offset within the frames in the other direction.
const ROUNDS: u64 = 16;

fn no_loss(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    bench.need_ports(2, "traffic has to come through the device")?;
    let priority = one_of(&setup);
    let longest = bench.time_for(FRAME_BYTES_MAX);
    let room = quanta(u16::MAX, bench.rate());
    let round = room.max(bench.slack() * 4);
    let whole = round * (2 * ROUNDS);
    let other = Priority::ALL.into_iter().find(|&other| other != priority).unwrap_or_default();
    let there = bench.full_rate(1, priority, whole);
    let id = bench.stream(Stream { bytes: FRAME_BYTES_MAX, ..there });
    let back = Stream { from: 0, to: 1, priority: other, bytes: FRAME_BYTES_MAX, ..there };
    bench.stream(back);
    for n in 0..ROUNDS {
        block(bench, priority, round);
        bench.pass(round * 2 + Span::from_ticks(longest.ticks() / ROUNDS * n))?;
    }
    bench.did(format!(
        "{ROUNDS} times blocked priority {priority} for {round}, with frames of {FRAME_BYTES_MAX} \
         octets at full rate both ways"
    ));
    drain(bench)?;
    all_came(bench, &[id])?;
    let stops = said(bench, 1, priority).into_iter().filter(|&(_, time)| time > 0).count();
    bench.expect(stops > 0, || format!("no XOFF for priority {priority}"))
}

fn many_into_one(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(3, "two ports that send into a third")?;
    let setup = bench.set_up_pfc()?;
    let priority = one_of(&setup);
    let span = long(bench);
    let streams = (1..bench.ports()).map(|port| bench.full_rate(port, priority, span));
    let streams: Vec<Stream> = streams.collect();
    let ids: Vec<u16> = streams.into_iter().map(|stream| bench.stream(stream)).collect();
    bench.did(format!("{} ports at full rate into one for {span}", ids.len()));
    bench.pass(span)?;
    drain(bench)?;
    all_came(bench, &ids)
}
