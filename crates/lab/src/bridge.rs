//! Linux bridges in place of switches, with the lab's namespaces, cables, rates and hosts, but
//! without Axon.
//!
//! Each switch's namespace gets one bridge with all its ports, and the kernel's own spanning tree
//! (IEEE 802.1D-1998 clause 8) blocks ports that would close a loop. Bridges have the default
//! priority, and addresses in the order of the file, so the first switch is the root. The timers
//! are the shortest that the kernel accepts. With these, the standard requires a longer forward
//! delay. Each egress has the same queue as a host's NIC.

use super::namespaces::Queues;
use super::plan::{CableEnd, Offloads, Plan};
use anyhow::{Context, Result};
use axon_linux::iproute::run;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Name of the bridge in each switch namespace.
const BRIDGE: &str = "br0";
/// Timers in hundredths of a second, as iproute2 expects.
const TIMERS: &str = "hello_time 100 max_age 600 forward_delay 200";
/// Settings that pass bridged frames to the kernel's packet filter, one for each address family.
const FILTERS: [&str; 3] = ["iptables", "ip6tables", "arptables"];

/// Creates the bridge of `switch`, with the ports `ends`, in the namespace of the switch. The
/// calling process is in that namespace.
///
/// # Errors
/// The kernel does not support bridges, or it refuses a setting.
pub(super) fn set_up(plan: &Plan, switch: &str, ends: &[&CableEnd]) -> Result<()> {
    let index = plan.switches.iter().position(|name| name == switch);
    let index = index.with_context(|| format!("the lab has no switch {switch}"))?;
    run("ip", &["-batch", "-"], &devices(index, ends))
        .with_context(|| format!("cannot make a bridge of {switch}"))?;
    for filter in FILTERS {
        let path = format!("/proc/sys/net/bridge/bridge-nf-call-{filter}");
        // Without this filter, there is nothing to switch off.
        if Path::new(&path).exists() {
            fs::write(&path, "0").with_context(|| format!("cannot write {path}"))?;
        }
    }
    let kept = plan.hosts.iter().all(|host| host.offloads == Offloads::Kept);
    let offloads = if kept { Offloads::Kept } else { Offloads::Finished };
    for end in ends {
        let cable = plan.cables.iter().find(|cable| cable.ends.contains(end));
        let rate = cable.context("every port has a cable")?.rate;
        let queues = Queues { device: &end.device, rate, offloads };
        run("tc", &["-batch", "-"], &queues.batch()?)?;
    }
    Ok(())
}

/// Returns commands for `ip -batch` that create bridge number `index`, counted from 0, with all its
/// ports.
fn devices(index: usize, ends: &[&CableEnd]) -> String {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    let mut text = format!(
        "link add name {BRIDGE} address 02:00:00:00:{high:02x}:{low:02x} type bridge \
         stp_state 1 {TIMERS}\n"
    );
    for CableEnd { device, .. } in ends {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "link set dev {device} master {BRIDGE}");
    }
    text + &format!("link set dev {BRIDGE} up\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_has_all_ports_of_its_switch_and_runs_the_spanning_tree() {
        let end = |device: &str| CableEnd {
            node: "s2".into(),
            device: device.into(),
            mac: None,
            gro: false,
        };
        let (a, b) = (end("s2-p0"), end("s2-p3"));
        let lines = devices(1, &[&a, &b]);
        let lines: Vec<_> = lines.lines().collect();
        assert!(lines[0].contains("address 02:00:00:00:00:02 type bridge stp_state 1 "));
        assert!(lines[0].ends_with("max_age 600 forward_delay 200"), "{}", lines[0]);
        let ports = ["link set dev s2-p0 master br0", "link set dev s2-p3 master br0"];
        assert_eq!(lines[1..], [ports[0], ports[1], "link set dev br0 up"]);
    }
}
