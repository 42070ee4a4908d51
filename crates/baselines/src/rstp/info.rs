//! Port information: bridge detection and received information (IEEE 802.1D-2004 clauses 17.25 and
//! 17.27).
//!
//! A designated port that has sent proposals for three seconds without receiving anything from a
//! bridge is an edge port, with hosts behind it. A message from a designated port is stored if it
//! is better than the port's own information or comes from the source of that information. All
//! roles are then recomputed. If the same message is repeated, it only refreshes the age. A worse
//! message from a port that is already learning shows that our messages are not received (a
//! dispute). A message from a root or alternate port may agree to our proposal. Information that is
//! not repeated for three hello times expires.

use super::bpdu::{Bpdu, SentRole};
use super::port::{InfoIs, Port};
use axon_wire::Time;

/// Meaning of a message for a port (`rcvInfo`, clause 17.21.8).
enum Received {
    Superior,
    Repeated,
    Inferior,
    NotDesignated,
    Other,
}

impl Port {
    /// Runs bridge detection. Returns whether anything has changed.
    pub(super) fn detect_edge(&mut self, now: Time) -> bool {
        let alone = self.enabled && self.proposing && self.edge_delay.is_over(now);
        let becomes = alone && !self.oper_edge;
        self.oper_edge |= becomes;
        becomes
    }

    /// Runs the port information machine. Returns whether anything has changed.
    pub(super) fn information(&mut self, now: Time) -> bool {
        if !self.enabled {
            let changed = self.info_is != InfoIs::Disabled;
            if changed {
                self.forget();
            }
            self.message = None;
            return changed;
        }
        if self.info_is == InfoIs::Disabled {
            self.age();
            return true;
        }
        if self.selected && self.updt_info {
            self.update();
            return true;
        }
        if self.info_is == InfoIs::Aged || self.updt_info {
            return false;
        }
        if let Some(message) = self.message.take() {
            self.take(now, &message);
            return true;
        }
        if self.info_is == InfoIs::Received && self.info.is_over(now) {
            self.age();
            return true;
        }
        false
    }

    /// Enters state DISABLED.
    fn forget(&mut self) {
        (self.proposing, self.proposed, self.agree, self.agreed) = (false, false, false, false);
        self.info.stop();
        self.info_is = InfoIs::Disabled;
        (self.reselect, self.selected) = (true, false);
    }

    /// Enters state AGED.
    fn age(&mut self) {
        self.info_is = InfoIs::Aged;
        (self.reselect, self.selected) = (true, false);
    }

    /// Enters state UPDATE, in which the port adopts the bridge's own information.
    fn update(&mut self) {
        let better = self.better_or_same(self.designated, InfoIs::Mine);
        (self.proposing, self.proposed) = (false, false);
        self.agreed &= better;
        self.synced &= self.agreed;
        (self.vector, self.times) = (self.designated, self.designated_times);
        self.updt_info = false;
        self.info_is = InfoIs::Mine;
        self.new_info = true;
    }

    /// Evaluates `betterorsameInfo` (clause 17.21.1) for information `new` of kind `kind`.
    fn better_or_same(&self, new: super::vector::Vector, kind: InfoIs) -> bool {
        self.info_is == kind && new <= self.vector
    }

    fn meaning(&self, message: &Bpdu) -> Received {
        match message.role {
            SentRole::Designated => {
                let same = message.vector == self.vector;
                if message.vector.supersedes(&self.vector) || same && message.times != self.times {
                    Received::Superior
                } else if same {
                    Received::Repeated
                } else {
                    Received::Inferior
                }
            }
            SentRole::Root | SentRole::AlternateOrBackup if message.vector >= self.vector => {
                Received::NotDesignated
            }
            _ => Received::Other,
        }
    }

    /// Enters state RECEIVE and the states that follow it.
    fn take(&mut self, now: Time, message: &Bpdu) {
        match self.meaning(message) {
            Received::Superior => {
                (self.agreed, self.proposing) = (false, false);
                self.proposed |= message.proposal;
                self.topology_flags(message);
                self.agree &= self.better_or_same(message.vector, InfoIs::Received);
                self.record_agreement(message);
                self.synced &= self.agreed;
                (self.vector, self.times) = (message.vector, message.times);
                self.refresh(now);
                self.info_is = InfoIs::Received;
                (self.reselect, self.selected) = (true, false);
            }
            Received::Repeated => {
                self.proposed |= message.proposal;
                self.topology_flags(message);
                self.record_agreement(message);
                self.refresh(now);
            }
            Received::Inferior => {
                if message.learning {
                    self.disputed = true;
                    self.agreed = false;
                }
            }
            Received::NotDesignated => {
                self.record_agreement(message);
                self.topology_flags(message);
            }
            Received::Other => {}
        }
    }

    /// Runs `recordAgreement` (clause 17.21.9), given that every link is point-to-point.
    fn record_agreement(&mut self, message: &Bpdu) {
        self.agreed = message.agreement;
        if message.agreement {
            self.proposing = false;
        }
    }

    /// Runs `setTcFlags` (clause 17.21.17).
    fn topology_flags(&mut self, message: &Bpdu) {
        self.rcvd_tc |= message.topology_change;
        self.rcvd_tc_ack |= message.acknowledgment;
    }

    /// Runs `updtRcvdInfoWhile` (clause 17.21.23). Information beyond the maximum age expires at
    /// once.
    fn refresh(&mut self, now: Time) {
        if self.times.message_age.plus_one_second() <= self.times.max_age {
            self.info.start(now, self.times.hello.span() * 3);
        } else {
            self.info.stop();
        }
    }
}
