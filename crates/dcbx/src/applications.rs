//! Application priorities in CEE's form and in the standard's.

use alloc::vec::Vec;
use axon_wire::PrioritySet;
use axon_wire::dcbx::cee::{APPLICATION_OUI, CeeApplication, SELECTOR_ETHERTYPE, SELECTOR_PORT};
use axon_wire::dcbx::ieee::{Application, Selector};

/// Returns whether CEE can carry this application priority without including other applications.
pub fn cee_can_carry(application: &Application) -> bool {
    match application.selector {
        // EtherType 0 stands for all packets that match no other entry.
        Selector::ETHERTYPE => application.protocol > 0,
        selector => selector == Selector::PORT,
    }
}

/// Converts application priorities to CEE's form: one entry for each application, with all its
/// priorities. CEE does not distinguish transports, so a TCP port or UDP port becomes a port of
/// both.
pub(super) fn cee_applications(applications: &[Application]) -> Vec<CeeApplication> {
    let mut list: Vec<CeeApplication> = Vec::new();
    for &Application { priority, selector, protocol } in applications {
        let selector = match selector {
            Selector::ETHERTYPE if protocol > 0 => SELECTOR_ETHERTYPE,
            Selector::STREAM_PORT | Selector::DATAGRAM_PORT | Selector::PORT => SELECTOR_PORT,
            _ => continue,
        };
        let priorities = PrioritySet::only(priority).bits();
        let same = |one: &&mut CeeApplication| (one.protocol, one.selector) == (protocol, selector);
        match list.iter_mut().find(same) {
            Some(known) => known.priorities |= priorities,
            None => {
                list.push(CeeApplication { protocol, oui: APPLICATION_OUI, selector, priorities });
            }
        }
    }
    list
}

/// Converts CEE application priorities to the standard's form: one entry for each priority of each
/// application. The lowest priority comes first, and it applies where only one is possible.
pub(super) fn applications_of(list: &[CeeApplication]) -> Vec<Application> {
    let known = |entry: &CeeApplication| match entry.selector {
        SELECTOR_ETHERTYPE if entry.protocol > 0 => Some((Selector::ETHERTYPE, *entry)),
        SELECTOR_PORT => Some((Selector::PORT, *entry)),
        _ => None,
    };
    let each = |(selector, from): (Selector, CeeApplication)| {
        let entry = move |priority| Application { priority, selector, protocol: from.protocol };
        PrioritySet::from_bits(from.priorities).iter().map(entry)
    };
    list.iter().filter_map(known).flat_map(each).collect()
}
