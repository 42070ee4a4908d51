//! The agent at a host's edge: Data Center Bridging for hosts that know nothing of it.
//!
//! It stands between a host's own interface ([`HOST`]) and the fabric ([`FABRIC`]), a bridge of
//! two ports with a queue for each priority.
//!
//! In plain English, towards the fabric: a frame gets a priority by [rules](Rules), and a tag that
//! says it and no VLAN unless the host has tagged it (IEEE 802.1Q clause 9.6). It waits while
//! the fabric has stopped its priority, or while its reaction point lets nothing more leave.
//! When a priority has as much here as it may, the host is told to stop it, whether or not
//! that priority has flow control in the fabric: what can be held back at its source need
//! not be lost here. How the host is made to obey is the body's business; what it sends all
//! the same is kept in the headroom.
//!
//! Towards the host: flow control and congestion notifications end here; a priority tag comes
//! off. If the host takes frames more slowly than they come, the fabric is told to stop the
//! priorities with flow control, and frames of others end once their share is used up.
//!
//! Which priorities have flow control, and which frames have which priority, it is told at its
//! start; or by its switch, if it [speaks](neighbour) to it.

pub mod neighbour;
pub mod rules;
mod telemetry;

pub use neighbour::Speech;
pub use rules::Rules;

use crate::DcbPort;
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Drop, Input, Node, NodeKind};
use axon_plane::dcb::DcbConfig;
use axon_plane::memory::{GroupLimits, MemoryConfig, QueueLimits, Share};
use axon_plane::meter::Meter;
use axon_plane::qcn::{RateLimiter, RpConfig, RpError};
use axon_plane::schedule::{Algorithm, FrameCost, ScheduleConfig};
use axon_plane::{FrameMeta, PlaneConfig, Ports, ethernet};
use axon_wire::cn::{self, CnmError, CnmFormat, CnmFrame};
use axon_wire::mac_control::{self, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, Frame, MacAddr, PortNo, Rate, Time};

/// The port where the host is.
pub const HOST: PortNo = PortNo(0);
/// The port where the fabric is.
pub const FABRIC: PortNo = PortNo(1);

/// What an agent is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The rate of the link to the fabric.
    pub rate: Rate,
    /// Priorities with flow control in the fabric; without any, it stops all at once, by PAUSE.
    pub pfc: PrioritySet,
    /// How long a stop lasts that the fabric is asked for, unless it is told again.
    pub pfc_quanta: Quanta,
    /// Which frames have which priority.
    pub rules: Rules,
    /// The longest frame, in bytes without FCS and tag.
    pub frame_bytes_max: usize,
    /// What one priority may hold in one direction before its sender is to stop.
    pub share: Bytes,
    /// Room for what still comes after that.
    pub headroom: Bytes,
    /// Source address of flow control frames.
    pub mac: MacAddr,
    /// Congestion notifications that are heeded, if any.
    pub reaction: Option<Reaction>,
    /// How it speaks to its switch, which may know better which priorities have flow control and
    /// which frames have which priority; without, it neither speaks nor listens.
    pub speech: Option<Speech>,
}

/// Which congestion notifications are heeded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Priorities with congestion notification; each has one reaction point
    /// (`ieee8021CnRpPortPriMaxRps` is 1).
    pub priorities: PrioritySet,
    /// The variables of a reaction point.
    pub point: RpConfig,
    /// How notifications are read.
    pub format: CnmFormat,
    /// Seed of the jitter of recovery.
    pub seed: u64,
}

/// An agent.
#[derive(Clone, Debug)]
pub struct AgentNode<B> {
    ports: Ports<B>,
    config: AgentConfig,
    limiters: [Option<RateLimiter>; PRIORITIES],
    /// Notifications that were heeded, by priority.
    cnms: [u64; PRIORITIES],
    /// LLDP and DCBX at the port to the fabric.
    neighbour: Option<DcbPort>,
    /// How many LLDPDUs the fabric is listened to.
    lldp: Meter,
    /// Which frames have which priority, now.
    rules: Rules,
    /// Kept between inputs for its memory.
    actions: Vec<Action<B>>,
}

impl<B: Frame> AgentNode<B> {
    /// An agent whose ports have no carrier yet.
    ///
    /// # Errors
    /// What is wrong with the reaction points.
    pub fn new(config: AgentConfig) -> Result<AgentNode<B>, RpError> {
        let mut limiters = [const { None }; PRIORITIES];
        if let Some(reaction) = &config.reaction {
            for priority in reaction.priorities.iter() {
                let seed = reaction.seed.wrapping_add(priority.value().into());
                let burst = Bytes(config.frame_bytes_max as u64);
                limiters[priority.index()] = Some(RateLimiter::new(reaction.point, burst, seed)?);
            }
        }
        let mut ports = Ports::new(2, Bytes(config.frame_bytes_max as u64));
        let dcb = dcb(&config);
        let neighbour = config.speech.as_ref().map(|speech| neighbour::port(&config, speech, &dcb));
        let set = ports.set_dcb(dcb, vlan::priority_of, Priority::MAX);
        set.expect("turns by deficit round robin with a quantum");
        let (rules, pfc) = (config.rules.clone(), config.pfc);
        let (cnms, actions) = ([0; PRIORITIES], Vec::new());
        // As a switch meters what one port has for its control plane.
        let lldp = Meter::new(PlaneConfig::with_ports(2, config.mac).punt);
        let mut agent =
            AgentNode { ports, config, limiters, cnms, neighbour, lldp, rules, actions };
        agent.ports.set_pfc(Time::ZERO, HOST, PrioritySet::ALL, &mut agent.actions);
        agent.set_pfc(Time::ZERO, pfc);
        Ok(agent)
    }

    /// What it was told at its start.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Its ports: queues, memory, counters.
    pub fn ports(&self) -> &Ports<B> {
        &self.ports
    }

    /// The reaction point of a priority, if it has one.
    pub fn limiter(&self, priority: Priority) -> Option<&RateLimiter> {
        self.limiters[priority.index()].as_ref()
    }

    /// How many notifications for a priority were heeded.
    pub fn cnms(&self, priority: Priority) -> u64 {
        self.cnms[priority.index()]
    }

    /// What LLDP and DCBX have found out at the port to the fabric; `None` if the agent does not
    /// speak them.
    pub fn neighbour(&self) -> Option<&DcbPort> {
        self.neighbour.as_ref()
    }

    /// Which frames have which priority, now.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// These priorities have flow control in the fabric from now on; without any, PAUSE is in
    /// use. A group without headroom never asks for a stop.
    fn set_pfc(&mut self, now: Time, pfc: PrioritySet) {
        for priority in Priority::ALL {
            let stops = pfc.is_empty() || pfc.contains(priority);
            let headroom = if stops { self.config.headroom } else { Bytes(0) };
            self.ports.set_group(FABRIC, priority, group(&self.config, headroom));
        }
        self.ports.set_pfc(now, FABRIC, pfc, &mut self.actions);
    }

    fn receive(&mut self, now: Time, mut meta: FrameMeta<B>) {
        let is_lldp = self.is_for_neighbour(meta.frame.bytes());
        let out = &mut self.actions;
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta, reason, out);
        }
        if let Some(reason) = ethernet::fault(meta.frame.bytes(), self.config.frame_bytes_max) {
            return self.ports.discard(meta, reason, out);
        }
        if is_lldp {
            return self.hear_lldp(now, meta);
        }
        if mac_control::is_mac_control(meta.frame.bytes()) {
            return self.ports.mac_control(now, meta, out);
        }
        if meta.ingress == FABRIC {
            let kind = vlan::ethertype_of(meta.frame.bytes()).map(|(kind, _)| kind);
            if kind.is_some_and(|kind| [cn::ETHERTYPE_CNM, cn::ETHERTYPE_TAG].contains(&kind)) {
                return self.notified(now, meta);
            }
            return self.ports.deliver(now, meta, HOST, None, out);
        }
        let priority = self.rules.priority_of(meta.frame.bytes());
        if priority != vlan::priority_of(meta.frame.bytes()) {
            let tag = VlanTag::of_priority(priority);
            if vlan::insert(&mut meta.frame, tag).is_err() {
                return self.ports.discard(meta, Drop::NoHeadroom, out);
            }
        }
        self.ports.deliver(now, meta, FABRIC, None, out);
    }

    /// A frame that may be a congestion notification. One for a priority without a reaction
    /// point is refused, for the host would not know it either.
    fn notified(&mut self, now: Time, mut meta: FrameMeta<B>) {
        let format = self.config.reaction.as_ref().map(|reaction| reaction.format);
        let read = CnmFrame::parse(meta.frame.bytes(), &format.unwrap_or_default());
        let cnm = match read {
            Ok(CnmFrame { cnm, .. }) => cnm,
            Err(CnmError::EtherType) => {
                // Another frame of a flow with a CN-TAG, which the host would not know.
                cn::untag(&mut meta.frame);
                return self.ports.deliver(now, meta, HOST, None, &mut self.actions);
            }
            Err(_) => return self.ports.discard(meta, Drop::Malformed, &mut self.actions),
        };
        let reason = match &mut self.limiters[cnm.priority.index()] {
            Some(limiter) => {
                limiter.notified(now, cnm.feedback);
                self.cnms[cnm.priority.index()] += 1;
                self.keep_to_rate(now, cnm.priority);
                Drop::Consumed
            }
            None => Drop::Refused,
        };
        self.ports.discard(meta, reason, &mut self.actions);
    }

    /// The next frame of a priority leaves when its reaction point lets it.
    fn keep_to_rate(&mut self, now: Time, priority: Priority) {
        if let Some(limiter) = &mut self.limiters[priority.index()] {
            let ready_at = limiter.ready_at(now);
            self.ports.hold_back(now, FABRIC, priority, ready_at, &mut self.actions);
        }
    }

    /// Timers of reaction points that are over: rates have risen, or a flow that has recovered
    /// and rests is free again.
    fn recover(&mut self, now: Time) {
        for priority in Priority::ALL {
            let Some(limiter) = &mut self.limiters[priority.index()] else { continue };
            if limiter.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            limiter.advance(now);
            let class = TrafficClass::ALL[priority.index()];
            let waiting =
                self.ports.memory().map_or(Bytes(0), |memory| memory.queued(FABRIC, class));
            if waiting == Bytes(0) {
                limiter.idle(now);
            }
            self.keep_to_rate(now, priority);
        }
    }

    /// What leaves: rates are kept account of, and priority tags come off towards the host.
    fn settle(&mut self, now: Time, out: &mut Vec<Action<B>>) {
        while !self.actions.is_empty() {
            for mut action in core::mem::take(&mut self.actions) {
                match &mut action {
                    Action::Transmit { port: HOST, frame, .. } => vlan::remove_priority(frame),
                    Action::Transmit { port: FABRIC, frame, .. } => {
                        let priority = vlan::priority_of(frame.bytes());
                        let cost = FrameCost::WIRE.of(frame.bytes().len() as u32);
                        if let Some(limiter) = &mut self.limiters[priority.index()] {
                            limiter.sent(now, Bytes(cost.into()));
                            self.keep_to_rate(now, priority);
                        }
                    }
                    _ => {}
                }
                out.push(action);
            }
        }
    }
}

/// What one priority may hold that comes by one port.
fn group(config: &AgentConfig, headroom: Bytes) -> GroupLimits {
    let xon_offset = Bytes(config.share.0 / 2);
    GroupLimits { reserved: Bytes(0), share: Share::Static(config.share), headroom, xon_offset }
}

/// Two ports with a class for each priority, which take equal turns. Every priority of the host
/// can be stopped.
fn dcb(config: &AgentConfig) -> DcbConfig {
    let share = Share::Static(config.share);
    let quantum_bytes = config.frame_bytes_max as u32 + u32::from(FrameCost::WIRE.overhead_bytes);
    DcbConfig {
        memory: MemoryConfig {
            lossless: PrioritySet::ALL,
            lossless_pool: Bytes(config.share.0 * (2 * PRIORITIES as u64)),
            lossy_pool: Bytes(0),
            groups: alloc::vec![[group(config, config.headroom); PRIORITIES]; 2],
            queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
        },
        schedule: ScheduleConfig::of([Algorithm::Drr { quantum_bytes }; PRIORITIES]),
        pause: true,
        pfc_quanta: config.pfc_quanta,
        ..DcbConfig::lossy(alloc::vec![config.rate; 2], config.mac)
    }
}

impl<B: Frame> Node<B> for AgentNode<B> {
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, FrameMeta::new(frame, port, complete_at, intact));
            }
            Input::TxDone { port } => self.ports.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                self.ports.link(now, port, up, &mut self.actions);
                if port == FABRIC {
                    self.neighbour_link(now, up);
                }
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Agent)));
            }
        }
        self.ports.timeout(now, &mut self.actions);
        self.recover(now);
        self.neighbour_timeout(now);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let limiters = self.limiters.iter().flatten().filter_map(RateLimiter::deadline);
        let neighbour = self.neighbour.as_ref().and_then(DcbPort::deadline);
        limiters.chain(self.ports.deadline()).chain(neighbour).min()
    }

    fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }
}

#[cfg(test)]
mod tests;
