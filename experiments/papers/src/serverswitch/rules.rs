//! Rules of the programming interface (004 §3.3.2 and §4.1), one row each: lookup keys, order of
//! the tables, registers, packets of the control program.

use crate::reproduce::Row;
use anyhow::{Context as _, Result, ensure};
use axon_node::{Action, Drop, Input, Node};
use axon_pipeline::{
    Action as Entry, Change, Control, Field, FrameType, KeyError, MacKey, Pipeline, PipelineConfig,
    Prefix, Program, ProgramNode, Reason, Received, Register, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
use std::net::Ipv4Addr;

const PORTS: u16 = 8;
const FRAME_BYTES: usize = 60;
/// Complete blocks of four bytes: two of the IPv4 header, one in the middle, and the last one that
/// is within reach.
const BLOCKS: [(u8, u8); 4] = [(14, 17), (30, 33), (62, 65), (122, 125)];
/// Result of a rule that behaves as in the paper.
const AS_IN_PAPER: &str = "yes";

/// Returns a row for each rule.
///
/// # Errors
/// A valid transaction is refused.
pub(crate) fn rows() -> Result<Vec<Row>> {
    let order = "tcam 9, tcam 3, exact, prefix";
    let mut rows = vec![same("precedence", order, precedence()?)];
    let answers = [
        (
            "UDLK of four aligned blocks of the first 128 bytes and INPORT is matched",
            four_blocks()?,
        ),
        ("a fifth block is refused", refused(&mut pipeline(), 1, fifth_block())),
        ("byte 128 is refused", refused(&mut pipeline(), 1, beyond())),
        ("two UDLKs of a packet type, and a third is refused", third_key()?),
    ];
    let row = |(name, answer): (&str, String)| same(name, AS_IN_PAPER, answer);
    rows.extend(answers.map(row));
    rows.extend(registers()?);
    rows.extend(packets()?);
    Ok(rows)
}

fn same(name: &str, theirs: &str, ours: String) -> Row {
    let pass = theirs == ours;
    Row::holds(name, theirs, ours, "", "the same", pass)
}

fn yes_or(answer: Result<(), String>) -> String {
    answer.err().unwrap_or_else(|| AS_IN_PAPER.to_owned())
}

fn config() -> PipelineConfig {
    PipelineConfig::with_ports(PORTS, MacAddr([2, 0, 0, 0, 0, 9]))
}

fn links(node: &mut impl Node) {
    for port in (0..PORTS).map(PortNo) {
        node.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
    }
}

/// Returns a pipeline of the default sizes whose ports have carrier.
pub(crate) fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(config());
    links(&mut pipeline);
    pipeline
}

/// Returns the actions for a frame from a port.
fn receive(node: &mut impl Node, port: u16, frame: &[u8]) -> Vec<Action> {
    let (port, frame, complete_at) = (PortNo(port), FrameBuf::new(frame), Time::ZERO);
    let mut out = Vec::new();
    node.handle(Time::ZERO, Input::Frame { port, frame, complete_at, intact: true }, &mut out);
    out
}

/// Returns the egress port of the last of some frames.
fn port_of(out: &[Action]) -> Option<u16> {
    match out.last() {
        Some(Action::Transmit { port, .. }) => Some(port.0),
        _ => None,
    }
}

fn to(port: u16) -> Entry {
    Entry::from(Target::Port(PortNo(port)))
}

/// Returns an IPv4 frame to 10.0.0.1.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = [&[2, 0, 0, 0, 0, 1][..], &[2, 0, 0, 0, 0, 2, 8, 0, 0x45]].concat();
    frame.resize(bytes, 0);
    frame[30..34].copy_from_slice(&[10, 0, 0, 1]);
    frame
}

/// Returns the order in which a frame that all tables match hits their entries, each removed after
/// its hit.
fn precedence() -> Result<String> {
    let mut pipeline = pipeline();
    let tcam = |index, port| {
        let (value, mask) = (vec![10, 0, 0, 0], vec![255, 0, 0, 0]);
        Change::Tcam(index, Some(TcamEntry { udlk: UdlkId(1), value, mask, action: to(port) }))
    };
    let key = MacKey { bridge: 0, mac: MacAddr([2, 0, 0, 0, 0, 1]) };
    let prefix = Prefix { address: Ipv4Addr::new(10, 0, 0, 0), length: 8 };
    let udlk = Udlk::new([Field::Bytes { first: 30, last: 33 }]);
    pipeline.commit(&[
        Change::Udlk(UdlkId(1), Some(udlk)),
        tcam(3, 2),
        tcam(9, 1),
        Change::Mac(key, Some(to(3))),
        Change::Prefix(prefix, Some(to(4))),
    ])?;
    let mut found = Vec::new();
    for (port, name, gone) in [
        (1, "tcam 9", Change::Tcam(9, None)),
        (2, "tcam 3", Change::Tcam(3, None)),
        (3, "exact", Change::Mac(key, None)),
        (4, "prefix", Change::Prefix(prefix, None)),
    ] {
        found.push(match port_of(&receive(&mut pipeline, 0, &frame(FRAME_BYTES))) {
            Some(out) if out == port => name.to_owned(),
            other => format!("{other:?} in place of {name}"),
        });
        pipeline.commit(&[gone])?;
    }
    Ok(found.join(", "))
}

fn fields(blocks: &[(u8, u8)]) -> Vec<Field> {
    blocks.iter().map(|&(first, last)| Field::Bytes { first, last }).collect()
}

/// Checks one entry on the whole key: it matches its frame, and not one with another byte or from
/// another port.
fn four_blocks() -> Result<String> {
    let mut pipeline = pipeline();
    let mut frame = frame(160);
    (62..126).for_each(|at| frame[at] = at as u8);
    let parts = BLOCKS.map(|(first, last)| &frame[usize::from(first)..=usize::from(last)]);
    let value = [&[0, 5][..], &parts.concat()].concat();
    let all = [vec![Field::Ingress], fields(&BLOCKS)].concat();
    let mask = vec![0xff; value.len()];
    let entry = TcamEntry { udlk: UdlkId(1), value, mask, action: to(1) };
    pipeline.commit(&[
        Change::Udlk(UdlkId(1), Some(Udlk::new(all))),
        Change::Tcam(0, Some(entry)),
        Change::Miss(Some(to(2))),
    ])?;
    let mut missed = |port: u16, changed: Option<u8>, wanted: u16| {
        let mut frame = frame.clone();
        changed.into_iter().for_each(|at| frame[usize::from(at)] ^= 1);
        let found = port_of(&receive(&mut pipeline, port, &frame));
        let ports = (0..PORTS).map(PortNo);
        ports.for_each(|port| {
            pipeline.handle(Time::ZERO, Input::TxDone { port }, &mut Vec::new());
        });
        (found != Some(wanted)).then(|| format!("{found:?} from port {port}, byte {changed:?}"))
    };
    let mut wrong = vec![missed(5, None, 1), missed(4, None, 2), missed(5, Some(61), 1)];
    wrong.extend(BLOCKS.map(|(_, last)| missed(5, Some(last), 2)));
    Ok(yes_or(wrong.into_iter().flatten().next().map_or(Ok(()), Err)))
}

fn fifth_block() -> (Udlk, Reason) {
    let five = [&BLOCKS[..], &[(34, 34)]].concat();
    (Udlk::new(fields(&five)), Reason::Key(KeyError::Blocks(5)))
}

fn beyond() -> (Udlk, Reason) {
    (Udlk::new(fields(&[(126, 128)])), Reason::Key(KeyError::Beyond(128)))
}

/// Checks that a key is refused for this reason and not installed.
fn refused(pipeline: &mut Pipeline, id: u8, (udlk, wanted): (Udlk, Reason)) -> String {
    let before = pipeline.tables().counts();
    let found = pipeline.commit(&[Change::Udlk(UdlkId(id), Some(udlk))]);
    let is_so = found.as_ref().is_err_and(|error| error.reason == wanted);
    let is_unchanged = pipeline.tables().counts() == before;
    yes_or(if is_so && is_unchanged { Ok(()) } else { Err(format!("{found:?}")) })
}

fn third_key() -> Result<String> {
    let mut pipeline = pipeline();
    let key = |first| Udlk::of(FrameType::Ipv4, fields(&[(first, first)]));
    pipeline.commit(&[
        Change::Udlk(UdlkId(1), Some(key(22))),
        Change::Udlk(UdlkId(2), Some(key(23))),
    ])?;
    Ok(refused(&mut pipeline, 3, (key(30), Reason::TooManyKeys(FrameType::Ipv4))))
}

/// Checks ReadRegister by the paper's own example, with two frames in a queue, and WriteRegister by
/// setting the rate to the control program to zero, after which none gets there.
fn registers() -> Result<[Row; 2]> {
    let mut pipeline = pipeline();
    pipeline.commit(&[Change::Miss(Some(to(0)))])?;
    // The wire of port 0 carries the first.
    for _ in 0..3 {
        receive(&mut pipeline, 1, &frame(FRAME_BYTES));
    }
    let name = "OUTPUT_QUEUE_BYTES_PORT0";
    let register = Register::of_port(name).context("the paper's register has its name")?;
    let bytes = pipeline.read_register(register)? as f64;
    let wanted = 2.0 * FRAME_BYTES as f64;
    let name = format!("ReadRegister({name}) with two frames of {FRAME_BYTES} B in the queue");
    let read = Row::within(name, "the length of the queue, bytes", bytes, "B", (wanted, 0.0));
    pipeline.commit(&[Change::Miss(Some(Entry::cpu()))])?;
    pipeline.write_register(Register::CpuRate(PortNo(1)), 0)?;
    let out = receive(&mut pipeline, 1, &frame(FRAME_BYTES));
    let is_kept = matches!(out[..], [Action::Dropped { reason: Drop::PuntLimit, .. }]);
    let answer = yes_or(if is_kept { Ok(()) } else { Err(format!("{out:?}")) });
    let name = "WriteRegister configures the chip: a rate of 0 to the processor lets nothing there";
    Ok([read, same(name, AS_IN_PAPER, answer)])
}

/// Control program that forwards each packet by the port after its ingress.
struct Next;

impl Program for Next {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        let made = control.commit(&[Change::Miss(Some(Entry::cpu()))]);
        debug_assert_eq!(made, Ok(()), "an empty table has room");
    }

    fn receive_packet(&mut self, _: Time, received: Received<'_>, control: &mut dyn Control) {
        control.send_packet(PortNo(received.ingress.0 + 1), received.frame);
    }
}

/// Checks that RecvPacket gives the ingress port, and that SendPacket sends a packet unchanged out
/// of the named port, bypassing the tables: the `miss` entry would return it to the program.
fn packets() -> Result<[Row; 2]> {
    let mut node = ProgramNode::new(config(), Box::new(Next));
    links(&mut node);
    let mut ports = Vec::new();
    for port in 0..PORTS - 1 {
        let sent = frame(FRAME_BYTES + usize::from(port));
        let out = receive(&mut node, port, &sent);
        let of = out.iter().find_map(|action| match action {
            Action::Transmit { port, frame, .. } if frame.bytes() == sent => Some(port.0),
            _ => None,
        });
        ensure!(of.is_some(), "a packet that the program sent has not left: {out:?}");
        ports.extend(of);
    }
    let right = (1..PORTS).zip(&ports).filter(|(wanted, port)| wanted == *port).count() as f64;
    let wanted = f64::from(PORTS - 1);
    let rows = [
        "RecvPacket: packets with the input port that they came in by",
        "SendPacket: packets out of the port that is named, unchanged, past the tables",
    ];
    Ok(rows.map(|name| Row::within(name, wanted, right, "", (wanted, 0.0))))
}
