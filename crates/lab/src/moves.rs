//! Moves a host, or any device plugged into a port, to another port of a running lab.
//!
//! A cable in a lab is a veth pair. Its end at the switch is the port, a device in the switch's
//! namespace with the name of the port. Moving the cable moves that device to the namespace of the
//! other switch and gives it the name of the other port. The switches see the events of a real
//! cable: one loses carrier, and the other gets it. The host keeps its device, its addresses and
//! its connections, and loses carrier for a moment. A TAP device that serves as the NIC of a guest
//! can also be moved.

use super::enter::join;
use super::namespaces::enter_net;
use super::plan::{Cable, CableEnd, Plan, UplinkPlan};
use super::running::Lab;
use super::state::StateDir;
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::assemble::{split_port, switch_index};
use axon_fabric::model::Fabric;
use axon_linux::iproute::run;
use axon_linux::sys;
use axon_wire::PortNo;

/// Moved cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Host at the other end, if that is in the fabric file.
    pub host: Option<String>,
    /// Previous port, such as `s1-p0`.
    pub from: String,
    /// New port.
    pub to: String,
}

impl Plan {
    /// Returns the host whose cable ends at a port.
    fn host_at(&self, port: &str) -> Option<&str> {
        let here = self.cables.iter().find(|cable| cable.ends.iter().any(|end| end.device == port));
        let ends = here.map(|cable| cable.ends.iter()).into_iter().flatten();
        let mut names = ends.map(|end| end.node.as_str());
        names.find(|name| self.hosts.iter().any(|host| host.name == *name))
    }

    /// Resolves a move. `what` names a host or a port.
    ///
    /// # Errors
    /// There is no such host or port, the port connects two switches, or the other port is taken.
    fn to_move(&self, fabric: &Fabric, what: &str, to: &str) -> Result<Moved> {
        ensure!(!self.has_bridges, "bridges have the ports of their cables only: nothing can move");
        let port = |text: &str| {
            let found = split_port(text).and_then(|(name, port)| {
                let index = switch_index(fabric, name)?;
                (port < PortNo(fabric.switches[index].ports)).then_some(())
            });
            found.with_context(|| {
                format!("there is no port {text}; expected a port of a switch, such as s1-p3")
            })
        };
        port(to)?;
        let host = self.hosts.iter().any(|host| host.name == what).then_some(what);
        let from = match host {
            Some(host) => {
                let at_host = |end: &CableEnd| end.node == host;
                let cable = self.cables.iter().find(|cable| cable.ends.iter().any(at_host));
                let far = cable.and_then(|cable| cable.ends.iter().find(|end| !at_host(end)));
                far.with_context(|| format!("{host} has no cable"))?.device.clone()
            }
            None => {
                port(what)
                    .context("expected a host, or a port of a switch with something in it")?;
                what.to_owned()
            }
        };
        let host = host.or_else(|| self.host_at(&from)).map(str::to_owned);
        let is_link = |port: &str| self.link(port).is_ok() && self.host_at(port).is_none();
        ensure!(!is_link(&from), "{from} is where a link of switches ends; expected a host's port");
        if let Some(host) = self.hosts.iter().find(|one| Some(&one.name) == host.as_ref()) {
            let name = &host.name;
            ensure!(host.server.is_none(), "{name} is a server that forwards: it stays");
        }
        if let Some(agent) = self.attached.iter().find(|agent| agent.port == to) {
            bail!("{to} is the port of agent {}; expected a free one", agent.name);
        }
        for uplink in &self.uplinks {
            let UplinkPlan { name, device, port, .. } = uplink;
            ensure!(from != *port, "{port} is {device}, the device of uplink {name}: it stays");
            ensure!(
                to != port,
                "{to} is taken by {device}, the device of {name}; expected a free port"
            );
        }
        if to != from && self.link(to).is_ok() {
            let ends = |cable: &&Cable| cable.ends.iter().any(|end| end.device == to);
            let ends = self.cables.iter().find(ends).map_or(&[][..], |cable| &cable.ends);
            let far = ends.iter().find(|end| end.device != to).map(|end| &end.device);
            let link = || far.map_or("a link".to_owned(), |far| format!("the link to {far}"));
            let what = self.host_at(to).map_or_else(link, str::to_owned);
            bail!("{to} is taken by {what}; expected a free port");
        }
        Ok(Moved { host, from, to: to.to_owned() })
    }
}

impl Lab {
    /// Moves a host, or any device plugged into a port, to another port. With `announce`, a host of
    /// the fabric file announces its addresses there, and this method waits until the fabric knows
    /// them, for at most five seconds. Without it, a host announces nothing.
    ///
    /// # Errors
    /// There is no such host or port, nothing is plugged into it, the other port is taken, the
    /// kernel refuses, the lab has ended, or its lock stays taken. In each case, nothing is moved.
    pub fn move_cable(&self, what: &str, to: &str, announce: bool) -> Result<Moved> {
        let changing = self.change()?;
        let plan = self.state().load_plan()?;
        let fabric = self.state().load_fabric()?;
        let moved = plan.to_move(&fabric, what, to)?;
        if moved.from != moved.to {
            self.part("move", &[&moved.from, &moved.to])?;
        }
        if let Some(host) = &moved.host {
            let mut moves = self.state().moves();
            moves.insert(host.clone(), moved.to.clone());
            if let Err(error) = self.state().write_moves(&moves) {
                // The move is undone if it cannot be recorded.
                self.part("move", &[&moved.to, &moved.from])?;
                return Err(error.context("cannot write down where it is"));
            }
        }
        // The lock is not needed while waiting for the fabric.
        drop(changing);
        if let Some(host) = moved.host.as_ref().filter(|_| announce) {
            self.part("announce", &[host])?;
        }
        Ok(moved)
    }
}

/// Joins the lab and moves the device of port `from` to the switch of port `to`.
pub(super) fn hand_over(state: &StateDir, from: &str, to: &str) -> Result<()> {
    let node = |port: &str| {
        let name = split_port(port).map(|(name, _)| name.to_owned());
        name.with_context(|| format!("{port} is no port"))
    };
    let (old, new) = (node(from)?, node(to)?);
    join(state)?;
    // No plan contains the device of a guest.
    enter_net(&new)?;
    ensure!(
        sys::device_flags(to).is_err(),
        "{to} is taken by a device of a guest; expected a free port"
    );
    enter_net(&old)?;
    ensure!(sys::device_flags(from).is_ok(), "nothing is plugged into {from}");
    // All slow steps come before the cable is disconnected.
    if old == new {
        run("ip", &["link", "set", "dev", from, "down"], "")?;
        let renamed = run("ip", &["link", "set", "dev", from, "name", to, "up"], "");
        if renamed.is_err() {
            let _ = sys::set_device_up(from, true);
        }
        renamed?;
        return Ok(());
    }
    run("ip", &["link", "set", "dev", from, "netns", &new, "name", to, "up"], "")?;
    enter_net(&new)?;
    sys::set_device_up(to, true).with_context(|| format!("{new} has no port {to}"))
}

#[cfg(test)]
mod tests {
    use super::super::options::UpOptions;
    use super::*;

    fn fabric() -> Fabric {
        let text = "name: a
topology:
  listed:
    switches: [s1, s2, s3]
    hosts: { h1: s1, h2: s2 }
    links: [[s1, s2], [s2-p6, s3-p7]]
agents: [{name: lb, at: s2-p3, run: [lb]}]
";
        axon_fabric::parse("a.yaml".as_ref(), text).unwrap()
    }

    #[test]
    fn a_host_or_a_port_moves_to_a_free_port_and_back() {
        let fabric = fabric();
        let mut plan = Plan::of(&fabric, &UpOptions::default()).unwrap();
        let home = plan.clone();
        let moved = plan.to_move(&fabric, "h1", "s3-p2").unwrap();
        let from = moved.from.clone();
        assert_eq!(
            moved,
            Moved { host: Some("h1".into()), from: from.clone(), to: "s3-p2".into() }
        );
        assert_eq!(plan.to_move(&fabric, &from, "s3-p2").unwrap(), moved);
        plan.follow(&[("h1".to_owned(), "s3-p2".to_owned())].into());
        assert_eq!(plan.host_at("s3-p2"), Some("h1"));
        let link = plan.link("h1,s3").unwrap();
        assert!(link.ends.iter().any(|end| end.device == "s3-p2"), "{link:?}");
        assert_eq!(plan.to_move(&fabric, "h1", &from).unwrap().from, "s3-p2");
        // The port of a guest is not in the plan.
        let guest = plan.to_move(&fabric, "s3-p1", "s2-p4").unwrap();
        assert_eq!(guest.host, None);
        plan.follow(&[("h1".to_owned(), from)].into());
        assert_eq!(plan, home);
    }

    #[test]
    fn what_cannot_move_is_refused_with_the_way_out() {
        let fabric = fabric();
        let plan = Plan::of(&fabric, &UpOptions::default()).unwrap();
        let at_h2 = plan.to_move(&fabric, "h2", "s3-p2").unwrap().from;
        for (what, to, why) in [
            ("h1", "s3-p7", "s3-p7 is taken by the link to s2-p6; expected a free port"),
            ("h1", &at_h2, "is taken by h2; expected a free port"),
            ("h1", "s2-p3", "s2-p3 is the port of agent lb; expected a free one"),
            ("h1", "s3-p99", "there is no port s3-p99; expected a port of a switch"),
            ("h1", "h2", "there is no port h2"),
            ("h9", "s3-p2", "expected a host, or a port of a switch with something in it"),
            ("s2-p6", "s3-p2", "s2-p6 is where a link of switches ends; expected a host's port"),
        ] {
            let error = plan.to_move(&fabric, what, to).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{what} {to}: {error:#}");
        }
    }
}
