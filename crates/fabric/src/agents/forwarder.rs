//! Configuration of a forwarder.

use super::range::{self, DAY, number, span};
use crate::error::Problem;
use crate::file;
use crate::identity;
use crate::model::{Fabric, Host};
use axon_agents::ForwarderConfig;
use axon_agents::forwarder::{Backend, BalancerConfig, CONNECTIONS_MAX, Role, RouteTo};
use axon_agents::packet::{TCP, UDP};
use axon_wire::Span;
use std::net::Ipv4Addr;

pub(super) fn forwarder(
    fabric: &Fabric,
    index: usize,
    asked: &file::Forwarder,
) -> Result<ForwarderConfig, Problem> {
    let key = |rest: &str| range::key(index, &format!("forwarder.{rest}"));
    let role = match &asked.kinds[..] {
        [file::ForwarderRole::Balancer(asked)] => Role::Balancer(balancer(fabric, index, asked)?),
        [file::ForwarderRole::Routes(routes)] => {
            let each = routes.iter().enumerate();
            let route = |(at, route)| self::route(key(&format!("routes[{at}].to")), route);
            Role::Router(each.map(route).collect::<Result<_, _>>()?)
        }
        _ => {
            let what = "it has not exactly one of balancer and routes";
            return Err(Problem::new(range::key(index, "forwarder"), what, "one of the two"));
        }
    };
    let mac = asked.common.mac.map_or_else(|| identity::agent_mac(index), |mac| mac.0);
    let is_host = |host: &Host| host.mac == mac;
    let agents = fabric.agents.iter().filter_map(|agent| agent.kind.address());
    if fabric.hosts.iter().any(is_host) || agents.into_iter().any(|(other, _)| other == mac) {
        return Err(Problem::new(key("mac"), format!("{mac} is in use already"), "another MAC"));
    }
    Ok(ForwarderConfig { mac, address: asked.common.address, role })
}

fn balancer(
    fabric: &Fabric,
    index: usize,
    asked: &file::Balancer,
) -> Result<BalancerConfig, Problem> {
    let key = |rest: &str| range::key(index, &format!("forwarder.balancer.{rest}"));
    let port = number(key("port"), asked.port.into(), 1, 65_535)? as u16;
    let backend_port = asked.backend_port.unwrap_or(port);
    number(key("backend_port"), backend_port.into(), 1, 65_535)?;
    if asked.backends.is_empty() {
        return Err(Problem::new(key("backends"), "it is empty", "one server or more"));
    }
    let mut backends: Vec<Backend> = Vec::new();
    for (at, name) in asked.backends.iter().enumerate() {
        let key = key(&format!("backends[{at}]"));
        let address = backend(fabric, &key, name)?;
        if backends.iter().any(|backend| backend.address == address) {
            return Err(Problem::new(key, format!("{name} is there twice"), "every server once"));
        }
        backends.push(Backend { address, port: backend_port });
    }
    let protocol = match asked.protocol {
        file::Transport::Tcp => TCP,
        file::Transport::Udp => UDP,
    };
    let mut config = BalancerConfig::new(protocol, port, backends);
    config.idle = span(key("idle"), asked.idle, config.idle, (Span::from_secs(1), DAY))?;
    if let Some(connections) = asked.connections {
        let most = CONNECTIONS_MAX as u64;
        config.connections_max = number(key("connections"), connections.into(), 1, most)? as usize;
    }
    Ok(config)
}

/// Returns the address of a server: an IPv4 address, or the name of a host with a fixed or reserved
/// one.
fn backend(fabric: &Fabric, key: &str, name: &str) -> Result<Ipv4Addr, Problem> {
    if let Ok(address) = name.parse() {
        return Ok(address);
    }
    let host = fabric.hosts.iter().find(|host| host.name == name);
    let Some(host) = host else {
        let what = format!("there is no host `{name}`");
        return Err(Problem::new(key, what, "the name of a host, or an address such as 10.0.0.1"));
    };
    let reserved = fabric.dhcp.reservations.get(&host.mac);
    host.ip.or(reserved.copied()).ok_or_else(|| {
        let what = format!("{name} has no address of its own");
        Problem::new(key, what, "a host with an entry in dhcp.reservations")
    })
}

fn route(key: String, asked: &file::Route) -> Result<RouteTo, Problem> {
    let expected = "a prefix such as 10.1.0.0/16, with no bits set behind it";
    let parsed = asked.to.parse::<ipnet::Ipv4Net>().ok().filter(|net| *net == net.trunc());
    let Some(net) = parsed else {
        return Err(Problem::new(key, format!("`{}` is no prefix", asked.to), expected));
    };
    Ok(RouteTo { prefix: net.addr(), length: net.prefix_len(), via: asked.via })
}
