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
            Role::Disabled => port.rest(false),
            Role::Root => self.root_step(now, index),
            Role::Designated => self.ports[index].designated_step(now),
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
        port.advance(now, may)
    }

    /// Runs one step for an alternate or backup port. Returns whether there was one.
    fn blocked_step(&mut self, index: usize) -> bool {
        let all_synced = self.all_synced();
        let port = &mut self.ports[index];
        if port.rest(true) {
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

impl Port {
    /// Enters state DISABLED_PORT or ALTERNATE_PORT. Returns whether anything had to be settled.
    fn rest(&mut self, blocked: bool) -> bool {
        let in_use = self.learning || self.forwarding;
        let settled = self.fd.is_held() && !self.sync && !self.re_root && self.synced;
        if in_use || settled {
            return false;
        }
        let span =
            if blocked { self.forward_delay() } else { self.designated_times.max_age.span() };
        self.fd.hold(span);
        self.synced = true;
        self.rr.stop();
        (self.sync, self.re_root) = (false, false);
        true
    }

    fn designated_step(&mut self, now: Time) -> bool {
        let was_root = !self.rr.is_over(now);
        if !self.forward && !self.agreed && !self.proposing && !self.oper_edge {
            self.proposing = true;
            self.new_info = true;
            self.edge_delay.start(now, super::MIGRATE_TIME);
            return true;
        }
        let idle = !self.learning && !self.forwarding;
        if !self.synced && (idle || self.agreed || self.oper_edge) || self.sync && self.synced {
            self.rr.stop();
            (self.synced, self.sync) = (true, false);
            return true;
        }
        if self.re_root && !was_root {
            self.re_root = false;
            return true;
        }
        let must_stop = self.sync && !self.synced || self.re_root && was_root || self.disputed;
        if must_stop && !self.oper_edge && (self.learn || self.forward) {
            (self.learn, self.forward, self.disputed) = (false, false, false);
            self.fd.start(now, self.forward_delay());
            return true;
        }
        let trusted = self.fd.is_over(now) || self.agreed || self.oper_edge;
        let may = trusted && !(self.re_root && was_root) && !self.sync;
        let forwarded = self.forward;
        let stepped = self.advance(now, may);
        if self.forward && !forwarded {
            self.agreed = true;
        }
        stepped
    }

    /// Enters state ROOT_LEARN, ROOT_FORWARD, DESIGNATED_LEARN or DESIGNATED_FORWARD if the port
    /// `may`. Returns whether it has.
    fn advance(&mut self, now: Time, may: bool) -> bool {
        if !may || self.forward {
            return false;
        }
        if self.learn {
            self.forward = true;
            self.fd.stop();
        } else {
            self.learn = true;
            self.fd.start(now, self.forward_delay());
        }
        true
    }

    /// Runs the state transition machine. The data plane follows at once.
    pub(super) fn follow(&mut self) -> bool {
        let changed = (self.learning, self.forwarding) != (self.learn, self.learn && self.forward);
        (self.learning, self.forwarding) = (self.learn, self.learn && self.forward);
        changed
    }
}
