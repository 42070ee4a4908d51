//! Takes links of a running lab down and restores them.

use super::announce;
use super::enter::join;
use super::namespaces;
use super::options::PART;
use super::plan::{Cable, CableEnd, Plan};
use super::running::Lab;
use super::state::StateDir;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for the fabric to relearn a host after its link has been restored.
const KNOWN_LIMIT: Duration = Duration::from_secs(5);

impl Plan {
    /// Returns the link that `text` names: one of its two ports (`s1-p2`), or the nodes at its ends
    /// (`s1,s2` or `h1,s1`), in any order.
    ///
    /// # Errors
    /// There is no such link, or several links join the two nodes. The error lists the existing
    /// links.
    pub(crate) fn link(&self, text: &str) -> Result<&Cable> {
        let expected = "expected two nodes such as s1,s2, or a port such as s1-p2";
        let Some((a, b)) = text.split_once(',') else {
            let mut found = self.cables.iter();
            let link = found.find(|cable| cable.ends.iter().any(|end| end.device == text));
            return link.with_context(|| format!("there is no link at {text}; {expected}"));
        };
        for name in [a, b] {
            let mut nodes = self.cables.iter().flat_map(|cable| &cable.ends);
            if !nodes.any(|end| end.node == name) {
                bail!("{text}: there is no node {name}; {expected}");
            }
        }
        let joins = |cable: &&Cable| {
            let [x, y] = cable.ends.each_ref().map(|end| end.node.as_str());
            (x, y) == (a, b) || (x, y) == (b, a)
        };
        let found: Vec<&Cable> = self.cables.iter().filter(joins).collect();
        match found[..] {
            [link] => Ok(link),
            [] => {
                let ends = self.cables.iter().map(|cable| &cable.ends);
                let peers: Vec<&str> = ends
                    .filter_map(|[x, y]| match a {
                        _ if x.node == a => Some(y.node.as_str()),
                        _ if y.node == a => Some(x.node.as_str()),
                        _ => None,
                    })
                    .collect();
                bail!("{text}: no link joins them; {a} has links to {}", peers.join(" "))
            }
            _ => {
                let port = |cable: &&Cable| {
                    let end = cable.ends.iter().find(|end| end.node == a);
                    end.map_or_else(String::new, |end| end.device.clone())
                };
                let ports: Vec<String> = found.iter().map(port).collect();
                bail!(
                    "{text}: {} links join them; expected a port of one: {}",
                    found.len(),
                    ports.join(" ")
                )
            }
        }
    }
}

impl Lab {
    /// Takes a link down or restores it, at both ends. `Plan::link` describes its name. Returns
    /// the ports at its ends. A host whose link is restored announces its addresses until the
    /// fabric knows them, for at most five seconds.
    ///
    /// # Errors
    /// There is no such link, the kernel refuses, the lab has ended, or another process holds its
    /// lock for too long.
    pub fn set_link(&self, link: &str, up: bool) -> Result<[String; 2]> {
        let changing = self.change()?;
        let plan = self.state().load_plan()?;
        let cable = plan.link(link)?;
        for CableEnd { node, device, .. } in &cable.ends {
            self.part("device", &[node, device, if up { "up" } else { "down" }])?;
        }
        drop(changing);
        for end in cable.ends.iter().filter(|_| up) {
            if plan.hosts.iter().any(|host| host.name == end.node) {
                self.part("announce", &[&end.node])?;
            }
        }
        Ok(cable.ends.each_ref().map(|end| end.device.clone()))
    }

    /// Runs a process of the lab to its end.
    pub(super) fn part(&self, part: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PART, part]).arg(self.state().path()).args(arguments);
        let output = command.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{}", said.trim().trim_start_matches("axon: "));
        }
        Ok(())
    }
}

/// Joins the lab and announces the addresses of `host` until the controller knows them.
pub(super) fn announce_host(state: &StateDir, host: &str) -> Result<()> {
    let plan = state.load_plan()?;
    join(state)?;
    let hosts = plan.hosts.iter().filter(|one| one.name == host);
    let (lab, end) = (StateDir::at(namespaces::LAB), Instant::now() + KNOWN_LIMIT);
    announce::until_known(&lab, &plan, hosts, end, |_| Ok(())).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_the_name_of_its_nodes_or_of_a_port() {
        let text = "name: a
topology:
  listed:
    switches: [s1, s2, s3]
    hosts: { h1: s1 }
    links: [[s1, s2], [s1-p6, s2-p7], [s2, s3]]
";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        let plan = Plan::of(&fabric, &super::super::options::UpOptions::default()).unwrap();
        let ends =
            |text: &str| plan.link(text).map(|link| link.ends.each_ref().map(|end| &end.device));
        for (name, port) in [("s2,s3", "s3-p0"), ("s3,s2", "s3-p0"), ("s1,h1", "h1-p0")] {
            assert_eq!(ends(name).unwrap(), ends(port).unwrap(), "{name}");
            assert!(ends(name).unwrap().iter().any(|end| *end == port), "{name}");
        }
        let controller = ends("c1,s1").unwrap();
        assert_eq!(controller[0], "c1-p0");
        for (name, why) in [
            ("s1,s2", "2 links join them; expected a port of one: s1-p"),
            ("s2,s1", "2 links join them; expected a port of one: s2-p"),
            ("h1,s3", "no link joins them; h1 has links to s1"),
            ("s1,s9", "there is no node s9"),
            ("s1-p99", "there is no link at s1-p99"),
            ("s1", "there is no link at s1; expected two nodes such as s1,s2"),
        ] {
            let error = plan.link(name).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
