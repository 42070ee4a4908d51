//! Encoding of records and actions.
//!
//! A record consists of one byte of kind and flags, the time since the previous record, and the
//! fields for that kind. If the node answered, the number of its actions and their hash in eight
//! bytes follow. Numbers are varints with seven bits per byte, the lowest first.

use axon_node::{Action, Command, Input, Punt};
use axon_wire::{FrameBuf, PortNo, Time};

const FRAME: u8 = 0;
const TX_DONE: u8 = 1;
const LINK_DOWN: u8 = 2;
const LINK_UP: u8 = 3;
const TIMEOUT: u8 = 4;
const COMMAND: u8 = 5;
const KIND_MASK: u8 = 0x07;
/// Flag: the FCS of the frame is valid.
const INTACT: u8 = 0x08;
/// Flag: the frame is complete at a time other than the record's. That time follows.
const LATER: u8 = 0x10;
/// Flag: the node answered.
const ANSWERED: u8 = 0x20;
const FLAGS: u8 = KIND_MASK | INTACT | LATER | ANSWERED;

/// Appends a number as a varint of at most ten bytes.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small differences of either sign to small numbers.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Appends the record for `input` without the node's answer.
pub(super) fn put_input(out: &mut Vec<u8>, before: Time, at: Time, input: &Input) {
    let delta = at.since(before).ticks();
    match input {
        Input::Frame { port, frame, complete_at, intact } => {
            let later = complete_at.ticks().wrapping_sub(at.ticks()) as i64;
            let flag = |set: bool, bit| if set { bit } else { 0 };
            out.push(FRAME | flag(*intact, INTACT) | flag(later != 0, LATER));
            put(out, delta);
            put(out, port.0.into());
            if later != 0 {
                put(out, zigzag(later));
            }
            put(out, frame.bytes().len() as u64);
            out.extend_from_slice(frame.bytes());
        }
        Input::TxDone { port } => put_short(out, TX_DONE, delta, *port),
        Input::Link { port, up } => {
            put_short(out, if *up { LINK_UP } else { LINK_DOWN }, delta, *port);
        }
        Input::Timeout => {
            out.push(TIMEOUT);
            put(out, delta);
        }
        Input::Command(command) => {
            out.push(COMMAND);
            put(out, delta);
            let bytes = postcard::to_allocvec(command).unwrap_or_default();
            put(out, bytes.len() as u64);
            out.extend_from_slice(&bytes);
        }
    }
}

fn put_short(out: &mut Vec<u8>, kind: u8, delta: u64, port: PortNo) {
    out.push(kind);
    put(out, delta);
    put(out, port.0.into());
}

/// Appends the node's answer to the record that begins at `begin`.
pub(super) fn put_answer(out: &mut Vec<u8>, begin: usize, actions: u64, hash: u64) {
    if actions > 0 {
        out[begin] |= ANSWERED;
        put(out, actions);
        out.extend_from_slice(&hash.to_le_bytes());
    }
}

/// Appends the canonical bytes of an action. They are equal for equal actions and different for
/// different ones.
pub fn encode_action(action: &Action, out: &mut Vec<u8>) {
    match action {
        Action::Transmit { port, frame, complete_at, intact } => {
            out.extend([0, u8::from(*intact)]);
            put(out, port.0.into());
            put(out, complete_at.ticks());
            put_frame(out, frame);
        }
        Action::Punt { ingress, frame, punt, .. } => {
            let index = Punt::ALL.iter().position(|other| other == punt);
            out.extend([1, index.unwrap_or_default() as u8]);
            put(out, ingress.0.into());
            put_frame(out, frame);
        }
        Action::Dropped { ingress, reason, frame } => {
            out.extend([2, *reason as u8]);
            put(out, ingress.0.into());
            put_frame(out, frame);
        }
        Action::RouteChanged(answer) => put_value(out, 3, answer),
        Action::Lost => out.push(4),
        Action::Reply(reply) => put_value(out, 5, reply),
        Action::Note(note) => put_value(out, 6, note),
        Action::Store(change) => put_value(out, 7, change),
    }
}

fn put_frame(out: &mut Vec<u8>, frame: &FrameBuf) {
    put(out, frame.bytes().len() as u64);
    out.extend_from_slice(frame.bytes());
}

/// Appends the kind and the encoded value. Writing to memory does not fail.
fn put_value<T: serde::Serialize>(out: &mut Vec<u8>, kind: u8, value: &T) {
    out.push(kind);
    out.extend(postcard::to_allocvec(value).unwrap_or_default());
}

/// Decoded record.
pub(super) struct Taken {
    pub at: Time,
    pub input: Input,
    pub actions: u64,
    pub hash: u64,
}

/// Parser for a block's payload.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub(crate) fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(count).ok().and_then(|count| rest.get(..count));
        let taken = taken.ok_or_else(|| {
            format!("{what} of {count} bytes, where the block has {} more", rest.len())
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<u64, String> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1, what)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(format!("{what} has more than 64 bits"))
    }

    fn port(&mut self) -> Result<PortNo, String> {
        let number = self.number("a port")?;
        let port = u16::try_from(number).map(PortNo);
        port.map_err(|_| format!("port {number}; expected at most {}", u16::MAX))
    }

    /// Returns the next record, which follows a record with the time `before`.
    pub(crate) fn record(&mut self, before: Time) -> Result<Taken, String> {
        let head = self.take(1, "a record")?[0];
        if head & !FLAGS != 0 {
            return Err(format!("a record of unknown kind {head:#04x}"));
        }
        let ticks = before.ticks().checked_add(self.number("a time")?);
        // At the maximum time, restarted timers would be due at once, again and again.
        let ticks = ticks.filter(|ticks| *ticks < Time::MAX.ticks());
        let at = Time::from_ticks(ticks.ok_or("a time beyond all clocks")?);
        let input = match head & KIND_MASK {
            FRAME => {
                let port = self.port()?;
                let later = head & LATER != 0;
                let later = if later { unzigzag(self.number("a time")?) } else { 0 };
                let complete_at = Time::from_ticks(at.ticks().wrapping_add(later as u64));
                let count = self.number("a length")?;
                let frame = self.take(count, "a frame")?;
                let frame = FrameBuf::with_headroom(axon_wire::FrameBuf::HEADROOM, frame);
                Input::Frame { port, frame, complete_at, intact: head & INTACT != 0 }
            }
            TX_DONE => Input::TxDone { port: self.port()? },
            LINK_DOWN => Input::Link { port: self.port()?, up: false },
            LINK_UP => Input::Link { port: self.port()?, up: true },
            TIMEOUT => Input::Timeout,
            COMMAND => {
                let count = self.number("a length")?;
                let bytes = self.take(count, "a command")?;
                let command = postcard::from_bytes::<Command>(bytes);
                Input::Command(command.map_err(|error| format!("not a command: {error}"))?)
            }
            kind => return Err(format!("a record of unknown kind {kind}")),
        };
        let (mut actions, mut hash) = (0, 0);
        if head & ANSWERED != 0 {
            actions = self.number("a count")?;
            let bytes = self.take(8, "a hash")?;
            hash = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        }
        Ok(Taken { at, input, actions, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::probe::ProbePlan;
    use axon_node::{Request, RequestId};
    use axon_wire::FrameBuf;

    fn inputs() -> Vec<Input> {
        let at = Time::from_nanos(5_000);
        let port = PortNo(300);
        let frame = |complete_at, intact| Input::Frame {
            port,
            frame: FrameBuf::new(&[7; 200]),
            complete_at,
            intact,
        };
        let plan = ProbePlan::out_and_back(&[PortNo(1)], &[PortNo(2)]);
        vec![
            frame(at, true),
            frame(Time::from_nanos(4_900), false),
            frame(Time::MAX, true),
            Input::TxDone { port },
            Input::Link { port, up: true },
            Input::Link { port, up: false },
            Input::Timeout,
            Input::Command(Command { id: RequestId(u64::MAX), request: Request::Probe(plan) }),
        ]
    }

    #[test]
    fn every_input_survives_its_bytes() {
        let (before, at) = (Time::from_nanos(4_000), Time::from_nanos(5_000));
        for (index, input) in inputs().into_iter().enumerate() {
            let mut bytes = Vec::new();
            put_input(&mut bytes, before, at, &input);
            put_answer(&mut bytes, 0, index as u64, 99);
            let mut cursor = Cursor::new(&bytes, 0);
            let taken = cursor.record(before).unwrap();
            assert_eq!((taken.at, taken.input, taken.actions), (at, input, index as u64));
            assert_eq!((taken.hash, cursor.at), (if index > 0 { 99 } else { 0 }, bytes.len()));
            for end in 0..bytes.len() {
                assert!(Cursor::new(&bytes[..end], 0).record(before).is_err());
            }
        }
    }

    #[test]
    fn numbers_of_any_size_and_sign_survive() {
        for number in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(Cursor::new(&bytes, 0).number("it"), Ok(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
        assert!(Cursor::new(&[0xff; 10], 0).number("it").is_err());
    }

    #[test]
    fn actions_that_differ_have_other_bytes() {
        let frame = || FrameBuf::new(&[7; 20]);
        let (port, complete_at) = (PortNo(1), Time::from_nanos(5));
        let transmit = |port, complete_at, intact, frame| Action::Transmit {
            port,
            frame,
            complete_at,
            intact,
        };
        let actions = [
            transmit(port, complete_at, true, frame()),
            transmit(port, complete_at, false, frame()),
            transmit(PortNo(2), complete_at, true, frame()),
            transmit(port, Time::ZERO, true, frame()),
            transmit(port, complete_at, true, FrameBuf::new(&[8; 20])),
            Action::Dropped { ingress: port, reason: axon_node::Drop::Malformed, frame: frame() },
            Action::Dropped { ingress: port, reason: axon_node::Drop::BadFcs, frame: frame() },
            Action::Punt { ingress: port, frame: frame(), punt: Punt::Miss, header_bytes: 0 },
            Action::Lost,
            Action::Note(axon_node::Note::ControllerPath { reachable: true }),
            Action::Note(axon_node::Note::ControllerPath { reachable: false }),
        ];
        let bytes = actions.map(|action| {
            let mut bytes = Vec::new();
            encode_action(&action, &mut bytes);
            bytes
        });
        let distinct: std::collections::BTreeSet<&Vec<u8>> = bytes.iter().collect();
        assert_eq!(distinct.len(), bytes.len());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes: Vec<u8>, before: u64) {
            let mut cursor = Cursor::new(&bytes, 0);
            let mut last = Time::from_ticks(before);
            while let Ok(taken) = cursor.record(last) {
                assert!(taken.at >= last && cursor.at <= bytes.len());
                last = taken.at;
            }
        }
    }
}
