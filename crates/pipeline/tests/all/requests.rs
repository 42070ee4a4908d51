//! Requests of operators to a running switch, as bytes.

use crate::rig::{IPV4, frame, mac, packet};
use axon_node::probe::{PlanKind, ProbePlan};
use axon_node::{Action, Command, CommandError, Done, Input, Node, NodeKind, Request, RequestId};
use axon_pipeline::request::PAGE_BYTES_MAX;
use axon_pipeline::{
    Change, Control, Group, Interface, MacKey, PipelineConfig, Program, ProgramNode, Reason,
    Received, TableName, TablesAnswer, TablesRequest, Target,
};
use axon_wire::{Hops, PortNo, Time};

/// Sets one entry, and accepts no input.
struct Static;

impl Program for Static {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        control.commit(&[to(1, 2)]).unwrap();
    }

    fn receive_packet(&mut self, _: Time, _: Received<'_>, _: &mut dyn Control) {}
}

/// Entry that sends frames for a host out of a port.
fn to(host: u8, port: u16) -> Change {
    let key = MacKey { bridge: 0, mac: mac(host) };
    Change::Mac(key, Some(Target::Port(PortNo(port)).into()))
}

struct Switch(ProgramNode);

impl Switch {
    fn new(ports: u16) -> Switch {
        let config = PipelineConfig::with_ports(ports, mac(99));
        let mut node = ProgramNode::new(config, Box::new(Static));
        for port in (0..ports).map(PortNo) {
            node.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
        }
        Switch(node)
    }

    fn command(&mut self, request: Request) -> Result<Done, CommandError> {
        let mut out = Vec::new();
        let command = Command { id: RequestId(7), request };
        self.0.handle(Time::ZERO, Input::Command(command), &mut out);
        match &out[..] {
            [Action::Reply(reply)] => {
                assert_eq!(reply.id, RequestId(7));
                reply.result.clone()
            }
            other => panic!("one reply: {other:?}"),
        }
    }

    fn ask(&mut self, request: TablesRequest) -> TablesAnswer {
        let done = self.command(Request::Tables(request.to_bytes())).unwrap();
        let Done::Tables(answer) = done else { panic!("{done:?}") };
        assert!(answer.len() < 3 * PAGE_BYTES_MAX, "it fits the buffer of a socket");
        TablesAnswer::from_bytes(&answer).unwrap()
    }
}

#[test]
fn a_table_is_shown_page_by_page_and_cleared_at_once() {
    let mut switch = Switch::new(4);
    let changes: Vec<Change> =
        (0..4000).map(|label| Change::Mpls(label, Some(Target::Port(PortNo(1)).into()))).collect();
    assert_eq!(switch.ask(TablesRequest::Commit(changes.clone())), TablesAnswer::Committed(4000));
    let (mut all, mut first, mut pages) = (Vec::new(), Some(0), 0);
    while let Some(from) = first {
        let answer = switch.ask(TablesRequest::Entries(TableName::Mpls, from));
        let TablesAnswer::Entries { page, next } = answer else { panic!("a page") };
        all.extend(page.into_iter().map(|shown| shown.change));
        (first, pages) = (next, pages + 1);
    }
    assert_eq!(all, changes);
    assert!(pages > 1, "4000 entries do not fit one");
    let beyond = switch.ask(TablesRequest::Entries(TableName::Mpls, u32::MAX));
    assert_eq!(beyond, TablesAnswer::Entries { page: Vec::new(), next: None });
    assert_eq!(switch.ask(TablesRequest::Clear(TableName::Mpls)), TablesAnswer::Committed(4000));
    assert_eq!(switch.0.pipeline().tables().count(TableName::Mpls).entries, 0);
    assert_eq!(switch.0.pipeline().tables().count(TableName::Mac).entries, 1, "of the program");
}

#[test]
fn a_table_that_others_use_is_not_cleared() {
    let mut switch = Switch::new(4);
    let leads = Change::Mpls(1, Some(Target::Interface(5).into()));
    let changes = vec![Change::Interface(5, Some(Interface::of(PortNo(1)))), leads];
    assert_eq!(switch.ask(TablesRequest::Commit(changes)), TablesAnswer::Committed(2));
    let answer = switch.ask(TablesRequest::Clear(TableName::Interface));
    let TablesAnswer::Refused(error) = answer else { panic!("{answer:?}") };
    assert_eq!(error.reason, Reason::InUse { users: 1 });
    assert_eq!(switch.0.pipeline().tables().count(TableName::Interface).entries, 1);
}

#[test]
fn a_flood_out_of_many_ports_is_explained_in_one_answer() {
    let mut switch = Switch::new(200);
    let interfaces =
        (0..200).map(|port| Change::Interface(port, Some(Interface::of(PortNo(port)))));
    let mut changes: Vec<Change> = interfaces.collect();
    changes.push(Change::Group(1, Some(Group { interfaces: (0..200).collect() })));
    changes.push(Change::Miss(Some(Target::Group(1).into())));
    assert_eq!(switch.ask(TablesRequest::Commit(changes)), TablesAnswer::Committed(202));
    let mut long = frame(mac(9), mac(8), IPV4, &packet(9, [10, 0, 0, 1]));
    long.resize(1514, 0);
    let answer = switch.ask(TablesRequest::Explain(PortNo(0), long));
    let TablesAnswer::Explained(way) = answer else { panic!("a way") };
    let kept = PAGE_BYTES_MAX / 1514;
    assert_eq!(way.sent.len(), kept);
    let last = &way.stages.last().unwrap().text;
    assert!(last.starts_with(&format!("{} more copies", 199 - kept)), "{last}");
    let frame = frame(mac(1), mac(8), IPV4, &packet(9, [10, 0, 0, 1]));
    let nowhere = switch.ask(TablesRequest::Explain(PortNo(200), frame));
    assert_eq!(nowhere, TablesAnswer::NoSuchPort(PortNo(200)));
}

#[test]
fn what_is_no_request_for_tables_is_refused_and_the_rest_is_unsupported() {
    let mut switch = Switch::new(4);
    for bytes in [&[][..], &[1], &[0xff; 40], &[1, 3, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        let error = switch.command(Request::Tables(bytes.to_vec())).unwrap_err();
        assert!(matches!(error, CommandError::Tables(_)), "{bytes:?}: {error:?}");
    }
    let mut other = TablesRequest::Counts.to_bytes();
    other[0] = 2;
    let error = switch.command(Request::Tables(other.clone())).unwrap_err().to_string();
    assert!(error.contains("version 2, expected 1"), "{error}");
    let error = TablesAnswer::from_bytes(&other).unwrap_err().to_string();
    assert!(error.contains("version 2, expected 1"), "{error}");
    let whole = TablesRequest::Commit(vec![to(1, 1), to(2, 1)]).to_bytes();
    for length in 0..whole.len() {
        assert!(switch.command(Request::Tables(whole[..length].to_vec())).is_err(), "{length}");
    }
    assert_eq!(switch.0.pipeline().tables().count(TableName::Mac).entries, 1);
    let plan = ProbePlan::new(PlanKind::Circuit(Hops::to_control()));
    let error = switch.command(Request::Probe(plan)).unwrap_err();
    assert_eq!(error, CommandError::Unsupported(NodeKind::Programmable));
}
