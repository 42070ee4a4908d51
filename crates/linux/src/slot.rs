//! Port of a node in the run loop: its device, which comes and goes, its wire, and the frames that
//! are to be sent at the end of this round.

use crate::agent::{HostPort, HostQueues};
use crate::agent_port::{AgentPort, AgentPortSetup, AgentStatus};
use crate::closing;
use crate::kernel::ports::KernelPorts;
use crate::link_watch::is_up;
use crate::pacer::Pacer;
use crate::packet::PacketPort;
use crate::port::{Pool, Port, PortCounters, fabric_mtu};
use crate::sys;
use crate::tap::TapPort;
use axon_node::PortKind;
use axon_switch::agent::Rules;
use axon_wire::{FrameBuf, PortNo, Rate, Span, Time};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Maximum number of frames queued for the end of the round.
const BATCH: usize = 64;
/// Minimum time between changes to the rules for a host's queues.
const RULES_PAUSE: Span = Span::from_secs(1);

/// Kind of device of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Network device: a NIC or one end of a veth pair.
    Packet,
    /// Far end of a TAP device, which the port creates.
    Tap,
    /// Far end of a TAP device whose queues block a host's programs while a priority is paused.
    Host(HostQueues),
    /// Shared memory with an agent at the far end. There is no device.
    Agent(AgentPortSetup),
}

impl Medium {
    /// Opens a TAP device or an agent port. Returns `None` for a device that others create.
    fn open_tap(&self, device: &str) -> Option<anyhow::Result<Box<dyn Port>>> {
        match self {
            Medium::Packet => None,
            Medium::Tap => {
                Some(TapPort::open(device).map(|port| Box::new(port) as _).map_err(Into::into))
            }
            Medium::Host(queues) => {
                Some(HostPort::open(device, queues).map(|port| Box::new(port) as _))
            }
            Medium::Agent(setup) => {
                Some(AgentPort::open(device, setup).map(|port| Box::new(port) as _))
            }
        }
    }
}

/// Settings of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSetup {
    /// Name of the device and of the port, such as `s1-p0`.
    pub device: String,
    /// Kind of device.
    pub medium: Medium,
    /// Transmit rate; unlimited if `None`.
    pub rate: Option<Rate>,
    /// True if some traffic must be lossless, at any load on the machine.
    pub lossless: bool,
    /// MTU of the fabric's hosts, in bytes. A host port needs this MTU, and an Axon port needs
    /// [`fabric_mtu`]. If `None`, any MTU will do.
    pub host_mtu: Option<usize>,
}

/// Port that may have lost its device.
pub(crate) struct Slot {
    pub(crate) setup: PortSetup,
    pub(crate) port: Option<Box<dyn Port>>,
    pub(crate) up: bool,
    /// True if the port has carrier or is a TAP port, but the device could not be opened. Opening
    /// is retried.
    pub(crate) failed: bool,
    /// Time at which the wire is free. `None` once the node has its `TxDone`.
    pub(crate) busy_until: Option<Time>,
    /// True if the node waits for the `TxDone`, because frames are queued behind the one on the
    /// wire.
    pub(crate) awaited: bool,
    /// Time at which to set rules that changed too soon after the previous ones.
    pub(crate) rules_due: Option<Time>,
    /// Time from which the rules may change again.
    rules_settled_at: Time,
    /// True if the last change failed, so that the active rules are unknown.
    rules_unknown: bool,
    kind: PortKind,
    /// MTU of the device when it was last read, in bytes. `None` before there was a device.
    mtu: Option<usize>,
    /// Actual and required MTU in the last alarm, in bytes.
    alarmed: Option<(usize, usize)>,
    pacer: Pacer,
    batch: Vec<FrameBuf>,
    /// Counters of the ports of this slot that have been closed.
    before: PortCounters,
    /// Kernel data plane that carries the frames of this port.
    kernel: Option<OfKernel>,
}

/// Kernel data plane of a port, and the port's number there.
#[derive(Clone)]
pub(crate) struct OfKernel {
    pub(crate) ports: Rc<RefCell<KernelPorts>>,
    pub(crate) number: PortNo,
}

impl Slot {
    pub(crate) fn new(setup: PortSetup, kernel: Option<OfKernel>) -> Slot {
        // With a kernel data plane, only the egress queues can enforce the rate.
        let pacer = Pacer::new(setup.rate.filter(|_| kernel.is_none()));
        Slot {
            kernel,
            setup,
            port: None,
            up: false,
            failed: false,
            busy_until: None,
            awaited: false,
            rules_due: None,
            rules_settled_at: Time::ZERO,
            rules_unknown: false,
            kind: PortKind::default(),
            mtu: None,
            alarmed: None,
            pacer,
            batch: Vec::new(),
            before: PortCounters::default(),
        }
    }

    /// Creates the interface for a host's programs, without which the node is useless, and the
    /// socket for an agent. Later, [`open_tap`](Slot::open_tap) re-creates them.
    pub(crate) fn open_own(&mut self) -> anyhow::Result<()> {
        if let Medium::Host(_) | Medium::Agent(_) = &self.setup.medium {
            self.port = self.setup.medium.open_tap(&self.setup.device).transpose()?;
        }
        Ok(())
    }

    /// Returns whether the port has carrier: that of the device or, for an agent port, an attached
    /// agent.
    pub(crate) fn carrier(&self) -> bool {
        let own = self.port.as_ref().and_then(|port| port.carrier());
        own.unwrap_or_else(|| is_up(&self.setup.device))
    }

    /// Returns whether the carrier is independent of the kernel.
    pub(crate) fn has_own_carrier(&self) -> bool {
        matches!(self.setup.medium, Medium::Agent(_))
    }

    /// Returns whether the far end has room only for the frames that are already queued for the end
    /// of the round.
    pub(crate) fn is_full(&self) -> bool {
        self.port.as_ref().is_some_and(|port| port.room() <= self.batch.len())
    }

    /// Creates the device of a TAP port if it is missing. A packet port waits for its device.
    pub(crate) fn open_tap(&mut self) {
        if self.port.is_some() {
            return;
        }
        match self.setup.medium.open_tap(&self.setup.device) {
            None => {}
            Some(Ok(port)) => {
                self.port = Some(port);
                self.failed = false;
            }
            Some(Err(_)) if self.failed => {}
            Some(Err(error)) => {
                self.failed = true;
                tracing::warn!(port = self.setup.device, "cannot be made: {error:#}");
            }
        }
    }

    /// Handles a TAP device that cannot be read because it was deleted. The device is created
    /// again.
    pub(crate) fn lose_tap(&mut self) {
        if self.is_tap() {
            self.close();
            self.failed = true;
        }
    }

    /// Handles a change of carrier. Returns whether the port's state has changed. A packet port is
    /// reopened whenever carrier returns, because the device may be a different one.
    pub(crate) fn set_up(&mut self, up: bool) -> bool {
        let is_tap = self.is_tap();
        let has_failed = !is_tap && std::mem::take(&mut self.failed);
        if up == self.up {
            if !up {
                self.leave_gone();
            }
            return up && self.follow_mtu();
        }
        if !is_tap {
            self.close();
            if up {
                match self.open_device() {
                    Ok(port) => self.port = Some(port),
                    Err(error) => {
                        self.failed = true;
                        // Logged once, because the port is retried every second.
                        if !has_failed {
                            tracing::warn!(port = self.setup.device, "cannot be opened: {error:#}");
                        }
                        return false;
                    }
                }
            }
        }
        self.up = up;
        if up {
            self.mtu = sys::device_mtu(&self.setup.device).ok();
            self.check_mtu();
        }
        // Loss of carrier frees the wire, and frames on it are lost.
        self.free_wire();
        if let Some(port) = &mut self.port {
            port.set_kind(self.kind);
        }
        true
    }

    /// Opens the device, which must exist.
    fn open_device(&self) -> anyhow::Result<Box<dyn Port>> {
        match &self.kernel {
            Some(OfKernel { ports, number }) => {
                ports.borrow_mut().open_port(*number, &self.setup.device, self.setup.rate)
            }
            None => Ok(Box::new(PacketPort::open(&self.setup.device, self.setup.lossless)?)),
        }
    }

    /// Handles a changed MTU of an open device. Returns whether the port is lost, in which case
    /// opening is retried. A packet port is reopened, because the slots of its ring have the size
    /// of the old MTU.
    fn follow_mtu(&mut self) -> bool {
        let mtu = sys::device_mtu(&self.setup.device).ok();
        if mtu.is_none() || mtu == self.mtu {
            return false;
        }
        self.mtu = mtu;
        self.check_mtu();
        if self.is_tap() {
            return false;
        }
        self.close();
        match self.open_device() {
            Ok(mut port) => {
                port.set_kind(self.kind);
                self.port = Some(port);
                false
            }
            Err(error) => {
                tracing::warn!(port = self.setup.device, "cannot be opened: {error:#}");
                (self.up, self.failed) = (false, true);
                self.free_wire();
                true
            }
        }
    }

    /// Returns the MTU of the device, in bytes, or `None` before there was a device.
    pub(crate) fn mtu(&self) -> Option<usize> {
        self.mtu
    }

    /// Returns the MTU, in bytes, that the longest frame needs with the current peer.
    pub(crate) fn mtu_needed(&self) -> Option<usize> {
        let host_mtu = self.setup.host_mtu?;
        Some(if self.kind == PortKind::Axon { fabric_mtu(host_mtu) } else { host_mtu })
    }

    /// Raises an alarm, once, if the MTU of the device is too small for the longest frame.
    fn check_mtu(&mut self) {
        let pair = self.mtu.zip(self.mtu_needed());
        if let Some((mtu, needed)) = pair.filter(|(mtu, needed)| mtu < needed)
            && self.alarmed != pair
        {
            self.alarmed = pair;
            let port = &self.setup.device;
            tracing::error!(port, mtu, needed, "ALARM: MTU too small: longer frames are lost");
        }
    }

    /// Frees the wire, so that it has no frame and the node does not await it.
    pub(crate) fn free_wire(&mut self) {
        (self.busy_until, self.awaited) = (None, false);
    }

    fn is_tap(&self) -> bool {
        self.setup.medium != Medium::Packet
    }

    fn close(&mut self) {
        if let Some(mut port) = self.port.take() {
            self.before.add(port.counters());
            closing::apart(port.into_sockets());
        }
        if let Some(OfKernel { ports, number }) = &self.kernel {
            ports.borrow_mut().close_port(*number);
        }
        self.leave_gone();
    }

    /// Detaches the kernel's program from a device that no longer belongs to the port.
    fn leave_gone(&self) {
        if let Some(OfKernel { ports, number }) = &self.kernel {
            ports.borrow_mut().leave_gone(*number, &self.setup.device);
        }
    }

    pub(crate) fn set_kind(&mut self, kind: PortKind) {
        if kind != self.kind {
            self.kind = kind;
            if let Some(port) = &mut self.port {
                port.set_kind(kind);
            }
            self.check_mtu();
        }
    }

    /// Sets the rules for a host's queues if they have changed. This happens at most once per
    /// second, because it runs external programs, and a neighbour may advertise other rules with
    /// every LLDPDU. Rules that come sooner, or that could not be set, become
    /// [due](Slot::rules_due). Of these, only the last ones are set.
    pub(crate) fn set_rules(&mut self, now: Time, rules: &Rules) {
        self.rules_due = None;
        if let Medium::Host(queues) = &mut self.setup.medium
            && (self.rules_unknown || queues.rules != *rules)
        {
            if now < self.rules_settled_at {
                self.rules_due = Some(self.rules_settled_at);
                return;
            }
            self.rules_settled_at = now + RULES_PAUSE;
            let set = self.port.as_mut().map_or(Ok(()), |port| port.set_rules(rules));
            self.rules_unknown = set.is_err();
            match set {
                Ok(()) => queues.rules = rules.clone(),
                Err(error) => {
                    self.rules_due = Some(self.rules_settled_at);
                    let port = &self.setup.device;
                    tracing::warn!(port, "not all rules are in force yet: {error:#}");
                }
            }
        }
    }

    /// Puts a frame on the wire at `now`. It leaves this process with the batch.
    pub(crate) fn transmit(&mut self, now: Time, frame: FrameBuf, pool: &mut Pool) {
        self.busy_until = Some(self.pacer.send(now, frame.bytes().len()));
        self.batch.push(frame);
        if self.batch.len() >= BATCH {
            // The loss of the device is detected again at the end of the round.
            let _ = self.flush(pool);
        }
    }

    /// Returns whether the far end needs the node's queue lengths before the pending frames.
    pub(crate) fn shows_queues(&self) -> bool {
        self.has_own_carrier() && !self.batch.is_empty()
    }

    /// Publishes the queue lengths of the node to the far end; see [`Port::show_queues`].
    pub(crate) fn show_queues(&mut self, queued: &mut dyn Iterator<Item = Option<u64>>) {
        self.port.iter_mut().for_each(|port| port.show_queues(queued));
    }

    /// Sends the batch.
    pub(crate) fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let result = match &mut self.port {
            Some(port) if self.up => port.transmit(&mut self.batch),
            _ => {
                self.before.tx_refused += self.batch.len() as u64;
                Ok(())
            }
        };
        self.batch.drain(..).for_each(|frame| pool.recycle(frame));
        result
    }

    /// Returns the status of an agent port.
    pub(crate) fn agent_status(&self) -> Option<AgentStatus> {
        self.port.as_ref().and_then(|port| port.agent_status())
    }

    /// Counts frames of this port that a capture has missed.
    pub(crate) fn missed(&mut self, frames: u64) {
        self.before.rx_ring_drops += frames;
    }

    pub(crate) fn counters(&mut self) -> PortCounters {
        let mut sum = self.before;
        if let Some(port) = &mut self.port {
            sum.add(port.counters());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_switch::agent::rules::parse;

    fn host_slot() -> Slot {
        let queues = HostQueues { rate: Rate::mbps(100), rules: Rules::new(&[]), mtu: 1500 };
        Slot::new(
            PortSetup {
                device: "h1-p0".into(),
                medium: Medium::Host(queues),
                rate: None,
                lossless: true,
                host_mtu: None,
            },
            None,
        )
    }

    fn rules_of(slot: &Slot) -> Rules {
        let Medium::Host(queues) = &slot.setup.medium else { unreachable!() };
        queues.rules.clone()
    }

    #[test]
    fn rules_change_once_a_second_and_the_last_ones_win() {
        let rules = [1, 2, 3]
            .map(|priority| Rules::new(&[parse(&format!("udp:4791={priority}")).unwrap()]));
        let mut slot = host_slot();
        let mut set = |millis, rules: &Rules| {
            slot.set_rules(Time::ZERO + Span::from_millis(millis), rules);
            (rules_of(&slot), slot.rules_due)
        };
        let due = Some(Time::ZERO + Span::from_millis(1_000));
        assert_eq!(set(0, &rules[0]), (rules[0].clone(), None));
        assert_eq!(set(1, &rules[1]), (rules[0].clone(), due));
        assert_eq!(set(2, &rules[0]), (rules[0].clone(), None), "as it is");
        assert_eq!(set(999, &rules[2]), (rules[0].clone(), due));
        assert_eq!(set(1_000, &rules[2]), (rules[2].clone(), None));
        assert_eq!(set(1_001, &rules[1]).0, rules[2]);
    }

    /// Interface that refuses rules the first time.
    struct RefusesOnce {
        tries: usize,
    }

    impl Port for RefusesOnce {
        fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
            unreachable!("nobody waits for it")
        }
        fn receive(&mut self, _: &mut Pool, _: &mut Vec<FrameBuf>) -> io::Result<bool> {
            Ok(false)
        }
        fn transmit(&mut self, _: &mut Vec<FrameBuf>) -> io::Result<()> {
            Ok(())
        }
        fn set_rules(&mut self, _: &Rules) -> anyhow::Result<()> {
            self.tries += 1;
            anyhow::ensure!(self.tries > 1, "no memory");
            Ok(())
        }
        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
    }

    #[test]
    fn rules_that_an_interface_refused_or_those_before_are_set_again_a_second_later() {
        let (none, rules) = (Rules::new(&[]), Rules::new(&[parse("udp:4791=3").unwrap()]));
        for wanted_then in [&rules, &none] {
            let mut slot = host_slot();
            slot.port = Some(Box::new(RefusesOnce { tries: 0 }));
            slot.set_rules(Time::ZERO, &rules);
            let due = Time::ZERO + RULES_PAUSE;
            assert_eq!((rules_of(&slot), slot.rules_due), (none.clone(), Some(due)));
            slot.set_rules(Time::ZERO, wanted_then);
            assert_eq!(slot.rules_due, Some(due));
            slot.set_rules(due, wanted_then);
            assert_eq!((rules_of(&slot), slot.rules_due), (wanted_then.clone(), None));
            assert!(!slot.rules_unknown);
        }
    }

    #[test]
    fn a_port_without_device_stays_down_and_counts_what_it_cannot_send() {
        let mut slot = Slot::new(
            PortSetup {
                device: "none-p0".into(),
                medium: Medium::Packet,
                rate: None,
                lossless: false,
                host_mtu: None,
            },
            None,
        );
        assert!(!slot.set_up(true));
        assert!(slot.failed, "to be tried again");
        let mut pool = Pool::default();
        slot.transmit(Time::ZERO, FrameBuf::new(&[0; 60]), &mut pool);
        slot.flush(&mut pool).unwrap();
        assert_eq!(slot.counters().tx_refused, 1);
        assert!(!slot.set_up(false) && !slot.failed, "without carrier there is nothing to try");
    }
}
