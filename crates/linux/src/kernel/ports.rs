//! Kernel data plane for a run loop: programs on devices, egress queues, and the path to the node.
//!
//! When a port's device exists, the program is attached to it, the egress gets its queues, and the
//! device is entered in the tables. Frames that the kernel passes to the node come through the
//! [`NodeQueues`] with tc, and through the port itself with XDP. Frames that the node sends go
//! through the egress queues, like those that the kernel forwards.

use super::plane::KernelPlane;
use super::queues::NodeQueues;
use super::shares::{Shares, is_shaped, veths, with_queues};
use super::tables::Devices;
use super::{Hook, Kernel, KernelError, KernelSettings};
use crate::iproute::{output, run};
use crate::packet::PacketPort;
use crate::port::Port;
use crate::send_port::SendPort;
use crate::sniffer::Sniffer;
use anyhow::{Context, Result, bail};
use axon_node::PortView;
use axon_wire::{PortNo, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, TryLockError};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Devices of a switch whose frames the kernel carries.
pub struct KernelPorts {
    folder: PathBuf,
    /// Lock that keeps other processes from this data plane.
    _lock: File,
    /// Programs and tables, shared with the data plane. This handle attaches programs.
    kernel: Kernel,
    devices: Devices,
    queues: Option<NodeQueues>,
    ports: u16,
    /// Ifindexes of the devices whose egress queues are set up.
    shaped: BTreeSet<u32>,
    /// Sniffers of the ports for a capture; `None` without one.
    sniffers: Option<BTreeMap<PortNo, Sniffer>>,
}

/// Creates the folder of a data plane and locks it for this process until the returned file is
/// closed.
///
/// # Errors
/// Another process holds the lock, or the folder cannot be created.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let shown = folder.display();
    let failed = || format!("cannot make {shown}");
    // Another user who could open the folder could lock it forever.
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(failed)?;
    let file = File::open(folder).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another process runs this switch: it has the data plane in {shown}; end it first, or \
             give the fabric another name"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("no lock on {shown}"))
        }
    }
}

impl KernelPorts {
    /// Opens a predecessor's data plane in `folder`, or creates one, in the calling thread's
    /// network namespace. Tables for other settings are removed.
    ///
    /// # Errors
    /// As [`Kernel::open`] and [`NodeQueues::open`]. Also if another process uses this data plane.
    pub(crate) fn open(folder: &Path, name: &str, settings: KernelSettings) -> Result<KernelPorts> {
        let mut held = lock(folder)?;
        let mut kernel = match Kernel::open(folder, settings) {
            Err(KernelError::OtherPlane { .. }) => {
                Kernel::remove(folder)?;
                held = lock(folder)?;
                Kernel::open(folder, settings)?
            }
            opened => opened?,
        };
        let queues = match settings.hook {
            Hook::Tc => Some(NodeQueues::open(name, &mut kernel)?),
            Hook::Xdp => None,
        };
        Ok(KernelPorts {
            folder: folder.into(),
            _lock: held,
            kernel,
            devices: Devices::new(settings.ports),
            queues,
            ports: settings.ports,
            shaped: BTreeSet::new(),
            sniffers: None,
        })
    }

    /// Returns the data plane for these ports. `software` handles the frames that the kernel does
    /// not.
    ///
    /// # Errors
    /// As [`Kernel::open`] and [`KernelPlane::new`].
    pub(crate) fn plane<P: PortView>(
        &self,
        software: P,
    ) -> Result<KernelPlane<P, Kernel>, KernelError> {
        let tables = Kernel::open(&self.folder, *self.kernel.settings())?;
        KernelPlane::new(software, tables, self.devices.clone())
    }

    /// Sets up the egress queues of all existing devices, in one call.
    ///
    /// # Errors
    /// iproute2 is not installed, or it fails. The error includes its message.
    pub(crate) fn shape<'a>(
        &mut self,
        devices: impl Iterator<Item = (&'a str, Rate)>,
    ) -> Result<()> {
        if self.kernel.settings().hook == Hook::Xdp {
            return Ok(());
        }
        let there = devices.filter_map(|(device, rate)| {
            let ifindex = nix::net::if_::if_nametoindex(device).ok()?;
            (!self.shaped.contains(&ifindex)).then_some((device, rate, ifindex))
        });
        let there: Vec<_> = there.collect();
        if there.is_empty() {
            return Ok(());
        }
        let stand = with_queues(&output("tc", &["-j", "qdisc", "show"])?);
        let veths = if there.iter().all(|(_, rate, _)| is_shaped(*rate)) {
            BTreeSet::new()
        } else {
            veths(&output("ip", &["-j", "link", "show", "type", "veth"])?)
        };
        let text = there.iter().map(|&(device, rate, _)| {
            let shares = Shares { rate, ports: self.ports };
            shares.batch(device, stand.contains(device), veths.contains(device))
        });
        run("tc", &["-batch", "-"], &text.collect::<String>())?;
        self.shaped.extend(there.iter().map(|(_, _, ifindex)| ifindex));
        Ok(())
    }

    /// Removes the egress queues of those devices that have them.
    ///
    /// # Errors
    /// iproute2 is not installed, or it fails. The error includes its message.
    pub(crate) fn unshape<'a>(devices: impl Iterator<Item = &'a str>) -> Result<()> {
        let stand = with_queues(&output("tc", &["-j", "qdisc", "show"])?);
        let text = devices.filter(|device| stand.contains(*device));
        let text: String = text.map(|device| format!("qdisc del dev {device} root\n")).collect();
        run("tc", &["-batch", "-"], &text)
    }

    /// Adds a device to the data plane: its program, its queues and its table entry.
    ///
    /// # Errors
    /// The device does not exist, or it does not support the program or the queues.
    pub(crate) fn open_port(
        &mut self,
        port: PortNo,
        device: &str,
        rate: Option<Rate>,
    ) -> Result<Box<dyn Port>> {
        let ifindex = nix::net::if_::if_nametoindex(device)?;
        self.shape(rate.map(|rate| (device, rate)).into_iter())
            .with_context(|| format!("no queues for the rate of {device}"))?;
        let opened: Box<dyn Port> = match self.kernel.settings().hook {
            Hook::Tc => Box::new(SendPort::open(device)?),
            Hook::Xdp => Box::new(PacketPort::open(device, false)?),
        };
        if let Some(sniffers) = &mut self.sniffers {
            sniffers.insert(port, Sniffer::open(device)?);
        }
        self.kernel.attach(port, device)?;
        self.devices.set(port, ifindex);
        Ok(opened)
    }

    /// Records that the device of a port is down or gone. It may come back without its queues.
    pub(crate) fn close_port(&mut self, port: PortNo) {
        self.shaped.remove(&self.devices.get(port));
        self.sniffers.iter_mut().for_each(|sniffers| drop(sniffers.remove(&port)));
    }

    /// Detaches the program from the former device of a port, if that device was renamed or moved
    /// to another network namespace. Otherwise, the program would process frames for the device's
    /// new user.
    pub(crate) fn leave_gone(&mut self, port: PortNo, device: &str) {
        let had = self.devices.get(port);
        let is_there = nix::net::if_::if_nametoindex(device).is_ok_and(|index| index == had);
        if had != 0 && !is_there {
            // Filters are removed with their device, so there may be nothing to detach.
            if let Err(error) = self.kernel.detach(port) {
                tracing::debug!(device, "its program is gone: {error:#}");
            }
        }
    }

    /// Returns the queues to the node, which only tc has.
    pub(crate) fn queues(&self) -> Option<&NodeQueues> {
        self.queues.as_ref()
    }

    /// Returns the queues to the node, to read from them.
    pub(crate) fn queues_mut(&mut self) -> Option<&mut NodeQueues> {
        self.queues.as_mut()
    }

    /// Starts sniffers on all ports, for a capture.
    pub(crate) fn watch(&mut self) {
        self.sniffers.get_or_insert_default();
    }

    /// Returns the sniffers of the ports.
    pub(crate) fn sniffers(&mut self) -> impl Iterator<Item = (PortNo, &mut Sniffer)> {
        self.sniffers.iter_mut().flatten().map(|(port, sniffer)| (*port, sniffer))
    }

    /// Returns the descriptors to poll for captured packets.
    pub(crate) fn sniffer_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sniffers.iter().flat_map(BTreeMap::values).map(Sniffer::fd)
    }
}
