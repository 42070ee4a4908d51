//! Transactions: all changes or none.
//!
//! Each change is first checked by itself. Then the changed entries are removed, then the objects
//! that they use (keys, interfaces, groups, tunnels); then the new objects are inserted, and last
//! the new entries. Removed entries are recorded; if a new one does not fit, the new ones are
//! removed again, entries first, and the old ones restored, entries last. No frame is looked up in
//! between.

use super::entry::{Entry, Prefix};
use super::exact::Seeded;
use super::{KEYS_PER_TYPE, Key, Tables, TcamSlot};
use crate::action::{Action, Group, Interface, Label, Mirror, Modify, Target, Tunnel};
use crate::change::{Change, ChangeError, EntryName, Reason};
use crate::frame_type::FrameType;
use crate::key::{Extractor, Udlk, UdlkId};
use crate::tables::tcam::Tcam;
use crate::tables::{PortOptions, TcamEntry};
use alloc::vec::Vec;
use axon_plane::routes;
use axon_wire::{FrameBuf, PortNo, Route};
use hashbrown::HashMap;

/// Maximum number of modifications of one action.
const MODIFICATIONS_MAX: usize = 8;

/// Removed content of an entry.
enum Taken {
    Udlk(Udlk),
    Interface(Interface),
    Group(Group),
    Tunnel(Tunnel),
    Tcam(TcamSlot),
    Entry(Entry),
    Port(PortOptions),
}

impl Tables {
    /// Makes all changes, or none.
    ///
    /// # Errors
    /// The first change that cannot be made, and the reason.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), ChangeError> {
        let mut seen: HashMap<EntryName, u32, Seeded> = HashMap::default();
        for (position, change) in (1..).zip(changes) {
            let entry = change.entry();
            let checked = match seen.insert(entry, position) {
                Some(first) => Err(Reason::Contradiction { first }),
                None => self.check(change),
            };
            checked.map_err(|reason| ChangeError { position, entry, reason })?;
        }
        let mut undo: Vec<(EntryName, Option<Taken>)> = Vec::with_capacity(changes.len());
        let result = self.make(changes, &mut undo);
        if result.is_err() {
            // Remove new entries before the objects that they use, as before; then restore old
            // objects before the entries that use them.
            for &(name, _) in &undo {
                self.take(name);
            }
            for (name, before) in undo.into_iter().rev() {
                if let Some(before) = before {
                    self.put(name, before);
                }
            }
        }
        if self.lpm_is_stale {
            self.lpm = super::Lpm::new(&self.prefixes);
            self.lpm_is_stale = false;
        }
        result
    }

    fn make(
        &mut self,
        changes: &[Change],
        undo: &mut Vec<(EntryName, Option<Taken>)>,
    ) -> Result<(), ChangeError> {
        let numbered = || (1..).zip(changes);
        for rank in [Rank::Entry, Rank::Group, Rank::Object] {
            for (position, change) in numbered().filter(|(_, change)| rank_of(change) == rank) {
                let entry = change.entry();
                let error = |reason| ChangeError { position, entry, reason };
                self.check_unused(change).map_err(error)?;
                undo.push((entry, self.take(entry)));
            }
        }
        for rank in [Rank::Object, Rank::Group, Rank::Entry] {
            for (position, change) in numbered().filter(|(_, change)| rank_of(change) == rank) {
                let entry = change.entry();
                let error = |reason| ChangeError { position, entry, reason };
                let Some(wanted) = wanted(change) else { continue };
                self.check_fits(entry, &wanted).map_err(error)?;
                self.put(entry, wanted);
            }
        }
        Ok(())
    }

    /// Checks a change regardless of the other entries of the tables.
    fn check(&self, change: &Change) -> Result<(), Reason> {
        let within = |number: u16, size: u32| {
            let last = size.saturating_sub(1);
            if u32::from(number) < size { Ok(()) } else { Err(Reason::NoSuchNumber { last }) }
        };
        match change {
            Change::Udlk(id, udlk) => {
                within(id.0.into(), UdlkId::COUNT as u32)?;
                udlk.as_ref().map_or(Ok(()), |udlk| udlk.check().map_err(Reason::Key))
            }
            Change::Interface(number, interface) => {
                within(*number, self.interfaces.size())?;
                interface.map_or(Ok(()), |interface| self.check_port(interface.port))
            }
            Change::Group(number, group) => {
                within(*number, self.groups.size())?;
                let Some(group) = group else { return Ok(()) };
                let mut sorted = group.interfaces.clone();
                sorted.sort_unstable();
                let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
                twice.map_or(Ok(()), |pair| Err(Reason::TwiceInGroup(pair[0])))
            }
            Change::Tunnel(number, tunnel) => {
                within(*number, self.tunnels.size())?;
                tunnel.as_ref().map_or(Ok(()), check_tunnel)
            }
            Change::Tcam(index, entry) => {
                within(*index, self.sizes.tcam)?;
                let Some(entry) = entry else { return Ok(()) };
                within(entry.udlk.0.into(), UdlkId::COUNT as u32)?;
                self.check_action(&entry.action)
            }
            Change::Mpls(label, action) => {
                if *label > Label::MAX.0 {
                    return Err(Reason::Label);
                }
                action.as_ref().map_or(Ok(()), |action| self.check_decision(action))
            }
            Change::Prefix(prefix, action) => {
                if !prefix.is_sound() {
                    return Err(Reason::Prefix);
                }
                action.as_ref().map_or(Ok(()), |action| self.check_decision(action))
            }
            Change::Mac(_, action) | Change::Ipv4(_, action) | Change::Miss(action) => {
                action.as_ref().map_or(Ok(()), |action| self.check_decision(action))
            }
            Change::Port(port, _) => self.check_port(*port),
        }
    }

    fn check_port(&self, port: PortNo) -> Result<(), Reason> {
        if port.index() < self.ports.len() { Ok(()) } else { Err(Reason::NoSuchPort(port)) }
    }

    /// Checks the action of an entry outside the TCAM, with which a lookup ends.
    fn check_decision(&self, action: &Action) -> Result<(), Reason> {
        match action.target {
            Target::Tables => Err(Reason::Tables),
            _ => self.check_action(action),
        }
    }

    /// Checks the parts of an action that refer to no other entry.
    fn check_action(&self, action: &Action) -> Result<(), Reason> {
        if action.target == Target::Tables && !action.modify.is_empty() {
            return Err(Reason::Tables);
        }
        if action.modify.len() > MODIFICATIONS_MAX {
            return Err(Reason::TooManyModifications { max: MODIFICATIONS_MAX as u8 });
        }
        if let Target::Port(port) = action.target {
            self.check_port(port)?;
        }
        if let Some(Mirror::Port(port)) = action.mirror {
            self.check_port(port)?;
        }
        for modify in &action.modify {
            match modify {
                Modify::SetDscp(dscp) if *dscp > 63 => return Err(Reason::Dscp),
                Modify::MplsPush(label) | Modify::MplsSwap(label) if *label > Label::MAX => {
                    return Err(Reason::Label);
                }
                Modify::TunnelPop { shim_bytes }
                    if usize::from(*shim_bytes) > Tunnel::SHIM_BYTES_MAX =>
                {
                    return Err(Reason::Tunnel);
                }
                Modify::AxonPush(route) => self.check_route(route)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that a header can hold a route, and the headroom of a frame that header.
    fn check_route(&self, route: &Route) -> Result<(), Reason> {
        let header = routes::header_of(route, self.hop_width);
        let fits = header.is_ok_and(|header| header.len() <= FrameBuf::HEADROOM);
        if fits { Ok(()) } else { Err(Reason::Route) }
    }

    /// Checks that an entry may be removed: a key may not change while it has entries, and objects
    /// in use may change but not be removed.
    fn check_unused(&self, change: &Change) -> Result<(), Reason> {
        let users = match change {
            Change::Udlk(id, _) => self.key(*id).map_or(0, |key| key.users),
            Change::Interface(number, None) => self.interfaces.users(*number),
            Change::Group(number, None) => self.groups.users(*number),
            Change::Tunnel(number, None) => self.tunnels.users(*number),
            _ => 0,
        };
        if users == 0 { Ok(()) } else { Err(Reason::InUse { users }) }
    }

    /// Checks that there is room for an entry, and that all objects that it uses exist.
    fn check_fits(&self, name: EntryName, wanted: &Taken) -> Result<(), Reason> {
        let room = |has_room: bool, size: u32| {
            if has_room { Ok(()) } else { Err(Reason::Full { size }) }
        };
        match (name, wanted) {
            (_, Taken::Udlk(udlk)) => self.check_type(udlk),
            (_, Taken::Group(group)) => self.check_members(group),
            (_, Taken::Tcam(slot)) => self.check_tcam(slot),
            (_, Taken::Entry(entry)) => {
                self.check_references(&entry.action)?;
                match name {
                    EntryName::Mac(_) => room(self.mac.has_room(), self.mac.size()),
                    EntryName::Ipv4(_) => room(self.ipv4.has_room(), self.ipv4.size()),
                    EntryName::Mpls(_) => room(self.mpls.has_room(), self.mpls.size()),
                    EntryName::Prefix(_) => {
                        let size = self.sizes.prefix;
                        room(self.prefixes.len() < size as usize, size)
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks that each frame type has at most two keys with this one.
    fn check_type(&self, udlk: &Udlk) -> Result<(), Reason> {
        let types = FrameType::ALL.into_iter();
        let mut types = types.filter(|&of| udlk.frame_type.is_none_or(|only| only == of));
        match types.find(|&of| self.of_type[of as usize].len() >= KEYS_PER_TYPE) {
            Some(full) => Err(Reason::TooManyKeys(full)),
            None => Ok(()),
        }
    }

    fn check_members(&self, group: &Group) -> Result<(), Reason> {
        let missing = group.interfaces.iter().find(|&&one| self.interfaces.get(one).is_none());
        missing.map_or(Ok(()), |&one| Err(Reason::NoSuchInterface(one)))
    }

    fn check_tcam(&self, slot: &TcamSlot) -> Result<(), Reason> {
        let key = self.key(slot.udlk).ok_or(Reason::NoSuchUdlk(slot.udlk))?;
        let expected = key.extractor.len();
        if let Some(wrong) = [&slot.value, &slot.mask].into_iter().find(|of| of.len() != expected) {
            let found = u16::try_from(wrong.len()).unwrap_or(u16::MAX);
            return Err(Reason::ValueBytes { expected: expected as u16, found });
        }
        let outside =
            slot.value.iter().zip(&slot.mask).position(|(value, mask)| value & !mask != 0);
        if let Some(byte) = outside {
            return Err(Reason::ValueOutsideMask { byte: byte as u16 });
        }
        self.check_references(&slot.entry.action)
    }

    fn check_references(&self, action: &Action) -> Result<(), Reason> {
        match action.target {
            Target::Interface(one) if self.interfaces.get(one).is_none() => {
                return Err(Reason::NoSuchInterface(one));
            }
            Target::Group(one) | Target::Spread(one) if self.groups.get(one).is_none() => {
                return Err(Reason::NoSuchGroup(one));
            }
            _ => {}
        }
        match tunnels_of(action).find(|&one| self.tunnels.get(one).is_none()) {
            Some(one) => Err(Reason::NoSuchTunnel(one)),
            None => Ok(()),
        }
    }

    fn key(&self, id: UdlkId) -> Option<&Key> {
        self.keys.get(usize::from(id.0))?.as_ref()
    }

    /// Removes and returns the content of an entry.
    fn take(&mut self, name: EntryName) -> Option<Taken> {
        match name {
            EntryName::Udlk(id) => {
                let key = self.keys.get_mut(usize::from(id.0))?.take()?;
                self.of_type.iter_mut().for_each(|ids| ids.retain(|&other| other != id));
                Some(Taken::Udlk(key.udlk))
            }
            EntryName::Interface(number) => self.interfaces.take(number).map(Taken::Interface),
            EntryName::Group(number) => {
                let group = self.groups.take(number)?;
                group.interfaces.iter().for_each(|&one| self.interfaces.unuse_by_one(one));
                Some(Taken::Group(group))
            }
            EntryName::Tunnel(number) => self.tunnels.take(number).map(Taken::Tunnel),
            EntryName::Tcam(index) => {
                let slot = self.tcam.get_mut(usize::from(index))?.take()?;
                self.tcam_entries -= 1;
                if let Some(Some(key)) = self.keys.get_mut(usize::from(slot.udlk.0)) {
                    key.tcam.clear(index, &slot.value, &slot.mask);
                    key.users -= 1;
                }
                self.release(&slot.entry.action);
                Some(Taken::Tcam(slot))
            }
            EntryName::Mac(key) => self.mac.remove(key.packed()).map(|entry| self.taken(entry)),
            EntryName::Ipv4(address) => {
                self.ipv4.remove(address.to_bits().into()).map(|entry| self.taken(entry))
            }
            EntryName::Mpls(label) => self.mpls.remove(label.into()).map(|entry| self.taken(entry)),
            EntryName::Prefix(prefix) => {
                let slot = self.prefixes.remove(&prefix)?;
                self.lpm_is_stale = true;
                let entry = self.prefix_entries.get_mut(slot as usize)?.take()?;
                self.free_prefixes.push(slot);
                Some(self.taken(entry))
            }
            EntryName::Miss => self.miss.take().map(|entry| self.taken(entry)),
            EntryName::Port(port) => {
                let options = self.ports.get_mut(port.index())?;
                Some(Taken::Port(core::mem::take(options)))
            }
        }
    }

    fn taken(&mut self, entry: Entry) -> Taken {
        self.release(&entry.action);
        Taken::Entry(entry)
    }

    /// Inserts checked content at an empty entry.
    fn put(&mut self, name: EntryName, what: Taken) {
        match (name, what) {
            (EntryName::Udlk(id), Taken::Udlk(udlk)) => self.put_key(id, udlk),
            (EntryName::Interface(number), Taken::Interface(interface)) => {
                self.interfaces.put(number, interface);
            }
            (EntryName::Group(number), Taken::Group(group)) => {
                group.interfaces.iter().for_each(|&one| self.interfaces.use_by_one(one));
                self.groups.put(number, group);
            }
            (EntryName::Tunnel(number), Taken::Tunnel(tunnel)) => self.tunnels.put(number, tunnel),
            (EntryName::Tcam(index), Taken::Tcam(slot)) => self.put_tcam(index, slot),
            (EntryName::Port(port), Taken::Port(options)) => {
                if let Some(place) = self.ports.get_mut(port.index()) {
                    *place = options;
                }
            }
            (name, Taken::Entry(entry)) => self.put_entry(name, entry),
            _ => {}
        }
    }

    fn put_key(&mut self, id: UdlkId, udlk: Udlk) {
        // The key was checked before.
        let Ok(extractor) = Extractor::new(&udlk) else { return };
        for of in FrameType::ALL {
            if udlk.frame_type.is_none_or(|only| only == of) {
                self.of_type[of as usize].push(id);
            }
        }
        let tcam = Tcam::new(extractor.len());
        self.keys[usize::from(id.0)] = Some(Key { udlk, extractor, tcam, users: 0 });
    }

    fn put_tcam(&mut self, index: u16, slot: TcamSlot) {
        let place = usize::from(index);
        if place >= self.tcam.len() {
            self.tcam.resize_with(place + 1, || None);
        }
        if let Some(Some(key)) = self.keys.get_mut(usize::from(slot.udlk.0)) {
            let decides = slot.entry.action.target != Target::Tables;
            key.tcam.set(index, &slot.value, &slot.mask, decides);
            key.users += 1;
        }
        self.hold(&slot.entry.action);
        self.tcam[place] = Some(slot);
        self.tcam_entries += 1;
    }

    fn put_entry(&mut self, name: EntryName, entry: Entry) {
        self.hold(&entry.action);
        match name {
            EntryName::Mac(key) => self.mac.insert(key.packed(), entry),
            EntryName::Ipv4(address) => self.ipv4.insert(address.to_bits().into(), entry),
            EntryName::Mpls(label) => self.mpls.insert(label.into(), entry),
            EntryName::Prefix(prefix) => self.put_prefix(prefix, entry),
            _ => self.miss = Some(entry),
        }
    }

    fn put_prefix(&mut self, prefix: Prefix, entry: Entry) {
        let slot = self.free_prefixes.pop().unwrap_or_else(|| {
            self.prefix_entries.push(None);
            self.prefix_entries.len() as u32 - 1
        });
        self.prefix_entries[slot as usize] = Some(entry);
        self.prefixes.insert(prefix, slot);
        self.lpm_is_stale = true;
    }

    /// Counts a user of all objects that an action refers to.
    fn hold(&mut self, action: &Action) {
        match action.target {
            Target::Interface(one) => self.interfaces.use_by_one(one),
            Target::Group(one) | Target::Spread(one) => self.groups.use_by_one(one),
            _ => {}
        }
        tunnels_of(action).for_each(|one| self.tunnels.use_by_one(one));
    }

    fn release(&mut self, action: &Action) {
        match action.target {
            Target::Interface(one) => self.interfaces.unuse_by_one(one),
            Target::Group(one) | Target::Spread(one) => self.groups.unuse_by_one(one),
            _ => {}
        }
        tunnels_of(action).for_each(|one| self.tunnels.unuse_by_one(one));
    }
}

/// Rank of an entry in references: entries use groups and objects, groups use interfaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Object,
    Group,
    Entry,
}

fn rank_of(change: &Change) -> Rank {
    match change {
        Change::Udlk(..) | Change::Interface(..) | Change::Tunnel(..) | Change::Port(..) => {
            Rank::Object
        }
        Change::Group(..) => Rank::Group,
        _ => Rank::Entry,
    }
}

/// Returns the new content of a changed entry.
fn wanted(change: &Change) -> Option<Taken> {
    Some(match change {
        Change::Udlk(_, udlk) => Taken::Udlk(udlk.clone()?),
        Change::Interface(_, interface) => Taken::Interface((*interface)?),
        Change::Group(_, group) => Taken::Group(group.clone()?),
        Change::Tunnel(_, tunnel) => Taken::Tunnel(tunnel.clone()?),
        Change::Tcam(_, entry) => {
            let TcamEntry { udlk, value, mask, action } = entry.clone()?;
            Taken::Tcam(TcamSlot { udlk, value, mask, entry: Entry::new(action) })
        }
        Change::Mac(_, action)
        | Change::Ipv4(_, action)
        | Change::Mpls(_, action)
        | Change::Prefix(_, action)
        | Change::Miss(action) => Taken::Entry(Entry::new(action.clone()?)),
        Change::Port(_, options) => Taken::Port((*options)?),
    })
}

fn tunnel_of(modify: &Modify) -> Option<u16> {
    match modify {
        Modify::TunnelPush(number) => Some(*number),
        _ => None,
    }
}

/// Returns the tunnels of an action, each once: an entry is one user of an object.
fn tunnels_of(action: &Action) -> impl Iterator<Item = u16> {
    let before = |at: usize| action.modify[..at].iter().filter_map(tunnel_of);
    let named = action.modify.iter().enumerate();
    named.filter_map(move |(at, modify)| {
        tunnel_of(modify).filter(|&one| before(at).all(|other| other != one))
    })
}

fn check_tunnel(tunnel: &Tunnel) -> Result<(), Reason> {
    let shim = tunnel.shim.len();
    let is_sound = tunnel.ttl > 0 && shim <= Tunnel::SHIM_BYTES_MAX && shim.is_multiple_of(4);
    if is_sound { Ok(()) } else { Err(Reason::Tunnel) }
}
