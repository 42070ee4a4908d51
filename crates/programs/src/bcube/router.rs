//! Path selection for flows from this server's hosts (BCube paper, section 5.1).
//!
//! The first packet of a flow goes to the program. The program queries the available bandwidth of
//! all parallel paths and queues the flow's packets. When all answers have arrived or are overdue,
//! the flow gets the best path as a TCAM entry. The paths are queried again after ten seconds, and
//! at once when a hop on the flow's path fails. An entry that has no packets for 30 seconds is
//! removed.

use super::bandwidth::Bandwidth;
use super::bandwidth::bits_per_second;
use super::cube::Nha;
use super::entries;
use super::failures::Failures;
use super::flows::{self, Flow, Flows, WAITING_MAX};
use super::header::{BcubePacket, Purpose};
use super::local::Local;
use super::paths::{self, Path};
use super::probe::{self, Answer, Asked, Probe, Situation};
use super::query::Query;
use crate::server::{HostPorts, ipv4_packet};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_pipeline::{Control, EntryName};
use axon_wire::{PortNo, Span, Time};

/// Time within which an answer must arrive.
const ANSWER_WITHIN: Span = Span::from_millis(50);
/// Maximum number of queries for a flow.
const TRIES_MAX: u8 = 4;
/// Interval between queries of a flow's paths.
const ASK_EVERY: Span = Span::from_secs(10);
/// Idle time after which a flow is removed.
const IDLE_MAX: Span = Span::from_secs(30);
/// Interval at which the flow counters are polled.
const COUNT_EVERY: Span = Span::from_secs(1);
/// Time after its choice for which a flow is not reflected in the answers to others.
const UNSEEN_FOR: Span = Span::from_millis(200);

/// Context of a router at one time.
pub(super) struct Here<'a> {
    pub(super) now: Time,
    pub(super) local: &'a Local,
    pub(super) bandwidth: &'a Bandwidth,
    pub(super) hosts: &'a HostPorts,
    pub(super) control: &'a mut dyn Control,
}

/// Path selection of all flows.
#[derive(Debug, Default)]
pub(super) struct Router {
    flows: Flows,
    failures: Failures,
    /// Recent choices: time, server, path, and the index of the flow.
    recent: Vec<(Time, u32, Path, usize)>,
    next_id: u32,
    counted_at: Time,
    /// Seed that spreads the query times of the flows.
    seed: u64,
}

impl Router {
    pub(super) fn new(seed: u64) -> Router {
        Router { seed, ..Router::default() }
    }

    /// Processes a packet from a host that matches no entry.
    pub(super) fn offer(&mut self, port: PortNo, frame: &[u8], here: &mut Here<'_>) {
        let Some((key, is_fragment)) = flows::key_of(port, frame) else { return };
        let Some(destination) = here.hosts.place_of(key.destination) else { return };
        if is_fragment {
            return self.send_past_tables(destination, frame, here);
        }
        if let Some(place) = self.flows.place_of(&key) {
            return self.wait(place, frame, here);
        }
        let flow = Flow {
            key,
            destination,
            path: None,
            waiting: alloc::vec![frame.to_vec()],
            probe: None,
            ask_at: here.now,
            placed_at: here.now,
            frames: 0,
            active_at: here.now,
        };
        match self.flows.add(flow) {
            None => self.send_past_tables(destination, frame, here),
            Some(place) if destination.0 == here.local.own() => self.set_path(place, &[], here),
            Some(place) => self.ask(place, here),
        }
    }

    /// Queues a packet for a flow without a path, or sends it if the flow has meanwhile got its
    /// entry.
    fn wait(&mut self, place: usize, frame: &[u8], here: &mut Here<'_>) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        if flow.path.is_some() {
            here.control.inject_packet(Some(flow.key.ingress), frame);
        } else if flow.waiting.len() < WAITING_MAX {
            flow.waiting.push(frame.to_vec());
        }
    }

    /// Sends a packet along the first usable path, without an entry.
    fn send_past_tables(&self, destination: (u32, u8), frame: &[u8], here: &mut Here<'_>) {
        let path = self.usable(destination.0, here).into_iter().next();
        let packet = ipv4_packet(frame).and_then(|packet| {
            let total = u16::from_be_bytes(*packet.get(2..4)?.first_chunk()?);
            packet.get(..total.into())
        });
        if let (Some(path), Some(body)) = (path, packet) {
            let (source, ttl) = (here.local.own(), path.len() as u8);
            let first = path[0];
            let purpose = Purpose::Data;
            let packet = BcubePacket { source, destination, purpose, ttl, path, body };
            here.local.send(first, &packet, here.control);
        }
    }

    /// Returns whether a path is usable, as far as is known.
    fn is_usable(&self, path: &[Nha], here: &Here<'_>) -> bool {
        let (cube, own) = (here.local.cube(), here.local.own());
        path.first().is_some_and(|&first| here.local.is_up(first))
            && self.failures.is_path_open(here.now, cube, own, path)
    }

    /// Returns the usable parallel paths to a server. Each unusable one is replaced by another path
    /// that shares no server with the others, if there is one.
    fn usable(&self, to: u32, here: &Here<'_>) -> Vec<Path> {
        let (cube, own) = (here.local.cube(), here.local.own());
        let all = paths::parallel(cube, own, to);
        let wanted = all.len();
        let mut usable: Vec<Path> =
            all.into_iter().filter(|path| self.is_usable(path, here)).collect();
        let is_open = |server, nha| {
            let is_up = server != own || here.local.is_up(nha);
            is_up && self.failures.is_open(here.now, server, nha)
        };
        let mut taken = BTreeSet::new();
        for path in &usable {
            taken.extend(paths::servers(cube, own, path));
        }
        while usable.len() < wanted {
            let Some(path) = paths::around(cube, own, to, &taken, is_open) else { break };
            taken.extend(paths::servers(cube, own, &path));
            // A second direct path would be a duplicate.
            if usable.contains(&path) {
                break;
            }
            usable.push(path);
        }
        usable
    }

    /// Queries all paths of a flow.
    fn ask(&mut self, place: usize, here: &mut Here<'_>) {
        let Some(flow) = self.flows.get(place) else { return };
        let destination = flow.destination.0;
        let tries = flow.probe.as_ref().map_or(0, |probe| probe.tries);
        let paths = self.usable(destination, here);
        let first_id = self.next_id;
        self.next_id = self.next_id.wrapping_add(paths.len() as u32);
        for (offset, path) in (0..).zip(&paths) {
            let first = path[0];
            let port = here.local.port(first);
            let available = port.map_or(0, |port| here.bandwidth.to_send(port));
            let query = Query::Request { id: first_id.wrapping_add(offset), available };
            let packet = BcubePacket {
                source: here.local.own(),
                destination: (destination, 0),
                purpose: Purpose::Query,
                ttl: path.len() as u8,
                path: path.clone(),
                body: &query.emit(),
            };
            here.local.send(first, &packet, here.control);
        }
        let asked = |path| Asked { path, answer: Answer::Pending };
        let paths = paths.into_iter().map(asked).collect();
        let probe = Probe { first_id, sent_at: here.now, tries: tries + 1, paths };
        let jitter = Span::from_millis((self.seed ^ u64::from(first_id)) % 1000);
        if let Some(flow) = self.flows.get_mut(place) {
            flow.probe = Some(probe);
            flow.ask_at = here.now + ASK_EVERY + jitter;
        }
    }

    /// Removes the flows whose entries were removed by an operator.
    pub(super) fn forget(&mut self, removed: &[EntryName], control: &mut dyn Control) {
        for place in self.flows.places() {
            if removed.contains(&EntryName::Tcam(entries::flow_index(place))) {
                self.flows.remove(place, control);
            }
        }
    }

    /// Processes the answer to a request.
    pub(super) fn answer(&mut self, id: u32, available: u64, here: &mut Here<'_>) {
        for place in self.flows.places() {
            let probe = self.flows.get_mut(place).and_then(|flow| flow.probe.as_mut());
            let Some(probe) = probe else { continue };
            let Some(asked) = probe.asked(id) else { continue };
            asked.answer = Answer::Available(available);
            if probe.is_settled() {
                self.conclude(place, here);
            }
            return;
        }
    }

    /// Processes the report that `server` cannot use a hop.
    pub(super) fn failed(&mut self, server: u32, nha: Nha, here: &mut Here<'_>) {
        self.failures.report(here.now, server, nha);
        self.leave_failed(here);
    }

    /// Moves flows away from paths that are no longer usable, and completes queries about such
    /// paths.
    pub(super) fn leave_failed(&mut self, here: &mut Here<'_>) {
        for place in self.flows.places() {
            let Some(flow) = self.flows.get(place) else { continue };
            let path = flow.path.clone().filter(|path| !path.is_empty());
            let unusable = |path: &Path| !self.is_usable(path, here);
            let must_leave = path.as_ref().is_some_and(unusable);
            let asked = flow.probe.iter().flat_map(|probe| &probe.paths);
            let failed: Vec<bool> = asked.map(|asked| unusable(&asked.path)).collect();
            let destination = flow.destination.0;
            if let Some(probe) = self.flows.get_mut(place).and_then(|flow| flow.probe.as_mut()) {
                let all = probe.paths.iter_mut().zip(&failed).filter(|(_, failed)| **failed);
                all.for_each(|(asked, _)| asked.answer = Answer::Failed);
                if probe.is_settled() && probe.has_answer() {
                    self.conclude(place, here);
                    continue;
                }
            }
            if must_leave {
                match self.usable(destination, here).first() {
                    Some(path) => {
                        self.set_path(place, &path.clone(), here);
                        self.ask(place, here);
                    }
                    None => self.flows.remove(place, here.control),
                }
            }
        }
    }

    /// Chooses a path from the answers received.
    fn conclude(&mut self, place: usize, here: &mut Here<'_>) {
        self.recent.retain(|(at, ..)| here.now.since(*at) < UNSEEN_FOR);
        let Some(flow) = self.flows.get_mut(place) else { return };
        let Some(probe) = flow.probe.take() else { return };
        let elapsed = here.now.since(flow.placed_at);
        let current = flow.path.clone();
        let to = flow.destination.0;
        let (_, bytes) = Flows::counted(place, here.control);
        let own_rate = if current.is_some() { bits_per_second(bytes, elapsed) } else { 0 };
        let unseen = |path: &[Nha]| {
            let on_it = |recent: &&(Time, u32, Path, usize)| {
                recent.1 == to && recent.2 == path && recent.3 != place
            };
            self.recent.iter().filter(on_it).count() as u64
        };
        let situation = Situation { current: current.as_deref(), own_rate, unseen: &unseen };
        let chosen = probe::choose(&probe.paths, &situation);
        if let Some(chosen) = chosen {
            self.set_path(place, &probe.paths[chosen].path, here);
        }
    }

    /// Puts a flow on a path and sends its queued packets.
    fn set_path(&mut self, place: usize, path: &[Nha], here: &mut Here<'_>) {
        let Some(flow) = self.flows.get(place) else { return };
        let (port, to, before) = (flow.key.ingress, flow.destination, flow.path.clone());
        let interface = here.hosts.interface(to.1);
        let own = here.local.own();
        match self.flows.set_path(here.now, place, own, path, interface, here.control) {
            Some(waiting) => {
                if before.as_deref() != Some(path) {
                    self.recent.push((here.now, to.0, path.to_vec(), place));
                }
                waiting.iter().for_each(|frame| here.control.inject_packet(Some(port), frame));
            }
            None if before.is_none() => {
                let waiting =
                    self.flows.get_mut(place).map(|flow| core::mem::take(&mut flow.waiting));
                self.flows.remove(place, here.control);
                let waiting = waiting.unwrap_or_default();
                waiting.iter().for_each(|frame| self.send_past_tables(to, frame, here));
            }
            None => {}
        }
    }

    /// Processes timeouts, for overdue answers, repeated queries and idle flows.
    pub(super) fn tick(&mut self, here: &mut Here<'_>) {
        for place in self.flows.places() {
            let Some(flow) = self.flows.get_mut(place) else { continue };
            let Some(probe) = &flow.probe else {
                if flow.path.as_ref().is_some_and(|path| !path.is_empty())
                    && flow.ask_at <= here.now
                {
                    self.ask(place, here);
                }
                continue;
            };
            if here.now.since(probe.sent_at) < ANSWER_WITHIN {
                continue;
            }
            let is_last = probe.tries >= TRIES_MAX;
            match (flow.path.is_some(), probe.has_answer()) {
                (false, true) => self.conclude(place, here),
                (false, false) if is_last => self.flows.remove(place, here.control),
                (true, true) if is_last => self.conclude(place, here),
                (true, false) if is_last => flow.probe = None,
                _ => self.ask(place, here),
            }
        }
        if here.now.since(self.counted_at) >= COUNT_EVERY {
            self.counted_at = here.now;
            self.age(here);
        }
    }

    /// Removes flows that have been idle for too long.
    fn age(&mut self, here: &mut Here<'_>) {
        for place in self.flows.places() {
            let (frames, _) = Flows::counted(place, here.control);
            let Some(flow) = self.flows.get_mut(place) else { continue };
            if frames != flow.frames || flow.path.is_none() {
                (flow.frames, flow.active_at) = (frames, here.now);
            } else if here.now.since(flow.active_at) >= IDLE_MAX {
                self.flows.remove(place, here.control);
            }
        }
    }
}
