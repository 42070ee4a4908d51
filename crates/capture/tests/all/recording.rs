//! Recordings are read back unchanged, and later alterations are detected.

mod model;

use axon_capture::recording::{
    EndReason, Ending, Header, Reader, Record, RecordingError, Writer, encode_action, hash,
};
use axon_node::{Action, Input, NodeKind, Note};
use axon_wire::{FrameBuf, Incarnation, NodeId, PortNo, Time};
use proptest::prelude::*;
use std::fs::File;

fn header() -> Header {
    Header {
        made_by: "axon test".into(),
        kind: NodeKind::Switch,
        name: "s1".into(),
        incarnation: Incarnation { node: NodeId(1), number: 5 },
        ports: vec!["s1-p0".into(), "s1-p1".into()],
        unix_nanos: 7,
        config_digest: 8,
        setup: vec![9; 50],
    }
}

/// Returns input number `index` and the node's answer to it.
fn step(index: u64) -> (Time, Input, Vec<Action>) {
    let at = Time::from_nanos(1_000 * index + 3);
    let port = PortNo((index % 2) as u16);
    let frame = || FrameBuf::new(&vec![index as u8; 60 + index as usize % 90]);
    let input = match index % 4 {
        0 => Input::Frame { port, frame: frame(), complete_at: at, intact: true },
        1 => Input::TxDone { port },
        2 => Input::Link { port, up: true },
        _ => Input::Timeout,
    };
    let note = Action::Note(Note::ControllerPath { reachable: true });
    let transmit = Action::Transmit { port, frame: frame(), complete_at: at, intact: true };
    (at, input, if index.is_multiple_of(3) { vec![] } else { vec![note, transmit] })
}

/// Makes a recording of `steps` steps, flushed after every ten.
fn recording(steps: u64, bytes_max: u64) -> (Vec<u8>, Option<EndReason>) {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &header(), bytes_max).unwrap();
    let mut ended = None;
    for index in 0..steps {
        let (at, input, actions) = step(index);
        writer.input(at, &input);
        ended = writer.answer(&actions).unwrap();
        if index % 10 == 9 {
            writer.flush().unwrap();
        }
    }
    writer.finish(EndReason::Stopped).unwrap();
    (file, ended)
}

/// Reads all records. Returns them and the end of the recording.
fn read(file: &[u8]) -> (Vec<Record>, Result<Ending, RecordingError>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, Ok(reader.ending().expect("it has ended"))),
            Err(error) => return (records, Err(error)),
        }
    }
}

fn check(records: &[Record]) {
    for (index, record) in records.iter().enumerate() {
        let (at, input, actions) = step(index as u64);
        assert_eq!((record.number, record.at, &record.input), (index as u64 + 1, at, &input));
        let mut bytes = Vec::new();
        actions.iter().for_each(|action| encode_action(action, &mut bytes));
        let expected = if actions.is_empty() { 0 } else { hash(&bytes) };
        assert_eq!((record.actions, record.hash), (actions.len() as u64, expected));
    }
}

#[test]
fn what_is_recorded_reads_the_same() {
    let (file, _) = recording(57, u64::MAX);
    let (records, end) = read(&file);
    assert_eq!(records.len(), 57);
    check(&records);
    assert_eq!(end.unwrap(), Ending::Whole(EndReason::Stopped));
    assert_eq!(*Reader::new(&file[..]).unwrap().header(), header());
}

#[test]
fn a_recording_that_is_cut_short_is_read_up_to_its_last_whole_block() {
    let (file, _) = recording(57, u64::MAX);
    let mut counts = std::collections::BTreeSet::new();
    for bytes in 0..file.len() {
        let (records, end) = read(&file[..bytes]);
        check(&records);
        match end {
            Ok(Ending::Cut { offset }) => assert!(offset as usize <= bytes),
            Err(RecordingError::NoHeader { .. }) => assert_eq!(records.len(), 0),
            Err(RecordingError::NotARecording) if bytes == 0 => {}
            other => panic!("cut at {bytes}: {other:?}"),
        }
        counts.insert(records.len());
    }
    assert_eq!(counts, [0, 10, 20, 30, 40, 50, 57].into());
}

#[test]
fn a_recording_that_reaches_its_bound_ends_cleanly_and_says_so() {
    let whole = recording(57, u64::MAX).0.len() as u64;
    for bytes_max in (whole / 3..whole).step_by(37) {
        let (file, ended) = recording(57, bytes_max);
        assert_eq!(ended, Some(EndReason::SizeBound));
        assert!(file.len() as u64 <= bytes_max);
        let (records, end) = read(&file);
        assert!(!records.is_empty() && records.len() < 57, "{}", records.len());
        check(&records);
        assert_eq!(end.unwrap(), Ending::Whole(EndReason::SizeBound));
    }
    let error = Writer::new(Vec::new(), &header(), 100).err().expect("no room for a header");
    assert!(error.to_string().contains("the header alone"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let error = Writer::new(full, &header(), u64::MAX).err().expect("no room");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn blocks_that_were_moved_or_are_of_another_recording_are_found() {
    let (one, _) = recording(57, u64::MAX);
    let mut file = Vec::new();
    let mut writer =
        Writer::new(&mut file, &Header { unix_nanos: 9, ..header() }, u64::MAX).unwrap();
    writer.finish(EndReason::Stopped).unwrap();
    let begin = one.windows(4).position(|word| word == b"AXRb").expect("it has a block");
    let end = file.windows(4).position(|word| word == b"AXRe").expect("it has an end");
    assert_eq!(begin, end, "headers of one length");
    let mixed = [&file[..end], &one[begin..]].concat();
    let (records, end) = read(&mixed);
    assert!(records.is_empty());
    let at = begin as u64;
    assert!(matches!(end, Err(RecordingError::Altered { place, .. }) if place.offset == at));
}

#[test]
fn what_is_no_recording_is_refused() {
    for garbage in [&b""[..], b"AXON", &[0; 500], b"\x0a\x0d\x0d\x0a and so on, for a while"] {
        let error = read(garbage).1.expect_err("it is none").to_string();
        assert!(error.starts_with("byte "), "{error}");
    }
}

proptest! {
    /// The error gives the changed byte and its original value. It names the record that contains
    /// the byte, and all earlier records are read.
    #[test]
    fn a_byte_that_is_changed_is_found_with_its_place(
        at in any::<prop::sample::Index>(), by in 1u8..,
    ) {
        let (mut file, _) = recording(57, u64::MAX);
        let whole = read(&file).0;
        let at = at.index(file.len());
        file[at] ^= by;
        let (records, end) = read(&file);
        check(&records);
        match end {
            Err(RecordingError::AlteredByte { place, written, found }) => {
                prop_assert_eq!((place.offset, found), (at as u64, file[at]));
                prop_assert_eq!(written, file[at] ^ by);
                let holds = whole.iter().rposition(|record| record.offset <= place.offset);
                let record = &whole[holds.unwrap_or(0)];
                // For a change between two blocks, the error names the next record, with the time
                // of the last one.
                let named = [record.number, record.number + 1];
                prop_assert!(named.contains(&place.record), "{} at {}", place, record.number);
                let last = whole[records.len().saturating_sub(1)].at;
                prop_assert!(place.time >= last || records.is_empty());
            }
            other => prop_assert!(false, "byte {}: {:?}", at, other),
        }
    }

    #[test]
    fn a_frame_of_any_bytes_is_recorded_and_what_follows_does_not_hide_it(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        model::check(&bytes);
    }
}

#[test]
fn names_that_could_confuse_a_terminal_are_refused() {
    let clear = || "\x1b[2Jaxon".to_owned();
    let headers = [
        Header { made_by: clear(), ..header() },
        Header { name: clear(), ..header() },
        Header { ports: vec!["s1-p0".into(), clear()], ..header() },
    ];
    for header in headers {
        let mut file = Vec::new();
        Writer::new(&mut file, &header, u64::MAX).unwrap();
        let error = Reader::new(&file[..]).err().expect("it is refused").to_string();
        assert!(error.contains("control characters") && !error.contains('\x1b'), "{error}");
    }
}
