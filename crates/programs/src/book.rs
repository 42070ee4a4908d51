//! Synchronises the tables of a switch with a program's entries, with one transaction for each set
//! of differences.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Change, ChangeError, Control, EntryName, Reason};

/// All entries that a program has made.
#[derive(Clone, Debug, Default)]
pub struct Book {
    entries: BTreeMap<EntryName, Change>,
}

impl Book {
    /// Makes the tables match `wanted`, which contains each entry once. Unchanged entries keep
    /// their counters. An unwanted entry that is referenced by an operator's or other foreign
    /// entries stays until those are gone and there is another change.
    ///
    /// # Errors
    /// The first change that fails. The tables are then unchanged.
    pub(crate) fn sync(
        &mut self,
        wanted: Vec<Change>,
        control: &mut dyn Control,
    ) -> Result<(), ChangeError> {
        let mut wanted: BTreeMap<EntryName, Change> =
            wanted.into_iter().map(|change| (change.entry(), change)).collect();
        let gone = self.entries.keys().filter(|name| !wanted.contains_key(name));
        let gone = gone.map(|name| name.removal());
        let new = wanted.iter().filter(|(name, change)| self.entries.get(name) != Some(change));
        let mut changes: Vec<Change> = gone.chain(new.map(|(_, change)| change.clone())).collect();
        while !changes.is_empty() {
            let Err(error) = control.commit(&changes) else { break };
            let ChangeError { entry, reason: Reason::InUse { .. }, .. } = error else {
                return Err(error);
            };
            // Each round has one removal fewer.
            let Some(used) = self.entries.get(&entry).filter(|_| !wanted.contains_key(&entry))
            else {
                return Err(error);
            };
            wanted.insert(entry, used.clone());
            changes.retain(|change| change.entry() != entry);
        }
        self.entries = wanted;
        Ok(())
    }

    /// Restores the program's entries that were removed by an operator.
    ///
    /// # Errors
    /// The first entry that fails. [`Book::sync`] restores all of them together with its next
    /// changes.
    pub(crate) fn restore(
        &mut self,
        removed: &[EntryName],
        control: &mut dyn Control,
    ) -> Result<(), ChangeError> {
        let own = removed.iter().filter_map(|name| self.entries.get(name));
        let changes: Vec<Change> = own.cloned().collect();
        if changes.is_empty() {
            return Ok(());
        }
        control.commit(&changes).inspect_err(|_| {
            for change in &changes {
                self.entries.remove(&change.entry());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::plans;
    use alloc::boxed::Box;
    use axon_pipeline::{Action, Group, Interface, Program, Received, TableName, Target};
    use axon_wire::{PortNo, Time};
    use core::net::Ipv4Addr;

    /// Program that has a group while port 0 has carrier.
    #[derive(Default)]
    struct Keeper(Book);

    impl Program for Keeper {
        fn start(&mut self, _: Time, _: &mut dyn Control) {}

        fn link(&mut self, _: Time, port: PortNo, up: bool, control: &mut dyn Control) {
            let mut wanted = Vec::new();
            if up {
                let interface = Interface::of(PortNo(0));
                wanted.push(Change::Interface(0, Some(interface)));
                wanted.push(Change::Group(0, Some(Group { interfaces: [0].into() })));
            }
            wanted.push(Change::Interface(1, Some(Interface::of(port))));
            self.0.sync(wanted, control).unwrap();
        }

        fn receive_packet(&mut self, _: Time, _: Received<'_>, _: &mut dyn Control) {}
    }

    #[test]
    fn what_an_operator_uses_stays_and_all_else_changes() {
        let mut net = Net::new(plans::ring(3), |_| Box::new(Keeper::default()));
        let count = |net: &Net| [TableName::Group, TableName::Interface].map(|of| net.count(0, of));
        assert_eq!(count(&net), [1, 2]);
        let address = Ipv4Addr::new(10, 9, 9, 9);
        let entry = |action| Change::Ipv4(address, action);
        net.commit(0, &[entry(Some(Action::from(Target::Spread(0))))]);
        net.carrier(0, PortNo(0), false);
        assert_eq!(count(&net), [1, 2], "the group is used, and the interface by the group");
        net.commit(0, &[entry(None)]);
        net.carrier(0, PortNo(1), false);
        assert_eq!(count(&net), [0, 1]);
    }
}
