//! Tests of queued calls to a program, step by step. Time advances only where a test advances it,
//! and the test itself acts as the program.

use crate::rig::{OTHER, Rig, frame, site};
use axon_external::message::Call;
use axon_external::{Limits, Peer, Queued, Session};
use axon_node::{Command, Drop, Input, Request, RequestId};
use axon_pipeline::{Action, Change, TablesRequest};
use axon_wire::{PortNo, Span, Time};
use std::os::unix::net::UnixStream;

/// Switch, and the other end of its program's channel.
struct Steps {
    rig: Rig,
    session: Session,
}

impl Steps {
    /// Starts a program on a switch that sends it all packets.
    fn new() -> Steps {
        let (near, far) = UnixStream::pair().unwrap();
        let queued = Queued::new(Peer::new(near), &site(), Limits::default()).unwrap();
        let mut rig = Rig::new(Box::new(queued));
        rig.frozen = Some(Time::ZERO);
        let mut steps = Steps { rig, session: Session::new(far) };
        let changes = vec![Change::Miss(Some(Action::cpu()))];
        let request = Request::Tables(TablesRequest::Commit(changes).to_bytes());
        steps.rig.handle(Input::Command(Command { id: RequestId(1), request }));
        assert!(matches!(steps.answer(None), Call::Load(_)));
        assert_eq!(steps.answer(None), Call::Start);
        steps.rig.links_up();
        for port in [PortNo(0), PortNo(1)] {
            assert_eq!(steps.answer(None), Call::Link { port, up: true });
        }
        steps
    }

    /// Advances time by `span`, and lets the switch poll its program.
    fn pass(&mut self, span: Span) {
        let now = self.rig.now();
        self.rig.frozen = Some(now + span);
        self.rig.handle(Input::Timeout);
    }

    /// Answers the call in flight, and advances time a little.
    fn answer(&mut self, deadline: Option<Time>) -> Call {
        let (_, call) = self.session.next_call().unwrap().expect("a call");
        self.session.done(deadline, true).unwrap();
        self.pass(Span::from_millis(1));
        call
    }
}

fn name(call: &Call) -> &'static str {
    match call {
        Call::Load(_) => "load",
        Call::Start => "start",
        Call::Link { .. } => "link",
        Call::Packet { .. } => "packet",
        Call::Timeout => "timeout",
    }
}

#[test]
fn packets_that_wait_hold_up_neither_timeouts_nor_changes_of_carrier() {
    let mut steps = Steps::new();
    (0..4).for_each(|_| steps.rig.receive(OTHER));
    steps.rig.handle(Input::Link { port: PortNo(1), up: false });
    let calls: Vec<Call> = (0..8).map(|_| steps.answer(Some(Time::ZERO))).collect();
    let names: Vec<&str> = calls.iter().map(name).collect();
    let expected =
        ["packet", "link", "timeout", "packet", "timeout", "packet", "timeout", "packet"];
    assert_eq!(names, expected);
}

#[test]
fn packets_are_counted_when_they_have_ended_and_those_that_die_with_the_program_as_lost() {
    let mut steps = Steps::new();
    (0..4).for_each(|_| steps.rig.receive(OTHER));
    assert_eq!(steps.rig.dropped(Drop::Consumed), 0, "nothing has ended yet");
    steps.answer(None);
    assert_eq!(steps.rig.dropped(Drop::Consumed), 1);
    let Steps { mut rig, session } = steps;
    drop(session);
    rig.frozen = Some(rig.now() + Span::from_millis(1));
    rig.handle(Input::Timeout);
    let failure = rig.failure().unwrap();
    assert_eq!(failure, "it ended; 3 packets for it are lost", "one in flight and two queued");
    rig.receive(OTHER);
    let counted = (rig.dropped(Drop::Consumed), rig.dropped(Drop::NoProgram));
    assert_eq!(counted, (1, 4), "every packet once");
}

#[test]
fn one_look_does_a_bounded_amount_of_work() {
    let mut steps = Steps::new();
    steps.rig.receive(OTHER);
    assert!(matches!(steps.session.next_call().unwrap(), Some((_, Call::Packet { .. }))));
    for _ in 0..1000 {
        steps.session.send_packet(PortNo(1), frame(OTHER)).unwrap();
    }
    steps.session.done(None, true).unwrap();
    let look = Span::from_millis(1);
    steps.pass(look);
    let first = steps.rig.left.len();
    assert!((200..=256).contains(&first), "{first}");
    let next = steps.rig.node.program().deadline().unwrap();
    assert!(next.since(steps.rig.now()) < look, "the rest follows soon");
    (0..4).for_each(|_| steps.pass(look));
    assert_eq!(steps.rig.left.len(), 1000);
    assert_eq!(steps.rig.dropped(Drop::Consumed), 1);
}

#[test]
fn a_switch_that_is_held_up_itself_does_not_end_its_program() {
    let mut steps = Steps::new();
    steps.rig.receive(OTHER);
    steps.pass(Span::from_secs(60));
    assert_eq!(steps.rig.failure(), None);
    assert!(matches!(steps.answer(None), Call::Packet { .. }));
    steps.rig.receive(OTHER);
    (0..19).for_each(|_| steps.pass(Span::from_millis(500)));
    assert_eq!(steps.rig.failure(), None, "9.5 s in flight");
    (0..2).for_each(|_| steps.pass(Span::from_millis(500)));
    assert!(steps.rig.failure().unwrap().contains("did not answer within 10s"));
}
