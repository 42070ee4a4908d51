//! Namespaces of a chain and the veth pairs between them.

use crate::iproute::run;
use crate::namespace::Namespace;
use crate::sys::{self, Offload};
use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use std::fs;

/// Ingress device of a switch. The generator has no such device; the end has only this one.
pub(super) const LEFT: &str = "left";
/// Egress device of a switch.
pub(super) const RIGHT: &str = "right";
/// Ifindexes of the devices, which are the same in all namespaces.
pub(super) const LEFT_INDEX: u32 = 10;
pub(super) const RIGHT_INDEX: u32 = 11;
/// MTU of the devices: that of a host plus room for a header.
const MTU: u32 = 1600;

/// Creates a namespace without IPv6, whose bridges do not call the packet filter.
fn bare(home: &Namespace) -> Result<Namespace> {
    unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
    let new = Namespace::here();
    let off = [
        ("net/ipv6/conf/all/disable_ipv6", "1"),
        ("net/ipv6/conf/default/disable_ipv6", "1"),
        ("net/bridge/bridge-nf-call-iptables", "0"),
        ("net/bridge/bridge-nf-call-ip6tables", "0"),
        ("net/bridge/bridge-nf-call-arptables", "0"),
    ];
    for (name, value) in off {
        // A write fails if the kernel lacks the feature, which then need not be switched off.
        let _ = fs::write(format!("/proc/sys/{name}"), value);
    }
    home.enter()?;
    new
}

/// Creates a namespace for the generator, one for each switch and one for the end, with veth pairs
/// between them. On all devices, skbs take NAPI with GRO, like XDP frames. So a packet that leaves
/// through [`RIGHT`] is not put in the backlog of the CPU.
pub(super) fn make(home: &Namespace, switches: usize) -> Result<Vec<Namespace>> {
    let namespaces: Vec<Namespace> =
        (0..switches + 2).map(|_| bare(home)).collect::<Result<_>>()?;
    for pair in namespaces.windows(2) {
        let [from, to] = pair else { continue };
        let line = format!(
            "link add name {RIGHT} index {RIGHT_INDEX} mtu {MTU} netns {} type veth \
             peer name {LEFT} index {LEFT_INDEX} mtu {MTU} netns {}",
            from.path(),
            to.path()
        );
        run("ip", &line.split_whitespace().collect::<Vec<_>>(), "")?;
        from.inside(home, || set_up(RIGHT))?;
        to.inside(home, || set_up(LEFT))?;
    }
    Ok(namespaces)
}

/// Sets a device up and then enables GRO. Only with GRO can the device's peer redirect to it.
fn set_up(device: &str) -> Result<()> {
    sys::set_device_up(device, true)?;
    for (offload, on) in [(Offload::Tso, false), (Offload::Gro, true)] {
        sys::set_offload(device, offload, on)
            .with_context(|| format!("cannot set {offload:?} of {device}"))?;
    }
    Ok(())
}

/// Makes the thread's namespace a bridge of both devices, with a static entry for `destination`.
pub(super) fn bridge(destination: &str) -> Result<()> {
    let lines = format!(
        "link add name bridge type bridge\n\
         link set bridge up\n\
         link set {LEFT} master bridge\n\
         link set {RIGHT} master bridge\n"
    );
    run("ip", &["-batch", "-"], &lines)?;
    let entry = format!("fdb add {destination} dev {RIGHT} master static");
    run("bridge", &entry.split(' ').collect::<Vec<_>>(), "")
}
