//! Figure 6 (004 §5.1): a pipeline that forwards BCube's source routes, in memory.

use anyhow::{Result, ensure};
use axon_node::{Action, Input, Node};
use axon_pipeline::{
    Action as Entry, Change, Field, Interface, Modify, Pipeline, PipelineConfig, TableName, Target,
    TcamEntry, Udlk, UdlkId,
};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
use std::time::{Duration, Instant};

/// Frame lengths of the figure in bytes.
pub(crate) const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1514];
/// Neighbours of a server of BCube_1 with 16 servers.
pub(crate) const NEIGHBOURS: u8 = 6;
/// Index values: next-hop addresses of a header.
pub(crate) const INDEXES: u8 = 8;
/// Number of external ports, and of the internal ones behind them.
const PORTS: u16 = 4;
/// Offsets of the header fields.
const TTL: usize = 22;
const CHECKSUM: usize = 24;
const ADDRESSES: usize = 34;
/// Number of measurements of which the best counts, and the duration of each.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(150);
/// Frames forwarded between two reads of the clock.
const BATCH: usize = 1024;

/// Pipeline with the tables of figure 6, and frames for it.
pub struct Routing {
    pipeline: Pipeline,
    frames: Vec<FrameBuf>,
    ways: [Interface; NEIGHBOURS as usize],
}

impl Routing {
    /// Fills the tables.
    ///
    /// # Errors
    /// The tables refuse such entries.
    pub(crate) fn new(bytes: usize) -> Result<Routing> {
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let config = PipelineConfig::with_ports(2 * PORTS, mac(0));
        let mut pipeline = Pipeline::new(config);
        for port in (0..2 * PORTS).map(PortNo) {
            pipeline.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
        }
        let ways = std::array::from_fn(|number| Interface {
            port: PortNo(number as u16 % PORTS),
            destination: Some(mac(100 + number as u8)),
            source: Some(mac(0)),
        });
        pipeline.commit(&changes(&ways))?;
        let frames = (0..64).map(|number| FrameBuf::new(&frame(bytes, number))).collect();
        Ok(Routing { pipeline, frames, ways })
    }

    /// Returns the number of TCAM entries that route by index.
    pub(crate) fn entries(&self) -> usize {
        let entries = self.pipeline.tables().entries(TableName::Tcam).into_iter();
        let key = |change: &Change| match change {
            Change::Tcam(_, Some(entry)) => Some(entry.udlk),
            _ => None,
        };
        entries.filter(|shown| key(&shown.change) == Some(UdlkId(1))).count()
    }

    /// Measures millions of packets per second on this core: by the pipeline, and by an array in
    /// software.
    ///
    /// # Errors
    /// A frame was not forwarded.
    pub(crate) fn measure(&mut self) -> Result<(f64, f64)> {
        let (mut tables, mut array): (f64, f64) = (0.0, 0.0);
        // Alternately, so that both run under equal conditions.
        for _ in 0..ROUNDS {
            tables = tables.max(self.round(Routing::forward)?);
            array = array.max(self.round(Routing::forward_by_array)?);
        }
        Ok((tables, array))
    }

    fn round(&mut self, forward: impl Fn(&mut Routing, usize) -> Result<()>) -> Result<f64> {
        let started = Instant::now();
        let mut count = 0;
        while started.elapsed() < ROUND {
            for number in 0..BATCH {
                forward(self, number % self.frames.len())?;
            }
            count += BATCH;
        }
        Ok(count as f64 / started.elapsed().as_secs_f64() / 1e6)
    }

    /// Forwards one frame through the pipeline and restores its TTL.
    fn forward(&mut self, number: usize) -> Result<()> {
        let mut out = Vec::with_capacity(4);
        let frame = std::mem::replace(&mut self.frames[number], FrameBuf::from_vec(Vec::new(), 0));
        let ttl = frame.bytes()[TTL];
        let port = PortNo(number as u16 % PORTS);
        let input = Input::Frame { port, frame, complete_at: Time::ZERO, intact: true };
        self.pipeline.handle(Time::ZERO, input, &mut out);
        let Some(Action::Transmit { port, mut frame, .. }) = out.pop() else {
            anyhow::bail!("a frame was not forwarded");
        };
        self.pipeline.handle(Time::ZERO, Input::TxDone { port }, &mut out);
        ensure!(frame.bytes()[TTL] + 1 == ttl, "the TTL is not one less");
        frame.bytes_mut()[TTL] = ttl;
        self.frames[number] = frame;
        Ok(())
    }

    /// Forwards one frame without tables: the next-hop address is an index into an array.
    fn forward_by_array(&mut self, number: usize) -> Result<()> {
        let bytes = self.frames[number].bytes_mut();
        let index = usize::from(bytes[TTL]).checked_sub(2);
        let address = index.and_then(|index| bytes.get(ADDRESSES + index)).copied();
        let way = address.and_then(|address| self.ways.get(usize::from(address)));
        let Some(Interface { port, destination, source }) = way else {
            anyhow::bail!("a frame was not forwarded");
        };
        bytes[..6].copy_from_slice(&destination.unwrap_or_default().0);
        bytes[6..12].copy_from_slice(&source.unwrap_or_default().0);
        let checksum = u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]]);
        let (sum, carry) = checksum.overflowing_add(0x100);
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
        bytes[TTL] -= 1;
        let sent = std::hint::black_box((port, bytes));
        sent.1[TTL] += 1;
        Ok(())
    }
}

/// Returns lines 1 to 38 of figure 6.
fn changes(ways: &[Interface]) -> Vec<Change> {
    let bytes = |first, last| Field::Bytes { first, last };
    let mut changes = vec![
        Change::Udlk(UdlkId(1), Some(Udlk::new([bytes(22, 25), bytes(34, 41)]))),
        Change::Udlk(UdlkId(2), Some(Udlk::new([Field::Ingress, bytes(30, 33), bytes(42, 45)]))),
    ];
    let mut place = 0;
    let mut enter = |udlk, value: &[u8], mask: &[u8], action: Entry| {
        let (value, mask) = (value.to_vec(), mask.to_vec());
        let entry = TcamEntry { udlk: UdlkId(udlk), value, mask, action };
        place += 1;
        Change::Tcam(place - 1, Some(entry))
    };
    for (address, way) in (0..NEIGHBOURS).zip(ways) {
        changes.push(Change::Interface(address.into(), Some(*way)));
        for index in 0..INDEXES {
            let (mut value, mut mask) = ([0; 12], [0; 12]);
            (value[0], mask[0]) = (index + 2, 0xff);
            let at = 4 + usize::from(index);
            (value[at], mask[at]) = (address, 0xff);
            let action = Entry::from(Target::Interface(address.into()));
            changes.push(enter(1, &value, &mask, action.with(Modify::DecrementTtl)));
        }
    }
    for port in 0..PORTS {
        let to_server = Entry::from(Target::Port(PortNo(PORTS + port)));
        let own = [0, port as u8, 10, 0, 0, 1, 0, 0, 0, 0];
        let own_mask = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        changes.push(enter(2, &own, &own_mask, to_server.clone()));
        for protocol in [1, 2] {
            let control = [0, port as u8, 0, 0, 0, 0, protocol, 0, 0, 0];
            let mask = [0xff, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0];
            changes.push(enter(2, &control, &mask, to_server.clone()));
        }
    }
    changes
}

/// Returns a frame in transit with the header of figure 5.
fn frame(bytes: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![0; bytes.max(60)];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[TTL] = 2 + number % INDEXES;
    frame[23] = 253;
    frame[30..34].copy_from_slice(&[10, 0, 0, 9]);
    for at in 0..INDEXES {
        frame[ADDRESSES + usize::from(at)] = (number / INDEXES + at) % NEIGHBOURS;
    }
    frame
}
