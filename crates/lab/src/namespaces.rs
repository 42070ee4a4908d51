//! Creates a lab's namespaces and cables, inside the namespaces of its supervisor.
//!
//! The supervisor has its own mount, PID and network namespaces, and its own user namespace if it
//! is not root. Therefore, nothing created here is visible from the machine, and all of it is
//! removed when the supervisor ends, however it ends:
//!
//! ```text
//! /run                a tmpfs
//! /run/lab            the lab's state directory
//! /run/recordings     where nodes are recorded, if they are
//! /run/bpf            a BPF file system, if the kernel carries frames
//! /run/netns/h1       the network namespace of h1, as `ip netns` names it
//! /run/node/h1/run    what a command in h1 sees as /run
//! /run/node/h1/etc    what it sees as /etc: the machine's, with its own changes on top
//! /run/node/h1/dhcp   what it sees as /var/lib/dhcp
//! ```

use super::plan::{HostPlan, Offloads, Plan};
use anyhow::{Context, Result};
use axon_fabric::model::DataplaneKind;
use axon_linux::iproute::run;
use axon_linux::kernel::shares::is_shaped;
use axon_linux::pacer::WIRE_OVERHEAD_BYTES;
use axon_linux::sys::{self, Offload};
use axon_wire::{Rate, Span};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::path::Path;

/// State directory, as seen from inside the lab.
pub(crate) const LAB: &str = "/run/lab";
/// Folder of the network namespaces.
pub(crate) const NETNS: &str = "/run/netns";
/// Folder of recordings, if any are written.
pub(crate) const RECORDINGS: &str = "/run/recordings";
/// Folder in which switches pin their programs and tables, if the kernel carries frames.
pub(crate) const PINS: &str = "/run/bpf";
/// Folder of the nodes' own files.
pub(crate) const NODES: &str = "/run/node";

/// Queue limit of a host's NIC, in bytes. It exceeds the size of a socket's send buffer, so that
/// the socket blocks its sender and nothing is lost at the sender's NIC.
const NIC_QUEUE_BYTES: u64 = 1 << 20;
/// Longest packet that the kernel passes to a NIC, in bytes.
const SUPER_PACKET_BYTES: u64 = 65_536 + 256;
/// Burst size of a host's NIC, as time on the wire.
const NIC_BURST: Span = Span::from_millis(1);

fn bind(from: &Path, to: &Path) -> Result<()> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .with_context(|| format!("cannot bind {} to {}", from.display(), to.display()))
}

/// Creates a mount namespace with its own /proc and /run. This process must already be the first of
/// its PID namespace, because the launcher still needs the machine's /proc.
pub(crate) fn private_mounts(state: &Path, recordings: Option<&Path>) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace")?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .context("cannot make the mounts private")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)
        .context("cannot mount /proc for the lab's processes")?;
    // The state directory may itself be below /run, so the new /run is filled elsewhere.
    let new = state.join("run");
    fs::create_dir(&new)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), &new, Some("tmpfs"), flags, Some("mode=755"))
        .context("cannot mount a tmpfs")?;
    for name in ["lab", "netns", "node"] {
        fs::create_dir(new.join(name))?;
    }
    bind(state, &new.join("lab"))?;
    if let Some(recordings) = recordings {
        fs::create_dir(new.join("recordings"))?;
        bind(recordings, &new.join("recordings"))?;
    }
    bind(&new, Path::new("/run"))
}

/// Creates the namespace and the files of one node. `hosts_file` becomes its /etc/hosts. Leaves the
/// calling process in that namespace.
pub(crate) fn make_node(node: &str, hosts_file: &str) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
    name_net(node)?;
    for which in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        // Without IPv6 in the kernel, there is nothing to switch off.
        if Path::new(&path).exists() {
            fs::write(&path, "1").with_context(|| format!("cannot write {path}"))?;
        }
    }
    sys::set_device_up("lo", true)?;
    own_files(node, hosts_file)
}

/// Creates a node that shares the network namespace of `other` but has its own files. Leaves the
/// calling process in that namespace.
pub(crate) fn join_node(node: &str, other: &str, hosts_file: &str) -> Result<()> {
    enter_net(other)?;
    name_net(node)?;
    own_files(node, hosts_file)
}

/// Restricts ARP replies in the calling process's network namespace to addresses of the interface
/// that received the request, because the other interfaces belong to the switch.
pub(crate) fn leave_ports_to_switch() -> Result<()> {
    for which in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv4/conf/{which}/arp_ignore");
        fs::write(&path, "1").with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Names the network namespace of the calling process.
fn name_net(node: &str) -> Result<()> {
    let handle = Path::new(NETNS).join(node);
    File::create(&handle)?;
    bind(Path::new("/proc/self/ns/net"), &handle)
}

/// Creates the files of a node.
fn own_files(node: &str, hosts_file: &str) -> Result<()> {
    let own = Path::new(NODES).join(node);
    for name in ["run", "dhcp", "etc", "etc-changes", "etc-work"] {
        fs::create_dir_all(own.join(name))?;
    }
    fs::create_dir_all(own.join("run/lock"))?;
    private_etc(&own, hosts_file)
}

/// Mounts a private overlay over the machine's /etc for a node, so that a DHCP client can write
/// /etc/resolv.conf without changing that of the machine. If the kernel has no overlay file system,
/// the files at the top of /etc are copied instead.
fn private_etc(own: &Path, hosts_file: &str) -> Result<()> {
    let path = |name: &str| own.join(name).display().to_string();
    let layers =
        format!("lowerdir=/etc,upperdir={},workdir={}", path("etc-changes"), path("etc-work"));
    let overlay = [format!("{layers},userxattr"), layers].into_iter().any(|options| {
        let (source, target) = (Some("overlay"), own.join("etc"));
        mount(source, &target, source, MsFlags::empty(), Some(options.as_str())).is_ok()
    });
    let etc = own.join("etc");
    if !overlay {
        for entry in fs::read_dir("/etc")?.flatten() {
            let target = etc.join(entry.file_name());
            if entry.path().is_file() {
                // Files that this user may not read are omitted.
                let _ = fs::copy(entry.path(), target);
            } else if entry.path().is_dir() {
                fs::create_dir(&target)?;
                bind(&entry.path(), &target)?;
            }
        }
    }
    // Remove the entry first, because it may be a link to a path below /run, which the node does
    // not have. Without root, neither may be written to, but both may be replaced.
    let name = own.file_name().unwrap_or_default().as_encoded_bytes();
    let files = [("resolv.conf", &b""[..]), ("hostname", name), ("hosts", hosts_file.as_bytes())];
    for (file, content) in files {
        let path = etc.join(file);
        let _ = fs::remove_file(&path);
        fs::write(&path, content)
            .with_context(|| format!("cannot give the node its own /etc/{file}"))?;
    }
    Ok(())
}

/// Moves the calling process into a node's network namespace.
pub(crate) fn enter_net(node: &str) -> Result<()> {
    let path = Path::new(NETNS).join(node);
    let handle = File::open(&path).with_context(|| format!("the lab has no node {node}"))?;
    setns(handle, CloneFlags::CLONE_NEWNET)
        .with_context(|| format!("cannot enter the network namespace of {node}"))
}

/// Creates all cables.
pub(crate) fn make_cables(plan: &Plan) -> Result<()> {
    run("ip", &["-batch", "-"], &plan.ip_batch())
}

/// Sets up a host's NIC like a real one, with its rate, its address, and the offloads that its
/// switch supports.
///
/// - If a process carries frames, the kernel must finish every frame itself, because a process
///   refuses super-packets. It also touches the payload less if it has fewer checksums to complete
///   at the edge.
/// - On tc alone, all offloads are as on any host.
/// - A rate of 100 Gb/s or more is [not shaped](is_shaped).
/// - XDP sees single frames, without the kernel's metadata. A host at XDP has no rate, and a file
///   that sets one is refused.
///
/// An agent has its own rate and queues, and a TAP device has no offloads. The device is created
/// here because the agent may restart.
pub(crate) fn set_up_host(host: &HostPlan) -> Result<()> {
    let device = host.device.as_str();
    if host.has_host_agent {
        run("ip", &["tuntap", "add", "dev", device, "mode", "tap"], "")
            .context("its agent needs a TAP device; is /dev/net/tun there, and open to you?")?;
        run("ip", &["link", "set", "dev", device, "address", &host.mac.to_string()], "")?;
        return set_address(host);
    }
    let off: &[Offload] = match host.offloads {
        Offloads::Kept => &[],
        Offloads::Finished => &[Offload::Tso, Offload::Gso, Offload::TxChecksum],
        Offloads::Bare => &[Offload::Tso, Offload::Gso, Offload::TxChecksum, Offload::TxVlan],
    };
    // XDP cannot redirect to a device without GRO, so GRO stays on there.
    let gro: &[Offload] = if !host.carrier.is_in_kernel() { &[Offload::Gro] } else { &[] };
    for offload in off.iter().chain(gro) {
        sys::set_offload(device, *offload, false)
            .with_context(|| format!("cannot switch {offload:?} of {device} off"))?;
    }
    if host.carrier != DataplaneKind::Xdp {
        let queues = Queues { device, rate: host.rate, offloads: host.offloads };
        run("tc", &["-batch", "-"], &queues.batch()?)?;
    }
    set_address(host)
}

/// Queue of a host's NIC or of a bridge port.
pub(super) struct Queues<'a> {
    /// Sending device.
    pub device: &'a str,
    /// Rate of the device.
    pub rate: Rate,
    /// Offloads of the hosts. If they are kept, super-packets arrive.
    pub offloads: Offloads,
}

impl Queues<'_> {
    /// Returns commands for `tc -batch` that limit the device to its rate. A token bucket segments
    /// super-packets into frames, while HTB passes them whole.
    pub(super) fn batch(&self) -> Result<String> {
        if !is_shaped(self.rate) {
            return Ok(String::new());
        }
        let (device, rate) = (self.device, self.rate.bits_per_second());
        let burst = self.rate.bytes_in(NIC_BURST).0;
        if self.offloads != Offloads::Kept {
            let burst = burst.max(2 * sys::device_mtu(device)? as u64 + 128);
            return Ok(format!(
                "qdisc add dev {device} root tbf rate {rate}bit burst {burst} \
                 limit {NIC_QUEUE_BYTES} overhead {WIRE_OVERHEAD_BYTES}\n"
            ));
        }
        let burst = burst.max(SUPER_PACKET_BYTES);
        Ok(format!(
            "qdisc add dev {device} root handle 1: htb default 1\n\
             class add dev {device} parent 1: classid 1:1 htb rate {rate}bit burst {burst} \
             cburst {burst} quantum {SUPER_PACKET_BYTES} overhead {WIRE_OVERHEAD_BYTES}\n\
             qdisc add dev {device} parent 1:1 bfifo limit {NIC_QUEUE_BYTES}\n"
        ))
    }
}

fn set_address(host: &HostPlan) -> Result<()> {
    if let Some((address, prefix_len)) = host.address {
        let address = format!("{address}/{prefix_len}");
        run("ip", &["address", "add", &address, "dev", &host.device], "")?;
    }
    set_ipv6(host)
}

/// Enables IPv6 on a host's device. Its addresses are derived from its MAC address (EUI-64), so
/// that the fabric file determines them. The kernel detects duplicates.
fn set_ipv6(host: &HostPlan) -> Result<()> {
    let conf = Path::new("/proc/sys/net/ipv6/conf").join(&host.device);
    // A kernel without IPv6 has no IPv6 hosts.
    if !host.has_ipv6 || !conf.exists() {
        return Ok(());
    }
    let settings = [
        ("addr_gen_mode", "0"),
        ("use_tempaddr", "0"),
        // As with IPv4, loss of carrier must not remove a fixed address.
        ("keep_addr_on_down", "1"),
        ("disable_ipv6", "0"),
    ];
    // Hosts drop a router that advertises itself as a non-router.
    let forwards = host.is_ipv6_router.then_some(("forwarding", "1"));
    for (key, value) in settings.into_iter().chain(forwards) {
        let path = conf.join(key);
        fs::write(&path, value).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(address) = host.address6 {
        let address = format!("{address}/64");
        run("ip", &["-6", "address", "add", &address, "dev", &host.device], "")?;
    }
    Ok(())
}
