//! The entries of a server, as they are to stand with the neighbours that it has now.
//!
//! The destination address is looked up by prefixes. The TCAM has, for a packet by proxy: where the
//! proxy is, for each prefix; and at the proxy, where the packet within it goes on, for each prefix
//! and each own host. Its key has the flag, the proxy's address and the destination of the packet
//! within. What arrives here leaves its header by an entry of the TCAM too, which sees that there
//! is one. A packet whose next hop is lost gets a second header, with a proxy, if there is a way
//! around.

use super::header::{self, BY_PROXY, IP_PROTOCOL, Purpose, SHIM_BYTES};
use super::local::Local;
use super::routes::{Detour, Route, detour};
use crate::server::{AddressBlock, HostPorts, prefixes};
use alloc::collections::BTreeMap;
use axon_pipeline::{
    Action, Change, EntryName, Field, FrameType, Modify, Prefix, Target, TcamEntry, Udlk, UdlkId,
};
use core::net::Ipv4Addr;

/// The key of flag, proxy and destination of the packet within.
pub const FLAG_KEY: UdlkId = UdlkId(1);
/// The key of what arrives at its server, and of what hosts may not send.
const ARRIVAL_KEY: UdlkId = UdlkId(2);
/// The key of tagged frames of hosts.
const TAGGED_KEY: UdlkId = UdlkId(3);
/// Bytes that a packet gets at most: two IPv4 headers with their shims.
pub const OVERHEAD_BYTES: usize = 2 * (20 + SHIM_BYTES);
/// The networks that there are entries for.
pub(crate) const EXPECTED: &str = "topology dcell with n of at most 256, so \
                                   few cells that 960 prefixes are enough, and 16 hosts \
     per server";
/// Interfaces to the servers of the own cell of level 0 have their places as numbers; those to
/// peers follow.
const PEER_INTERFACES: u16 = 256;
/// The number of the interface to the first own host.
pub(super) const HOST_INTERFACES: u16 = 512;
/// Tunnels to proxies are behind those to hosts.
const PROXY_TUNNELS: u16 = 512;
/// Hosts that the own hosts send to at one time at most.
pub(super) const TARGETS_MAX: usize = PROXY_TUNNELS as usize;
/// Filters come last in the TCAM.
const FILTERS: u16 = 1960;

/// Places in the value of the key of flag and proxy, and of that of arrivals, which has the address
/// between protocol and flag.
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

/// A host that own hosts send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) ip: Ipv4Addr,
    /// Its server and its slot there.
    pub(super) place: (u32, u8),
    /// The number of its tunnel.
    pub(super) tunnel: u16,
}

/// Entries by their names.
pub(super) type Entries = BTreeMap<EntryName, Change>;

/// All entries of a server.
pub(super) fn entries(
    local: &Local,
    routes: &[Route],
    hosts: &HostPorts,
    recipients: &[Recipient],
) -> Entries {
    let mut all = Builder { local, entries: Entries::new(), tcam: 0 };
    hosts.entries().into_iter().for_each(|change| all.add(change));
    keys().into_iter().for_each(|key| all.add(key));
    for (_, server) in local.cells.neighbours(local.own) {
        if let Some(interface) = local.interface(server) {
            all.add(Change::Interface(interface_to(local, server), Some(interface)));
        }
    }
    let own = |slot| AddressBlock::DCELL.address(local.own, slot);
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
        let action = if recipient.place.0 == local.own {
            Action::from(Target::Interface(hosts.interface(recipient.place.1)))
        } else {
            let tunnel = header::tunnel(local.own, recipient.place);
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

/// How packets for a part of the network leave.
#[derive(Clone, Copy)]
enum Way {
    /// By the neighbour that is next.
    Direct(u32),
    /// By a proxy.
    Around(Detour),
    /// Not at all.
    None,
}

impl Way {
    fn of(local: &Local, route: &Route) -> Way {
        if local.is_up(route.next) {
            return Way::Direct(route.next);
        }
        let around = detour(&local.cells, local.own, route, |server| local.is_up(server));
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

    /// The action of packets that leave so: what changes in them, then a second header if they go
    /// by a proxy.
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

    /// The number of the tunnel to a proxy.
    fn proxy_tunnel(&mut self, proxy: u32) -> u16 {
        let wanted = header::by_proxy(self.local.own, proxy);
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

    /// Packets by a proxy in these servers go there; where the neighbour is lost they go no
    /// further, as a packet has one proxy at a time.
    fn toward_proxy(&mut self, proxies: Prefix, way: Way) {
        let way = if matches!(way, Way::Around(_)) { Way::None } else { way };
        let action = self.action(&[Modify::DecrementTtl], way);
        let entry = by_proxy(action);
        self.tcam(prefixed(entry, PROXY, proxies));
    }

    /// Packets by this server as proxy, for these servers.
    fn at_proxy(&mut self, within: Prefix, action: Action) {
        let own = AddressBlock::DCELL.address(self.local.own, 0);
        let entry = prefixed(by_proxy(action), PROXY, Prefix { address: own, length: 32 });
        self.tcam(prefixed(entry, WITHIN, within));
    }

    /// Announcements go to the program; hosts may not send DCell packets themselves, nothing to
    /// addresses of servers, and nothing with a tag.
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

/// The lookup keys: ingress, protocol, flag, purpose, proxy, and the destination of what is within;
/// ingress, protocol, destination, flag and purpose; ingress.
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

/// An entry of the TCAM in the making.
struct Matching(TcamEntry);

impl Matching {
    /// For all frames that have the key.
    fn any(udlk: UdlkId, action: Action) -> Matching {
        let bytes = match udlk {
            FLAG_KEY => KEY_BYTES,
            ARRIVAL_KEY => ARRIVAL_KEY_BYTES,
            _ => Field::Ingress.len(),
        };
        let (value, mask) = (alloc::vec![0; bytes], alloc::vec![0; bytes]);
        Matching(TcamEntry { udlk, value, mask, action })
    }

    /// For those only that have these bytes at this place of the key.
    fn is(mut self, at: usize, bytes: &[u8]) -> Matching {
        self.0.value[at..at + bytes.len()].copy_from_slice(bytes);
        self.0.mask[at..at + bytes.len()].fill(0xff);
        self
    }
}

/// For DCell packets.
fn matching(udlk: UdlkId, action: Action) -> Matching {
    Matching::any(udlk, action).is(PROTOCOL, &[IP_PROTOCOL])
}

fn by_proxy(action: Action) -> TcamEntry {
    matching(FLAG_KEY, action).is(FLAG, &[BY_PROXY]).0
}

/// The same for an address in the key with this prefix.
fn prefixed(mut entry: TcamEntry, at: usize, prefix: Prefix) -> TcamEntry {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length)).unwrap_or(0);
    entry.value[at..at + 4].copy_from_slice(&prefix.address.octets());
    entry.mask[at..at + 4].copy_from_slice(&mask.to_be_bytes());
    entry
}

/// The number of the interface to a neighbour.
fn interface_to(local: &Local, neighbour: u32) -> u16 {
    match local.cells.level(local.own, neighbour) {
        0 => (neighbour % local.cells.size(0)) as u16,
        level => PEER_INTERFACES + level as u16,
    }
}
