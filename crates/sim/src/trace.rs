//! The trace: everything that happened, in order, folded into one hash.
//!
//! Each event becomes a fixed record of bytes that runs through XXH3 (64 bits); frames
//! enter by length and XXH3 of their bytes. The same fabric and seed give the same hash on
//! every machine. On request the same events are also written as lines of text.

use crate::links::Loss;
use axon_fabric::model::FaultKind;
use axon_plane::{Drop, Note};
use axon_wire::{PortNo, Time};
use std::io::Write;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes of each sent frame that a line of text shows.
const HEAD_BYTES: usize = 64;

/// Something that happened at a station.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// It put a frame on the wire.
    Sent(&'a [u8]),
    /// A frame came in.
    Received(&'a [u8]),
    /// A frame that it had sent never came out of the link.
    Lost(Loss, &'a [u8]),
    /// A frame ended inside it.
    Dropped(Drop, &'a [u8]),
    /// Carrier came or went.
    Carrier(bool),
    /// It started (in this life) or lost power.
    Power(Option<u64>),
    /// It said something.
    Note(&'a Note),
    /// Something broke or came back, by plan.
    Fault(FaultKind),
}

/// Folds events into a hash, and writes them where somebody wants to read them.
pub struct Trace {
    hash: Box<Xxh3>,
    events: u64,
    names: Vec<String>,
    text: Option<Box<dyn Write>>,
    failure: Option<std::io::Error>,
}

impl Trace {
    /// An empty trace; lines go to `text`, if given.
    pub fn new(text: Option<Box<dyn Write>>) -> Trace {
        Trace { hash: Box::new(Xxh3::new()), events: 0, names: Vec::new(), text, failure: None }
    }

    /// Names the next station.
    pub fn name(&mut self, station: &str) {
        self.names.push(station.to_owned());
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// How many events it holds.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Why text could not be written, if so; writing stopped there.
    pub fn failure(&self) -> Option<&std::io::Error> {
        self.failure.as_ref()
    }

    /// Adds one event. `port` is [`PortNo::CONTROL`] where none is meant.
    pub fn add(&mut self, time: Time, station: usize, port: PortNo, what: What<'_>) {
        let (kind, detail, frame) = parts(&what);
        let (length, frame_hash) = frame.map_or((0, 0), |bytes| (bytes.len(), xxh3_64(bytes)));
        let mut record = [0; 35];
        record[..8].copy_from_slice(&time.ticks().to_le_bytes());
        record[8..12].copy_from_slice(&(station as u32).to_le_bytes());
        record[12..14].copy_from_slice(&port.0.to_le_bytes());
        record[14] = kind;
        record[15..23].copy_from_slice(&detail.to_le_bytes());
        record[23..27].copy_from_slice(&(length as u32).to_le_bytes());
        record[27..].copy_from_slice(&frame_hash.to_le_bytes());
        self.hash.update(&record);
        self.events += 1;
        if self.text.is_some() {
            self.write(time, station, port, what, frame_hash);
        }
    }

    fn write(&mut self, time: Time, station: usize, port: PortNo, what: What<'_>, hash: u64) {
        let Some(text) = &mut self.text else { return };
        let name = self.names.get(station).map_or("world", String::as_str);
        let place = match port {
            PortNo::CONTROL => name.to_owned(),
            port => format!("{name}-{port}"),
        };
        let said = match what {
            What::Sent(frame) => format!("sent {} B {hash:016x} {}", frame.len(), head(frame)),
            What::Received(frame) => format!("received {} B {hash:016x}", frame.len()),
            What::Lost(loss, frame) => {
                format!("lost {} {} B {hash:016x}", loss.name(), frame.len())
            }
            What::Dropped(reason, frame) => {
                format!("dropped {} {} B {hash:016x}", reason.name(), frame.len())
            }
            What::Carrier(up) => format!("carrier {}", if up { "up" } else { "down" }),
            What::Power(Some(life)) => format!("power on, life {life}"),
            What::Power(None) => "power off".to_owned(),
            What::Note(note) => format!("note {note:?}"),
            What::Fault(fault) => format!("fault {fault:?}"),
        };
        if let Err(error) = writeln!(text, "{time} {place} {said}") {
            self.failure = Some(error);
            self.text = None;
        }
    }

    /// Hands on text that is still buffered.
    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.text.as_mut().map(|text| text.flush()) {
            self.failure = Some(error);
        }
    }
}

/// The first bytes of a frame, as many as show what an ARP packet in a short route says.
fn head(frame: &[u8]) -> String {
    frame.iter().take(HEAD_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The kind of an event, what it says besides, and the frame it is about.
fn parts<'a>(what: &What<'a>) -> (u8, u64, Option<&'a [u8]>) {
    match *what {
        What::Sent(frame) => (1, 0, Some(frame)),
        What::Received(frame) => (2, 0, Some(frame)),
        What::Lost(loss, frame) => (3, loss as u64, Some(frame)),
        What::Dropped(reason, frame) => (4, reason as u64, Some(frame)),
        What::Carrier(up) => (5, u64::from(up), None),
        What::Power(life) => (6, life.map_or(0, |life| life.wrapping_add(1)), None),
        What::Note(note) => (7, xxh3_64(format!("{note:?}").as_bytes()), None),
        What::Fault(fault) => (8, xxh3_64(format!("{fault:?}").as_bytes()), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Page(Rc<RefCell<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_hash_tells_traces_apart_whether_or_not_they_are_written() {
        let page = Page::default();
        let mut silent = Trace::new(None);
        let mut written = Trace::new(Some(Box::new(page.clone())));
        written.name("s1");
        for trace in [&mut silent, &mut written] {
            trace.add(Time::from_nanos(5), 0, PortNo(2), What::Sent(&[1, 2, 3]));
            trace.add(Time::from_nanos(9), 0, PortNo::CONTROL, What::Power(None));
        }
        assert_eq!(silent.hash(), written.hash());
        silent.add(Time::from_nanos(9), 0, PortNo(0), What::Carrier(true));
        assert_ne!(silent.hash(), written.hash());
        let text = String::from_utf8(page.0.borrow().clone()).unwrap();
        assert!(text.starts_with("0.000000005s s1-p2 sent 3 B "), "{text}");
        assert!(text.ends_with("0.000000009s s1 power off\n"), "{text}");
    }
}
