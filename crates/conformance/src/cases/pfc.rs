//! PFC, IEEE 802.1Q clause 36 and IEEE 802.3 annex 31D, for a device that receives it.

use super::pause::{SHORT, forwards_none, ignored, keeps_sending, length_fits};
use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::interpretations::Ambiguity;
use crate::rig::Halt;
use crate::setup::{Setup, list};
use crate::station::REACTION;
use axon_wire::Span;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "pfc/each-priority-alone",
        clause: "802.1Q 36.1.2; 002 3.2.1",
        says: "Each priority with PFC can be paused alone, and the others keep sending.",
        run: each_alone,
    },
    Case {
        name: "pfc/several-at-once",
        clause: "802.1Q 36.1.2",
        says: "One frame may pause several priorities, each for its own time.",
        run: several,
    },
    Case {
        name: "pfc/clear-bit-with-time",
        clause: "802.3 31D.3",
        says: "A time whose bit in the enable vector is clear means nothing.",
        run: clear_bit,
    },
    Case {
        name: "pfc/zero-resumes",
        clause: "802.3 31D.3",
        says: "Time zero with its bit set resumes a priority at once.",
        run: |bench| sent_again(bench, 0),
    },
    Case {
        name: "pfc/shorter-replaces",
        clause: "802.3 31D.3",
        says: "A new time replaces what is left of the last one, also if it is shorter.",
        run: |bench| sent_again(bench, 1),
    },
    Case {
        name: "pfc/new-time-replaces",
        clause: "802.3 31D.3",
        says: "A new time replaces what is left of the last one and is not added to it.",
        run: |bench| sent_again(bench, 2),
    },
    Case {
        name: "pfc/timer-length",
        clause: "802.3 31D.2",
        says: "A quantum is 512 bit times of the port.",
        run: timer_length,
    },
    Case {
        name: "pfc/disabled-priority-ignored",
        clause: "802.1Q 36.1.3",
        says: "PFC for a priority that has none is ignored for that priority.",
        run: disabled,
    },
    Case {
        name: "pfc/pause-ignored",
        clause: "802.1Q 36.1.1",
        says: "Where PFC is in use, PAUSE is not.",
        run: pause_ignored,
    },
    Case {
        name: "pfc/high-octet-ignored",
        clause: "802.3 31D.3, as recalled",
        says: "The high octet of the enable vector is reserved and ignored (or the frame is, \
                `pfc-reserved`).",
        run: high_octet,
    },
    Case {
        name: "pfc/shared-class-stops-together",
        clause: "802.1Q 36.1.2, 8.6.6",
        says: "Priorities that share a traffic class are paused together, and other classes keep \
                sending.",
        run: shared_class,
    },
    Case {
        name: "pfc/individual-address-ignored",
        clause: "802.3 31D.1",
        says: "PFC goes to the group address only; any other is dropped.",
        run: individual_address,
    },
    Case {
        name: "pfc/short-frame-ignored",
        clause: "802.3 3.4, 31D.2",
        says: "A PFC frame shorter than the shortest frame is dropped.",
        run: short_frame,
    },
    Case {
        name: "pfc/group-source-ignored",
        clause: "802.3 3.2.5",
        says: "PFC with a group address as its source is dropped.",
        run: |bench| not_honoured(bench, &[frames::pfc_for(frames::GROUP, u8::MAX, u16::MAX)]),
    },
    Case {
        name: "pfc/not-forwarded",
        clause: "802.1Q 8.6.3, table 8-1",
        says: "A PFC frame is never forwarded.",
        run: not_forwarded,
    },
    Case {
        name: "pfc/only-that-port",
        clause: "802.1Q 36.1.2",
        says: "PFC stops the port that receives it and no other.",
        run: only_that_port,
    },
];

fn bits(priorities: PrioritySet) -> u8 {
    priorities.bits()
}

/// Returns a PFC frame from port 0 for these priorities.
fn pfc_frame(priorities: PrioritySet, quanta: u16) -> Vec<u8> {
    frames::pfc_for(frames::mac(0), bits(priorities), quanta)
}

/// Returns the priorities that are paused together with these, which are all priorities in their
/// classes.
fn with_their_classes(setup: &Setup, priorities: PrioritySet) -> PrioritySet {
    let class = |priority: Priority| setup.prio_tc[priority.index()];
    let shares = |one: &Priority| priorities.iter().any(|other| class(other) == class(*one));
    let all = Priority::ALL.into_iter().filter(shares);
    all.fold(PrioritySet::EMPTY, |set, priority| set.union(PrioritySet::only(priority)))
}

fn each_alone(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3 * setup.pfc.len() as u64)?;
    for priority in setup.pfc.iter() {
        let one = PrioritySet::only(priority);
        let stopped = with_their_classes(&setup, one);
        let at = bench.send_now(0, pfc_frame(one, quanta))?;
        bench.pass(pause)?;
        bench.silent(stopped, at, at + pause)?;
        let others = PrioritySet::ALL.difference(stopped);
        keeps_sending(bench, others, (at + turn * 2, at + pause), turn)
            .map_err(|halt| while_stopped(halt, priority))?;
        let again = at + pause + REACTION + bench.slack() + turn * 3;
        bench.pass(pause)?;
        bench.flows(one, at + pause - bench.slack(), again)?;
    }
    bench.did(format!("stopped priorities {} one by one, for {quanta} quanta", list(setup.pfc)));
    bench.saw("each was paused alone and resumed after its time");
    Ok(())
}

fn while_stopped(halt: Halt, priority: Priority) -> Halt {
    match halt {
        Halt::Failed(why) => Halt::Failed(format!("with priority {priority} stopped: {why}")),
        other => other,
    }
}

fn several(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let mut enabled = setup.pfc.iter();
    let (Some(first), Some(second)) = (enabled.next(), enabled.next_back()) else {
        return Err(Halt::NotApplicable("two priorities with PFC (--pfc)".into()));
    };
    let class = |priority: Priority| setup.prio_tc[priority.index()];
    if class(first) == class(second) {
        return Err(Halt::NotApplicable("two classes with PFC (--classes)".into()));
    }
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 4)?;
    let mut times = [0; PRIORITIES];
    (times[first.index()], times[second.index()]) = (quanta, quanta / 2);
    let both = [first, second].map(PrioritySet::only);
    let vector = bits(both[0]) | bits(both[1]);
    let at = bench.send_now(0, frames::pfc(frames::mac(0), vector.into(), times))?;
    bench.did(format!("priority {first} for {quanta} quanta, {second} for {}", quanta / 2));
    bench.pass(pause * 2)?;
    let half = Span::from_ticks(pause.ticks() / 2);
    bench.silent(with_their_classes(&setup, both[0]), at, at + pause)?;
    bench.silent(with_their_classes(&setup, both[1]), at, at + half)?;
    let grace = REACTION + bench.slack() + turn * 3;
    bench.flows(both[1], at + half - bench.slack(), at + half + grace)?;
    bench.flows(both[0], at + pause - bench.slack(), at + pause + grace)
}

fn clear_bit(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (_, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let frame = frames::pfc(frames::mac(0), 0, [u16::MAX; PRIORITIES]);
    let at = bench.send_now(0, frame)?;
    bench.did("times of 65,535 quanta for all priorities, and no bit");
    bench.pass(pause)?;
    keeps_sending(bench, setup.pfc, (at, at + pause), turn)
}

/// Pauses a priority, and half way through sends another time of `halves` halves of the first.
fn sent_again(bench: &mut Bench<'_>, halves: u16) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (quanta, pause) = bench.pause()?;
    let one = setup.pfc.iter().next().map_or(PrioritySet::EMPTY, PrioritySet::only);
    let turn = bench.load(PrioritySet::ALL, pause * 4)?;
    let half = Span::from_ticks(pause.ticks() / 2);
    let first = bench.send_now(0, pfc_frame(one, quanta))?;
    bench.pass(half)?;
    let again = quanta / 2 * halves;
    let second = bench.send_now(0, pfc_frame(one, again))?;
    bench.did(format!("{quanta} quanta for priority {}, and {again} half way through", list(one)));
    bench.pass(pause * 2)?;
    let until = second + half * u64::from(halves);
    bench.silent(one, first, until)?;
    let late = until + REACTION + bench.slack() + turn * 3;
    bench.flows(one, until - bench.slack(), late)?;
    bench.saw(format!("silence from {first} to {until}, and frames again by {late}"));
    Ok(())
}

fn timer_length(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (quanta, pause) = bench.pause()?;
    bench.load(PrioritySet::ALL, pause * 3 * setup.pfc.len() as u64)?;
    for priority in setup.pfc.iter() {
        let at = bench.send_now(0, pfc_frame(PrioritySet::only(priority), quanta))?;
        bench.pass(pause * 2)?;
        let stood = bench.paused_for(priority, at);
        length_fits(bench, stood, pause).map_err(|halt| while_stopped(halt, priority))?;
    }
    bench.did(format!("{quanta} quanta for each priority in turn: {pause} at {}", bench.rate()));
    Ok(())
}

fn disabled(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let some = Setup::with_pfc(PrioritySet::from_bits(0b0001_1000));
    let setup = bench.given().cloned().unwrap_or(some);
    let without = PrioritySet::ALL.difference(setup.pfc);
    if without.is_empty() {
        return Err(Halt::NotApplicable("all priorities have PFC (--pfc)".into()));
    }
    bench.set_up(&setup)?;
    let (_, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let at = bench.send_now(0, pfc_frame(without, u16::MAX))?;
    bench.did(format!("65,535 quanta for priorities {}, which have no PFC", list(without)));
    bench.pass(pause)?;
    keeps_sending(bench, PrioritySet::ALL, (at, at + pause), turn)
}

fn pause_ignored(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.set_up_pfc()?;
    let (_, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let at = bench.send_now(0, frames::pause(frames::mac(0), u16::MAX))?;
    bench.did("a PAUSE of 65,535 quanta");
    bench.pass(pause)?;
    keeps_sending(bench, PrioritySet::ALL, (at, at + pause), turn)
}

fn high_octet(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (quanta, pause) = bench.pause()?;
    let one = setup.pfc.iter().next().map_or(PrioritySet::EMPTY, PrioritySet::only);
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let vector = 0xff00 | u16::from(bits(one));
    let at = bench.send_now(0, frames::pfc(frames::mac(0), vector, [quanta; PRIORITIES]))?;
    bench.did(format!("enable vector {vector:#06x}, all times {quanta}"));
    bench.pass(pause)?;
    if bench.interpretations().is_other(Ambiguity::PfcReserved) {
        return keeps_sending(bench, PrioritySet::ALL, (at, at + pause), turn);
    }
    let stopped = with_their_classes(&setup, one);
    bench.silent(stopped, at, at + pause)?;
    keeps_sending(bench, PrioritySet::ALL.difference(stopped), (at + turn * 2, at + pause), turn)
}

fn shared_class(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let mut shared = Setup::with_pfc(PrioritySet::from_bits(0b0001_1000));
    shared.prio_tc[4] = shared.prio_tc[3];
    let setup = bench.given().cloned().unwrap_or(shared);
    let shares = |one: &Priority| with_their_classes(&setup, PrioritySet::only(*one)).len() > 1;
    let Some(one) = setup.pfc.iter().find(shares).map(PrioritySet::only) else {
        let why = "no priority with PFC shares its class with another (--classes)";
        return Err(Halt::NotApplicable(why.into()));
    };
    bench.set_up(&setup)?;
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let at = bench.send_now(0, pfc_frame(one, quanta))?;
    let all = with_their_classes(&setup, one);
    bench.did(format!("stopped {}, which shares its class: {}", list(one), list(all)));
    bench.pass(pause)?;
    bench.silent(all, at, at + pause)?;
    keeps_sending(bench, PrioritySet::ALL.difference(all), (at + turn * 2, at + pause), turn)
}

/// Sends frames that a device with PFC must ignore.
fn not_honoured(bench: &mut Bench<'_>, frames: &[Vec<u8>]) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    ignored(bench, setup.pfc, frames)
}

fn individual_address(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let device = bench.device_mac()?;
    let mut frame = pfc_frame(PrioritySet::ALL, u16::MAX);
    frame[..6].copy_from_slice(&device.0);
    bench.did(format!("PFC for all priorities to {device}"));
    not_honoured(bench, &[frame])
}

fn short_frame(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let whole = pfc_frame(PrioritySet::ALL, u16::MAX);
    not_honoured(bench, &SHORT.map(|length| whole[..length].to_vec()))
}

fn not_forwarded(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(2, "a port to be forwarded to")?;
    bench.set_up_pfc()?;
    forwards_none(bench)
}

fn only_that_port(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = bench.set_up_pfc()?;
    let (quanta, pause) = bench.pause()?;
    let turn = bench.load(PrioritySet::ALL, pause * 3)?;
    let at = bench.send_now(1, frames::pfc_for(frames::mac(1), bits(setup.pfc), quanta))?;
    bench.did("stopped all priorities at the port that the traffic comes from");
    bench.pass(pause)?;
    keeps_sending(bench, setup.pfc, (at, at + pause), turn)
}
