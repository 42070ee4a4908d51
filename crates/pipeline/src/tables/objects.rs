//! Objects that entries refer to: interfaces, groups, tunnels.

use super::numbered::Numbered;
use crate::action::{Action, Group, Interface, Modify, Target, Tunnel};
use crate::change::Reason;
use crate::sizes::Sizes;

/// Objects of one switch, with the number of entries that use each.
#[derive(Clone, Debug)]
pub struct Objects {
    pub(super) interfaces: Numbered<Interface>,
    pub(super) groups: Numbered<Group>,
    pub(super) tunnels: Numbered<Tunnel>,
}

impl Objects {
    pub(super) fn new(sizes: &Sizes) -> Objects {
        Objects {
            interfaces: Numbered::new(sizes.interface.min(1 << 16)),
            groups: Numbered::new(sizes.group.min(1 << 16)),
            tunnels: Numbered::new(sizes.tunnel.min(1 << 16)),
        }
    }

    /// Returns an interface by its number.
    #[inline]
    pub fn interface(&self, number: u16) -> Option<&Interface> {
        self.interfaces.get(number)
    }

    /// Returns the members of a group; none if it does not exist.
    #[inline]
    pub fn members(&self, group: u16) -> &[u16] {
        self.groups.get(group).map_or(&[], |group| &group.interfaces)
    }

    /// Returns a tunnel by its number.
    #[inline]
    pub fn tunnel(&self, number: u16) -> Option<&Tunnel> {
        self.tunnels.get(number)
    }

    /// Checks that all members of a group exist.
    pub(super) fn check_members(&self, group: &Group) -> Result<(), Reason> {
        let missing = group.interfaces.iter().find(|&&one| self.interface(one).is_none());
        missing.map_or(Ok(()), |&one| Err(Reason::NoSuchInterface(one)))
    }

    /// Checks that all objects that an action refers to exist.
    pub(super) fn check_references(&self, action: &Action) -> Result<(), Reason> {
        match action.target {
            Target::Interface(one) if self.interface(one).is_none() => {
                return Err(Reason::NoSuchInterface(one));
            }
            Target::Group(one) | Target::Spread(one) if self.groups.get(one).is_none() => {
                return Err(Reason::NoSuchGroup(one));
            }
            _ => {}
        }
        match tunnels_of(action).find(|&one| self.tunnel(one).is_none()) {
            Some(one) => Err(Reason::NoSuchTunnel(one)),
            None => Ok(()),
        }
    }

    /// Counts a user of all objects that an action refers to.
    pub(super) fn hold(&mut self, action: &Action) {
        match action.target {
            Target::Interface(one) => self.interfaces.use_by_one(one),
            Target::Group(one) | Target::Spread(one) => self.groups.use_by_one(one),
            _ => {}
        }
        tunnels_of(action).for_each(|one| self.tunnels.use_by_one(one));
    }

    /// Ends the use of all objects that an action refers to.
    pub(super) fn release(&mut self, action: &Action) {
        match action.target {
            Target::Interface(one) => self.interfaces.unuse_by_one(one),
            Target::Group(one) | Target::Spread(one) => self.groups.unuse_by_one(one),
            _ => {}
        }
        tunnels_of(action).for_each(|one| self.tunnels.unuse_by_one(one));
    }
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
