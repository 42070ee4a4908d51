//! Port whose frames the kernel carries. The process only sends here, through the egress queues,
//! and receives through the node's queues.

use crate::kernel::shares::{CONTROL_PRIORITY, DATA_PRIORITY};
use crate::port::{Pool, Port, PortCounters, send_all};
use crate::sys;
use axon_node::PortKind;
use axon_wire::FrameBuf;
use axon_wire::header::PacketType;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Link-local addresses 01-80-C2-00-00-0x (IEEE 802.1Q clause 8.6.3).
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];

/// Device in this network namespace, for sending only.
pub struct SendPort {
    /// Socket for control packets from the node, with the highest priority.
    control: OwnedFd,
    /// Socket for frames from hosts that the node forwards.
    data: OwnedFd,
    kind: PortKind,
    counters: PortCounters,
}

impl SendPort {
    /// Opens a device in the calling thread's network namespace. The device must be up.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, and ENODEV or ENETDOWN for a missing or down device.
    pub(crate) fn open(device: &str) -> io::Result<SendPort> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let socket = |priority: i32| {
            let socket = sys::packet_socket()?;
            sys::bind_packet(socket.as_fd(), index, 0)?;
            setsockopt(&socket, sockopt::Priority, &priority)?;
            io::Result::Ok(socket)
        };
        Ok(SendPort {
            control: socket(CONTROL_PRIORITY)?,
            data: socket(DATA_PRIORITY)?,
            kind: PortKind::default(),
            counters: PortCounters::default(),
        })
    }

    /// Returns whether a frame comes from a host and the node only forwards it.
    fn is_data(&self, frame: &[u8]) -> bool {
        match self.kind {
            PortKind::Axon => frame.first().is_some_and(|first| first >> 4 == ETHERNET),
            _ => !frame.starts_with(&LINK_LOCAL),
        }
    }
}

/// First four bits of a packet that carries a frame from a host.
const ETHERNET: u8 = PacketType::Ethernet as u8;

impl Port for SendPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    fn into_sockets(self: Box<Self>) -> Vec<OwnedFd> {
        vec![self.control, self.data]
    }

    /// Receives no frames, but reports that the device is down.
    fn receive(&mut self, _: &mut Pool, _: &mut Vec<FrameBuf>) -> io::Result<bool> {
        match getsockopt(&self.control, sockopt::SocketError)? {
            0 => Ok(false),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()> {
        let same = |a: &FrameBuf, b: &FrameBuf| self.is_data(a.bytes()) == self.is_data(b.bytes());
        let mut counters = self.counters;
        let mut sent = Ok(());
        for run in frames.chunk_by(same) {
            if sent.is_err() {
                counters.tx_refused += run.len() as u64;
                continue;
            }
            let is_data = run.first().is_some_and(|frame| self.is_data(frame.bytes()));
            let socket = if is_data { &self.data } else { &self.control };
            sent = send_all(socket.as_fd(), run, &mut counters);
        }
        self.counters = counters;
        sent
    }

    fn set_kind(&mut self, kind: PortKind) {
        self.kind = kind;
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
