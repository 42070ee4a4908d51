//! Selection of the ports of a bond: those that lead to one partner.
//!
//! The ports of an aggregate have partners of one system with one key. The partner of the bond
//! stays as long as a port carries frames to it. Otherwise the first port with a partner decides,
//! in the order of the bond, so both ends of wrong cables make the same choice, whatever the order
//! of reception. A port with another partner is not selected, nor one whose partner cannot
//! aggregate.

use axon_wire::lacp::Partner;

/// Partner of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    partner: Option<Partner>,
}

impl Selection {
    /// Returns the partner of the bond, if it has had any.
    pub const fn partner(&self) -> Option<Partner> {
        self.partner
    }

    /// Chooses the partner of a bond by its ports in order, each with whether it carries frames.
    pub fn choose(
        &mut self,
        ports: impl Iterator<Item = (Option<Partner>, bool)> + Clone,
    ) -> Option<Partner> {
        let carries = |partner| ports.clone().any(|other| other == (Some(partner), true));
        if !self.partner.is_some_and(carries) {
            let first = ports.clone().find_map(|(partner, _)| partner);
            self.partner = first.or(self.partner);
        }
        self.partner
    }

    /// Returns whether a port with this partner belongs to the bond.
    pub fn takes(&self, partner: Option<Partner>) -> bool {
        partner.is_some() && partner == self.partner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::MacAddr;
    use axon_wire::lacp::{PortInfo, PortState, SystemId};

    fn partner(n: u8, key: u16) -> Option<Partner> {
        Some(Partner { system: SystemId { priority: 1, mac: MacAddr([n; 6]) }, key })
    }

    #[test]
    fn the_first_port_decides_unless_another_carries_frames_to_its_partner() {
        let mut bond = Selection::default();
        let mut choose = |ports: [Option<Partner>; 2], carry: [bool; 2]| {
            let chosen = bond.choose(ports.into_iter().zip(carry));
            (chosen, ports.map(|port| bond.takes(port)))
        };
        let (a, b) = (partner(2, 1), partner(4, 1));
        let (idle, second) = ([false, false], [false, true]);
        assert_eq!(choose([None, None], idle), (None, [false, false]));
        assert_eq!(choose([None, b], idle), (b, [false, true]));
        assert_eq!(choose([a, b], idle), (a, [true, false]), "no frame was carried yet");
        assert_eq!(choose([None, b], second), (b, [false, true]));
        assert_eq!(choose([a, b], second), (b, [false, true]), "the later one is not used");
        assert_eq!(choose([b, b], second), (b, [true, true]));
        assert_eq!(choose([None, None], idle), (b, [false, false]), "until there is another one");
        assert_eq!(choose([a, None], idle), (a, [true, false]));
        assert_eq!(choose([a, partner(2, 2)], idle), (a, [true, false]), "another key");
    }

    #[test]
    fn whoever_cannot_aggregate_is_nobodys_partner() {
        let mut info = PortInfo::default();
        assert_eq!(Partner::of(&info), None);
        info.state = PortState::AGGREGATION;
        assert!(Partner::of(&info).is_some());
    }
}
