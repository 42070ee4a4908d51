//! Any bytes as a probe and as a congestion message: no panic, what is read is written back as
//! it was, and a record appended is the last one read.

use axon_wire::congestion::Congestion;
use axon_wire::probe::{self, HEAD_BYTES, ProbeRecord, ProbeUnit, ProbeView, RECORD_BYTES};
use axon_wire::{Bytes, FrameBuf, PortNo, Time};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    if let Ok(message) = Congestion::parse(bytes) {
        assert_eq!(Congestion::parse(&message.emit()), Ok(message));
    }
    for at in [0, 1, bytes.len()] {
        let options = probe::options_at(bytes, at);
        assert!(options.0 == 0 || bytes.len() >= at + HEAD_BYTES);
    }
    let Ok(view) = ProbeView::parse(bytes) else { return };
    let (head, records): (_, Vec<ProbeRecord>) = (view.head(), view.records().collect());
    let body = usize::from(head.body_bytes);
    assert_eq!(records.len() * RECORD_BYTES + body, bytes.len());
    assert_eq!(head.emit().len(), body);
    let mut frame = FrameBuf::new(bytes);
    let record = ProbeRecord {
        unit: ProbeUnit::Egress,
        port: PortNo(bytes[0].into()),
        queued: Bytes(bytes.len() as u64),
        time: Time::from_ticks(u64::MAX - bytes.len() as u64),
    };
    probe::append(&mut frame, &record).expect("a vector has room");
    let longer = ProbeView::parse(frame.bytes()).expect("it was a probe before");
    assert_eq!(longer.head(), head);
    assert!(longer.records().eq(records.into_iter().chain([record])));
}
