//! Port on a TAP device. This process is the far end of a device that the kernel or a virtual
//! machine uses as its own.
//!
//! Without a virtio header, the kernel offers no offloads on a TAP device. Frames therefore come
//! segmented, with complete checksums and their VLAN tags in place.

use crate::device_drops::tx_dropped;
use crate::port::{Pool, Port, PortCounters, is_device_loss};
use crate::sys;
use axon_wire::FrameBuf;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::vlan::TAG_BYTES;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of frames received per call.
const BURST: usize = 256;

/// Far end of a TAP device.
pub struct TapPort {
    file: File,
    buffer: Vec<u8>,
    counters: PortCounters,
    device: String,
    ifindex: u32,
    /// Drops of the device before the port was opened.
    dropped_before: u64,
}

impl TapPort {
    /// Opens TAP device `device` in the calling thread's network namespace. The device is created
    /// if it is missing, and removed with this port.
    ///
    /// # Errors
    /// ENOENT or EACCES without `/dev/net/tun`, EPERM without CAP_NET_ADMIN, EBUSY if the device is
    /// in use.
    pub fn open(device: &str) -> io::Result<TapPort> {
        let file = File::from(sys::open_tap(device)?);
        let ifindex = nix::net::if_::if_nametoindex(device)?;
        let dropped_before = tx_dropped(ifindex, Some(device)).unwrap_or(0);
        let (buffer, counters) = (Vec::new(), PortCounters::default());
        let name = device.to_owned();
        let mut port = TapPort { file, buffer, counters, device: name, ifindex, dropped_before };
        port.follow_mtu(device)?;
        Ok(port)
    }

    /// Adapts the receive buffer to the current MTU of the device.
    ///
    /// # Errors
    /// ENODEV if the device is gone.
    pub(crate) fn follow_mtu(&mut self, device: &str) -> io::Result<()> {
        // The buffer has one spare byte, so a frame that fills it is too long.
        self.buffer = vec![0; sys::device_mtu(device)? + ETHERNET_BYTES + TAG_BYTES + 1];
        Ok(())
    }

    /// Sends all of `frames`, in order. Frames that the kernel refuses are counted and lost.
    ///
    /// # Errors
    /// The device is gone. The port is then no longer usable.
    pub fn send(&mut self, frames: &[FrameBuf]) -> io::Result<()> {
        for (at, frame) in frames.iter().enumerate() {
            match self.file.write(frame.bytes()) {
                Ok(length) => {
                    self.counters.tx_frames += 1;
                    self.counters.tx_bytes += length as u64;
                }
                Err(error) if is_device_loss(&error) => {
                    self.counters.tx_refused += (frames.len() - at) as u64;
                    return Err(error);
                }
                Err(_) => self.counters.tx_refused += 1,
            }
        }
        Ok(())
    }
}

impl Port for TapPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool> {
        for _ in 0..BURST {
            match self.file.read(&mut self.buffer) {
                // The buffer has one spare byte, so a read that fills it was truncated.
                Ok(length) if length == self.buffer.len() => self.counters.rx_oversized += 1,
                Ok(length) => {
                    self.counters.rx_frames += 1;
                    self.counters.rx_bytes += length as u64;
                    out.push(pool.frame(&self.buffer[..length], None));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()> {
        self.send(frames)
    }

    fn counters(&mut self) -> PortCounters {
        // The count cannot be read once the device has left this network namespace or is renamed.
        if let Ok(dropped) = tx_dropped(self.ifindex, Some(&self.device)) {
            self.counters.rx_ring_drops = dropped.saturating_sub(self.dropped_before);
        }
        self.counters
    }
}
