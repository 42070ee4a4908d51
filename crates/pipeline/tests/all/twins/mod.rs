//! A pipeline and the reference interpreter side by side, with equal changes, equal frames, and
//! equal results after each.

mod draw;

use super::reference::{Outcome, Reference, Stored, action_of};
use axon_node::{Action, Drop, Input, Node, Punt};
use axon_pipeline::{
    Change, EntryName, Pipeline, PipelineConfig, Register, Sizes, TableName, UdlkId,
};
use axon_plane::PuntLimit;
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};
pub use draw::{Draw, PORTS};
use std::collections::BTreeMap;

/// Coverage of a run, so that a test can check that its cases are of all kinds.
#[derive(Default)]
pub struct Seen {
    pub frames: u64,
    /// Refused transactions, by reason.
    pub refused: BTreeMap<String, u64>,
    pub committed: u64,
    pub dropped: BTreeMap<Drop, u64>,
    pub sent: u64,
    pub to_cpu: u64,
    /// Frames that matched an entry, by table; `None` counts frames without a match.
    pub met: BTreeMap<Option<TableName>, u64>,
}

pub struct Twins {
    pipeline: Pipeline,
    reference: Reference,
    now: Time,
    pub seen: Seen,
}

impl Twins {
    /// Four ports with carrier, and tables of drawn sizes: empty, or with lookup keys, some objects
    /// and up to `entries` entries.
    pub fn new(draw: &mut Draw, entries: u32) -> Option<Twins> {
        let few = draw.one_in(3)?;
        let of = |few_entries, many| if few { few_entries } else { many };
        let sizes = Sizes {
            mac: of(4, 12),
            ipv4: of(3, 20),
            mpls: of(2, 6),
            prefix: of(4, 30),
            tcam: 1100,
            interface: 6,
            group: 4,
            tunnel: 3,
        };
        let mut twins = Twins::of_sizes(sizes, draw.byte()?.into());
        // Objects first, so that most objects named by entries exist.
        for _ in 0..entries / 4 {
            let objects = [draw.interface(false)?, draw.group(false)?, draw.tunnel(false)?];
            objects.into_iter().for_each(|change| twins.commit(&[change]));
        }
        for id in (0..entries.min(4) as u8).map(UdlkId) {
            twins.commit(&[Change::Udlk(id, Some(draw.udlk()?))]);
        }
        for _ in 0..entries {
            let change = draw.change(&twins.reference)?;
            twins.commit(&[change]);
        }
        Some(twins)
    }

    /// Four ports with carrier, and empty tables of these sizes.
    pub fn of_sizes(sizes: Sizes, seed: u64) -> Twins {
        let config = PipelineConfig {
            sizes,
            cpu: PuntLimit { frames_per_second: 1000, burst: 5 },
            seed,
            ..PipelineConfig::with_ports(PORTS, MacAddr([2, 0, 0, 0, 0, 99]))
        };
        let mut twins = Twins {
            pipeline: Pipeline::new(config.clone()),
            reference: Reference::new(config),
            now: Time::ZERO,
            seen: Seen::default(),
        };
        (0..PORTS).for_each(|port| twins.link(PortNo(port), true));
        twins
    }

    /// Fills empty tables with entries, none of which the pipeline may refuse. The reference takes
    /// them unchecked: its own checks would take time quadratic in their number.
    #[allow(dead_code, reason = "the fuzz target fills nothing")]
    pub fn fill(&mut self, changes: Vec<Change>) {
        assert_eq!(self.pipeline.commit(&changes), Ok(()));
        let stored = |change| Stored { change, frames: 0, bytes: 0 };
        self.reference.entries = changes.into_iter().map(stored).collect();
    }

    /// Applies one event to both.
    pub fn step(&mut self, draw: &mut Draw) -> Option<()> {
        self.now = Time::from_nanos(self.now.as_nanos() + u64::from(draw.byte()?) * 1000);
        match draw.below(40)? {
            0..4 => {
                let count = draw.of(&[1, 1, 2, 4, 8])?;
                let changes: Option<Vec<Change>> =
                    (0..count).map(|_| draw.change(&self.reference)).collect();
                self.commit(&changes?);
            }
            4 => {
                let port = PortNo(draw.below(PORTS)?);
                self.link(port, !draw.one_in(3)?);
            }
            5 => {
                let (port, rate) = (PortNo(draw.below(PORTS)?), draw.of(&[0, 1, 1000, 100_000])?);
                let written = self.pipeline.write_register(Register::CpuRate(port), rate.into());
                assert_eq!(written, Ok(()));
                self.reference.set_cpu_rate(port, rate);
            }
            6 | 7 => {
                let port = if draw.one_in(2)? { Some(draw.port()?) } else { None };
                let frame = draw.frame()?;
                let mut out = Vec::new();
                self.pipeline.inject(self.now, port, &frame, &mut out);
                let expected = self.reference.inject(self.now, port, &frame);
                self.compare(out, &expected);
            }
            8 => {
                let (port, frame) = (draw.port()?, draw.frame()?);
                let mut out = Vec::new();
                self.pipeline.send(self.now, port, &frame, &mut out);
                let expected = self.reference.send(self.now, port, &frame);
                self.compare(out, &expected);
            }
            _ => {
                let port = PortNo(draw.below(PORTS)?);
                let (intact, frame) = (!draw.one_in(100)?, draw.frame()?);
                self.receive(port, frame, intact);
            }
        }
        Some(())
    }

    fn link(&mut self, port: PortNo, up: bool) {
        self.pipeline.handle(self.now, Input::Link { port, up }, &mut Vec::new());
        self.reference.link(port, up);
    }

    /// Receives a frame at a port of both.
    pub fn receive(&mut self, port: PortNo, frame: Vec<u8>, intact: bool) {
        let explained = intact.then(|| self.pipeline.explain(port, &frame));
        let expected = self.reference.receive(self.now, port, &frame, intact);
        if let Some(explained) = explained {
            let mut sent: BTreeMap<PortNo, Vec<Vec<u8>>> = BTreeMap::new();
            for (port, bytes) in explained.sent {
                sent.entry(port).or_default().push(bytes);
            }
            assert_eq!(sent, expected.sent, "{:#?}", explained.stages);
            let is_limited = expected.dropped.contains(&(port, Drop::PuntLimit));
            let to_cpu = !expected.to_cpu.is_empty() || is_limited;
            assert_eq!(explained.to_cpu, to_cpu, "{:#?} {:?}", explained.stages, expected.dropped);
        }
        let mut out = Vec::new();
        let (frame, complete_at) = (FrameBuf::new(&frame), self.now);
        let input = Input::Frame { port, frame, complete_at, intact };
        self.pipeline.handle(self.now, input, &mut out);
        self.compare(out, &expected);
    }

    fn commit(&mut self, changes: &[Change]) {
        let result = self.pipeline.commit(changes);
        let expected = self.reference.commit(changes);
        assert_eq!(result, expected, "{changes:#?}");
        match result {
            Ok(()) => self.seen.committed += 1,
            Err(error) => {
                let reason = format!("{:?}", error.reason);
                let name = reason.split([' ', '(', '{']).next().unwrap_or_default().to_string();
                *self.seen.refused.entry(name).or_default() += 1;
                self.compare_tables();
            }
        }
    }

    /// Compares the actions of the pipeline with the expected ones, and all counters of ports.
    fn compare(&mut self, mut out: Vec<Action>, expected: &Outcome) {
        let mut found = Outcome::default();
        while !out.is_empty() {
            for action in std::mem::take(&mut out) {
                match action {
                    Action::Transmit { port, frame, intact, .. } => {
                        assert!(intact);
                        found.sent.entry(port).or_default().push(frame.bytes().to_vec());
                        self.pipeline.handle(self.now, Input::TxDone { port }, &mut out);
                    }
                    Action::Punt { ingress, frame, punt: Punt::Trap, header_bytes: 0 } => {
                        found.to_cpu.push((ingress, frame.bytes().to_vec()));
                    }
                    Action::Dropped { ingress, reason, .. } => {
                        found.dropped.push((ingress, reason))
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(found, *expected);
        let counters = self.pipeline.ports().counters();
        for (index, expected) in (0..).zip(&self.reference.counters) {
            let port = if index == PORTS { PortNo::CONTROL } else { PortNo(index) };
            assert_eq!(counters.port(port), *expected, "port {port}");
        }
        let Seen { frames, sent, to_cpu, dropped, .. } = &mut self.seen;
        *frames += 1;
        *sent += found.sent.values().map(|all| all.len() as u64).sum::<u64>();
        *to_cpu += found.to_cpu.len() as u64;
        found.dropped.iter().for_each(|(_, reason)| *dropped.entry(*reason).or_default() += 1);
    }

    /// Compares all entries of all tables, with their counters.
    pub fn compare_tables(&self) {
        let tables = self.pipeline.tables();
        for table in TableName::ALL {
            let mut expected: Vec<_> = self
                .reference
                .entries
                .iter()
                .filter(|stored| stored.change.entry().table() == Some(table))
                .map(|stored| (stored.change.clone(), stored.frames, stored.bytes))
                .collect();
            expected.sort_by_key(|(change, ..)| change.entry());
            let shown = tables.entries(table).into_iter();
            let found: Vec<_> = shown.map(|of| (of.change, of.frames, of.bytes)).collect();
            assert_eq!(found, expected, "{table}");
            assert_eq!(tables.count(table).entries as usize, found.len());
        }
        let miss = EntryName::Miss;
        assert_eq!(tables.counters(miss), self.reference.counters_of_entry(miss));
    }

    /// Compares the tables, and counts which of them frames have matched.
    pub fn finish(mut self) -> Seen {
        self.compare_tables();
        for stored in &self.reference.entries {
            if action_of(&stored.change).is_some() {
                let table = stored.change.entry().table();
                *self.seen.met.entry(table).or_default() += stored.frames;
            }
        }
        self.seen
    }
}
