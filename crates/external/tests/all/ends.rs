//! Tests with both ends in one process: behaviour of the switch with correct and faulty programs.

use crate::rig::{KNOWN, MODES, Mode, OTHER, Rig, frame, threaded};
use axon_external::message::Call;
use axon_external::{Limits, Session};
use axon_node::{Drop, Input};
use axon_pipeline::{Action, Change, ChangeError, MacKey, Reason, Register, RegisterError, Target};
use axon_wire::{PortNo, Time};
use std::sync::mpsc;
use std::time::Duration;

fn mac(mac: axon_wire::MacAddr, target: Target) -> Change {
    Change::Mac(MacKey { bridge: 0, mac }, Some(Action::from(target)))
}

fn tables() -> Vec<Change> {
    vec![mac(KNOWN, Target::Port(PortNo(1))), Change::Miss(Some(Action::cpu()))]
}

/// Answers every call. The first start gets tables, and each packet a copy out of port 1.
fn echo(mut session: Session) {
    while let Ok(Some((_, call))) = session.next_call() {
        let is_ready = !matches!(call, Call::Load(_));
        match call {
            Call::Start => session.commit(tables()).unwrap().unwrap(),
            Call::Packet { frame, .. } => session.send_packet(PortNo(1), frame).unwrap(),
            _ => {}
        }
        if session.done(None, is_ready).is_err() {
            return;
        }
    }
}

fn ready(rig: &Rig) -> bool {
    rig.node.program().is_ready()
}

#[test]
fn a_program_fills_tables_and_answers_packets_in_both_modes() {
    for mode in MODES {
        let mut rig = Rig::new(threaded(mode, Limits::default(), echo));
        rig.wait("the start", ready);
        rig.links_up();
        rig.receive(KNOWN);
        assert_eq!(rig.left, [(PortNo(1), frame(KNOWN))], "{mode:?}: by the tables");
        for _ in 0..10 {
            rig.receive(OTHER);
        }
        rig.wait("the echo of ten packets", |rig| rig.left.len() == 11);
        rig.wait("the last answer", |rig| rig.dropped(Drop::Consumed) == 10);
        assert_eq!(rig.failure(), None);
    }
}

#[test]
fn what_a_switch_refuses_comes_back_as_it_is() {
    for mode in MODES {
        let (send, receive) = mpsc::channel();
        let program = move |mut session: Session| {
            while let Ok(Some((_, call))) = session.next_call() {
                if matches!(call, Call::Start) {
                    let bad =
                        vec![mac(KNOWN, Target::Port(PortNo(1))), mac(OTHER, Target::Group(3))];
                    send.send((
                        session.commit(bad).unwrap(),
                        session.read_register(Register::RxFrames(PortNo(9))).unwrap(),
                        session.write_register(Register::CpuRate(PortNo(0)), 5).unwrap(),
                        session.read_register(Register::CpuRate(PortNo(0))).unwrap(),
                        session.is_up(PortNo(7)).unwrap(),
                    ))
                    .unwrap();
                }
                session.done(None, true).unwrap();
            }
        };
        let mut rig = Rig::new(threaded(mode, Limits::default(), program));
        rig.wait("the start", ready);
        let (committed, read, written, rate, is_up) = {
            let mut got = None;
            while got.is_none() {
                rig.handle(Input::Timeout);
                got = receive.try_recv().ok();
            }
            got.unwrap()
        };
        let ChangeError { position, reason, .. } = committed.unwrap_err();
        assert_eq!((position, reason), (2, Reason::NoSuchGroup(3)));
        assert_eq!(read, Err(RegisterError::NoSuchPort(PortNo(9))));
        assert_eq!((written, rate, is_up), (Ok(()), Ok(5), false));
        rig.links_up();
        rig.receive(KNOWN);
        assert_eq!(rig.left, [], "{mode:?}: none of the two changes was made");
    }
}

#[test]
fn packets_queue_up_to_the_limit_and_beyond_are_counted_as_no_program() {
    let (go, wait) = mpsc::channel::<()>();
    let program = move |mut session: Session| {
        while let Ok(Some((_, call))) = session.next_call() {
            match call {
                Call::Start => session.commit(tables()).unwrap().unwrap(),
                Call::Packet { .. } => wait.recv().unwrap(),
                _ => {}
            }
            session.done(None, true).unwrap();
        }
    };
    let limits = Limits { packets_queued: 4, ..Limits::default() };
    let mut rig = Rig::new(threaded(Mode::Queued, limits, program));
    rig.wait("the start", ready);
    rig.links_up();
    let is_at_rest = |rig: &Rig| {
        rig.node
            .program()
            .deadline()
            .is_some_and(|next| next > rig.now() + axon_wire::Span::from_millis(100))
    };
    rig.wait("links to be handled", is_at_rest);
    for _ in 0..10 {
        rig.receive(OTHER);
    }
    assert_eq!(rig.dropped(Drop::NoProgram), 5, "but one in flight and four that wait");
    rig.receive(KNOWN);
    assert_eq!(rig.left.len(), 1, "the tables forward meanwhile");
    (0..5).for_each(|_| go.send(()).unwrap());
    rig.wait("the queue to empty", is_at_rest);
    assert_eq!(rig.dropped(Drop::Consumed), 5);
    rig.receive(OTHER);
    assert_eq!(rig.dropped(Drop::NoProgram), 5, "there is room again");
    assert_eq!(rig.failure(), None);
    go.send(()).unwrap();
}

#[test]
fn a_program_that_floods_its_switch_has_failed() {
    for mode in MODES {
        let program = |mut session: Session| {
            while let Ok(Some((_, call))) = session.next_call() {
                if matches!(call, Call::Start) {
                    while session.send_packet(PortNo(1), frame(KNOWN)).is_ok() {}
                    return;
                }
                session.done(None, true).unwrap();
            }
        };
        let limits = Limits { frames_per_call: 100, ..Limits::default() };
        let mut rig = Rig::new(threaded(mode, limits, program));
        rig.wait("the end", |rig| rig.failure().is_some());
        let failure = rig.failure().unwrap();
        assert!(failure.contains("more than 100 frames"), "{mode:?}: {failure}");
    }
}

#[test]
fn a_packet_that_its_program_dies_of_is_lost_and_counted_once() {
    for mode in MODES {
        let program = |mut session: Session| {
            while let Ok(Some((_, call))) = session.next_call() {
                match call {
                    Call::Start => session.commit(tables()).unwrap().unwrap(),
                    Call::Packet { .. } => return,
                    _ => {}
                }
                session.done(None, true).unwrap();
            }
        };
        let mut rig = Rig::new(threaded(mode, Limits::default(), program));
        rig.wait("the start", ready);
        rig.links_up();
        rig.receive(OTHER);
        rig.wait("the end", |rig| rig.failure().is_some());
        let counted = (rig.dropped(Drop::Consumed), rig.dropped(Drop::NoProgram));
        assert_eq!(counted, (0, 1), "{mode:?}");
    }
}

#[test]
fn a_program_that_is_late_is_kept_for_the_end_of_a_simulation() {
    let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
    let overtime = axon_external::Overtime::default();
    let limits = Limits { load: Duration::from_millis(20), ..Limits::default() };
    let peer = axon_external::Peer::new(near);
    let late = axon_external::Waiting::new(peer, &crate::rig::site(), limits);
    let mut rig = Rig::new(Box::new(late.with_overtime(overtime.clone())));
    assert_eq!(overtime.first(), None);
    rig.handle(Input::Timeout);
    let expected = "the program of s1: it did not answer within 20ms";
    assert_eq!(overtime.first(), Some(expected));
}

#[test]
fn a_deadline_in_the_past_does_not_stop_the_clock() {
    for mode in MODES {
        let program = |mut session: Session| {
            while let Ok(Some(_)) = session.next_call() {
                if session.done(Some(Time::ZERO), true).is_err() {
                    return;
                }
            }
        };
        let mut rig = Rig::new(threaded(mode, Limits::default(), program));
        rig.wait("the start", ready);
        let now = rig.now();
        rig.handle(Input::Timeout);
        assert!(rig.node.program().deadline().unwrap() > now, "{mode:?}");
    }
}

#[test]
fn what_is_no_message_ends_the_program_and_not_the_switch() {
    for mode in MODES {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut &far, &[5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]).unwrap();
        let peer = axon_external::Peer::new(near);
        let (site, limits) = (crate::rig::site(), Limits::default());
        let mut rig = Rig::new(match mode {
            Mode::Waiting => Box::new(axon_external::Waiting::new(peer, &site, limits)),
            Mode::Queued => Box::new(axon_external::Queued::new(peer, &site, limits).unwrap()),
        });
        rig.wait("the end", |rig| rig.failure().is_some());
        assert!(rig.failure().unwrap().contains("no message"), "{mode:?}");
        std::thread::sleep(Duration::from_millis(1));
        drop(far);
    }
}
