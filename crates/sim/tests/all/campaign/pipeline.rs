//! Axon as a program compared with the native plane, on the same fabrics with the same failures.

use super::{attempt, share_out};
use axon_node::{Dataplane, PortView};
use axon_sim::{DataplaneKind, World};
use axon_wire::PortNo;

/// Seeds that the rest of the campaign does not run.
const SEEDS: std::ops::Range<u64> = 10_000..10_100;

/// Deliveries of frames in a world.
#[derive(Debug, PartialEq, Eq)]
struct Deliveries {
    /// Requests sent and answered, of each ping of each host.
    pings: Vec<Vec<(u32, u32)>>,
    /// Frames sent by each port of each switch.
    sent: Vec<Vec<u64>>,
    /// Hash of every event of every node.
    trace_hash: u64,
}

impl Deliveries {
    fn of(world: &World) -> Deliveries {
        let pings = |host| {
            let host = world.host(host).into_iter();
            host.flat_map(|host| (0..).map_while(|number| host.ping_stats(number)))
                .map(|of| (of.sent, of.received))
                .collect()
        };
        let sent = |switch| {
            let planes = world.switch(switch).map(|switch| switch.plane()).into_iter();
            let ports = planes.flat_map(|plane| (0..plane.count()).map(move |port| (plane, port)));
            ports.map(|(plane, port)| plane.counters().port(PortNo(port)).tx_frames).collect()
        };
        Deliveries {
            pings: (0..world.fabric().hosts.len()).map(pings).collect(),
            sent: (0..world.fabric().switches.len()).map(sent).collect(),
            trace_hash: world.engine().trace_hash(),
        }
    }

    fn answered(&self) -> u32 {
        self.pings.iter().flatten().map(|&(_, received)| received).sum()
    }
}

#[test]
fn axon_as_a_program_delivers_what_the_native_plane_delivers_on_100_random_fabrics_with_failures() {
    let seeds: Vec<u64> = SEEDS.collect();
    let runs = share_out(&seeds, |&seed| {
        let on = |plane| attempt((plane, seed)).map(|world| Deliveries::of(&world));
        Some((seed, on(DataplaneKind::Software), on(DataplaneKind::Pipeline)))
    });
    assert_eq!(runs.len(), 100);
    for (seed, native, program) in runs {
        let native = native.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        let program = program.unwrap_or_else(|wrong| panic!("seed {seed}, pipeline: {wrong}"));
        assert_eq!(program, native, "seed {seed}");
        assert!(native.answered() > 0, "seed {seed}");
    }
}
