//! Role and state transition machines (IEEE 802.1D-2004 clauses 17.29 and 17.30).
//!
//! A port towards the root may forward once no port that was recently the root port can still
//! forward. A port away from the root may forward when the bridge behind it agrees, when it is an
//! edge port, or after a delay. A bridge that receives a proposal first blocks all its designated
//! ports that have not been agreed (*sync*), then agrees. The cut thus moves away from the root,
//! link by link, and there is never a loop behind it.

use super::Rstp;
use super::port::{Port, Role};
use axon_wire::Time;

impl Rstp {
    /// Runs one step of a port's role transition machine. Returns whether there was one.
    pub(super) fn transition(&mut self, now: Time, index: usize) -> bool {
        let port = &mut self.ports[index];
        if !port.selected || port.updt_info {
            return false;
        }
        if port.role != port.selected_role {
            self.enter(now, index);
            return true;
        }
        match port.role {
            Role::Disabled => rest(port, false),
            Role::Root => self.root_step(now, index),
            Role::Designated => designated_step(&mut self.ports[index], now),
            Role::Alternate | Role::Backup => self.blocked_step(index),
        }
    }

    /// Enters state DISABLE_PORT, ROOT_PORT, DESIGNATED_PORT or BLOCK_PORT.
    fn enter(&mut self, now: Time, index: usize) {
        let forward_delay = self.config.times.forward_delay.span();
        let port = &mut self.ports[index];
        for timer in [&mut port.fd, &mut port.rb, &mut port.rr] {
            timer.release(now);
        }
        port.role = port.selected_role;
        match port.role {
            Role::Root => port.rr.hold(forward_delay),
            Role::Designated => {}
            Role::Disabled | Role::Alternate | Role::Backup => {
                (port.learn, port.forward) = (false, false);
            }
        }
    }

    fn root_step(&mut self, now: Time, index: usize) -> bool {
        let all_synced = self.all_synced();
        let re_rooted = self
            .ports
            .iter()
            .enumerate()
            .all(|(other, port)| other == index || port.rr.is_over(now));
        let port = &mut self.ports[index];
        if port.proposed && !port.agree {
            port.proposed = false;
            self.sync_tree();
            return true;
        }
        if all_synced && !port.agree || port.proposed && port.agree {
            (port.proposed, port.sync, port.agree) = (false, false, true);
            port.new_info = true;
            return true;
        }
        if !port.forward && !port.re_root {
            self.ports.iter_mut().for_each(|port| port.re_root = true);
            return true;
        }
        if port.re_root && port.forward {
            port.re_root = false;
            return true;
        }
        let may = port.fd.is_over(now) || re_rooted && port.rb.is_over(now);
        advance(port, now, may)
    }

    /// Runs one step for an alternate or backup port. Returns whether there was one.
    fn blocked_step(&mut self, index: usize) -> bool {
        let all_synced = self.all_synced();
        let port = &mut self.ports[index];
        if rest(port, true) {
            return true;
        }
        if port.learning || port.forwarding {
            return false;
        }
        if port.proposed && !port.agree {
            port.proposed = false;
            self.sync_tree();
            return true;
        }
        if all_synced && !port.agree || port.proposed && port.agree {
            (port.proposed, port.agree) = (false, true);
            port.new_info = true;
            return true;
        }
        if port.role == Role::Backup && !port.rb.is_held() {
            port.rb.hold(port.designated_times.hello.span() * 2);
            return true;
        }
        false
    }

    /// Runs `setSyncTree` (clause 17.21.16).
    fn sync_tree(&mut self) {
        self.ports.iter_mut().for_each(|port| port.sync = true);
    }

    /// Evaluates `allSynced` (clause 17.20.3).
    fn all_synced(&self) -> bool {
        self.ports.iter().all(|port| {
            let settled = port.selected && !port.updt_info && port.role == port.selected_role;
            settled && (port.synced || port.role == Role::Root)
        })
    }
}

/// Enters state DISABLED_PORT or ALTERNATE_PORT. Returns whether anything had to be settled.
fn rest(port: &mut Port, blocked: bool) -> bool {
    let in_use = port.learning || port.forwarding;
    let settled = port.fd.is_held() && !port.sync && !port.re_root && port.synced;
    if in_use || settled {
        return false;
    }
    let span = if blocked { port.forward_delay() } else { port.designated_times.max_age.span() };
    port.fd.hold(span);
    port.synced = true;
    port.rr.stop();
    (port.sync, port.re_root) = (false, false);
    true
}

fn designated_step(port: &mut Port, now: Time) -> bool {
    let was_root = !port.rr.is_over(now);
    if !port.forward && !port.agreed && !port.proposing && !port.oper_edge {
        port.proposing = true;
        port.new_info = true;
        port.edge_delay.start(now, super::MIGRATE_TIME);
        return true;
    }
    let idle = !port.learning && !port.forwarding;
    if !port.synced && (idle || port.agreed || port.oper_edge) || port.sync && port.synced {
        port.rr.stop();
        (port.synced, port.sync) = (true, false);
        return true;
    }
    if port.re_root && !was_root {
        port.re_root = false;
        return true;
    }
    let must_stop = port.sync && !port.synced || port.re_root && was_root || port.disputed;
    if must_stop && !port.oper_edge && (port.learn || port.forward) {
        (port.learn, port.forward, port.disputed) = (false, false, false);
        port.fd.start(now, port.forward_delay());
        return true;
    }
    let trusted = port.fd.is_over(now) || port.agreed || port.oper_edge;
    let may = trusted && !(port.re_root && was_root) && !port.sync;
    let forwarded = port.forward;
    let stepped = advance(port, now, may);
    if port.forward && !forwarded {
        port.agreed = true;
    }
    stepped
}

/// Enters state ROOT_LEARN, ROOT_FORWARD, DESIGNATED_LEARN or DESIGNATED_FORWARD if the port
/// `may`. Returns whether it has.
fn advance(port: &mut Port, now: Time, may: bool) -> bool {
    if !may || port.forward {
        return false;
    }
    if port.learn {
        port.forward = true;
        port.fd.stop();
    } else {
        port.learn = true;
        port.fd.start(now, port.forward_delay());
    }
    true
}
