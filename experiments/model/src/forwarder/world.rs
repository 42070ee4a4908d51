//! Simulated world: the events and their consequences.

use super::buffers::{Buffers, Held};
use super::bus::{Bus, Packet, Way};
use super::events::{Event, Events, Picos, micros, picos};
use super::host::Host;
use super::memory::{Engine, Memory};
use super::plan::{Arrivals, Plan, PlanError, Report};
use super::rounds::Round;
use crate::hardware::{ACCESSES_PER_INSTRUCTION, FIRMWARE_INSTRUCTIONS, LINK_MB_S, NicProfile};
use std::collections::VecDeque;

/// Simulates a plan, and returns the report.
///
/// # Errors
/// A value in the plan is out of its range.
pub fn run(plan: &Plan) -> Result<Report, PlanError> {
    plan.check()?;
    let mut world = World::new(plan);
    let start = world.until_sent(plan.warm_up);
    world.buffers.take_most();
    let end = world.until_sent(plan.warm_up + plan.packets);
    let us = micros(end.now - start.now);
    let sent = (end.sent - start.sent) as f64;
    Ok(Report {
        mb_s: sent * plan.packet_bytes as f64 / us,
        response_us: (end.response_us - start.response_us) / sent,
        population: (end.inside_us - start.inside_us) / us,
        bus_utilisation: (end.bus_us - start.bus_us) / us,
        memory_utilisation: (end.accesses - start.accesses) / (us * world.profile.memory_mhz),
        host_utilisation: (end.host_us - start.host_us) / us,
        transfers: (end.transfers - start.transfers) as f64 / sent,
        buffers_most: world.buffers.take_most(),
        buffers_mean: (end.buffers_us - start.buffers_us) / us,
    })
}

/// Sums since the start of the simulation.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    now: Picos,
    sent: u64,
    /// Total response time of the packets that were sent, from arrival to departure.
    response_us: f64,
    /// Integral over time of the number of packets inside, in microseconds.
    inside_us: f64,
    bus_us: f64,
    host_us: f64,
    accesses: f64,
    transfers: u64,
    buffers_us: f64,
}

struct World<'a> {
    plan: &'a Plan,
    profile: NicProfile,
    now: Picos,
    events: Events,
    memory: Memory,
    /// Epoch of the memory for which the next end is among the events.
    expected: u64,
    buffers: Buffers,
    bus: Bus,
    bus_since: Picos,
    round: Round,
    /// Packets that wait on the link.
    sender: VecDeque<Packet>,
    /// Packets that the host has posted and that wait for buffers in the NIC.
    fetching: VecDeque<Packet>,
    /// Packets that are in buffers and may be sent.
    ready: VecDeque<Packet>,
    host: Host,
    inside: u64,
    sums: Sums,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> World<'a> {
        let profile = plan.forwarder.nic.profile();
        let mut world = World {
            plan,
            profile,
            now: 0,
            events: Events::default(),
            memory: Memory::new(profile.memory_mhz, profile.processor_share),
            expected: 0,
            buffers: Buffers::new(profile.buffers, plan.ring_entries()),
            bus: Bus::default(),
            bus_since: 0,
            round: Round::default(),
            sender: VecDeque::new(),
            fetching: VecDeque::new(),
            ready: VecDeque::new(),
            host: Host::default(),
            inside: 0,
            sums: Sums::default(),
        };
        if let Arrivals::Every(_) = plan.arrivals {
            world.events.push(0, Event::Arrival);
        }
        world.follow();
        world
    }

    /// Runs until `sent` packets have been sent.
    fn until_sent(&mut self, sent: u64) -> Sums {
        while self.sums.sent < sent {
            // Back-pressure may hold packets, but the stage that holds them has a pending event.
            let (time, event) = self.events.pop().expect("a packet inside has an event ahead");
            self.sums.inside_us += self.inside as f64 * micros(time - self.now);
            self.now = time;
            self.handle(event);
            self.follow();
        }
        Sums {
            now: self.now,
            accesses: self.memory.accesses(self.now),
            transfers: self.bus.transfers,
            buffers_us: self.buffers.area(self.now),
            ..self.sums
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrived(),
            Event::SetUp => {
                let bytes = self.bus.transfer_bytes();
                self.access(Engine::External, bytes, self.plan.forwarder.bus.mb_s());
            }
            Event::Memory(epoch) if epoch == self.memory.epoch() => {
                for engine in self.memory.take_done(self.now) {
                    self.done(engine);
                }
            }
            // An access has started or ended in the meantime, so the event is stale.
            Event::Memory(_) => {}
            Event::Firmware => self.round.processed(),
            Event::Host => {
                self.sums.host_us += self.plan.forwarder.host_us;
                self.host.served();
            }
        }
    }

    fn arrived(&mut self) {
        self.sender.push_back(Packet { arrived: self.now, held: Held::NONE });
        self.inside += 1;
        if let Arrivals::Every(us) = self.plan.arrivals {
            self.events.push(self.now + picos(us), Event::Arrival);
        }
    }

    /// Starts the DMA of `bytes` bytes by an engine whose medium carries `mb_s`.
    fn access(&mut self, engine: Engine, bytes: u64, mb_s: f64) {
        let width = self.profile.memory_width_bytes;
        let (words, most) = (bytes.div_ceil(width) as f64, mb_s / width as f64);
        self.memory.start(self.now, engine, words, most);
    }

    fn done(&mut self, engine: Engine) {
        match engine {
            Engine::External => self.transferred(),
            Engine::Processor => self.events.push(self.now + self.waits(), Event::Firmware),
            Engine::Receive => {
                if let Some(packet) = self.round.done(engine) {
                    self.buffers.filled(&packet.held, self.plan.packet_bytes);
                    self.bus.push(packet, Way::ToHost, self.plan.packet_bytes);
                }
            }
            Engine::Send => {
                if let Some(packet) = self.round.done(engine) {
                    self.buffers.sent(self.now, &packet.held);
                    self.inside -= 1;
                    self.sums.sent += 1;
                    self.sums.response_us += micros(self.now - packet.arrived);
                }
            }
        }
    }

    fn transferred(&mut self) {
        self.sums.bus_us += micros(self.now - self.bus_since);
        match self.bus.done() {
            Some((packet, Way::ToHost)) => {
                self.buffers.delivered(&packet.held);
                if !self.plan.forwarder.is_caching {
                    self.buffers.release(self.now, &packet.held);
                }
                self.host.push(packet);
            }
            Some((packet, Way::ToNic)) => {
                self.buffers.filled(&packet.held, self.plan.packet_bytes);
                self.buffers.delivered(&packet.held);
                self.ready.push_back(packet);
            }
            None => {}
        }
    }

    /// Returns the time that the firmware waits in this round, beyond its instructions.
    fn waits(&self) -> Picos {
        let a_page = self.profile.stall_us + self.plan.forwarder.overheads.handover_us;
        picos(self.firmware_pages() * a_page)
    }

    /// Returns the number of pages of firmware work in this round. Half of the work is for
    /// receiving, and half for sending.
    fn firmware_pages(&self) -> f64 {
        0.5 * f64::from(self.round.halves() * self.plan.pages())
    }

    /// Starts all transfers that can start now.
    fn follow(&mut self) {
        self.follow_host();
        let bytes = self.plan.packet_bytes;
        while let Some(&packet) = self.fetching.front()
            && let Some(held) = self.buffers.fetch(self.now, bytes)
        {
            self.fetching.pop_front();
            self.bus.push(Packet { held, ..packet }, Way::ToNic, bytes);
        }
        if self.bus.start() {
            self.bus_since = self.now;
            let setup = self.plan.forwarder.overheads.setup_us(self.plan.forwarder.bus);
            self.events.push(self.now + picos(setup), Event::SetUp);
        }
        self.follow_round();
        if self.expected != self.memory.epoch() {
            self.expected = self.memory.epoch();
            if let Some((time, epoch)) = self.memory.next() {
                self.events.push(time, Event::Memory(epoch));
            }
        }
    }

    fn follow_host(&mut self) {
        if self.host.blocked().is_some() && self.buffers.post() {
            self.buffers.read();
            let posted =
                if self.plan.forwarder.is_caching { &mut self.ready } else { &mut self.fetching };
            posted.extend(self.host.blocked().take());
        }
        if self.host.serve() {
            self.events.push(self.now + picos(self.plan.forwarder.host_us), Event::Host);
        }
    }

    fn follow_round(&mut self) {
        if !self.round.is_over() {
            return;
        }
        if self.plan.arrivals == Arrivals::Saturated && self.sender.is_empty() {
            self.sender.push_back(Packet { arrived: self.now, held: Held::NONE });
        }
        let bytes = self.plan.packet_bytes;
        let mut receiving = None;
        if let Some(&packet) = self.sender.front()
            && let Some(held) = self.buffers.receive(self.now, bytes)
        {
            self.sender.pop_front();
            receiving = Some(Packet { held, ..packet });
        }
        if let (Some(packet), Arrivals::Saturated) = (&mut receiving, self.plan.arrivals) {
            packet.arrived = self.now;
            self.inside += 1;
        }
        let sending = self.ready.pop_front();
        sending.iter().for_each(|packet| self.buffers.begin_send(&packet.held));
        if receiving.is_some() {
            self.access(Engine::Receive, bytes, LINK_MB_S);
        }
        if sending.is_some() {
            self.access(Engine::Send, bytes, LINK_MB_S);
        }
        if self.round.start(receiving, sending) > 0 {
            let a_page = (FIRMWARE_INSTRUCTIONS * ACCESSES_PER_INSTRUCTION) as f64;
            let accesses = self.firmware_pages() * a_page;
            self.memory.start(self.now, Engine::Processor, accesses, f64::INFINITY);
        }
    }
}
