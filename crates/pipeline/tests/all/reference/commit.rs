//! Transactions of the reference: applied to a copy of all entries, which replaces them if no
//! change was refused.

use super::{Reference, Stored};
use axon_pipeline::key::{BLOCKS_MAX, REACH_BYTES};
use axon_pipeline::{
    Action, Change, ChangeError, EntryName, Field, FrameType, Group, KeyError, Label, Mirror,
    Modify, Reason, Target, Tunnel, Udlk, UdlkId,
};
use axon_wire::{FrameBuf, PortNo, Route};

/// Order in which entries are removed; they are added in the reverse order.
fn rank(name: EntryName) -> usize {
    match name {
        EntryName::Group(_) => 1,
        EntryName::Udlk(_)
        | EntryName::Interface(_)
        | EntryName::Tunnel(_)
        | EntryName::Port(_) => 2,
        _ => 0,
    }
}

/// True if a change adds an entry.
fn puts(change: &Change) -> bool {
    match change {
        Change::Udlk(_, some) => some.is_some(),
        Change::Interface(_, some) => some.is_some(),
        Change::Group(_, some) => some.is_some(),
        Change::Tunnel(_, some) => some.is_some(),
        Change::Tcam(_, some) => some.is_some(),
        Change::Port(_, some) => some.is_some(),
        change => action_of(change).is_some(),
    }
}

/// Returns the action of the entry that a change adds.
pub fn action_of(change: &Change) -> Option<&Action> {
    match change {
        Change::Tcam(_, entry) => entry.as_ref().map(|entry| &entry.action),
        Change::Mac(_, action)
        | Change::Ipv4(_, action)
        | Change::Mpls(_, action)
        | Change::Prefix(_, action)
        | Change::Miss(action) => action.as_ref(),
        _ => None,
    }
}

fn pushes(action: &Action, tunnel: u16) -> bool {
    action.modify.contains(&Modify::TunnelPush(tunnel))
}

/// Returns the number of entries that use the object of this name.
fn users(entries: &[Stored], name: EntryName) -> u32 {
    let uses = |stored: &&Stored| {
        let action = action_of(&stored.change);
        match (name, &stored.change) {
            (EntryName::Udlk(id), Change::Tcam(_, Some(entry))) => entry.udlk == id,
            (EntryName::Interface(number), Change::Group(_, Some(group))) => {
                group.interfaces.contains(&number)
            }
            (EntryName::Interface(number), _) => {
                action.is_some_and(|action| action.target == Target::Interface(number))
            }
            (EntryName::Group(number), _) => action.is_some_and(|action| {
                [Target::Group(number), Target::Spread(number)].contains(&action.target)
            }),
            (EntryName::Tunnel(number), _) => action.is_some_and(|action| pushes(action, number)),
            _ => false,
        }
    };
    entries.iter().filter(uses).count() as u32
}

fn check_number(number: u32, size: u32) -> Result<(), Reason> {
    if number < size { Ok(()) } else { Err(Reason::NoSuchNumber { last: size - 1 }) }
}

fn check_key(udlk: &Udlk) -> Result<(), KeyError> {
    if udlk.fields.is_empty() {
        return Err(KeyError::Empty);
    }
    let mut bytes: Vec<u8> = Vec::new();
    for field in &udlk.fields {
        if let Field::Bytes { first, last } = *field {
            if last < first {
                return Err(KeyError::Reversed { first, last });
            }
            if usize::from(last) >= REACH_BYTES {
                return Err(KeyError::Beyond(last));
            }
            bytes.extend(first..=last);
        }
    }
    // Block b is bytes 4b - 2 to 4b + 1.
    let touched = |block: &u8| bytes.iter().any(|byte| (byte + 2) / 4 == *block);
    let blocks = (0..=REACH_BYTES as u8 / 4).filter(touched).count();
    if blocks > BLOCKS_MAX {
        return Err(KeyError::Blocks(blocks));
    }
    let twice = |at: usize| bytes[..at].contains(&bytes[at]);
    let count = |field| udlk.fields.iter().filter(|other| **other == field).count();
    let is_repeated = count(Field::Ingress) > 1 || count(Field::Priority) > 1;
    if is_repeated || (0..bytes.len()).any(twice) { Err(KeyError::Repeated) } else { Ok(()) }
}

fn check_tunnel(tunnel: &Tunnel) -> Result<(), Reason> {
    let is_sound =
        tunnel.ttl >= 1 && [0, 4, 8, 12, 16, 20, 24, 28, 32].contains(&tunnel.shim.len());
    if is_sound { Ok(()) } else { Err(Reason::Tunnel) }
}

fn check_group(group: &Group) -> Result<(), Reason> {
    let mut sorted = group.interfaces.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(Reason::TwiceInGroup(two[0])),
        None => Ok(()),
    }
}

impl Reference {
    /// Applies all changes, or none.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), ChangeError> {
        let refused = |index: usize| {
            let (position, entry) = (index as u32 + 1, changes[index].entry());
            move |reason| ChangeError { position, entry, reason }
        };
        for (index, change) in changes.iter().enumerate() {
            let same = changes[..index].iter().position(|other| other.entry() == change.entry());
            if let Some(first) = same {
                let first = first as u32 + 1;
                return Err(refused(index)(Reason::Contradiction { first }));
            }
            self.check_alone(change).map_err(refused(index))?;
        }
        let mut entries = self.entries.clone();
        let of_rank = |wanted| {
            let all = changes.iter().enumerate();
            all.filter(move |(_, change)| rank(change.entry()) == wanted)
        };
        for (index, change) in [0, 1, 2].into_iter().flat_map(of_rank) {
            let name = change.entry();
            if !puts(change) || matches!(name, EntryName::Udlk(_)) {
                let users = users(&entries, name);
                let is_there = entries.iter().any(|stored| stored.change.entry() == name);
                if is_there && users > 0 {
                    return Err(refused(index)(Reason::InUse { users }));
                }
            }
            entries.retain(|stored| stored.change.entry() != name);
        }
        for (index, change) in [2, 1, 0].into_iter().flat_map(of_rank) {
            if puts(change) {
                self.check_beside(change, &entries).map_err(refused(index))?;
                entries.push(Stored { change: change.clone(), frames: 0, bytes: 0 });
            }
        }
        self.entries = entries;
        Ok(())
    }

    /// Checks a change by itself, independent of other entries.
    fn check_alone(&self, change: &Change) -> Result<(), Reason> {
        let sizes = &self.config.sizes;
        match change {
            Change::Udlk(id, udlk) => {
                check_number(id.0.into(), UdlkId::COUNT as u32)?;
                udlk.as_ref().map_or(Ok(()), check_key).map_err(Reason::Key)?;
            }
            Change::Interface(number, interface) => {
                check_number((*number).into(), sizes.interface)?;
                if let Some(interface) = interface {
                    self.check_port(interface.port)?;
                }
            }
            Change::Group(number, group) => {
                check_number((*number).into(), sizes.group)?;
                group.as_ref().map_or(Ok(()), check_group)?;
            }
            Change::Tunnel(number, tunnel) => {
                check_number((*number).into(), sizes.tunnel)?;
                tunnel.as_ref().map_or(Ok(()), check_tunnel)?;
            }
            Change::Tcam(index, entry) => {
                check_number((*index).into(), sizes.tcam)?;
                if let Some(entry) = entry {
                    check_number(entry.udlk.0.into(), UdlkId::COUNT as u32)?;
                }
            }
            Change::Mpls(label, _) if *label > Label::MAX.0 => return Err(Reason::Label),
            Change::Prefix(prefix, _) => {
                let bits = prefix.address.to_bits();
                let behind = |bit: u32| bit >= u32::from(prefix.length) && bits << bit >> 31 == 1;
                if prefix.length > 32 || (0..32).any(behind) {
                    return Err(Reason::Prefix);
                }
            }
            Change::Port(port, _) => self.check_port(*port)?,
            _ => {}
        }
        let is_tcam = matches!(change, Change::Tcam(..));
        action_of(change).map_or(Ok(()), |action| self.check_action(action, is_tcam))
    }

    fn check_port(&self, port: PortNo) -> Result<(), Reason> {
        if port.0 < self.config.ports { Ok(()) } else { Err(Reason::NoSuchPort(port)) }
    }

    /// True if the header of a route can name its ports and has room before a frame.
    fn holds(&self, route: &Route) -> bool {
        let width = self.config.hop_width;
        let last = (1 << width.bits()) - 1;
        let is_named = |hop: &PortNo| *hop == PortNo::CONTROL || usize::from(hop.0) < last;
        let bytes = width.header_bytes(route.hops.len());
        route.hops.iter().all(is_named) && bytes <= FrameBuf::HEADROOM
    }

    fn check_action(&self, action: &Action, is_tcam: bool) -> Result<(), Reason> {
        let is_bare_tcam = is_tcam && action.modify.is_empty();
        if action.target == Target::Tables && !is_bare_tcam {
            return Err(Reason::Tables);
        }
        if action.modify.len() > 8 {
            return Err(Reason::TooManyModifications { max: 8 });
        }
        if let Target::Port(port) = action.target {
            self.check_port(port)?;
        }
        if let Some(Mirror::Port(port)) = action.mirror {
            self.check_port(port)?;
        }
        for change in &action.modify {
            match change {
                Modify::SetDscp(64..) => return Err(Reason::Dscp),
                Modify::MplsPush(label) | Modify::MplsSwap(label) if label.0 >= 1 << 20 => {
                    return Err(Reason::Label);
                }
                Modify::TunnelPop { shim_bytes: 33.. } => return Err(Reason::Tunnel),
                Modify::AxonPush(route) if !self.holds(route) => return Err(Reason::Route),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a change against the present entries.
    fn check_beside(&self, change: &Change, entries: &[Stored]) -> Result<(), Reason> {
        let is_there = |name: EntryName| entries.iter().any(|of| of.change.entry() == name);
        if let Change::Udlk(_, Some(udlk)) = change {
            return check_type(udlk, entries);
        }
        if let Change::Group(_, Some(group)) = change {
            let missing =
                group.interfaces.iter().find(|&&one| !is_there(EntryName::Interface(one)));
            return missing.map_or(Ok(()), |&one| Err(Reason::NoSuchInterface(one)));
        }
        if let Change::Tcam(_, Some(entry)) = change {
            let key = entries.iter().find_map(|stored| match &stored.change {
                Change::Udlk(id, Some(udlk)) if *id == entry.udlk => Some(udlk),
                _ => None,
            });
            let expected = key.ok_or(Reason::NoSuchUdlk(entry.udlk))?.value_bytes();
            for part in [&entry.value, &entry.mask] {
                if part.len() != expected {
                    let (expected, found) = (expected as u16, part.len() as u16);
                    return Err(Reason::ValueBytes { expected, found });
                }
            }
            for (byte, (value, mask)) in (0..).zip(entry.value.iter().zip(&entry.mask)) {
                if value & mask != *value {
                    return Err(Reason::ValueOutsideMask { byte });
                }
            }
        }
        let Some(action) = action_of(change) else { return Ok(()) };
        match action.target {
            Target::Interface(one) if !is_there(EntryName::Interface(one)) => {
                return Err(Reason::NoSuchInterface(one));
            }
            Target::Group(one) | Target::Spread(one) if !is_there(EntryName::Group(one)) => {
                return Err(Reason::NoSuchGroup(one));
            }
            _ => {}
        }
        for modify in &action.modify {
            if let Modify::TunnelPush(one) = *modify
                && !is_there(EntryName::Tunnel(one))
            {
                return Err(Reason::NoSuchTunnel(one));
            }
        }
        let sizes = &self.config.sizes;
        let name = change.entry();
        let size = match name {
            EntryName::Mac(_) => sizes.mac,
            EntryName::Ipv4(_) => sizes.ipv4,
            EntryName::Mpls(_) => sizes.mpls,
            EntryName::Prefix(_) => sizes.prefix,
            _ => return Ok(()),
        };
        let same_table = |of: &&Stored| of.change.entry().table() == name.table();
        let taken = entries.iter().filter(same_table).count();
        if taken < size as usize { Ok(()) } else { Err(Reason::Full { size }) }
    }
}

/// Checks that each type of frames has at most two keys.
fn check_type(udlk: &Udlk, entries: &[Stored]) -> Result<(), Reason> {
    let concerns = |udlk: &Udlk, of| udlk.frame_type.is_none_or(|only| only == of);
    for of in FrameType::ALL {
        let has = |stored: &&Stored| match &stored.change {
            Change::Udlk(_, Some(other)) => concerns(other, of),
            _ => false,
        };
        if concerns(udlk, of) && entries.iter().filter(has).count() >= 2 {
            return Err(Reason::TooManyKeys(of));
        }
    }
    Ok(())
}
