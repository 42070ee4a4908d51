//! The ring with Linux bridges in place of switches. It shows the value of the redundant link under
//! a spanning tree, and the outage after a cut.
//!
//! The kernel has the spanning tree of IEEE 802.1D-1998, not RSTP. Both block the same port in a
//! ring. The bridge with the least identifier is the root. On the link that is farthest from the
//! root, the end at the bridge with the greater identifier is blocked. They differ in the length of
//! the outage after a cut.

use super::beside::Spanning;
use super::cut::Cut;
use super::phases::{self, CutPlan};
use super::world::World;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::time::Duration;

/// Timeout for all ports to forward or block: the kernel's least forward delay is 2 s, and each
/// port waits for it twice.
const SETTLED_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);
/// Time limit for an answer from `bridge(8)`.
const ANSWER: Duration = Duration::from_secs(15);

/// Plan for the link cut. What the other bridges have learned from the lost one ages for up to 6 s,
/// and the blocked port forwards 4 s after that. So the last second is like that after any cut.
const CUT: CutPlan = CutPlan { load_s: 17, probes: Duration::from_secs(15), is_tree: true };

/// Port in the output of `bridge -j link show`.
#[derive(Deserialize)]
struct Port {
    ifname: String,
    state: String,
}

/// Returns the blocked ports of all bridges, once no port is in transition.
///
/// # Errors
/// A bridge does not converge, or the user stops the run.
pub(crate) fn settle(world: &World<'_>) -> Result<Spanning> {
    let tries = SETTLED_LIMIT.as_millis() / LOOK.as_millis();
    for _ in 0..tries {
        let ports = ports(world)?;
        if let Some(blocked) = blocked(&ports) {
            return Ok(Spanning { root: world.fabric().switches[0].name.clone(), blocked });
        }
        world.stop().sleep(LOOK)?;
    }
    bail!("the bridges' spanning tree is not there after {SETTLED_LIMIT:?}")
}

fn ports(world: &World<'_>) -> Result<Vec<Port>> {
    let command = ["bridge", "-j", "link", "show"].map(str::to_owned);
    let mut ports = Vec::new();
    for switch in &world.fabric().switches {
        let shown = world.start_on(&switch.name, &command, "bridge")?;
        let shown = shown.succeed(ANSWER, world.stop())?;
        let shown: Vec<Port> = serde_json::from_str(&shown).context("bridge(8) printed no JSON")?;
        ports.extend(shown);
    }
    Ok(ports)
}

/// Returns the blocked ports if every port is blocked or forwards, and at least one is blocked, as
/// in any ring.
fn blocked(ports: &[Port]) -> Option<Vec<String>> {
    let mut blocked = Vec::new();
    for Port { ifname, state } in ports {
        match state.as_str() {
            "forwarding" => {}
            "blocking" => blocked.push(ifname.clone()),
            _ => return None,
        }
    }
    (!blocked.is_empty()).then_some(blocked)
}

/// Cuts the same link as [`World::cut`], under the same load.
///
/// # Errors
/// See [`phases::cut`].
pub(crate) fn cut(world: &World<'_>, link_bits_per_second: u64, congestion: &str) -> Result<Cut> {
    phases::cut(world, &CUT, link_bits_per_second, congestion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_there_when_no_port_listens_or_learns_and_one_is_blocked() {
        let ports = |states: [&str; 3]| {
            let json =
                |state| format!(r#"{{"ifindex":1001,"ifname":"{state}-p0","state":"{state}"}}"#);
            let text = format!("[{}]", states.map(json).join(","));
            serde_json::from_str::<Vec<Port>>(&text).unwrap()
        };
        let found = |states| blocked(&ports(states));
        assert_eq!(
            found(["forwarding", "blocking", "forwarding"]),
            Some(vec!["blocking-p0".into()])
        );
        assert_eq!(found(["forwarding", "listening", "blocking"]), None);
        assert_eq!(found(["forwarding", "learning", "blocking"]), None);
        assert_eq!(found(["forwarding", "forwarding", "forwarding"]), None, "still a loop");
    }
}
