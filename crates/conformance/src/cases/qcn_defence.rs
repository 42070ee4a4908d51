//! Edge of the congestion notification domain, IEEE 802.1Q clauses 31.1 and 33.4, where priorities
//! are remapped and CN-TAGs are removed.
//!
//! Port 0 of the tester has the defence mode of the case, and port 1 is inside the domain and takes
//! CN-TAGs. Frames with a CN-TAG are sent in both directions with every priority of the domain.
//! Frames from port 0 show the behaviour at ingress, and frames to port 0 the behaviour at egress.

use crate::bench::Bench;
use crate::case::Case;
use crate::frames;
use crate::rig::{Halt, Stream};
use crate::setup::{DefenceMode, Setup, list};
use axon_wire::Time;
use axon_wire::priority::{Priority, PrioritySet};

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "qcn/defence-disabled",
        clause: "802.1Q 33.4, as recalled; UNH 32.3.4",
        says: "Where congestion notification is disabled at a port, frames keep their priority and \
                their CN-TAG.",
        run: |bench| defended(bench, DefenceMode::Disabled, None),
    },
    Case {
        name: "qcn/defence-edge",
        clause: "802.1Q 33.4, as recalled; UNH 32.3.4, 31.2.3",
        says: "At an edge port frames that come in leave the domain's priorities, and those that \
                go out lose their CN-TAG.",
        run: |bench| defended(bench, DefenceMode::Edge, None),
    },
    Case {
        name: "qcn/defence-edge-alternate",
        clause: "802.1Q 33.4, as recalled; UNH 32.3.5",
        says: "Frames that leave the domain's priorities get the one that is configured.",
        run: |bench| defended(bench, DefenceMode::Edge, Some(ALTERNATE)),
    },
    Case {
        name: "qcn/defence-interior",
        clause: "802.1Q 33.4, as recalled; UNH 32.3.4, 31.2.3",
        says: "At an interior port frames keep their priority, and those that go out lose their \
                CN-TAG.",
        run: |bench| defended(bench, DefenceMode::Interior, None),
    },
    Case {
        name: "qcn/defence-interior-ready",
        clause: "802.1Q 33.4, as recalled; UNH 32.3.4, 32.2.5, 33.2.4",
        says: "At a port that is interior and ready, frames of every priority of the domain keep \
                it and their CN-TAG.",
        run: |bench| defended(bench, DefenceMode::InteriorReady, None),
    },
];

/// Default priorities of the domain, and the default alternate priority.
const DOMAIN: PrioritySet = PrioritySet::from_bits(0b1101_1000);
const ALTERNATE: Priority = Priority::from_low_bits(5);
/// Flow in the CN-TAGs.
const FLOW: u16 = 0x0c0f;
/// Number of frames in each stream.
const FRAMES: u64 = 8;

/// Sets up a device whose port 0 has this defence mode.
fn set_up(
    bench: &mut Bench<'_>,
    defence: DefenceMode,
    alternate: Option<Priority>,
) -> Result<Setup, Halt> {
    bench.need_ports(2, "frames have to go through the device")?;
    let own = Setup { congestion: DOMAIN, defence, alternate, ..Setup::default() };
    let setup = match bench.given() {
        Some(given) if given.congestion.is_empty() => {
            let why = "the device has congestion notification for no priority (--cn)";
            return Err(Halt::NotApplicable(why.into()));
        }
        Some(given) if alternate.is_some() && given.alternate.is_none() => {
            let why = "where frames go that leave the domain is not said (--alternate)";
            return Err(Halt::NotApplicable(why.into()));
        }
        Some(given) => Setup { defence, ..given.clone() },
        None => own,
    };
    bench.set_up(&setup)?;
    Ok(setup)
}

/// Received frames of a stream, each as its priority and the flow in its CN-TAG.
type Came = Vec<(Option<u8>, Option<u16>)>;

fn defended(
    bench: &mut Bench<'_>,
    defence: DefenceMode,
    alternate: Option<Priority>,
) -> Result<(), Halt> {
    let setup = set_up(bench, defence, alternate)?;
    let interval = bench.time_for(crate::bench::FRAME_BYTES) * 20;
    let span = interval * FRAMES;
    for priority in setup.congestion.iter() {
        for (from, to) in [(0, 1), (1, 0)] {
            let stream = bench.full_rate(from, priority, span);
            let id = bench.stream(Stream { to, interval, flow: Some(FLOW), ..stream });
            bench.pass(span + bench.slack() * 4)?;
            let came: Came = bench
                .log()
                .heard(to, Time::ZERO)
                .filter(|seen| frames::traffic_of(&seen.frame).is_some_and(|own| own.id == id))
                .map(|seen| {
                    let known = frames::traffic_of(&seen.frame);
                    (known.and_then(|known| known.priority), frames::flow_of(&seen.frame))
                })
                .collect();
            bench.expect(!came.is_empty(), || {
                format!("no frame of priority {priority} came out at port {to}")
            })?;
            if to == 1 {
                came_in(bench, &setup, priority, &came)?;
            } else {
                went_out(bench, defence, &came)?;
            }
        }
    }
    bench.did(format!("frames with a CN-TAG both ways, priorities {}", list(setup.congestion)));
    Ok(())
}

/// Checks the priority of the frames that came from port 0.
fn came_in(
    bench: &mut Bench<'_>,
    setup: &Setup,
    priority: Priority,
    came: &Came,
) -> Result<(), Halt> {
    let within = |value: u8| Priority::new(value).is_some_and(|one| setup.congestion.contains(one));
    for &(now, _) in came {
        let now = now.unwrap_or(0);
        let good = match (setup.defence, setup.alternate) {
            (DefenceMode::Edge, Some(alternate)) => now == alternate.value(),
            (DefenceMode::Edge, None) => !within(now),
            _ => now == priority.value(),
        };
        bench.expect(good, || {
            format!("a frame came in with priority {priority} and has priority {now} now")
        })?;
    }
    bench.saw(format!("priority {priority} became {:?}", came[0].0.unwrap_or(0)));
    Ok(())
}

/// Checks the CN-TAG of the frames that were sent to port 0.
fn went_out(bench: &mut Bench<'_>, defence: DefenceMode, came: &Came) -> Result<(), Halt> {
    let stripped = matches!(defence, DefenceMode::Edge | DefenceMode::Interior);
    let wanted = if stripped { None } else { Some(FLOW) };
    for &(_, flow) in came {
        bench.expect(flow == wanted, || {
            format!("a frame went out with CN-TAG {flow:04x?}, and {wanted:04x?} was due")
        })?;
    }
    Ok(())
}
