//! Announces the addresses of hosts to the fabric, like a host that comes up.

use super::namespaces::enter_net;
use super::plan::{HostPlan, Plan};
use super::state::StateDir;
use anyhow::Result;
use axon_linux::status::ask;
use axon_linux::sys;
use axon_node::telemetry::{ControllerHost, NodeTelemetry};
use axon_wire::{MacAddr, host_frame, nd};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Maximum number of announcing threads.
const THREADS: usize = 32;
/// Polling interval of the controller's host table.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between announcements of an unknown address. They are repeated, because a frame that
/// arrives before the switch has identified the peer of its port is dropped.
const AGAIN: Duration = Duration::from_millis(300);

/// Announces the addresses of these hosts until the controller knows them, or `end` is reached. If
/// switches decide by themselves, all of them must know the addresses. Without any node to query,
/// announces each address once. Returns the hosts with unknown addresses; a host without an address
/// counts as known. `on_look` gets the number of known hosts. Leaves the calling process in the
/// namespace of one of the hosts.
pub(super) fn until_known<'a>(
    lab: &StateDir,
    plan: &Plan,
    hosts: impl IntoIterator<Item = &'a HostPlan>,
    end: Instant,
    mut on_look: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<&'a HostPlan>> {
    let mut unknown = Vec::new();
    for host in hosts {
        enter_net(&host.name)?;
        unknown.push((host, addresses(host)?));
    }
    if plan.knowing().next().is_none() {
        // There is no node to query.
        announce_all(&unknown)?;
        return Ok(Vec::new());
    }
    let all = unknown.len();
    let mut announced: Option<Instant> = None;
    loop {
        let nodes = plan.knowing().map(|node| ask(&lab.socket(node)).map(|status| status.node));
        let nodes: Vec<_> = nodes.collect();
        unknown.retain(|(host, addresses)| {
            !nodes.iter().all(|node| {
                let known = node.as_ref().ok().and_then(NodeTelemetry::known_hosts);
                known.is_some_and(|known| knows(known, host.mac, addresses))
            })
        });
        on_look(all - unknown.len())?;
        if unknown.is_empty() || announced.is_some() && Instant::now() >= end {
            return Ok(unknown.into_iter().map(|(host, _)| host).collect());
        }
        if announced.is_none_or(|at| at.elapsed() >= AGAIN) {
            announce_all(&unknown)?;
            announced = Some(Instant::now());
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns whether a host table contains all addresses of a host.
fn knows(known: &[ControllerHost], mac: MacAddr, addresses: &[IpAddr]) -> bool {
    let entered = known.iter().filter(|host| host.mac == mac);
    let ips: Vec<IpAddr> = entered.flat_map(|host| host.ips.iter().copied()).collect();
    addresses.iter().all(|ip| ips.contains(ip))
}

/// Returns the IPv4 addresses of the host whose network namespace this thread is in, and its fixed
/// IPv6 address if it still has one.
fn addresses(host: &HostPlan) -> Result<Vec<IpAddr>> {
    let own = getifaddrs()?.filter(|one| one.interface_name == host.device);
    let ip = |address: SockaddrStorage| match address.as_sockaddr_in() {
        Some(v4) => Some(IpAddr::V4(v4.ip())),
        None => Some(IpAddr::V6(address.as_sockaddr_in6()?.ip())),
    };
    let addresses = own.filter_map(|one| ip(one.address?));
    Ok(addresses.filter(|ip| ip.is_ipv4() || host.address6.map(IpAddr::V6) == Some(*ip)).collect())
}

/// Announces the addresses of all these hosts from several threads. Closing a packet socket waits
/// for all CPUs, about 14 ms each time, so 500 hosts in sequence take 7 s. A process that has
/// entered the process namespace of a lab cannot create threads (clone(2)), so it announces in
/// sequence.
fn announce_all(hosts: &[(&HostPlan, Vec<IpAddr>)]) -> Result<()> {
    let some = |hosts: &[(&HostPlan, Vec<IpAddr>)]| {
        hosts.iter().try_for_each(|(host, addresses)| announce(host, addresses))
    };
    let share = hosts.len().div_ceil(THREADS).max(1);
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for hosts in hosts.chunks(share) {
            match Builder::new().spawn_scoped(scope, move || some(hosts)) {
                Ok(thread) => running.push(thread),
                Err(_) => some(hosts)?,
            }
        }
        running.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Sends an announcement for each address: an ARP announcement (RFC 5227 section 3), or a neighbour
/// advertisement to all nodes (RFC 4861 section 7.2.6).
fn announce(host: &HostPlan, addresses: &[IpAddr]) -> Result<()> {
    enter_net(&host.name)?;
    let socket = sys::packet_socket()?;
    let index = nix::net::if_::if_nametoindex(host.device.as_str())?;
    sys::bind_packet(socket.as_fd(), index, 0)?;
    for &address in addresses {
        let frame = match address {
            IpAddr::V4(ip) => host_frame::request(host.mac, ip, MacAddr::BROADCAST, ip),
            IpAddr::V6(ip) => nd::advertisement(host.mac, ip, None),
        };
        sys::send_many(socket.as_fd(), &[&frame])?;
    }
    Ok(())
}
