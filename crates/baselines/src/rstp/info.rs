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

/// Runs bridge detection. Returns whether anything has changed.
pub(super) fn detect_edge(port: &mut Port, now: Time) -> bool {
    let alone = port.enabled && port.proposing && port.edge_delay.is_over(now);
    let becomes = alone && !port.oper_edge;
    port.oper_edge |= becomes;
    becomes
}

/// Runs the port information machine. Returns whether anything has changed.
pub(super) fn information(port: &mut Port, now: Time) -> bool {
    if !port.enabled {
        let changed = port.info_is != InfoIs::Disabled;
        if changed {
            forget(port);
        }
        port.message = None;
        return changed;
    }
    if port.info_is == InfoIs::Disabled {
        age(port);
        return true;
    }
    if port.selected && port.updt_info {
        update(port);
        return true;
    }
    if port.info_is == InfoIs::Aged || port.updt_info {
        return false;
    }
    if let Some(message) = port.message.take() {
        take(port, now, &message);
        return true;
    }
    if port.info_is == InfoIs::Received && port.info.is_over(now) {
        age(port);
        return true;
    }
    false
}

/// Enters state DISABLED.
fn forget(port: &mut Port) {
    (port.proposing, port.proposed, port.agree, port.agreed) = (false, false, false, false);
    port.info.stop();
    port.info_is = InfoIs::Disabled;
    (port.reselect, port.selected) = (true, false);
}

/// Enters state AGED.
fn age(port: &mut Port) {
    port.info_is = InfoIs::Aged;
    (port.reselect, port.selected) = (true, false);
}

/// Enters state UPDATE, in which the port adopts the bridge's own information.
fn update(port: &mut Port) {
    let better = better_or_same(port, port.designated, InfoIs::Mine);
    (port.proposing, port.proposed) = (false, false);
    port.agreed &= better;
    port.synced &= port.agreed;
    (port.vector, port.times) = (port.designated, port.designated_times);
    port.updt_info = false;
    port.info_is = InfoIs::Mine;
    port.new_info = true;
}

/// Evaluates `betterorsameInfo` (clause 17.21.1) for information `new` of kind `kind`.
fn better_or_same(port: &Port, new: super::vector::Vector, kind: InfoIs) -> bool {
    port.info_is == kind && new <= port.vector
}

fn meaning(port: &Port, message: &Bpdu) -> Received {
    match message.role {
        SentRole::Designated => {
            let same = message.vector == port.vector;
            if message.vector.supersedes(&port.vector) || same && message.times != port.times {
                Received::Superior
            } else if same {
                Received::Repeated
            } else {
                Received::Inferior
            }
        }
        SentRole::Root | SentRole::AlternateOrBackup if message.vector >= port.vector => {
            Received::NotDesignated
        }
        _ => Received::Other,
    }
}

/// Enters state RECEIVE and the states that follow it.
fn take(port: &mut Port, now: Time, message: &Bpdu) {
    match meaning(port, message) {
        Received::Superior => {
            (port.agreed, port.proposing) = (false, false);
            port.proposed |= message.proposal;
            topology_flags(port, message);
            port.agree &= better_or_same(port, message.vector, InfoIs::Received);
            record_agreement(port, message);
            port.synced &= port.agreed;
            (port.vector, port.times) = (message.vector, message.times);
            refresh(port, now);
            port.info_is = InfoIs::Received;
            (port.reselect, port.selected) = (true, false);
        }
        Received::Repeated => {
            port.proposed |= message.proposal;
            topology_flags(port, message);
            record_agreement(port, message);
            refresh(port, now);
        }
        Received::Inferior => {
            if message.learning {
                port.disputed = true;
                port.agreed = false;
            }
        }
        Received::NotDesignated => {
            record_agreement(port, message);
            topology_flags(port, message);
        }
        Received::Other => {}
    }
}

/// Runs `recordAgreement` (clause 17.21.9), given that every link is point-to-point.
fn record_agreement(port: &mut Port, message: &Bpdu) {
    port.agreed = message.agreement;
    if message.agreement {
        port.proposing = false;
    }
}

/// Runs `setTcFlags` (clause 17.21.17).
fn topology_flags(port: &mut Port, message: &Bpdu) {
    port.rcvd_tc |= message.topology_change;
    port.rcvd_tc_ack |= message.acknowledgment;
}

/// Runs `updtRcvdInfoWhile` (clause 17.21.23). Information beyond the maximum age expires at
/// once.
fn refresh(port: &mut Port, now: Time) {
    if port.times.message_age.plus_one_second() <= port.times.max_age {
        port.info.start(now, port.times.hello.span() * 3);
    } else {
        port.info.stop();
    }
}
