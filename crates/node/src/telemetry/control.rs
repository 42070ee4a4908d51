//! Telemetry of the control planes of switches and of the controller.

use super::text;
use crate::settings::{SettingError, SettingName};
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, MacAddr, NodeId, PortNo};
use core::net::{IpAddr, Ipv4Addr};
use serde::{Deserialize, Serialize};

/// Neighbour with a completed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The port of this node, numbered from 0.
    pub port: PortNo,
    /// The node at the other end.
    pub node: NodeId,
    /// The port at the other end.
    pub peer_port: PortNo,
    /// True if the neighbour is silent while its data plane returns echoes.
    pub restarting: bool,
}

/// Host at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeHost {
    /// The MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// The VLAN of the host; left out of JSON if it is in none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The port of the switch that the host is at, from 0.
    pub port: PortNo,
    /// The IPv4 address that the host used last, once one is known.
    pub ip: Option<Ipv4Addr>,
}

/// Route of a host at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeRoute {
    /// The port of the host.
    pub port: PortNo,
    /// The VLAN of the route; left out of JSON if it is in none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The MAC address that the route leads to.
    #[serde(with = "text::mac")]
    pub destination: MacAddr,
    /// The MAC address of the only host whose frames take the route; left out of JSON if the route
    /// is for all hosts at the port.
    #[serde(default, with = "text::optional_mac", skip_serializing_if = "Option::is_none")]
    pub source: Option<MacAddr>,
    /// The egress ports, nearest switch first.
    pub hops: Hops,
    /// True if the route is in the data plane's table; else the control plane forwards.
    pub placed: bool,
}

/// Setting of a port that the data plane has refused and that is not made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSetting {
    /// The number of the port, from 0.
    pub port: PortNo,
    /// The setting that was refused.
    pub setting: SettingName,
    /// The error of the last refusal. The setting is retried every second on an unavailable device.
    pub error: SettingError,
    /// Number of refusals so far.
    pub refusals: u64,
}

/// Pending work of the data plane for its edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeDebts {
    /// Changes of routes without an answer.
    pub unanswered: u64,
    /// Routes whose removal the data plane has refused or not confirmed in time. They are removed
    /// again every second.
    pub stale: u64,
    /// True if more is pending than is tracked. The data plane is re-synchronised every second, and
    /// until it has its routes, the control plane forwards the frames of new flows.
    pub lost: bool,
}

/// Host known to the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHost {
    /// The MAC address of the host.
    #[serde(with = "text::mac")]
    pub mac: MacAddr,
    /// The VLAN of the host; left out of JSON if it is in none.
    #[serde(default, skip_serializing_if = "VlanId::is_none_ref")]
    pub vlan: VlanId,
    /// The identity of the switch that the host is at.
    pub switch: NodeId,
    /// The port of that switch that the host is at, from 0.
    pub port: PortNo,
    /// The addresses of the host, newest last.
    pub ips: Vec<IpAddr>,
}

/// Counters of an edge since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCounters {
    /// Frames of hosts that were not learned: their port has reached its limit of hosts, or they
    /// appear on two ports at once.
    pub hosts_refused: u64,
    /// Hosts that moved from one local port to another.
    pub hosts_moved: u64,
    /// Hosts that stopped answering probes.
    pub hosts_lost: u64,
    /// ARP requests answered from an existing flow.
    pub arp_cached: u64,
    /// Routes requested from the controller.
    pub setups_begun: u64,
    /// Requested routes that were set up.
    pub setups_done: u64,
    /// Requested routes that were not set up in time.
    pub setups_failed: u64,
    /// Routes not requested: too many in flight, or too soon after a failure.
    pub setups_refused: u64,
    /// Addresses for which this switch queried all its hosts for the controller.
    pub seeks: u64,
    /// Addresses for which it did not query them: too many at once.
    pub seeks_limited: u64,
    /// Echo requests (ping) to the fabric's own address that were answered.
    pub pings: u64,
    /// Echo requests to the fabric's own address that were not answered: too many of one port.
    pub pings_limited: u64,
    /// Memberships of hosts in groups that began.
    pub members_joined: u64,
    /// Memberships of hosts in groups that ended.
    pub members_left: u64,
    /// Memberships that were refused: too many at a port, or too many at once.
    pub members_refused: u64,
    /// Group membership queries to hosts.
    pub group_queries: u64,
    /// Frames to groups, or to all hosts, that were copied.
    pub group_frames: u64,
    /// Copies made of frames to groups, or to all hosts.
    pub group_copies: u64,
    /// Copies of such frames not made for lack of a route.
    pub group_copies_lost: u64,
    /// Frames to groups, or to all hosts, that were dropped because their port sends too many.
    pub group_limited: u64,
    /// Copies of such frames not made because frames of their port have too many.
    pub group_copies_limited: u64,
    /// Frames to groups that were dropped because hosts of their port send to too many groups.
    pub senders_refused: u64,
    /// IPv6 router advertisements sent to hosts.
    pub advertisements: u64,
    /// Router solicitations not answered: too many of one port.
    pub advertisements_limited: u64,
    /// Router advertisements dropped because their host is not a router of the fabric file.
    pub advertisements_refused: u64,
    /// Messages to DHCP clients dropped because their host is not the DHCP server.
    pub dhcp_servers_refused: u64,
    /// Routes removed because they were unused for long.
    pub routes_aged: u64,
    /// Routes removed because a new incarnation of the controller did not confirm them in time.
    pub routes_unconfirmed: u64,
    /// Changes of routes that the data plane has refused.
    pub changes_refused: u64,
    /// Changes of routes that the data plane did not answer in time.
    pub changes_unanswered: u64,
    /// Flows that took their backup route because a link of their route was down.
    pub backups_used: u64,
    /// Destinations for which hosts currently use masqueraded MACs, at all ports.
    pub macs_masqueraded: u64,
    /// Hosts that sent a frame to an outdated destination MAC, by which it could take only the slow
    /// path or none, and were sent the current one: an expired masqueraded MAC, or the
    /// destination's own instead of a masqueraded one.
    pub macs_corrected: u64,
    /// Number of times that more answers of the data plane were pending than are tracked.
    pub answers_lost: u64,
    /// LACPDUs sent at ports of bonds.
    pub lacpdus_sent: u64,
    /// LACPDUs received at ports of bonds.
    pub lacpdus_received: u64,
    /// Frames of slow protocols received at ports of bonds that are not LACPDUs.
    pub lacpdus_refused: u64,
    /// Frames forwarded by the control plane by its own route.
    pub slow_path: u64,
    /// Control messages that came too late or contain a host or port that does not exist here.
    pub messages_ignored: u64,
}

/// Counters of a controller; most are of requests that were not fulfilled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerCounters {
    /// Messages of an earlier incarnation.
    pub stale_incarnation: u64,
    /// Requests for an unknown host.
    pub arp_unknown_target: u64,
    /// Rounds of queries to all hosts for an address of no known host.
    pub seeks: u64,
    /// Addresses found by such queries.
    pub seeks_found: u64,
    /// Requests for unknown addresses without such queries: their port, their switch or the whole
    /// fabric has reached its limit.
    pub seeks_limited: u64,
    /// Memberships, senders to groups and entries of lists beyond the limit of a port, a switch or
    /// a list; and lists delayed by the limit of a switch.
    pub groups_refused: u64,
    /// Requests of a host for itself.
    pub arp_self: u64,
    /// Requests of an address that is not a host's, or of a host that was reported elsewhere.
    pub arp_misplaced: u64,
    /// Requests with no path between the two hosts, or none to the target switch.
    pub arp_unreachable: u64,
    /// ARP requests that the controller answered.
    pub arp_answered: u64,
    /// Routes moved to another path.
    pub routes_moved: u64,
    /// Backup routes sent to edges.
    pub backups_sent: u64,
    /// Routes whose edge has taken the backup, which is now the route.
    pub backups_used: u64,
    /// Routes that the controller removed from edges.
    pub routes_removed: u64,
    /// Routes that their switch has removed because they were unused for long.
    pub routes_aged: u64,
    /// Claims of addresses that were refused: the address belongs to another host by reservation or
    /// lease, or to one that the host may not reach; or there are too many address conflicts, of
    /// its port or of all.
    pub ip_refused: u64,
    /// Address conflicts: times that two hosts claimed one address and the first one, when queried,
    /// answered. It keeps the address.
    pub ip_conflicts: u64,
    /// ARP requests and solicitations in the name of an address of another host, which are not
    /// answered.
    pub arp_not_owner: u64,
    /// Hosts removed because their switch was silent for too long.
    pub hosts_aged: u64,
    /// Items received on a stream that only a controller sends.
    pub item_misplaced: u64,
    /// DHCP replies with no path to their switch.
    pub dhcp_unreachable: u64,
    /// Hosts, routes and queries refused because their switch or port has reached its limit.
    pub over_bound: u64,
    /// Requests for a host that the policy forbids to the requesting port.
    pub arp_denied: u64,
    /// Hosts reported at a port where the policy does not admit them.
    pub hosts_misplaced: u64,
    /// Times that a port was reported for requests for many hosts that it may not reach or that do
    /// not exist.
    pub scans: u64,
    /// Routes moved to another port of their destination's bond.
    pub bond_moves: u64,
    /// Times that a port of a bond had another partner than the others.
    pub bond_mismatches: u64,
}

/// Tenant of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantTelemetry {
    /// The name of the tenant in the fabric file.
    pub name: String,
    /// Number of its hosts known to the controller.
    pub hosts: u64,
}

/// Pair of hosts that an operator has allowed or denied to reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTelemetry {
    /// The MAC address of one host.
    #[serde(with = "text::mac")]
    pub a: MacAddr,
    /// The MAC address of the other host.
    #[serde(with = "text::mac")]
    pub b: MacAddr,
    /// True if they may reach each other.
    pub allowed: bool,
}

/// Host or port in quarantine; only one of the two is present.
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

/// Policy of a controller: the hosts that may reach each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTelemetry {
    /// The tenants, in the order of the fabric file.
    pub tenants: Vec<TenantTelemetry>,
    /// Number of known hosts that all tenants may reach.
    pub shared_hosts: u64,
    /// Number of known hosts in no tenant.
    pub other_hosts: u64,
    /// Hosts and ports in quarantine.
    pub quarantine: Vec<QuarantineTelemetry>,
    /// Pairs of hosts for which an operator has overridden the fabric file.
    pub pairs: Vec<PairTelemetry>,
    /// Switches that have not yet acknowledged the removal of routes which a change of the policy
    /// forbids.
    pub outstanding: Vec<NodeId>,
}

/// State taken over from the previous incarnation: from the store, and from the routes of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Hosts in the store.
    pub hosts: u64,
    /// Hosts of the store that no switch has reported again yet; they are provisional.
    pub hosts_provisional: u64,
    /// Leases and other states of addresses in the store.
    pub leases: u64,
    /// Entries of the store that were discarded: they no longer fit the address pool or the
    /// reservations, are of a VLAN that their port has left, or contradict others.
    pub refused: u64,
    /// Routes of edges still to be decided.
    pub routes_pending: u64,
    /// Routes of edges kept unchanged.
    pub routes_kept: u64,
    /// Routes of edges moved to another path.
    pub routes_moved: u64,
    /// Routes of edges removed: no path, or no such host.
    pub routes_removed: u64,
}

impl Restored {
    /// Returns the sum of both, field by field.
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

/// Counters of a DHCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpCounters {
    /// Frames that are not valid requests of their sender.
    pub malformed: u64,
    /// DHCPOFFERs sent to hosts.
    pub offers: u64,
    /// DHCPACKs sent to hosts.
    pub acks: u64,
    /// DHCPNAKs sent to hosts.
    pub naks: u64,
    /// DHCPDISCOVERs not answered: no address is left.
    pub exhausted: u64,
    /// Requests not answered: the client's port has reached its limit of addresses.
    pub port_full: u64,
    /// Requests at another port than the client's, and releases and declines of addresses that were
    /// not the client's.
    pub misplaced: u64,
    /// Leases reclaimed because their hosts were gone and others needed the addresses.
    pub reclaimed: u64,
    /// DHCPDECLINEs of addresses that were the client's.
    pub declined: u64,
    /// DHCPRELEASEs of addresses that were the client's.
    pub released: u64,
    /// Requests that a server of this subnet must not answer.
    pub silent: u64,
    /// Requests relayed to a DHCP server on a host.
    pub relayed: u64,
    /// Answers of that server relayed to their clients.
    pub returned: u64,
    /// Requests not relayed: too many are pending, of their port or of all, or the server is
    /// unreachable.
    pub relay_limited: u64,
    /// Answers without a pending request, or malformed.
    pub relay_unmatched: u64,
    /// Answers dropped because their host is not the server.
    pub relay_refused: u64,
    /// Addresses assigned by the server that another host holds: its client got a DHCPNAK and the
    /// server a DHCPDECLINE.
    pub relay_conflicts: u64,
}

/// Implements the sum of counters of parts of a node, by field.
macro_rules! plus {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $name {
            /// Returns the sum of both, field by field.
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
