//! Port roles (IEEE 802.1D-2004 clause 17.28, `updtRolesTree` in 17.21.25).
//!
//! The candidates for the bridge's path to the root are all received vectors, each with the port's
//! own cost added, and the bridge's own vector as root. The best of them is the path, and its port
//! is the root port. It determines the vector to send on each port. A port that has received a
//! better vector than that is an alternate port, or a backup port if the vector came from this
//! bridge itself. All other ports are designated.

use super::Rstp;
use super::port::{InfoIs, Role};
use super::vector::{PortId, Times, Vector};

impl Rstp {
    /// Selects all roles if any port requests it. Returns whether one did.
    pub(super) fn select_roles(&mut self) -> bool {
        if !self.ports.iter().any(|port| port.reselect) {
            return false;
        }
        self.ports.iter_mut().for_each(|port| port.reselect = false);
        self.update_roles();
        self.ports.iter_mut().for_each(|port| port.selected = true);
        true
    }

    fn update_roles(&mut self) {
        let own = Vector { root: self.id, cost: 0, bridge: self.id, port: PortId(0) };
        let mut best = (own, PortId(0), self.config.times, None);
        for (index, port) in self.ports.iter().enumerate() {
            let heard = port.info_is == InfoIs::Received && port.vector.bridge.mac != self.id.mac;
            if heard {
                let cost = port.vector.cost.saturating_add(port.cost);
                let path = Vector { cost, ..port.vector };
                if (path, port.id) < (best.0, best.1) {
                    let message_age = port.times.message_age.plus_one_second();
                    let times = Times { message_age, ..port.times };
                    best = (path, port.id, times, Some(index));
                }
            }
        }
        let (root, _, root_times, root_port) = best;
        (self.root, self.root_port) = (root, root_port);
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.designated = Vector { bridge: self.id, port: port.id, ..root };
            port.designated_times = Times { hello: self.config.times.hello, ..root_times };
            let better = port.designated < port.vector;
            (port.selected_role, port.updt_info) = match port.info_is {
                InfoIs::Disabled => (Role::Disabled, false),
                InfoIs::Aged => (Role::Designated, true),
                InfoIs::Mine => {
                    let same = port.vector == port.designated;
                    (Role::Designated, !same || port.times != port.designated_times)
                }
                InfoIs::Received if root_port == Some(index) => (Role::Root, false),
                InfoIs::Received if better => (Role::Designated, true),
                InfoIs::Received if port.vector.bridge.mac == self.id.mac => (Role::Backup, false),
                InfoIs::Received => (Role::Alternate, false),
            };
        }
    }
}
