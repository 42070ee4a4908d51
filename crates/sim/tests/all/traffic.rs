//! Applications in hosts: each behaves as documented, and every frame is accounted for.

use crate::common::{self, Builder, assert_sound, boot, line, ring};
use axon_fabric::capture::CapturedFrame;
use axon_fabric::model::{App, Cable, FaultKind, Network, Traffic};
use axon_fabric::traffic::{
    Congestion, FileService, Reduction, Rewrite, Sizes, Tcp, Transport as FileTransport,
    arp_questions,
};
use axon_sim::World;
use axon_sim::apps::{
    AppId, FlowStats, Plan, Protocol, RequestPlan, RespondPlan, TcpOptions, TcpPlan, Transport,
    UdpPlan,
};
use axon_sim::results::FlowReport;
use axon_simhost::Host;
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Rate, Span, Time};
use std::net::Ipv4Addr;

const PORT: u16 = 5001;
const TCP: Tcp = Tcp { congestion: Congestion::Reno, buffer: Bytes(128 << 10) };

fn give(world: &mut World, host: usize, work: impl FnOnce(&mut Host, Time) -> AppId) -> AppId {
    world.with_host(host, work).expect("the host has power")
}

fn ip(world: &World, host: usize) -> Ipv4Addr {
    world.address(host).expect("it has an address")
}

fn stats(world: &World, host: usize, id: AppId) -> &FlowStats {
    world.flow_stats(host, id).expect("it runs")
}

/// An application, and pairs of hosts that run it.
type Entry<'a> = (App, &'a [(usize, usize)]);

/// Runs one entry of traffic for a while and returns its flows; every frame must be accounted for,
/// and every byte correct.
fn run(builder: &mut Builder, app: App, flows: &[(usize, usize)], span: Span) -> Vec<FlowReport> {
    run_some(builder, &[(app, flows)], span)
}

fn run_some(builder: &mut Builder, entries: &[Entry<'_>], span: Span) -> Vec<FlowReport> {
    let entry = |(number, (app, flows)): (usize, &Entry<'_>)| Traffic {
        name: format!("t{number}"),
        start: Span::ZERO,
        stop: None,
        hosts: (0..builder.fabric.hosts.len()).collect(),
        flows: flows.to_vec(),
        priority: Priority::ZERO,
        app: app.clone(),
    };
    builder.fabric.traffic = entries.iter().enumerate().map(entry).collect();
    let mut world = boot(builder);
    world.start_traffic();
    world.run_for(span);
    assert_sound(&world);
    let report = world.flows().report();
    assert!(report.iter().all(|flow| flow.wrong_bytes == 0), "{report:#?}");
    report
}

#[test]
fn datagrams_arrive_in_order_at_their_rate() {
    let app = App::Udp { payload: 1000, interval: Span::from_micros(20), count: Some(500) };
    let report = run(&mut ring(3, 1, true), app, &[(0, 2)], Span::from_millis(20));
    let flow = &report[0];
    assert_eq!((flow.sent_packets, flow.received_packets), (500, 500));
    assert_eq!((flow.lost_packets, flow.reordered, flow.received_bytes), (Some(0), 0, 500_000));
    // 1000 bytes every 20 us are 400 Mb/s; the last one is in flight a little longer than its
    // interval.
    let goodput = flow.goodput_bps.unwrap();
    assert!((399_000_000..=401_000_000).contains(&goodput), "{goodput}");
    let latency = flow.latency.unwrap();
    assert_eq!((latency.count, latency.min_ns), (500, latency.max_ns), "the wire is never busy");
}

#[test]
fn two_flows_share_a_line_and_a_queue_drops_the_rest() {
    let app = App::Udp { payload: 1472, interval: Span::from_nanos(12_304), count: None };
    let flows = [(0, 2), (1, 3)];
    let report = run(&mut line(2, 2, true), app, &flows, Span::from_millis(60));
    let sum: u64 = report.iter().map(|flow| flow.goodput_bps.unwrap()).sum();
    assert!((940_000_000..=957_200_000).contains(&sum), "{sum} of two through one link");
    let shares: Vec<u64> = report.iter().map(|flow| flow.received_packets).collect();
    assert!(shares[0].abs_diff(shares[1]) <= 2, "round robin is fair: {shares:?}");
    for flow in &report {
        let (lost, in_flight) = (flow.lost_packets.unwrap(), flow.in_flight_packets.unwrap());
        assert_eq!(flow.lost.iter().collect::<Vec<_>>(), [(&"queue_full", &lost)]);
        assert_eq!(flow.sent_packets, flow.received_packets + lost + in_flight);
        // Both share a full queue of 128 KiB; frames queued in their hosts are separate.
        assert!(lost > 1000 && (20..200).contains(&in_flight), "{flow:#?}");
    }
}

#[test]
fn what_ends_with_a_link_a_switch_or_in_a_host_is_lost_and_nothing_stays_in_flight() {
    let app = App::Udp { payload: 1472, interval: Span::from_nanos(12_304), count: Some(3_000) };
    let traffic = |app: App| Traffic {
        name: "t".to_owned(),
        start: Span::ZERO,
        stop: None,
        hosts: vec![0, 1, 2, 3],
        flows: vec![(0, 2), (1, 3)],
        priority: Priority::ZERO,
        app,
    };
    let faults = [
        FaultKind::LinkDown(0),
        FaultKind::LinkSilent(0),
        FaultKind::SwitchDown(1),
        FaultKind::HostDown(2),
        FaultKind::HostDown(0),
        FaultKind::Loss(Cable::Link(0), 100_000),
    ];
    for fault in faults {
        let mut builder = line(2, 2, true);
        builder.fabric.traffic = vec![traffic(app.clone())];
        let mut world = boot(&builder);
        world.start_traffic();
        world.run_for(Span::from_millis(20));
        world.inject(fault);
        // Long enough for frames without a route to be dropped.
        world.run_for(Span::from_secs(20));
        for flow in world.flows().report() {
            let (lost, left) = (flow.lost_packets.unwrap(), flow.in_flight_packets.unwrap());
            assert_eq!(flow.sent_packets, flow.received_packets + lost, "{fault:?}: {flow:#?}");
            assert_eq!(left, 0, "{fault:?}: {flow:#?}");
            assert_eq!(lost, flow.lost.values().sum::<u64>(), "{fault:?}: {flow:#?}");
        }
    }
}

#[test]
fn tcp_fills_a_gigabit_link_and_every_byte_is_right() {
    let app = App::Tcp { bytes: Some(Bytes(10_000_000)), tcp: TCP };
    let report = run(&mut line(2, 1, true), app, &[(0, 1)], Span::from_millis(200));
    let flow = &report[0];
    assert_eq!((flow.received_bytes, flow.completed, flow.retransmits), (10_000_000, 1, 0));
    // 1460 bytes of payload in 1538 on the wire, and three more for the route.
    let most = 1_000_000_000 / 1541 * 1460;
    let goodput = flow.goodput_bps.unwrap();
    assert!((most / 100 * 98..=most).contains(&goodput), "{goodput} of {most}");
}

#[test]
fn tcp_over_a_line_that_loses_frames_delivers_every_byte() {
    let mut builder = line(2, 1, true);
    builder.fabric.traffic.clear();
    let mut world = boot(&builder);
    world.inject(FaultKind::Loss(Cable::Link(0), 2_000));
    let sink = give(&mut world, 1, |host, now| {
        host.start(Plan::TcpSink { port: PORT, options: TcpOptions::default() }, now)
    });
    let target = ip(&world, 1);
    let plan =
        TcpPlan { target, port: PORT, bytes: Some(3_000_000), options: TcpOptions::default() };
    let sender = give(&mut world, 0, |host, now| host.start(Plan::Tcp(plan), now));
    let done = world.run_until_true(world.now() + Span::from_secs(60), |world| {
        stats(world, 0, sender).done.is_some()
    });
    assert!(done, "{:?}", stats(&world, 0, sender));
    let received = &stats(&world, 1, sink).received;
    assert_eq!((received.bytes, received.wrong_bytes), (Bytes(3_000_000), 0));
    let sent = stats(&world, 0, sender);
    assert!(sent.retransmits > 0 && sent.completed == 1, "{sent:?}");
    assert_sound(&world);
}

#[test]
fn a_stopped_stream_stops_and_closes() {
    let mut world = boot(&line(1, 2, true));
    let sink = give(&mut world, 1, |host, now| {
        host.start(Plan::TcpSink { port: PORT, options: TcpOptions::default() }, now)
    });
    let target = ip(&world, 1);
    let plan = TcpPlan { target, port: PORT, bytes: None, options: TcpOptions::default() };
    let sender = give(&mut world, 0, |host, now| host.start(Plan::Tcp(plan), now));
    let stop = world.now() + Span::from_millis(10);
    world.with_host(0, |host, _| host.stop_at(sender, stop));
    let bytes = |world: &World| stats(world, 1, sink).received.bytes.0;
    let mut full = 0;
    for _ in 0..50 {
        let before = bytes(&world);
        world.run_for(Span::from_millis(1));
        full += u64::from(bytes(&world) - before > 115_000);
    }
    let sent = stats(&world, 0, sender);
    let received = &stats(&world, 1, sink).received;
    assert_eq!(received.bytes, sent.sent_bytes, "what was in the buffer still goes out");
    let port = world.host(0).unwrap().source_port(sender).unwrap();
    let own = world.host(1).unwrap().received_from(sink, (ip(&world, 0), port)).unwrap();
    assert_eq!(own.bytes, received.bytes);
    assert!((7..=16).contains(&full), "{full} full milliseconds");
    assert_eq!(stats(&world, 1, sink).completed, 1, "the sender has closed");
    assert_sound(&world);
}

/// Sends 20 MB to a host that reads at half the rate from a ring of 512 frames, with a window twice
/// as large. Returns the number of retransmissions, the number of drops, and the duration.
fn overflow(sack: bool) -> (u64, u64, Span) {
    let mut world = boot(&line(2, 1, true));
    let rate = Rate::from_bits_per_second(500_000_000);
    world.with_host(1, |host, _| host.rx_ring_mut().set_rate(rate));
    if !sack {
        world.with_host(0, |host, _| host.without_sack());
    }
    let options = TcpOptions { buffer_bytes: 3 << 19, ..TcpOptions::default() };
    let sink =
        give(&mut world, 1, |host, now| host.start(Plan::TcpSink { port: PORT, options }, now));
    let plan = TcpPlan { target: ip(&world, 1), port: PORT, bytes: Some(20_000_000), options };
    let began = world.now();
    let sender = give(&mut world, 0, |host, now| host.start(Plan::Tcp(plan), now));
    let limit = began + Span::from_secs(60);
    let done = |world: &World| stats(world, 0, sender).done.is_some();
    assert!(world.run_until_true(limit, done), "it is stuck");
    let received = &stats(&world, 1, sink).received;
    assert_eq!((received.bytes, received.wrong_bytes), (Bytes(20_000_000), 0));
    let took = stats(&world, 0, sender).done.unwrap().since(began);
    let again = stats(&world, 0, sender).retransmits;
    let dropped = world.engine().accounts().dropped[axon_node::Drop::QueueFull as usize];
    assert_sound(&world);
    (again, dropped, took)
}

#[test]
fn losses_of_many_segments_at_once_cost_no_timeout_with_sack_and_take_longer_without() {
    let (again, dropped, took) = overflow(true);
    println!("with SACK: {again} again, {dropped} dropped, {took}");
    assert!(dropped > 100 && took < Span::from_millis(600), "{dropped} dropped, {took}");
    // The ring admits every second frame; each dropped one is retransmitted, and few others are.
    assert!(again >= dropped && again < dropped * 5 / 4, "{again} again, {dropped} dropped");
    let (again, dropped, took) = overflow(false);
    println!("without: {again} again, {dropped} dropped, {took}");
    // One segment is repaired per round trip, or by a timeout (RFC 6582).
    assert!(dropped > 100 && took > Span::from_millis(500), "{dropped} dropped, {took}");
}

#[test]
fn requests_over_tcp_and_udp_take_one_round_trip() {
    for transport in [Transport::Tcp(TcpOptions::default()), Transport::Udp] {
        let mut world = boot(&line(2, 1, true));
        let protocol = Protocol::Fixed { request: 1, response: 1 };
        let options = TcpOptions::default();
        let plan = RespondPlan { port: PORT, options, protocol, service: Span::from_micros(5) };
        let server = give(&mut world, 1, |host, now| host.start(Plan::Respond(plan), now));
        let plan = RequestPlan {
            targets: vec![ip(&world, 1)],
            port: PORT,
            transport,
            request: 1,
            response: 1,
            think: Span::from_micros(3),
            count: Some(100),
            timeout: Span::from_millis(10),
        };
        let client = give(&mut world, 0, |host, now| host.start(Plan::Request(plan), now));
        world.run_for(Span::from_millis(20));
        let asked = stats(&world, 0, client);
        assert_eq!((asked.completed, asked.failed, asked.retransmits), (100, 0, 0));
        assert_eq!(stats(&world, 1, server).completed, 100);
        // Three links of 1 us and a frame of 72 bytes (some more between switches) each way,
        // and the server's 5 us.
        let least = Span::from_nanos(2 * 3 * (1000 + 72 * 8) + 5000);
        let (min, max) = (asked.times.min().unwrap(), asked.times.max().unwrap());
        assert!(min >= least && max < least + Span::from_micros(2), "{min} {max} {least}");
        assert_sound(&world);
    }
}

/// Returns the plans of 200 requests of 100 bytes to the second host, and of its server.
fn requests(world: &World, transport: Transport, timeout: Span) -> (RequestPlan, RespondPlan) {
    let request = RequestPlan {
        targets: vec![ip(world, 1)],
        port: PORT,
        transport,
        request: 100,
        response: 100,
        think: Span::ZERO,
        count: Some(200),
        timeout,
    };
    let protocol = Protocol::Fixed { request: 100, response: 100 };
    let options = TcpOptions::default();
    (request, RespondPlan { port: PORT, options, protocol, service: Span::ZERO })
}

#[test]
fn a_lost_request_is_sent_again() {
    for (transport, millis, failed) in
        [(Transport::Udp, 300, 2), (Transport::Tcp(TcpOptions::default()), 30_000, 0)]
    {
        let mut builder = line(2, 1, true);
        let mut world = boot(&builder);
        builder.loss(0);
        world.inject(FaultKind::Loss(Cable::Link(0), 100_000));
        let (request, respond) = requests(&world, transport, Span::from_millis(1));
        give(&mut world, 1, |host, now| host.start(Plan::Respond(respond), now));
        let client = give(&mut world, 0, |host, now| host.start(Plan::Request(request), now));
        world.run_for(Span::from_millis(millis));
        let asked = stats(&world, 0, client);
        assert_eq!(asked.completed + asked.failed, 200, "{asked:?}");
        assert!(asked.retransmits > 10 && asked.failed <= failed, "{asked:?}");
        assert_sound(&world);
    }
}

#[test]
fn a_client_that_starts_later_resolves_its_server_then() {
    let mut world = boot(&line(2, 1, true));
    let tcp = Transport::Tcp(TcpOptions::default());
    let (request, respond) = requests(&world, tcp, Span::from_millis(10));
    give(&mut world, 1, |host, now| host.start(Plan::Respond(respond), now));
    let start = Span::from_millis(20);
    let client = give(&mut world, 0, |host, now| host.start(Plan::Request(request), now + start));
    world.run_for(start);
    assert_eq!(stats(&world, 0, client).sent_packets, 0);
    world.run_for(Span::from_millis(9));
    assert_eq!(stats(&world, 0, client).completed, 200);
}

#[test]
fn a_refused_connection_is_opened_again_at_the_timeout() {
    let mut world = boot(&line(2, 1, true));
    let tcp = Transport::Tcp(TcpOptions::default());
    let (request, respond) = requests(&world, tcp, Span::from_millis(10));
    let client = give(&mut world, 0, |host, now| host.start(Plan::Request(request), now));
    let ports = |world: &World| world.host(0).unwrap().source_port(client).unwrap();
    world.run_for(Span::from_millis(5));
    let first = ports(&world);
    world.run_for(Span::from_millis(30));
    assert_eq!(ports(&world) - first, 3, "one attempt in 10 ms");
    give(&mut world, 1, |host, now| host.start(Plan::Respond(respond), now));
    world.run_for(Span::from_millis(30));
    let asked = stats(&world, 0, client);
    assert_eq!((asked.completed, asked.failed, ports(&world) - first), (200, 0, 4));
    assert_sound(&world);
}

#[test]
fn an_incast_waits_for_every_answer() {
    let app = App::Incast {
        transport: FileTransport::Tcp(TCP),
        bytes: 20_000,
        think: Span::ZERO,
        rounds: Some(5),
    };
    let flows = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)];
    let report = run(&mut ring(3, 2, true), app, &flows, Span::from_millis(100));
    assert_eq!(report.len(), 1);
    let flow = &report[0];
    assert_eq!((flow.completed, flow.failed, flow.received_bytes), (5, 0, 5 * 5 * 20_000));
    // 100,000 bytes arrive through one link of 1 Gb/s.
    assert!(flow.times.unwrap().min_ns > 800_000, "{flow:?}");
    assert_eq!((flow.from.as_str(), flow.to.as_str()), ("*", "h1"));
}

#[test]
fn an_all_reduce_moves_as_many_bytes_as_its_algorithm_says() {
    for (reduction, sent) in [(Reduction::Ring, 10 * 30_001), (Reduction::Tree, 10 * 30_001)] {
        let app = App::AllReduce { reduction, bytes: Bytes(30_001), rounds: 3, tcp: TCP };
        let flows = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)];
        let report = run(&mut ring(3, 2, true), app, &flows, Span::from_millis(100));
        assert_eq!(report.len(), 6);
        assert!(report.iter().all(|flow| flow.completed == 3 && flow.failed == 0), "{report:#?}");
        // 2 (N - 1) times the data in all, each round.
        let sum: u64 = report.iter().map(|flow| flow.sent_bytes).sum();
        assert_eq!(sum, 3 * sent, "{reduction:?}");
        let received: u64 = report.iter().map(|flow| flow.received_bytes).sum();
        assert_eq!(received, sum);
    }
}

#[test]
fn bursts_have_the_mean_rate_of_their_distributions() {
    let app = App::OnOff {
        payload: 1000,
        interval: Span::from_micros(10),
        on: Sizes::Exponential { mean: 20_000 },
        off: Sizes::Exponential { mean: Span::from_micros(200).ticks() },
    };
    let report = run(&mut line(1, 2, true), app, &[(0, 1)], Span::from_millis(200));
    let flow = &report[0];
    assert_eq!(flow.lost_packets, Some(0));
    assert!(flow.in_flight_packets.unwrap() <= 2, "what is on the wire now: {flow:?}");
    // 20 kB in some 205 us and a pause of 200 us: 495 bursts in 200 ms, give or take.
    assert!((420..570).contains(&flow.completed), "{} bursts", flow.completed);
    let mean = flow.sent_bytes / flow.completed;
    assert!((17_500..22_500).contains(&mean), "{mean} bytes in a burst");
}

#[test]
fn a_file_service_runs_its_transactions_over_both_transports() {
    for transport in [FileTransport::Tcp(TCP), FileTransport::Udp] {
        let service = FileService {
            transport,
            files: 20,
            transactions: Some(100),
            size_min: Bytes(500),
            size_max: Bytes(9770),
            block: Bytes(1024),
            read_bias: 5,
            create_bias: 5,
            server: Span::from_micros(20),
            client: Span::from_micros(10),
        };
        let app = App::FileService(service);
        let report = run(&mut line(2, 1, true), app, &[(0, 1)], Span::from_secs(1));
        let flow = &report[0];
        assert_eq!((flow.completed, flow.failed, flow.retransmits), (100, 0, 0), "{flow:?}");
        assert_eq!(flow.wrong_bytes, 0, "what was read is what was written");
        let files = flow.files.unwrap();
        let [created, deleted, reads, appends] = files.operations;
        assert_eq!((created - 20 + deleted, reads + appends), (100, 100));
        assert!((30..=70).contains(&deleted) && (30..=70).contains(&reads), "{files:?}");
        // Some ten calls of more than 40 us each.
        let rate = files.transactions_per_1000s / 1000;
        assert!((500..3_000).contains(&rate), "{rate} transactions a second");
        assert!(files.read_bytes_per_second > 1_000_000, "{files:?}");
    }
}

#[test]
fn hosts_ask_for_macs_by_a_pattern() {
    let asked = arp_questions(axon_fabric::traffic::ArpPattern::Random, 6, 4, 9);
    let flows: Vec<(usize, usize)> = asked
        .iter()
        .enumerate()
        .flat_map(|(from, asked)| asked.iter().map(move |&to| (from, to)))
        .collect();
    let app = App::Arp { interval: Span::from_millis(2) };
    let report = run(&mut ring(3, 2, true), app, &flows, Span::from_millis(100));
    assert_eq!(report.len(), 6);
    assert!(report.iter().all(|flow| (flow.sent_packets, flow.completed) == (4, 4)), "{report:#?}");
}

/// A frame with a UDP datagram of foreign addresses.
fn captured(at: Span, bytes: usize, number: u8) -> CapturedFrame {
    let mut frame = vec![number; bytes];
    frame[..12].copy_from_slice(&[4, 0, 0, 0, 0, 9, 4, 0, 0, 0, 0, 8]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    CapturedFrame { at, bytes: frame, wire_bytes: bytes }
}

fn replay(frames: Vec<CapturedFrame>, rewrite: Rewrite) -> App {
    App::Replay { file: Default::default(), frames: frames.into(), rewrite }
}

#[test]
fn a_replay_sends_every_frame_at_its_time() {
    let frames: Vec<CapturedFrame> = (0..50u8)
        .map(|n| captured(Span::from_nanos(u64::from(n) * 33_333), 60 + usize::from(n) * 20, n))
        .collect();
    let wanted: u64 = frames.iter().map(|frame| frame.wire_bytes as u64).sum();
    let app = replay(frames, Rewrite::Macs);
    let report = run(&mut line(2, 1, true), app, &[(0, 1)], Span::from_millis(20));
    let flow = &report[0];
    assert_eq!((flow.sent_packets, flow.sent_bytes, flow.completed), (50, wanted, 1));
    assert_eq!((flow.received_packets, flow.received_bytes), (50, wanted));
    assert_eq!(flow.missing_packets, Some(0));
    let took = flow.done_ns.unwrap() - flow.first_ns.unwrap();
    assert_eq!(took, 49 * 33_333, "the last leaves when the capture says");
}

#[test]
fn replays_are_counted_apart_from_each_other_and_from_all_else() {
    let frames: Vec<CapturedFrame> =
        (0..50u8).map(|n| captured(Span::from_micros(u64::from(n) * 10), 40, n)).collect();
    let app = replay(frames, Rewrite::Addresses);
    let (interval, count) = (Span::from_micros(10), Some(100));
    let other = App::Udp { payload: 100, interval, count };
    let entries = [(app, &[(0, 2), (1, 2), (0, 1)][..]), (other, &[(0, 2)])];
    let report = run_some(&mut line(3, 1, true), &entries, Span::from_millis(20));
    for flow in &report[..3] {
        // NICs fill frames up to 60 bytes; that is not counted.
        assert_eq!((flow.sent_packets, flow.sent_bytes), (50, 2000));
        assert_eq!((flow.received_packets, flow.received_bytes), (50, 2000), "{flow:#?}");
    }
    assert_eq!(report[3].received_packets, 100);
}

#[test]
fn a_replay_that_changes_nothing_is_counted_wherever_its_frames_go() {
    let mut builder = line(2, 2, true);
    builder.fabric.network = Network::Ethernet;
    let macs: Vec<[u8; 6]> = builder.fabric.hosts.iter().map(|host| host.mac.0).collect();
    // To the target, to two others, and to an unknown MAC, which a bridge floods.
    let to = [macs[3], macs[1], macs[2], [4, 0, 0, 0, 0, 9]];
    let frame = |n: u8| {
        // Bridges begin to forward after some seconds: the very first is lost.
        let at = if n == 0 { Span::ZERO } else { Span::from_micros(5_000_000 + u64::from(n)) };
        let mut frame = captured(at, 100, n);
        frame.bytes[..6].copy_from_slice(&to[usize::from(n) % 4]);
        frame
    };
    let frames: Vec<CapturedFrame> = (0..=40).map(frame).collect();
    let app = replay(frames, Rewrite::Nothing);
    let report = run(&mut builder, app, &[(0, 3)], Span::from_secs(6));
    let flow = &report[0];
    assert_eq!((flow.sent_packets, flow.received_packets, flow.missing_packets), (41, 40, Some(1)));
    assert_eq!(flow.received_bytes, 4000);
}

#[test]
fn a_slow_host_takes_what_it_can_and_drops_the_rest() {
    let mut world = boot(&line(1, 2, true));
    world.inject(FaultKind::HostSlow(1, Some(Rate::mbps(100))));
    let sink = give(&mut world, 1, |host, now| host.start(Plan::UdpSink { port: PORT }, now));
    let plan = UdpPlan {
        target: ip(&world, 1),
        port: PORT,
        payload: 1000,
        interval: Span::from_micros(10),
        count: 4000,
    };
    let source = give(&mut world, 0, |host, now| host.start(Plan::Udp(plan), now));
    world.run_for(Span::from_micros(40_100));
    let sent = world.host(0).unwrap().flow_stats(source).unwrap().sent_packets;
    let count = |world: &World| world.host(1).unwrap().flow_stats(sink).unwrap().received.packets;
    let received = count(&world);
    // 1042 bytes at 100 Mb/s take 83.36 us: 479 in 40 ms.
    assert_eq!(sent, 4000);
    assert!((470..=480).contains(&received), "{received}");
    let station = world.layout().host_station(1);
    let dropped = world.engine().stations().nth(station).unwrap().accounts().dropped;
    let full = dropped[axon_node::Drop::QueueFull as usize];
    assert!((2990..=3030).contains(&full), "{full} found the ring full");
    assert_sound(&world);
    world.inject(FaultKind::HostSlow(1, None));
    world.run_for(Span::from_millis(60));
    assert_eq!(count(&world) + full, 4000, "the ring is read out");
}

#[test]
fn processing_time_of_hosts_is_in_every_ping() {
    let rtt = |processing: u64| {
        let mut world = boot(&line(1, 2, true));
        for host in 0..2 {
            let span = Span::from_nanos(processing);
            world.with_host(host, |host, _| host.rx_ring_mut().set_processing(span));
        }
        let id = common::start_steady(&mut world, 0, 1, Span::from_millis(10));
        world.run_for(Span::from_millis(20));
        assert_sound(&world);
        world.ping_stats(id).unwrap().rtt_min.unwrap().as_nanos()
    };
    assert_eq!(rtt(700), rtt(0) + 2 * 700);
}

#[test]
fn traffic_repeats_bit_by_bit() {
    let hash = |seed| {
        let mut builder = ring(3, 2, true);
        let flows = vec![(0, 3), (1, 4), (2, 5)];
        let on = Sizes::Pareto { min: 1000, max: 100_000, shape_per_mille: 1200 };
        let off = Sizes::Exponential { mean: Span::from_micros(50).ticks() };
        let apps = [
            App::OnOff { payload: 1472, interval: Span::from_micros(13), on, off },
            App::Tcp { bytes: None, tcp: TCP },
        ];
        builder.fabric.traffic = apps
            .into_iter()
            .enumerate()
            .map(|(number, app)| Traffic {
                name: format!("t{number}"),
                start: Span::from_millis(number as u64),
                stop: Some(Span::from_millis(8)),
                hosts: (0..6).collect(),
                flows: flows.clone(),
                priority: Priority::ZERO,
                app,
            })
            .collect();
        let mut world = World::new(&builder.fabric, seed);
        world.run_until(common::BOOT);
        world.start_traffic();
        world.run_for(Span::from_millis(12));
        assert_sound(&world);
        let sent: Vec<u64> = world.flows().report().iter().map(|flow| flow.sent_bytes).collect();
        assert!(sent.iter().all(|&bytes| bytes > 20_000), "{sent:?}");
        (world.engine().trace_hash(), sent)
    };
    assert_eq!(hash(5), hash(5));
    assert_ne!(hash(5).1, hash(6).1);
}

#[test]
fn every_scenario_with_traffic_does_it() {
    for (name, span) in [("permutation", 3), ("incast", 30), ("allreduce", 120)] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let fabric = axon_fabric::load(&folder.join(format!("{name}.yaml"))).unwrap();
        let mut world = World::new(&fabric, fabric.seed);
        let limit = Time::ZERO + Span::from_secs(10);
        assert!(world.run_until_true(limit, World::all_have_addresses), "{name}");
        world.start_traffic();
        world.run_for(Span::from_millis(span));
        assert_sound(&world);
        let report = world.flows().report();
        assert!(world.flows().are_done(), "{name}: {report:#?}");
        assert!(report.iter().all(|flow| flow.received_bytes > 0 && flow.failed == 0), "{name}");
    }
}

#[test]
fn without_traffic_those_ping_that_may_reach_each_other() {
    let ring = "name: t\ntopology: { ring: { switches: 4, hosts_per_switch: 2 } }\n";
    let sections = [
        "vlans:\n- { id: 10, access: [h1, h2, h3], dhcp: { subnet: 192.168.1.0/24 } }\n\
         - { id: 20, trunk: [h4, h5], dhcp: { subnet: 192.168.2.0/24 } }\n",
        "isolation:\n  others: allow\n  tenants:\n  - { name: red, hosts: [h1, h2, h3] }\n  \
         - { name: blue, hosts: [h4, s3-p0] }\n",
    ];
    for section in sections {
        let fabric = common::fabric(&format!("{ring}{section}"));
        let report = axon_sim::run(&fabric, axon_sim::Options::default());
        assert!(report.passed() && report.warnings.is_empty(), "{report:?}");
        let [round] = &report.rounds[..] else { panic!("{report:?}") };
        // Three, two, and the three that are in neither.
        assert_eq!((round.pairs, round.answered), (6 + 2 + 6, 14), "{report:?}");

        let traffic = "traffic:\n- { name: a, ping: { count: 3 }, pairs: [[h1, h2], [h1, h4]] }\n";
        let fabric = common::fabric(&format!("{ring}{section}{traffic}"));
        let report = axon_sim::run(&fabric, axon_sim::Options::default());
        let wanted =
            "a: 1 of 2 flows are between hosts that may not reach each other, such as h1 and h4";
        assert!(report.warnings.iter().any(|warning| warning == wanted), "{:?}", report.warnings);
    }
}
