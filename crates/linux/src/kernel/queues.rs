//! Three TAP devices through which a switch receives the packets that its tc programs pass to the
//! node.
//!
//! A TAP device has no offloads here, so the kernel segments super-packets into frames and
//! completes their checksums before the process sees them. The ingress port of a frame is in a VLAN
//! tag, which is removed here. Frames that the kernel itself sends on these devices have no tag and
//! are ignored.

use super::{Kernel, KernelError, NodeQueue};
use crate::port::Pool;
use crate::sys;
use axon_wire::vlan::TAG_BYTES;
use axon_wire::{FrameBuf, PortNo};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Length of the Ethernet addresses that precede the tag, in bytes.
const ADDRESSES: usize = 12;
/// Longest frame that is read, in bytes, including its tag. The kernel builds no longer one.
const READ_BYTES_MAX: usize = 1 << 16;
/// Queue length of a device, in frames, for a process that is late: 5 ms of full-size frames at 10
/// Gb/s.
const DEVICE_FRAMES: i32 = 4096;
/// Frames from switches and link-local frames per round: as many as a receive ring holds.
const BURST: usize = 256;
/// Frames from hosts per round: a fraction of a millisecond of work.
const BURST_OF_HOSTS: usize = 64;

/// Queues in the order in which a round reads them, with neighbours before hosts.
pub const QUEUES: [NodeQueue; 3] = [NodeQueue::Fabric, NodeQueue::Links, NodeQueue::Hosts];

/// Queues from the tc programs to the node of one switch. Without them, the programs drop packets
/// for the node.
pub struct NodeQueues {
    name: String,
    devices: [File; 3],
    buffer: Vec<u8>,
}

impl NodeQueues {
    /// Creates the devices `NAME-n0` to `NAME-n2` in the calling thread's network namespace, and
    /// makes `kernel` send to them. Dropping this value removes them.
    ///
    /// # Errors
    /// There is no `/dev/net/tun` or no CAP_NET_ADMIN, or a name is too long or taken.
    pub(crate) fn open(name: &str, kernel: &mut Kernel) -> Result<NodeQueues, KernelError> {
        let open = |queue: NodeQueue| {
            let device = device_of(name, queue);
            let file = open_device(&device);
            let opened = file.and_then(|file| Ok((file, nix::net::if_::if_nametoindex(&*device)?)));
            opened.map_err(|source| KernelError::System { call: device, source })
        };
        let mut devices = Vec::with_capacity(QUEUES.len());
        for queue in QUEUES {
            let (file, ifindex) = open(queue)?;
            kernel.set_node(queue, ifindex)?;
            devices.push(file);
        }
        let devices = devices.try_into().expect("as many as queues");
        Ok(NodeQueues { name: name.to_owned(), devices, buffer: vec![0; READ_BYTES_MAX] })
    }

    /// Returns the descriptors to poll for readability.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.devices.iter().map(AsFd::as_fd)
    }

    /// Sets devices that are down up again. Without them, the switch receives only frames that the
    /// kernel handles. [`receive`](NodeQueues::receive) reports a missing device.
    pub(crate) fn raise(&self) {
        for device in QUEUES.map(|queue| device_of(&self.name, queue)) {
            if !sys::device_flags(&device).is_ok_and(is_down) {
                continue;
            }
            match sys::set_device_up(&device, true) {
                Ok(()) => tracing::warn!(device, "it was down and is set up again"),
                Err(error) => tracing::error!(device, "ALARM: it is down: {error}"),
            }
        }
    }

    /// Appends the frames in a queue to `out`, each with its ingress port. Returns whether there
    /// may be more.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn receive(
        &mut self,
        queue: NodeQueue,
        pool: &mut Pool,
        out: &mut Vec<(PortNo, FrameBuf)>,
    ) -> io::Result<bool> {
        let burst = if queue == NodeQueue::Hosts { BURST_OF_HOSTS } else { BURST };
        for _ in 0..burst {
            match self.devices[queue as usize].read(&mut self.buffer) {
                Ok(length) => {
                    let frame = untagged(&mut self.buffer[..length]);
                    out.extend(frame.map(|(port, bytes)| (port, pool.frame(bytes, None))));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let device = device_of(&self.name, queue);
                    let why = format!("nothing comes to the node by {device}: {error}");
                    return Err(io::Error::other(why));
                }
            }
        }
        Ok(true)
    }
}

/// Returns whether a device with these flags is administratively down.
fn is_down(flags: u32) -> bool {
    flags & libc::IFF_UP as u32 == 0
}

fn device_of(name: &str, queue: NodeQueue) -> String {
    format!("{name}-n{}", queue as u8)
}

fn open_device(device: &str) -> io::Result<File> {
    let file = File::from(sys::open_tap(device)?);
    // Keeps the kernel from sending its own frames here. Without IPv6, there is nothing to switch
    // off.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
    sys::set_queue_length(device, DEVICE_FRAMES)?;
    sys::set_device_up(device, true)?;
    Ok(file)
}

/// Removes the outermost tag. Returns the port in it, and the frame without it.
fn untagged(bytes: &mut [u8]) -> Option<(PortNo, &[u8])> {
    let tag = bytes.get(ADDRESSES..ADDRESSES + TAG_BYTES)?;
    let [0x81, 0, high, low] = *tag else { return None };
    bytes.copy_within(..ADDRESSES, TAG_BYTES);
    Some((PortNo(u16::from_be_bytes([high & 0xf, low])), &bytes[TAG_BYTES..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_frame_says_its_port_and_is_taken_out() {
        let mut frame: Vec<u8> = (0..20).collect();
        frame[12..16].copy_from_slice(&[0x81, 0, 0x01, 0x02]);
        let expected: Vec<u8> = (0..12).chain(16..20).collect();
        assert_eq!(untagged(&mut frame), Some((PortNo(258), &expected[..])));
    }

    #[test]
    fn a_frame_of_the_kernels_own_is_nobodys() {
        assert_eq!(untagged(&mut [0x86; 60]), None);
        assert_eq!(untagged(&mut [0x81; 15]), None);
    }
}
