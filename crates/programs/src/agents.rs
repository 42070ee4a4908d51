//! Table entries that send selected packets to the agents of a switch, for any control program.
//!
//! While an agent port has carrier, TCAM entries above those of the program send the selected
//! frames there. There is one such entry for each other port. Frames that return from an agent port
//! match none of them and follow the program's entries. Without carrier, the entries are removed,
//! and the switch forwards as if there were no agent. For an agent that only listens, the entries
//! mirror: it gets copies, and the frames themselves follow the entries below.

use crate::entries::Match;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_pipeline::{
    Action, Change, Control, Field, KeyError, Mirror, Program, Received, Target, TcamEntry, Udlk,
    UdlkId,
};
use axon_wire::{PortNo, Time};

/// Key of the agent entries, which no shipped program uses.
pub(crate) const KEY: UdlkId = UdlkId(8);

/// Selects frames for an agent: those that match all of these bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Offset in the frame (0 to 127), value of the byte, and mask.
    pub bytes: Vec<(u8, u8, u8)>,
}

/// Agent of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAt {
    /// Port of the agent.
    pub port: PortNo,
    /// Frames for the agent. A frame must match at least one selection. If several agents match,
    /// the first gets the frame.
    pub selections: Vec<Selection>,
    /// True if the agent gets copies. The frames themselves continue to the next agent, or follow
    /// the program's entries.
    pub copies: bool,
}

/// Agents of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsAt {
    /// Agents in order of precedence.
    pub agents: Vec<AgentAt>,
    /// Number of ports of the switch.
    pub ports: u16,
    /// First TCAM index that the program does not use.
    pub first: u32,
}

impl AgentsAt {
    /// Returns the key of all entries, which contains the ingress and every byte that a selection
    /// matches.
    ///
    /// # Errors
    /// No parser extracts the key, because the selections together match too many offsets.
    pub fn key(&self) -> Result<Udlk, KeyError> {
        let mut fields = Vec::from([Field::Ingress]);
        for at in self.bytes() {
            match fields.last_mut() {
                Some(Field::Bytes { last, .. }) if *last + 1 == at => *last = at,
                _ => fields.push(Field::Bytes { first: at, last: at }),
            }
        }
        let key = Udlk::new(fields);
        key.check().map(|()| key)
    }

    /// Returns the matched offsets in ascending order.
    fn bytes(&self) -> Vec<u8> {
        let selections = self.agents.iter().flat_map(|agent| &agent.selections);
        let bytes = selections.flat_map(|selection| &selection.bytes);
        let mut bytes: Vec<u8> = bytes.map(|&(at, ..)| at).collect();
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    }

    /// Returns the maximum number of entries.
    pub fn entries(&self) -> u32 {
        let selections = self.agents.iter().map(|agent| agent.selections.len()).sum::<usize>();
        (selections * self.ingresses().count()) as u32
    }

    /// Returns the ports whose frames are matched. Agent ports are excluded, so that no frame
    /// loops.
    fn ingresses(&self) -> impl Iterator<Item = PortNo> {
        (0..self.ports).map(PortNo).filter(|port| !self.is_agent(*port))
    }

    fn is_agent(&self, port: PortNo) -> bool {
        self.agents.iter().any(|agent| agent.port == port)
    }

    /// Returns the changes that add or remove the entries for agent port `of`.
    fn changes(&self, of: PortNo, up: bool) -> Vec<Change> {
        let places = self.bytes();
        let mut changes = Vec::new();
        // The highest entry wins, so the last agent has the lowest ones.
        let mut index = self.first;
        for agent in self.agents.iter().rev() {
            for (selection, ingress) in agent
                .selections
                .iter()
                .flat_map(|selection| self.ingresses().map(move |ingress| (selection, ingress)))
            {
                if agent.port == of {
                    let entry = up.then(|| entry(agent, selection, ingress, &places));
                    changes.push(Change::Tcam(index as u16, entry));
                }
                index += 1;
            }
        }
        changes
    }
}

fn entry(agent: &AgentAt, selection: &Selection, ingress: PortNo, places: &[u8]) -> TcamEntry {
    let mut of = Match::new().ingress(ingress);
    for place in places {
        let found = selection.bytes.iter().find(|(at, ..)| at == place);
        of = found.map_or(of.clone().any(1), |&(_, value, mask)| of.masked(&[value], &[mask]));
    }
    let (value, mask) = of.into_parts();
    let action = match agent.copies {
        false => Target::Port(agent.port).into(),
        true => Action::from(Target::Tables).mirrored(Mirror::Port(agent.port)),
    };
    TcamEntry { udlk: KEY, value, mask, action }
}

/// Control program with additional entries for the agents attached to its switch.
pub struct WithAgents {
    program: Box<dyn Program>,
    agents: AgentsAt,
    failure: Option<String>,
}

impl WithAgents {
    /// Wraps the program of a switch to which these agents are attached.
    pub fn new(program: Box<dyn Program>, agents: AgentsAt) -> WithAgents {
        WithAgents { program, agents, failure: None }
    }

    fn commit(&mut self, changes: &[Change], control: &mut dyn Control) {
        if let Err(error) = control.commit(changes) {
            self.failure = Some(format!("the tables refuse the entries of its agents: {error}"));
        }
    }
}

impl Program for WithAgents {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        self.program.start(now, control);
        match self.agents.key() {
            Ok(key) => self.commit(&[Change::Udlk(KEY, Some(key))], control),
            Err(error) => self.failure = Some(format!("no key for its agents: {error}")),
        }
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        let changes = self.agents.changes(port, up);
        if !changes.is_empty() {
            self.commit(&changes, control);
        }
        self.program.link(now, port, up, control);
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        self.program.receive_packet(now, received, control);
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        self.program.timeout(now, control);
    }

    fn deadline(&self) -> Option<Time> {
        self.program.deadline()
    }

    fn is_ready(&self) -> bool {
        self.program.is_ready()
    }

    fn takes_packets(&self) -> bool {
        self.program.takes_packets()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.program.failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::Bridge;
    use crate::net::{Net, datagram};
    use crate::plans;
    use crate::site::{Neighbour, PlanPort};
    use axon_wire::{MacAddr, Span};
    use core::net::Ipv4Addr;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// Ring of bridges. The first has an agent at its last port, which gets datagrams from a UDP
    /// port, or copies of them.
    fn net(port: u16, copies: bool) -> (Net, PortNo, Vec<MacAddr>) {
        let mut plan = plans::ring(3);
        let rate = plan.nodes[0].ports[0].rate;
        plan.nodes[0].ports.push(PlanPort { neighbour: Neighbour::Agent, rate });
        let at = PortNo(plan.nodes[0].ports.len() as u16 - 1);
        let macs = plan.hosts.iter().map(|host| host.mac).collect();
        let [high, low] = port.to_be_bytes();
        let bytes = Vec::from([(23, 17, 0xff), (34, high, 0xff), (35, low, 0xff)]);
        let selections = Vec::from([Selection { bytes }]);
        let agents = Vec::from([AgentAt { port: at, selections, copies }]);
        let mut net = Net::new(plan, |site| {
            let bridge = Box::new(Bridge::new(&site));
            if site.node > 0 {
                return bridge;
            }
            let agents = AgentsAt { agents: agents.clone(), ports: at.0 + 1, first: 2000 };
            Box::new(WithAgents::new(bridge, agents))
        });
        net.run(Span::from_secs(6));
        (net, at, macs)
    }

    /// Returns the number of frames sent out of the agent port.
    fn to_agent(net: &mut Net, at: PortNo) -> usize {
        let hops = core::mem::take(&mut net.hops);
        hops.iter().filter(|hop| hop.node == 0 && hop.port == at).count()
    }

    #[test]
    fn selected_frames_go_to_the_agent_and_come_back_to_go_on() {
        let (mut net, at, macs) = net(9, false);
        let frame = datagram(macs[0], macs[1], FROM, TO, 9);
        net.send(0, &frame);
        assert_eq!((to_agent(&mut net, at), net.received.len()), (1, 0), "nowhere else");
        net.inject(0, at, &frame);
        assert_eq!(to_agent(&mut net, at), 0, "not to the agent again");
        // Flooding excludes only the ingress port, which is now the agent's.
        assert_eq!(net.received.len(), 3, "but where the bridge sends it: flooded, to h1 too");
        // The bridge has learned the sender at the sender's own port, not at that of the agent.
        net.send(1, &datagram(macs[1], macs[0], TO, FROM, 8));
        assert_eq!(to_agent(&mut net, at), 0);
        assert_eq!(net.received.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn an_agent_that_listens_gets_copies_and_the_frames_go_where_the_bridge_says() {
        let (mut listened, at, macs) = net(9, true);
        let (mut plain, ..) = net(8, true);
        let frame = datagram(macs[0], macs[1], FROM, TO, 9);
        for (net, copies) in [(&mut listened, 1), (&mut plain, 0)] {
            // The first frame is flooded to both others and learned. The second goes only to its
            // destination.
            net.send(0, &frame);
            assert_eq!((to_agent(net, at), net.received.len()), (copies, 2));
            net.send(1, &datagram(macs[1], macs[0], TO, FROM, 7));
            net.received.clear();
            net.hops.clear();
            net.send(0, &frame);
            assert_eq!(to_agent(net, at), copies);
            assert_eq!(net.received.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [1]);
            net.received.clear();
        }
        // Frames from the agent match none of its own entries.
        listened.inject(0, at, &frame);
        assert_eq!(to_agent(&mut listened, at), 0);
        assert_eq!(listened.received.len(), 1);
    }

    #[test]
    fn other_frames_pass_by_and_all_do_where_the_agent_is_gone() {
        let (mut net, at, macs) = net(9, false);
        net.send(0, &datagram(macs[0], macs[1], FROM, TO, 8));
        assert_eq!((to_agent(&mut net, at), net.received.len()), (0, 2));
        net.carrier(0, at, false);
        let frame = datagram(macs[0], macs[1], FROM, TO, 9);
        net.send(0, &frame);
        assert_eq!((to_agent(&mut net, at), net.received.len()), (0, 2));
        net.carrier(0, at, true);
        net.send(0, &frame);
        assert_eq!((to_agent(&mut net, at), net.received.len()), (1, 0));
    }

    #[test]
    fn selections_that_look_at_too_many_places_have_no_key() {
        let of = |places: &[u8]| {
            let bytes = places.iter().map(|&at| (at, 0, 0xff)).collect();
            let selections = Vec::from([Selection { bytes }]);
            let agent = AgentAt { port: PortNo(3), selections, copies: false };
            AgentsAt { agents: Vec::from([agent]), ports: 4, first: 0 }
        };
        let agents = of(&[12, 13, 23, 36, 37]);
        assert_eq!((agents.entries(), agents.key().unwrap().value_bytes()), (3, 7));
        assert_eq!(of(&[0, 10, 20, 30, 40]).key(), Err(KeyError::Blocks(5)));
        assert_eq!(of(&[128]).key(), Err(KeyError::Beyond(128)));
    }
}
