//! The NIC as the IP stack sees it.

use crate::nic::Nic;
use axon_wire::FrameBuf;
use axon_wire::link::ETHERNET_BYTES;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// NIC, and the received frames for the stack.
pub(crate) struct Wire<'a> {
    pub(crate) nic: &'a mut Nic,
    pub(crate) rx: &'a mut VecDeque<FrameBuf>,
}

impl Device for Wire<'_> {
    type RxToken<'a>
        = Received
    where
        Self: 'a;
    type TxToken<'a>
        = Room<'a>
    where
        Self: 'a;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Room<'_>)> {
        if !self.nic.has_room() {
            return None;
        }
        let frame = self.rx.pop_front()?;
        Some((Received(frame), Room(self.nic)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room<'_>> {
        self.nic.has_room().then_some(Room(self.nic))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = usize::from(self.nic.mtu()) + ETHERNET_BYTES;
        capabilities
    }
}

/// Received frame on its way to the stack.
pub(crate) struct Received(FrameBuf);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0.contents().whole())
    }
}

/// Transmit slot for a frame from the stack.
pub(crate) struct Room<'a>(&'a mut Nic);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.build(length, write)
    }
}
