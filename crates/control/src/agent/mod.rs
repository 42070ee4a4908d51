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

pub mod rules;

pub use rules::Rules;

use alloc::vec::Vec;
use axon_plane::dcb::DcbConfig;
use axon_plane::memory::{GroupLimits, MemoryConfig, QueueLimits, Share};
use axon_plane::qcn::{RateLimiter, RpConfig, RpError};
use axon_plane::schedule::{Algorithm, FrameCost, ScheduleConfig};
use axon_plane::{Action, Awaited, Drop, Input, Moving, Node, PortBank, ethernet};
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
    /// Priorities with flow control in the fabric.
    pub pfc: PrioritySet,
    /// Whether the fabric stops all of them at once instead, by PAUSE; `pfc` is empty then.
    pub pause: bool,
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
    bank: PortBank<B>,
    config: AgentConfig,
    limiters: [Option<RateLimiter>; PRIORITIES],
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
        let mut bank = PortBank::new(2, Bytes(config.frame_bytes_max as u64));
        let set = bank.set_dcb(dcb(&config), vlan::priority_of, Priority::ZERO);
        set.expect("turns by deficit round robin with a quantum");
        let mut actions = Vec::new();
        bank.set_pfc(Time::ZERO, FABRIC, config.pfc, &mut actions);
        Ok(AgentNode { bank, config, limiters, actions })
    }

    /// What it was told at its start.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Its ports: queues, memory, counters.
    pub fn bank(&self) -> &PortBank<B> {
        &self.bank
    }

    /// The reaction point of a priority, if it has one.
    pub fn limiter(&self, priority: Priority) -> Option<&RateLimiter> {
        self.limiters[priority.index()].as_ref()
    }

    fn receive(&mut self, now: Time, mut moving: Moving<B>) {
        let out = &mut self.actions;
        if let Err(reason) = self.bank.receive(now, &moving) {
            return self.bank.discard(moving, reason, out);
        }
        if let Some(reason) = ethernet::fault(moving.frame.bytes(), self.config.frame_bytes_max) {
            return self.bank.discard(moving, reason, out);
        }
        if mac_control::is_mac_control(moving.frame.bytes()) {
            return self.bank.mac_control(now, moving, out);
        }
        if moving.ingress == FABRIC {
            let kind = vlan::ethertype_of(moving.frame.bytes()).map(|(kind, _)| kind);
            if kind.is_some_and(|kind| [cn::ETHERTYPE_CNM, cn::ETHERTYPE_TAG].contains(&kind)) {
                return self.notified(now, moving);
            }
            return self.bank.deliver(now, moving, HOST, None, out);
        }
        let priority = self.config.rules.priority_of(moving.frame.bytes());
        if priority != vlan::priority_of(moving.frame.bytes()) {
            let tag = VlanTag::of_priority(priority);
            if vlan::insert(&mut moving.frame, tag).is_err() {
                return self.bank.discard(moving, Drop::NoHeadroom, out);
            }
        }
        self.bank.deliver(now, moving, FABRIC, None, out);
    }

    /// A frame that may be a congestion notification. One for a priority without a reaction
    /// point is refused, for the host would not know it either.
    fn notified(&mut self, now: Time, mut moving: Moving<B>) {
        let format = self.config.reaction.as_ref().map(|reaction| reaction.format);
        let read = CnmFrame::parse(moving.frame.bytes(), &format.unwrap_or_default());
        let cnm = match read {
            Ok(CnmFrame { cnm, .. }) => cnm,
            Err(CnmError::EtherType) => {
                // Another frame of a flow with a CN-TAG, which the host would not know.
                cn::untag(&mut moving.frame);
                return self.bank.deliver(now, moving, HOST, None, &mut self.actions);
            }
            Err(_) => return self.bank.discard(moving, Drop::Malformed, &mut self.actions),
        };
        let reason = match &mut self.limiters[cnm.priority.index()] {
            Some(limiter) => {
                limiter.notified(now, cnm.feedback);
                self.keep_to_rate(now, cnm.priority);
                Drop::Consumed
            }
            None => Drop::Refused,
        };
        self.bank.discard(moving, reason, &mut self.actions);
    }

    /// The next frame of a priority leaves when its reaction point lets it.
    fn keep_to_rate(&mut self, now: Time, priority: Priority) {
        if let Some(limiter) = &mut self.limiters[priority.index()] {
            let ready_at = limiter.ready_at(now);
            self.bank.hold_back(now, FABRIC, priority, ready_at, &mut self.actions);
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
                self.bank.memory().map_or(Bytes(0), |memory| memory.queued(FABRIC, class));
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

/// Two ports with a class for each priority, which take equal turns. Every priority of the host
/// can be stopped; of the fabric, those with flow control: a group without headroom never asks
/// for a stop.
fn dcb(config: &AgentConfig) -> DcbConfig {
    let limits = |headroom| GroupLimits {
        reserved: Bytes(0),
        share: Share::Static(config.share),
        headroom,
        xon_offset: Bytes(config.share.0 / 2),
    };
    let from_fabric = Priority::ALL.map(|priority| {
        let stops = config.pause || config.pfc.contains(priority);
        limits(if stops { config.headroom } else { Bytes(0) })
    });
    let groups = alloc::vec![[limits(config.headroom); PRIORITIES], from_fabric];
    let share = Share::Static(config.share);
    let quantum_bytes = config.frame_bytes_max as u32 + u32::from(FrameCost::WIRE.overhead_bytes);
    DcbConfig {
        memory: MemoryConfig {
            lossless: PrioritySet::ALL,
            lossless_pool: Bytes(config.share.0 * (2 * PRIORITIES as u64)),
            lossy_pool: Bytes(0),
            groups,
            queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
        },
        schedule: ScheduleConfig::of([Algorithm::Drr { quantum_bytes }; PRIORITIES]),
        pfc: if config.pause { PrioritySet::EMPTY } else { PrioritySet::ALL },
        pause: config.pause,
        pfc_quanta: config.pfc_quanta,
        ..DcbConfig::lossy(alloc::vec![config.rate; 2], config.mac)
    }
}

impl<B: Frame> Node<B> for AgentNode<B> {
    fn handle(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, Moving::new(frame, port, complete_at, intact));
            }
            Input::TxDone { port } => self.bank.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => self.bank.link(now, port, up, &mut self.actions),
            Input::Timeout => {}
        }
        self.bank.timeout(now, &mut self.actions);
        self.recover(now);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let limiters = self.limiters.iter().flatten().filter_map(RateLimiter::deadline);
        limiters.chain(self.bank.deadline()).min()
    }

    fn awaited(&mut self) -> Awaited {
        self.bank.awaited()
    }
}

#[cfg(test)]
mod tests;
