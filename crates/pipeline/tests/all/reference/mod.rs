//! The reference interpreter: a slow and simple pipeline for tests.
//!
//! It shares the public types and the codec of the Axon header with the pipeline, and no code of
//! lookups, spreading, transactions or modifiers. All entries are in one list, as the changes that
//! made them, and every lookup searches all of it. A port is idle whenever a frame arrives; frames
//! leave a port in order.

mod commit;
mod flow;
mod frame;

use axon_node::counters::{PortCounters, PortEvent};
use axon_node::{Drop, Punt};
use axon_pipeline::{
    Action, Change, EntryName, Field, FrameType, Interface, MacKey, Mirror, PipelineConfig,
    PortOptions, Target, Udlk, UdlkId,
};
use axon_wire::header::HeaderView;
use axon_wire::{FrameBuf, PortNo, Time};
pub use commit::action_of;
use frame::{Frame, Read, read, read_axon};
use std::collections::BTreeMap;

/// An entry: the change that made it, and the count of frames that matched it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub change: Change,
    pub frames: u64,
    pub bytes: u64,
}

/// Result of processing a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Frames that left, by port, in order.
    pub sent: BTreeMap<PortNo, Vec<Vec<u8>>>,
    /// Frames for the control program, in order, each with its ingress port.
    pub to_cpu: Vec<(PortNo, Vec<u8>)>,
    /// Reasons of dropped frames, in order.
    pub dropped: Vec<(PortNo, Drop)>,
}

/// Rate limit of a port towards the control program, as the time (10 ps ticks) at which a sender at
/// the limit would send next.
#[derive(Clone, Copy)]
struct Limit {
    frames_per_second: u32,
    /// Time for frames whose target is the program.
    next: u64,
    /// Time for copies.
    next_copy: u64,
}

pub struct Reference {
    config: PipelineConfig,
    pub entries: Vec<Stored>,
    up: Vec<bool>,
    /// Counters by port, those of the control program last.
    pub counters: Vec<PortCounters>,
    limits: Vec<Limit>,
}

/// Origin of a frame.
#[derive(Clone, Copy)]
struct Origin {
    now: Time,
    /// Port used as ingress of the lookup.
    ingress: PortNo,
    /// Port whose counters count the frame.
    counted: PortNo,
    priority: u8,
}

impl Reference {
    pub fn new(config: PipelineConfig) -> Reference {
        let ports = usize::from(config.ports);
        let frames_per_second = config.cpu.frames_per_second;
        Reference {
            entries: Vec::new(),
            up: vec![false; ports],
            counters: vec![PortCounters::default(); ports + 1],
            limits: vec![Limit { frames_per_second, next: 0, next_copy: 0 }; ports],
            config,
        }
    }

    pub fn link(&mut self, port: PortNo, up: bool) {
        self.up[port.index()] = up;
    }

    pub fn set_cpu_rate(&mut self, port: PortNo, frames_per_second: u32) {
        self.limits[port.index()] = Limit { frames_per_second, next: 0, next_copy: 0 };
    }

    /// Receives a frame at a port.
    pub fn receive(&mut self, now: Time, port: PortNo, bytes: &[u8], intact: bool) -> Outcome {
        let mut outcome = Outcome::default();
        self.came(port, bytes);
        // The priority of the tag, customer or service (IEEE 802.1Q clause 6.9).
        let is_tagged = matches!(bytes.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
        let priority = bytes.get(14).filter(|_| is_tagged && bytes.len() >= 16);
        let mut priority = priority.map_or(0, |byte| byte >> 5);
        if self.options(port).axon {
            let header = HeaderView::parse(bytes, self.config.hop_width);
            priority = header.map_or(0, |header| header.fields().priority.value());
        }
        let origin = Origin { now, ingress: port, counted: port, priority };
        if !intact {
            self.drop(origin, Drop::BadFcs, &mut outcome);
        } else if self.has_fault(origin, bytes, &mut outcome) {
        } else if bytes[12..14] == [0x88, 0x08] {
            self.drop(origin, Drop::MacControl, &mut outcome);
        } else {
            self.pass(origin, bytes, &mut outcome);
        }
        outcome
    }

    /// Sends a frame of the control program as the tables decide.
    pub fn inject(&mut self, now: Time, port: Option<PortNo>, bytes: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        self.came(PortNo::CONTROL, bytes);
        let ingress = port.unwrap_or(PortNo::CONTROL);
        let origin = Origin { now, ingress, counted: PortNo::CONTROL, priority: 0 };
        if !self.has_fault(origin, bytes, &mut outcome) {
            self.pass(origin, bytes, &mut outcome);
        }
        outcome
    }

    /// Sends a frame of the control program out of a port.
    pub fn send(&mut self, now: Time, port: PortNo, bytes: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        self.came(PortNo::CONTROL, bytes);
        let counted = PortNo::CONTROL;
        let origin = Origin { now, ingress: counted, counted, priority: 0 };
        if !self.has_fault(origin, bytes, &mut outcome) {
            self.out(origin, port, bytes.to_vec(), &mut outcome);
        }
        outcome
    }

    fn counters_of(&mut self, port: PortNo) -> &mut PortCounters {
        let index = port.index().min(self.counters.len() - 1);
        &mut self.counters[index]
    }

    fn came(&mut self, port: PortNo, bytes: &[u8]) {
        let counters = self.counters_of(port);
        counters.rx_frames += 1;
        counters.rx_bytes += bytes.len() as u64;
    }

    fn drop(&mut self, origin: Origin, reason: Drop, outcome: &mut Outcome) {
        self.counters_of(origin.counted).count_many(PortEvent::Drop(reason), 1);
        outcome.dropped.push((origin.counted, reason));
    }

    /// True if a frame is too short for Ethernet, or longer than allowed; a tag and a CN-TAG add to
    /// the limit.
    fn has_fault(&mut self, origin: Origin, bytes: &[u8], outcome: &mut Outcome) -> bool {
        let is_tagged = matches!(bytes.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
        let at = if is_tagged { 16 } else { 12 };
        let has_cn_tag = bytes.get(at..at + 2) == Some(&[0x22, 0xe9]) && bytes.len() >= at + 4;
        let more = 4 * (usize::from(is_tagged) + usize::from(has_cn_tag));
        let reason = match bytes.len() {
            ..14 => Drop::Malformed,
            length if length > self.config.frame_bytes_max + more => Drop::Oversized,
            _ => return false,
        };
        self.drop(origin, reason, outcome);
        true
    }

    fn out(&mut self, origin: Origin, port: PortNo, bytes: Vec<u8>, outcome: &mut Outcome) {
        match self.up.get(port.index()) {
            None => self.drop(origin, Drop::NoSuchPort, outcome),
            Some(false) => self.drop(origin, Drop::PortDown, outcome),
            Some(true) => {
                let counters = self.counters_of(port);
                counters.tx_frames += 1;
                counters.tx_bytes += bytes.len() as u64;
                outcome.sent.entry(port).or_default().push(bytes);
            }
        }
    }

    /// Sends a copy to the control program.
    fn copy(&mut self, origin: Origin, bytes: &[u8], outcome: &mut Outcome) {
        self.trap(origin, bytes.to_vec(), |limit| &mut limit.next_copy, outcome);
    }

    /// Sends a frame to the control program, within the limit of the port.
    fn trap(
        &mut self,
        origin: Origin,
        bytes: Vec<u8>,
        next: fn(&mut Limit) -> &mut u64,
        outcome: &mut Outcome,
    ) {
        if let Some(limit) = self.limits.get_mut(origin.counted.index()) {
            let now = origin.now.as_nanos() * 100;
            let rate = u64::from(limit.frames_per_second);
            let interval = 100_000_000_000_u64.div_ceil(rate.max(1));
            let burst = u64::from(self.config.cpu.burst);
            let next = next(limit);
            if rate == 0 || burst == 0 || *next > now + interval * (burst - 1) {
                return self.drop(origin, Drop::PuntLimit, outcome);
            }
            *next = (*next).max(now) + interval;
        }
        self.counters_of(origin.counted).count_many(PortEvent::Punt(Punt::Trap), 1);
        outcome.to_cpu.push((origin.counted, bytes));
    }

    fn interface(&self, number: u16) -> Option<Interface> {
        self.entries.iter().find_map(|stored| match stored.change {
            Change::Interface(other, interface) if other == number => interface,
            _ => None,
        })
    }

    fn members(&self, number: u16) -> Vec<u16> {
        let group = self.entries.iter().find_map(|stored| match &stored.change {
            Change::Group(other, Some(group)) if *other == number => Some(group.interfaces.clone()),
            _ => None,
        });
        group.unwrap_or_default()
    }

    fn options(&self, port: PortNo) -> PortOptions {
        let options = self.entries.iter().find_map(|stored| match stored.change {
            Change::Port(other, options) if other == port => options,
            _ => None,
        });
        options.unwrap_or_default()
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.up.get(port.index()).copied().unwrap_or(false)
    }

    fn pass(&mut self, origin: Origin, bytes: &[u8], outcome: &mut Outcome) {
        let is_axon = self.options(origin.ingress).axon;
        let read = if is_axon { read_axon() } else { read(bytes) };
        if self.is_to_learn(&read, origin.ingress) {
            self.counters_of(origin.counted).copies += 1;
            self.copy(origin, bytes, outcome);
        }
        let mut action = self.meet(origin, bytes, &read, |_| true, outcome);
        if action.as_ref().is_some_and(|action| action.target == Target::Tables) {
            let decides = |action: &Action| action.target != Target::Tables;
            action = self.meet(origin, bytes, &read, decides, outcome);
        }
        let Some(action) = action else {
            return self.drop(origin, Drop::NoRoute, outcome);
        };
        match self.modified(origin, bytes, &action) {
            Ok(frame) => self.go(origin, (bytes, frame), action.target, outcome),
            Err(reason) => self.drop(origin, reason, outcome),
        }
    }

    /// Counts a frame at the winning entry, and sends a copy to its mirror.
    fn meet(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        read: &Read,
        among: fn(&Action) -> bool,
        outcome: &mut Outcome,
    ) -> Option<Action> {
        let index = self.winner(bytes, read, origin, among)?;
        let stored = &mut self.entries[index];
        stored.frames += 1;
        stored.bytes += bytes.len() as u64;
        let action = action_of(&stored.change).cloned().unwrap();
        if let Some(mirror) = action.mirror {
            self.counters_of(origin.counted).copies += 1;
            match mirror {
                Mirror::Cpu => self.copy(origin, bytes, outcome),
                Mirror::Port(port) => self.out(origin, port, bytes.to_vec(), outcome),
            }
        }
        Some(action)
    }

    fn modified(&self, origin: Origin, bytes: &[u8], action: &Action) -> Result<Frame, Drop> {
        let headroom = FrameBuf::HEADROOM;
        let is_axon = self.options(origin.ingress).axon;
        let mut frame = Frame { bytes: bytes.to_vec(), headroom, is_axon };
        let tunnel = |number| {
            let found = self.entries.iter().find_map(|stored| match &stored.change {
                Change::Tunnel(other, tunnel) if *other == number => tunnel.clone(),
                _ => None,
            });
            found.expect("tunnels in use stay")
        };
        for change in &action.modify {
            frame.modify(change, (origin.ingress, self.config.hop_width), tunnel)?;
        }
        Ok(frame)
    }

    /// Sends a frame to its target. `came` is the frame as received, which determines its flow.
    fn go(
        &mut self,
        origin: Origin,
        (came, frame): (&[u8], Frame),
        target: Target,
        outcome: &mut Outcome,
    ) {
        match target {
            Target::Tables => unreachable!("it decides nothing"),
            Target::Drop => self.drop(origin, Drop::Denied, outcome),
            Target::Cpu => self.trap(origin, frame.bytes, |limit| &mut limit.next, outcome),
            Target::Port(port) => self.out(origin, port, frame.bytes, outcome),
            Target::Interface(number) => {
                let interface = self.interface(number).expect("interfaces in use stay");
                self.leave(origin, frame, interface, outcome);
            }
            Target::Group(number) => {
                let all = self.members(number).into_iter().filter_map(|one| self.interface(one));
                let open = |one: &Interface| one.port != origin.ingress && self.is_up(one.port);
                let open: Vec<Interface> = all.filter(open).collect();
                if open.is_empty() {
                    return self.drop(origin, Drop::Filtered, outcome);
                }
                self.counters_of(origin.counted).copies += open.len() as u64 - 1;
                for interface in open {
                    self.leave(origin, frame.clone(), interface, outcome);
                }
            }
            Target::Spread(number) => {
                let hash = flow::hash(self.config.seed, came);
                let all = self.members(number).into_iter().filter_map(|one| self.interface(one));
                let open: Vec<Interface> = all.filter(|one| self.is_up(one.port)).collect();
                match flow::member(hash, open.len()) {
                    Some(member) => self.leave(origin, frame, open[member], outcome),
                    None => self.drop(origin, Drop::PortDown, outcome),
                }
            }
        }
    }

    fn leave(
        &mut self,
        origin: Origin,
        mut frame: Frame,
        interface: Interface,
        outcome: &mut Outcome,
    ) {
        for (at, mac) in [(0, interface.destination), (6, interface.source)] {
            if let Some(mac) = mac
                && let Err(reason) = frame.set_mac(at, mac)
            {
                return self.drop(origin, reason, outcome);
            }
        }
        self.out(origin, interface.port, frame.bytes, outcome);
    }

    /// True if the source MAC has no entry of the port's bridge that leads to the port.
    fn is_to_learn(&self, read: &Read, ingress: PortNo) -> bool {
        let PortOptions { bridge, learn, .. } = self.options(ingress);
        let key = MacKey { bridge, mac: read.source };
        let leads = self.entries.iter().any(|stored| match &stored.change {
            Change::Mac(other, Some(action)) if *other == key => match action.target {
                Target::Port(port) => port == ingress,
                Target::Interface(one) => self.interface(one).is_some_and(|of| of.port == ingress),
                Target::Group(group) => match self.members(group)[..] {
                    [one] => self.interface(one).is_some_and(|of| of.port == ingress),
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        });
        // A group address or zero is not the address of a station.
        let is_address = read.source.0[0] & 1 == 0 && read.source.0 != [0; 6];
        learn && is_address && !leads
    }

    /// Returns the winning entry: TCAM before label before address before MAC before prefix.
    fn winner(
        &self,
        bytes: &[u8],
        read: &Read,
        origin: Origin,
        among: fn(&Action) -> bool,
    ) -> Option<usize> {
        let PortOptions { bridge, routed, .. } = self.options(origin.ingress);
        let address = read.address.filter(|_| routed).map(u32::from_be_bytes);
        let label = read.label.filter(|_| routed);
        let destination = MacKey { bridge, mac: read.destination };
        // Higher is better; only the TCAM and the prefixes can have several matches.
        let rank = |stored: &Stored| -> Option<(u32, u32)> {
            match &stored.change {
                Change::Tcam(index, Some(entry)) => {
                    let key = self.key(entry.udlk, bytes, read.outer, origin)?;
                    let masked = key.iter().zip(&entry.mask).map(|(key, mask)| key & mask);
                    masked.eq(entry.value.iter().copied()).then_some((6, (*index).into()))
                }
                Change::Mpls(other, _) => (label == Some(*other)).then_some((5, 0)),
                Change::Ipv4(other, _) => (address == Some(other.to_bits())).then_some((4, 0)),
                Change::Mac(other, _) => {
                    let has_addresses = read.outer != FrameType::Axon;
                    (has_addresses && destination == *other).then_some((3, 0))
                }
                Change::Prefix(prefix, _) => {
                    let behind = 32 - u32::from(prefix.length);
                    let above = |bits: u32| u64::from(bits) >> behind;
                    let covers = above(address?) == above(prefix.address.to_bits());
                    covers.then_some((2, prefix.length.into()))
                }
                Change::Miss(_) => Some((1, 0)),
                _ => None,
            }
        };
        let acts = |stored: &Stored| action_of(&stored.change).is_some_and(among);
        let ranked = self.entries.iter().enumerate().filter(|(_, stored)| acts(stored));
        let ranked = ranked.filter_map(|(index, stored)| Some((rank(stored)?, index)));
        ranked.max().map(|(_, index)| index)
    }

    /// Returns the key of a frame, if frames of its type have it.
    fn key(&self, id: UdlkId, bytes: &[u8], of: FrameType, origin: Origin) -> Option<Vec<u8>> {
        let udlk = self.udlk(id)?;
        let has = udlk.frame_type.is_none_or(|only| only == of);
        has.then(|| value_of(udlk, bytes, origin.ingress, origin.priority))
    }

    /// Returns the lookup key of a number.
    pub fn udlk(&self, id: UdlkId) -> Option<&Udlk> {
        self.entries.iter().find_map(|stored| match &stored.change {
            Change::Udlk(other, Some(udlk)) if *other == id => Some(udlk),
            _ => None,
        })
    }

    /// Returns frames and bytes of an entry that frames can match.
    pub fn counters_of_entry(&self, name: EntryName) -> Option<(u64, u64)> {
        let found = self.entries.iter().find(|stored| stored.change.entry() == name)?;
        action_of(&found.change).map(|_| (found.frames, found.bytes))
    }
}

/// Returns the fields of a key in order; bytes beyond the frame are zero.
pub fn value_of(udlk: &Udlk, bytes: &[u8], ingress: PortNo, priority: u8) -> Vec<u8> {
    let mut value = Vec::new();
    for field in &udlk.fields {
        match *field {
            Field::Ingress => value.extend(ingress.0.to_be_bytes()),
            Field::Priority => value.push(priority),
            Field::Bytes { first, last } => {
                let byte = |at: u8| bytes.get(usize::from(at)).copied().unwrap_or(0);
                value.extend((first..=last).map(byte));
            }
        }
    }
    value
}
