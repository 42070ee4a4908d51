//! Port of a node in the run loop: its device, which comes and goes, its wire, and the frames that
//! are to be sent at the end of this round.

mod mtu;
mod rules;
mod wire;

use crate::agent::{HostPort, HostQueues};
use crate::agent_port::{AgentPort, AgentPortSetup};
use crate::closing;
use crate::kernel::ports::KernelPorts;
use crate::link_watch::is_up;
use crate::packet::PacketPort;
use crate::port::{Pool, Port, PortCounters, fabric_mtu};
use crate::status::PortStatus;
use crate::tap::TapPort;
use axon_node::PortKind;
use axon_switch::agent::Rules;
use axon_wire::{FrameBuf, PortNo, Rate, Time};
use mtu::Mtu;
use rules::RuleChanges;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use wire::Wire;

/// Maximum number of frames queued for the end of the round.
const BATCH: usize = 64;

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
pub(crate) struct DevicePort {
    setup: PortSetup,
    port: Option<Box<dyn Port>>,
    up: bool,
    /// True if the port has carrier or is a TAP port, but the device could not be opened. Opening
    /// is retried.
    failed: bool,
    wire: Wire,
    rules: RuleChanges,
    kind: PortKind,
    mtu: Mtu,
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

impl DevicePort {
    pub(crate) fn new(setup: PortSetup, kernel: Option<OfKernel>) -> DevicePort {
        // With a kernel data plane, only the egress queues can enforce the rate.
        let wire = Wire::new(setup.rate.filter(|_| kernel.is_none()));
        DevicePort {
            kernel,
            setup,
            port: None,
            up: false,
            failed: false,
            wire,
            rules: RuleChanges::default(),
            kind: PortKind::default(),
            mtu: Mtu::default(),
            batch: Vec::new(),
            before: PortCounters::default(),
        }
    }

    /// Returns the name of the device and of the port.
    pub(crate) fn device(&self) -> &str {
        &self.setup.device
    }

    /// Returns the device and its rate, if that is limited.
    pub(crate) fn rated(&self) -> Option<(&str, Rate)> {
        Some((self.device(), self.setup.rate?))
    }

    /// Returns whether the port is open and has carrier.
    pub(crate) const fn is_up(&self) -> bool {
        self.up
    }

    /// Returns whether opening the device has failed and is to be retried.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns the open port, if there is one.
    pub(crate) fn port(&self) -> Option<&dyn Port> {
        self.port.as_deref()
    }

    /// Returns the open port to read from it, if there is one.
    pub(crate) fn port_mut(&mut self) -> Option<&mut Box<dyn Port>> {
        self.port.as_mut()
    }

    /// Creates the interface for a host's programs, without which the node is useless, and the
    /// socket for an agent. Later, [`open_tap`](DevicePort::open_tap) re-creates them.
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
    fn is_full(&self) -> bool {
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
            self.mtu.read(&self.setup.device, self.mtu_needed());
        }
        // Loss of carrier frees the wire, and frames on it are lost.
        self.wire.free();
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
        if !self.mtu.follow(&self.setup.device, self.mtu_needed()) || self.is_tap() {
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
                self.wire.free();
                true
            }
        }
    }

    /// Returns the MTU, in bytes, that the longest frame needs with the current peer.
    fn mtu_needed(&self) -> Option<usize> {
        let host_mtu = self.setup.host_mtu?;
        Some(if self.kind == PortKind::Axon { fabric_mtu(host_mtu) } else { host_mtu })
    }

    /// Frees the wire. Returns whether it had a frame.
    pub(crate) fn free_wire(&mut self) -> bool {
        self.wire.free()
    }

    /// Returns whether the node has not had the `TxDone` of the last frame.
    pub(crate) const fn is_sending(&self) -> bool {
        self.wire.busy_until().is_some()
    }

    /// Returns whether the wire is busy at `now`, with a frame or because the far end accepts none.
    pub(crate) fn is_busy(&self, now: Time) -> bool {
        self.wire.busy_until().is_some_and(|time| time > now || self.is_full())
    }

    /// Records that the node waits for the wire.
    pub(crate) fn await_wire(&mut self) {
        self.wire.wait();
    }

    /// Returns the time at which the wire that the node waits for is free, or `None` if the far end
    /// accepts no frames, in which case an event of that end comes first.
    pub(crate) fn awaited_until(&self) -> Option<Time> {
        self.wire.awaited_until().filter(|_| !self.is_full())
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
            self.mtu.check(&self.setup.device, self.mtu_needed());
        }
    }

    /// Sets the rules for a host's queues if they have changed, now or when they are
    /// [due](DevicePort::rules_due).
    pub(crate) fn set_rules(&mut self, now: Time, rules: &Rules) {
        if let Medium::Host(queues) = &mut self.setup.medium {
            self.rules.set(now, rules, (&self.setup.device, queues), self.port.as_mut());
        }
    }

    /// Returns the time at which to set the rules again, if there are any to set.
    pub(crate) const fn rules_due(&self) -> Option<Time> {
        self.rules.due()
    }

    /// Puts a frame on the wire at `now`. It leaves this process with the batch.
    pub(crate) fn transmit(&mut self, now: Time, frame: FrameBuf, pool: &mut Pool) {
        self.wire.send(now, frame.bytes().len());
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

    /// Counts frames of this port that a capture has missed.
    pub(crate) fn missed(&mut self, frames: u64) {
        self.before.capture_missed += frames;
    }

    fn counters(&mut self) -> PortCounters {
        let mut sum = self.before;
        if let Some(port) = &mut self.port {
            sum.add(port.counters());
        }
        sum
    }

    /// Returns the status of the port, whose peer is of this kind.
    pub(crate) fn status(&mut self, kind: PortKind) -> PortStatus {
        PortStatus {
            name: self.setup.device.clone(),
            up: self.up,
            kind,
            rate_bps: self.setup.rate.map(|rate| rate.bits_per_second()),
            mtu_bytes: self.mtu.bytes().map(|bytes| bytes as u64),
            mtu_needed_bytes: self.mtu_needed().map(|bytes| bytes as u64),
            counters: self.counters(),
            agent: self.port().and_then(Port::agent_status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_device() -> DevicePort {
        let setup = PortSetup {
            device: "none-p0".into(),
            medium: Medium::Packet,
            rate: None,
            lossless: false,
            host_mtu: None,
        };
        DevicePort::new(setup, None)
    }

    #[test]
    fn a_port_without_device_stays_down_and_counts_what_it_cannot_send() {
        let mut slot = without_device();
        assert!(!slot.set_up(true));
        assert!(slot.failed, "to be tried again");
        let mut pool = Pool::default();
        slot.transmit(Time::ZERO, FrameBuf::new(&[0; 60]), &mut pool);
        slot.flush(&mut pool).unwrap();
        assert_eq!(slot.counters().tx_refused, 1);
        assert!(!slot.set_up(false) && !slot.failed, "without carrier there is nothing to try");
    }

    #[test]
    fn what_a_capture_misses_is_not_lost() {
        let mut slot = without_device();
        slot.missed(5);
        let counters = slot.status(PortKind::Axon).counters;
        assert_eq!(counters.capture_missed, 5);
        assert!(counters.lost().iter().all(|(_, count)| *count == 0), "{counters:?}");
    }
}
