//! Which ports of a bond are used: those that lead to one partner.
//!
//! In plain English: the ports of an aggregate have partners of one system with one key. The
//! partner that the bond has stays, as long as any of its ports still has it. Otherwise the first
//! port with a partner decides, in the order of the bond. A port with another partner is not
//! selected, and neither is one whose partner cannot aggregate.

use axon_wire::lacp::Partner;

/// The partner of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    partner: Option<Partner>,
}

impl Selection {
    /// Whom the bond leads to, if it has had any partner.
    pub const fn partner(&self) -> Option<Partner> {
        self.partner
    }

    /// Chooses the partner of a bond, by those of its ports in their order.
    pub fn choose(
        &mut self,
        ports: impl Iterator<Item = Option<Partner>> + Clone,
    ) -> Option<Partner> {
        let has = |partner| ports.clone().any(|other| other == Some(partner));
        if !self.partner.is_some_and(has) {
            self.partner = ports.clone().flatten().next();
        }
        self.partner
    }

    /// Whether a port with this partner is one of the bond.
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
    fn the_first_partner_stays_until_no_port_has_it() {
        let mut bond = Selection::default();
        let mut choose = |ports: [Option<Partner>; 2]| {
            let chosen = bond.choose(ports.into_iter());
            (chosen, ports.map(|port| bond.takes(port)))
        };
        let (a, b) = (partner(2, 1), partner(4, 1));
        assert_eq!(choose([None, None]), (None, [false, false]));
        assert_eq!(choose([None, b]), (b, [false, true]));
        assert_eq!(choose([a, b]), (b, [false, true]), "the later one is not used");
        assert_eq!(choose([b, b]), (b, [true, true]));
        assert_eq!(choose([a, None]), (a, [true, false]));
        assert_eq!(choose([a, partner(2, 2)]), (a, [true, false]), "another key");
    }

    #[test]
    fn whoever_cannot_aggregate_is_nobodys_partner() {
        let mut info = PortInfo::default();
        assert_eq!(Partner::of(&info), None);
        info.state = PortState::AGGREGATION;
        assert!(Partner::of(&info).is_some());
    }
}
