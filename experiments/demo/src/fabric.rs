//! The fabrics in the demo: the two topologies, with links as fast as the data plane on this
//! machine can easily carry.

use crate::iperf::MTU;
use axon_fabric::model::DataplaneKind;
use axon_linux::machine::Machine;

/// The line, with hosts numbered and connected as in the paper.
pub const LINE: &str = include_str!("table1-line.yaml");
/// The ring, with the hosts of the line.
pub const RING: &str = include_str!("table1-ring.yaml");

/// Links where the kernel forwards the frames. Their rate is a fifth of the paper's.
const KERNEL_LINKS: &str = "{ rate: 200Mbps }";
/// Links where a process forwards the frames. Two quiet cores are less than half busy with this
/// rate.
const PROCESS_LINKS: &str = "{ rate: 50Mbps, queue: 96KiB }";

/// Returns the data plane that a fabric without traffic classes uses on this machine.
pub(crate) fn carrier(machine: &Machine) -> DataplaneKind {
    if machine.no_tc.is_none() { DataplaneKind::Tc } else { DataplaneKind::Software }
}

/// Returns the fabric file `topology` under another name, which differs from any lab that the user
/// may run from the same file. It has the MTU of the load and the rate of its links.
pub(crate) fn scenario(topology: &str, name: &str, carrier: DataplaneKind) -> String {
    let links = if carrier == DataplaneKind::Software { PROCESS_LINKS } else { KERNEL_LINKS };
    let rename = |line: &str| match line.strip_prefix("name:") {
        Some(_) => format!("name: {name}\n"),
        None => format!("{line}\n"),
    };
    let text: String = topology.lines().map(rename).collect();
    format!("{text}mtu: {MTU}\nlinks: {links}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table1::AXON_OF_HOST;
    use std::path::Path;

    #[test]
    fn both_scenarios_are_the_experiment_under_any_name_and_on_any_data_plane() {
        let planes = [
            (Machine::ABLE, DataplaneKind::Tc, 200),
            (Machine::without("x"), DataplaneKind::Software, 50),
        ];
        for (machine, expected, mbps) in planes {
            assert_eq!(carrier(&machine), expected);
            for (topology, links) in [(LINE, 2), (RING, 3)] {
                let text = scenario(topology, "demo-x", expected);
                let fabric = axon_fabric::parse(Path::new("x.yaml"), &text).unwrap();
                assert_eq!((fabric.name.as_str(), fabric.links.len()), ("demo-x", links));
                assert!(fabric.hosts.iter().map(|host| host.switch).eq(AXON_OF_HOST));
                assert!(fabric.hosts.iter().all(|host| host.ip.is_none()));
                let rates = fabric.links.iter().map(|link| link.wire.rate);
                let mut rates = rates.chain(fabric.hosts.iter().map(|host| host.wire.rate));
                assert!(rates.all(|rate| rate.bits_per_second() == mbps * 1_000_000));
            }
        }
    }
}
