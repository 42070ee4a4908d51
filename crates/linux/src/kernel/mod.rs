//! Kernel data plane, in which the kernel carries the frames and the node makes the decisions. It
//! consists of the programs in `ebpf/`, one for each port of a switch, and their tables.
//!
//! Programs and tables are pinned in a folder of a BPF file system and outlive this process.
//! Traffic continues while no node runs, and the next node adopts the pins ([`Kernel::open`]). They
//! are removed with the folder ([`Kernel::remove`]) or with the mount namespace of the file system.
//! The program of a port is also removed with its device.
//!
//! A route is changed in a single write, so a frame gets either the old header or the new one. If
//! the kernel reuses the memory of an element during a lookup, the program detects the inconsistent
//! value and passes the frame to the node (`ebpf/README.md`).

mod error;
mod filter;
mod inherited;
mod losses;
mod maps;
pub mod plane;
pub mod ports;
mod program;
mod queues;
mod settings;
pub mod shares;
pub mod tables;

pub use error::KernelError;
pub use maps::{HEADER_BYTES_MAX, NodeQueue, Traffic};
pub use program::{Attachment, LoadedProgram, TestRunOutcome, Verdict};
pub use queues::{NodeQueues, QUEUES};
pub use settings::{Hook, KernelSettings};

use crate::device_drops::{LastDrops, tx_dropped};
use axon_node::{PortKind, RouteError};
use axon_wire::{MacAddr, PortNo, Route};
use aya::programs::links::PinnedLink;
use error::of_folder;
use maps::Tables;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use program::{Loader, object};
use std::fs;
use std::path::{Path, PathBuf};

/// Program of a port, attached to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttachedPort {
    /// Port number.
    pub port: PortNo,
    /// Ifindex of the device.
    pub ifindex: u32,
    /// Kind of attachment.
    pub attachment: Attachment,
}

impl AttachedPort {
    /// Returns the name of the pin for this attachment.
    fn name(&self) -> String {
        format!("link-{}-{}-{}", self.port.0, self.ifindex, self.attachment.name())
    }

    fn of_name(name: &str) -> Option<AttachedPort> {
        let mut parts = name.strip_prefix("link-")?.splitn(3, '-');
        Some(AttachedPort {
            port: PortNo(parts.next()?.parse().ok()?),
            ifindex: parts.next()?.parse().ok()?,
            attachment: Attachment::of_name(parts.next()?)?,
        })
    }
}

/// Kernel data plane of one switch: its programs and their tables.
pub struct Kernel {
    settings: KernelSettings,
    /// Folder of the pins, named after the settings.
    folder: PathBuf,
    loader: Loader,
    tables: Tables,
    /// Drops of the device of each [`NodeQueue`].
    node_drops: LastDrops<3>,
}

impl Kernel {
    /// Opens the data plane that is pinned in `folder`, or creates one. A predecessor's data plane
    /// with equal settings continues unchanged, with its attached programs ([`Kernel::attached`]),
    /// ports, routes and counters.
    ///
    /// The folder need not exist, but must be in a BPF file system.
    ///
    /// # Errors
    /// There is no permission, a kernel feature is missing, the folder is not in a BPF file system
    /// or has tables for other settings, or there are more ports than hops can name.
    pub fn open(folder: &Path, settings: KernelSettings) -> Result<Kernel, KernelError> {
        let most = settings.hop_width.ports_max();
        if settings.ports == 0 || usize::from(settings.ports) > most {
            return Err(RouteError::NoSuchPort.into());
        }
        fs::create_dir_all(folder).map_err(of_folder(folder))?;
        let is = statfs(folder).map_err(|error| of_folder(folder)(error.into()))?;
        if is.filesystem_type() != BPF_FS_MAGIC {
            return Err(KernelError::NotBpfFileSystem(folder.into()));
        }
        let name = settings.name(object(settings.hook));
        if let Some(found) = names(folder)?.into_iter().find(|found| *found != name) {
            return Err(KernelError::OtherPlane { folder: folder.into(), found });
        }
        let folder = folder.join(name);
        fs::create_dir_all(&folder).map_err(of_folder(&folder))?;
        let mut loader = Loader::new(&settings, &folder);
        let (width, routes_per_port_max) = (settings.hop_width, settings.routes_per_port_max);
        let tables = Tables::new(loader.tables()?, width, routes_per_port_max)?;
        Ok(Kernel { settings, folder, loader, tables, node_drops: LastDrops::new() })
    }

    /// Removes any data plane that is pinned in `folder`, and the folder. Programs are detached
    /// from their devices. Filters ([`Kernel::attach_filter`]) are removed only if they are in the
    /// calling thread's network namespace.
    ///
    /// # Errors
    /// The file system reports an error. A missing folder is not an error.
    pub fn remove(folder: &Path) -> Result<(), KernelError> {
        for plane in names(folder).unwrap_or_default() {
            let folder = folder.join(plane);
            for attached in attached(&folder).unwrap_or_default() {
                remove_attachment(&folder, attached)?;
            }
        }
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(of_folder(folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the settings with which this data plane was opened.
    pub const fn settings(&self) -> &KernelSettings {
        &self.settings
    }

    /// Sets the kind of the peer of a port, and the ifindex of its egress device. With ifindex 0,
    /// the port has no device, and frames that the kernel would forward to it go to the node.
    ///
    /// # Errors
    /// There is no such port.
    pub fn set_port(
        &mut self,
        port: PortNo,
        ifindex: u32,
        kind: PortKind,
    ) -> Result<(), KernelError> {
        self.tables.set_port(port, ifindex, kind)
    }

    /// Returns the ifindex of a port's device and the kind of its peer, as last set.
    ///
    /// # Errors
    /// No such port.
    pub fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError> {
        self.tables.port(port)
    }

    /// Installs `route` from the host port `port` to `destination`, replacing any earlier one.
    ///
    /// # Errors
    /// There is no such port, the table is full, no header can hold the route, or its header is
    /// longer than [`HEADER_BYTES_MAX`]. In the last case, the frames go to the node if the old
    /// route is removed.
    pub fn set_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), KernelError> {
        self.tables.set_route(port, destination, route)
    }

    /// Removes a route. Returns whether it existed.
    ///
    /// # Errors
    /// No such port.
    pub fn remove_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
    ) -> Result<bool, KernelError> {
        self.tables.remove_route(port, destination)
    }

    /// Returns whether a frame has used the route since the last call, or since it was set. A frame
    /// that arrives during the call may count for neither period.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take_used(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError> {
        self.tables.take_used(port, destination)
    }

    /// Returns all routes, in no particular order.
    pub fn routes(
        &self,
    ) -> impl Iterator<Item = Result<(PortNo, MacAddr, Route), KernelError>> + '_ {
        self.tables.routes()
    }

    /// Returns the traffic of a port since its tables were created.
    ///
    /// # Errors
    /// No such port.
    pub fn traffic(&self, port: PortNo) -> Result<Traffic, KernelError> {
        self.tables.traffic(port)
    }

    /// Returns the frames and super-packets dropped at the egress queues of device `ifindex`, by
    /// ingress port. XDP has no queues.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn queue_drops(&self, ifindex: u32) -> Result<Vec<(PortNo, u64)>, KernelError> {
        if self.settings.hook == Hook::Xdp || ifindex == 0 {
            return Ok(Vec::new());
        }
        let dropped = losses::dropped(ifindex, self.settings.ports)
            .map_err(|source| KernelError::system("queues", source))?;
        Ok(dropped.into_iter().map(|(port, count)| (PortNo(port), count)).collect())
    }

    /// Returns the frames that were lost because a device to the node was full. The devices are
    /// those of this process, so the count begins with it. It never decreases.
    pub fn node_drops(&self) -> u64 {
        let devices = self.tables.nodes().filter(|(_, ifindex)| *ifindex != 0);
        self.node_drops.sum(devices.map(|(queue, ifindex)| (queue, tx_dropped(ifindex, None))))
    }

    /// Sets the device to which the tc programs pass packets for the node. With ifindex 0, the
    /// packets are dropped. The ingress port is in a VLAN tag (0x8100), which is the first tag if
    /// there are more. XDP programs need no device, because their packets go up the stack of the
    /// ingress port.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_node(&mut self, queue: NodeQueue, ifindex: u32) -> Result<(), KernelError> {
        self.tables.set_node(queue, ifindex)
    }

    /// Loads the program of `port` without attaching it.
    ///
    /// # Errors
    /// There is no permission, or the verifier refused the program.
    pub fn load(&mut self, port: PortNo) -> Result<LoadedProgram, KernelError> {
        self.tables.port(port)?;
        self.loader.load(port)
    }

    /// Attaches the program of `port` to `device`, which is in the calling thread's network
    /// namespace. A predecessor's program on this device is replaced without a gap, and one on
    /// another device is detached. A kernel without TCX links gets a filter
    /// ([`Kernel::attach_filter`]). The caller is responsible for [`Kernel::set_port`].
    ///
    /// # Errors
    /// There is no such port or device, or no permission; the verifier refused the program; the
    /// device does not support it; or the kernel lacks the required links.
    pub fn attach(&mut self, port: PortNo, device: &str) -> Result<Attachment, KernelError> {
        let ifindex = nix::net::if_::if_nametoindex(device)
            .map_err(|error| KernelError::Attach { device: device.into(), source: error.into() })?;
        let mut program = self.load(port)?;
        let here = self.attached()?.into_iter().filter(|attached| attached.port == port);
        for attached in here {
            let pin = self.folder.join(attached.name());
            if attached.ifindex == ifindex {
                if attached.attachment == Attachment::TcFilter {
                    program.attach_filter(device, &pin)?;
                    return Ok(Attachment::TcFilter);
                }
                if program.replace(PinnedLink::from_pin(&pin)?)? {
                    return Ok(attached.attachment);
                }
            }
            self.remove_attachment(attached)?;
        }
        match program.attach(device) {
            Ok((link, attachment)) => {
                let attached = AttachedPort { port, ifindex, attachment };
                link.pin(self.folder.join(attached.name()))?;
                Ok(attachment)
            }
            Err(KernelError::Missing { .. }) if self.settings.hook == Hook::Tc => {
                self.attach_filter(port, device)
            }
            Err(error) => Err(error),
        }
    }

    /// Attaches the program of `port` at tc as a filter of the qdisc clsact, before other filters.
    /// [`Kernel::attach`] uses this method on kernels without TCX links. The filter also outlives
    /// the process, but it belongs to the device. It is not removed with a mount namespace, and
    /// [`Kernel::remove`] and [`Kernel::detach`] must be called in the device's network namespace.
    ///
    /// # Errors
    /// As [`Kernel::attach`]. Also if there is a foreign filter with our number.
    pub fn attach_filter(&mut self, port: PortNo, device: &str) -> Result<Attachment, KernelError> {
        let ifindex = nix::net::if_::if_nametoindex(device)
            .map_err(|error| KernelError::Attach { device: device.into(), source: error.into() })?;
        let attached = AttachedPort { port, ifindex, attachment: Attachment::TcFilter };
        let mut program = self.load(port)?;
        program.attach_filter(device, &self.folder.join(attached.name()))?;
        let others = self.attached()?.into_iter().filter(|other| other.port == port);
        for other in others.filter(|other| *other != attached) {
            self.remove_attachment(other)?;
        }
        Ok(Attachment::TcFilter)
    }

    fn remove_attachment(&self, attached: AttachedPort) -> Result<(), KernelError> {
        remove_attachment(&self.folder, attached)
    }

    /// Detaches the program of `port`. Returns whether one was attached.
    ///
    /// # Errors
    /// The file system's error.
    pub fn detach(&mut self, port: PortNo) -> Result<bool, KernelError> {
        let mut found = false;
        for attached in self.attached()?.into_iter().filter(|attached| attached.port == port) {
            self.remove_attachment(attached)?;
            found = true;
        }
        Ok(found)
    }

    /// Returns the ports with a program, in order. Their devices may have gone since then.
    ///
    /// # Errors
    /// The file system's error.
    pub fn attached(&self) -> Result<Vec<AttachedPort>, KernelError> {
        attached(&self.folder)
    }
}

/// Returns the ports with a program, from the pins of a folder.
fn attached(folder: &Path) -> Result<Vec<AttachedPort>, KernelError> {
    let names = names(folder)?;
    let mut attached: Vec<_> =
        names.iter().filter_map(|name| AttachedPort::of_name(name)).collect();
    attached.sort();
    Ok(attached)
}

/// Detaches a program that a folder records.
fn remove_attachment(folder: &Path, attached: AttachedPort) -> Result<(), KernelError> {
    let pin = folder.join(attached.name());
    match attached.attachment {
        Attachment::TcFilter => filter::detach(attached.ifindex, &pin),
        _ => fs::remove_file(&pin).map_err(of_folder(&pin)),
    }
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Result<Vec<String>, KernelError> {
    let failed = of_folder(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::HopWidth;

    #[test]
    fn the_name_of_a_pin_says_what_it_holds() {
        for attachment in Attachment::ALL {
            let attached = AttachedPort { port: PortNo(254), ifindex: 1_000_007, attachment };
            assert_eq!(AttachedPort::of_name(&attached.name()), Some(attached));
            assert!(!attached.name().contains('.'), "a BPF file system refuses that");
        }
        for name in ["ports", "link-", "link-1-2", "link-x-2-tc", "link-1-2-tcx"] {
            assert_eq!(AttachedPort::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_folder_outside_of_a_bpf_file_system_is_refused_in_one_sentence() {
        let folder = std::env::temp_dir().join(format!("axon-kernel-{}", std::process::id()));
        let settings = KernelSettings {
            hook: Hook::Tc,
            hop_width: HopWidth::Eight,
            ports: 4,
            routes_per_port_max: 4,
            route_bytes_max: 60,
            frame_bytes_max: 1514,
            node_frames_per_ms: 0,
        };
        let refused = Kernel::open(&folder, settings).err().unwrap();
        let says = refused.to_string();
        assert!(matches!(refused, KernelError::NotBpfFileSystem(_)), "{says}");
        assert!(says.contains("mount -t bpf") && !says.contains('\n'), "{says}");
        Kernel::remove(&folder).unwrap();
        let none = KernelSettings { ports: 0, ..settings };
        assert!(matches!(Kernel::open(&folder, none), Err(KernelError::Route(_))));
        let many = KernelSettings { ports: 256, ..settings };
        assert!(matches!(Kernel::open(&folder, many), Err(KernelError::Route(_))));
    }
}
