//! What a port knows: bridge detection and port information
//! (IEEE 802.1D-2004 clauses 17.25 and 17.27).
//!
//! In plain English: a designated port that has asked for three seconds whether it may
//! forward, and has heard no bridge, is an edge: hosts are behind it. A message of a
//! designated port that is better than what this port has, or comes from the same port as
//! that, is kept, and all roles are chosen anew; the same message again only makes it young;
//! a worse one, from a port that learns already, shows that somebody does not receive ours
//! (a dispute). A message of a root or alternate port may agree to what we have proposed.
//! Information that has not been heard again for three hello times is forgotten.

use super::bpdu::{Bpdu, SentRole};
use super::port::{InfoIs, Port};
use axon_wire::Time;

/// What a message means to a port (`rcvInfo`, clause 17.21.8).
enum Received {
    Superior,
    Repeated,
    Inferior,
    NotDesignated,
    Other,
}

impl Port {
    /// Bridge detection: says whether something has changed.
    pub(super) fn detect_edge(&mut self, now: Time) -> bool {
        let alone = self.enabled && self.proposing && self.edge_delay.is_over(now);
        let becomes = alone && !self.oper_edge;
        self.oper_edge |= becomes;
        becomes
    }

    /// Port information: says whether something has changed.
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

    /// State DISABLED.
    fn forget(&mut self) {
        (self.proposing, self.proposed, self.agree, self.agreed) = (false, false, false, false);
        self.info.stop();
        self.info_is = InfoIs::Disabled;
        (self.reselect, self.selected) = (true, false);
    }

    /// State AGED.
    fn age(&mut self) {
        self.info_is = InfoIs::Aged;
        (self.reselect, self.selected) = (true, false);
    }

    /// State UPDATE: the port takes what the bridge itself says.
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

    /// `betterorsameInfo` (clause 17.21.1) for information `new` of kind `kind`.
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

    /// State RECEIVE and those behind it.
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

    /// `recordAgreement` (clause 17.21.9): every link is point-to-point.
    fn record_agreement(&mut self, message: &Bpdu) {
        self.agreed = message.agreement;
        if message.agreement {
            self.proposing = false;
        }
    }

    /// `setTcFlags` (clause 17.21.17).
    fn topology_flags(&mut self, message: &Bpdu) {
        self.rcvd_tc |= message.topology_change;
        self.rcvd_tc_ack |= message.acknowledgment;
    }

    /// `updtRcvdInfoWhile` (clause 17.21.23): what has come too far is old at once.
    fn refresh(&mut self, now: Time) {
        if self.times.message_age.plus_one_second() <= self.times.max_age {
            self.info.start(now, self.times.hello.span() * 3);
        } else {
            self.info.stop();
        }
    }
}
