//! Bounds on the state that one switch, or one of its ports, may cause in the controller.
//!
//! A compromised switch can report hosts, routes and ports that do not exist, as fast as its links
//! can carry the reports. So all state that grows with reports is charged to the switch whose
//! reports or requests caused it. What exceeds a bound is refused and counted (`over_bound`), and a
//! note names the switch.
//!
//! A host can make an uncompromised switch send any report or request for one port. So each port
//! has its own bound, which leaves room for the other ports, and a note names the port.
//!
//! Both routes of a request, forward and reverse, are charged to the port of the requesting host,
//! although the reverse route is in the table of another switch. Otherwise a host with many source
//! addresses would use up the accounts of its destinations.
//!
//! A host answers any other host, and a switch that reports nonexistent hosts can make others
//! request routes to them. So at most three quarters of an account are available for hosts at any
//! one other switch. Beyond that, notes name both ends, because either may be the cause of the
//! requests. Two compromised switches can still use the whole account, and so can one compromised
//! switch together with a host elsewhere that lends it addresses.
//!
//! Accounts of claims and routes are per VLAN: a switch, a port or a pair of switches has the same
//! bounds again in each VLAN that the configuration gives its ports. Commands are bounded over all
//! VLANs, because they are on one stream.
//!
//! Routes of an earlier incarnation of the controller have a separate account, large enough for the
//! tables of a switch. They take no room from requests.
//!
//! Commands about routes are never refused, because the state of the switch would then differ from
//! that of the controller. Instead, no route is made or taken over at a switch that leaves
//! [`COMMANDS_PER_SWITCH_MAX`] commands unacknowledged. A newer command about a route replaces an
//! unsent one. So there are never more than that many commands plus one for each existing route.
//! Queries for hosts carry no state, so they are refused.
//!
//! The bounds are several times the needs of a switch in a fabric. All of them together are about
//! 250 MB for one switch in one VLAN: 34 MB of routes, 170 MB of inherited routes until they are
//! decided, and 50 MB of commands.

/// Maximum host claims of one switch: 256 ports with 64 hosts each.
pub const HOSTS_PER_SWITCH_MAX: usize = 1 << 14;
/// Maximum host claims at one port: a sixteenth of the maximum for a switch, and 16 times the
/// number of hosts that a switch learns at a port (64).
pub const HOSTS_PER_PORT_MAX: usize = HOSTS_PER_SWITCH_MAX / 16;
/// Maximum routes made by the requests of one switch, both directions: enough for 64 hosts on each
/// of 32 ports that each exchange frames with 32 others.
pub const ROUTES_PER_SWITCH_MAX: usize = 1 << 17;
/// Maximum routes made by the requests of one port: a sixteenth of the maximum for a switch. The
/// route table of a port holds 4,096 routes, and 64 hosts that each exchange frames with 64 other
/// ports have the same number of reverse routes.
pub const ROUTES_PER_PORT_MAX: usize = ROUTES_PER_SWITCH_MAX / 16;
/// Maximum routes of one port to and from hosts at one other switch: three quarters of the port's
/// routes, for 3,072 hosts there. That switch could report nonexistent hosts and never report that
/// a route has gone.
pub const ROUTES_PER_PORT_AND_PEER_MAX: usize = ROUTES_PER_PORT_MAX / 4 * 3;
/// Maximum routes of one switch to and from hosts at one other switch, over all ports.
pub const ROUTES_PER_SWITCH_AND_PEER_MAX: usize = ROUTES_PER_SWITCH_MAX / 4 * 3;
/// Maximum routes of an earlier incarnation of the controller reported by one switch: 64 full
/// tables of 4,096 routes. Further routes stay undecided in the tables of the switch until they
/// expire and frames cause new requests.
pub const INHERITED_PER_SWITCH_MAX: usize = 1 << 18;
/// Maximum unacknowledged commands of a switch before no more routes are made at it. It is enough
/// to decide about all of its routes at once.
pub const COMMANDS_PER_SWITCH_MAX: usize = ROUTES_PER_SWITCH_MAX + INHERITED_PER_SWITCH_MAX;
/// Maximum unacknowledged commands of a switch before it is sent no more group lists, which take up
/// to 450 bytes each.
pub const LISTS_AHEAD_MAX: usize = 1 << 10;
