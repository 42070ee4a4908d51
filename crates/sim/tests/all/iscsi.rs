//! iSCSI over TCP: every command gets its data and its status, and both ends bound the rate.

use crate::common;
use axon_node::Drop;
use axon_sim::World;
use axon_sim::apps::{AppId, InitiatorPlan, IscsiLimits, Plan, Processor, TargetPlan, TcpOptions};
use axon_wire::{Bytes, Rate, Span};

const FABRIC: &str = "
name: iscsi
topology: { line: { switches: 1, hosts_per_switch: 2 } }
links: { rate: 10Gbps, latency: 500ns, queue: 1MiB }
";
const PORT: u16 = 3260;
const COMMANDS: u64 = 20;
const LENGTH: u32 = 300_001;

/// Runs commands, `depth` of them outstanding, to their end; returns the world, the initiator at
/// the first host and the target at the second.
fn run(is_read: bool, depth: u32, processor: Processor) -> (World, AppId, AppId) {
    let mut world = World::new(&common::fabric(FABRIC), 1);
    common::await_addresses(&mut world);
    let options = TcpOptions { ack_delay: None, ..TcpOptions::default() };
    let limits = IscsiLimits::default();
    let serve = TargetPlan { port: PORT, options, limits, processor };
    let target = world.with_host(1, |host, now| host.start(Plan::IscsiTarget(serve), now)).unwrap();
    let plan = InitiatorPlan {
        target: world.address(1).unwrap(),
        port: PORT,
        options,
        limits,
        processor,
        is_read,
        length: LENGTH,
        depth,
        count: Some(COMMANDS),
    };
    let initiator =
        world.with_host(0, |host, now| host.start(Plan::IscsiInitiator(plan), now)).unwrap();
    let limit = world.now() + Span::from_secs(5);
    let done =
        |world: &World| world.flow_stats(0, initiator).is_some_and(|stats| stats.done.is_some());
    assert!(world.run_until_true(limit, done), "commands are left");
    (world, initiator, target)
}

/// Time from the first command to the last status.
fn took((world, initiator, _): &(World, AppId, AppId)) -> Span {
    let stats = world.flow_stats(0, *initiator).unwrap();
    stats.done.unwrap().since(stats.first_sent.unwrap())
}

#[test]
fn every_command_has_its_data_and_its_status() {
    // Data is padded to whole words.
    let data = COMMANDS * u64::from(LENGTH.next_multiple_of(4));
    for (is_read, from, to) in [(true, 1, 0), (false, 0, 1)] {
        let (world, initiator, target) = run(is_read, 4, Processor::default());
        let stats = [world.flow_stats(0, initiator).unwrap(), world.flow_stats(1, target).unwrap()];
        assert_eq!(
            (stats[0].completed, stats[1].completed, stats[0].failed),
            (COMMANDS, COMMANDS, 0)
        );
        assert_eq!(stats[0].times.count(), COMMANDS);
        let received = [from, to].map(|end: usize| stats[end].received.bytes);
        assert_eq!(received, [Bytes(0), Bytes(data)], "read: {is_read}");
        // 37 segments of a read, each with a header; of a write one is immediate data, and two R2Ts
        // request the rest.
        let headers = [stats[from].sent_bytes.0 - data, stats[to].sent_bytes.0].map(|all| all / 48);
        let wanted = if is_read { [37, 1] } else { [1 + 32 + 4, 2 + 1] };
        assert_eq!(headers, wanted.map(|each: u64| each * COMMANDS), "read: {is_read}");
    }
}

#[test]
fn a_slow_copy_bounds_the_rate_and_the_window_takes_it_up() {
    let copy = Rate::gbps(1);
    for is_read in [true, false] {
        let ran = run(is_read, 4, Processor { per_pdu: Span::ZERO, copy: Some(copy) });
        let least = copy.time_for(Bytes(COMMANDS * u64::from(LENGTH)));
        let took = took(&ran);
        assert!(took >= least && took.ticks() < least.ticks() * 11 / 10, "{took} of {least}");
        let dropped = ran.0.engine().accounts().dropped[Drop::QueueFull as usize];
        assert_eq!(dropped, 0, "the window closes before anything is lost");
    }
}

#[test]
fn more_commands_outstanding_hide_the_time_of_pdus() {
    let processor = Processor { per_pdu: Span::from_micros(20), copy: None };
    for is_read in [true, false] {
        let [one, four] = [1, 4].map(|depth| took(&run(is_read, depth, processor)));
        assert!(four < one, "read {is_read}: {four}, {one}");
    }
}
