//! Ports of a run loop, their wires, and the memory of their frames.

use crate::device_port::{DevicePort, OfKernel, PortSetup};
use crate::kernel::ports::KernelPorts;
use crate::port::Pool;
use axon_wire::{FrameBuf, PortNo, Span, Time};
use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// Time grid for checking free wires, so that at full load one wake-up serves several frames. It is
/// less than the pacer's slack, so it adds latency under load but does not reduce rates.
const PACING_GRID: Span = Span::from_micros(200);
/// Interval between attempts to open a port that has carrier and could not be opened. The kernel
/// may have been short of memory, and it does not report the end of that.
const RETRY: Span = Span::from_secs(1);

/// Ports of a node, by port number.
pub(super) struct Ports {
    devices: Vec<DevicePort>,
    pool: Pool,
    /// Ports with a frame on their wire, and some that have lost carrier in the meantime.
    busy: Vec<usize>,
    /// Time of the last attempt to open the ports that could not be opened.
    retried: Time,
}

impl Ports {
    /// Creates the ports. Opens only interfaces for a host's programs and sockets for agents.
    ///
    /// # Errors
    /// One of these cannot be opened.
    pub(super) fn new(
        setups: Vec<PortSetup>,
        kernel: Option<&Rc<RefCell<KernelPorts>>>,
    ) -> anyhow::Result<Ports> {
        let of_kernel =
            |number| kernel.cloned().map(|ports| OfKernel { ports, number: PortNo(number) });
        let devices = (0..).zip(setups);
        let mut devices: Vec<DevicePort> =
            devices.map(|(number, setup)| DevicePort::new(setup, of_kernel(number))).collect();
        devices.iter_mut().try_for_each(DevicePort::open_own)?;
        Ok(Ports { devices, pool: Pool::default(), busy: Vec::new(), retried: Time::ZERO })
    }

    /// Returns the number of ports.
    pub(super) fn count(&self) -> usize {
        self.devices.len()
    }

    /// Returns all ports, in order.
    pub(super) fn all(&self) -> &[DevicePort] {
        &self.devices
    }

    /// Returns a port, if it exists.
    pub(super) fn get(&self, index: usize) -> Option<&DevicePort> {
        self.devices.get(index)
    }

    /// Returns a port, which must exist.
    pub(super) fn device_mut(&mut self, index: usize) -> &mut DevicePort {
        &mut self.devices[index]
    }

    /// Returns the pool of frame memory.
    pub(super) fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Appends frames that a port has received to `out`. Returns whether there may be more.
    ///
    /// # Errors
    /// The device is down or gone.
    pub(super) fn receive(&mut self, index: usize, out: &mut Vec<FrameBuf>) -> io::Result<bool> {
        let port = self.devices[index].port_mut();
        port.map_or(Ok(false), |port| port.receive(&mut self.pool, out))
    }

    /// Puts a frame on the wire of a port. Without such a port, the frame is dropped.
    pub(super) fn transmit(&mut self, now: Time, port: PortNo, frame: FrameBuf) {
        let Some(device) = self.devices.get_mut(port.index()) else {
            return;
        };
        if !device.is_sending() {
            self.busy.push(port.index());
        }
        device.transmit(now, frame, &mut self.pool);
    }

    /// Sends the frames of a port that are to leave at the end of a round.
    ///
    /// # Errors
    /// The device is down or gone.
    pub(super) fn flush(&mut self, index: usize) -> io::Result<()> {
        self.devices[index].flush(&mut self.pool)
    }

    /// Frees the next wire whose frame has left at `now`. Returns its port, or `None` if there is
    /// none. `at` is the position from which to search; it begins at 0.
    pub(super) fn free_wire(&mut self, now: Time, at: &mut usize) -> Option<PortNo> {
        while let Some(&index) = self.busy.get(*at) {
            let device = &mut self.devices[index];
            if device.is_busy(now) {
                *at += 1;
                continue;
            }
            self.busy.swap_remove(*at);
            // A port that has lost carrier in the meantime needs no `TxDone`.
            if device.free_wire() {
                return Some(PortNo(index as u16));
            }
        }
        None
    }

    /// Records that the node waits for the wire of a port.
    pub(super) fn await_wire(&mut self, port: PortNo) {
        self.devices.get_mut(port.index()).into_iter().for_each(DevicePort::await_wire);
    }

    /// Records that the node waits for all wires.
    pub(super) fn await_all(&mut self) {
        self.devices.iter_mut().for_each(DevicePort::await_wire);
    }

    /// Returns whether ports that could not be opened are to be tried again.
    pub(super) fn retry(&mut self, now: Time) -> bool {
        let is_due = now.since(self.retried) >= RETRY;
        if is_due {
            self.retried = now;
        }
        is_due
    }

    /// Returns the time of the next event of a port that no descriptor reports. A wire that is not
    /// [awaited](axon_node::Shortcuts::awaited) may become free unnoticed before then.
    pub(super) fn wake_at(&self) -> Option<Time> {
        let wires = self.devices.iter().filter_map(DevicePort::awaited_until).min();
        let grid = PACING_GRID.ticks();
        let wires = wires.map(|time| Time::from_ticks(time.ticks().next_multiple_of(grid)));
        let retry = self.devices.iter().any(DevicePort::has_failed).then_some(self.retried + RETRY);
        let rules = self.devices.iter().filter_map(DevicePort::rules_due);
        wires.into_iter().chain(retry).chain(rules).min()
    }

    /// Prepares all ports for a wait. Returns true if any of them has a reason not to wait.
    pub(super) fn before_wait(&mut self) -> bool {
        let mut at_once = false;
        for port in self.devices.iter_mut().filter_map(DevicePort::port_mut) {
            at_once |= port.before_wait();
        }
        at_once
    }

    /// Returns the ports that have frames, or `None` if finding out takes a system call.
    pub(super) fn with_frames(&self) -> Option<Vec<usize>> {
        let mut ports = Vec::new();
        for (index, device) in self.devices.iter().enumerate() {
            if let Some(port) = device.port()
                && port.has_frame()?
            {
                ports.push(index);
            }
        }
        Some(ports)
    }

    /// Returns the descriptors of the open ports, with their numbers.
    pub(super) fn fds(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let open = self.devices.iter().enumerate();
        open.filter_map(|(index, device)| Some((index, device.port()?.fd())))
    }

    /// Returns whether a port has a frame, as far as that is known without a system call.
    pub(super) fn has_frame(&self, index: usize) -> bool {
        self.devices[index].port().is_some_and(|port| port.has_frame() == Some(true))
    }
}
