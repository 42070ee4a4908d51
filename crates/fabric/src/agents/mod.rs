//! Agents of a fabric: their ports, their kinds, and the frames that they receive.

mod cache;
mod congestion;
mod forwarder;
pub(crate) mod kind;
mod range;
mod select;

use crate::error::Problem;
use crate::file::{self, AgentKeys, AgentWhat};
use crate::model::{AgentSetup, End, Fabric, Host, Network, Wire};
use crate::names;
use crate::topology::{self, Plan, PlanEnd};
use crate::wire::check_wire;
use axon_agents::node::{AgentPortConfig, CPU_PORT_LATENCY, CPU_PORT_RATE, PayloadMode, WhenFull};
use axon_programs::agents::{AgentAt, AgentsAt};
use axon_wire::{MacAddr, Span};
use kind::AgentKind;
use range::{key, number, span};
use std::net::Ipv4Addr;

/// Maximum number of agents.
const AGENTS_MAX: usize = 4096;
/// Maximum number of TCAM entries, those of agents included.
const TCAM_MAX: u32 = 1 << 16;
/// Default time that an agent may hold a packet.
const HOLD_MAX: Span = Span::from_secs(10);
/// Default number of buffers of the send segment.
const SEND_BUFFERS: usize = 64;

/// Returns the switch ports that the file gives to agents.
pub(crate) fn ends(agents: &[file::Agent], plan: &Plan) -> Result<Vec<PlanEnd>, Problem> {
    if agents.len() > AGENTS_MAX {
        let what = format!("there are {}", agents.len());
        return Err(Problem::new("agents", what, format!("at most {AGENTS_MAX}")));
    }
    let switches = plan.numbers();
    let ends = agents.iter().enumerate();
    ends.map(|(index, agent)| topology::end(&key(index, "at"), &agent.common.at, &switches))
        .collect()
}

/// Adds the agents of the file at these ends, and reserves their addresses.
pub(crate) fn resolve(
    fabric: &mut Fabric,
    agents: &[file::Agent],
    ends: &[End],
) -> Result<(), Problem> {
    if agents.is_empty() {
        return Ok(());
    }
    if !matches!(fabric.network, Network::Axon | Network::Program) {
        let what = "the switches of another network have no agent ports";
        return Err(Problem::new("agents", what, "no network, or a program"));
    }
    for (index, (agent, &at)) in agents.iter().zip(ends).enumerate() {
        let name = name(fabric, index, &agent.common)?;
        let kind = kind(fabric, index, (agent, at))?;
        if let Some((mac, address)) = kind.address() {
            reserve(fabric, index, mac, address)?;
        }
        let setup = AgentSetup {
            name,
            at,
            wire: wire(fabric, index, &agent.common)?,
            port: port(fabric, index, &agent.common, &kind)?,
            selections: select::selections(fabric, index, &agent.common, &kind)?,
            kind,
        };
        fabric.agents.push(setup);
    }
    for switch in 0..fabric.switches.len() {
        let at = agents_at(fabric, switch);
        let entries = at.first.saturating_add(at.entries());
        if entries > TCAM_MAX {
            let what = format!("{} would have {entries} entries", fabric.switches[switch].name);
            let expected = format!("at most {TCAM_MAX}, with program.tables.tcam");
            return Err(Problem::new("agents", what, expected));
        }
        if let Err(error) = at.key() {
            let first = fabric.agents.iter().position(|agent| agent.at.switch == switch);
            let key = key(first.unwrap_or(0), "select");
            let what = format!("no key of {} reads it: {error}", fabric.switches[switch].name);
            return Err(Problem::new(key, what, "fewer places, or places closer to each other"));
        }
    }
    Ok(())
}

fn name(fabric: &Fabric, index: usize, agent: &AgentKeys) -> Result<String, Problem> {
    let name = agent.name.clone().unwrap_or_else(|| format!("a{}", index + 1));
    let key = key(index, "name");
    names::check(&key, &name)?;
    let taken = names::switch_index(fabric, &name).is_some()
        || names::host_index(fabric, &name).is_some()
        || fabric.controller.name == name
        || fabric.agents.iter().any(|other| other.name == name);
    if taken {
        return Err(Problem::new(key, format!("`{name}` is in use already"), "another name"));
    }
    Ok(name)
}

fn kind(
    fabric: &Fabric,
    index: usize,
    (agent, at): (&file::Agent, End),
) -> Result<AgentKind, Problem> {
    Ok(match &agent.kinds[..] {
        [AgentWhat::Cache(asked)] => AgentKind::Cache(cache::cache(index, asked)?),
        [AgentWhat::Congestion(asked)] => {
            AgentKind::Congestion(congestion::responder(fabric, index, (asked, at))?)
        }
        [AgentWhat::Forwarder(asked)] => {
            AgentKind::Forwarder(forwarder::forwarder(fabric, index, asked)?)
        }
        [AgentWhat::Run(command)] if command.is_empty() => {
            let expected = "a program and its arguments";
            return Err(Problem::new(key(index, "run"), "it is empty", expected));
        }
        [AgentWhat::Run(command)] => AgentKind::Run(command.clone()),
        _ => {
            let what = "it has not exactly one of cache, congestion, forwarder and run";
            return Err(Problem::new(format!("agents[{index}]"), what, "one of the four"));
        }
    })
}

/// Reserves an address of an agent, so that no host gets it.
fn reserve(
    fabric: &mut Fabric,
    index: usize,
    mac: MacAddr,
    address: Ipv4Addr,
) -> Result<(), Problem> {
    let key = key(index, "forwarder.address");
    let subnet = ipnet::Ipv4Net::new(fabric.dhcp.server, fabric.dhcp.prefix_len);
    let subnet = subnet.map_err(|_| Problem::new(&key, "there is no subnet", "a subnet"))?;
    let is_host =
        subnet.contains(&address) && address != subnet.network() && address != subnet.broadcast();
    if !is_host {
        let what = format!("{address} is not in the subnet");
        return Err(Problem::new(key, what, format!("an address of {}", subnet.trunc())));
    }
    let reserved = fabric.dhcp.reservations.values().any(|taken| *taken == address);
    if reserved || address == fabric.dhcp.server {
        return Err(Problem::new(key, format!("{address} is in use already"), "another address"));
    }
    fabric.dhcp.reservations.insert(mac, address);
    let pool = fabric.dhcp.pool_first..=fabric.dhcp.pool_last;
    let size = u64::from(pool.end().to_bits() - pool.start().to_bits()) + 1;
    let reserved = fabric.dhcp.reservations.values().filter(|ip| pool.contains(*ip)).count();
    let others = |host: &&Host| !fabric.dhcp.reservations.contains_key(&host.mac);
    let wanted = fabric.hosts.iter().filter(others).count();
    if size - (reserved as u64) < wanted as u64 {
        let what = format!("with {address} the pool has too few addresses for {wanted} hosts");
        return Err(Problem::new(key, what, "an address outside of the pool"));
    }
    Ok(())
}

fn wire(fabric: &Fabric, index: usize, agent: &AgentKeys) -> Result<Wire, Problem> {
    let rate = agent.rate.map_or(CPU_PORT_RATE, |rate| rate.0);
    let latency = agent.latency.map_or(CPU_PORT_LATENCY, |latency| latency.0);
    let queue = fabric.controller.wire.queue;
    let wire = Wire { rate, latency, loss_ppm: 0, bit_errors_per_1e15: 0, queue };
    check_wire(&format!("agents[{index}]"), &wire)?;
    Ok(wire)
}

fn port(
    fabric: &Fabric,
    index: usize,
    agent: &AgentKeys,
    kind: &AgentKind,
) -> Result<AgentPortConfig, Problem> {
    let mut port = AgentPortConfig::default();
    let own = |asked: Option<u16>, ours: usize| asked.map_or(ours, usize::from) as u64;
    let head = own(agent.head_bytes, kind.head_bytes());
    let least = if matches!(kind, AgentKind::Run(_)) { 14 } else { kind.head_bytes() as u64 };
    port.cache.head_bytes = number(key(index, "head_bytes"), head, least, 9000)? as usize;
    let buffers = own(agent.buffers, port.cache.buffers);
    port.cache.buffers = number(key(index, "buffers"), buffers, 1, 32_768)? as usize;
    let send_buffers = own(agent.send_buffers, SEND_BUFFERS);
    port.cache.send_buffers = number(key(index, "send_buffers"), send_buffers, 1, 32_767)? as usize;
    let range = (Span::from_micros(1), Span::from_secs(3600));
    port.cache.hold_max = Some(span(key(index, "hold_max"), agent.hold_max, HOLD_MAX, range)?);
    let range = (Span::ZERO, Span::from_secs(1));
    port.service = span(key(index, "service"), agent.service, Span::ZERO, range)?;
    port.payload = match agent.payload {
        file::Payload::Cached => PayloadMode::Cached,
        file::Payload::Copied => PayloadMode::Copied,
    };
    port.when_full = match agent.when_full {
        file::WhenAgentFull::Wait => WhenFull::Wait,
        file::WhenAgentFull::Drop => WhenFull::Drop,
    };
    port.queue_bytes_max = fabric.controller.wire.queue;
    port.frame_bytes_max = crate::model::frame_bytes_max(fabric);
    Ok(port)
}

/// Returns the agents of a switch that have selections, and their first TCAM entry, which follows
/// those of the program.
pub(crate) fn agents_at(fabric: &Fabric, switch: usize) -> AgentsAt {
    let here = fabric.agents.iter().filter(|agent| agent.at.switch == switch);
    let agents = here.filter(|agent| !agent.selections.is_empty());
    let agents = agents
        .map(|agent| AgentAt {
            port: agent.at.port,
            selections: agent.selections.clone(),
            copies: agent.kind.gets_copies(),
        })
        .collect();
    AgentsAt {
        agents,
        ports: fabric.switches[switch].ports,
        first: fabric.program.as_ref().map_or(0, |program| program.sizes.tcam),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIDGE: &str = "name: a\nprogram: bridge\ntopology: {ring: {switches: 3}}\n";
    const AXON: &str = "name: a\ntopology: {ring: {switches: 3}}\n\
                        dhcp: {reservations: {h2: 10.0.0.9}}\n";

    fn load(head: &str, agents: &str) -> Result<Fabric, String> {
        let text = format!("{head}agents: [{agents}]\n");
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_agent_has_a_port_of_its_switch_and_what_it_says_of_itself() {
        let select = "select: [{protocol: udp, destination_port: 5000}, \
                      {bytes: [{at: 12, value: '88b5'}, {at: 20, value: 'f0', mask: 'f0'}]}]";
        let cache = format!("{{at: s2, cache: {{id: {{offset: 3}}}}, buffers: 7, {select}}}");
        let fabric = load(BRIDGE, &cache).unwrap();
        let [agent] = &fabric.agents[..] else { panic!("one agent") };
        let AgentSetup { name, at, kind, port, selections, .. } = agent;
        // One host, two links; the controller is at s1.
        assert_eq!((name.as_str(), at.switch, at.port.0), ("a1", 1, 3));
        assert_eq!(fabric.switches[1].ports, 4);
        let AgentKind::Cache(config) = kind else { panic!("a cache") };
        assert_eq!(config.port, 5000);
        assert_eq!((port.cache.buffers, port.cache.head_bytes), (7, 128));
        let udp =
            [(12, 8, 0xff), (13, 0, 0xff), (23, 17, 0xff), (36, 0x13, 0xff), (37, 0x88, 0xff)];
        assert_eq!(selections[0].bytes, udp);
        assert_eq!(selections[1].bytes, [(12, 0x88, 0xff), (13, 0xb5, 0xff), (20, 0xf0, 0xf0)]);
        // Two entries for each port but its own, above the 2048 of the program.
        let agents = agents_at(&fabric, 1);
        assert_eq!((agents.first, agents.entries()), (2048, 6));
        let config = crate::program::pipeline_config(&fabric, 1, 1);
        assert_eq!(config.sizes.tcam, 2054);
        assert_eq!(crate::program::pipeline_config(&fabric, 0, 1).sizes.tcam, 2048);
    }

    #[test]
    fn a_forwarder_has_an_address_that_no_host_gets() {
        let balancer = "{name: vip, at: s1-p9, forwarder: {address: 10.0.0.2, balancer: \
                        {protocol: tcp, port: 80, backends: [h2, 10.0.0.77]}}}";
        let fabric = load(AXON, balancer).unwrap();
        let AgentKind::Forwarder(config) = &fabric.agents[0].kind else { panic!("a forwarder") };
        assert_eq!(fabric.agents[0].at.port.0, 9);
        let address = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!(fabric.dhcp.reservations.get(&config.mac), Some(&address));
        let axon_agents::forwarder::Role::Balancer(balancer) = &config.role else { panic!() };
        let backends = balancer.backends.iter().map(|backend| backend.address.octets()[3]);
        assert_eq!(backends.collect::<Vec<_>>(), [9, 77]);
    }

    #[test]
    fn a_congestion_responder_gets_copies_and_watches_a_port_of_its_switch_or_that_of_a_host() {
        let select = "select: [{bytes: [{at: 15, value: '20', mask: 'fc'}]}]";
        let load = |egress: &str| {
            let more = "set_point: 30kB, weight_log2: 2, cnm_priority: 5";
            load(BRIDGE, &format!("{{at: s2, congestion: {{egress: {egress}, {more}}}, {select}}}"))
        };
        let fabric = load("h2").unwrap();
        let AgentKind::Congestion(config) = &fabric.agents[0].kind else { panic!("a responder") };
        assert_eq!((config.egress, config.point.set_point.0), (fabric.hosts[1].port, 30_000));
        assert_eq!((config.point.weight_log2, config.cnm_priority.value()), (2, 5));
        assert_eq!(config.mac, crate::identity::switch_mac(1));
        assert!(fabric.agents[0].port.cache.head_bytes >= 14 + 4 + 64);
        let [at] = &agents_at(&fabric, 1).agents[..] else { panic!("one agent") };
        assert!(at.copies);
        let fabric = load("s2-p2").unwrap();
        let AgentKind::Congestion(config) = &fabric.agents[0].kind else { panic!("a responder") };
        assert_eq!(config.egress.0, 2);
        for (egress, expected) in [
            ("h1", "`h1` is at s1, and the agent sees the queues of s2; expected a port of s2"),
            ("s3-p0", "`s3-p0` is at s3"),
            ("h9", "congestion.egress: `h9` is no port and no host"),
            ("s2", "`s2` is no port and no host"),
            ("s2-p3", "s2 has no port p3 that is not the agent's own"),
            ("s2-p4", "s2 has no port p4"),
        ] {
            let refusal = load(egress).expect_err(egress);
            assert!(refusal.contains(expected), "{egress}: {refusal}");
        }
    }

    #[test]
    fn a_congestion_responder_that_cannot_be_is_refused() {
        const SELECT: &str = "select: [{ethertype: 0x88b5}]";
        for (head, select, more, expected) in [
            (BRIDGE, "", "", "agents[0].select: nothing selects the frames that their source"),
            (AXON, SELECT, "", "expected program: bridge"),
            (BRIDGE, SELECT, ", set_point: 99B", "congestion.set_point: a set point of 99 bytes"),
            (BRIDGE, SELECT, ", weight_log2: 11", "expected -10 to 10"),
            (BRIDGE, SELECT, ", header_bytes: 65", "congestion.header_bytes: 65 is out of range"),
            (BRIDGE, SELECT, ", cnm_priority: 8", "expected 0 to 7"),
        ] {
            let agent = format!("{{at: s1, congestion: {{egress: h1{more}}}, {select}}}");
            let refusal = load(head, &agent).expect_err(&agent);
            assert!(refusal.contains(expected), "{agent}: {refusal}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key_and_what_was_expected() {
        let cache = "select: [{ethertype: 0x88b5}], cache: ";
        let forwarder = "{at: s1, forwarder: {address: 10.0.0.2, ";
        let cases = [
            (BRIDGE, "{at: s9, run: [a]}".to_owned(), "agents[0].at: there is no switch `s9`"),
            (BRIDGE, "{at: s1}".into(), "agents[0]: it has not exactly one of cache, congestion"),
            (BRIDGE, "{at: s1, run: []}".into(), "agents[0].run: it is empty"),
            (BRIDGE, "{at: s1, run: [a], name: s2}".into(), "`s2` is in use already"),
            (BRIDGE, "{at: s1, cache: {}}".into(), "agents[0].select: nothing selects frames"),
            (AXON, format!("{{at: s1, {cache} {{}}}}"), "expected program: bridge"),
            (BRIDGE, format!("{{at: s1, {cache} {{port: 0}}}}"), "cache.port: 0 is out of range"),
            (
                BRIDGE,
                format!("{{at: s1, {cache} {{protocol: memcached, id: {{}}}}}}"),
                "cache.id: memcached has keys",
            ),
            (BRIDGE, format!("{{at: s1, {cache} {{}}, head_bytes: 90}}"), "expected 128 to 9000"),
            (BRIDGE, format!("{{at: s1, {cache} {{}}, buffers: 0}}"), "expected 1 to 32768"),
            (BRIDGE, format!("{{at: s1, {cache} {{}}, hold_max: 2h}}"), "expected 1us to 1h"),
            (BRIDGE, "{at: s1, run: [a], select: [{}]}".into(), "select[0]: it says nothing"),
            (
                BRIDGE,
                "{at: s1, run: [a], select: [{bytes: [{at: 127, value: '0000'}]}]}".into(),
                "beyond byte 127",
            ),
            (
                BRIDGE,
                "{at: s1, run: [a], select: [{bytes: [{at: 1, value: '0'}]}]}".into(),
                "select[0].bytes[0].value: `0` is not hex",
            ),
            (
                BRIDGE,
                "{at: s1, run: [a], select: [{ethertype: 0x86dd, source_port: 1}]}".into(),
                "0x86dd is not the EtherType of IPv4",
            ),
            (
                BRIDGE,
                "{at: s1, run: [a], select: [{bytes: [{at: 0, value: '00'}, {at: 20, value: '00'}, \
                 {at: 40, value: '00'}, {at: 60, value: '00'}, {at: 80, value: '00'}]}]}"
                    .into(),
                "agents[0].select: no key of s1 reads it: it touches 5 blocks",
            ),
            (AXON, format!("{forwarder}routes: [{{to: 10.1.0.1/16}}]}}}}"), "is no prefix"),
            (AXON, "{at: s1, forwarder: {address: 11.0.0.2, routes: []}}".into(), "in the subnet"),
            (AXON, "{at: s1, forwarder: {address: 10.0.0.9, routes: []}}".into(), "in use already"),
            (AXON, "{at: s1, forwarder: {address: 10.0.0.2}}".into(), "of balancer and routes"),
            (
                AXON,
                format!("{forwarder}balancer: {{protocol: tcp, port: 80, backends: [h1]}}}}}}"),
                "backends[0]: h1 has no address of its own",
            ),
            (
                AXON,
                format!("{forwarder}balancer: {{protocol: tcp, port: 0, backends: [h2]}}}}}}"),
                "balancer.port: 0 is out of range",
            ),
            (
                "name: a\nnetwork: ecmp\ntopology: {ring: {switches: 3}}\n",
                "{at: s1, run: [a]}".into(),
                "agents: the switches of another network",
            ),
        ];
        for (head, agents, expected) in cases {
            let refusal = load(head, &agents).expect_err(&agents);
            assert!(refusal.contains(expected), "{agents}: {refusal}");
            assert!(refusal.starts_with("a.yaml:"), "{refusal}");
        }
    }
}
