//! Invariants for any bytes that are read as a recording: nothing panics, and records are in order.

use axon_capture::recording::{Header, Reader, Writer};
use axon_node::{Input, NodeKind};
use axon_wire::{FrameBuf, Incarnation, Time};

/// Reads `bytes` as a recording, and as the part of a recording that follows its header.
pub fn check(bytes: &[u8]) {
    read(bytes);
    let header = Header {
        made_by: String::new(),
        kind: NodeKind::Switch,
        name: String::new(),
        incarnation: Incarnation::default(),
        ports: Vec::new(),
        unix_nanos: 0,
        config_digest: 0,
        setup: Vec::new(),
    };
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &header, u64::MAX).expect("memory has room");
    // The bytes are framed, so the checksums around them are correct.
    let frame = FrameBuf::new(bytes);
    let at = Time::from_nanos(1);
    let input = Input::Frame { port: Default::default(), frame, complete_at: at, intact: true };
    writer.input(at, &input);
    writer.answer(&[]).expect("memory has room");
    writer.flush().expect("memory has room");
    assert_eq!(read(&file), 1);
    file.extend_from_slice(bytes);
    assert!(read(&file) >= 1);
}

/// Reads a recording and returns its number of records.
fn read(bytes: &[u8]) -> u64 {
    let Ok(mut reader) = Reader::new(bytes) else {
        return 0;
    };
    let (mut records, mut last) = (0, Time::ZERO);
    while let Ok(Some(record)) = reader.next_record() {
        records += 1;
        assert!(record.number == records && record.at >= last);
        last = record.at;
    }
    records
}
