//! Flows of this server's hosts: their paths, and packets queued until a path is chosen.

use super::cube::Nha;
use super::entries::{self, FLOWS_MAX, FlowKey};
use super::header::{self, SHIM_BYTES};
use super::paths::Path;
use super::probe::Probe;
use crate::server::ipv4_packet;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Action, Change, Control, EntryName, Modify, Register, Target};
use axon_wire::{PortNo, Time};
use core::net::Ipv4Addr;

/// Maximum number of packets queued for a flow.
pub(super) const WAITING_MAX: usize = 16;
/// Maximum number of tunnels. Each path in use takes one.
const TUNNELS_MAX: u16 = 1024;
/// Protocols that have port numbers in their first four bytes: TCP and UDP.
const WITH_PORTS: [u8; 2] = [6, 17];

const _: () = assert!(SHIM_BYTES <= axon_pipeline::Tunnel::SHIM_BYTES_MAX);

/// One flow that starts at this server.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    /// Server of the destination host, and the host's slot there.
    pub(super) destination: (u32, u8),
    /// Path of the flow; `None` until one is chosen.
    pub(super) path: Option<Path>,
    /// Frames from the host that are queued until a path is chosen.
    pub(super) waiting: Vec<Vec<u8>>,
    pub(super) probe: Option<Probe>,
    /// Time of the next query about its paths.
    pub(super) ask_at: Time,
    /// Time at which its entry was installed and its counters started.
    pub(super) placed_at: Time,
    /// Number of frames that its entry had counted at `active_at`.
    pub(super) frames: u64,
    pub(super) active_at: Time,
}

/// Returns the key of the flow that a host's packet belongs to, and whether the packet is a
/// fragment, which has no ports.
pub(super) fn key_of(ingress: PortNo, frame: &[u8]) -> Option<(FlowKey, bool)> {
    let packet = ipv4_packet(frame)?;
    let (header, _) = packet.split_first_chunk::<20>()?;
    let [.., a, b, c, d] = *header;
    let destination = Ipv4Addr::new(a, b, c, d);
    let protocol = header[9];
    let is_fragment = header[6] & 0x3f != 0 || header[7] != 0;
    let has_ports = WITH_PORTS.contains(&protocol);
    let l4_ports = packet.get(20..24).and_then(|ports| ports.first_chunk()).copied();
    let l4_ports = has_ports.then_some(l4_ports.unwrap_or_default());
    Some((FlowKey { ingress, destination, protocol, l4_ports }, is_fragment))
}

/// All flows. The index of a flow determines the index of its entry.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: Vec<Option<Flow>>,
    places: BTreeMap<FlowKey, usize>,
    tunnels: BTreeMap<((u32, u8), Path), Held>,
    /// Released tunnel numbers.
    free_tunnels: Vec<u16>,
}

/// Tunnel, and the number of flows that use it.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u16,
    users: u32,
}

impl Flows {
    /// Returns the index of a flow.
    pub(super) fn place_of(&self, key: &FlowKey) -> Option<usize> {
        self.places.get(key).copied()
    }

    pub(super) fn get(&self, place: usize) -> Option<&Flow> {
        self.all.get(place)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Flow> {
        self.all.get_mut(place)?.as_mut()
    }

    /// Returns the indices of all flows.
    pub(super) fn places(&self) -> Vec<usize> {
        self.places.values().copied().collect()
    }

    /// Adds a flow without a path. Returns `None` if the table is full.
    pub(super) fn add(&mut self, flow: Flow) -> Option<usize> {
        let free = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        if free >= FLOWS_MAX {
            return None;
        }
        self.places.insert(flow.key, free);
        if free == self.all.len() {
            self.all.push(None);
        }
        self.all[free] = Some(flow);
        Some(free)
    }

    /// Assigns a path to a flow and returns its queued packets. If the destination is on this
    /// server, the path is empty and `local` is its interface. If the tables are full, returns
    /// `None` and leaves the flow unchanged.
    pub(super) fn set_path(
        &mut self,
        now: Time,
        place: usize,
        own: u32,
        path: &[Nha],
        local: u16,
        control: &mut dyn Control,
    ) -> Option<Vec<Vec<u8>>> {
        let flow = self.get(place)?;
        let (key, destination, before) = (flow.key, flow.destination, flow.path.clone());
        if before.as_deref() == Some(path) {
            return Some(core::mem::take(&mut self.get_mut(place)?.waiting));
        }
        let mut changes = Vec::new();
        let action = match path.first() {
            None => Action::from(Target::Interface(local)),
            Some(first) => {
                let (number, is_new) = self.hold(destination, path)?;
                if is_new {
                    let tunnel = header::tunnel(own, destination, path);
                    changes.push(Change::Tunnel(number, Some(tunnel)));
                }
                let out = Target::Interface(first.0.into());
                Action::from(out).with(Modify::TunnelPush(number))
            }
        };
        changes.push(entries::flow(place, &key, action));
        changes.extend(before.iter().filter_map(|path| self.unused_after(destination, path)));
        if control.commit(&changes).is_err() {
            self.release(destination, path);
            return None;
        }
        before.iter().for_each(|path| self.release(destination, path));
        let flow = self.get_mut(place)?;
        flow.path = Some(path.to_vec());
        (flow.placed_at, flow.frames) = (now, 0);
        Some(core::mem::take(&mut flow.waiting))
    }

    /// Removes a flow together with its queued packets and its entry.
    pub(super) fn remove(&mut self, place: usize, control: &mut dyn Control) {
        let Some(flow) = self.all.get_mut(place).and_then(Option::take) else { return };
        self.places.remove(&flow.key);
        let mut changes = alloc::vec![Change::Tcam(entries::flow_index(place), None)];
        if let Some(path) = &flow.path {
            changes.extend(self.unused_after(flow.destination, path));
            self.release(flow.destination, path);
        }
        let removed = control.commit(&changes);
        debug_assert!(removed.is_ok(), "{removed:?}");
    }

    /// Returns the number of frames and bytes that a flow's entry has counted.
    pub(super) fn counted(place: usize, control: &dyn Control) -> (u64, u64) {
        let entry = EntryName::Tcam(entries::flow_index(place));
        let read = |register| control.read_register(register).unwrap_or(0);
        (read(Register::EntryFrames(entry)), read(Register::EntryBytes(entry)))
    }

    /// Adds a user to a path's tunnel. Returns the tunnel's number and whether it is new, or `None`
    /// if there are too many tunnels.
    fn hold(&mut self, destination: (u32, u8), path: &[Nha]) -> Option<(u16, bool)> {
        if let Some(held) = self.tunnels.get_mut(&(destination, path.to_vec())) {
            held.users += 1;
            return Some((held.number, false));
        }
        let number = match self.free_tunnels.pop() {
            Some(number) => number,
            None if self.tunnels.len() < usize::from(TUNNELS_MAX) => self.tunnels.len() as u16,
            None => return None,
        };
        self.tunnels.insert((destination, path.to_vec()), Held { number, users: 1 });
        Some((number, true))
    }

    /// Returns the change that removes a path's tunnel, if the tunnel has only one user.
    fn unused_after(&self, destination: (u32, u8), path: &[Nha]) -> Option<Change> {
        let held = self.tunnels.get(&(destination, path.to_vec()))?;
        (held.users == 1).then_some(Change::Tunnel(held.number, None))
    }

    /// Removes a user from a path's tunnel.
    fn release(&mut self, destination: (u32, u8), path: &[Nha]) {
        let key = (destination, path.to_vec());
        let Some(held) = self.tunnels.get_mut(&key) else { return };
        held.users -= 1;
        if held.users == 0 {
            self.free_tunnels.push(held.number);
            self.tunnels.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, flags: u8) -> Vec<u8> {
        let mut frame = alloc::vec![0; 60];
        (frame[12], frame[14], frame[20], frame[23]) = (8, 0x45, flags, protocol);
        frame[30..38].copy_from_slice(&[10, 0, 0, 7, 1, 2, 3, 4]);
        frame
    }

    #[test]
    fn a_flow_has_the_ports_of_tcp_and_udp_only() {
        let key = |protocol, flags| key_of(PortNo(2), &packet(protocol, flags)).unwrap();
        let (tcp, is_fragment) = key(6, 0x40);
        assert_eq!((tcp.l4_ports, is_fragment), (Some([1, 2, 3, 4]), false));
        assert_eq!((tcp.destination, tcp.ingress), (Ipv4Addr::new(10, 0, 0, 7), PortNo(2)));
        assert_eq!(key(1, 0).0.l4_ports, None, "of ICMP it would be type and checksum");
        assert!(key(17, 0x20).1, "more fragments");
        assert_eq!(key_of(PortNo(2), &packet(6, 0)[..30]), None);
    }
}
