//! Application priorities in CEE's form and in the standard's.

use alloc::vec::Vec;
use axon_wire::PrioritySet;
use axon_wire::dcbx::cee::{APPLICATION_OUI, CeeApplication, SELECTOR_ETHERTYPE, SELECTOR_PORT};
use axon_wire::dcbx::ieee::{Application, Selector};

/// Whether the older form can tell of this application, and of no others with it.
pub fn cee_can_carry(application: &Application) -> bool {
    match application.selector {
        // EtherType 0 means all packets that no other entry is about.
        Selector::ETHERTYPE => application.protocol > 0,
        selector => selector == Selector::PORT,
    }
}

/// Application priorities in the older form: one entry for each application, with all of its
/// priorities. A port of one transport is told as one of both.
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

pub(super) fn applications_of(list: &[CeeApplication]) -> Vec<Application> {
    let known = |told: &CeeApplication| match told.selector {
        SELECTOR_ETHERTYPE if told.protocol > 0 => Some((Selector::ETHERTYPE, *told)),
        SELECTOR_PORT => Some((Selector::PORT, *told)),
        _ => None,
    };
    let each = |(selector, told): (Selector, CeeApplication)| {
        let entry = move |priority| Application { priority, selector, protocol: told.protocol };
        PrioritySet::from_bits(told.priorities).iter().map(entry)
    };
    list.iter().filter_map(known).flat_map(each).collect()
}
