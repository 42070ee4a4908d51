//! What the control planes of switches and of the controller know and count.

use super::text;
use crate::settings::{SettingError, SettingName};
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, MacAddr, NodeId, PortNo};
use core::net::{IpAddr, Ipv4Addr};
use serde::{Deserialize, Serialize};

/// A neighbour that has finished its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The port of this node, a number from 0.
    pub port: PortNo,
    /// The node at the other end.
    pub node: NodeId,
    /// The port at the other end.
    pub peer_port: PortNo,
    /// Whether its node is silent while its data plane returns echoes.
    pub restarting: bool,
}

/// A host at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeHost {
    /// The MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// The VLAN that it is in; left out of JSON where that is none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The port of the switch that the host is at, from 0.
    pub port: PortNo,
    /// Its IPv4 address, once one is known: the one that it used last.
    pub ip: Option<Ipv4Addr>,
}

/// A route of a host at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeRoute {
    /// The port of the host.
    pub port: PortNo,
    /// The VLAN that it is in; left out of JSON where that is none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The MAC address that the route leads to.
    #[serde(with = "text::mac")]
    pub destination: MacAddr,
    /// The MAC address of the host whose frames alone take it; left out of JSON where it is for all
    /// hosts at the port.
    #[serde(default, with = "text::optional_mac", skip_serializing_if = "Option::is_none")]
    pub source: Option<MacAddr>,
    /// The ports it leaves by, nearest switch first.
    pub hops: Hops,
    /// Whether it is in the data plane's table; else the control plane forwards.
    pub placed: bool,
}

/// A setting of a port that the data plane has refused and that is not made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSetting {
    /// The number of the port, from 0.
    pub port: PortNo,
    /// The setting that was refused.
    pub setting: SettingName,
    /// Why it was refused the last time. An unavailable device is asked again every second.
    pub error: SettingError,
    /// How often it was refused.
    pub refusals: u64,
}

/// What the data plane owes its edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeDebts {
    /// Changes of routes without an answer.
    pub unanswered: u64,
    /// Routes that were removed and that the data plane may still have: it has refused to remove
    /// them, or has not answered in time. They are removed again every second.
    pub stale: u64,
    /// Whether it owes more than is remembered. It is re-synchronised every second, and until it
    /// has its routes, the control plane forwards the frames of new flows.
    pub lost: bool,
}

/// A host as the controller knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHost {
    /// The MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// The VLAN that it is in; left out of JSON where that is none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The identity of the switch that the host is at.
    pub switch: NodeId,
    /// The port of that switch that the host is at, from 0.
    pub port: PortNo,
    /// Its addresses, newest last.
    pub ips: Vec<IpAddr>,
}

/// What an edge has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCounters {
    /// Frames of hosts that were not learned: their port has all the hosts it may have, or
    /// they appear on two ports at once.
    pub hosts_refused: u64,
    /// Hosts that moved from one local port to another.
    pub hosts_moved: u64,
    /// Hosts that stopped answering probes.
    pub hosts_lost: u64,
    /// ARP requests answered from an existing flow.
    pub arp_cached: u64,
    /// Routes that the controller was asked for.
    pub setups_begun: u64,
    /// Of these, how many came.
    pub setups_done: u64,
    /// Of these, how many did not come in time.
    pub setups_failed: u64,
    /// Routes that were not asked for: too many in flight, or too soon after a failure.
    pub setups_refused: u64,
    /// Addresses that the controller had this switch ask all its hosts for.
    pub seeks: u64,
    /// Of these, how many it did not ask for: they were too many at once.
    pub seeks_limited: u64,
    /// Echo requests (ping) to the fabric's own address that were answered.
    pub pings: u64,
    /// Echo requests to it that were not answered: too many of one port.
    pub pings_limited: u64,
    /// Memberships of hosts in groups that began.
    pub members_joined: u64,
    /// Memberships of hosts in groups that ended.
    pub members_left: u64,
    /// Memberships that were not entered: too many at a port, or too many at once.
    pub members_refused: u64,
    /// Questions to hosts for their groups.
    pub group_queries: u64,
    /// Frames to groups, or to all, that were copied.
    pub group_frames: u64,
    /// Copies of such frames that were made.
    pub group_copies: u64,
    /// Copies that were not made, because there is no route.
    pub group_copies_lost: u64,
    /// Frames to groups, or to all, that were dropped because their port sends too many.
    pub group_limited: u64,
    /// Copies that were not made, because frames of their port have too many.
    pub group_copies_limited: u64,
    /// Frames to groups that were dropped because hosts of their port send to too many groups.
    pub senders_refused: u64,
    /// Router advertisements of IPv6 that were sent to hosts.
    pub advertisements: u64,
    /// Solicitations of routers that were not answered: too many of one port.
    pub advertisements_limited: u64,
    /// Router advertisements of hosts that are no router of the fabric file, which were dropped.
    pub advertisements_refused: u64,
    /// Messages to DHCP clients from hosts that are not the DHCP server, which were dropped.
    pub dhcp_servers_refused: u64,
    /// Routes that were removed because no frame took them for long.
    pub routes_aged: u64,
    /// Routes that were removed because a new incarnation of the controller did not decide about
    /// them in time.
    pub routes_unconfirmed: u64,
    /// Changes of routes that the data plane has refused.
    pub changes_refused: u64,
    /// Changes of routes that the data plane did not answer in time.
    pub changes_unanswered: u64,
    /// Flows that took their backup route because a link of their route was down.
    pub backups_used: u64,
    /// Destinations for which hosts are given masqueraded MACs now, at all ports.
    pub macs_masqueraded: u64,
    /// Hosts that sent a frame to an address by which it could not go the fast way, or not go at
    /// all, and were sent the present one: a masqueraded MAC that is over, or the destination's own
    /// in the place of one.
    pub macs_corrected: u64,
    /// How often the data plane owed more answers than are remembered.
    pub answers_lost: u64,
    /// LACPDUs that were sent at ports of bonds.
    pub lacpdus_sent: u64,
    /// LACPDUs that were received there.
    pub lacpdus_received: u64,
    /// Frames of slow protocols there that are no LACPDU.
    pub lacpdus_refused: u64,
    /// Frames that the control plane forwarded by a route of its own.
    pub slow_path: u64,
    /// Control messages that came too late or name a host or port that is not here.
    pub messages_ignored: u64,
}

/// What a controller counts; most of it was asked and not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerCounters {
    /// Messages of an incarnation that is over.
    pub stale_incarnation: u64,
    /// Requests for a host that nobody knows.
    pub arp_unknown_target: u64,
    /// Rounds in which all hosts were asked for an address that nobody is known to have.
    pub seeks: u64,
    /// Addresses that somebody had while they were looked for.
    pub seeks_found: u64,
    /// Requests for unknown addresses for which nobody was asked: their port, their switch or the
    /// whole fabric has had as many as it may.
    pub seeks_limited: u64,
    /// Memberships, senders to groups and entries of lists that were too many for a port, a switch
    /// or one list; and lists that were too many for a switch, and come later.
    pub groups_refused: u64,
    /// Requests of a host for itself.
    pub arp_self: u64,
    /// Requests of what is no host, or of one that was reported elsewhere.
    pub arp_misplaced: u64,
    /// Requests with no path between the two hosts, or none to the target switch.
    pub arp_unreachable: u64,
    /// ARP requests that the controller answered.
    pub arp_answered: u64,
    /// Routes given another path.
    pub routes_moved: u64,
    /// Backup routes sent to edges.
    pub backups_sent: u64,
    /// Routes whose edge has taken the backup, which is the route since then.
    pub backups_used: u64,
    /// Routes that the controller removed from edges.
    pub routes_removed: u64,
    /// Routes that their switch has removed because no frame took them for long.
    pub routes_aged: u64,
    /// Claims of addresses that were refused: the address belongs to another host by reservation
    /// or lease, or to one that the host may not reach; or there are too many address conflicts, of
    /// its port or of all.
    pub ip_refused: u64,
    /// Address conflicts: how often two hosts claimed one address and the first one, asked for it,
    /// has answered. It keeps the address.
    pub ip_conflicts: u64,
    /// ARP requests and solicitations in the name of an address that another host has, which are
    /// not answered.
    pub arp_not_owner: u64,
    /// Hosts that were forgotten because their switch was silent for too long.
    pub hosts_aged: u64,
    /// Items on a stream that only a controller sends.
    pub item_misplaced: u64,
    /// DHCP replies with no path to their switch.
    pub dhcp_unreachable: u64,
    /// Hosts, routes and queries refused because their switch or port had as many as one may have.
    pub over_bound: u64,
    /// Requests for a host that the policy does not let the requesting port reach.
    pub arp_denied: u64,
    /// Hosts that were reported at a port where the policy does not admit them.
    pub hosts_misplaced: u64,
    /// How often a port was noted for requests for many hosts that it may not reach or that do not
    /// exist.
    pub scans: u64,
    /// Routes that were given another port of their destination's bond.
    pub bond_moves: u64,
    /// How often a port of a bond had another partner than the others.
    pub bond_mismatches: u64,
}

/// A tenant of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantTelemetry {
    /// The name of the tenant in the fabric file.
    pub name: String,
    /// How many hosts of it the controller knows now.
    pub hosts: u64,
}

/// A pair of hosts that an operator has allowed or denied to reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTelemetry {
    /// The MAC address of one host.
    #[serde(with = "text::mac")]
    pub a: MacAddr,
    /// The MAC address of the other host.
    #[serde(with = "text::mac")]
    pub b: MacAddr,
    /// Whether they may reach each other.
    pub allowed: bool,
}

/// A host or a port in quarantine; one of the two keys is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineTelemetry {
    /// The MAC address of the host.
    #[serde(with = "text::optional_mac")]
    pub mac: Option<MacAddr>,
    /// The identity of the switch of the port.
    pub switch: Option<NodeId>,
    /// The number of the port, from 0.
    pub port: Option<PortNo>,
}

/// Which hosts may reach which, as a controller knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTelemetry {
    /// The tenants, in the order of the fabric file.
    pub tenants: Vec<TenantTelemetry>,
    /// How many hosts that all tenants reach it knows now.
    pub shared_hosts: u64,
    /// How many hosts in no tenant it knows now.
    pub other_hosts: u64,
    /// Hosts and ports in quarantine.
    pub quarantine: Vec<QuarantineTelemetry>,
    /// Pairs of hosts for which an operator has said something else than the fabric file.
    pub pairs: Vec<PairTelemetry>,
    /// Switches that have not acknowledged yet that they remove routes which a change of the
    /// policy forbids.
    pub outstanding: Vec<NodeId>,
}

/// What a controller has of its incarnation before: from its store, and from the routes of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Hosts that the store held.
    pub hosts: u64,
    /// Of these, how many no switch has reported again yet; they are provisional.
    pub hosts_provisional: u64,
    /// Leases and other states of addresses that the store held.
    pub leases: u64,
    /// Entries of the store that fit neither the address pool nor the reservations any more, are of
    /// a VLAN that their port is not in any more, or contradict others: they were given up.
    pub refused: u64,
    /// Routes of edges that are still to be decided about.
    pub routes_pending: u64,
    /// Routes of edges that were taken over as they are.
    pub routes_kept: u64,
    /// Routes of edges that have another path now.
    pub routes_moved: u64,
    /// Routes of edges that were removed: no path, or no such host.
    pub routes_removed: u64,
}

impl Restored {
    /// The sum of both, field by field.
    pub const fn plus(&self, other: &Restored) -> Restored {
        Restored {
            hosts: self.hosts + other.hosts,
            hosts_provisional: self.hosts_provisional + other.hosts_provisional,
            leases: self.leases + other.leases,
            refused: self.refused + other.refused,
            routes_pending: self.routes_pending + other.routes_pending,
            routes_kept: self.routes_kept + other.routes_kept,
            routes_moved: self.routes_moved + other.routes_moved,
            routes_removed: self.routes_removed + other.routes_removed,
        }
    }
}

/// What a DHCP server counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpCounters {
    /// Frames that are no request of their sender.
    pub malformed: u64,
    /// DHCPOFFERs sent to hosts.
    pub offers: u64,
    /// DHCPACKs sent to hosts.
    pub acks: u64,
    /// DHCPNAKs sent to hosts.
    pub naks: u64,
    /// DHCPDISCOVERs without an answer: no address is left.
    pub exhausted: u64,
    /// Requests without an answer: the client's port holds as many addresses as it may.
    pub port_full: u64,
    /// Requests at another port than the client's, and releases and declines of addresses that
    /// were not the client's to give back.
    pub misplaced: u64,
    /// Leases given up because their hosts were gone and others needed the addresses.
    pub reclaimed: u64,
    /// DHCPDECLINEs of addresses that were the client's.
    pub declined: u64,
    /// DHCPRELEASEs of addresses that were the client's.
    pub released: u64,
    /// Requests that a server of this subnet has to leave unanswered.
    pub silent: u64,
    /// Requests that were relayed to the server that is a host.
    pub relayed: u64,
    /// Answers of that server that were relayed to their clients.
    pub returned: u64,
    /// Requests that were not relayed: too many are without an answer, of their port or of all, or
    /// the server can not be reached.
    pub relay_limited: u64,
    /// Answers that no request is waiting for, or that are not as they should be.
    pub relay_unmatched: u64,
    /// Answers of a host that is not the server, which were dropped.
    pub relay_refused: u64,
    /// Addresses that the server has given and that another host holds: its client got a DHCPNAK
    /// and the server a DHCPDECLINE.
    pub relay_conflicts: u64,
}

/// Adds the counters of parts of a node, by field.
macro_rules! plus {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $name {
            /// These and others together.
            #[must_use]
            pub const fn plus(&self, other: &$name) -> $name {
                $name { $($field: self.$field + other.$field,)* }
            }
        }
    };
}
plus!(EdgeCounters {
    hosts_refused,
    hosts_moved,
    hosts_lost,
    arp_cached,
    setups_begun,
    setups_done,
    setups_failed,
    setups_refused,
    seeks,
    seeks_limited,
    pings,
    pings_limited,
    members_joined,
    members_left,
    members_refused,
    group_queries,
    group_frames,
    group_copies,
    group_copies_lost,
    group_limited,
    group_copies_limited,
    senders_refused,
    advertisements,
    advertisements_limited,
    advertisements_refused,
    dhcp_servers_refused,
    routes_aged,
    routes_unconfirmed,
    changes_refused,
    changes_unanswered,
    backups_used,
    macs_masqueraded,
    macs_corrected,
    answers_lost,
    lacpdus_sent,
    lacpdus_received,
    lacpdus_refused,
    slow_path,
    messages_ignored
});
plus!(ControllerCounters {
    stale_incarnation,
    arp_unknown_target,
    seeks,
    seeks_found,
    seeks_limited,
    groups_refused,
    arp_self,
    arp_misplaced,
    arp_unreachable,
    arp_answered,
    routes_moved,
    backups_sent,
    backups_used,
    routes_removed,
    routes_aged,
    ip_refused,
    ip_conflicts,
    arp_not_owner,
    hosts_aged,
    item_misplaced,
    dhcp_unreachable,
    over_bound,
    arp_denied,
    hosts_misplaced,
    scans,
    bond_moves,
    bond_mismatches,
});
plus!(DhcpCounters {
    malformed,
    offers,
    acks,
    naks,
    exhausted,
    port_full,
    misplaced,
    reclaimed,
    declined,
    released,
    silent,
    relayed,
    returned,
    relay_limited,
    relay_unmatched,
    relay_refused,
    relay_conflicts
});
