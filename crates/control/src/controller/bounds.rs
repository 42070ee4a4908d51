//! What one switch, and one of its ports, may make the controller keep.
//!
//! A switch speaks for itself, and its owner can report hosts, routes and ports that do not exist,
//! as fast as its links carry them. So everything that grows with reports is counted for the switch
//! whose reports or requests made it. What exceeds the bound is refused and counted
//! (`over_bound`), and a note names the switch.
//!
//! A host can make an honest switch report and request what it likes, for one port. So each port
//! has a bound of its own, and a note names the port: it leaves room for those of the others.
//!
//! Both routes that a request makes, there and back, are counted for the port where the requesting
//! host is, although the route back is in the table of another switch. Otherwise a host with many
//! source addresses would use up the room of those whom it sends to.
//!
//! But a host answers whoever speaks to it, and a switch that makes up hosts can make others
//! request routes to them. So no more than three quarters of an account are for hosts at any one
//! other switch. Beyond that notes name both ends, for the requests may be the doing of either. Two
//! owned switches, or one and a host elsewhere that lends it addresses, can still take it all.
//!
//! Routes of an earlier incarnation of the controller have an account of their own. They take no
//! room from requests, and as many as the tables of a switch hold fit in.
//!
//! Commands about routes are never refused: the state of the switch would differ from the
//! controller's from then on. Instead no route is made, and none taken over, at a switch that
//! leaves [`COMMANDS_PER_SWITCH_MAX`] commands unacknowledged. A newer command about a route
//! replaces the one that was not sent, so there are never more than that, and one for each route
//! that is there already. Queries for hosts carry no state and are refused.
//!
//! The bounds are several times what a switch of a fabric needs. All of them together are some
//! 250 MB for one switch: 34 MB of routes, 170 MB of inherited ones while they are decided about,
//! and 50 MB of commands.

use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::{Span, Time};

/// Claims of hosts by one switch: 256 ports with 64 hosts each.
pub const HOSTS_PER_SWITCH_MAX: usize = 1 << 14;
/// Claims of hosts at one port: a sixteenth of those of a switch, and 16 times as many as a switch
/// learns at a port (64).
pub const HOSTS_PER_PORT_MAX: usize = HOSTS_PER_SWITCH_MAX / 16;
/// Routes that the requests of one switch have made, there and back: as many as 64 hosts have at
/// each of 32 ports that each exchange frames with 32 others, in both directions.
pub const ROUTES_PER_SWITCH_MAX: usize = 1 << 17;
/// Routes that the requests of one port have made: a sixteenth of those of a switch. Its table
/// holds 4,096 routes, and 64 hosts that each exchange frames with 64 other ports have as many
/// back.
pub const ROUTES_PER_PORT_MAX: usize = ROUTES_PER_SWITCH_MAX / 16;
/// Of these, routes to and from hosts at one other switch: three quarters, for 3,072 hosts there
/// that a port exchanges frames with. That switch can make up hosts that others are to answer, and
/// never report that a route has gone.
pub const ROUTES_PER_PORT_AND_PEER_MAX: usize = ROUTES_PER_PORT_MAX / 4 * 3;
/// The same for all ports of a switch together.
pub const ROUTES_PER_SWITCH_AND_PEER_MAX: usize = ROUTES_PER_SWITCH_MAX / 4 * 3;
/// Routes of an earlier incarnation of the controller that one switch has reported: 64 full tables
/// of 4,096 routes. What a larger switch has besides stays in its tables without a decision, until
/// its time is over and frames request it anew.
pub const INHERITED_PER_SWITCH_MAX: usize = 1 << 18;
/// Commands that a switch may leave unacknowledged before no route is made at it: as many as are
/// decided at once about all its routes.
pub const COMMANDS_PER_SWITCH_MAX: usize = ROUTES_PER_SWITCH_MAX + INHERITED_PER_SWITCH_MAX;
/// Commands that a switch may leave unacknowledged before it gets no lists of groups, which take up
/// to 450 bytes.
pub const LISTS_AHEAD_MAX: usize = 1 << 10;

/// The shortest time between two notes about one switch, and about ports of one switch.
const NOTE_PAUSE: Span = Span::from_secs(10);

/// What exceeded a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// A switch in whole.
    Switch,
    /// One of its ports.
    Port,
    /// The hosts that it may have at one of its ports.
    Admission,
}

/// Which switches exceed bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// When each was last noted.
    noted: BTreeMap<(SwitchIndex, Scope), Time>,
    /// Those that leave too many commands unacknowledged.
    pub(super) backlogged: BTreeSet<SwitchIndex>,
}

impl Bounds {
    /// Whether an excess of this switch, or of any port of it, is to be noted: none was within the
    /// last 10 s.
    pub(super) fn is_news(&mut self, now: Time, switch: SwitchIndex, scope: Scope) -> bool {
        let noted = self.noted.get(&(switch, scope));
        let is_news = noted.is_none_or(|&at| now.since(at) >= NOTE_PAUSE);
        if is_news {
            self.noted.insert((switch, scope), now);
        }
        is_news
    }
}
