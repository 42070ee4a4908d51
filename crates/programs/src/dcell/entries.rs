//! Table entries of a server for its current neighbours.
//!
//! The destination address is looked up by prefix. For a packet that is sent via a proxy, the TCAM
//! has the next hop to the proxy for each prefix. At the proxy, it has the next hop of the inner
//! packet for each prefix and each of the proxy's hosts. The key for this contains the flag, the
//! proxy's address and the inner destination. A TCAM entry that matches the header also
//! decapsulates packets that arrive here. A packet whose next hop is lost gets a second header with
//! a proxy, if there is a detour.

use super::header::{self, BY_PROXY, IP_PROTOCOL, Purpose, SHIM_BYTES};
use super::local::Local;
use super::routes::{Detour, Route, detour};
use crate::server::{AddressBlock, HostPorts, prefixes};
use alloc::collections::BTreeMap;
use axon_pipeline::{
    Action, Change, EntryName, Field, FrameType, Modify, Prefix, Target, TcamEntry, Udlk, UdlkId,
};
use core::net::Ipv4Addr;

/// Key that contains flag, proxy and inner destination.
pub const FLAG_KEY: UdlkId = UdlkId(1);
/// Key for arriving packets, and for packets that hosts may not send.
const ARRIVAL_KEY: UdlkId = UdlkId(2);
/// Key for tagged frames from hosts.
const TAGGED_KEY: UdlkId = UdlkId(3);
/// Maximum overhead of a packet in bytes, for two IPv4 headers with their shims.
pub const OVERHEAD_BYTES: usize = 2 * (20 + SHIM_BYTES);
/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str = "topology dcell with n of at most 256, so \
                                   few cells that 960 prefixes are enough, and 16 hosts \
     per server";
/// First interface number of peers. For servers in this server's cell of level 0, the interface
/// number is the position.
const PEER_INTERFACES: u16 = 256;
/// Number of the interface to this server's first host.
pub(super) const HOST_INTERFACES: u16 = 512;
/// First tunnel number for proxies, after those for hosts.
const PROXY_TUNNELS: u16 = 512;
/// Maximum number of hosts to which this server's hosts send at the same time.
pub(super) const TARGETS_MAX: usize = PROXY_TUNNELS as usize;
/// First TCAM index of the filters, which come last.
const FILTERS: u16 = 1960;

/// Length of both keys. In the arrival key, the address is between protocol and flag.
const KEY_BYTES: usize = 18;
const ARRIVAL_KEY_BYTES: usize = 14;
const INGRESS: usize = 0;
const PROTOCOL: usize = 3;
const DESTINATION: usize = 6;
const ARRIVAL_FLAG: usize = 10;
const ARRIVAL_PURPOSE: usize = 11;
const FLAG: usize = 6;
const PURPOSE: usize = 7;
const PROXY: usize = 10;
const WITHIN: usize = 14;

/// Host to which this server's hosts send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) ip: Ipv4Addr,
    /// Server and slot of the host.
    pub(super) place: (u32, u8),
    /// Number of the tunnel to the host.
    pub(super) tunnel: u16,
}

/// Changes that create entries, by the names of the entries.
pub(super) type Entries = BTreeMap<EntryName, Change>;

/// Returns all entries of a server.
pub(super) fn entries(
    local: &Local,
    routes: &[Route],
    hosts: &HostPorts,
    recipients: &[Recipient],
) -> Entries {
    let mut all = Builder { local, entries: Entries::new(), tcam: 0 };
    hosts.entries().into_iter().for_each(|change| all.add(change));
    keys().into_iter().for_each(|key| all.add(key));
    for (_, server) in local.cells().neighbours(local.own()) {
        if let Some(interface) = local.interface(server) {
            all.add(Change::Interface(interface_to(local, server), Some(interface)));
        }
    }
    let own = |slot| AddressBlock::DCELL.address(local.own(), slot);
    let pop = Modify::TunnelPop { shim_bytes: SHIM_BYTES as u8 };
    for slot in hosts.slots() {
        let deliver = Action::from(Target::Interface(hosts.interface(slot))).with(pop.clone());
        let arrival = matching(ARRIVAL_KEY, deliver.clone())
            .is(DESTINATION, &own(slot).octets())
            .is(ARRIVAL_FLAG, &[0])
            .is(ARRIVAL_PURPOSE, &[Purpose::Data as u8]);
        all.tcam(arrival.0);
        let within = Prefix { address: own(slot), length: 32 };
        all.at_proxy(within, deliver.with(pop.clone()));
    }
    for route in routes {
        let way = Way::of(local, route);
        for prefix in prefixes(AddressBlock::DCELL, route.first, route.count) {
            let transit = all.action(&[Modify::DecrementTtl], way);
            all.add(Change::Prefix(prefix, Some(transit)));
            let onward = all.action(&[pop.clone(), Modify::DecrementTtl], way);
            all.at_proxy(prefix, onward);
            all.toward_proxy(prefix, way);
        }
    }
    for recipient in recipients {
        let action = if recipient.place.0 == local.own() {
            Action::from(Target::Interface(hosts.interface(recipient.place.1)))
        } else {
            let tunnel = header::tunnel(local.own(), recipient.place);
            all.add(Change::Tunnel(recipient.tunnel, Some(tunnel)));
            let server = recipient.place.0;
            let to = |route: &&Route| (route.first..route.first + route.count).contains(&server);
            let way = routes.iter().find(to).map_or(Way::None, |route| Way::of(local, route));
            all.action(&[Modify::TunnelPush(recipient.tunnel)], way)
        };
        all.add(Change::Ipv4(recipient.ip, Some(action)));
    }
    all.filters(hosts);
    all.entries
}

/// Path for packets to a part of the network.
#[derive(Clone, Copy)]
enum Way {
    /// Directly, via this neighbour.
    Direct(u32),
    /// Around a failure, via a proxy.
    Around(Detour),
    /// No path exists.
    None,
}

impl Way {
    fn of(local: &Local, route: &Route) -> Way {
        if local.is_up(route.next) {
            return Way::Direct(route.next);
        }
        let around = detour(local.cells(), local.own(), route, |server| local.is_up(server));
        around.map_or(Way::None, Way::Around)
    }
}

struct Builder<'a> {
    local: &'a Local,
    entries: Entries,
    tcam: u16,
}

impl Builder<'_> {
    fn add(&mut self, change: Change) {
        self.entries.insert(change.entry(), change);
    }

    /// Returns the action for packets that take this path. It modifies the packet, and adds a
    /// second header if the path leads via a proxy.
    fn action(&mut self, modify: &[Modify], way: Way) -> Action {
        let next = match way {
            Way::None => return Action::from(Target::Drop),
            Way::Direct(next) | Way::Around(Detour { next, .. }) => next,
        };
        let mut action = Action::from(Target::Interface(interface_to(self.local, next)));
        action.modify = modify.to_vec();
        if let Way::Around(Detour { proxy, .. }) = way {
            action.modify.push(Modify::TunnelPush(self.proxy_tunnel(proxy)));
        }
        action
    }

    /// Returns the number of the tunnel to a proxy.
    fn proxy_tunnel(&mut self, proxy: u32) -> u16 {
        let wanted = header::by_proxy(self.local.own(), proxy);
        let all =
            self.entries.range(EntryName::Tunnel(PROXY_TUNNELS)..=EntryName::Tunnel(u16::MAX));
        let mut next = PROXY_TUNNELS;
        for change in all.map(|(_, change)| change) {
            let Change::Tunnel(number, tunnel) = change else { continue };
            if tunnel.as_ref() == Some(&wanted) {
                return *number;
            }
            next = number + 1;
        }
        self.add(Change::Tunnel(next, Some(wanted)));
        next
    }

    fn tcam(&mut self, matches: TcamEntry) {
        self.add(Change::Tcam(self.tcam, Some(matches)));
        self.tcam += 1;
    }

    /// Adds entries for packets sent via a proxy that is one of these servers. If the neighbour is
    /// lost, they are dropped, because a packet has only one proxy at a time.
    fn toward_proxy(&mut self, proxies: Prefix, way: Way) {
        let way = if matches!(way, Way::Around(_)) { Way::None } else { way };
        let action = self.action(&[Modify::DecrementTtl], way);
        let entry = by_proxy(action);
        self.tcam(prefixed(entry, PROXY, proxies));
    }

    /// Adds an entry for packets to these servers for which this server is the proxy.
    fn at_proxy(&mut self, within: Prefix, action: Action) {
        let own = AddressBlock::DCELL.address(self.local.own(), 0);
        let entry = prefixed(by_proxy(action), PROXY, Prefix { address: own, length: 32 });
        self.tcam(prefixed(entry, WITHIN, within));
    }

    /// Adds the filters. Announcements go to the program. Hosts may not send DCell packets, packets
    /// to server addresses, or tagged frames.
    fn filters(&mut self, hosts: &HostPorts) {
        let hello = matching(FLAG_KEY, Action::cpu()).is(PURPOSE, &[Purpose::Hello as u8]);
        let mut filters = alloc::vec![hello];
        for port in hosts.ports() {
            let from = |matches: Matching| matches.is(INGRESS, &port.0.to_be_bytes());
            let drop = || Action::from(Target::Drop);
            let servers = [AddressBlock::DCELL.first_byte()];
            filters.push(from(matching(ARRIVAL_KEY, drop())));
            filters.push(from(Matching::any(ARRIVAL_KEY, drop())).is(DESTINATION, &servers));
            filters.push(from(Matching::any(TAGGED_KEY, drop())));
        }
        for (index, filter) in (FILTERS..).zip(filters) {
            self.add(Change::Tcam(index, Some(filter.0)));
        }
    }
}

/// Returns the three lookup keys. The first contains ingress, protocol, flag, purpose, proxy and
/// inner destination. The second contains ingress, protocol, destination, flag and purpose. The
/// third contains ingress.
fn keys() -> [Change; 3] {
    let bytes = |first, last| Field::Bytes { first, last };
    let flag = [Field::Ingress, bytes(22, 25), bytes(34, 37), bytes(38, 41), bytes(58, 61)];
    let arrival = [Field::Ingress, bytes(22, 25), bytes(30, 33), bytes(34, 37)];
    [
        Change::Udlk(FLAG_KEY, Some(Udlk::of(FrameType::Ipv4, flag))),
        Change::Udlk(ARRIVAL_KEY, Some(Udlk::of(FrameType::Ipv4, arrival))),
        Change::Udlk(TAGGED_KEY, Some(Udlk::of(FrameType::Tagged, [Field::Ingress]))),
    ]
}

/// Builder of a TCAM entry.
struct Matching(TcamEntry);

impl Matching {
    /// Creates an entry that matches all frames with this key.
    fn any(udlk: UdlkId, action: Action) -> Matching {
        let bytes = match udlk {
            FLAG_KEY => KEY_BYTES,
            ARRIVAL_KEY => ARRIVAL_KEY_BYTES,
            _ => Field::Ingress.len(),
        };
        let (value, mask) = (alloc::vec![0; bytes], alloc::vec![0; bytes]);
        Matching(TcamEntry { udlk, value, mask, action })
    }

    /// Requires these bytes at offset `at` of the key.
    fn is(mut self, at: usize, bytes: &[u8]) -> Matching {
        self.0.value[at..at + bytes.len()].copy_from_slice(bytes);
        self.0.mask[at..at + bytes.len()].fill(0xff);
        self
    }
}

/// Creates an entry that matches DCell packets.
fn matching(udlk: UdlkId, action: Action) -> Matching {
    Matching::any(udlk, action).is(PROTOCOL, &[IP_PROTOCOL])
}

fn by_proxy(action: Action) -> TcamEntry {
    matching(FLAG_KEY, action).is(FLAG, &[BY_PROXY]).0
}

/// Requires an address in the key to begin with this prefix.
fn prefixed(mut entry: TcamEntry, at: usize, prefix: Prefix) -> TcamEntry {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length)).unwrap_or(0);
    entry.value[at..at + 4].copy_from_slice(&prefix.address.octets());
    entry.mask[at..at + 4].copy_from_slice(&mask.to_be_bytes());
    entry
}

/// Returns the number of the interface to a neighbour.
fn interface_to(local: &Local, neighbour: u32) -> u16 {
    match local.cells().level(local.own(), neighbour) {
        0 => (neighbour % local.cells().size(0)) as u16,
        level => PEER_INTERFACES + level as u16,
    }
}
