//! Transactions: all changes or none.
//!
//! Each change is first checked by itself. Then the changed entries are removed, then the objects
//! that they use (keys, interfaces, groups, tunnels); then the new objects are inserted, and last
//! the new entries. Removed entries are recorded; if a new one does not fit, the new ones are
//! removed again, entries first, and the old ones restored, entries last. No frame is looked up in
//! between.

use super::Tables;
use super::entry::Entry;
use super::exact::Seeded;
use super::ternary::TcamSlot;
use crate::action::{Action, Group, Interface, Label, Mirror, Modify, Target, Tunnel};
use crate::change::{Change, ChangeError, EntryName, Reason};
use crate::key::{Udlk, UdlkId};
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
        self.prefixes.refresh();
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
                within(*number, self.objects.interfaces.size())?;
                interface.map_or(Ok(()), |interface| self.check_port(interface.port))
            }
            Change::Group(number, group) => {
                within(*number, self.objects.groups.size())?;
                let Some(group) = group else { return Ok(()) };
                let mut sorted = group.interfaces.clone();
                sorted.sort_unstable();
                let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
                twice.map_or(Ok(()), |pair| Err(Reason::TwiceInGroup(pair[0])))
            }
            Change::Tunnel(number, tunnel) => {
                within(*number, self.objects.tunnels.size())?;
                tunnel.as_ref().map_or(Ok(()), check_tunnel)
            }
            Change::Tcam(index, entry) => {
                within(*index, self.ternary.count().1)?;
                let Some(entry) = entry else { return Ok(()) };
                within(entry.udlk.0.into(), UdlkId::COUNT as u32)?;
                self.check_action(&entry.action)
            }
            Change::Mpls(label, _) if *label > Label::MAX.0 => Err(Reason::Label),
            Change::Prefix(prefix, _) if !prefix.is_sound() => Err(Reason::Prefix),
            Change::Mpls(_, action)
            | Change::Prefix(_, action)
            | Change::Mac(_, action)
            | Change::Ipv4(_, action)
            | Change::Miss(action) => {
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
            Change::Udlk(id, _) => self.ternary.users(*id),
            Change::Interface(number, None) => self.objects.interfaces.users(*number),
            Change::Group(number, None) => self.objects.groups.users(*number),
            Change::Tunnel(number, None) => self.objects.tunnels.users(*number),
            _ => 0,
        };
        if users == 0 { Ok(()) } else { Err(Reason::InUse { users }) }
    }

    /// Checks that there is room for an entry, and that all objects that it uses exist.
    fn check_fits(&self, name: EntryName, wanted: &Taken) -> Result<(), Reason> {
        let room = |(entries, size): (u32, u32)| {
            if entries < size { Ok(()) } else { Err(Reason::Full { size }) }
        };
        match (name, wanted) {
            (_, Taken::Udlk(udlk)) => self.ternary.check_type(udlk),
            (_, Taken::Group(group)) => self.objects.check_members(group),
            (_, Taken::Tcam(slot)) => {
                self.ternary.check_slot(slot)?;
                self.objects.check_references(&slot.entry.action)
            }
            (_, Taken::Entry(entry)) => {
                self.objects.check_references(&entry.action)?;
                match name {
                    EntryName::Mac(_) => room(self.mac.count()),
                    EntryName::Ipv4(_) => room(self.ipv4.count()),
                    EntryName::Mpls(_) => room(self.mpls.count()),
                    EntryName::Prefix(_) => room(self.prefixes.count()),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Removes and returns the content of an entry.
    fn take(&mut self, name: EntryName) -> Option<Taken> {
        match name {
            EntryName::Udlk(id) => self.ternary.take_key(id).map(Taken::Udlk),
            EntryName::Interface(number) => {
                self.objects.interfaces.take(number).map(Taken::Interface)
            }
            EntryName::Group(number) => {
                let group = self.objects.groups.take(number)?;
                let members = group.interfaces.iter();
                members.for_each(|&one| self.objects.interfaces.unuse_by_one(one));
                Some(Taken::Group(group))
            }
            EntryName::Tunnel(number) => self.objects.tunnels.take(number).map(Taken::Tunnel),
            EntryName::Tcam(index) => {
                let slot = self.ternary.take_slot(index)?;
                self.objects.release(&slot.entry.action);
                Some(Taken::Tcam(slot))
            }
            EntryName::Mac(key) => self.mac.remove(key.packed()).map(|entry| self.taken(entry)),
            EntryName::Ipv4(address) => {
                self.ipv4.remove(address.to_bits().into()).map(|entry| self.taken(entry))
            }
            EntryName::Mpls(label) => self.mpls.remove(label.into()).map(|entry| self.taken(entry)),
            EntryName::Prefix(prefix) => self.prefixes.take(prefix).map(|entry| self.taken(entry)),
            EntryName::Miss => self.miss.take().map(|entry| self.taken(entry)),
            EntryName::Port(port) => {
                let options = self.ports.get_mut(port.index())?;
                Some(Taken::Port(core::mem::take(options)))
            }
        }
    }

    fn taken(&mut self, entry: Entry) -> Taken {
        self.objects.release(&entry.action);
        Taken::Entry(entry)
    }

    /// Inserts checked content at an empty entry.
    fn put(&mut self, name: EntryName, what: Taken) {
        match (name, what) {
            (EntryName::Udlk(id), Taken::Udlk(udlk)) => self.ternary.put_key(id, udlk),
            (EntryName::Interface(number), Taken::Interface(interface)) => {
                self.objects.interfaces.put(number, interface);
            }
            (EntryName::Group(number), Taken::Group(group)) => {
                let members = group.interfaces.iter();
                members.for_each(|&one| self.objects.interfaces.use_by_one(one));
                self.objects.groups.put(number, group);
            }
            (EntryName::Tunnel(number), Taken::Tunnel(tunnel)) => {
                self.objects.tunnels.put(number, tunnel);
            }
            (EntryName::Tcam(index), Taken::Tcam(slot)) => {
                self.objects.hold(&slot.entry.action);
                self.ternary.put_slot(index, slot);
            }
            (EntryName::Port(port), Taken::Port(options)) => {
                if let Some(place) = self.ports.get_mut(port.index()) {
                    *place = options;
                }
            }
            (name, Taken::Entry(entry)) => self.put_entry(name, entry),
            _ => {}
        }
    }

    fn put_entry(&mut self, name: EntryName, entry: Entry) {
        self.objects.hold(&entry.action);
        match name {
            EntryName::Mac(key) => self.mac.insert(key.packed(), entry),
            EntryName::Ipv4(address) => self.ipv4.insert(address.to_bits().into(), entry),
            EntryName::Mpls(label) => self.mpls.insert(label.into(), entry),
            EntryName::Prefix(prefix) => self.prefixes.put(prefix, entry),
            _ => self.miss = Some(entry),
        }
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

fn check_tunnel(tunnel: &Tunnel) -> Result<(), Reason> {
    let shim = tunnel.shim.len();
    let is_sound = tunnel.ttl > 0 && shim <= Tunnel::SHIM_BYTES_MAX && shim.is_multiple_of(4);
    if is_sound { Ok(()) } else { Err(Reason::Tunnel) }
}
